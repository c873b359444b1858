// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario file's top level: what varies, and the cases that come of it.
//!
//! Pure but for the files that [`Beside`] reads. Every table is read anew for every case, with that
//! case's values, so that a wrong value is found before anything runs. Start with [`scenario`], which
//! reads like the file does; the tables have files of their own.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::beside::Beside;
use super::effects::SERVICE_KEYS;
use super::experiment::experiment;
use super::groups::{self, Groups};
use super::link::change;
use super::programs::programs;
use super::section::{Problem, Section, Source, Value};
use super::values::{Given, Givens, INDEX, Values};
use super::{Case, Link, Scenario, TimedChange, names, units};

/// The largest file; a scenario is written by hand.
const MOST_FILE_BYTES: usize = 1 << 20;
/// The most cases of a file, and the most hosts, links, programs and changes of all of them together:
/// what 300 MB hold.
const MOST_CASES: usize = 100_000;
const MOST_PARTS: usize = 500_000;
/// What a trace or a list takes of those parts: an entry has 8 to 24 bytes, a link about 600.
const ENTRIES_OF_A_PART: usize = 50;

/// Reads a file's text; `file` is its name for messages.
pub(super) fn scenario(file: &str, text: &str, beside: &Beside) -> Result<Scenario, Problem> {
    let source = Source { file, text };
    if text.len() > MOST_FILE_BYTES {
        return Err(source.problem(
            &(0..0),
            "the file is larger than 1 MiB; a scenario is shorter",
        ));
    }
    let mut root = source.root()?;
    let name = name(&root.need("name", names::LAB_NAME)?, names::lab)?;
    let tables = Tables::take(&mut root)?;
    let experiment = experiment(&mut root)?;
    let place = root.with(root.values());
    root.finish()?;
    let cases = tables.cases(&place, beside)?;
    Ok(Scenario {
        name,
        hosts: tables.hosts.into_iter().map(|(name, _)| name).collect(),
        cases,
        experiment,
    })
}

fn name(value: &Value, check: fn(&str) -> Result<(), &'static str>) -> Result<String, Problem> {
    value.parsed(check)?;
    value.text()
}

/// The file's tables, before any case's values are known.
struct Tables<'s> {
    hosts: Vec<(String, Section<'s>)>,
    paths: Vec<PathTable<'s>>,
    variants: Vec<VariantTable<'s>>,
    vary: Vec<Varied>,
    changes: Vec<Section<'s>>,
    programs: Vec<Section<'s>>,
    set: Givens,
}

/// A case of the network: all links, with this path's keys over them.
struct PathTable<'s> {
    name: String,
    links: Vec<(String, Section<'s>)>,
    set: Givens,
}

/// A case of the tuning.
struct VariantTable<'s> {
    name: String,
    section: Section<'s>,
    set: Givens,
}

/// Something to vary, with its values in file order.
struct Varied {
    name: String,
    values: Vec<Given>,
}

