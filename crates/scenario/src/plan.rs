// SPDX-License-Identifier: MIT OR Apache-2.0
//! One case of a scenario as something that can be brought up: addresses given, names chosen.
//!
//! Pure; a plan is handed to the supervisor process as JSON. It does not know how a host is made.
//! Start with [`Plan::of`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::command::{self, CommandError};
use super::routes::{Hop, Map, Ways};
use super::seed::mixed;
use super::{Case, Host, Link, Program, Scenario, TimedChange};

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

/// A daemon to run next to the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DaemonPlan {
    /// Its policy file, absolute.
    pub policy: PathBuf,
    /// The file of its tests, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<PathBuf>,
    /// Where it writes a line for every flow, absolute.
    pub flow_log: PathBuf,
}

impl DaemonPlan {
    /// The folder of its archive, if its policy asks for one: beside the lines of flows.
    pub fn archive(&self) -> PathBuf {
        let name = self.flow_log.with_extension("");
        name.with_extension("archive")
    }
}

/// A way to a prefix through a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The prefix.
    pub to: IpNet,
    /// The neighbour.
    pub via: IpAddr,
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
            daemon: case.policy.clone().map(|policy| DaemonPlan {
                policy,
                measure: case.measure.clone(),
                flow_log,
            }),
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

    /// The same with other random numbers on the links than the scenario's.
    pub fn of_seed(mut self, seed: u64) -> Plan {
        let directions = self.links.iter_mut().flat_map(|link| &mut link.directions);
        directions.for_each(|direction| {
            direction.seed = mixed(direction.seed ^ mixed(seed)) >> 2;
        });
        self
    }

    /// Changes of the links with the random numbers of this plan's.
    pub fn changes(&self, changes: &[TimedChange]) -> Vec<TimedChange> {
        let mut changes = changes.to_vec();
        for change in &mut changes {
            let link = self.links.iter().find(|link| link.name == change.link);
            let of_link = link.iter().flat_map(|link| &link.directions);
            for (changed, of_link) in change.directions.iter_mut().zip(of_link) {
                changed.seed = of_link.seed;
            }
        }
        changes
    }

    /// The network namespace of a host, as `ip netns` shows it.
    pub fn namespace(&self, host: &str) -> String {
        namespace(&self.lab, host)
    }

    /// Names and values of the sysctls of a host, in the order in which they are to be set: those of
    /// a mainline kernel, then its own.
    pub fn sysctls(&self, host: &Host) -> Vec<(String, String)> {
        let mainline = MAINLINE_OF_A_HOST.map(owned);
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
            .chain(unfiltered)
            .chain(host.sysctls.iter().cloned())
            .collect()
    }

    /// The routes of a host in addition to those to its own links: to every prefix that it reaches through
    /// routers, or one default route a family where all of them begin with the same step. A router
    /// has no default route: two that point at one another would send a packet for nobody to and fro
    /// until its hop limit.
    pub fn routes(&self, host: &str) -> Vec<Route> {
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
            Some((_, first))
                if !map.is_router(from) && hops.iter().all(|(_, hop)| hop == first) =>
            {
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

    /// The host that has an address.
    pub fn host_of(&self, address: &str) -> Option<&String> {
        let address: IpAddr = address.parse().ok()?;
        let mut ends = (0..self.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        let (link, end) = ends.find(|(link, end)| match address {
            IpAddr::V4(address) => ipv4(*link, *end).addr() == address,
            IpAddr::V6(address) => ipv6(*link, *end).addr() == address,
        })?;
        Some(&self.links[link].between[end])
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

    /// The links on the way of data that `from` sends to `to`, each with the place of its direction;
    /// `None`: no way.
    pub fn way(&self, from: &str, to: &str) -> Option<Vec<(&Link, usize)>> {
        let map = self.map();
        let path = map.path(map.host(from)?, map.host(to)?)?.into_iter();
        Some(path.map(|(link, end)| (&self.links[link], end)).collect())
    }

    fn map(&self) -> Map {
        Map::of(&self.hosts, &self.links)
    }
}

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

fn default_routes(via: (usize, usize)) -> [Route; 2] {
    let everywhere = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    towards(everywhere, via)
}

fn routes_to(link: usize, via: (usize, usize)) -> [Route; 2] {
    let prefixes = [
        IpNet::V4(ipv4(link, 0).trunc()),
        IpNet::V6(ipv6(link, 0).trunc()),
    ];
    towards(prefixes, via)
}

fn towards([of_ipv4, of_ipv6]: [IpNet; 2], (link, end): (usize, usize)) -> [Route; 2] {
    let route = |to, via| Route { to, via };
    [
        route(of_ipv4, ipv4(link, end).addr().into()),
        route(of_ipv6, ipv6(link, end).addr().into()),
    ]
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
    use std::collections::BTreeSet;

    use fatpath_link::ChainSpec;
    use proptest::prelude::*;

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
        of_text(ASYMMETRIC)
    }

    fn of_text(text: &str) -> Plan {
        let scenario = Scenario::parse("x.toml", text).unwrap();
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
    fn the_way_has_a_direction_on_every_link() {
        let plan = plan();
        let way = |from, to| {
            let way = plan.way(from, to)?.into_iter();
            let told = way.map(|(link, direction)| format!("{} {direction}", link.name));
            Some(told.collect::<Vec<_>>().join(", "))
        };
        assert_eq!(way("a", "c").unwrap(), "one 0, two 0");
        assert_eq!(way("c", "a").unwrap(), "two 1, one 1");
        assert_eq!(way("a", "x"), None);
    }

    #[test]
    fn who_has_one_way_out_gets_default_routes_and_routers_what_they_need() {
        let text = r#"
            name = "x"
            [hosts]
            left.count = 2
            right.count = 2
            r1.router = true
            r2.router = true
            lonely = {}
            [links]
            near.between = ["left", "r1"]
            wan.between = ["r1", "r2"]
            far.between = ["r2", "right"]
        "#;
        let plan = of_text(text);
        let routes = |host: &str| {
            let routes = plan.routes(host).into_iter();
            let told = routes.map(|route| format!("{} via {}", route.to, route.via));
            told.collect::<Vec<_>>().join(", ")
        };
        let told = ["left-2", "r1", "right-1", "lonely"].map(routes).join("\n");
        insta::assert_snapshot!(told, @r"
        0.0.0.0/0 via 10.77.1.2, ::/0 via fd77:0:0:1::2
        10.77.3.0/24 via 10.77.2.2, fd77:0:0:3::/64 via fd77:0:0:2::2, 10.77.4.0/24 via 10.77.2.2, fd77:0:0:4::/64 via fd77:0:0:2::2
        0.0.0.0/0 via 10.77.3.1, ::/0 via fd77:0:0:3::1

        ");
    }

    #[test]
    fn a_router_in_the_middle_has_a_route_for_every_far_prefix() {
        let text = r#"
            name = "x"
            [hosts]
            a = {}
            b = {}
            r1.router = true
            r2.router = true
            r3.router = true
            [links]
            l1.between = ["a", "r1"]
            l2.between = ["r1", "r2"]
            l3.between = ["r2", "r3"]
            l4.between = ["r3", "b"]
        "#;
        let plan = of_text(text);
        let routes: Vec<String> = plan
            .routes("r2")
            .iter()
            .map(|route| format!("{} via {}", route.to, route.via))
            .collect();
        assert_eq!(
            routes,
            [
                "10.77.0.0/24 via 10.77.1.1",
                "fd77::/64 via fd77:0:0:1::1",
                "10.77.3.0/24 via 10.77.2.2",
                "fd77:0:0:3::/64 via fd77:0:0:2::2"
            ]
        );
    }

    #[test]
    fn many_links_have_addresses_of_their_own() {
        let prefixes: BTreeSet<Ipv4Net> = (0..4_000).map(|index| ipv4(index, 0).trunc()).collect();
        assert_eq!(prefixes.len(), 4_000);
        assert_eq!(ipv4(256, 1).to_string(), "10.78.0.2/24");
        assert_eq!(ipv6(256, 1).to_string(), "fd77:0:0:100::2/64");
    }

    #[test]
    fn a_repeat_has_random_numbers_of_its_own_and_the_first_those_of_the_file() {
        let seeds = |run| {
            let plan = plan().of_run(run);
            plan.links
                .iter()
                .flat_map(|link| link.directions.each_ref().map(|one| one.seed))
                .collect::<Vec<_>>()
        };
        assert_eq!(seeds(0), seeds(0));
        assert_eq!(
            seeds(0),
            plan()
                .links
                .iter()
                .flat_map(|link| link.directions.each_ref().map(|one| one.seed))
                .collect::<Vec<_>>()
        );
        let all: BTreeSet<u64> = (0..50).flat_map(seeds).collect();
        assert_eq!(all.len(), 50 * 4);
    }

    #[test]
    fn a_hosts_own_sysctls_come_last() {
        let text = ASYMMETRIC.replace(
            "router = true",
            "router = true\nsysctl = { \"net.ipv4.tcp_sack\" = 0 }",
        );
        let plan = of_text(&text);
        let sysctls = plan.sysctls(&plan.hosts[1]);
        assert_eq!(
            sysctls.last(),
            Some(&("net.ipv4.tcp_sack".into(), "0".into()))
        );
    }

    /// Hosts, some of them routers, and links between them as they come.
    fn networks() -> impl Strategy<Value = Plan> {
        let hosts = proptest::collection::vec(any::<bool>(), 2..10);
        let ends = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
        (hosts, proptest::collection::vec(ends, 1..16)).prop_map(|(routers, ends)| {
            let name = |index: usize| format!("h{index}");
            let hosts: Vec<Host> = routers
                .iter()
                .enumerate()
                .map(|(index, router)| Host {
                    name: name(index),
                    router: *router,
                    sysctls: vec![],
                })
                .collect();
            let pairs = ends
                .iter()
                .map(|(one, other)| (one.index(hosts.len()), other.index(hosts.len())));
            let links = pairs.filter(|(one, other)| one != other).enumerate().map(
                |(index, (one, other))| Link {
                    name: format!("l{index}"),
                    between: [name(one), name(other)],
                    mtu_bytes: 1500,
                    exact: false,
                    emulated: true,
                    directions: [ChainSpec::default(), ChainSpec::default()],
                },
            );
            Plan {
                lab: "x".to_owned(),
                links: links.collect(),
                hosts,
                daemon: None,
            }
        })
    }

    /// The links that a packet passes, as the hosts' own routing tables send it.
    fn forwarded(plan: &Plan, from: &str, to: &str, address: IpAddr) -> Option<Vec<usize>> {
        let mut at = from.to_owned();
        let mut links = vec![];
        while at != to {
            let is_router = plan.hosts.iter().any(|host| host.name == at && host.router);
            if at != from && !is_router || links.len() > plan.links.len() {
                return None;
            }
            let (link, next) = step(plan, &at, address)?;
            links.push(link);
            at = next;
        }
        Some(links)
    }

    fn step(plan: &Plan, at: &str, address: IpAddr) -> Option<(usize, String)> {
        let on_link = |address: IpAddr| {
            (0..plan.links.len()).find_map(|index| {
                let own = end(&plan.links[index], at)?;
                let near = IpNet::V4(ipv4(index, own)).contains(&address);
                let there = (0..2).find(|end| IpAddr::V4(ipv4(index, *end).addr()) == address);
                near.then(|| (index, plan.links[index].between[there.unwrap()].clone()))
            })
        };
        on_link(address).or_else(|| {
            let routes = plan.routes(at).into_iter();
            let best = routes
                .filter(|route| route.to.contains(&address))
                .max_by_key(|route| route.to.prefix_len());
            on_link(best?.via)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn packets_arrive_wherever_a_way_leads_and_take_the_one_that_is_foretold(plan in networks()) {
            let map = plan.map();
            for (from, to) in plan.hosts.iter().flat_map(|from| plan.hosts.iter().map(move |to| (from, to))) {
                let (start, goal) = (map.host(&from.name).unwrap(), map.host(&to.name).unwrap());
                if start == goal || !map.ways(start).reach(goal) {
                    continue;
                }
                let address = plan.address(&to.name, &from.name, Family::Ipv4).unwrap();
                let passed = forwarded(&plan, &from.name, &to.name, address.parse().unwrap());
                let foretold: Vec<usize> = map.path(start, goal).unwrap().into_iter().map(|(link, _)| link).collect();
                prop_assert_eq!(map.ways(start).distance(goal), Some(foretold.len() as u32));
                prop_assert_eq!(passed, Some(foretold), "from {} to {}", from.name, to.name);
            }
        }

        #[test]
        fn all_addresses_of_a_link_at_a_router_are_reached(plan in networks()) {
            let map = plan.map();
            for (from, (index, link)) in plan.hosts.iter().flat_map(|from| plan.links.iter().enumerate().map(move |link| (from, link))) {
                let ways = map.ways(map.host(&from.name).unwrap());
                let has_router = link.between.iter().any(|end| {
                    let host = map.host(end).unwrap();
                    ways.reach(host) && plan.hosts[host].router
                });
                for (end, to) in link.between.iter().enumerate().filter(|_| has_router) {
                    let address = IpAddr::V4(ipv4(index, end).addr());
                    // A host takes packets for its own address, whichever way they come.
                    let passed = *to == from.name || forwarded(&plan, &from.name, to, address).is_some();
                    prop_assert!(passed, "from {} to {}", from.name, address);
                }
            }
        }
    }
}
