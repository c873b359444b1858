// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[archive]` section of the policy file. Start at [`read`].

use super::values::{
    ARCHIVE_BYTES, ARCHIVE_DAYS, ARCHIVE_FLOW_BYTES, HOST_INTERVAL, ONE_IN, SPOOL_BYTES,
};
use crate::{Archive, ArchiveServer};
use fatpath_toml::{Refusal, Section, Value};
use std::path::PathBuf;

pub(super) fn read(root: &mut Section) -> Option<Archive> {
    let allowed = "a table, under a line `[archive]`";
    let section = root.read("archive", |value| value.section_or(allowed))?;
    let mut section = section.titled("[archive]");
    let mut archive = Archive::default();
    for (key, measure, number) in [
        ("days", &ARCHIVE_DAYS, &mut archive.days),
        ("one_in", &ONE_IN, &mut archive.one_in),
    ] {
        let read = section.read(key, |value| measure.read_u32(value));
        *number = read.map_or(*number, |chosen| chosen.value);
    }
    for (key, measure, number) in [
        ("size", &ARCHIVE_BYTES, &mut archive.total_bytes),
        ("spool_size", &SPOOL_BYTES, &mut archive.spool_bytes),
        (
            "every_flow_from",
            &ARCHIVE_FLOW_BYTES,
            &mut archive.every_flow_bytes,
        ),
        (
            "host_interval",
            &HOST_INTERVAL,
            &mut archive.host_interval_us,
        ),
    ] {
        let read = section.read(key, |value| measure.read(value));
        *number = read.map_or(*number, |chosen| chosen.value);
    }
    archive.server = read_server(&mut section);
    section.note_unknown();
    Some(archive)
}

/// A server's database is as large as its administrator lets it be: `size` would bound nothing.
fn read_server(section: &mut Section) -> Option<ArchiveServer> {
    let is_given = section.has("url");
    let url = section.read("url", read_url);
    let file = section.read("password_file", |value| value.text().map(PathBuf::from));
    if is_given && section.has("size") {
        let refusal =
            section.refusal("`size` bounds the files of this host; with `url` there are none");
        section.note(refusal.allowed("allowed: url with days, or size without url"));
    }
    if !is_given && file.is_some() {
        let refusal = section.refusal("`password_file` is for a server, and there is none");
        section.note(refusal.allowed("write url = \"postgres://USER@HOST/DATABASE\", too"));
    }
    Some(ArchiveServer {
        url: url?,
        password_file: file,
    })
}

/// The policy is shown to whoever may ask for it, and so would be a password; so is what is wrong with it.
fn read_url(value: &Value) -> Result<String, Refusal> {
    let other = || {
        let refusal = value.refusal("not the URL of a PostgreSQL server");
        refusal.allowed("allowed: \"postgres://USER@HOST/DATABASE\"")
    };
    let url = value.text().map_err(|_| other())?;
    let schemes = ["postgres://", "postgresql://"];
    let rest = schemes.iter().find_map(|scheme| url.strip_prefix(scheme));
    if has_password(rest.ok_or_else(other)?) {
        let refusal = value.refusal("it has a password, which others may read here");
        return Err(refusal.allowed(
            "allowed: a file that has it, password_file = \"/etc/fatpath/archive.password\"",
        ));
    }
    Ok(url)
}

/// Or what a reader of URLs may take for one: a password may have any character, and the name of an option be escaped.
fn has_password(rest: &str) -> bool {
    let user = rest.split_once('@').map(|(user, _)| user);
    let options = rest.split(['?', '&']).skip(1);
    let mut names = options.map(|option| option.split_once('=').map_or(option, |(name, _)| name));
    user.is_some_and(|user| user.contains(':'))
        || names.any(|name| name.contains('%') || name.to_lowercase().contains("password"))
}
