// SPDX-License-Identifier: MIT OR Apache-2.0
//! One case of a scenario as something that can be brought up: addresses given, names chosen.
//!
//! Pure; a plan is handed to the keeper process as JSON. It does not know how a host is made.
//! Start with [`Plan::of`].

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::scenario::{Direction, Link, PathCase, Scenario, Variant};

/// The default law of a mainline kernel. Where the machine's default is another, the machine must
/// first allow it to namespaces.
pub const MAINLINE_LAW: &str = "cubic";

/// The settings of a mainline kernel, of each host. Distributions, and machines such as the one
/// this was written on, change them; a comparison starts from the same ones everywhere.
/// Source: Documentation/networking/ip-sysctl.rst, with `tcp_rmem[2]` and `tcp_wmem[2]` as they
/// are with 4 GiB of memory and more. `tcp_no_metrics_save` is the exception: one run must not
/// teach the next.
pub const MAINLINE_OF_A_HOST: [(&str, &str); 7] = [
    ("net.ipv4.tcp_congestion_control", MAINLINE_LAW),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
];

/// The settings of a mainline kernel that are one for the whole machine, all namespaces. Put back
/// when the lab goes. Source: SK_RMEM_MAX of include/net/sock.h.
pub const MAINLINE_OF_THE_MACHINE: [(&str, &str); 2] = [
    ("net.core.rmem_max", "212992"),
    ("net.core.wmem_max", "212992"),
];

/// What is to be brought up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The lab's name.
    pub lab: String,
    /// Host names.
    pub hosts: Vec<String>,
    /// Links; the index gives the addresses.
    pub links: Vec<Link>,
    /// The daemon that tunes the lab's programs, if one is wanted.
    pub daemon: Option<DaemonPlan>,
}

/// A daemon to run beside the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DaemonPlan {
    /// Its policy file, absolute.
    pub policy: PathBuf,
    /// Where it writes a line for every flow, absolute.
    pub flow_log: PathBuf,
}

/// Which of a host's addresses is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// 32 bits.
    Ipv4,
    /// 128 bits.
    Ipv6,
}

impl Plan {
    /// The plan of one case. `flow_log` is where a daemon, if the variant has one, logs flows.
    pub fn of(scenario: &Scenario, path: &PathCase, variant: &Variant, flow_log: PathBuf) -> Plan {
        Plan {
            lab: scenario.name.clone(),
            hosts: scenario.hosts.clone(),
            links: path.links.clone(),
            daemon: variant
                .policy
                .clone()
                .map(|policy| DaemonPlan { policy, flow_log }),
        }
    }

    /// The network namespace of a host, as `ip netns` shows it.
    pub fn namespace(&self, host: &str) -> String {
        namespace(&self.lab, host)
    }

    /// The address under which `from` reaches `host`: the one on the link that they share, else
    /// the host's first. `None` for a host without a link.
    pub fn address(&self, host: &str, from: &str, family: Family) -> Option<String> {
        let ends = || {
            self.links
                .iter()
                .enumerate()
                .filter_map(|(i, link)| Some((i, link, end(link, host)?)))
        };
        let shared = ends().find(|(_, link, _)| host != from && end(link, from).is_some());
        let (index, _, end) = shared.or_else(|| ends().next())?;
        Some(match family {
            Family::Ipv4 => ipv4(index, end).addr().to_string(),
            Family::Ipv6 => ipv6(index, end).addr().to_string(),
        })
    }

    /// The rate of the bottleneck for data that `from` sends to `to`: that of the link they share,
    /// else the least of all links. `None`: unlimited.
    pub fn bottleneck_bps(&self, from: &str, to: &str) -> Option<u64> {
        let shared = self
            .links
            .iter()
            .find_map(|link| Some(direction(link, from, to)?.rate_bps));
        let all = || {
            self.links
                .iter()
                .flat_map(|link| link.directions)
                .filter_map(|one| one.rate_bps)
                .min()
        };
        shared.unwrap_or_else(all)
    }
}

/// The network namespace of a host of a lab.
pub fn namespace(lab: &str, host: &str) -> String {
    format!("fp-{lab}-{host}")
}

/// The IPv4 address of an end (0 or 1) of link `index`, with the link's prefix.
pub fn ipv4(index: usize, end: usize) -> Ipv4Net {
    let [high, low] = (index as u16).to_be_bytes();
    let address = Ipv4Addr::new(10, 77 + high, low, end as u8 + 1);
    Ipv4Net::new(address, 24).expect("24 is a prefix length of IPv4")
}

/// The IPv6 address of an end (0 or 1) of link `index`, with the link's prefix.
pub fn ipv6(index: usize, end: usize) -> Ipv6Net {
    let address = Ipv6Addr::new(0xfd77, 0, 0, index as u16, 0, 0, 0, end as u16 + 1);
    Ipv6Net::new(address, 64).expect("64 is a prefix length of IPv6")
}

fn end(link: &Link, host: &str) -> Option<usize> {
    link.between.iter().position(|name| name == host)
}

fn direction<'l>(link: &'l Link, from: &str, to: &str) -> Option<&'l Direction> {
    let sender = end(link, from)?;
    let receiver = end(link, to)?;
    (sender != receiver).then(|| &link.directions[sender])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASYMMETRIC: &str = r#"
        name = "x"
        [hosts.a]
        [hosts.b]
        [hosts.c]
        [links.one]
        between = ["a", "b"]
        rate = "1gbit"
        backward.rate = "10mbit"
        [links.two]
        between = ["b", "c"]
        rate = "5mbit"
    "#;

    fn plan() -> Plan {
        let scenario = Scenario::parse("x.toml", ASYMMETRIC).unwrap();
        Plan::of(
            &scenario,
            &scenario.paths[0],
            &scenario.variants[0],
            PathBuf::new(),
        )
    }

    #[test]
    fn the_address_is_the_one_on_the_shared_link() {
        let plan = plan();
        assert_eq!(plan.address("b", "a", Family::Ipv4).unwrap(), "10.77.0.2");
        assert_eq!(plan.address("b", "c", Family::Ipv4).unwrap(), "10.77.1.1");
        assert_eq!(
            plan.address("b", "c", Family::Ipv6).unwrap(),
            "fd77:0:0:1::1"
        );
        assert_eq!(plan.address("c", "a", Family::Ipv4).unwrap(), "10.77.1.2");
        assert_eq!(plan.address("a", "a", Family::Ipv4).unwrap(), "10.77.0.1");
    }

    #[test]
    fn the_bottleneck_has_a_direction() {
        let plan = plan();
        assert_eq!(plan.bottleneck_bps("a", "b"), Some(1_000_000_000));
        assert_eq!(plan.bottleneck_bps("b", "a"), Some(10_000_000));
        assert_eq!(plan.bottleneck_bps("a", "c"), Some(5_000_000));
    }
}
