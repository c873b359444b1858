// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings that no socket option carries, as metrics of routes.
//!
//! The kernel's route look-up takes the longest prefix, a policy the first rule. This list is made so
//! that both say the same: it also names prefixes *without* metrics where a rule that sets none comes
//! first within a wider one that does. What a route cannot know is left out of account: an earlier rule
//! that also asks for ports, a source or a cgroup. Start at [`routes`].

use crate::classifier::{Classifier, RuleSet};
use crate::{Policy, Prefix, Rule};
use serde::Serialize;

/// The metrics that the route to a prefix must carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RouteMetrics {
    /// The destination.
    pub prefix: Prefix,
    /// `reordering` in segments, 3 to 300; `None` leaves the kernel's own.
    pub reordering_pkts: Option<u32>,
    /// `quickack 1`.
    pub quickack: bool,
    /// The rule that says so; `None` for a prefix that is kept free of a wider one's metrics, where no
    /// rule holds.
    pub rule: Option<String>,
}

/// The routes that a policy needs, sorted; a prefix follows those that cover it. `classifier` is the
/// policy's own.
pub fn routes(policy: &Policy, classifier: &Classifier) -> Vec<RouteMetrics> {
    if !policy.rules.iter().any(has_metrics) {
        return Vec::new();
    }
    let judged = RuleSet::of_rules(&policy.rules, |rule| rule.matches.by_destination_only());
    let mut routes = Vec::new();
    let mut above: Vec<RouteMetrics> = Vec::new();
    for (prefix, class) in &classifier.destination {
        while above
            .last()
            .is_some_and(|route| !route.prefix.covers(prefix))
        {
            above.pop();
        }
        let route = route_of(policy, *prefix, classifier.sets[*class as usize] & judged);
        let free = RouteMetrics {
            reordering_pkts: None,
            quickack: false,
            rule: None,
            prefix: *prefix,
        };
        if !same_metrics(&route, above.last().unwrap_or(&free)) {
            routes.push(route.clone());
            above.push(route);
        }
    }
    routes
}

fn route_of(policy: &Policy, prefix: Prefix, rules: RuleSet) -> RouteMetrics {
    let rule = rules.first().map(|index| &policy.rules[index]);
    let settings = rule.map(|rule| &rule.settings);
    RouteMetrics {
        prefix,
        reordering_pkts: settings
            .and_then(|all| all.reordering_pkts.as_ref())
            .map(|chosen| chosen.value),
        quickack: settings
            .and_then(|all| all.quickack.as_ref())
            .is_some_and(|chosen| chosen.value),
        rule: rule.map(|rule| rule.name.clone()),
    }
}

fn has_metrics(rule: &Rule) -> bool {
    rule.settings.reordering_pkts.is_some() || rule.settings.quickack.is_some()
}

fn same_metrics(one: &RouteMetrics, other: &RouteMetrics) -> bool {
    (one.reordering_pkts, one.quickack) == (other.reordering_pkts, other.quickack)
}
