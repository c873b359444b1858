// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link's table, and what changes of it later.
//!
//! Pure but for a trace, which comes from [`NamedFiles`]. Start with [`link`]; changes while programs run
//! are [`change`] (of a file) and [`changed`] (of a command line).

use std::collections::BTreeSet;

use fatpath_link::ChainSpec;
use fatpath_toml::Document;

use super::cells::{self, Course};
use super::effects::{KEYS, Stage};
use super::files::{NamedFiles, NoFiles};
use super::given::{as_toml, first, is_digits};
use super::values::{Refusal, Section, Values};
use super::{Link, seed};

/// What a command line gives, for messages.
const TITLE: &str = "a change of a link";
/// The most tables of `cells`, and far more than a path has effects.
const MOST_STAGES: usize = 100;

/// A link whose ends are known. `name` is its own, not that of its table: replicas share one.
pub(super) fn link(
    name: &str,
    between: [String; 2],
    mut section: Section,
    files: &NamedFiles,
) -> Result<Link, Refusal> {
    section.take("between");
    let mtu_bytes = section.whole("mtu", 1280..=65535).unwrap_or(1500) as u16;
    let exact = section.flag("exact").unwrap_or(false);
    let emulated = section.flag("emulated").unwrap_or(true);
    let seed = section.whole("seed", 0..=u64::MAX >> 2).unwrap_or(1);
    let courses = courses(&mut section, files)?;
    section.finish()?;
    // What follows from a value that was noted to be wrong would be told as wrong too.
    if section.is_noted() {
        return Ok(unread(name.to_owned(), between));
    }
    let wrong = |message: String| section.refusal(format!("{}.{message}", section.name()));
    let cells = cells::directions(&courses).map_err(wrong)?;
    let mut at = 0..;
    let directions = cells.map(|cells| ChainSpec {
        cells,
        seed: seed::of_direction(seed, name, at.next().unwrap_or_default()),
    });
    for direction in &directions {
        let checked = direction.check();
        checked.map_err(|error| section.refusal_here(error.to_string()))?;
    }
    let is_plain = !exact && directions.iter().all(|one| one.cells.is_empty());
    if !emulated && !is_plain {
        return Err(section.refusal_here(format!(
            "emulated = false: {PLAIN}: leave out exact and all effects, also in the [[path]], or emulated"
        )));
    }
    Ok(Link {
        name: name.to_owned(),
        between,
        mtu_bytes,
        exact,
        emulated,
        directions,
    })
}

const PLAIN: &str = "the kernel carries this link at once";

/// In place of a link whose table is wrong, so that the tables that name it are read too.
pub(super) fn unread(name: String, between: [String; 2]) -> Link {
    Link {
        name,
        between,
        mtu_bytes: 1500,
        exact: false,
        emulated: true,
        directions: [ChainSpec::of([]), ChainSpec::of([])],
    }
}

fn courses(section: &mut Section, files: &NamedFiles) -> Result<[Course; 2], Refusal> {
    let both = course(section, files)?;
    let mut one_way = |key: &'static str| match section.take(key) {
        None => Ok(both.clone()),
        Some(value) => {
            let mut own = value.section()?;
            let is_empty = own.table().is_empty();
            let course = course(&mut own, files)?;
            own.finish()?;
            match (course, both.clone()) {
                (_, both) if is_empty => Ok(both),
                (Course::Stage(own), Course::Stage(both)) => {
                    Ok(Course::Stage(Box::new(own.or(&both))))
                }
                (own @ Course::Cells(_), Course::Cells(_)) => Ok(own),
                (own @ Course::Cells(_), Course::Stage(both)) if both.is_empty() => Ok(own),
                _ => Err(value
                    .refusal("mixes cells with effect keys of the link; write either everywhere")),
            }
        }
    };
    Ok([one_way("forward")?, one_way("backward")?])
}

fn course(section: &mut Section, files: &NamedFiles) -> Result<Course, Refusal> {
    let effect = KEYS.iter().find(|key| section.has(key)).copied();
    let stage = Stage::take(section, files);
    let Some(list) = section.take("cells") else {
        return Ok(Course::Stage(Box::new(stage)));
    };
    if let Some(key) = effect {
        return Err(list.refusal(format!(
            "cannot be combined with effect keys; put {key} into one of its tables"
        )));
    }
    let items = list.items("a list of tables of effect keys, such as [{ loss = \"1%\" }]")?;
    if items.len() > MOST_STAGES {
        return Err(list.refusal(format!("has {} tables; at most {MOST_STAGES}", items.len())));
    }
    let stages = items.into_iter().map(|item| {
        let mut section = item.section()?;
        let stage = Stage::take(&mut section, files);
        section.finish()?;
        Ok(stage)
    });
    Ok(Course::Cells(stages.collect::<Result<_, _>>()?))
}

/// The link with the effects of a table changed, in both directions or in `forward` and `backward`.
/// Keys that are no effects are left for the caller, who must have taken its own.
pub(super) fn change(
    link: &Link,
    mut section: Section,
    files: &NamedFiles,
) -> Result<Link, Refusal> {
    if !link.emulated {
        return Err(section.refusal_here(format!(
            "link {}: {PLAIN}, so it cannot change: leave out its emulated = false",
            link.name
        )));
    }
    let both = Stage::take(&mut section, files);
    let mut one_way = |key| match section.take(key) {
        None => Ok(both.clone()),
        Some(value) => {
            let mut own = value.section()?;
            let stage = Stage::take(&mut own, files);
            own.finish()?;
            Ok(stage.or(&both))
        }
    };
    let stages = [one_way("forward")?, one_way("backward")?];
    section.finish()?;
    let mut link = link.clone();
    if section.is_noted() {
        return Ok(link);
    }
    let [forward, backward] = &mut link.directions;
    let changed = cells::change([&mut forward.cells, &mut backward.cells], &stages);
    changed.map_err(|message| section.refusal_here(format!("link {}: {message}", link.name)))?;
    for direction in &link.directions {
        let checked = direction.check();
        checked.map_err(|error| section.refusal_here(error.to_string()))?;
    }
    Ok(link)
}

/// See [`Link::changed`].
pub(super) fn changed(link: &Link, settings: &[(String, String)]) -> Result<Link, String> {
    let mut text = String::new();
    let mut keys = BTreeSet::new();
    for (key, value) in settings {
        let is_key = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
        if key.is_empty() || !key.chars().all(is_key) {
            return Err(format!(
                "{key}: is not a key of a link, such as loss or forward.rate"
            ));
        }
        if !keys.insert(key) {
            return Err(format!("{key}: is given twice"));
        }
        let is_bare = key.ends_with("path_mtu") && is_digits(value);
        let value = as_toml(TITLE, key, value, is_bare)?;
        text.push_str(&format!("{key} = {value}\n"));
    }
    let document = Document::parse(TITLE, &text).map_err(first)?;
    let section = document.root(Values::default());
    let changed = change(link, section, &NamedFiles::of(&NoFiles));
    document.finish().map_err(first)?;
    changed.map_err(|refusal| refusal.to_string())
}
