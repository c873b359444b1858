// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario file's top level: what varies, and the cases that come of it.
//!
//! Pure but for the files that [`NamedFiles`] reads. Every table is read anew for every case, with that
//! case's values, so that a wrong value is found before anything runs. Start with [`scenario`], which
//! reads like the file does; the tables have files of their own.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use fatpath_toml::{Document, Refused, Report, nearest};

use super::experiment::experiment;
use super::files::NamedFiles;
use super::flows::flows;
use super::groups::{self, Groups, Who};
use super::link::change;
use super::names::{self, Labels};
use super::overlay::Overlaid;
use super::programs::programs;
use super::size::{MOST_CASES, MOST_HOSTS, MOST_LINKS, MOST_OF_A_KIND, Size};
use super::values::{Given, Givens, INDEX, Refusal, Section, Value, Values};
use super::{Case, Link, Scenario, TimedChange, units};

/// The largest file; a scenario is written by hand.
const MOST_FILE_BYTES: usize = 1 << 20;

/// Reads a file's text; `file` is its name for messages.
pub(super) fn scenario(file: &str, text: &str, files: &NamedFiles) -> Result<Scenario, Refused> {
    let refused = |problems| Refused {
        file: file.to_owned(),
        problems,
    };
    if text.len() > MOST_FILE_BYTES {
        let message = "the file is larger than 1 MiB; a scenario is shorter";
        let problem = Report::on("").problem(Refusal::new(0, message));
        return Err(refused(vec![problem]));
    }
    let document = Document::parse("a scenario file", text).map_err(refused)?;
    let mut root = document.root(Values::default());
    let read = read(&mut root, files);
    let scenario = root.noted(read);
    match document.finish() {
        Ok(()) => Ok(scenario.expect("what was not read was noted")),
        Err(problems) => Err(refused(problems)),
    }
}

/// What is wrong with one table is noted, and the others are read; an error ends the reading.
fn read(root: &mut Section, files: &NamedFiles) -> Result<Scenario, Refusal> {
    let lab = root.need("name", names::LAB_NAME);
    let lab = root.noted(lab.and_then(|value| name(&value, names::lab)));
    let experiment = experiment(root);
    let experiment = root.noted(experiment);
    let tables = Tables::take(root)?;
    root.note_unknown();
    let cases = tables.cases(root, files)?;
    Ok(Scenario {
        name: lab.unwrap_or_default(),
        hosts: tables.hosts.into_iter().map(|(name, _)| name).collect(),
        cases,
        experiment: experiment.unwrap_or_default(),
    })
}

/// The tables `[[key]]`, if there are not too many.
fn bounded<'s>(root: &mut Section<'s>, key: &'static str) -> Result<Vec<Section<'s>>, Refusal> {
    let tables = root.take_list(key)?;
    at_most(root, key, tables.len(), MOST_OF_A_KIND)?;
    Ok(tables)
}

fn at_most(root: &Section, key: &str, count: usize, most: usize) -> Result<(), Refusal> {
    match count > most {
        true => Err(root.refusal(format!(
            "{key}: there are {count}; at most {most} are allowed"
        ))),
        false => Ok(()),
    }
}

fn name(value: &Value, check: fn(&str) -> Result<(), &'static str>) -> Result<String, Refusal> {
    value.parsed(check)?;
    value.text()
}

/// The file's tables, before any case's values are known.
struct Tables<'s> {
    hosts: Vec<(String, Section<'s>)>,
    links: Vec<(String, Section<'s>)>,
    paths: Vec<PathTable<'s>>,
    variants: Vec<VariantTable<'s>>,
    vary: Vec<Varied>,
    changes: Vec<Section<'s>>,
    programs: Vec<Section<'s>>,
    flows: Vec<Section<'s>>,
    set: Givens,
}

/// A case of the network: the keys of links that are other than the file's.
struct PathTable<'s> {
    name: String,
    changed: Vec<(String, Section<'s>)>,
    set: Givens,
}

/// A case of the tuning.
struct VariantTable<'s> {
    name: String,
    /// `None`: the file has no variants.
    section: Option<Section<'s>>,
    set: Givens,
}

/// Something to vary, with its values in file order.
struct Varied {
    name: String,
    values: Vec<Given>,
}

