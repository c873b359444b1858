// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy is, once read: rules in file order, each with what it matches and what it sets.
//!
//! Plain values. [`parse`](crate::parse) is what makes them, and it holds every range and limit named
//! here; nothing in this file checks again. Start at [`Policy`].

use crate::{Archive, Auto, HostSettings, Instruments, Match, PhaseTable, Problem, Rule, Trace};
use serde::Serialize;
use std::sync::Arc;

/// The most rules that a policy may have: the kernel keeps one bit for each.
pub const MAX_RULES: usize = 1024;
/// The most prefixes that all rules together may name as destination, and as source.
pub const MAX_PREFIXES_PER_SIDE: usize = 65_536;
/// The most cuts of one port table. [`parse`](crate::parse) refuses a policy that needs more.
pub const MAX_PORT_CUTS: usize = 2048;
/// The longest policy file, in bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// A policy file's meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Policy {
    /// What the host must allow so that the rules can take effect.
    pub host: HostSettings,
    /// The rules in file order; the first that matches a flow is the flow's rule. At most [`MAX_RULES`].
    pub rules: Vec<Rule>,
    /// Which flows are sampled.
    pub instruments: Instruments,
    /// What is archived; none: nothing.
    pub archive: Option<Archive>,
    /// What is learned of paths.
    pub auto: Auto,
    /// What is a phase of a program.
    pub phases: Vec<PhaseTable>,
    /// Which flows are traced to files.
    pub traces: Vec<Trace>,
    /// What is allowed but cannot be what was meant, in file order.
    pub warnings: Vec<Problem>,
    /// The file, where what it means follows what is measured.
    #[serde(skip)]
    pub(crate) text: Option<Arc<str>>,
}

impl Policy {
    /// The rules whose paths are measured.
    pub fn measured_rules(&self) -> impl Iterator<Item = &Rule> {
        let rules = self.rules.iter();
        rules.filter(|rule| !rule.path.follows.is_nothing())
    }

    /// With these rules before its own; none where they do not all fit. A flow that one of them matches meets no other.
    pub fn led_by(mut self, rules: impl IntoIterator<Item = Rule>) -> Option<Policy> {
        let before = self.rules.len();
        self.rules.splice(0..0, rules);
        (self.rules.len() == before || self.fits()).then_some(self)
    }

    /// Whether the kernel half has place for all rules. Ports that several ranges share are counted for each.
    fn fits(&self) -> bool {
        let most = |of: [fn(&Match) -> usize; 2]| {
            let sum =
                |of: fn(&Match) -> usize| self.rules.iter().map(|rule| of(&rule.matches)).sum();
            of.map(sum).into_iter().fold(0, usize::max)
        };
        let prefixes = most([|it| it.destination.len(), |it| it.source.len()]);
        let ranges = most([|it| it.destination_ports.len(), |it| it.source_ports.len()]);
        self.rules.len() <= MAX_RULES
            && prefixes <= MAX_PREFIXES_PER_SIDE
            && 2 * ranges < MAX_PORT_CUTS
    }

    /// With the rules of another policy behind its own, as many as fit, and what they need of the host. A flow that a
    /// rule of this policy matches meets none of them; nor does a rule that has the name of one of this policy.
    pub fn followed_by(mut self, other: &Policy) -> Policy {
        let count = |rules: &[Rule], of: fn(&Rule) -> usize| rules.iter().map(of).sum::<usize>();
        let mut destinations = count(&self.rules, |rule| rule.matches.destination.len());
        let mut sources = count(&self.rules, |rule| rule.matches.source.len());
        for rule in &other.rules {
            destinations += rule.matches.destination.len();
            sources += rule.matches.source.len();
            let fits =
                self.rules.len() < MAX_RULES && destinations.max(sources) <= MAX_PREFIXES_PER_SIDE;
            if !fits {
                break;
            }
            if self.rules.iter().all(|own| own.name != rule.name) {
                self.rules.push(rule.clone());
            }
        }
        self.host.raise_with(&other.host);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::{Policy, SysctlName, parse};

    fn policy(text: &str) -> Policy {
        parse(text, None).unwrap()
    }

    #[test]
    fn rules_that_follow_come_last_and_raise_the_host() {
        let file = policy(
            "[host.sysctl]\n\"net.core.wmem_max\" = \"1MiB\"\n\"net.core.rmem_max\" = \"64MiB\"\n[[rule]]\nname = \"a\"\n",
        );
        let learned = policy(
            "[host.sysctl]\n\"net.core.wmem_max\" = \"auto\"\n\"net.core.rmem_max\" = \"1MiB\"\n\
             [[rule]]\nname = \"a\"\nsend_buffer = \"2MiB\"\n[[rule]]\nname = \"b\"\nsend_buffer = \"4MiB\"\n",
        );
        let both = file.followed_by(&learned);
        let names: Vec<&str> = both.rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(!both.rules[0].settings.gives(crate::Setting::SendBuffer));
        assert_eq!(both.host.at_least(SysctlName::CoreWmemMax), Some(4 << 20));
        assert_eq!(both.host.at_least(SysctlName::CoreRmemMax), Some(64 << 20));
    }

    #[test]
    fn rules_that_do_not_fit_are_left_out() {
        let rules = |name: &str, n: usize| -> String {
            (0..n)
                .map(|number| format!("[[rule]]\nname = \"{name}{number}\"\n"))
                .collect()
        };
        let both = policy(&rules("a", 1000)).followed_by(&policy(&rules("b", 100)));
        assert_eq!(both.rules.len(), super::MAX_RULES);
    }
}