impl<'s> Tables<'s> {
    fn take(root: &mut Section<'s>) -> Result<Tables<'s>, Problem> {
        let hosts = root.take_named("hosts")?;
        if hosts.is_empty() {
            return Err(root.problem("hosts: name at least one host: [hosts.NAME]"));
        }
        let set = defaults(root, &hosts)?;
        let links = root.take_named("links")?;
        Ok(Tables {
            paths: paths(root, &links, &set)?,
            variants: variants(root, &set)?,
            vary: vary(root, &hosts)?,
            changes: root.take_list("change")?,
            programs: root.take_list("program")?,
            hosts,
            set,
        })
    }

    fn cases(&self, place: &Section, beside: &Beside) -> Result<Vec<Case>, Problem> {
        let of_vary = self.vary.iter().map(|varied| varied.values.len());
        let count = of_vary.fold(
            self.paths.len() * self.variants.len(),
            usize::saturating_mul,
        );
        if count > MOST_CASES {
            let message = format!("vary: gives {count} cases; at most {MOST_CASES} are run");
            return Err(place.problem(message));
        }
        let (mut cases, mut labels, mut parts) = (vec![], BTreeSet::new(), 0);
        for path in &self.paths {
            for variant in &self.variants {
                for combination in combinations(&self.vary) {
                    let case = self.case(path, variant, &combination, &mut labels, beside)?;
                    parts += parts_of(&case);
                    if parts > MOST_PARTS {
                        return Err(place.problem(too_large()));
                    }
                    cases.push(case);
                }
            }
        }
        self.check_varied(place)?;
        Ok(cases)
    }

    fn case(
        &self,
        path: &PathTable,
        variant: &VariantTable,
        combination: &[(&str, &Given)],
        labels: &mut BTreeSet<String>,
        beside: &Beside,
    ) -> Result<Case, Problem> {
        let mut givens = self.set.clone();
        givens.extend(path.set.clone());
        givens.extend(variant.set.clone());
        let vary = combination.iter();
        givens.extend(vary.map(|(name, given)| ((*name).to_owned(), (*given).clone())));
        let values = Values::of(&givens);
        let (host_groups, hosts) = groups::hosts(&self.hosts, values)?;
        let (link_groups, links) = groups::links(&path.links, values, &host_groups, beside)?;
        let vary: Vec<_> = combination
            .iter()
            .map(|(name, given)| ((*name).to_owned(), given.text.clone()))
            .collect();
        Ok(Case {
            label: names::label(&path.name, &variant.name, &vary, labels),
            path: path.name.clone(),
            variant: variant.name.clone(),
            vary,
            policy: variant.policy(values, beside)?,
            programs: programs(&self.programs, values, &host_groups, &hosts, &links)?,
            changes: changes(&self.changes, values, &link_groups, &links, beside)?,
            links,
            hosts,
        })
    }

    /// A name that no placeholder asks for is misspelt somewhere: its cases would all be alike.
    fn check_varied(&self, place: &Section) -> Result<(), Problem> {
        let is_used = |varied: &&Varied| varied.values.iter().any(|given| given.used.get());
        match self.vary.iter().find(|varied| !is_used(varied)) {
            None => Ok(()),
            Some(Varied { name, values }) => {
                let at = values.first().map_or(0..0, |given| given.at.clone());
                Err(place.problem_at(
                    &at,
                    format!("vary.{name}: is used nowhere; write {{{name}}} where it belongs"),
                ))
            }
        }
    }
}

fn too_large() -> String {
    format!(
        "the cases have more than {MOST_PARTS} hosts, links, programs and changes together; vary less, \
         or write several scenarios"
    )
}

/// What a case holds, roughly: each has a size of its own order.
fn parts_of(case: &Case) -> usize {
    let entries = case.links.iter().flat_map(|link| &link.directions);
    let changed = case.changes.iter().flat_map(|change| &change.directions);
    let entries: usize = entries.chain(changed).map(entries_of).sum();
    case.hosts.len()
        + case.links.len()
        + case.programs.len()
        + case.changes.len()
        + entries / ENTRIES_OF_A_PART
}

fn entries_of(direction: &fatpath_link::ChainSpec) -> usize {
    use fatpath_link::{CellSpec, LossSpec, Service};
    let of_cell = |cell: &CellSpec| match cell {
        CellSpec::Rate(rate) => match &rate.service {
            Service::Steps { steps, .. } => steps.len(),
            Service::Opportunities { at_ms } => at_ms.len(),
            Service::Unlimited | Service::Constant { .. } => 0,
        },
        CellSpec::Loss(LossSpec::Packets { packets, .. }) => packets.len(),
        CellSpec::Loss(LossSpec::Windows { windows }) => windows.len(),
        _ => 0,
    };
    // A cell by itself is as large as a few entries.
    direction.cells.iter().map(|cell| 8 + of_cell(cell)).sum()
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

fn defaults(root: &mut Section, hosts: &[(String, Section)]) -> Result<Givens, Problem> {
    let entries = root.take_entries("set")?;
    entries
        .into_iter()
        .map(|(name, value)| {
            check_free(&name, &value, hosts)?;
            let given = given(&value)?;
            Ok((name, given))
        })
        .collect()
}

/// A placeholder means one thing.
fn check_free(name: &str, value: &Value, hosts: &[(String, Section)]) -> Result<(), Problem> {
    if name == INDEX {
        return Err(value.problem("{n} is the index of a replica; take another name"));
    }
    if hosts.iter().any(|(host, _)| host == name) {
        let message = format!("{{{name}}} is the address of host {name}; take another name");
        return Err(value.problem(message));
    }
    Ok(())
}

fn given(value: &Value) -> Result<Given, Problem> {
    Ok(Given {
        text: value.plain()?,
        at: value.span(),
        used: Rc::new(Cell::new(false)),
    })
}

/// `set` of a path or a variant: only what the top-level `[set]` names, so that a misspelt name
/// is not silently a new one.
fn changed_set(section: &mut Section, defaults: &Givens) -> Result<Givens, Problem> {
    let mut changed = Givens::new();
    for (name, value) in section.take_entries("set")? {
        if !defaults.contains_key(&name) {
            let known: Vec<&str> = defaults.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            return Err(value.problem(format!("has no default; named in [set]: {known}")));
        }
        changed.insert(name, given(&value)?);
    }
    Ok(changed)
}

fn paths<'s>(
    root: &mut Section<'s>,
    base: &[(String, Section<'s>)],
    set: &Givens,
) -> Result<Vec<PathTable<'s>>, Problem> {
    let mut paths: Vec<PathTable> = vec![];
    for mut section in root.take_list("path")? {
        let name = unique_name(&mut section, paths.iter().map(|path| path.name.as_str()))?;
        let links = overlaid(base, section.take_named("links")?)?;
        let set = changed_set(&mut section, set)?;
        section.finish()?;
        paths.push(PathTable { name, links, set });
    }
    if paths.is_empty() {
        paths.push(PathTable {
            name: "default".to_owned(),
            links: overlaid(base, vec![])?,
            set: Givens::new(),
        });
    }
    Ok(paths)
}

fn unique_name<'a>(
    section: &mut Section,
    mut taken: impl Iterator<Item = &'a str>,
) -> Result<String, Problem> {
    let value = section.need("name", names::CASE_NAME)?;
    let name = name(&value, names::case)?;
    if taken.any(|other| other == name) {
        return Err(value.problem(format!("\"{name}\" is taken; names are unique")));
    }
    Ok(name)
}

/// The links of a path: those of the file with the path's keys over theirs.
fn overlaid<'s>(
    base: &[(String, Section<'s>)],
    mut changed: Vec<(String, Section<'s>)>,
) -> Result<Vec<(String, Section<'s>)>, Problem> {
    let mut links = vec![];
    for (name, section) in base {
        let over = changed.iter().position(|(other, _)| other == name);
        let section = match over {
            Some(index) => {
                let over = changed.swap_remove(index).1;
                section.overlaid(over, &["forward", "backward"], &SERVICE_KEYS)
            }
            None => section.with(section.values()),
        };
        links.push((name.clone(), section));
    }
    match changed.first() {
        None => Ok(links),
        Some((name, section)) => {
            let known: Vec<&str> = base.iter().map(|(name, _)| name.as_str()).collect();
            Err(section.problem(format!(
                "links.{name}: no such link; the links are: {}",
                known.join(", ")
            )))
        }
    }
}

fn variants<'s>(root: &mut Section<'s>, set: &Givens) -> Result<Vec<VariantTable<'s>>, Problem> {
    let mut variants: Vec<VariantTable> = vec![];
    for mut section in root.take_list("variant")? {
        let taken = variants.iter().map(|variant| variant.name.as_str());
        let name = unique_name(&mut section, taken)?;
        let set = changed_set(&mut section, set)?;
        variants.push(VariantTable { name, section, set });
    }
    if variants.is_empty() {
        variants.push(VariantTable {
            name: "default".to_owned(),
            section: root.empty(),
            set: Givens::new(),
        });
    }
    Ok(variants)
}

impl VariantTable<'_> {
    fn policy(&self, values: Values, beside: &Beside) -> Result<Option<PathBuf>, Problem> {
        let mut section = self.section.with(values);
        let policy = section.take("policy").map(|policy| {
            let found = beside.existing(&policy.text()?);
            found.map_err(|wrong| policy.problem(wrong))
        });
        let policy = policy.transpose()?;
        section.finish()?;
        Ok(policy)
    }
}

