// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings that no socket option carries, as metrics of routes.
//!
//! The kernel's route look-up takes the longest prefix, a policy the first rule. This list is made so
//! that both say the same: it also names prefixes *without* metrics where a rule that sets none comes
//! first within a wider one that does. What a route cannot know is left out of account: an earlier rule
//! that also asks for ports, a source or a cgroup. Start at [`routes`].

use crate::classifier::{Classifier, RuleSet};
use crate::{Policy, Prefix, Rule, Setting, Way};
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
            .and_then(|all| all.number(Setting::Reordering))
            .and_then(|pkts| u32::try_from(pkts).ok()),
        quickack: settings.is_some_and(|all| all.is_on(Setting::Quickack)),
        rule: rule.map(|rule| rule.name.clone()),
    }
}

fn has_metrics(rule: &Rule) -> bool {
    Setting::of_way(Way::Route).any(|metric| rule.settings.gives(metric))
}

fn same_metrics(one: &RouteMetrics, other: &RouteMetrics) -> bool {
    (one.reordering_pkts, one.quickack) == (other.reordering_pkts, other.quickack)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
[[rule]]
name = "web"
destination = ["10.5.0.0/16"]
destination_ports = [443]
[[rule]]
name = "plain"
destination = ["10.5.1.0/24"]
[[rule]]
name = "wide"
destination = ["10.0.0.0/8", "10.5.1.9", "10.6.0.0/16"]
reordering = 19
"#;

    #[test]
    fn an_earlier_rule_without_metrics_keeps_its_prefix_free_of_them() {
        let policy = crate::parse(POLICY, None).unwrap();
        let routes = routes(&policy, &Classifier::build(&policy));
        let told: Vec<_> = routes
            .iter()
            .map(|route| (route.prefix.to_string(), route.reordering_pkts))
            .collect();
        assert_eq!(
            told,
            [
                ("10.0.0.0/8".to_owned(), Some(19)),
                ("10.5.1.0/24".to_owned(), None)
            ]
        );
    }

    #[test]
    fn the_flows_of_an_earlier_rule_with_ports_are_told_of_the_metrics() {
        let policy = crate::parse(POLICY, None).unwrap();
        let explanation = crate::explain(&policy, &crate::Flow::parse("10.5.2.1:443").unwrap());
        let note =
            "the route to 10.0.0.0/8 has reordering 19 from rule `wide`, which this flow uses too";
        assert_eq!(
            (
                explanation.rule.unwrap().name.as_str(),
                &explanation.notes[..]
            ),
            ("web", &[note.to_owned()][..])
        );
    }
}
