// SPDX-License-Identifier: MIT OR Apache-2.0
//! A span of a flow's life in the numbers that a judgement needs.

use crate::rule::Rule;
use crate::totals::Totals;
use fatpath_api::Sample;
use fatpath_api::{Rates, Shares};

/// The time up to a sample: what was counted in it, and the sample itself.
#[derive(Clone, Copy, Debug)]
pub struct Span<'s> {
    /// The sample at its end.
    pub last: &'s Sample,
    /// The rule that the flow met, where it is known.
    pub(crate) rule: Option<&'s Rule>,
    /// What was counted in it.
    pub(crate) passed: Totals,
    /// What was counted up to its end.
    pub(crate) totals: &'s Totals,
    /// What had been when its law's start was over; none before.
    pub(crate) settled: Option<&'s Totals>,
    /// Highest delivery rate of the flow's life that the application did not limit, bits a second.
    pub(crate) best_rate_bps: f64,
    /// Of all flows between its addresses, where they are known.
    pub(crate) least_rtt_us: Option<u32>,
}

impl Span<'_> {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.passed.seconds()
    }

    /// Bits a second that the peer acknowledged.
    pub(crate) fn goodput_bps(&self) -> f64 {
        per_second(self.passed.bytes_acked, &self.passed)
    }

    /// Bits a second that arrived at the peer, in order or not, where all segments are full. What was acknowledged is more in
    /// a span that begins before a lost segment and ends behind its repair.
    pub(crate) fn delivered_bps(&self) -> f64 {
        self.mss_bytes() * per_second(self.passed.delivered_pkts, &self.passed)
    }

    /// Bits a second that were received.
    pub(crate) fn received_bps(&self) -> f64 {
        per_second(self.passed.bytes_received, &self.passed)
    }

    /// Of the bytes sent, those retransmitted.
    pub(crate) fn retransmitted_share(&self) -> f64 {
        ratio(self.passed.bytes_retrans, self.passed.bytes_sent)
    }

    /// What held the sender back, in shares that add up to 1.
    pub(crate) fn shares(&self) -> Shares {
        let (p, seen) = (&self.passed, &self.passed.seen);
        let all_us = (p.now_ns / 1000).max(1) as f64;
        let mut left = 1.0;
        // The chronometers tick in jiffies: their sum may pass the span by a few.
        let mut take = |us: u64| {
            let share = (us as f64 / all_us).min(left);
            left -= share;
            share
        };
        let receiver = take(p.rwnd_limited_us);
        let send_buffer = take(p.sndbuf_limited_us + seen.buffer_limited_us);
        let timeout = take(seen.stalled_us);
        let trickling = take(seen.app_limited_us);
        let held_us = p.rwnd_limited_us
            + p.sndbuf_limited_us
            + seen.buffer_limited_us
            + seen.stalled_us
            + seen.app_limited_us;
        let network = take(p.busy_us.saturating_sub(held_us));
        Shares {
            application: trickling + left.max(0.0),
            send_buffer,
            receiver,
            timeout,
            network,
        }
    }

    /// Mean of the measurements in the span; the smoothed one when there was none.
    pub(crate) fn mean_rtt_us(&self) -> f64 {
        match self.passed.count_rtt {
            0 => f64::from(self.last.srtt_us),
            count => self.passed.sum_rtt_us as f64 / count as f64,
        }
    }

    /// Least round trip of the flow, so the path without its queues.
    pub(crate) fn base_rtt_us(&self) -> f64 {
        f64::from(self.last.min_rtt_us.unwrap_or(self.last.srtt_us))
    }

    /// The same of all flows between its addresses: a flow that began while others kept a queue had none without.
    fn path_rtt_us(&self) -> f64 {
        let base_us = self.base_rtt_us();
        self.least_rtt_us
            .map_or(base_us, |us| base_us.min(us.into()))
    }

    /// Mean queueing delay.
    pub(crate) fn queue_us(&self) -> f64 {
        (self.mean_rtt_us() - self.base_rtt_us()).max(0.0)
    }

    /// The same over the least of all flows between its addresses.
    pub(crate) fn path_queue_us(&self) -> f64 {
        (self.mean_rtt_us() - self.path_rtt_us()).max(0.0)
    }

    /// Of the bytes sent since its law's start was over, those retransmitted; none before.
    pub(crate) fn retransmitted_later_share(&self) -> Option<f64> {
        let later = self.totals.since(self.settled?);
        let is_shorter = later.now_ns < self.passed.now_ns;
        let p = if is_shorter { &later } else { &self.passed };
        Some(ratio(p.bytes_retrans, p.bytes_sent))
    }

    /// Mean queueing delay just before the window was reduced; none without a reduction.
    pub(crate) fn queue_before_loss_us(&self) -> Option<f64> {
        let p = &self.passed;
        let rtt_us = p.pre_cong_sum_rtt_us as f64 / p.cong_signals as f64;
        let queue_us = (rtt_us - self.path_rtt_us()).max(self.queue_of_window_us());
        (p.cong_signals > 0 && rtt_us > 0.0).then_some(queue_us)
    }

    /// Queueing delay of a whole window before the reductions, at the delivery rate then: a window that leaves at once, as
    /// after a pause of the program, fills a queue before any round-trip time shows it. 0 where it is less than a third of a
    /// round trip: a window that grows is larger than what the rate was measured with.
    fn queue_of_window_us(&self) -> f64 {
        let seen = &self.passed.seen;
        let window_pkts_s = ratio(seen.reduced_from_pkts, seen.reduced_at_kbytes_per_s) / 1e3;
        let held_us = window_pkts_s * f64::from(self.last.mss_bytes) * 1e6;
        let queue_us = held_us - self.path_rtt_us();
        let is_sure = 3.0 * queue_us >= self.path_rtt_us();
        if is_sure { queue_us } else { 0.0 }
    }

    /// Of the congestion signals that were seen one by one, the share that met hardly a queue; none where none was seen. Unlike the mean
    /// delay before them it does not rest on a first one that met a long queue of the flow's past.
    pub(crate) fn share_without_queue(&self) -> Option<f64> {
        let seen = &self.passed.seen;
        (seen.signals > 0).then(|| ratio(seen.signals_without_queue, seen.signals))
    }

    /// Mean over the busy time.
    pub(crate) fn mean_cwnd_pkts(&self) -> f64 {
        ratio(self.passed.seen.cwnd_pkts_us, self.passed.seen.busy_us)
    }

    /// Mean over the busy time.
    pub(crate) fn mean_in_flight_pkts(&self) -> f64 {
        ratio(self.passed.seen.in_flight_pkts_us, self.passed.seen.busy_us)
    }

    /// Standard deviation of the segments in flight over the busy time, over their mean.
    pub(crate) fn in_flight_variation(&self) -> f64 {
        let seen = &self.passed.seen;
        let of_squares = seen.in_flight_pkts_squared_us as f64 / seen.busy_us.max(1) as f64;
        variation(self.mean_in_flight_pkts(), of_squares)
    }

    /// Standard deviation of the delivery rate at which the window was reduced, over its mean; none of a few
    /// reductions.
    pub(crate) fn loss_rate_variation(&self) -> Option<f64> {
        let seen = &self.passed.seen;
        let mean = ratio(seen.reduced_at_kbytes_per_s, seen.reductions);
        let of_squares =
            seen.reduced_at_kbytes_per_s_squared as f64 / seen.reductions.max(1) as f64;
        let are_enough = seen.reductions >= LEAST_REDUCTIONS && mean > 0.0;
        are_enough.then(|| variation(mean, of_squares))
    }

    /// Mean over the busy time.
    pub(crate) fn mean_peer_window_bytes(&self) -> f64 {
        ratio(
            self.passed.seen.peer_window_bytes_us,
            self.passed.seen.busy_us,
        )
    }

    /// Share of the busy time.
    pub(crate) fn of_busy(&self, us: u64) -> f64 {
        ratio(us, self.passed.seen.busy_us)
    }

    /// Reductions of the window in a segment: the `p` of Mathis et al. 1997.
    pub(crate) fn reductions_per_segment(&self) -> f64 {
        ratio(self.passed.cong_signals, self.passed.data_segs_out)
    }

    pub(crate) fn rates(&self, average_bps: f64) -> Rates {
        Rates {
            goodput_bps: self.goodput_bps(),
            sent_bps: per_second(self.passed.bytes_sent, &self.passed),
            received_bps: self.received_bps(),
            retransmitted_share: self.retransmitted_share(),
            average_bps,
        }
    }
}

/// Of fewer, a deviation says nothing.
const LEAST_REDUCTIONS: u64 = 5;

/// Standard deviation over the mean, from the mean and that of the squares.
fn variation(mean: f64, mean_of_squares: f64) -> f64 {
    match mean > 0.0 {
        true => (mean_of_squares - mean * mean).max(0.0).sqrt() / mean,
        false => 0.0,
    }
}

pub(crate) fn per_second(bytes: u64, passed: &Totals) -> f64 {
    match passed.now_ns {
        0 => 0.0,
        ns => bytes as f64 * 8e9 / ns as f64,
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}
