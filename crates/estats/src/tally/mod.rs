// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over flows, by rule and by destination prefix: what metrics are made of.
//!
//! Every byte, segment and second is counted in one series only, that of its rule and that of its prefix,
//! when a sample tells of it. A flow that a daemon finds running is counted from there on. Everything is
//! bounded: so many flows, so many rules, so many prefixes; the rest are counted together. It keeps no
//! flow's past: that is [`crate::FlowTable`]'s. Start reading at [`Tally::take`].

mod group;
mod top_groups;

pub use group::{Group, HISTOGRAMS, Histogram, HistogramOf, SUMS, Sum};

use fatpath_api::{Sample, SampleKind};
use group::{Counters, Origin};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use top_groups::TopGroups;

/// A flow is observed for the histograms this often, and at its end.
const PERIOD_NS: u64 = 10_000_000_000;

/// Who has a series of his own is decided anew this often.
const SEATING_NS: u64 = 60_000_000_000;

/// Label of flows without a rule; no rule has parentheses in its name.
pub const NO_RULE: &str = "(none)";

/// Label of everybody without a series of his own.
pub const OTHERS: &str = "(other)";

/// How much a tally keeps.
#[derive(Clone, Copy, Debug)]
pub struct TallyBounds {
    /// Flows followed at once.
    pub flows: usize,
    /// Rules with series of their own.
    pub rules: usize,
    /// Prefixes with series of their own.
    pub prefixes: usize,
}

impl Default for TallyBounds {
    fn default() -> TallyBounds {
        TallyBounds {
            flows: 100_000,
            rules: 64,
            prefixes: 32,
        }
    }
}

/// A destination's network: /24 of IPv4, /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(IpAddr);

impl Network {
    /// The network of an address; one that is IPv4 within IPv6 is IPv4.
    pub fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << 8)).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = if self.0.is_ipv4() { 24 } else { 64 };
        write!(f, "{}/{length}", self.0)
    }
}

/// What of a flow is counted already.
#[derive(Clone, Debug)]
struct Seen {
    rule: Option<Arc<str>>,
    network: Network,
    now_ns: u64,
    origin: Origin,
    counted: Counters,
    /// Where the histograms' period began.
    period_ns: u64,
    at_period: Counters,
    /// A walk over all sockets did not meet it.
    is_unheard: bool,
}

/// Cookies of the flows that ended last. A walk may tell of a flow after its end, as it was before.
#[derive(Clone, Debug, Default)]
struct Ended {
    latest: HashSet<u64>,
    before: HashSet<u64>,
}

impl Ended {
    /// Twice as many are known at most: at 10,000 ends a second, those of the last three seconds at least.
    const MAX: usize = 32_768;

    fn note(&mut self, cookie: u64) {
        if self.latest.len() >= Ended::MAX {
            self.before = std::mem::take(&mut self.latest);
        }
        self.latest.insert(cookie);
    }

    fn has(&self, cookie: u64) -> bool {
        self.latest.contains(&cookie) || self.before.contains(&cookie)
    }
}

/// Sums over all flows.
#[derive(Clone, Debug)]
pub struct Tally {
    bounds: TallyBounds,
    /// Counters of flows that began before are not counted from 0.
    began_ns: u64,
    seen: HashMap<u64, Seen>,
    ended: Ended,
    seated_ns: u64,
    /// Of the live policy's rules.
    names: HashMap<u32, Arc<str>>,
    /// Flows without one under `None`.
    rules: TopGroups<Option<Arc<str>>>,
    prefixes: TopGroups<Network>,
}

impl Tally {
    /// An empty tally that begins now.
    pub fn new(bounds: TallyBounds, now_ns: u64) -> Tally {
        Tally {
            bounds,
            began_ns: now_ns,
            seen: HashMap::new(),
            ended: Ended::default(),
            seated_ns: now_ns,
            names: HashMap::new(),
            rules: TopGroups::new(bounds.rules, now_ns),
            prefixes: TopGroups::new(bounds.prefixes, now_ns),
        }
    }

