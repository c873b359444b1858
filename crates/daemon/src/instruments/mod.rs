// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruments' wiring: samples go from the kernel half into one table, and to whoever records them;
//! the API reads the table.
//!
//! Nothing here judges: that is `fatpath-estats`. Start at [`Instruments`].

pub(crate) mod answers;
mod budget;
pub(crate) mod follow;
pub(crate) mod lines;
mod live;
mod measured;
pub(crate) mod metrics;
pub(crate) mod otlp;
pub(crate) mod samples;

use crate::by_hand::is_by_hand;
use budget::{Budget, Spent};
use fatpath_api::{Flow, FlowDetail, FlowView, Listing, ListingQuery, Sample, SampleCounts, Why};
use fatpath_estats::listing;
use fatpath_estats::tally::Series;
use fatpath_estats::{
    BadFormula, Bounds, Changed, Changes, Derived, FlowTable, Rule, Tally, TallyBounds,
};
use fatpath_kernel::{Kernel, is_path_rule};
use fatpath_path::{Evidence, PathKey, Window};
use fatpath_policy::{Policy, SampledFlows, Setting};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::broadcast;

/// Samples that a recorder may lag behind before it loses the oldest and is told how many.
const LAG: usize = 8192;

/// The table of flows, and the way of samples to it.
pub(crate) struct Instruments {
    kernel: Arc<Kernel>,
    table: Mutex<FlowTable>,
    tally: Mutex<Tally>,
    samples: broadcast::Sender<Arc<Sample>>,
    wants_untracked: AtomicBool,
    budget: Mutex<Budget>,
    policies: AtomicU64,
}

impl Instruments {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Instruments {
        Instruments {
            kernel,
            table: Mutex::new(FlowTable::new(Bounds::default())),
            tally: Mutex::new(Tally::new(
                TallyBounds::default(),
                fatpath_clock::monotonic_ns(),
            )),
            samples: broadcast::Sender::new(LAG),
            wants_untracked: AtomicBool::new(true),
            budget: Mutex::default(),
            policies: AtomicU64::new(0),
        }
    }

    /// A policy became live; `rules` are its names by number.
    pub(crate) fn set_policy(
        &self,
        policy: &Policy,
        rules: impl IntoIterator<Item = (u32, String)>,
    ) {
        let sampled = &policy.instruments;
        let all = sampled.flows == SampledFlows::All && sampled.one_in == 1;
        self.wants_untracked.store(all, Ordering::Relaxed);
        self.budget.lock().set_policy(&policy.host);
        self.set_sample_budget();
        // Reading the policy has refused a bad formula.
        let derived = derived(policy).unwrap_or_default();
        let rules: Vec<(u32, String)> = rules.into_iter().collect();
        self.tally.lock().set_rules(rules.clone());
        let judged = rules
            .into_iter()
            .map(|(id, name)| (id, rule(policy, id, name)));
        self.table.lock().set_policy(judged, derived);
        self.policies.fetch_add(1, Ordering::Relaxed);
    }

    /// How many policies became live.
    fn policies(&self) -> u64 {
        self.policies.load(Ordering::Relaxed)
    }

    /// The present cost of samples, once a second; `reader_ns` is the processor time of whoever takes them, so far.
    pub(crate) fn follow_cost(&self, reader_ns: u64) {
        let (Ok(timed), Some(counts)) = (self.kernel.timed_samples(), self.counts()) else {
            return;
        };
        let spent = Spent {
            samples: counts.samples,
            reader_ns,
            timed,
        };
        if self.budget.lock().follow(spent) {
            self.set_sample_budget();
        }
    }

    /// Fails only after an unload, when nothing is sampled.
    fn set_sample_budget(&self) {
        let samples_per_s = self.budget.lock().samples_per_s();
        let _ = self.kernel.set_sample_budget(samples_per_s);
    }

    /// Flows that are walked by without being sampled belong into the table: too many for the bounds, or
    /// older than fatpath on an old kernel. Where the policy samples a choice, they do not.
    fn wants_untracked(&self) -> bool {
        self.wants_untracked.load(Ordering::Relaxed)
    }

    /// Takes samples in the order in which they came.
    pub(crate) fn take(&self, samples: impl IntoIterator<Item = Sample>) {
        let is_recorded = self.samples.receiver_count() > 0;
        let (mut table, mut tally) = (self.table.lock(), self.tally.lock());
        for mut sample in samples {
            table.complete(&mut sample);
            if is_recorded {
                // Fails only when the last recorder went meanwhile.
                let _ = self.samples.send(Arc::new(sample.clone()));
            }
            tally.take(&sample);
            table.take(sample);
        }
    }

