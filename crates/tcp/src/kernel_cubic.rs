// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of the kernel's own `cubic` where it differs from the law of bpf/cc: HyStart as Linux 6.18 has it
//! (`hystart_update` of net/ipv4/tcp_cubic.c), and the window that grows by a twentieth a round trip at least until the
//! first loss (`bictcp_update`).
//!
//! After the first loss both are alike but for what docs/policy.md says. It knows nothing of pacing: `cubic` without a
//! queueing discipline has none.

use fatpath_cc::{RttSample, Window};

/// `hystart_low_window`: below it slow start is not watched.
const LEAST_WATCHED_PKTS: u32 = 16;
/// `hystart_ack_delta_us`: acknowledgements closer than this belong to one train.
const TRAIN_GAP_US: u64 = 2_000;
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_THRESH`: an eighth of the least round-trip time, within bounds.
const LEAST_RISE_US: u32 = 4_000;
const MOST_RISE_US: u32 = 16_000;
/// `cnt` of `bictcp_update` is at most this while no loss was met.
const ACKS_A_SEGMENT: u32 = 20;

/// What is remembered of a flow's start.
#[derive(Debug, Default)]
pub(super) struct KernelCubic {
    /// Slow start was ended.
    found: bool,
    /// A congestion event was met.
    has_lost: bool,
    /// Acknowledged segments that have not yet grown the window.
    credit_pkts: u32,
    round_end_seq: u32,
    round_began_us: u64,
    /// The latest acknowledgement of the train with which the round began.
    train_us: u64,
    least_rtt_us: u32,
    round_least_rtt_us: u32,
    samples: u32,
}

impl KernelCubic {
    /// A round trip was measured: slow start may end here.
    pub(super) fn note_rtt(&mut self, window: &mut Window, sample: &RttSample) {
        if sample.rtt_us == 0 {
            return;
        }
        self.least_rtt_us = match self.least_rtt_us {
            0 => sample.rtt_us,
            least => least.min(sample.rtt_us),
        };
        let is_watched = window.in_slow_start() && window.cwnd_pkts >= LEAST_WATCHED_PKTS;
        if self.found || !is_watched {
            return;
        }
        if (sample.acked_seq.wrapping_sub(self.round_end_seq) as i32) > 0 {
            self.begin_round(window.now_us, sample.next_seq);
        }
        let is_long = self.is_train_long(window.now_us);
        if self.has_risen(sample.rtt_us) || is_long {
            self.found = true;
            window.ssthresh_pkts = window.cwnd_pkts;
        }
    }

    fn begin_round(&mut self, now_us: u64, next_seq: u32) {
        self.round_end_seq = next_seq;
        self.round_began_us = now_us;
        self.train_us = now_us;
        self.round_least_rtt_us = u32::MAX;
        self.samples = 0;
    }

    /// Half of the least round-trip time was full of acknowledgements: so is half of the path.
    fn is_train_long(&mut self, now_us: u64) -> bool {
        if now_us - self.train_us > TRAIN_GAP_US {
            return false;
        }
        self.train_us = now_us;
        now_us - self.round_began_us > u64::from(self.least_rtt_us / 2)
    }

    fn has_risen(&mut self, rtt_us: u32) -> bool {
        self.round_least_rtt_us = self.round_least_rtt_us.min(rtt_us);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise_us = (self.least_rtt_us / 8).clamp(LEAST_RISE_US, MOST_RISE_US);
        self.round_least_rtt_us > self.least_rtt_us + rise_us
    }

    /// Segments were acknowledged, and the law has grown the window from `before_pkts`.
    pub(super) fn acked(&mut self, window: &mut Window, before_pkts: u32, acked_pkts: u32) {
        if self.has_lost || before_pkts < window.ssthresh_pkts {
            return;
        }
        self.credit_pkts += acked_pkts;
        let least_pkts = before_pkts + self.credit_pkts / ACKS_A_SEGMENT;
        self.credit_pkts %= ACKS_A_SEGMENT;
        let least_pkts = least_pkts.min(window.clamp_pkts);
        window.cwnd_pkts = window.cwnd_pkts.max(least_pkts);
    }

    /// A congestion event.
    pub(super) fn met_congestion(&mut self) {
        self.has_lost = true;
        self.found = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When slow start ends, ms after the round began, where every acknowledgement took 80 ms and comes `gap_us` after the
    /// one before.
    fn ends_after_ms(gap_us: u64) -> Option<u64> {
        let mut kernel = KernelCubic::default();
        let mut window = Window::new(100);
        for ack in 1..1000 {
            window.now_us = u64::from(ack) * gap_us;
            let sample = RttSample {
                rtt_us: 80_000,
                acked_seq: ack,
                next_seq: 2000,
            };
            kernel.note_rtt(&mut window, &sample);
            if !window.in_slow_start() {
                return Some((window.now_us - gap_us) / 1000);
            }
        }
        None
    }

    #[test]
    fn a_train_of_acknowledgements_for_half_of_a_round_trip_ends_slow_start() {
        assert_eq!(ends_after_ms(1_000), Some(41));
        assert_eq!(ends_after_ms(2_000), Some(42));
        assert_eq!(ends_after_ms(2_001), None, "no train");
    }

    /// Which acknowledgement of the second round ends slow start, where those of the first took 80 ms, these `rtt_us`, and none
    /// is of a train.
    fn ends_in_second_round(rtt_us: u32) -> Option<u32> {
        let mut kernel = KernelCubic::default();
        let mut window = Window::new(100);
        for ack in 1..=40 {
            let is_first = ack <= 20;
            window.now_us = u64::from(ack) * 3_000;
            let sample = RttSample {
                rtt_us: if is_first { 80_000 } else { rtt_us },
                acked_seq: ack,
                next_seq: if is_first { 20 } else { 40 },
            };
            kernel.note_rtt(&mut window, &sample);
            if !window.in_slow_start() {
                return Some(ack - 20);
            }
        }
        None
    }

    #[test]
    fn a_rise_by_more_than_an_eighth_ends_slow_start_after_eight_samples() {
        assert_eq!(ends_in_second_round(90_001), Some(9));
        assert_eq!(ends_in_second_round(90_000), None);
    }
}