    /// The rules of a policy that became live, by number.
    pub fn set_rules(&mut self, rules: impl IntoIterator<Item = (u32, String)>) {
        let shared = |(id, name): (u32, String)| (id, Arc::from(name));
        self.names = rules.into_iter().map(shared).collect();
    }

    /// Takes the next sample of any flow.
    pub fn take(&mut self, sample: &Sample) {
        let rule = sample.flow.rule_id.and_then(|id| self.names.get(&id));
        let rule = &rule.cloned();
        let cookie = sample.flow.cookie;
        if self.ended.has(cookie) || self.is_idle(sample) {
            return;
        }
        let has_ended = sample.kind == SampleKind::End;
        let was_unheard = self.hear(cookie);
        if was_unheard && !has_ended {
            // Its end was counted already, and was none.
            self.count(cookie, 0, |group| group.flows_begun += 1);
        }
        if !self.seen.contains_key(&cookie) {
            self.forget_silent();
            let seen = self.first_seen(sample, rule);
            self.seen.insert(cookie, seen);
            self.count(cookie, 0, |group| group.flows_begun += 1);
        }
        self.follow(sample, rule);
        if self.is_due(sample) || has_ended {
            self.observe(sample);
        }
        if has_ended {
            let ends = u64::from(!was_unheard);
            self.count(cookie, 0, |group| group.flows_ended += ends);
            self.seen.remove(&cookie);
            self.ended.note(cookie);
        }
        if sample.now_ns.saturating_sub(self.seated_ns) >= SEATING_NS {
            self.seated_ns = sample.now_ns;
            self.rules.rank(sample.now_ns);
            self.prefixes.rank(sample.now_ns);
        }
    }

    /// Answers whether a walk had taken the flow for ended.
    fn hear(&mut self, cookie: u64) -> bool {
        let seen = self.seen.get_mut(&cookie);
        seen.is_some_and(|seen| std::mem::take(&mut seen.is_unheard))
    }

    /// A walk over all sockets began at `since_ns` and is done: flows of which nothing was heard since then have
    /// ended, and the record of their end was lost.
    pub fn end_unheard(&mut self, since_ns: u64) {
        let is_gone = |seen: &Seen| !seen.is_unheard && seen.now_ns < since_ns;
        let gone = self.seen.iter().filter(|(_, seen)| is_gone(seen));
        let gone: Vec<u64> = gone.map(|(cookie, _)| *cookie).collect();
        for cookie in gone {
            self.count(cookie, 0, |group| group.flows_ended += 1);
            if let Some(seen) = self.seen.get_mut(&cookie) {
                seen.is_unheard = true;
            }
        }
    }

    /// A walk by a flow that did nothing: its waiting is counted with what it does next.
    fn is_idle(&mut self, sample: &Sample) -> bool {
        let seen = self.seen.get_mut(&sample.flow.cookie);
        sample.kind == SampleKind::Walk
            && seen.is_some_and(|seen| {
                seen.now_ns = seen.now_ns.max(sample.now_ns);
                !seen.is_unheard && seen.counted.did_as_much_as(sample)
            })
    }

    fn first_seen(&self, sample: &Sample, rule: &Option<Arc<str>>) -> Seen {
        let is_whole = !sample.flow.is_adopted && sample.begin_ns >= self.began_ns;
        let origin = match is_whole {
            true => Origin::begin_of(sample),
            false => Origin::at(sample),
        };
        let counted = match is_whole {
            true => Counters::default(),
            false => Counters::of(sample, &origin),
        };
        let begin_ns = if is_whole {
            sample.begin_ns
        } else {
            sample.now_ns
        };
        Seen {
            rule: rule.clone(),
            network: Network::of(sample.flow.remote.ip()),
            now_ns: sample.now_ns,
            origin,
            counted,
            period_ns: begin_ns,
            at_period: counted,
            is_unheard: false,
        }
    }

