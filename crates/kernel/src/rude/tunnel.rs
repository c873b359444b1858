// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interfaces put packets into other packets: a router on the way sees no mark in these.

use fatpath_netlink::{EMULATED_LINK, Interface};
use std::collections::HashSet;

/// Kinds of software interfaces (IFLA_INFO_KIND) that send a packet as it is, or with a VLAN tag. Any other
/// kind counts as a tunnel, so one that is newer than this list does too. A physical interface has no kind.
const PLAIN_KINDS: [&str; 16] = [
    "bond",
    "bridge",
    "dsa",
    "dummy",
    "ifb",
    "ipvlan",
    "ipvtap",
    "macvlan",
    "macvtap",
    "netdevsim",
    "netkit",
    "rmnet",
    "team",
    "veth",
    "vlan",
    "wwan",
];
/// Kinds whose IFLA_LINK names the other end, not a lower interface.
const PAIRS: [&str; 2] = ["netkit", "veth"];

/// The numbers of the interfaces that encapsulate, themselves or by one that they send through: a VLAN's lower
/// interface, a bridge's port.
pub(crate) fn encapsulating(interfaces: &[Interface]) -> HashSet<u32> {
    let tunnels = interfaces.iter().filter(|i| is_tunnel(i));
    let mut found: HashSet<u32> = tunnels.map(|i| i.index).collect();
    loop {
        let before = found.len();
        for interface in interfaces {
            if lower(interface).is_some_and(|lower| found.contains(&lower)) {
                found.insert(interface.index);
            }
            if found.contains(&interface.index) {
                found.extend(interface.master);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn is_tunnel(interface: &Interface) -> bool {
    let kind = interface.kind.as_deref();
    let is_emulated = interface.alias.as_deref() == Some(EMULATED_LINK);
    kind.is_some_and(|kind| !PLAIN_KINDS.contains(&kind)) && !(kind == Some("tun") && is_emulated)
}

fn lower(interface: &Interface) -> Option<u32> {
    let is_pair = (interface.kind.as_deref()).is_some_and(|kind| PAIRS.contains(&kind));
    interface.lower.filter(|_| !is_pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(index: u32, kind: &str) -> Interface {
        Interface {
            index,
            kind: (!kind.is_empty()).then(|| kind.to_owned()),
            ..Interface::default()
        }
    }

    fn found(interfaces: &[Interface]) -> Vec<u32> {
        let mut found: Vec<u32> = encapsulating(interfaces).into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn tunnels_and_unknown_kinds_encapsulate() {
        let tunnels = [
            "tun",
            "wireguard",
            "ipip",
            "sit",
            "gre",
            "gretap",
            "ip6gre",
            "ip6tnl",
            "vti",
            "xfrm",
            "vxlan",
            "geneve",
            "macsec",
            "ppp",
            "ovpn",
            "newest",
        ];
        for kind in tunnels {
            assert_eq!(found(&[interface(7, kind)]), [7], "{kind}");
        }
        for kind in PLAIN_KINDS.into_iter().chain([""]) {
            assert_eq!(found(&[interface(7, kind)]), [0; 0], "{kind}");
        }
    }

    #[test]
    fn what_sends_through_a_tunnel_encapsulates() {
        let port = Interface {
            master: Some(3),
            ..interface(9, "vxlan")
        };
        let vlan = |index, lower| Interface {
            lower: Some(lower),
            ..interface(index, "vlan")
        };
        let veth = Interface {
            lower: Some(9),
            ..interface(5, "veth")
        };
        let all = [
            vlan(2, 3),
            interface(3, "bridge"),
            interface(4, ""),
            veth,
            vlan(6, 4),
            port,
        ];
        assert_eq!(found(&all), [2, 3, 9]);
    }

    #[test]
    fn the_emulators_devices_are_wires() {
        let emulated = |kind| Interface {
            alias: Some(EMULATED_LINK.to_owned()),
            ..interface(7, kind)
        };
        assert_eq!(found(&[emulated("tun")]), [0; 0]);
        assert_eq!(found(&[emulated("wireguard")]), [7]);
    }
}
