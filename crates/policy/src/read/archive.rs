// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[archive]` section of the policy file. Start at [`read`].

use super::values::{ARCHIVE_BYTES, ARCHIVE_DAYS, ARCHIVE_FLOW_BYTES, ONE_IN, SPOOL_BYTES};
use crate::Archive;
use fatpath_toml::Section;

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
    ] {
        let read = section.read(key, |value| measure.read(value));
        *number = read.map_or(*number, |chosen| chosen.value);
    }
    section.note_unknown();
    Some(archive)
}
