// SPDX-License-Identifier: MIT OR Apache-2.0
//! The input: which hosts there are, which links join them, and what each link does to packets.
//! A plain value; nothing here touches the system.

use std::collections::HashSet;
use std::net::IpAddr;

use fatpath_link::{ChainSpec, SpecError};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A network to bring up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The hosts, routers among them.
    pub hosts: Vec<HostSpec>,
    /// The links; any number, also several between two hosts.
    pub links: Vec<LinkSpec>,
    /// Links that the kernel carries.
    pub wires: Vec<WireSpec>,
}

/// A host: a network namespace with its routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSpec {
    /// What the links call it.
    pub name: String,
    /// Name of the namespace that is made for it, as `ip netns` shows it.
    pub netns: String,
    /// Routes in addition to those to the prefixes of its own links.
    pub routes: Vec<RouteSpec>,
    /// Whether it forwards packets of others, of both families: a router.
    pub forwarding: bool,
}

/// A route of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouteSpec {
    /// Where it leads; `0.0.0.0/0` or `::/0` is the default route.
    pub to: IpNet,
    /// The neighbour that forwards, of the same family.
    pub via: IpAddr,
}

/// A link between two hosts: a TUN device in each, named like the link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Name of the link and of its device in both hosts; at most 15 bytes.
    pub name: String,
    /// The two ends.
    pub ends: [End; 2],
    /// IP bytes of the largest packet, 68 to 65535, and 1280 at least with IPv6; usually 1500.
    pub mtu: u32,
    /// Whether super-packets are split into single segments as they come, each with moments of its
    /// own. It costs most of the speed.
    pub exact: bool,
    /// What happens to packets from `ends[0]` to `ends[1]`, and back.
    pub directions: [ChainSpec; 2],
}

/// A link that the kernel carries at once, without the forwarder: a veth pair, each end named like the link. It has no
/// effects, and its packets are not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct WireSpec {
    /// As of [`LinkSpec`].
    pub name: String,
    /// The two ends.
    pub ends: [End; 2],
    /// As of [`LinkSpec`].
    pub mtu: u32,
}

/// One end of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// The host, by its name in the topology.
    pub host: String,
    /// Its IPv4 address here, with the prefix that the link reaches.
    pub ipv4: Option<Ipv4Net>,
    /// Its IPv6 address here, with the prefix that the link reaches.
    pub ipv6: Option<Ipv6Net>,
}

/// Why a [`Topology`] makes no sense.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// Two hosts, namespaces or links have one name.
    #[error("two {kind}s are named `{name}`: give each its own name")]
    NameTwice {
        /// `host`, `namespace` or `link`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A link ends at a host that is not there.
    #[error("link `{link}` ends at `{host}`, which is not a host of the scenario")]
    UnknownHost {
        /// The link.
        link: String,
        /// The host it names.
        host: String,
    },
    /// A link joins a host to itself.
    #[error("link `{0}` joins a host to itself: name two hosts")]
    Loop(String),
    /// The kernel takes no such device name.
    #[error("link `{0}`: the name must be 1 to 15 letters, digits, `-` or `_`")]
    DeviceName(String),
    /// The kernel takes no such MTU.
    #[error("link `{link}`: MTU {mtu}: give {least} to 65535 bytes")]
    Mtu {
        /// The link.
        link: String,
        /// The MTU asked for.
        mtu: u32,
        /// The least MTU, 1280 where the link has IPv6 addresses.
        least: u32,
    },
    /// A direction of a link is out of range.
    #[error("link `{link}`: {error}")]
    Direction {
        /// The link.
        link: String,
        /// What is out of range.
        error: SpecError,
    },
}

impl Topology {
    /// Says the first thing that makes no sense.
    pub fn check(&self) -> Result<(), TopologyError> {
        unique("host", self.hosts.iter().map(|host| &host.name))?;
        unique("namespace", self.hosts.iter().map(|host| &host.netns))?;
        let pairs = || {
            let links = self.links.iter().map(Pair::of_link);
            links.chain(self.wires.iter().map(Pair::of_wire))
        };
        unique("link", pairs().map(|pair| pair.name))?;
        pairs().try_for_each(|pair| self.check_pair(pair))?;
        self.links.iter().try_for_each(LinkSpec::check)
    }

    fn check_pair(&self, pair: Pair) -> Result<(), TopologyError> {
        for end in pair.ends {
            if !self.hosts.iter().any(|host| host.name == end.host) {
                let (link, host) = (pair.name.clone(), end.host.clone());
                return Err(TopologyError::UnknownHost { link, host });
            }
        }
        pair.check()
    }
}

