// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of docs/instruments.md is that of the code.
#![allow(clippy::disallowed_methods)] // compares a file of the repository

use fatpath_estats::variables::{Group, Source, Variable, all};

const BEGIN: &str = "<!-- variables: UPDATE_DOCS=1 cargo test -p fatpath-estats --test docs -->\n";
const END: &str = "<!-- end of variables -->\n";

fn row(variable: &Variable) -> String {
    let Variable {
        name,
        unit,
        meaning,
        ..
    } = variable;
    match variable.source {
        Source::Sample { field, since, .. } => {
            format!("| `{name}` | {meaning} | {unit} | {field} | {since} |\n")
        }
        Source::Absent(reason) => format!("| `{name}` | {meaning} | | **absent**: {reason} | |\n"),
    }
}

fn section(group: Group, title: &str) -> String {
    let rows: String = all().filter(|v| v.group == group).map(row).collect();
    format!(
        "### {title}\n\n| variable | meaning | unit | source | since |\n|---|---|---|---|---|\n{rows}\n"
    )
}

fn tables() -> String {
    let groups = [
        (Group::Perf, "Perf: what decides throughput"),
        (Group::Path, "Path: what is known of the path"),
        (Group::Stack, "Stack: TCP's own state"),
        (Group::App, "App: what the application does"),
        (Group::Tune, "Tune: limits that can be set"),
        (Group::Linux, "Linux: not of the RFC"),
    ];
    groups.map(|(group, title)| section(group, title)).concat()
}

#[test]
fn the_table_is_that_of_the_code() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/instruments.md");
    let text = std::fs::read_to_string(file).expect("docs/instruments.md");
    let (before, rest) = text.split_once(BEGIN).expect("the begin of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let expected = format!("{before}{BEGIN}\n{}{END}{after}", tables());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &expected).expect("docs/instruments.md");
        return;
    }
    assert!(
        text == expected,
        "the table differs: UPDATE_DOCS=1 cargo test -p fatpath-estats --test docs"
    );
}
