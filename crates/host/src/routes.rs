// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route metrics: what sockets have no option for (`reordering`, `quickack`).
//!
//! A route within a wanted prefix gets the metrics where it stands. A wanted prefix with
//! no route of its own gets a copy of the route that leads there, with the metrics, and
//! with [`PROTOCOL`] so that `ip route show proto 250` names it.

use crate::journal::{Change, Journal};
use crate::netlink::{Netlink, from_hex, to_hex};
use crate::{HostError, PutBack};
use fatpath_policy::{Prefix, RouteMetrics};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteType,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Routes that fatpath adds carry this protocol number (free in rtnetlink.h and iproute2's rt_protos).
pub(crate) const PROTOCOL: u8 = 250;

/// A route could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("route {route}: {source}")]
pub struct RouteError {
    route: String,
    source: io::Error,
}

/// Puts back what is no longer wanted, then makes what is. Answers what there is to say.
pub(crate) fn set(
    journal: &mut Journal,
    wanted: &[RouteMetrics],
) -> Result<Vec<String>, HostError> {
    let made = changes_of_routes(journal);
    if made.is_empty() && wanted.is_empty() {
        return Ok(Vec::new());
    }
    let netlink = Netlink::open().map_err(failed("table"))?;
    for change in made {
        put_back(&change);
        journal.forget(&change)?;
    }
    let mut said = Vec::new();
    let routes = netlink.routes().map_err(failed("table"))?;
    for change in plan(&routes, wanted, &mut said) {
        journal.note(change.clone())?;
        make(&netlink, &change)?;
        said.push(describe(&change));
    }
    Ok(said)
}

pub(crate) fn put_back(change: &Change) -> PutBack {
    let (name, result) = match change {
        Change::RouteAdded { route, message } => (route, undo(message, None)),
        Change::RouteChanged {
            route,
            before,
            after,
        } => (route, undo(after, Some(before))),
        _ => return PutBack::Failed("not a route".into()),
    };
    match result {
        Ok(true) => PutBack::Restored(format!("route {name} put back")),
        Ok(false) => PutBack::LeftAlone(format!(
            "route {name} was changed by hand since: left alone"
        )),
        Err(error) => PutBack::Failed(format!("route {name}: {error}")),
    }
}

/// False when the route is no longer as fatpath made it.
fn undo(ours: &str, before: Option<&String>) -> io::Result<bool> {
    let netlink = Netlink::open()?;
    let unreadable = || io::Error::other("the journal's route cannot be read");
    let ours = from_hex(ours).ok_or_else(unreadable)?;
    if !netlink.routes()?.iter().any(|route| is_same(route, &ours)) {
        return Ok(false);
    }
    match before {
        Some(before) => netlink.put(from_hex(before).ok_or_else(unreadable)?)?,
        None => netlink.delete(ours)?,
    }
    Ok(true)
}

/// The changes that give every route the metrics of the narrowest wanted prefix around it.
fn plan(routes: &[RouteMessage], wanted: &[RouteMetrics], said: &mut Vec<String>) -> Vec<Change> {
    let mut changes = Vec::new();
    for route in routes
        .iter()
        .filter(|route| route.header.kind == RouteType::Unicast)
    {
        let prefix = prefix_of(route);
        let around = wanted.iter().filter(|w| w.prefix.covers(&prefix));
        if let Some(narrowest) = around.max_by_key(|w| w.prefix.key_bits()) {
            changes.extend(changed(route, narrowest));
        }
    }
    for metrics in wanted {
        if routes
            .iter()
            .any(|route| prefix_of(route) == metrics.prefix)
        {
            continue;
        }
        let leading = routes
            .iter()
            .filter(|route| prefix_of(route).covers(&metrics.prefix));
        match leading.max_by_key(|route| prefix_of(route).key_bits()) {
            Some(route) => changes.push(added(route, metrics)),
            None if metrics.rule.is_some() => {
                said.push(format!(
                    "no route leads to {}: it gets no metrics",
                    metrics.prefix
                ));
            }
            None => {}
        }
    }
    changes
}

fn changed(route: &RouteMessage, wanted: &RouteMetrics) -> Option<Change> {
    let mut after = route.clone();
    set_metrics(&mut after, wanted);
    (!is_same(&after, route)).then(|| Change::RouteChanged {
        route: prefix_of(route).to_string(),
        before: to_hex(route),
        after: to_hex(&after),
    })
}

fn added(route: &RouteMessage, wanted: &RouteMetrics) -> Change {
    let mut copy = route.clone();
    copy.attributes
        .retain(|a| !matches!(a, RouteAttribute::Destination(_)));
    let address = match wanted.prefix.address() {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    };
    copy.attributes
        .insert(0, RouteAttribute::Destination(address));
    copy.header.destination_prefix_length = wanted.prefix.length_bits();
    copy.header.protocol = RouteProtocol::from(PROTOCOL);
    set_metrics(&mut copy, wanted);
    Change::RouteAdded {
        route: wanted.prefix.to_string(),
        message: to_hex(&copy),
    }
}

/// Other metrics of the route stay.
fn set_metrics(route: &mut RouteMessage, wanted: &RouteMetrics) {
    let mut metrics = metrics_of(route);
    if let Some(reordering) = wanted.reordering_pkts {
        metrics.retain(|m| !matches!(m, RouteMetric::Reordering(_)));
        metrics.push(RouteMetric::Reordering(reordering));
    }
    if wanted.quickack {
        metrics.retain(|m| !matches!(m, RouteMetric::QuickAck(_)));
        metrics.push(RouteMetric::QuickAck(1));
    }
    route
        .attributes
        .retain(|a| !matches!(a, RouteAttribute::Metrics(_)));
    if !metrics.is_empty() {
        route.attributes.push(RouteAttribute::Metrics(metrics));
    }
}

fn metrics_of(route: &RouteMessage) -> Vec<RouteMetric> {
    let of = |a: &RouteAttribute| match a {
        RouteAttribute::Metrics(metrics) => Some(metrics.clone()),
        _ => None,
    };
    route.attributes.iter().find_map(of).unwrap_or_default()
}

/// Same destination, next hop and metrics. The order of attributes and what the kernel adds do not count.
fn is_same(one: &RouteMessage, other: &RouteMessage) -> bool {
    let hops = |route: &RouteMessage| -> Vec<String> {
        let counts = |a: &&RouteAttribute| {
            use RouteAttribute::{Gateway, MultiPath, Oif, PrefSource, Priority, Via};
            matches!(
                a,
                Gateway(_) | Oif(_) | PrefSource(_) | Priority(_) | Via(_) | MultiPath(_)
            )
        };
        let mut hops: Vec<_> = route
            .attributes
            .iter()
            .filter(counts)
            .map(|a| format!("{a:?}"))
            .collect();
        let mut metrics: Vec<_> = metrics_of(route).iter().map(|m| format!("{m:?}")).collect();
        hops.sort();
        metrics.sort();
        hops.extend(metrics);
        hops
    };
    prefix_of(one) == prefix_of(other)
        && one.header.protocol == other.header.protocol
        && hops(one) == hops(other)
}

fn prefix_of(route: &RouteMessage) -> Prefix {
    let destination = route.attributes.iter().find_map(|a| match a {
        RouteAttribute::Destination(RouteAddress::Inet(v4)) => Some(IpAddr::V4(*v4)),
        RouteAttribute::Destination(RouteAddress::Inet6(v6)) => Some(IpAddr::V6(*v6)),
        _ => None,
    });
    let any: IpAddr = match route.header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let length = route.header.destination_prefix_length;
    Prefix::holding(destination.unwrap_or(any), length).unwrap_or(Prefix::ANY_V6)
}

fn make(netlink: &Netlink, change: &Change) -> Result<(), RouteError> {
    let (name, message) = match change {
        Change::RouteAdded { route, message } => (route, message),
        Change::RouteChanged { route, after, .. } => (route, after),
        _ => return Ok(()),
    };
    let route = from_hex(message).expect("it was written by to_hex just now");
    netlink.put(route).map_err(failed(name))
}

fn describe(change: &Change) -> String {
    match change {
        Change::RouteAdded { route, .. } => format!("route {route} added with metrics"),
        Change::RouteChanged { route, .. } => format!("route {route} given metrics"),
        _ => String::new(),
    }
}

fn changes_of_routes(journal: &Journal) -> Vec<Change> {
    let is_route =
        |c: &&Change| matches!(c, Change::RouteAdded { .. } | Change::RouteChanged { .. });
    journal
        .changes()
        .iter()
        .filter(is_route)
        .rev()
        .cloned()
        .collect()
}

fn failed(route: &str) -> impl FnOnce(io::Error) -> RouteError {
    move |source| RouteError {
        route: route.to_owned(),
        source,
    }
}
