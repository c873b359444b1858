// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route metrics: what sockets have no option for (`reordering`, `quickack`).
//!
//! A route within a wanted prefix gets the metrics where it stands. A wanted prefix with
//! no route of its own gets a copy of the route that leads there, with the metrics, and
//! with [`PROTOCOL`] so that `ip route show proto 250` names it.

use crate::journal::Journal;
use crate::netlink::{self, Route};
use crate::{HostError, PutBack};
use fatpath_api::Change;
use fatpath_netlink::Netlink;
use fatpath_policy::{Prefix, RouteMetrics};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;

/// Routes that fatpath adds carry this protocol number (free in rtnetlink.h and iproute2's rt_protos).
pub(crate) const PROTOCOL: u8 = 250;

/// A route could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("route {route}: {source}")]
pub struct RouteError {
    route: String,
    source: io::Error,
}

/// What was changed, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) said: Vec<String>,
    pub(crate) failed: Vec<String>,
}

/// Makes what is wanted and not there, then undoes what is there and no longer wanted: a prefix is never without
/// its route meanwhile. What stands as it is wanted stays untouched; a route that fails keeps no other from its metrics.
pub(crate) fn set(journal: &mut Journal, wanted: &[RouteMetrics]) -> Result<Outcome, HostError> {
    let made = changes_of_routes(journal);
    let mut outcome = Outcome::default();
    if made.is_empty() && wanted.is_empty() {
        return Ok(outcome);
    }
    let netlink = Netlink::open().map_err(failed("table"))?;
    let routes = netlink::routes(&netlink).map_err(failed("table"))?;
    let (in_force, gone): (Vec<Change>, Vec<Change>) = made
        .into_iter()
        .partition(|change| ours(change).is_some_and(|ours| routes.contains(&ours)));
    for change in gone {
        journal.forget(&change)?;
    }
    let plan = plan(&without_ours(&routes, &in_force), wanted, &mut outcome.said);
    let mut replaced = HashSet::new();
    for change in plan.iter().filter(|change| !in_force.contains(change)) {
        journal.note(change.clone())?;
        match make(&netlink, change) {
            Ok(place) => {
                replaced.insert(place);
                outcome.said.push(describe(change));
            }
            Err(error) => {
                journal.forget(change)?;
                outcome.failed.push(error.to_string());
            }
        }
    }
    for change in in_force.iter().filter(|change| !plan.contains(change)) {
        let is_replaced = ours(change).is_some_and(|ours| replaced.contains(&ours.place()));
        match is_replaced {
            true => journal.forget(change)?,
            false => match put_back(change) {
                // It stays in the journal: the next unload tries it again.
                PutBack::Failed(what) => outcome.failed.push(what),
                _ => journal.forget(change)?,
            },
        }
    }
    Ok(outcome)
}

/// The route that a change made.
fn ours(change: &Change) -> Option<Route> {
    match change {
        Change::RouteAdded { message, .. } => Route::from_hex(message),
        Change::RouteChanged { after, .. } => Route::from_hex(after),
        _ => None,
    }
}

/// The routes as they would be had fatpath changed nothing.
fn without_ours(routes: &[Route], in_force: &[Change]) -> Vec<Route> {
    let own = |route: &Route| match in_force.iter().find(|c| ours(c).as_ref() == Some(route)) {
        Some(Change::RouteChanged { before, .. }) => Route::from_hex(before),
        Some(_) => None,
        None => Some(route.clone()),
    };
    routes.iter().filter_map(own).collect()
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
    let ours = Route::from_hex(ours).ok_or_else(unreadable)?;
    if !netlink::routes(&netlink)?.contains(&ours) {
        return Ok(false);
    }
    match before {
        Some(before) => {
            netlink::put(&netlink, &Route::from_hex(before).ok_or_else(unreadable)?)?;
        }
        None => netlink::delete(&netlink, &ours)?,
    }
    Ok(true)
}

/// The changes that give every route the metrics of the narrowest wanted prefix around it.
fn plan(routes: &[Route], wanted: &[RouteMetrics], said: &mut Vec<String>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut places: HashMap<_, u32> = HashMap::new();
    for route in routes {
        *places.entry(route.place()).or_default() += 1;
    }
    for route in routes.iter().filter(|route| route.is_unicast()) {
        let prefix = route.prefix();
        // The kernel replaces the first of several, whichever is meant.
        if places[&route.place()] > 1 {
            continue;
        }
        let around = wanted.iter().filter(|w| w.prefix.covers(&prefix));
        if let Some(narrowest) = around.max_by_key(|w| w.prefix.key_bits()) {
            changes.extend(changed(route, narrowest));
        }
    }
    for metrics in wanted {
        if routes.iter().any(|route| route.prefix() == metrics.prefix) {
            continue;
        }
        let leading = routes
            .iter()
            .filter(|route| route.prefix().covers(&metrics.prefix));
        match leading.max_by_key(|route| (route.prefix().key_bits(), Reverse(route.priority()))) {
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

fn changed(route: &Route, wanted: &RouteMetrics) -> Option<Change> {
    let after = route.with_metrics(wanted.reordering_pkts, wanted.quickack);
    (after != *route).then(|| Change::RouteChanged {
        route: route.prefix().to_string(),
        before: route.to_hex(),
        after: after.to_hex(),
    })
}

fn added(route: &Route, wanted: &RouteMetrics) -> Change {
    let copy = route
        .towards(&wanted.prefix, PROTOCOL)
        .with_metrics(wanted.reordering_pkts, wanted.quickack);
    Change::RouteAdded {
        route: wanted.prefix.to_string(),
        message: copy.to_hex(),
    }
}

/// Where the route is now.
fn make(netlink: &Netlink, change: &Change) -> Result<(Prefix, u8, u32), RouteError> {
    let route = ours(change).expect("it was written by to_hex just now");
    netlink::put(netlink, &route).map_err(failed(&route.prefix().to_string()))?;
    Ok(route.place())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// default via 10.0.0.`last` metric `priority`
    fn default_route(last: u8, priority: u32) -> Route {
        let priority = priority.to_ne_bytes().map(|b| format!("{b:02x}")).concat();
        let header = "02000000fe00000100000000";
        let hex = format!("{header}080005000a0000{last:02x}08000600{priority}");
        Route::from_hex(&hex).unwrap()
    }

    #[test]
    fn of_two_ways_the_copy_goes_the_one_that_the_kernel_takes() {
        let text = "[[rule]]\nname='p'\ndestination=['192.0.2.0/24']\nreordering=19\n";
        let policy = fatpath_policy::parse(text, None).unwrap();
        let classifier = fatpath_policy::Classifier::build(&policy);
        let mut wanted = fatpath_policy::routes(&policy, &classifier);
        wanted.retain(|w| w.prefix.to_string() == "192.0.2.0/24");
        let routes = [default_route(1, 100), default_route(2, 600)];
        let changes = plan(&routes, &wanted, &mut Vec::new());
        let [Change::RouteAdded { message, .. }] = &changes[..] else {
            panic!("{changes:?}")
        };
        let copy = Route::from_hex(message).unwrap();
        let taken = routes[0].towards(&wanted[0].prefix, PROTOCOL);
        assert_eq!(copy, taken.with_metrics(Some(19), false));
    }
}
