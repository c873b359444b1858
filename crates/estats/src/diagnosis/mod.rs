// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a flow is slow: findings with their evidence, out of a span of its life.
//!
//! Each check answers for one cause and says itself when another cause explains the same numbers; the
//! thresholds stand with the checks, with their reasons. `docs/why.md` has a table row for each identifier.
//! A transfer that fills its path gives no finding. Start at [`diagnose`].

mod application;
pub(crate) mod buffers;
pub(crate) mod loss;
mod network;
mod timers;
mod window;

use crate::span::Span;
use fatpath_api::{Finding, Severity};

/// Every check, the ones that explain most first.
const CHECKS: [fn(&Span) -> Option<Finding>; 18] = [
    timers::path_mtu,
    timers::timeouts,
    timers::tail_loss,
    timers::delayed_ack,
    window::scale,
    window::reader,
    window::receiver,
    buffers::withheld,
    buffers::locked_send_buffer,
    buffers::locked_receive_buffer,
    buffers::send_buffer,
    loss::reordering,
    loss::policed,
    loss::random,
    loss::congestion,
    network::bufferbloat,
    network::congestion_window,
    application::window,
];

/// What a flow did in less than this says nothing of it.
const LEAST_S: f64 = 1.0;

/// Why the flow of this span is slow; nothing when it is not.
pub fn diagnose(span: &Span) -> Vec<Finding> {
    if span.seconds() < LEAST_S {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = CHECKS.iter().filter_map(|check| check(span)).collect();
    if findings.is_empty() {
        findings.extend(application::limited(span));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A gain too small to speak of is none.
fn gain(times: f64) -> Option<f64> {
    (times.is_finite() && times >= LEAST_GAIN).then_some(times)
}

/// Below this a prediction is no better than its inputs.
const LEAST_GAIN: f64 = 1.1;

/// A limit that holds the flow for less than a quarter of the time is not why it is slow.
const HOLDS: f64 = 0.25;

/// From half of the time on it costs most of what there is to gain.
const HOLDS_MOST: f64 = 0.5;

fn by_share(share: f64) -> Severity {
    match share >= HOLDS_MOST {
        true => Severity::Problem,
        false => Severity::Warning,
    }
}

/// Numbers that several checks rest on.
impl Span<'_> {
    pub(crate) fn mss_bytes(&self) -> f64 {
        f64::from(self.last.mss_bytes)
    }

    /// Goodput if the congestion window alone decided: cwnd over the path's own round trip.
    fn window_allows_bps(&self) -> f64 {
        self.mean_cwnd_pkts() * self.mss_bytes() * 8e6 / self.base_rtt_us().max(1.0)
    }

    /// What the path is known to carry, bits a second: the best delivery rate of the flow's life, or what the
    /// congestion window allows, but no more than the flow's own pacing and the path's rate by its rule.
    fn known_bps(&self) -> f64 {
        // The window of Rude TCP is the peer's: it says nothing of the path.
        let by_window_bps = match self.last.law == "fp_rude" {
            true => 0.0,
            false => self.window_allows_bps(),
        };
        let paced_bps = match self.last.pacing_rate_bytes_per_s {
            0 => f64::INFINITY,
            rate => rate as f64 * 8.0,
        };
        let rule_bps = self.rule.and_then(|rule| rule.path_rate_bps);
        let path_bps = rule_bps.map_or(f64::INFINITY, |bps| bps as f64);
        let tried_bps = self.best_rate_bps.max(by_window_bps);
        tried_bps.min(paced_bps).min(path_bps)
    }

    /// What the path is known to carry, over what it carries now.
    fn known_gain(&self) -> f64 {
        self.known_bps() / self.goodput_bps().max(1.0)
    }

    /// The best delivery rate, as far as the flow may send at it again, over what the path carries now.
    fn best_gain(&self) -> f64 {
        self.best_rate_bps.min(self.known_bps()) / self.goodput_bps().max(1.0)
    }

    /// A buffer for what the path is known to carry, bytes; the lower bound is twice the present one's use.
    fn wanted_buffer_bytes(&self, present_bytes: f64) -> f64 {
        let bdp_bytes = self.known_bps() / 8.0 * self.base_rtt_us() / 1e6;
        bdp_bytes.max(2.0 * present_bytes)
    }

    /// Queueing delay from which on a queue is meant, no jitter: a quarter of the round trip, but 3 ms at
    /// least, the noise of a busy host, and 10 ms at most, which few queues that overflow fall short of. On a path
    /// shorter than 3 ms a queue of a round trip is one: switches' buffers are no longer.
    pub(crate) fn queue_threshold_us(&self) -> f64 {
        let base_us = self.base_rtt_us();
        (0.25 * base_us).clamp(base_us.min(3_000.0), 10_000.0)
    }
}

/// A buffer size as the policy file writes it, rounded up to 64 KiB.
fn buffer(bytes: f64) -> String {
    let kib = (bytes / 65536.0).ceil().max(1.0) * 64.0;
    format!("{kib}KiB")
}

/// A rate as the policy file writes it.
fn rate(bps: f64) -> String {
    format!("{}kbit", (bps / 1000.0).round().max(8.0))
}

#[cfg(test)]
mod tests;