impl<'s> Tables<'s> {
    fn take(root: &mut Section<'s>) -> Result<Tables<'s>, Refusal> {
        let hosts = root.take_named("hosts")?;
        if hosts.is_empty() {
            return Err(root.refusal("hosts: name at least one host: [hosts.NAME]"));
        }
        at_most(root, "hosts", hosts.len(), MOST_HOSTS)?;
        let set = defaults(root, &hosts)?;
        let links = root.take_named("links")?;
        at_most(root, "links", links.len(), MOST_LINKS)?;
        Ok(Tables {
            paths: paths(root, &links, &set)?,
            links,
            variants: variants(root, &set)?,
            vary: vary(root, &hosts)?,
            changes: bounded(root, "change")?,
            programs: bounded(root, "program")?,
            flows: bounded(root, "flow")?,
            hosts,
            set,
        })
    }

    fn cases(&self, place: &Section, files: &NamedFiles) -> Result<Vec<Case>, Refusal> {
        let of_vary = self.vary.iter().map(|varied| varied.values.len());
        let count = of_vary.fold(
            self.paths.len() * self.variants.len(),
            usize::saturating_mul,
        );
        if count > MOST_CASES {
            let message = format!("vary: gives {count} cases; at most {MOST_CASES} are run");
            return Err(place.refusal(message));
        }
        let (size, mut labels, mut cases) = (Size::default(), Labels::new(), vec![]);
        for path in &self.paths {
            let links = overlaid(&self.links, &path.changed);
            let links = links
                .iter()
                .map(|(name, link)| (name.clone(), link.section()));
            let made = Making {
                tables: self,
                path,
                links: links.collect(),
                files,
                size: &size,
                place,
            };
            for variant in &self.variants {
                for combination in combinations(&self.vary) {
                    cases.push(made.case(variant, &combination, &mut labels)?);
                }
            }
        }
        // What was not read to its end asks for fewer placeholders than it has.
        if !place.is_noted() {
            self.check_varied()?;
        }
        Ok(cases)
    }

    /// A name that no placeholder asks for is misspelt somewhere: its cases would all be alike.
    fn check_varied(&self) -> Result<(), Refusal> {
        let is_used = |varied: &&Varied| varied.values.iter().any(|given| given.used.get());
        match self.vary.iter().find(|varied| !is_used(varied)) {
            None => Ok(()),
            Some(Varied { name, values }) => {
                let at = values.first().map_or(0, |given| given.at);
                let message = format!("vary.{name}: is used nowhere");
                Err(Refusal::new(at, message).allowed(format!("write {{{name}}} where it belongs")))
            }
        }
    }
}

/// The cases of a path while they are made.
struct Making<'m, 's> {
    tables: &'m Tables<'s>,
    path: &'m PathTable<'s>,
    /// With the path's keys.
    links: Vec<(String, Section<'m>)>,
    files: &'m NamedFiles<'m>,
    size: &'m Size,
    place: &'m Section<'s>,
}

impl Making<'_, '_> {
    fn case(
        &self,
        variant: &VariantTable,
        combination: &[(&str, &Given)],
        labels: &mut Labels,
    ) -> Result<Case, Refusal> {
        let (tables, path, size) = (self.tables, self.path, self.size);
        let givens = self.givens(variant, combination);
        let counted = size.add_values(givens.len());
        counted.map_err(|large| self.place.refusal(large))?;
        let values = Values::of(&givens);
        let (host_groups, hosts) = groups::hosts(&tables.hosts, values, size)?;
        let (link_groups, links) =
            groups::links(&self.links, values, &host_groups, self.files, size)?;
        let programs = programs(&tables.programs, values, &host_groups, &hosts, &links, size)?;
        let network = (&hosts[..], &links[..]);
        let flows = flows(&tables.flows, values, &host_groups, network, size)?;
        let daemon = self.place.noted(variant.daemon(values, self.files));
        let (policy, measure) = daemon.unwrap_or_default();
        let changes = self.changes(values, &link_groups, &links);
        let vary: Vec<_> = combination
            .iter()
            .map(|(name, given)| ((*name).to_owned(), given.text.clone()))
            .collect();
        Ok(Case {
            label: names::label(&path.name, &variant.name, &vary, labels),
            path: path.name.clone(),
            variant: variant.name.clone(),
            vary,
            policy,
            measure,
            programs,
            flows,
            changes: self.place.noted(changes).unwrap_or_default(),
            links,
            hosts,
        })
    }

    /// The strongest come last: what varies, the variant's, the path's, the default.
    fn givens(&self, variant: &VariantTable, combination: &[(&str, &Given)]) -> Givens {
        let mut givens = self.tables.set.clone();
        givens.extend(self.path.set.clone());
        givens.extend(variant.set.clone());
        let vary = combination.iter();
        givens.extend(vary.map(|(name, given)| ((*name).to_owned(), (*given).clone())));
        givens
    }

