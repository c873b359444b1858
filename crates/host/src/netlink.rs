// SPDX-License-Identifier: MIT OR Apache-2.0
//! A route of the main table as the kernel's own bytes: what fatpath does not know of it stays.

use fatpath_netlink::{
    NLM_F_CREATE, NLM_F_REPLACE, Netlink, Request, attributes, family, octets, push_attribute,
};
use fatpath_policy::Prefix;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

// linux/rtnetlink.h
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const RT_TABLE_MAIN: u8 = 254;
const RTN_UNICAST: u8 = 1;
const RTNH_F_ONLINK: u8 = 4;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_CACHEINFO: u16 = 12;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_EXPIRES: u16 = 23;
const RTA_NH_ID: u16 = 30;
/// What the kernel adds of a nexthop object for programs that do not know such objects, and refuses beside it.
const OF_NEXTHOP_OBJECT: [u16; 6] = [
    RTA_OIF,
    RTA_GATEWAY,
    RTA_MULTIPATH,
    RTA_VIA,
    RTA_ENCAP_TYPE,
    RTA_ENCAP,
];
const RTAX_REORDERING: u16 = 9;
const RTAX_QUICKACK: u16 = 15;
/// struct rtmsg: family, destination length, source length, TOS, table, protocol, scope, type, flags.
const HEADER_BYTES: usize = 12;

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    header: [u8; HEADER_BYTES],
    /// By kind; the kernel gives each kind once. Without what it gives and does not take back.
    attributes: BTreeMap<u16, Vec<u8>>,
}

impl Route {
    fn parse(body: &[u8]) -> Option<Route> {
        let mut header = *body.first_chunk::<HEADER_BYTES>()?;
        let all = attributes(&body[HEADER_BYTES..]);
        let kept = all.filter(|(kind, _)| ![RTA_CACHEINFO, RTA_EXPIRES].contains(kind));
        let mut attributes: BTreeMap<u16, Vec<u8>> =
            kept.map(|(kind, value)| (kind, value.to_vec())).collect();
        let flags = u32::from_ne_bytes(*header.last_chunk()?);
        let mut kept_flags = flags & u32::from(RTNH_F_ONLINK); // the others: the state of its device
        if attributes.contains_key(&RTA_NH_ID) {
            kept_flags = 0;
            attributes.retain(|kind, _| !OF_NEXTHOP_OBJECT.contains(kind));
        }
        header[8..].copy_from_slice(&kept_flags.to_ne_bytes());
        if let Some(nexthops) = attributes.get_mut(&RTA_MULTIPATH) {
            clear_states(nexthops);
        }
        Some(Route { header, attributes })
    }

    /// Among the main table's routes of a family a route is told from others by this; a new one takes the place
    /// of one with the same.
    pub(crate) fn place(&self) -> (Prefix, u8, u32) {
        (self.prefix(), self.header[3], self.priority())
    }

    fn request(&self, kind: u16, flags: u16) -> Request {
        let request = Request::new(kind, flags).bytes(&self.header);
        self.attributes
            .iter()
            .fold(request, |r, (kind, value)| r.attribute(*kind, value))
    }

    pub(crate) fn prefix(&self) -> Prefix {
        let bytes = self
            .attributes
            .get(&RTA_DST)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let address: IpAddr = match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
            (Ok(v4), _) => Ipv4Addr::from(v4).into(),
            (_, Ok(v6)) => Ipv6Addr::from(v6).into(),
            _ if self.header[0] == family(Ipv4Addr::UNSPECIFIED.into()) => {
                Ipv4Addr::UNSPECIFIED.into()
            }
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        Prefix::holding(address, self.header[1]).unwrap_or(Prefix::ANY_V6)
    }

