// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that stand for several, and the links and programs that come with them.
//!
//! Pure. `[hosts.left] count = 3` is `left-1`, `left-2` and `left-3`; what names `left` is there once for
//! each of them. Start with [`Groups`].

use std::collections::BTreeSet;

use fatpath_toml::nearest;

use super::files::NamedFiles;
use super::link::{link, unread};
use super::size::{MOST_HOSTS, MOST_LINKS, Size};
use super::values::{Refusal, Section, Value, Values};
use super::{Host, Link, names};

/// The most replicas of a host.
const MOST_REPLICAS: u64 = 250;

/// The hosts or links of a case, by the names in the file.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    /// All names, of groups too.
    taken: BTreeSet<String>,
}

#[derive(Debug)]
struct Group {
    name: String,
    /// `None`: there is one, of that name.
    count: Option<u32>,
}

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// One thing.
    One,
    /// A group of so many.
    Each(u32),
}

impl Who {
    /// `None`: there is one, without an index.
    pub(super) fn count(self) -> Option<u32> {
        match self {
            Who::One => None,
            Who::Each(count) => Some(count),
        }
    }
}

impl Groups {
    /// Notes a name; `Err` is a name of its replicas that is taken, or itself.
    fn add(&mut self, name: &str, count: Option<u32>) -> Result<(), String> {
        let replicas = (1..=count.unwrap_or(0)).map(|index| replica(name, index));
        for name in std::iter::once(name.to_owned()).chain(replicas) {
            if !self.taken.insert(name.clone()) {
                return Err(name);
            }
        }
        self.groups.push(Group {
            name: name.to_owned(),
            count,
        });
        Ok(())
    }

    /// What a name means; `None` if there is nothing of that name.
    pub(super) fn who(&self, name: &str) -> Option<Who> {
        let group = self.groups.iter().find(|group| group.name == name);
        match group {
            Some(group) => Some(group.count.map_or(Who::One, Who::Each)),
            None => self.taken.contains(name).then_some(Who::One),
        }
    }

    /// The name that was probably meant by another, or all of them after `title`.
    pub(super) fn meant(&self, written: &str, title: &str) -> String {
        match nearest(written, self.taken.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("{title}: {}", self.named()),
        }
    }

