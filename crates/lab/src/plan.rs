// SPDX-License-Identifier: MIT OR Apache-2.0
//! One case of a scenario as something that can be brought up: addresses given, names chosen.
//!
//! Pure; a plan is handed to the keeper process as JSON. It does not know how a host is made.
//! Start with [`Plan::of`].

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use fatpath_emulator::RouteSpec;
use fatpath_link::{CellSpec, ChainSpec};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::routes::{Hop, Map, Ways};
use crate::scenario::command::{self, CommandError};
use crate::scenario::{Case, Host, Link, Program, Scenario, mixed, nominal_rate_bps};

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
    /// Hosts, routers among them.
    pub hosts: Vec<Host>,
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
    /// The plan of one case. `flow_log` is where a daemon, if the case has one, logs flows.
    pub fn of(scenario: &Scenario, case: &Case, flow_log: PathBuf) -> Plan {
        Plan {
            lab: scenario.name.clone(),
            hosts: case.hosts.clone(),
            links: case.links.clone(),
            daemon: case
                .policy
                .clone()
                .map(|policy| DaemonPlan { policy, flow_log }),
        }
    }

    /// The same with other random numbers on the links, so that repeats of a run are independent
    /// of one another. Run 0 has those of the scenario.
    pub fn of_run(mut self, run: u32) -> Plan {
        let directions = self.links.iter_mut().flat_map(|link| &mut link.directions);
        directions.for_each(|direction| {
            direction.seed = seed_of_run(direction.seed, run);
        });
        self
    }

    /// The network namespace of a host, as `ip netns` shows it.
    pub fn namespace(&self, host: &str) -> String {
        namespace(&self.lab, host)
    }

    /// Names and values of the sysctls of a host, in the order in which they are to be set: those of
    /// a mainline kernel, those of a router, its own.
    pub fn sysctls(&self, host: &Host) -> Vec<(String, String)> {
        let mainline = MAINLINE_OF_A_HOST.map(owned);
        let router = if host.router { &FORWARDING[..] } else { &[] };
        // The way there and the way back may differ, which a strict filter takes for forgery.
        let unfiltered = self
            .links
            .iter()
            .filter(|link| end(link, &host.name).is_some());
        let unfiltered = std::iter::once("all").chain(unfiltered.map(|link| link.name.as_str()));
        let unfiltered =
            unfiltered.map(|device| (format!("net.ipv4.conf.{device}.rp_filter"), "0".to_owned()));
        mainline
            .into_iter()
            .chain(router.iter().copied().map(owned))
            .chain(unfiltered)
            .chain(host.sysctls.iter().cloned())
            .collect()
    }

    /// The routes of a host beside those to its own links: to every prefix that it reaches through
    /// routers, or one default route a family where all of them begin with the same step.
    pub fn routes(&self, host: &str) -> Vec<RouteSpec> {
        let map = self.map();
        let Some(from) = map.host(host) else {
            return vec![];
        };
        let ways = map.ways(from);
        let hops = (0..self.links.len())
            .filter_map(|link| Some((link, map.towards(&ways, link)?)))
            .collect::<Vec<_>>();
        let via = |hop: Hop| (hop.link, map.end(hop.link, hop.to).unwrap_or(0));
        match hops.first() {
            Some((_, first)) if hops.iter().all(|(_, hop)| hop == first) => {
                default_routes(via(*first)).to_vec()
            }
            _ => hops
                .into_iter()
                .flat_map(|(link, hop)| routes_to(link, via(hop)))
                .collect(),
        }
    }

    /// The address under which `from` reaches `host`: the one on the link over which its packets
    /// arrive, else the host's first. `None` for a host without a link.
    pub fn address(&self, host: &str, from: &str, family: Family) -> Option<String> {
        let map = self.map();
        let at = map.host(host)?;
        let ways = map.host(from).map(|from| map.ways(from));
        let link = ways
            .and_then(|ways: Ways| ways.last_link(at))
            .or_else(|| map.first_link(at))?;
        let end = map.end(link, at)?;
        Some(match family {
            Family::Ipv4 => ipv4(link, end).addr().to_string(),
            Family::Ipv6 => ipv6(link, end).addr().to_string(),
        })
    }

    /// The words of a program's command, with the addresses of hosts filled in.
    ///
    /// # Errors
    /// For a command that no scenario gave: those of a parsed one have been tried.
    pub fn words(&self, program: &Program) -> Result<Vec<String>, CommandError> {
        command::words(&program.run, |name| {
            let (host, family) = host_and_family(name);
            self.address(host, &program.host, family)
        })
    }

    /// The first host other than its own that a program's command names: with whom it speaks.
    pub fn peer(&self, program: &Program) -> Option<&Host> {
        let names = command::names(&program.run).ok()?;
        let others = names
            .into_iter()
            .map(|name| host_and_family(name).0)
            .filter(|name| *name != program.host);
        others
            .filter_map(|name| self.hosts.iter().find(|host| host.name == name))
            .next()
    }

    /// The rate of the bottleneck for data that `from` sends to `to`: the least of the links on its
    /// way. `None`: unlimited, or no way.
    pub fn bottleneck_bps(&self, from: &str, to: &str) -> Option<u64> {
        let map = self.map();
        let path = map.path(map.host(from)?, map.host(to)?)?;
        let rates = path
            .into_iter()
            .filter_map(|(link, end)| chain_rate_bps(&self.links[link].directions[end]));
        rates.min()
    }

    fn map(&self) -> Map {
        Map::of(&self.hosts, &self.links)
    }
}

