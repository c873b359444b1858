// SPDX-License-Identifier: MIT OR Apache-2.0
//! What single live flows are given by hand (`fatpath tune`): a rule for each, before those of the policy file, until its
//! time is over, the flow ends, or somebody takes it back. The daemon's end ends all.

use crate::policy_file::read_policy;
use anyhow::{Context, Result, anyhow, bail, ensure};
use fatpath_policy::{Path, Policy, Rule, Setting, Settings, Way};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

/// No rule of a file can be named so.
const PREFIX: &str = "by-hand:";

/// Flows at once: each is a rule that every new flow may be compared with.
const MOST_FLOWS: usize = 64;

/// Local and remote end of a flow.
pub(crate) type Ends = [SocketAddr; 2];

/// Whether a rule is one for a flow that is tuned by hand.
pub(crate) fn is_by_hand(rule: &str) -> bool {
    rule.starts_with(PREFIX)
}

/// The flows, and what they are given.
#[derive(Clone, Default)]
pub(crate) struct ByHand {
    flows: BTreeMap<Ends, Given>,
    /// Flows so far, which name the rules.
    given: u64,
}

/// What was given by hand, and the rule that gives the rest: as it is whenever the policy becomes live.
#[derive(Clone)]
struct Given {
    name: String,
    settings: Settings,
    path: Path,
    base: Option<String>,
    until: Option<Instant>,
    /// None before the flow was seen with the rule.
    cookie: Option<u64>,
}

impl ByHand {
    /// A flow is given the settings that `keys` has, as lines of a policy's rule, with those of its rule for the rest.
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
        let before = self.flows.get(&ends);
        ensure!(
            before.is_some() || self.flows.len() < MOST_FLOWS,
            "{MOST_FLOWS} flows are tuned by hand already: take one back (fatpath tune FLOW --undo)"
        );
        let rule = read(keys, base)?;
        let given = match before {
            Some(before) => Given {
                settings: rule.settings.over(&before.settings),
                path: rule.path,
                until,
                ..before.clone()
            },
            None => Given {
                name: format!("{PREFIX}{}", self.given + 1),
                settings: rule.settings,
                path: rule.path,
                base: base.map(|base| base.name.clone()),
                until,
                cookie: None,
            },
        };
        self.given += 1;
        self.flows.insert(ends, given);
        Ok(())
    }

    /// The flow with these ends was seen.
    pub(crate) fn is_seen(&mut self, ends: Ends, cookie: u64) {
        if let Some(given) = self.flows.get_mut(&ends) {
            given.cookie = Some(cookie);
        }
    }

    /// Answers whether the flow had anything.
    pub(crate) fn take_back(&mut self, ends: Ends) -> bool {
        self.flows.remove(&ends).is_some()
    }

    /// Forgets flows whose time is over, and those whose cookies are not among the live ones, where these are known.
    /// Answers which.
    pub(crate) fn end(&mut self, now: Instant, is_live: Option<impl Fn(u64) -> bool>) -> Vec<Ends> {
        let is_over = |given: &Given| {
            let is_due = given.until.is_some_and(|until| until <= now);
            let is_gone =
                |is_live: &dyn Fn(u64) -> bool| given.cookie.is_none_or(|cookie| !is_live(cookie));
            is_due || is_live.as_ref().is_some_and(|is_live| is_gone(is_live))
        };
        let over = self.flows.iter().filter(|(_, given)| is_over(given));
        let over: Vec<Ends> = over.map(|(ends, _)| *ends).collect();
        self.flows.retain(|ends, _| !over.contains(ends));
        over
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Name of the rule below that of a rule for a flow.
    pub(crate) fn base_of<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        match self.flows.values().find(|given| given.name == name) {
            Some(given) => given.base.as_deref(),
            None => Some(name),
        }
    }

    /// The policy with the rules of these flows before its own.
    ///
    /// # Errors
    /// When they do not all fit.
    pub(crate) fn before(&self, policy: &Policy, learned: &Policy) -> Result<Policy> {
        let rules = self.flows.iter().map(|(ends, given)| {
            let all = policy.rules.iter().chain(&learned.rules);
            let is_base = |rule: &&Rule| Some(&rule.name) == given.base.as_ref();
            given.rule(*ends, all.into_iter().find(is_base))
        });
        let all = policy.clone().led_by(rules);
        all.context("the policy has no place for rules of flows that are tuned by hand")
    }
}