fn vary(root: &mut Section, hosts: &[(String, Section)]) -> Result<Vec<Varied>, Problem> {
    const ALLOWED: &str = "a list of one value or more, such as [\"0%\", \"1%\"]";
    let mut vary = vec![];
    for (name, value) in root.take_entries("vary")? {
        if let Err(allowed) = names::case(&name) {
            return Err(value.problem(format!("a name to vary is {allowed}")));
        }
        check_free(&name, &value, hosts)?;
        let used = Rc::new(Cell::new(false));
        let mut values: Vec<Given> = vec![];
        for item in value.items(ALLOWED)? {
            let given = Given {
                used: Rc::clone(&used),
                ..given(&item)?
            };
            if values.iter().any(|other| other.text == given.text) {
                return Err(item.problem("is there already; the cases would be alike"));
            }
            if values.len() == MOST_CASES {
                return Err(value.problem(format!("has more than {MOST_CASES} values")));
            }
            values.push(given);
        }
        if values.is_empty() {
            return Err(value.problem(format!("must be {ALLOWED}, not empty")));
        }
        vary.push(Varied { name, values });
    }
    Ok(vary)
}

/// The changes of a case in order of time, each with all before it.
fn changes(
    tables: &[Section],
    values: Values,
    groups: &Groups,
    links: &[Link],
    beside: &Beside,
) -> Result<Vec<TimedChange>, Problem> {
    let mut timed = vec![];
    for table in tables {
        let mut section = table.with(values);
        let at = section.need("at", "when, since the programs started, such as \"5s\"")?;
        let at_ns = at.parsed(units::moment_ns)?;
        timed.push((at_ns, table, changed_link(&mut section, groups)?));
    }
    timed.sort_by_key(|(at_ns, ..)| *at_ns);
    let mut links = links.to_vec();
    let mut changes = vec![];
    for (at_ns, table, (name, who)) in timed {
        for index in groups::indexes(who.count()) {
            let name = groups::member(who, &name, index);
            let mut section = table.with(values.of_replica(index));
            section.take("at");
            section.take("link");
            if let Some(link) = links.iter_mut().find(|link| link.name == name) {
                *link = change(link, section, beside)?;
                changes.push(TimedChange {
                    at: Duration::from_nanos(at_ns),
                    link: name,
                    directions: link.directions.clone(),
                });
            }
        }
    }
    Ok(changes)
}

fn changed_link(section: &mut Section, groups: &Groups) -> Result<(String, groups::Who), Problem> {
    let value = section.need("link", &format!("one of: {}", groups.named()))?;
    let name = value.text()?;
    match groups.who(&name) {
        Some(who) => Ok((name, who)),
        None => Err(value.problem(format!(
            "\"{name}\" is no link; the links are: {}",
            groups.named()
        ))),
    }
}