    /// Of routes to one prefix the kernel takes the least.
    pub(crate) fn priority(&self) -> u32 {
        let bytes = self.attributes.get(&RTA_PRIORITY);
        let bytes = bytes.and_then(|value| value.as_slice().try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    pub(crate) fn is_unicast(&self) -> bool {
        self.header[7] == RTN_UNICAST
    }

    /// The same way to another destination.
    pub(crate) fn towards(&self, prefix: &Prefix, protocol: u8) -> Route {
        let mut copy = self.clone();
        copy.header[1] = prefix.length_bits();
        copy.header[5] = protocol;
        copy.attributes.insert(RTA_DST, octets(prefix.address()));
        copy
    }

    /// The same with other metrics; those that are not named stay.
    pub(crate) fn with_metrics(&self, reordering_pkts: Option<u32>, quickack: bool) -> Route {
        let nest = self
            .attributes
            .get(&RTA_METRICS)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut metrics: BTreeMap<u16, Vec<u8>> = attributes(nest)
            .map(|(kind, value)| (kind, value.to_vec()))
            .collect();
        if let Some(reordering) = reordering_pkts {
            metrics.insert(RTAX_REORDERING, reordering.to_ne_bytes().to_vec());
        }
        if quickack {
            metrics.insert(RTAX_QUICKACK, 1u32.to_ne_bytes().to_vec());
        }
        let mut nest = Vec::new();
        metrics
            .iter()
            .for_each(|(kind, value)| push_attribute(&mut nest, *kind, value));
        let mut route = self.clone();
        if !nest.is_empty() {
            route.attributes.insert(RTA_METRICS, nest);
        }
        route
    }

    pub(crate) fn to_hex(&self) -> String {
        let mut bytes = self.header.to_vec();
        self.attributes
            .iter()
            .for_each(|(kind, value)| push_attribute(&mut bytes, *kind, value));
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn from_hex(hex: &str) -> Option<Route> {
        let digits: Option<Vec<u8>> = hex
            .chars()
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect();
        let bytes: Vec<u8> = digits?
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        Route::parse(&bytes)
    }
}

/// Of struct rtnexthop (length of 2 bytes, flags, hops, interface) the flags that say how its device is.
fn clear_states(mut nexthops: &mut [u8]) {
    while let [low, high, flags, ..] = nexthops {
        *flags &= RTNH_F_ONLINK;
        let length = usize::from(u16::from_ne_bytes([*low, *high])).next_multiple_of(4);
        nexthops = match length {
            1.. => nexthops.get_mut(length..).unwrap_or_default(),
            0 => return,
        };
    }
}

/// Whether a notification may be of a route to one of the prefixes, or of one that leads there: routes of other
/// tables and to elsewhere are not. Of interfaces, addresses and nexthop objects all are.
pub(crate) fn concerns(kind: u16, body: &[u8], prefixes: &[Prefix]) -> bool {
    if ![RTM_NEWROUTE, RTM_DELROUTE].contains(&kind) {
        return true;
    }
    Route::parse(body).is_some_and(|route| {
        let prefix = route.prefix();
        let overlaps = |other: &Prefix| other.covers(&prefix) || prefix.covers(other);
        route.header[4] == RT_TABLE_MAIN && prefixes.iter().any(overlaps)
    })
}

/// The routes of the main table, both families.
pub(crate) fn routes(netlink: &Netlink) -> io::Result<Vec<Route>> {
    let mut routes = Vec::new();
    for any in [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ] {
        let mut header = [0; HEADER_BYTES];
        header[0] = family(any);
        let bodies = netlink.dump(Request::new(RTM_GETROUTE, 0).bytes(&header))?;
        routes.extend(bodies.iter().filter_map(|body| Route::parse(body)));
    }
    routes.retain(|route| route.header[4] == RT_TABLE_MAIN);
    Ok(routes)
}

/// Adds the route, or puts it in the place of the one with the same destination and priority.
pub(crate) fn put(netlink: &Netlink, route: &Route) -> io::Result<()> {
    let mut request = route.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
    // Without the attribute the kernel takes another route of the same nexthop object, with its metrics.
    if route.attributes.contains_key(&RTA_NH_ID) && !route.attributes.contains_key(&RTA_METRICS) {
        request = request.attribute(RTA_METRICS, &[]);
    }
    netlink.request(request)
}

pub(crate) fn delete(netlink: &Netlink, route: &Route) -> io::Result<()> {
    netlink.request(route.request(RTM_DELROUTE, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_route() -> Route {
        let mut body = [0u8; HEADER_BYTES].to_vec();
        (body[0], body[4], body[7]) = (2, RT_TABLE_MAIN, RTN_UNICAST);
        push_attribute(&mut body, 5, &[10, 0, 0, 1]); // RTA_GATEWAY
        let mut nest = Vec::new();
        push_attribute(&mut nest, 2, &1400u32.to_ne_bytes()); // RTAX_MTU
        push_attribute(&mut body, RTA_METRICS, &nest);
        push_attribute(&mut body, RTA_CACHEINFO, &[9; 8]);
        Route::parse(&body).unwrap()
    }

    #[test]
    fn a_route_survives_the_journal() {
        let route = default_route();
        assert_eq!(Route::from_hex(&route.to_hex()), Some(route.clone()));
        assert_eq!(route.prefix(), Prefix::ANY_V4);
        assert_eq!(Route::from_hex("0g"), None);
        assert_eq!(Route::from_hex("00"), None);
    }

    #[test]
    fn metrics_join_those_that_are_there() {
        let route = default_route().with_metrics(Some(19), true);
        let kinds: Vec<_> = attributes(&route.attributes[&RTA_METRICS])
            .map(|(k, _)| k)
            .collect();
        assert_eq!(kinds, [2, RTAX_REORDERING, RTAX_QUICKACK]);
        assert_eq!(default_route().with_metrics(None, false), default_route());
    }

    #[test]
    fn a_copy_goes_to_its_own_prefix_by_the_same_way() {
        let prefix = Prefix::holding("192.0.2.0".parse().unwrap(), 24).unwrap();
        let copy = default_route().towards(&prefix, 250);
        assert_eq!(copy.prefix(), prefix);
        assert_eq!(copy.attributes[&5], [10, 0, 0, 1]);
    }
}