impl Given {
    /// A flow that is tuned by hand is not rude, whatever its rule says.
    fn rule(&self, [local, remote]: Ends, base: Option<&Rule>) -> Rule {
        let none = Settings::default();
        let of_base = base.map_or(&none, |base| &base.settings);
        let polite = of_base.iter().filter(|(setting, _)| !is_rude(*setting));
        let polite: Settings = polite
            .map(|(setting, chosen)| (setting, chosen.clone()))
            .collect();
        let mut rule = Rule::for_flow(&self.name, local, remote);
        rule.settings = self.settings.clone().over(&polite);
        rule.path = match self.path == Path::default() {
            true => base.map(|base| base.path.clone()).unwrap_or_default(),
            false => self.path.clone(),
        };
        rule.collective = base.and_then(|base| base.collective.clone());
        rule
    }
}

fn is_rude(setting: Setting) -> bool {
    Setting::of_way(Way::Rude).any(|rude| rude == setting)
}

/// The settings that `keys` has. What needs a law of fatpath's is read with that of the flow's rule.
fn read(keys: &str, base: Option<&Rule>) -> Result<Rule> {
    let mut text = format!("[[rule]]\nname = \"by-hand\"\n{keys}");
    let law = base.and_then(|base| base.settings.law());
    let named: Vec<&str> = keys.lines().filter_map(key_of).collect();
    if let Some(law) = law.filter(|_| !named.contains(&Setting::CongestionControl.key())) {
        text.push_str(&format!("\ncongestion_control = \"{}\"\n", law.name()));
    }
    let policy = read_policy(text.as_bytes(), "settings").map_err(|refused| {
        let said = refused
            .problems
            .iter()
            .map(|problem| match problem.allowed.as_str() {
                "" => problem.message.clone(),
                allowed => format!("{}; {allowed}", problem.message),
            });
        anyhow!(said.collect::<Vec<String>>().join("\n"))
    })?;
    let [rule] = &policy.rules[..] else {
        bail!("give settings of one flow: key = value");
    };
    let mut rest = policy.clone();
    rest.rules.clear();
    rest.warnings.clear();
    let nothing_else = rest == Policy::default();
    ensure!(
        nothing_else && rule.matches == fatpath_policy::Match::default(),
        "give settings of one flow: key = value"
    );
    for setting in Setting::of_way(Way::Route) {
        let key = setting.key();
        ensure!(
            !rule.settings.gives(setting),
            "{key} is a metric of the route: one flow cannot have it"
        );
    }
    for setting in Setting::of_way(Way::Rude) {
        let key = setting.key();
        ensure!(
            !rule.settings.gives(setting),
            "{key}: only a rule of the policy file permits it"
        );
    }
    ensure!(
        !rule.settings.is_shared(Setting::PacingRate),
        "pacing_rate: one flow shares no rate: give it one without \"/n\""
    );
    let mut rule = rule.clone();
    // Not what a law has by default: the flow's rule may say otherwise.
    let by_hand = rule
        .settings
        .iter()
        .filter(|(setting, _)| named.contains(&setting.key()));
    rule.settings = by_hand
        .map(|(setting, chosen)| (setting, chosen.clone()))
        .collect();
    Ok(rule)
}