    /// The changes of a case in order of time, each with all before it.
    fn changes(
        &self,
        values: Values,
        groups: &Groups,
        links: &[Link],
    ) -> Result<Vec<TimedChange>, Refusal> {
        let mut changes = vec![];
        let mut links: BTreeMap<&str, Link> = match self.tables.changes.is_empty() {
            true => return Ok(changes),
            false => links
                .iter()
                .map(|link| (link.name.as_str(), link.clone()))
                .collect(),
        };
        for (at, name, table) in timed(&self.tables.changes, values, groups) {
            for index in groups::indexes(groups.who(&name).and_then(Who::count)) {
                let name = groups::member(Who::Each(0), &name, index);
                let mut section = table.with(values.of_replica(index));
                section.take("at");
                section.take("link");
                let Some(link) = links.get_mut(name.as_str()) else {
                    continue;
                };
                let changed = change(link, section, self.files);
                let Some(changed) = table.noted(changed) else {
                    continue;
                };
                *link = changed;
                changes.push(TimedChange {
                    at,
                    link: name,
                    directions: link.directions.clone(),
                });
                let counted = changes
                    .last()
                    .map_or(Ok(()), |last| self.size.add_change(last));
                counted.map_err(|large| table.refusal(large))?;
            }
        }
        Ok(changes)
    }
}

/// All combinations, the last name changing fastest; one empty combination of nothing.
fn combinations(vary: &[Varied]) -> impl Iterator<Item = Vec<(&str, &Given)>> {
    let count: usize = vary.iter().map(|varied| varied.values.len()).product();
    (0..count).map(move |mut number| {
        let mut chosen: Vec<_> = vary
            .iter()
            .rev()
            .map(|varied| {
                let given = &varied.values[number % varied.values.len()];
                number /= varied.values.len();
                (varied.name.as_str(), given)
            })
            .collect();
        chosen.reverse();
        chosen
    })
}

fn defaults(root: &mut Section, hosts: &[(String, Section)]) -> Result<Givens, Refusal> {
    let entries = root.take_entries("set")?;
    let entries = entries.into_iter().filter_map(|(name, value)| {
        let given = check_free(&name, &value, hosts).and_then(|()| given(&value));
        Some((name, root.noted(given)?))
    });
    Ok(entries.collect())
}

/// A placeholder means one thing.
fn check_free(name: &str, value: &Value, hosts: &[(String, Section)]) -> Result<(), Refusal> {
    if name == INDEX {
        return Err(value.refusal("{n} is the index of a replica; take another name"));
    }
    if hosts.iter().any(|(host, _)| host == name) {
        let message = format!("{{{name}}} is the address of host {name}; take another name");
        return Err(value.refusal(message));
    }
    Ok(())
}

fn given(value: &Value) -> Result<Given, Refusal> {
    Ok(Given {
        text: value.plain()?,
        at: value.at(),
        used: Rc::new(Cell::new(false)),
    })
}

/// `set` of a path or a variant: only what the top-level `[set]` names, so that a misspelt name
/// is not silently a new one.
fn changed_set(section: &mut Section, defaults: &Givens) -> Result<Givens, Refusal> {
    let mut changed = Givens::new();
    for (name, value) in section.take_entries("set")? {
        if !defaults.contains_key(&name) {
            let known: Vec<&str> = defaults.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            section.note(value.refusal(format!("has no default; named in [set]: {known}")));
        }
        let given = section.noted(given(&value));
        changed.extend(given.map(|given| (name, given)));
    }
    Ok(changed)
}

fn paths<'s>(
    root: &mut Section<'s>,
    links: &[(String, Section<'s>)],
    set: &Givens,
) -> Result<Vec<PathTable<'s>>, Refusal> {
    let mut paths: Vec<PathTable> = vec![];
    for mut section in bounded(root, "path")? {
        let name = unique_name(&mut section, paths.iter().map(|path| path.name.as_str()));
        let name = section.noted(name).unwrap_or_default();
        let changed = section.take_named("links")?;
        for over in &changed {
            section.noted(check_known(over, links));
        }
        let set = changed_set(&mut section, set)?;
        section.note_unknown();
        paths.push(PathTable { name, changed, set });
    }
    if paths.is_empty() {
        paths.push(PathTable {
            name: "default".to_owned(),
            changed: vec![],
            set: Givens::new(),
        });
    }
    Ok(paths)
}

fn check_known(
    (name, section): &(String, Section),
    links: &[(String, Section)],
) -> Result<(), Refusal> {
    if links.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let known: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
    let refusal = section.refusal(format!("links.{name}: no such link"));
    Err(refusal.allowed(match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("the links are: {}", known.join(", ")),
    }))
}

fn unique_name<'a>(
    section: &mut Section,
    mut taken: impl Iterator<Item = &'a str>,
) -> Result<String, Refusal> {
    let value = section.need("name", names::CASE_NAME)?;
    let name = name(&value, names::case)?;
    if taken.any(|other| other == name) {
        return Err(value.refusal(format!("\"{name}\" is taken; names are unique")));
    }
    Ok(name)
}