    /// Counts what is new since the flow's last sample.
    fn follow(&mut self, sample: &Sample, rule: &Option<Arc<str>>) {
        let Some(seen) = self.seen.get_mut(&sample.flow.cookie) else {
            return;
        };
        // A new policy may have given it another rule.
        seen.rule.clone_from(rule);
        seen.now_ns = seen.now_ns.max(sample.now_ns);
        let counters = Counters::of(sample, &seen.origin).or_more(&seen.counted);
        let new = counters.since(&seen.counted);
        seen.counted = counters;
        let bytes = new.moved_bytes();
        self.count(sample.flow.cookie, bytes, |group| group.add(&new));
    }

    fn is_due(&self, sample: &Sample) -> bool {
        let seen = self.seen.get(&sample.flow.cookie);
        seen.is_some_and(|seen| sample.now_ns.saturating_sub(seen.period_ns) >= PERIOD_NS)
    }

    fn observe(&mut self, sample: &Sample) {
        let Some(seen) = self.seen.get_mut(&sample.flow.cookie) else {
            return;
        };
        let new = seen.counted.since(&seen.at_period);
        let span_s = sample.now_ns.saturating_sub(seen.period_ns) as f64 / 1e9;
        (seen.period_ns, seen.at_period) = (sample.now_ns, seen.counted);
        let srtt_us = sample.srtt_us;
        self.count(sample.flow.cookie, 0, |group| {
            group.observe(srtt_us, &new, span_s)
        });
    }

    fn count(&mut self, cookie: u64, bytes: u64, in_group: impl Fn(&mut Group)) {
        if let Some(seen) = self.seen.get(&cookie) {
            in_group(self.rules.of(&seen.rule, bytes, seen.now_ns));
            in_group(self.prefixes.of(&seen.network, bytes, seen.now_ns));
        }
    }

    /// All series as they are now.
    pub fn series(&self) -> Series {
        let (mut of_rules, mut of_prefixes) = (HashMap::new(), HashMap::new());
        for seen in self.seen.values().filter(|seen| !seen.is_unheard) {
            *of_rules.entry(self.rules.name_of(&seen.rule)).or_default() += 1;
            *of_prefixes
                .entry(self.prefixes.name_of(&seen.network))
                .or_default() += 1;
        }
        let rule = |rule: &Option<Arc<str>>| rule.as_deref().unwrap_or(NO_RULE).to_owned();
        Series {
            rules: self.rules.series(rule, &of_rules),
            prefixes: self.prefixes.series(Network::to_string, &of_prefixes),
        }
    }

    /// Flows whose end was lost are those that were silent longest: a tenth of all goes when it is full. One that
    /// comes back all the same is counted from there on, for what it did before is counted.
    fn forget_silent(&mut self) {
        if self.seen.len() < self.bounds.flows {
            return;
        }
        let mut times: Vec<u64> = self.seen.values().map(|seen| seen.now_ns).collect();
        let (_, oldest, _) = times.select_nth_unstable(self.bounds.flows / 10);
        let oldest = *oldest;
        self.seen.retain(|_, seen| seen.now_ns > oldest);
        self.began_ns = self.began_ns.max(oldest + 1);
    }
}

/// Every series at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// By rule.
    pub rules: Vec<OneSeries>,
    /// By destination.
    pub prefixes: Vec<OneSeries>,
}

/// A group, by the name that it has in metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneSeries {
    /// The rule's name or the prefix, [`NO_RULE`] or [`OTHERS`].
    pub label: String,
    /// When it began, by the samples' clock, ns.
    pub since_ns: u64,
    /// Flows that have begun and not ended, as far as they are followed.
    pub live: u64,
    /// Sums and distributions.
    pub group: Group,
}

#[cfg(test)]
mod tests;