fn key_of(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_policy::parse;
    use std::time::Duration;

    const ALL_LIVE: Option<fn(u64) -> bool> = Some(|_| true);

    fn ends(port: u16) -> Ends {
        [
            "10.0.0.1:5000".parse().unwrap(),
            SocketAddr::from(([10, 0, 1, 1], port)),
        ]
    }

    fn file(settings: &str) -> Policy {
        parse(&format!("[[rule]]\nname = \"wan\"\n{settings}\n"), None).unwrap()
    }

    fn tuned(file: &Policy, keys: &str) -> (ByHand, Policy) {
        let mut by_hand = ByHand::default();
        by_hand
            .give(ends(1), keys, Some(&file.rules[0]), None)
            .unwrap();
        let live = by_hand.before(file, &Policy::default()).unwrap();
        (by_hand, live)
    }

    #[test]
    fn a_flow_keeps_what_its_rule_gives_besides_as_that_is_now() {
        let before = file("send_buffer = \"8MB\"\npacing_rate = \"1gbit\"");
        let (mut by_hand, live) = tuned(&before, "pacing_rate = \"100mbit\"\n");
        let names: Vec<&str> = live.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["by-hand:1", "wan"]);
        let number = |live: &Policy, setting| live.rules[0].settings.number(setting);
        assert_eq!(number(&live, Setting::SendBuffer), Some(8_000_000));
        assert_eq!(number(&live, Setting::PacingRate), Some(100_000_000));
        let after = file("send_buffer = \"4MB\"");
        let live = by_hand.before(&after, &Policy::default()).unwrap();
        assert_eq!(number(&live, Setting::SendBuffer), Some(4_000_000));
        let live = by_hand
            .before(&Policy::default(), &Policy::default())
            .unwrap();
        assert_eq!(number(&live, Setting::SendBuffer), None);
        let again = "cwnd_clamp = 100\n";
        by_hand
            .give(ends(1), again, Some(&after.rules[0]), None)
            .unwrap();
        let live = by_hand.before(&after, &Policy::default()).unwrap();
        assert_eq!(live.rules[0].name, "by-hand:1");
        assert_eq!(number(&live, Setting::PacingRate), Some(100_000_000));
        assert_eq!(number(&live, Setting::CwndClamp), Some(100));
        assert!(by_hand.take_back(ends(1)) && !by_hand.take_back(ends(1)));
        assert_eq!(by_hand.before(&after, &Policy::default()).unwrap(), after);
    }

    #[test]
    fn the_law_of_the_rule_counts_and_what_it_says_of_it() {
        let cubic = file("congestion_control = \"fp_cubic\"\nhystart = false");
        let (_, live) = tuned(&cubic, "max_burst = 10\n");
        let settings = &live.rules[0].settings;
        assert_eq!(settings.law().map(|law| law.name()), Some("fp_cubic"));
        assert_eq!(settings.truth(Setting::Hystart), Some(false));
        let (_, live) = tuned(&cubic, "congestion_control = \"fp_reno\"\n");
        assert_eq!(live.rules[0].settings.truth(Setting::Hystart), Some(false));
        let rude = file("rude = \"allowed\"");
        let (_, live) = tuned(&rude, "congestion_control = \"fp_bbr\"\n");
        assert!(!live.rules[0].settings.may_be_rude());
    }

    #[test]
    fn what_one_flow_cannot_have_is_refused() {
        let mut by_hand = ByHand::default();
        for keys in [
            "reordering = 10\n",
            "rude = \"always\"\n",
            "congestion_control = \"fp_reno\"\npacing_rate = \"1gbit/n\"\n",
            "no_such_key = 1\n",
            "congestion_control = \"fp_brr\"\n",
            "send_buffer = \"8MB\"\n[[rule]]\nname = \"other\"\nsend_buffer = 4096\n",
            "send_buffer = \"8MB\"\n[auto]\nmode = \"tune\"\n",
            "cgroup = \"/x\"\n",
        ] {
            assert!(by_hand.give(ends(1), keys, None, None).is_err(), "{keys}");
        }
        assert!(by_hand.is_empty());
        let keys = "send_buffer = 65536\n";
        for port in 1..=MOST_FLOWS as u16 {
            by_hand.give(ends(port), keys, None, None).unwrap();
        }
        assert!(by_hand.give(ends(1000), keys, None, None).is_err());
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
        for port in [1, 2] {
            by_hand.is_seen(ends(port), port.into());
        }
        assert_eq!(by_hand.end(now, ALL_LIVE), Vec::<Ends>::new());
        assert_eq!(
            by_hand.end(now + second, None::<fn(u64) -> bool>),
            [ends(1)]
        );
        assert_eq!(by_hand.end(now, Some(|cookie| cookie != 2)), [ends(2)]);
        assert!(by_hand.is_empty());
    }
}
