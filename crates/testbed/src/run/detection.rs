// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the running kernel detects losses, where that is not what a scenario asks for.
//!
//! It changes nothing and refuses nothing. Start with [`note`].

use fatpath_scenario::{Case, Scenario};

/// The first release without the counting of RFC 6675: commit 1c120191dcec, "tcp: remove obsolete and unused
/// RFC3517/RFC6675 loss recovery code".
const WITHOUT_COUNTING: (u32, u32) = (6, 17);

/// What is to be known of this kernel before its runs are compared with those of another, or with the
/// simulator's.
pub(crate) fn note(scenario: &Scenario) -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    of_release(scenario, release.trim())
}

fn of_release(scenario: &Scenario, release: &str) -> Option<String> {
    let counts =
        scenario.cases.iter().any(asks_for_counting) && version(release)? >= WITHOUT_COUNTING;
    counts.then(|| {
        format!(
            "note: Linux {release} detects losses by RACK whatever net.ipv4.tcp_recovery says (since 6.17); \
             the simulator counts as RFC 6675 with 0"
        )
    })
}

fn asks_for_counting(case: &Case) -> bool {
    let sysctls = case.hosts.iter().flat_map(|host| &host.sysctls);
    let mut sysctls = sysctls.map(|(name, value)| (&name[..], value.trim()));
    sysctls.any(|sysctl| sysctl == ("net.ipv4.tcp_recovery", "0"))
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|letter: char| !letter.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_counting_is_told_and_only_where_there_is_none() {
        let of = |recovery: &str, release: &str| {
            let text = format!(
                "name = \"x\"\n[hosts.a]\nsysctl = {{ \"net.ipv4.tcp_recovery\" = \"{recovery}\" }}\n\
                 [hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n"
            );
            of_release(&Scenario::parse("x.toml", &text).unwrap(), release)
        };
        assert!(of("0", "6.18.4-1-generic").unwrap().contains("RACK"));
        assert!(of("0", "6.17").is_some() && of("0", "7.0-rc1").is_some());
        for (recovery, release) in [("1", "6.18"), ("0", "6.12.5"), ("0", "6.1"), ("0", "?")] {
            assert_eq!(of(recovery, release), None, "{release}");
        }
    }
}