/// Two devices that are one link, whoever carries it.
#[derive(Clone, Copy)]
struct Pair<'t> {
    name: &'t String,
    ends: &'t [End; 2],
    mtu: u32,
}

impl<'t> Pair<'t> {
    fn of_link(link: &'t LinkSpec) -> Pair<'t> {
        Pair {
            name: &link.name,
            ends: &link.ends,
            mtu: link.mtu,
        }
    }

    fn of_wire(wire: &'t WireSpec) -> Pair<'t> {
        Pair {
            name: &wire.name,
            ends: &wire.ends,
            mtu: wire.mtu,
        }
    }

    fn check(self) -> Result<(), TopologyError> {
        let link = || self.name.clone();
        if self.ends[0].host == self.ends[1].host {
            return Err(TopologyError::Loop(link()));
        }
        if !is_device_name(self.name) {
            return Err(TopologyError::DeviceName(link()));
        }
        let least = if self.ends.iter().any(|end| end.ipv6.is_some()) {
            1280
        } else {
            68
        };
        if !(least..=65_535).contains(&self.mtu) {
            return Err(TopologyError::Mtu {
                link: link(),
                mtu: self.mtu,
                least,
            });
        }
        Ok(())
    }
}

impl LinkSpec {
    fn check(&self) -> Result<(), TopologyError> {
        let direction = |error| TopologyError::Direction {
            link: self.name.clone(),
            error,
        };
        self.directions
            .iter()
            .try_for_each(|spec| spec.check().map_err(direction))
    }
}

impl End {
    /// The addresses of this end, of both families.
    pub fn addresses(&self) -> impl Iterator<Item = IpNet> + use<> {
        let ipv4 = self.ipv4.map(IpNet::V4);
        ipv4.into_iter().chain(self.ipv6.map(IpNet::V6))
    }
}

fn unique<'a>(
    kind: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), TopologyError> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(TopologyError::NameTwice {
                kind,
                name: name.clone(),
            });
        }
    }
    Ok(())
}

fn is_device_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=15).contains(&name.len()) && name.bytes().all(fits) && name != "lo"
}

#[cfg(test)]
mod tests {
    use fatpath_link::CellSpec;

    use super::*;
    use crate::unshaped::two_hosts;

    /// What `check` says of a network of two hosts after `change`.
    fn refusal(change: impl FnOnce(&mut Topology)) -> Option<TopologyError> {
        let mut topology = two_hosts("t", &ChainSpec::default());
        change(&mut topology);
        topology.check().err()
    }

    #[test]
    fn what_makes_sense_passes() {
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|topology| topology.links.clear()), None);
    }

    #[test]
    fn names_must_be_unique() {
        let twice = |kind, name: &str| {
            Some(TopologyError::NameTwice {
                kind,
                name: name.into(),
            })
        };
        let same_host = |topology: &mut Topology| topology.hosts[1].name = "client".into();
        let same_netns = |topology: &mut Topology| topology.hosts[1].netns = "t-client".into();
        let same_link = |topology: &mut Topology| topology.links.push(topology.links[0].clone());
        assert_eq!(refusal(same_host), twice("host", "client"));
        assert_eq!(refusal(same_netns), twice("namespace", "t-client"));
        assert_eq!(refusal(same_link), twice("link", "wan"));
    }

    #[test]
    fn a_link_needs_a_name_that_the_kernel_takes() {
        for name in ["", "lo", "a/b", "a b", "sixteen-letters-", "ä"] {
            let rename = |topology: &mut Topology| topology.links[0].name = name.into();
            assert_eq!(
                refusal(rename),
                Some(TopologyError::DeviceName(name.into()))
            );
        }
    }

    #[test]
    fn a_link_needs_two_hosts_a_fitting_mtu_and_directions_in_range() {
        let looped = |topology: &mut Topology| topology.links[0].ends[1].host = "client".into();
        assert_eq!(refusal(looped), Some(TopologyError::Loop("wan".into())));
        for mtu in [0, 1279, 65_536] {
            let set = |topology: &mut Topology| topology.links[0].mtu = mtu;
            let refused = TopologyError::Mtu {
                link: "wan".into(),
                mtu,
                least: 1280,
            };
            assert_eq!(refusal(set), Some(refused));
        }
        let too_much = |topology: &mut Topology| {
            topology.links[0].directions[1].cells = vec![CellSpec::loss(1.5)];
        };
        let error = SpecError::Probability {
            what: "loss",
            value: 1.5,
        };
        assert_eq!(
            refusal(too_much),
            Some(TopologyError::Direction {
                link: "wan".into(),
                error
            })
        );
    }
}