/// The links of a path: those of the file with the path's keys over theirs.
fn overlaid<'s>(
    links: &[(String, Section<'s>)],
    changed: &[(String, Section<'s>)],
) -> Vec<(String, Overlaid<'s>)> {
    let of_path = |name: &str| changed.iter().find(|(other, _)| other == name);
    let links = links.iter().map(|(name, section)| {
        let over = of_path(name).map(|(_, over)| over);
        (name.clone(), Overlaid::of(section, over))
    });
    links.collect()
}

fn variants<'s>(root: &mut Section<'s>, set: &Givens) -> Result<Vec<VariantTable<'s>>, Refusal> {
    let mut variants: Vec<VariantTable> = vec![];
    for mut section in bounded(root, "variant")? {
        let taken = variants.iter().map(|variant| variant.name.as_str());
        let name = unique_name(&mut section, taken);
        let name = section.noted(name).unwrap_or_default();
        let set = changed_set(&mut section, set)?;
        variants.push(VariantTable {
            name,
            section: Some(section),
            set,
        });
    }
    if variants.is_empty() {
        variants.push(VariantTable {
            name: "default".to_owned(),
            section: None,
            set: Givens::new(),
        });
    }
    Ok(variants)
}

type DaemonFiles = (Option<PathBuf>, Option<PathBuf>);

impl VariantTable<'_> {
    /// The files of its daemon: the policy, and the tests that it runs.
    fn daemon(&self, values: Values, files: &NamedFiles) -> Result<DaemonFiles, Refusal> {
        let Some(section) = &self.section else {
            return Ok((None, None));
        };
        let mut section = section.with(values);
        section.allow(["name", "set"]);
        let mut file = |key: &'static str| {
            section.read(key, |file| {
                let found = files.existing(&file.text()?);
                found.map_err(|wrong| file.refusal(wrong))
            })
        };
        let (policy, measure) = (file("policy"), file("measure"));
        section.finish()?;
        match (&policy, &measure) {
            (None, Some(_)) => Err(section.refusal("measure: give the policy of the daemon, too")),
            _ => Ok((policy, measure)),
        }
    }
}

fn vary(root: &mut Section, hosts: &[(String, Section)]) -> Result<Vec<Varied>, Refusal> {
    let mut vary = vec![];
    for (name, value) in root.take_entries("vary")? {
        let values = varied(&name, &value, hosts);
        vary.extend(root.noted(values).map(|values| Varied { name, values }));
    }
    Ok(vary)
}

fn varied(name: &str, value: &Value, hosts: &[(String, Section)]) -> Result<Vec<Given>, Refusal> {
    const ALLOWED: &str = "a list of one value or more, such as [\"0%\", \"1%\"]";
    if let Err(allowed) = names::case(name) {
        return Err(value.refusal(format!("a name to vary is {allowed}")));
    }
    check_free(name, value, hosts)?;
    let used = Rc::new(Cell::new(false));
    let (mut values, mut known) = (vec![], BTreeSet::new());
    for item in value.items(ALLOWED)? {
        let given = Given {
            used: Rc::clone(&used),
            ..given(&item)?
        };
        if !known.insert(given.text.clone()) {
            return Err(item.refusal("occurs twice; the cases would be alike"));
        }
        values.push(given);
    }
    match values.is_empty() {
        true => Err(value.found(ALLOWED)),
        false => Ok(values),
    }
}

/// The changes with their times and links, by time.
fn timed<'t, 's>(
    tables: &'t [Section<'s>],
    values: Values,
    groups: &Groups,
) -> Vec<(Duration, String, &'t Section<'s>)> {
    let mut timed = vec![];
    for table in tables {
        let mut section = table.with(values);
        let at = section.need("at", "when, since the programs started, such as \"5s\"");
        let at = at.and_then(|at| at.parsed(units::moment_ns));
        let at = section.noted(at).map(Duration::from_nanos);
        let link = changed_link(&mut section, groups);
        let link = section.noted(link);
        timed.extend(at.zip(link).map(|(at, name)| (at, name, table)));
    }
    timed.sort_by_key(|(at, ..)| *at);
    timed
}

fn changed_link(section: &mut Section, groups: &Groups) -> Result<String, Refusal> {
    let value = section.need("link", &format!("one of: {}", groups.named()))?;
    let name = value.text()?;
    match groups.who(&name) {
        Some(_) => Ok(name),
        None => Err(value
            .refusal(format!("\"{name}\" is not a link"))
            .allowed(groups.meant(&name, "the links are"))),
    }
}
