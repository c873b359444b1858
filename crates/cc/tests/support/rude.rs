// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a rude flow, for tests of its fair window.

use fatpath_cc::{RttSample, RudeNow};

pub const RTT_US: u32 = 100_000;

/// Where HyStart++ is off, or nothing was measured.
pub const NO_RTT: &RttSample = &RttSample {
    rtt_us: 0,
    acked_seq: 0,
    next_seq: 0,
};

/// A round trip of `r_pkts` segments, an acknowledgement for each or for `pkts_per_ack`.
pub struct Path {
    pub now: RudeNow,
    pkts_per_ack: u32,
    /// Of xorshift64, which never reaches 0.
    random: u64,
}

impl Path {
    pub fn new(r_pkts: u32, pkts_per_ack: u32) -> Path {
        Path {
            now: RudeNow {
                now_us: 1,
                rate_bytes_per_s: 14_480 * u64::from(r_pkts),
                in_flight_pkts: r_pkts,
                peer_window_pkts: r_pkts,
                max_window_pkts: u32::MAX,
                srtt_us: RTT_US,
                min_rtt_us: RTT_US,
                mss_bytes: 1448,
                wire_bytes: 1448,
                ..RudeNow::default()
            },
            pkts_per_ack,
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    fn is_lost(&mut self, p: f64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64) < p * (1u64 << 53) as f64
    }

    /// An acknowledgement of segments of which each is lost with probability `p`.
    pub fn ack(&mut self, p: f64) -> RudeNow {
        let r_pkts = u64::from(self.now.in_flight_pkts);
        self.now.now_us += u64::from(RTT_US) * u64::from(self.pkts_per_ack) / r_pkts;
        for _ in 0..self.pkts_per_ack {
            match self.is_lost(p) {
                true => self.now.lost_pkts = self.now.lost_pkts.wrapping_add(1),
                false => self.now.delivered_pkts = self.now.delivered_pkts.wrapping_add(1),
            }
        }
        let left_pkts = self.now.in_flight_pkts - self.pkts_per_ack;
        RudeNow {
            in_flight_pkts: left_pkts,
            ..self.now
        }
    }
}
