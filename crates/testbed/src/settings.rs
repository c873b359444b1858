// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a lab changes of the machine and sets on its hosts, for people.

use fatpath_scenario::plan::MAINLINE_OF_A_HOST;

use crate::supervisor::Setting;

/// Two lines: the mainline settings of the hosts, and what is set on the machine meanwhile.
pub fn settings_line(settings: &[Setting]) -> String {
    let hosts = MAINLINE_OF_A_HOST.map(|(name, value)| format!("{} {value}", short(name)));
    let machine: Vec<String> = settings
        .iter()
        .map(|one| format!("{} {} (was {})", one.name, one.ours, one.old))
        .collect();
    let machine = if machine.is_empty() {
        "nothing".to_owned()
    } else {
        machine.join(", ")
    };
    format!(
        "mainline settings on the hosts: {}\nset on this machine while the lab is up: {machine}",
        hosts.join(", ")
    )
}

fn short(sysctl: &str) -> &str {
    sysctl.strip_prefix("net.ipv4.").unwrap_or(sysctl)
}