    /// The names as the file has them, for people.
    pub(super) fn named(&self) -> String {
        let names = self.groups.iter().map(|group| match group.count {
            None => group.name.clone(),
            Some(count) => format!("{} ({}-1 to {0}-{count})", group.name, group.name),
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The name of a replica.
pub(super) fn replica(name: &str, index: u32) -> String {
    format!("{name}-{index}")
}

/// What `name` means for the replica `index`: itself, or the group's member of the same index.
pub(super) fn member(who: Who, name: &str, index: Option<u32>) -> String {
    match (who, index) {
        (Who::Each(_), Some(index)) => replica(name, index),
        _ => name.to_owned(),
    }
}

/// The indexes of what there is `count` times; one `None` for what there is once.
pub(super) fn indexes(count: Option<u32>) -> Vec<Option<u32>> {
    match count {
        None => vec![None],
        Some(count) => (1..=count).map(Some).collect(),
    }
}

/// All hosts of a case, from their tables.
pub(super) fn hosts(
    tables: &[(String, Section)],
    values: Values,
    size: &Size,
) -> Result<(Groups, Vec<Host>), Refusal> {
    let mut groups = Groups::default();
    let mut hosts = vec![];
    for (name, table) in tables {
        let mut section = table.with(values);
        let count = section.whole("count", 1..=MOST_REPLICAS);
        let count = count.map(|count| count as u32);
        let longest = count.map_or(name.clone(), |count| replica(name, count));
        if let Err(allowed) = names::device(&longest) {
            let message =
                format!("hosts.{name}: \"{longest}\" is not a valid host name; give {allowed}");
            section.note(section.refusal(message));
        }
        if let Err(taken) = groups.add(name, count) {
            let message = format!("hosts.{name}: the name \"{taken}\" is taken; names are unique");
            table.note(table.refusal(message));
            continue;
        }
        for index in indexes(count) {
            let name = member(Who::Each(0), name, index);
            let read = host(name.clone(), table.with(values.of_replica(index)));
            let host = table.noted(read).unwrap_or_else(|| unread_host(name));
            size.add_host(&host).map_err(|large| table.refusal(large))?;
            hosts.push(host);
        }
        if hosts.len() > MOST_HOSTS {
            return Err(table.refusal(format!("hosts: more than {MOST_HOSTS}")));
        }
    }
    Ok((groups, hosts))
}

/// In place of a host whose table is wrong, so that the tables that name it are read too.
fn unread_host(name: String) -> Host {
    Host {
        name,
        router: true,
        sysctls: vec![],
    }
}

fn host(name: String, mut section: Section) -> Result<Host, Refusal> {
    section.take("count");
    let router = section.flag("router").unwrap_or(false);
    let mut sysctls = vec![];
    for (name, value) in section.take_entries("sysctl")? {
        if !names::is_sysctl(&name) {
            section.note(value.refusal(
                "is no sysctl of a host; they are written like \"net.ipv4.tcp_rmem\", begin with net. \
                 and are quoted",
            ));
        }
        let filled = value.plain().and_then(|text| value.filled(&text));
        sysctls.extend(section.noted(filled).map(|filled| (name, filled)));
    }
    section.finish()?;
    Ok(Host {
        name,
        router,
        sysctls,
    })
}

/// All links of a case, from their tables.
pub(super) fn links(
    tables: &[(String, Section)],
    values: Values,
    hosts: &Groups,
    files: &NamedFiles,
    size: &Size,
) -> Result<(Groups, Vec<Link>), Refusal> {
    let mut groups = Groups::default();
    let mut links = vec![];
    for (name, table) in tables {
        let read = between(&mut table.with(values), hosts);
        let Some((ends, count)) = table.noted(read) else {
            // The rest of it is read, and what names it is not wrong for that.
            let section = table.with(values.of_replica(Some(1)));
            table.noted(link(name, Default::default(), section, files));
            drop(groups.add(name, None));
            continue;
        };
        let longest = count.map_or(name.clone(), |count| replica(name, count));
        if let Err(allowed) = names::device(&longest) {
            let message =
                format!("links.{name}: \"{longest}\" is not a valid link name; give {allowed}");
            table.note(table.refusal(message));
        }
        if let Err(taken) = groups.add(name, count) {
            let message = format!("links.{name}: the name \"{taken}\" is taken; names are unique");
            table.note(table.refusal(message));
            continue;
        }
        for index in indexes(count) {
            let own = member(Who::Each(0), name, index);
            let between = ends.each_ref().map(|(host, who)| member(*who, host, index));
            let section = table.with(values.of_replica(index));
            let read = link(&own, between.clone(), section, files);
            let link = table.noted(read).unwrap_or_else(|| unread(own, between));
            size.add_link(&link).map_err(|large| table.refusal(large))?;
            links.push(link);
        }
        if links.len() > MOST_LINKS {
            return Err(table.refusal(format!("links: more than {MOST_LINKS}")));
        }
    }
    Ok((groups, links))
}

/// The ends of a link, and how many links it stands for.
#[allow(
    clippy::type_complexity,
    reason = "a pair of ends with a count, used once"
)]
fn between(
    section: &mut Section,
    hosts: &Groups,
) -> Result<([(String, Who); 2], Option<u32>), Refusal> {
    const ALLOWED: &str = "the names of two hosts, such as [\"client\", \"server\"]";
    let value = section.need("between", ALLOWED)?;
    let items = value.items(ALLOWED)?;
    let [one, other] = &items[..] else {
        return Err(value.refusal(format!("must be {ALLOWED}, not {} items", items.len())));
    };
    let ends = [
        find(&value, hosts, one.text()?)?,
        find(&value, hosts, other.text()?)?,
    ];
    if ends[0].0 == ends[1].0 {
        return Err(value.refusal("a link joins two different hosts"));
    }
    let count = match (ends[0].1, ends[1].1) {
        (Who::One, Who::One) => None,
        (Who::Each(count), Who::One) | (Who::One, Who::Each(count)) => Some(count),
        (Who::Each(one), Who::Each(other)) if one == other => Some(one),
        (Who::Each(one), Who::Each(other)) => {
            return Err(value.refusal(format!(
                "{one} hosts cannot be joined to {other} one by one; give them equal counts, or put a \
                 router between"
            )));
        }
    };
    Ok((ends, count))
}

/// What a host's name in a value means.
pub(super) fn find(value: &Value, hosts: &Groups, name: String) -> Result<(String, Who), Refusal> {
    match hosts.who(&name) {
        Some(who) => Ok((name, who)),
        None => Err(value
            .refusal(format!("\"{name}\" is not a host"))
            .allowed(hosts.meant(&name, "the hosts are"))),
    }
}
