// SPDX-License-Identifier: MIT OR Apache-2.0
//! Others that set what fatpath sets.

use crate::{Check, ConfLine, Facts, Rivals, Seen, Sockops};
use fatpath_policy::{Policy, SysctlName};
use std::collections::BTreeMap;

/// What a long path needs to be on; a file that switches one of them off is told of.
const SWITCHES: [&str; 3] = [
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
];

pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    let (rivals, policy) = (&facts.rivals, facts.policy.policy.as_ref().ok());
    let mut checks = vec![
        bpftune(rivals),
        tuned(rivals, policy),
        sysctl_files(rivals, policy),
    ];
    checks.extend(rivals.sockops.as_ref().map(sockops));
    checks
}

fn bpftune(rivals: &Rivals) -> Check {
    const NAME: &str = "bpftune";
    match rivals.bpftune_pid {
        None => Check::ok(NAME, "does not run"),
        Some(pid) => Check::warn(
            NAME,
            format!("runs (pid {pid}): it changes buffers and congestion control, too"),
            "systemctl disable --now bpftune",
        ),
    }
}

fn tuned(rivals: &Rivals, policy: Option<&Policy>) -> Check {
    const NAME: &str = "tuned";
    let Some(profile) = &rivals.tuned_profile else {
        return Check::ok(NAME, "does not run");
    };
    match in_the_way(&rivals.tuned_lines, policy).as_slice() {
        [] => Check::ok(NAME, format!("profile {profile}: sets nothing in the way")),
        [first, rest @ ..] => Check::warn(
            NAME,
            format!("profile {profile}: {first}{}", and_more(rest.len())),
            "Choose another profile (tuned-adm list), or take the lines out of a copy in /etc/tuned",
        ),
    }
}

fn sysctl_files(rivals: &Rivals, policy: Option<&Policy>) -> Check {
    const NAME: &str = "sysctl.d";
    match in_the_way(&rivals.sysctl_lines, policy).as_slice() {
        [] => Check::ok(NAME, "no file sets what is in the way"),
        [first, rest @ ..] => Check::warn(
            NAME,
            format!("{first}{}", and_more(rest.len())),
            "Take the line out, or raise its value; then sysctl --system",
        ),
    }
}

fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; and 1 more line".to_owned(),
        count => format!("; and {count} more lines"),
    }
}

/// A sentence for each sysctl whose last line keeps it below what is needed.
fn in_the_way(lines: &[ConfLine], policy: Option<&Policy>) -> Vec<String> {
    let last: BTreeMap<&str, &ConfLine> =
        lines.iter().map(|line| (line.key.as_str(), line)).collect();
    let told = last.values().filter_map(|line| {
        let (number, at) = (line.number()?, format!("{}:{}", line.file, line.line));
        if SWITCHES.contains(&line.key.as_str()) {
            return (number == 0).then(|| format!("{at} switches {} off", line.key));
        }
        let needed = u64::from(needed(policy?, &line.key)?);
        (number < needed).then(|| {
            format!(
                "{at} sets {} to {number}, below the {needed} that the policy needs: `sysctl --system` would undo \
                 what the daemon raised",
                line.key
            )
        })
    });
    told.collect()
}

fn needed(policy: &Policy, key: &str) -> Option<u32> {
    let mut names = SysctlName::ALL.into_iter();
    policy
        .host
        .at_least(names.find(|name| name.as_str() == key)?)
}

fn sockops(programs: &Seen<Vec<Sockops>>) -> Check {
    const NAME: &str = "sockops programs";
    let programs = match programs {
        Err(why) => return Check::unseen(NAME, why),
        Ok(programs) => programs,
    };
    if programs.is_empty() {
        return Check::ok(NAME, "no other program is on the root cgroup");
    }
    let names: Vec<String> = programs
        .iter()
        .map(|it| format!("{} (id {})", it.name, it.id))
        .collect();
    let names = names.join(", ");
    match programs.iter().any(|it| it.is_exclusive) {
        true => Check::bad(
            NAME,
            format!("{names} lets no other onto the root cgroup: new flows cannot be tuned"),
            "Stop what loaded it (bpftool cgroup show /sys/fs/cgroup), or have it use BPF_F_ALLOW_MULTI",
        ),
        false => Check::warn(
            NAME,
            format!(
                "{names} on the root cgroup, too: one that sets callback flags of its own costs records of flows' ends"
            ),
            "None needed where flows have their records; bpftool cgroup show /sys/fs/cgroup lists them",
        ),
    }
}