/// What makes a host forward packets of others, both families.
const FORWARDING: [(&str, &str); 2] = [
    ("net.ipv4.ip_forward", "1"),
    ("net.ipv6.conf.all.forwarding", "1"),
];

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// `server` of `server`, `server.ipv4` and `server.ipv6`; IPv4 where nothing is said.
pub(crate) fn host_and_family(name: &str) -> (&str, Family) {
    match name.strip_suffix(".ipv6") {
        Some(host) => (host, Family::Ipv6),
        None => (name.strip_suffix(".ipv4").unwrap_or(name), Family::Ipv4),
    }
}

fn default_routes(via: (usize, usize)) -> [RouteSpec; 2] {
    let everywhere = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    towards(everywhere, via)
}

fn routes_to(link: usize, via: (usize, usize)) -> [RouteSpec; 2] {
    let prefixes = [
        IpNet::V4(ipv4(link, 0).trunc()),
        IpNet::V6(ipv6(link, 0).trunc()),
    ];
    towards(prefixes, via)
}

fn towards([of_ipv4, of_ipv6]: [IpNet; 2], (link, end): (usize, usize)) -> [RouteSpec; 2] {
    let route = |to, via| RouteSpec { to, via };
    [
        route(of_ipv4, ipv4(link, end).addr().into()),
        route(of_ipv6, ipv6(link, end).addr().into()),
    ]
}

/// The least rate that a chain's bottlenecks are known by; `None`: unlimited.
pub(crate) fn chain_rate_bps(chain: &ChainSpec) -> Option<u64> {
    let rates = chain.cells.iter().filter_map(|cell| match cell {
        CellSpec::Rate(rate) => nominal_rate_bps(&rate.service),
        _ => None,
    });
    rates.min()
}

/// Another seed of the same range for another run.
fn seed_of_run(seed: u64, run: u32) -> u64 {
    match run {
        0 => seed,
        run => mixed(seed ^ mixed(run.into())) >> 2,
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

#[cfg(test)]
mod tests {
    use super::*;

    const ASYMMETRIC: &str = r#"
        name = "x"
        [hosts.a]
        [hosts.b]
        router = true
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
        Plan::of(&scenario, &scenario.cases[0], PathBuf::new())
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