    /// A walk over all sockets that began at `since_ns` is done.
    pub(crate) fn end_unheard(&self, since_ns: u64) {
        self.table.lock().end_unheard(since_ns);
        self.tally.lock().end_unheard(since_ns);
    }

    /// What the kernel half counted; `None` where it has no instruments, and after an unload.
    pub(crate) fn counts(&self) -> Option<SampleCounts> {
        self.kernel.sample_counts().ok()
    }

    /// Sums by rule and by destination.
    pub(crate) fn series(&self) -> Series {
        self.tally.lock().series()
    }

    /// Every sample from now on; a reader that is too slow is told how many it missed.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Sample>> {
        self.samples.subscribe()
    }

    pub(crate) fn views(&self) -> Vec<FlowView> {
        self.table.lock().views().collect()
    }

    pub(crate) fn views_where(&self, is_wanted: impl Fn(&Flow) -> bool) -> Vec<FlowView> {
        self.table.lock().views_where(is_wanted)
    }

    pub(crate) fn listing(&self, wanted: &ListingQuery) -> Listing {
        // The table is let go before the flows are sorted.
        listing::listing(self.views().into_iter(), wanted)
    }

    pub(crate) fn detail(&self, cookie: u64) -> Option<FlowDetail> {
        self.table.lock().detail(cookie)
    }

    pub(crate) fn whys(&self) -> Vec<Why> {
        self.table.lock().whys().collect()
    }

    /// What these flows tell of their paths so far.
    pub(crate) fn evidence(
        &self,
        cookies: &[u64],
        unix_minus_monotonic_us: i64,
    ) -> Vec<(PathKey, Evidence)> {
        self.table.lock().evidence(cookies, unix_minus_monotonic_us)
    }

    /// What these flows show of their paths now.
    pub(crate) fn windows(
        &self,
        cookies: &[u64],
        unix_minus_monotonic_us: i64,
    ) -> Vec<(PathKey, Window)> {
        self.table.lock().windows(cookies, unix_minus_monotonic_us)
    }

    /// Which flows changed since the mark; 0 = all.
    pub(crate) fn changed(&self, mark: u64) -> Changed {
        self.table.lock().changed(mark)
    }

    pub(crate) fn views_of(&self, cookies: &[u64]) -> Vec<FlowView> {
        self.table.lock().views_of(cookies)
    }

    /// What changed since the mark; 0 = everything.
    pub(crate) fn changes(&self, mark: u64) -> Changes {
        self.table.lock().changes(mark)
    }
}

/// What flows are judged by, of the rule of that number and name.
fn rule(policy: &Policy, id: u32, name: String) -> Rule {
    let rule = policy.rules.iter().find(|rule| rule.name == name);
    let number = |setting| rule.and_then(|rule| rule.settings.number(setting));
    Rule {
        send_buffer_bytes: number(Setting::SendBuffer),
        receive_buffer_bytes: number(Setting::ReceiveBuffer),
        is_learned: is_path_rule(id),
        // A flow that is tuned by hand tells what was tried, not what its path is like; nor does one with a share of a rate.
        teaches_nothing: is_by_hand(&name)
            || rule.is_some_and(|rule| leaves_alone(rule) || shares_rate(rule)),
        pacing_rate_bps: number(Setting::PacingRate),
        // That a flow is as fast as it was measured to be is no judgement.
        path_rate_bps: rule
            .filter(|rule| !rule.path.follows.rate)
            .and_then(|rule| rule.path.rate_bps),
        name,
    }
}

/// In a phase or outside, its flows are paced at a share of a rate.
fn shares_rate(rule: &fatpath_policy::Rule) -> bool {
    let mut settings = std::iter::once(&rule.settings).chain(&rule.collective);
    settings.any(|settings| settings.is_shared(Setting::PacingRate))
}

/// Its flows are exempted: it gives nothing, and waits for no measurement that would make it give something.
fn leaves_alone(rule: &fatpath_policy::Rule) -> bool {
    rule.settings.iter().next().is_none() && rule.path.follows.is_nothing()
}

/// The policy's derived events.
fn derived(policy: &Policy) -> Result<Derived, BadFormula> {
    let texts = policy.instruments.derived.iter();
    Derived::parse(texts.map(|text| (text.name.as_str(), text.formula.as_str())))
}
