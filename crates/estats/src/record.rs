// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of one flow.

use crate::diagnosis::diagnose;
use crate::events::Events;
use crate::latest::Latest;
use crate::rule::Rule;
use crate::span::{Span, per_second};
use crate::totals::{Seen, Totals};
use crate::under_law::UnderLaw;
use crate::window::{Window, window_ns};
use fatpath_api::Finding;
use fatpath_api::Point;
use fatpath_api::{Sample, SampleKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rates are over one to two of these.
const RATE_NS: u64 = 1_000_000_000;

/// Findings judge one to two of these, or the flow's life when it is shorter.
const JUDGED_NS: u64 = 15_000_000_000;

/// Points are no closer than this: what a plot of a minute can show.
const POINT_NS: u64 = 100_000_000;

/// A moving base: spans from it last one to two lengths.
#[derive(Clone, Debug)]
struct Base {
    older: Totals,
    newer: Totals,
}

impl Base {
    fn new(at: Totals) -> Base {
        Base {
            older: at,
            newer: at,
        }
    }

    /// Answers whether it moved.
    fn follow(&mut self, now: &Totals, length_ns: u64) -> bool {
        let is_over = now.now_ns.saturating_sub(self.newer.now_ns) >= length_ns;
        if is_over {
            self.older = self.newer;
            self.newer = *now;
        }
        is_over
    }
}

/// How much of a flow's past is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryBounds {
    pub points: usize,
    pub events: usize,
}

/// One flow.
#[derive(Debug)]
pub(crate) struct Record {
    pub last: Sample,
    pub rule: Option<Arc<Rule>>,
    pub has_ended: bool,
    pub events: Events,
    pub points: VecDeque<Point>,
    pub findings: Vec<Finding>,
    /// Serial number of its latest change.
    pub changed: u64,
    /// Of all flows between its addresses.
    pub least_rtt_us: Option<u32>,
    totals: Totals,
    origin: Totals,
    rated: Base,
    judged: Base,
    /// At the latest point.
    plotted: Totals,
    windowed: Base,
    pub best_window: Option<Window>,
    pub latest: Latest,
    best_rate_bps: f64,
    under_law: UnderLaw,
}

impl Record {
    pub(crate) fn new(first: Sample, rule: Option<Arc<Rule>>, bounds: HistoryBounds) -> Record {
        let begin = Totals::at_begin(first.begin_ns);
        let now = Totals::of(&first, Seen::default());
        // Of a flow that fatpath or this process met late, the counters speak of a time that nobody saw.
        let is_late = first.flow.is_adopted || !first.is_tracked;
        let origin = if is_late { now } else { begin };
        let is_long_ago = now.now_ns.saturating_sub(begin.now_ns) > JUDGED_NS;
        let base = if is_long_ago { now } else { origin };
        let mut record = Record {
            rule,
            has_ended: false,
            events: Events::new(bounds.events),
            points: VecDeque::new(),
            findings: Vec::new(),
            changed: 0,
            least_rtt_us: None,
            totals: base,
            origin,
            rated: Base::new(base),
            judged: Base::new(base),
            plotted: base,
            windowed: Base::new(base),
            best_window: None,
            latest: Latest::default(),
            best_rate_bps: 0.0,
            under_law: UnderLaw::new(origin),
            last: first,
        };
        let rule = record.rule.as_ref().map(|rule| rule.name.as_str());
        record.events.begin(&record.last, rule);
        record.follow(None, bounds);
        record
    }

    /// The next sample. One that comes late, from a walk that an event overtook, is passed over.
    pub(crate) fn take(&mut self, sample: Sample, rule: Option<Arc<Rule>>, bounds: HistoryBounds) {
        if sample.now_ns < self.last.now_ns {
            return;
        }
        let name = rule.as_ref().map(|rule| rule.name.as_str());
        self.events.compare(&self.last, &sample, name);
        let begin_ns = self.last.begin_ns.min(sample.begin_ns);
        let before = std::mem::replace(&mut self.last, Sample { begin_ns, ..sample });
        self.rule = rule.or(self.rule.take());
        self.follow(Some(&before), bounds);
    }

