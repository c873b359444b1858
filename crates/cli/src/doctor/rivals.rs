// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads who else tunes: processes, files, programs in the kernel.

use super::rights::{NOT_ROOT, is_root};
use fatpath_doctor::{ConfLine, Rivals, Seen, Sockops, sysctl_lines, tuned_includes, tuned_lines};
use fatpath_kernel::{Places, sockops_of_others};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn read(places: Option<&Places>) -> Rivals {
    let profile = process("tuned")
        .and_then(|_| std::fs::read_to_string("/etc/tuned/active_profile").ok())
        .map(|text| text.trim().to_owned());
    Rivals {
        bpftune_pid: process("bpftune"),
        tuned_lines: profile.as_deref().map(of_profiles).unwrap_or_default(),
        tuned_profile: profile,
        sysctl_lines: of_files(sysctl_files()),
        sockops: places.map(sockops),
    }
}

/// The first process of that name (`comm` of proc(5)).
fn process(name: &str) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid: &u32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    })
}

/// The directories of sysctl.d(5): a file in a later one replaces its namesake in an earlier one.
const SYSCTL_DIRS: [&str; 4] = [
    "/usr/lib/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/run/sysctl.d",
    "/etc/sysctl.d",
];

/// In the order in which they are applied: by name, and sysctl(8)'s own file last.
fn sysctl_files() -> Vec<PathBuf> {
    let mut by_name = BTreeMap::new();
    for directory in SYSCTL_DIRS {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let named = entries.map(|entry| (entry.file_name(), entry.path()));
        by_name.extend(named.filter(|(_, path)| path.extension().is_some_and(|it| it == "conf")));
    }
    by_name
        .into_values()
        .chain([PathBuf::from("/etc/sysctl.conf")])
        .collect()
}

fn of_files(files: Vec<PathBuf>) -> Vec<ConfLine> {
    let lines = files.iter().filter_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        Some(sysctl_lines(&file.display().to_string(), &text))
    });
    lines.flatten().collect()
}

/// Where tuned keeps profiles: of two of one name, the first counts (tuned-profiles(7)).
const TUNED_DIRS: [&str; 4] = [
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
];

/// The lines of the profiles, of which there may be several, behind those on which they build.
fn of_profiles(names: &str) -> Vec<ConfLine> {
    let mut lines = Vec::new();
    let mut seen = Vec::new();
    for name in names.split_whitespace() {
        add_profile(name, &mut seen, &mut lines);
    }
    lines
}

fn add_profile(name: &str, seen: &mut Vec<String>, lines: &mut Vec<ConfLine>) {
    if seen.iter().any(|it| it == name) {
        return;
    }
    seen.push(name.to_owned());
    let files = TUNED_DIRS.map(|directory| Path::new(directory).join(name).join("tuned.conf"));
    let mut readable = files
        .iter()
        .filter_map(|file| Some((file, std::fs::read_to_string(file).ok()?)));
    let Some((file, text)) = readable.next() else {
        return;
    };
    for base in tuned_includes(&text) {
        add_profile(&base, seen, lines);
    }
    lines.extend(tuned_lines(&file.display().to_string(), &text));
}

fn sockops(places: &Places) -> Seen<Vec<Sockops>> {
    if !is_root() {
        return Err(NOT_ROOT.to_owned());
    }
    let others = sockops_of_others(places).map_err(|error| error.to_string())?;
    let others = others.into_iter().map(|it| Sockops {
        id: it.id,
        name: it.name,
        is_exclusive: it.is_exclusive,
    });
    Ok(others.collect())
}
