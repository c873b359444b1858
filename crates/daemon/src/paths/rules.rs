// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for what was learned: one for each profile, which the kernel half gives the paths that have it.

use fatpath_kernel::PathAddresses;
use fatpath_path::{PathKey, Profile};
use fatpath_policy::{Policy, Prefix, Problem, parse};
use std::fmt::Write;

/// What the buffers of the rules need of the host. The sizes to which the kernel grows buffers by itself stay: they
/// would change every flow.
const HOST: &str =
    "[host.sysctl]\n\"net.core.rmem_max\" = \"auto\"\n\"net.core.wmem_max\" = \"auto\"\n";

/// The rules, as a policy of their own. Which flows get one is not the policy's affair.
///
/// # Errors
/// When the policy's reader refuses one, which is a defect.
pub(super) fn learned_policy<'a>(
    profiles: impl Iterator<Item = &'a Profile>,
) -> Result<Policy, Vec<Problem>> {
    let rules =
        profiles.map(|profile| format!("\n[[rule]]\nname = \"{}\"\n{profile}", name(profile)));
    parse(&(HOST.to_owned() + &rules.collect::<String>()), None)
}

/// A path as the kernel half knows it.
pub(super) fn addresses(key: PathKey) -> PathAddresses {
    let (address, bits) = (key.prefix.network(), key.prefix.prefix_len());
    PathAddresses {
        local: key.local,
        peers: Prefix::holding(address, bits)
            .expect("a prefix has no more bits than its addresses"),
    }
}

/// Says what the rule gives, and is the same whenever it gives the same: flows keep the rule's number.
pub(super) fn name(profile: &Profile) -> String {
    let mut name = "auto".to_owned();
    let parts = [
        ("s", profile.send_buffer_bytes),
        ("r", profile.receive_buffer_bytes),
        ("t", profile.initial_ssthresh_pkts),
        ("i", profile.initial_rate_bps),
        ("p", profile.pacing_rate_bps),
    ];
    if let Some(law) = profile.law {
        name.push('-');
        name.push_str(law.name().trim_start_matches("fp_"));
    }
    for (part, value) in parts {
        if let Some(value) = value {
            // A String takes all that is written to it.
            let _ = write!(name, "-{part}{value:x}");
        }
    }
    if profile.override_application {
        name.push_str("-o");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_path::Law;
    use fatpath_policy::{Setting, SysctlName};

    #[test]
    fn each_profile_is_a_rule() {
        let profile = Profile {
            send_buffer_bytes: Some((1 << 30) - 1),
            receive_buffer_bytes: Some((1 << 30) - 1),
            law: Some(Law::Cubic),
            initial_ssthresh_pkts: Some(1 << 20),
            initial_rate_bps: Some(1_000_000_000_000),
            pacing_rate_bps: Some(34_000_000_000),
            override_application: true,
        };
        let other = Profile {
            law: Some(Law::Bbr),
            initial_ssthresh_pkts: None,
            initial_rate_bps: None,
            ..profile.clone()
        };
        let keeping = Profile {
            override_application: false,
            ..profile.clone()
        };
        assert_ne!(name(&profile), name(&keeping));
        let policy = learned_policy([&profile, &other].into_iter()).unwrap();
        let names: Vec<&str> = policy.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, [name(&profile), name(&other)]);
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() <= 63));
        let buffer = policy.rules[0].settings.number(Setting::SendBuffer);
        assert_eq!(buffer, Some((1 << 30) - 1));
        let overrides =
            |rule: &fatpath_policy::Rule| rule.settings.is_on(Setting::OverrideApplication);
        assert!(policy.rules.iter().all(overrides));
        let of_host = |name| policy.host.at_least(name);
        assert_eq!(of_host(SysctlName::CoreWmemMax), Some((1 << 30) - 1));
        assert_eq!(of_host(SysctlName::TcpWmem), None);
    }

    #[test]
    fn nothing_learned_is_no_rule() {
        let policy = learned_policy(std::iter::empty()).unwrap();
        assert!(policy.rules.is_empty() && policy.host.sysctls.is_empty());
    }
}
