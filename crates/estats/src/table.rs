// SPDX-License-Identifier: MIT OR Apache-2.0
//! All flows that are known, each with its latest sample and a short past.
//!
//! Bounded whatever comes in: flows, points and events have their maxima, and the flow that ended longest
//! ago makes room first. Only the samples' own clock counts, so a clock set back changes nothing. A flow is
//! right from whichever sample comes first: a lost begin or a restarted daemon costs its past, no more.

use crate::derived::Derived;
use crate::least_rtt::LeastRtts;
use crate::record::{HistoryBounds, Record};
use crate::rule::Rule;
use fatpath_api::{Flow, FlowDetail, FlowView, Rates, Sample, SampleKind, Why};
use fatpath_path::{Evidence, PathKey, Window};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How much a table keeps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Flows that live. Others are counted, not kept.
    pub flows: usize,
    /// Flows that have ended.
    pub ended: usize,
    /// Points of all flows together, about.
    pub points: usize,
    /// Events of all flows together, about.
    pub events: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            flows: 40_000,
            ended: 2_000,
            points: 1_000_000,
            events: 400_000,
        }
    }
}

/// A flow has at most so many points: two minutes at ten a second.
const MAX_POINTS: usize = 1200;

/// A flow has at least so many.
const MIN_POINTS: usize = 25;

/// A flow has at most so many events, and at least so many.
const MAX_EVENTS: usize = 100;
const MIN_EVENTS: usize = 10;

/// So many flows that are gone are remembered for readers of changes.
const MAX_GONE: usize = 8192;

/// What changed in a table since a mark.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The mark to ask with next time.
    pub mark: u64,
    /// Cookies of the flows that are no longer in the table.
    pub gone: Vec<u64>,
    /// The mark was too old for `gone` to be whole: what is shown is to be read anew.
    pub is_broken: bool,
    /// Flows with a new sample.
    pub flows: Vec<FlowView>,
}

/// The same, with the flows only named.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    /// The mark to ask with next time.
    pub mark: u64,
    /// Cookies of the flows that are no longer in the table.
    pub gone: Vec<u64>,
    /// The mark was too old for `gone` to be whole.
    pub is_broken: bool,
    /// Cookies of the flows with a new sample.
    pub cookies: Vec<u64>,
}

/// All known flows.
#[derive(Debug, Default)]
pub struct FlowTable {
    bounds: Bounds,
    derived: Derived,
    rules: HashMap<u32, Arc<Rule>>,
    records: HashMap<u64, Record>,
    least_rtts: LeastRtts,
    /// In the order in which they ended.
    ended: VecDeque<u64>,
    /// With the mark at which they went.
    gone: VecDeque<(u64, u64)>,
    /// The mark up to which `gone` is no longer whole.
    forgotten: u64,
    mark: u64,
    refused: u64,
}

impl FlowTable {
    /// An empty table.
    pub fn new(bounds: Bounds) -> FlowTable {
        FlowTable {
            bounds,
            ..FlowTable::default()
        }
    }

    /// What a new policy names: its rules by number, and the derived events.
    pub fn set_policy(&mut self, rules: impl IntoIterator<Item = (u32, Rule)>, derived: Derived) {
        let shared = |(id, rule): (u32, Rule)| (id, Arc::new(rule));
        self.rules = rules.into_iter().map(shared).collect();
        self.derived = derived;
    }

    /// What the kernel half keeps of a flow that carried no data may be another flow's before the last sample is made
    /// (bpf/include/new_flow.h): its rule is that of the sample before, unless a policy came since.
    pub fn complete(&self, sample: &mut Sample) {
        let is_incomplete = sample.kind == SampleKind::End && sample.flow.rule_id.is_none();
        if !is_incomplete || sample.data_segs_out > 0 || sample.data_segs_in > 0 {
            return;
        }
        let of_record = |record: &Record| {
            let (id, met) = (record.last.flow.rule_id?, record.rule.as_ref()?);
            let is_in_force = self
                .rules
                .get(&id)
                .is_some_and(|rule| Arc::ptr_eq(rule, met));
            is_in_force.then_some(id)
        };
        let record = self.records.get(&sample.flow.cookie);
        sample.flow.rule_id = record.and_then(of_record);
    }

    /// Takes the next sample of any flow.
    pub fn take(&mut self, sample: Sample) {
        let cookie = sample.flow.cookie;
        let rule = self.rule_of(&sample);
        let bounds = self.history_bounds();
        self.mark += 1;
        let is_full = self.live() >= self.bounds.flows;
        match self.records.get_mut(&cookie) {
            Some(record) => {
                let had_ended = record.has_ended;
                record.least_rtt_us = self.least_rtts.take(&sample);
                record.take(sample, rule, bounds);
                record.changed = self.mark;
                match (had_ended, record.has_ended) {
                    (false, true) => self.ended.push_back(cookie),
                    // Its end had been taken for lost.
                    (true, false) => self.ended.retain(|ended| *ended != cookie),
                    _ => {}
                }
            }
            None if is_full => self.refused += 1,
            None => self.insert(Record::new(sample, rule, bounds)),
        }
        self.forget_oldest();
    }

    fn insert(&mut self, mut record: Record) {
        let cookie = record.last.flow.cookie;
        record.changed = self.mark;
        if record.has_ended {
            self.ended.push_back(cookie);
        }
        self.least_rtts.begin(&record.last);
        record.least_rtt_us = self.least_rtts.take(&record.last);
        self.records.insert(cookie, record);
    }

    fn rule_of(&self, sample: &Sample) -> Option<Arc<Rule>> {
        let id = sample.flow.rule_id?;
        self.rules.get(&id).cloned()
    }