    pub(crate) fn teaches_nothing(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.teaches_nothing)
    }

    pub(crate) fn rule_name(&self) -> Option<&str> {
        self.rule.as_ref().map(|rule| rule.name.as_str())
    }

    fn follow(&mut self, before: Option<&Sample>, bounds: HistoryBounds) {
        self.events.bound(bounds.events);
        let before = before.unwrap_or(&self.last);
        let is_paced = self.paced_bps().is_some();
        let mut seen = self.totals.seen.and(&self.totals, &self.last);
        seen.note_signals([before, &self.last], is_paced, self.least_rtt_us);
        self.totals = Totals::of(&self.last, seen);
        self.under_law
            .follow(before, &self.last, is_paced, &self.totals);
        self.has_ended = self.last.kind == SampleKind::End;
        if let Some(rate) = self.last.delivery_rate_bytes_per_s
            && !self.last.delivery_rate_is_app_limited
        {
            self.best_rate_bps = self.best_rate_bps.max(rate as f64 * 8.0);
        }
        self.plot(bounds.points);
        self.close_window();
        let is_due = self.rated.follow(&self.totals, RATE_NS);
        self.judged.follow(&self.totals, JUDGED_NS);
        if is_due || self.has_ended {
            self.judge();
        }
    }

    /// The span since the last window has closed, or what is left of the flow's, is the next one where it is long enough.
    fn close_window(&mut self) {
        let length_ns = window_ns(&self.last);
        self.latest.take(&self.last);
        let is_over = self.windowed.follow(&self.totals, length_ns);
        let span = self.span_since(&self.windowed.older);
        if (is_over || self.has_ended) && span.passed.now_ns >= length_ns {
            let (best, mut latest) = (Window::better(self.best_window, &span), self.latest);
            latest.close(&span);
            let shows_rate = Window::of(&span).limit.is_none();
            (self.best_window, self.latest) = (best, latest);
            if shows_rate {
                self.under_law.close_window(&self.windowed.older);
            }
        }
    }

    fn judge(&mut self) {
        let findings = diagnose(&self.judged_span());
        self.events.findings(&self.last, &self.findings, &findings);
        self.findings = findings;
    }

    fn plot(&mut self, max_points: usize) {
        let passed = self.totals.since(&self.plotted);
        let is_quiet =
            passed.bytes_acked == 0 && passed.bytes_received == 0 && passed.bytes_sent == 0;
        if passed.now_ns < POINT_NS && !self.has_ended || is_quiet && !self.points.is_empty() {
            return;
        }
        while self.points.len() >= max_points.max(1) {
            self.points.pop_front();
        }
        self.points.push_back(self.point(&passed));
        self.plotted = self.totals;
    }

    fn point(&self, passed: &Totals) -> Point {
        let s = &self.last;
        Point {
            t_s: s.elapsed_s(),
            cwnd_pkts: s.cwnd_pkts,
            ssthresh_pkts: s.ssthresh_pkts,
            srtt_us: s.srtt_us,
            rtt_us: s.rtt_us,
            in_flight_pkts: s.in_flight_pkts(),
            rate_bps: per_second(passed.bytes_acked.max(passed.bytes_received), passed),
            average_bps: self.average_bps(),
            retransmitted_pkts: passed.segs_retrans,
        }
    }

    /// Of its life, as far as it was seen.
    pub(crate) fn average_bps(&self) -> f64 {
        let life = self.totals.since(&self.origin);
        per_second(life.bytes_acked.max(life.bytes_received), &life)
    }

    /// Its life, as far as it was seen.
    pub(crate) fn life(&self) -> Span<'_> {
        self.span_since(&self.origin)
    }

    /// Since it has its law, as far as it was seen.
    pub(crate) fn span_of_law(&self) -> Span<'_> {
        self.span_since(&self.under_law.since)
    }

    /// Since nothing of the law before is left; none before.
    pub(crate) fn alone_span(&self) -> Option<Span<'_>> {
        let alone = self.under_law.alone.as_ref();
        alone.map(|alone| self.span_since(alone))
    }

    /// Since its law's start was over; none before.
    pub(crate) fn settled_span(&self) -> Option<Span<'_>> {
        let settled = self.under_law.settled.as_ref();
        settled.map(|settled| self.span_since(settled))
    }

    /// Whether a window since then showed its rate.
    pub(crate) fn has_shown_rate(&self) -> bool {
        self.under_law.has_shown_rate
    }

    pub(crate) fn rated_span(&self) -> Span<'_> {
        self.span_since(&self.rated.older)
    }

    pub(crate) fn judged_span(&self) -> Span<'_> {
        self.span_since(&self.judged.older)
    }

    fn span_since(&self, base: &Totals) -> Span<'_> {
        Span {
            last: &self.last,
            rule: self.rule.as_deref(),
            passed: self.totals.since(base),
            totals: &self.totals,
            settled: self.under_law.settled.as_ref(),
            best_rate_bps: self.best_rate_bps,
            least_rtt_us: self.least_rtt_us,
        }
    }
}
