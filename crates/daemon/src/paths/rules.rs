// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the policy for what was learned: one for each profile and address of this host.

use fatpath_path::{PathKey, Profile};
use fatpath_policy::{Policy, Problem, parse};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

/// What the buffers of the rules need of the host. The sizes to which the kernel grows buffers by itself stay: they
/// would change every flow.
const HOST: &str =
    "[host.sysctl]\n\"net.core.rmem_max\" = \"auto\"\n\"net.core.wmem_max\" = \"auto\"\n";

/// The rules, as a policy of their own.
///
/// # Errors
/// When the policy's reader refuses one, which is a defect.
pub(super) fn learned_policy(
    assigned: &BTreeMap<Profile, Vec<PathKey>>,
) -> Result<Policy, Vec<Problem>> {
    parse(&policy_text(assigned), None)
}

fn policy_text(assigned: &BTreeMap<Profile, Vec<PathKey>>) -> String {
    let mut text = HOST.to_owned();
    for (profile, keys) in assigned {
        for (local, prefixes) in by_local(keys) {
            let name = name(profile, local);
            text.push_str(&rule_text(&name, local, &prefixes, profile));
        }
    }
    text
}

fn by_local(keys: &[PathKey]) -> BTreeMap<IpAddr, Vec<String>> {
    let mut prefixes = BTreeMap::<_, Vec<_>>::new();
    for key in keys {
        let of_local = prefixes.entry(key.local).or_default();
        of_local.push(format!("\"{}\"", key.prefix));
    }
    prefixes
}

/// The lines of a rule.
fn rule_text(name: &str, local: IpAddr, prefixes: &[String], profile: &Profile) -> String {
    let prefixes = prefixes.join(", ");
    format!(
        "\n[[rule]]\nname = \"{name}\"\nsource = [\"{local}\"]\ndestination = [{prefixes}]\n{profile}"
    )
}

/// Says what the rule gives, and is the same whenever it gives the same: flows keep the rule's number.
fn name(profile: &Profile, local: IpAddr) -> String {
    let mut name = "auto".to_owned();
    let parts = [
        ("s", profile.send_buffer_bytes),
        ("r", profile.receive_buffer_bytes),
        ("t", profile.initial_ssthresh_pkts),
    ];
    if let Some(law) = profile.law {
        name.push('-');
        name.push_str(law.name());
    }
    for (part, value) in parts {
        if let Some(value) = value {
            // A String takes all that is written to it.
            let _ = write!(name, "-{part}{value:x}");
        }
    }
    let local = match local {
        IpAddr::V4(local) => local.to_bits(),
        IpAddr::V6(local) => (local.to_bits() ^ (local.to_bits() >> 64)) as u32,
    };
    let _ = write!(name, "-{local:x}");
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_path::Law;
    use fatpath_policy::{Setting, SysctlName};

    fn profile() -> Profile {
        Profile {
            send_buffer_bytes: Some((1 << 30) - 1),
            receive_buffer_bytes: Some((1 << 30) - 1),
            law: Some(Law::Cubic),
            initial_ssthresh_pkts: Some(1 << 20),
        }
    }

    fn key(local: &str, remote: &str) -> PathKey {
        PathKey::new(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn each_profile_and_address_is_a_rule() {
        let near = Profile {
            law: Some(Law::Bbr),
            initial_ssthresh_pkts: None,
            ..profile()
        };
        let keys = [
            key("192.0.2.1", "198.51.100.9"),
            key("192.0.2.1", "203.0.113.9"),
            key("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8:9::1"),
        ];
        let near_key = key("192.0.2.1", "198.18.0.1");
        let assigned = BTreeMap::from([(profile(), keys.to_vec()), (near, vec![near_key])]);
        let policy = learned_policy(&assigned).unwrap();
        assert_eq!(policy.rules.len(), 3);
        assert!(policy.rules.iter().all(|rule| rule.name.len() <= 63));
        let first = &policy
            .rules
            .iter()
            .find(|rule| rule.matches.destination.len() == 2)
            .unwrap();
        assert_eq!(
            first.settings.number(Setting::SendBuffer),
            Some((1 << 30) - 1)
        );
        assert_eq!(
            policy.host.at_least(SysctlName::CoreWmemMax),
            Some((1 << 30) - 1)
        );
        assert_eq!(policy.host.at_least(SysctlName::TcpWmem), None);
        assert!(policy.warnings.is_empty(), "{:?}", policy.warnings);
    }

    #[test]
    fn nothing_learned_is_no_rule() {
        let policy = learned_policy(&BTreeMap::new()).unwrap();
        assert!(policy.rules.is_empty() && policy.host.sysctls.is_empty());
    }
}