    fn history_bounds(&self) -> HistoryBounds {
        let flows = self.records.len().max(1);
        HistoryBounds {
            points: (self.bounds.points / flows).clamp(MIN_POINTS, MAX_POINTS),
            events: (self.bounds.events / flows).clamp(MIN_EVENTS, MAX_EVENTS),
        }
    }

    fn live(&self) -> usize {
        self.records.len() - self.ended.len()
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > self.bounds.ended
            && let Some(cookie) = self.ended.pop_front()
        {
            if let Some(record) = self.records.remove(&cookie) {
                self.least_rtts.end(&record.last);
            }
            self.gone.push_back((self.mark, cookie));
        }
        while self.gone.len() > MAX_GONE
            && let Some((mark, _)) = self.gone.pop_front()
        {
            self.forgotten = mark;
        }
    }

    /// A walk over all sockets began at `since_ns` and is done: live flows that nothing was heard of since
    /// then have ended, and the record of their end was lost.
    pub fn end_unheard(&mut self, since_ns: u64) {
        self.mark += 1;
        for (cookie, record) in &mut self.records {
            if !record.has_ended && record.last.now_ns < since_ns {
                record.has_ended = true;
                record.changed = self.mark;
                self.ended.push_back(*cookie);
            }
        }
        self.forget_oldest();
    }

    /// Number of flows, ended ones included.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Samples of flows that were not kept because the table was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Every flow, in no order.
    pub fn views(&self) -> impl Iterator<Item = FlowView> {
        self.records.values().map(|record| self.view(record))
    }

    /// Every flow that is wanted, in no order.
    pub fn views_where(&self, is_wanted: impl Fn(&Flow) -> bool) -> Vec<FlowView> {
        let records = self.records.values();
        let wanted = records.filter(|record| is_wanted(&record.last.flow));
        wanted.map(|record| self.view(record)).collect()
    }

    fn view(&self, record: &Record) -> FlowView {
        FlowView {
            flow: record.last.flow,
            rule: record.rule_name().map(str::to_owned),
            sample: record.last.clone(),
            rates: rates(record),
            shares: record.judged_span().shares(),
            derived: self.derived.values(&record.last),
            findings: record.findings.clone(),
            has_ended: record.has_ended,
        }
    }

    /// One flow with its past.
    pub fn detail(&self, cookie: u64) -> Option<FlowDetail> {
        let record = self.records.get(&cookie)?;
        Some(FlowDetail {
            view: self.view(record),
            points: record.points.iter().copied().collect(),
            events: record.events.to_vec(),
        })
    }

    /// The diagnosis of every flow, in no order.
    pub fn whys(&self) -> impl Iterator<Item = Why> {
        self.records.values().map(why)
    }

    /// The diagnosis of one flow.
    pub fn why(&self, cookie: u64) -> Option<Why> {
        self.records.get(&cookie).map(why)
    }

    /// What these flows say of their paths so far; `unix_minus_monotonic_us` dates it.
    pub fn evidence(
        &self,
        cookies: &[u64],
        unix_minus_monotonic_us: i64,
    ) -> Vec<(PathKey, Evidence)> {
        let records = cookies.iter().filter_map(|cookie| self.records.get(cookie));
        let told = records
            .filter(|record| !record.teaches_nothing())
            .map(|record| record.evidence(unix_minus_monotonic_us));
        told.filter(|(_, evidence)| evidence.is_usable()).collect()
    }

    /// The windows of these flows that closed last; `unix_minus_monotonic_us` dates them.
    pub fn windows(&self, cookies: &[u64], unix_minus_monotonic_us: i64) -> Vec<(PathKey, Window)> {
        let records = cookies.iter().filter_map(|cookie| self.records.get(cookie));
        let telling = records.filter(|record| !record.teaches_nothing());
        let windows = telling.map(|record| record.latest_window(unix_minus_monotonic_us));
        windows.flatten().collect()
    }

    /// What changed since the mark; 0 = everything.
    ///
    /// A slow reader that asks seldom gets the latest of each flow, and nothing is kept for it.
    pub fn changes(&self, mark: u64) -> Changes {
        let changed = self.changed(mark);
        Changes {
            mark: changed.mark,
            gone: changed.gone,
            is_broken: changed.is_broken,
            flows: self.views_of(&changed.cookies),
        }
    }

    /// Which flows changed since the mark, for a reader that takes them piece by piece with
    /// [`FlowTable::views_of`].
    pub fn changed(&self, mark: u64) -> Changed {
        let changed = self
            .records
            .iter()
            .filter(|(_, record)| record.changed > mark);
        let gone = self.gone.iter().filter(|(at, _)| *at > mark);
        Changed {
            mark: self.mark,
            gone: gone.map(|(_, cookie)| *cookie).collect(),
            is_broken: mark != 0 && mark < self.forgotten,
            cookies: changed.map(|(cookie, _)| *cookie).collect(),
        }
    }

    /// The flows of these cookies as they are now; those that are gone are left out.
    pub fn views_of(&self, cookies: &[u64]) -> Vec<FlowView> {
        let records = cookies.iter().filter_map(|cookie| self.records.get(cookie));
        records.map(|record| self.view(record)).collect()
    }
}

fn rates(record: &Record) -> Rates {
    record.rated_span().rates(record.average_bps())
}

fn why(record: &Record) -> Why {
    let span = record.judged_span();
    Why {
        flow: record.last.flow,
        rule: record.rule_name().map(str::to_owned),
        rates: rates(record),
        shares: span.shares(),
        span_s: span.seconds(),
        findings: record.findings.clone(),
        bbr: record.last.bbr,
    }
}

#[cfg(test)]
mod tests;
