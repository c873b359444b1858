// SPDX-License-Identifier: MIT OR Apache-2.0
//! What single live flows are given by hand (`fatpath tune`): a rule for each, before those of the policy file, until its
//! time is over, the flow ends, or somebody takes it back. The daemon's end ends all.

use anyhow::{Context, Result, bail, ensure};
use fatpath_policy::{Policy, Rule, Setting, Way, parse};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

/// Flows at once: each is a rule that every new flow may be compared with.
const MOST_FLOWS: usize = 64;

/// Local and remote end of a flow.
pub(crate) type Ends = [SocketAddr; 2];

/// The flows, and what they are given.
#[derive(Clone, Default)]
pub(crate) struct ByHand {
    flows: BTreeMap<Ends, Given>,
    /// Rules so far, which names them.
    given: u64,
}

#[derive(Clone)]
struct Given {
    rule: Rule,
    until: Option<Instant>,
}

impl ByHand {
    /// A flow is given the settings that `keys` has, as lines of a policy's rule, with those of the rule that it had for
    /// the rest.
    ///
    /// # Errors
    /// What is wrong with the settings, or that there are too many flows.
    pub(crate) fn give(
        &mut self,
        ends: Ends,
        keys: &str,
        base: Option<&Rule>,
        until: Option<Instant>,
    ) -> Result<()> {
        ensure!(
            self.flows.contains_key(&ends) || self.flows.len() < MOST_FLOWS,
            "{MOST_FLOWS} flows are tuned by hand already: take one back (fatpath tune FLOW --undo)"
        );
        let mut rule = rule(&format!("by-hand-{}", self.given + 1), ends, keys)?;
        if let Some(base) = base {
            rule.settings = rule.settings.over(&base.settings);
            rule.path = base.path.clone();
            rule.collective = base.collective.clone();
        }
        self.given += 1;
        self.flows.insert(ends, Given { rule, until });
        Ok(())
    }

    /// Answers whether the flow had anything.
    pub(crate) fn take_back(&mut self, ends: Ends) -> bool {
        self.flows.remove(&ends).is_some()
    }

    /// Forgets flows whose time is over and those that are not among the live ones. Answers whether there were any.
    pub(crate) fn end(&mut self, now: Instant, is_live: impl Fn(&Ends) -> bool) -> bool {
        let before = self.flows.len();
        let is_due = |given: &Given| given.until.is_some_and(|until| until <= now);
        self.flows
            .retain(|ends, given| !is_due(given) && is_live(ends));
        self.flows.len() < before
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The rule of that name.
    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        let mut rules = self.flows.values().map(|given| &given.rule);
        rules.find(|rule| rule.name == name)
    }

    /// The policy with the rules of these flows before its own.
    ///
    /// # Errors
    /// When they do not all fit.
    pub(crate) fn before(&self, policy: &Policy) -> Result<Policy> {
        let rules = self.flows.values().map(|given| given.rule.clone());
        let all = policy.clone().led_by(rules);
        all.context("the policy has no place for rules of flows that are tuned by hand")
    }
}

/// A rule for one flow.
fn rule(name: &str, [local, remote]: Ends, keys: &str) -> Result<Rule> {
    let side = |side: &str, end: SocketAddr| {
        let (address, port) = (end.ip(), end.port());
        format!("{side} = [\"{address}\"]\n{side}_ports = [{port}]\n")
    };
    let text = format!(
        "[[rule]]\nname = \"{name}\"\n{}{}{keys}",
        side("source", local),
        side("destination", remote)
    );
    let said = |problems: Vec<fatpath_policy::Problem>| {
        let lines = problems
            .iter()
            .map(|problem| match problem.allowed.as_str() {
                "" => problem.message.clone(),
                allowed => format!("{}; {allowed}", problem.message),
            });
        anyhow::anyhow!(lines.collect::<Vec<String>>().join("\n"))
    };
    let policy = parse(&text, None).map_err(said)?;
    let [rule] = &policy.rules[..] else {
        bail!("settings of one flow: key = value");
    };
    ensure!(
        rule.matches.cgroup.is_none(),
        "cgroup: the flow is named by its ends"
    );
    for setting in Setting::of_way(Way::Route) {
        ensure!(
            !rule.settings.gives(setting),
            "{} is a metric of the route: one flow cannot have it",
            setting.key()
        );
    }
    Ok(rule.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ends(port: u16) -> Ends {
        [
            "10.0.0.1:5000".parse().unwrap(),
            SocketAddr::from(([10, 0, 1, 1], port)),
        ]
    }

    #[test]
    fn a_flow_keeps_what_its_rule_gave_besides() {
        let file = parse(
            "[[rule]]\nname = \"wan\"\nsend_buffer = \"8MB\"\npacing_rate = \"1gbit\"\n",
            None,
        )
        .unwrap();
        let mut by_hand = ByHand::default();
        let keys = "pacing_rate = \"100mbit\"\n";
        by_hand
            .give(ends(1), keys, Some(&file.rules[0]), None)
            .unwrap();
        let live = by_hand.before(&file).unwrap();
        let names: Vec<&str> = live.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["by-hand-1", "wan"]);
        let number = |setting| live.rules[0].settings.number(setting);
        assert_eq!(number(Setting::SendBuffer), Some(8_000_000));
        assert_eq!(number(Setting::PacingRate), Some(100_000_000));
        assert!(by_hand.take_back(ends(1)) && !by_hand.take_back(ends(1)));
        assert_eq!(by_hand.before(&file).unwrap(), file);
    }

    #[test]
    fn what_one_flow_cannot_have_is_refused() {
        let mut by_hand = ByHand::default();
        for keys in [
            "reordering = 10\n",
            "no_such_key = 1\n",
            "send_buffer = \"8MB\"\n[[rule]]\nname = \"other\"\nsend_buffer = 4096\n",
            "cgroup = \"/x\"\n",
        ] {
            assert!(by_hand.give(ends(1), keys, None, None).is_err(), "{keys}");
        }
        assert!(by_hand.is_empty());
        for port in 1..=MOST_FLOWS as u16 {
            by_hand
                .give(ends(port), "send_buffer = 65536\n", None, None)
                .unwrap();
        }
        let more = by_hand.give(ends(1000), "send_buffer = 65536\n", None, None);
        assert!(more.is_err());
    }

    #[test]
    fn it_ends_with_its_time_and_with_the_flow() {
        let mut by_hand = ByHand::default();
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let keys = "send_buffer = 65536\n";
        by_hand
            .give(ends(1), keys, None, Some(now + second))
            .unwrap();
        by_hand.give(ends(2), keys, None, None).unwrap();
        assert!(!by_hand.end(now, |_| true));
        assert!(by_hand.end(now + second, |_| true));
        assert!(by_hand.end(now, |_| false) && by_hand.is_empty());
    }
}
