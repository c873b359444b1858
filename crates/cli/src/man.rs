// SPDX-License-Identifier: MIT OR Apache-2.0
//! The man pages: of the commands from the same definitions as `--help`, of files from the documentation.

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use fatpath_manual::{Page, plain, see_also, tidy};
use std::path::{Path, PathBuf};

const SOURCE: &str = concat!("fatpath ", env!("CARGO_PKG_VERSION"));

/// Pages of the documentation that are man pages, too.
const PAGES: [Page<'static>; 4] = [
    Page {
        name: "fatpath-policy",
        section: 5,
        title: "the policy file: which TCP flows are tuned, and how",
        source: SOURCE,
        text: include_str!("../../../docs/policy.md"),
        see_also: &["fatpath(1)", "fatpath-daemon(1)", "fatpath-rude(7)"],
    },
    Page {
        name: "fatpath-measure",
        section: 5,
        title: "measure.toml: active tests on a schedule",
        source: SOURCE,
        text: include_str!("../../../docs/measure.md"),
        see_also: &[
            "fatpath-measure(1)",
            "fatpath-daemon(1)",
            "fatpath-policy(5)",
        ],
    },
    Page {
        name: "fatpath-scenario",
        section: 5,
        title: "scenario files: emulated networks and experiments",
        source: SOURCE,
        text: include_str!("../../../docs/lab.md"),
        see_also: &["fatpath-lab(1)", "fatpath-sim(1)", "fatpath-policy(5)"],
    },
    Page {
        name: "fatpath-rude",
        section: 7,
        title: "Rude TCP: flows without congestion control",
        source: SOURCE,
        text: include_str!("../../../docs/rude.md"),
        see_also: &["fatpath(1)", "fatpath-policy(5)"],
    },
];

/// What fatpath(1) leads to besides its commands.
const RELATED: [&str; 4] = [
    "fatpath-policy(5)",
    "fatpath-measure(5)",
    "fatpath-scenario(5)",
    "fatpath-rude(7)",
];

#[derive(clap::Args)]
pub struct Arguments {
    /// Directory, such as /usr/share/man
    directory: PathBuf,
}

/// Writes `man1/fatpath.1`, a page for each command below `command`, and those of [`PAGES`].
pub fn run(arguments: &Arguments, mut command: Command) -> Result<()> {
    for page in PAGES {
        let name = format!("man{0}/{1}.{0}", page.section, page.name);
        write(&arguments.directory.join(name), &page.to_roff())?;
    }
    command.build();
    write_command(&arguments.directory.join("man1"), &command, &RELATED)
}

/// The page of a command, and of those below it.
fn write_command(directory: &Path, command: &Command, related: &[&str]) -> Result<()> {
    let below = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && it.get_name() != "help");
    let below: Vec<&Command> = below.collect();
    let name = page_name(command);
    let mut pages: Vec<String> = below
        .iter()
        .map(|it| format!("{}(1)", page_name(it)))
        .collect();
    pages.extend(related.iter().map(|page| (*page).to_owned()));
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    write(
        &directory.join(format!("{name}.1")),
        &page_of(command, &pages)?,
    )?;
    let above = format!("{name}(1)");
    below
        .iter()
        .try_for_each(|it| write_command(directory, it, &[&above]))
}

fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_owned()
}

fn page_of(command: &Command, pages: &[&str]) -> Result<String> {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = page_name(command);
    let man = Man::new(command.clone())
        .source(SOURCE)
        .manual("fatpath")
        .date("");
    let mut sections = Vec::new();
    man.render_synopsis_section(&mut sections)?;
    man.render_description_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut sections)?;
    }
    let sections = String::from_utf8(sections).context("clap_mangen writes UTF-8")?;
    let page = Page {
        name: &name,
        section: 1,
        title: about.trim_end_matches('.'),
        source: SOURCE,
        text: "",
        see_also: &[],
    };
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    Ok(page.head() + &tidy(&sections) + &plain("NOTES", &after) + &see_also(pages))
}

fn write(file: &Path, text: &str) -> Result<()> {
    let failed = || format!("cannot write {}", file.display());
    let directory = file.parent().with_context(failed)?;
    std::fs::create_dir_all(directory).with_context(failed)?;
    std::fs::write(file, text).with_context(failed)
}
