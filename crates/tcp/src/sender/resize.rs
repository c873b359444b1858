// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments of another size, where the path carries other packets from now on.

use super::Sender;

/// A law's memory of the path, in segments, holds for others of no more than this part more or less.
const SIMILAR_PART: u32 = 4;

impl Sender {
    /// New segments hold at most so many bytes from now on, and leave at no more than this rate. A window of longer ones
    /// stays as long in bytes; one of shorter ones stays in segments, as Linux has it, and is no more in bytes. What was sent
    /// keeps its number and its length; whoever sends it again may leave a part of it out.
    pub fn resize_segments(&mut self, now_ns: u64, mss_bytes: u32, pacing_rate_bps: Option<u64>) {
        let (mss_bytes, before) = (mss_bytes.max(1), self.mss_bytes);
        self.mss_bytes = mss_bytes;
        self.buffer.resize_segments(mss_bytes);
        self.pacer.set_ceiling(pacing_rate_bps);
        if mss_bytes > before {
            let of_longer = |pkts: u32| {
                let pkts = u64::from(pkts) * u64::from(before) / u64::from(mss_bytes);
                (pkts as u32).max(2)
            };
            self.window.cwnd_pkts = of_longer(self.window.cwnd_pkts);
            if self.window.ssthresh_pkts < i32::MAX as u32 {
                self.window.ssthresh_pkts = of_longer(self.window.ssthresh_pkts);
            }
        }
        if mss_bytes.abs_diff(before) > before / SIMILAR_PART {
            self.begin_rate_again(now_ns, mss_bytes < before);
        }
    }

    /// What leaves from now on leaves at no more than this rate.
    pub fn set_pacing_rate(&mut self, rate_bps: u64) {
        self.pacer.set_ceiling(Some(rate_bps));
    }

    /// Something leaves that is no segment: the pace counts it.
    pub fn pace_other(&mut self, now_ns: u64, bytes: u32) {
        self.pace(now_ns, bytes);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::TcpSpec;
    use fatpath_cc::Law;

    /// Windows of laws of both kinds, segments: before, and when segments are of another size.
    #[test]
    fn a_window_is_never_more_in_bytes_than_a_connection_begins_with() {
        for law in ["reno", "bbr"] {
            let cwnd_pkts = |initial_window_pkts, mss_bytes| {
                let spec = TcpSpec {
                    law: Law::named(law).unwrap(),
                    mss_bytes: 1400,
                    initial_window_pkts,
                    ..TcpSpec::default()
                };
                let mut sender = Sender::new(&spec, 1_000_000, 0);
                sender.resize_segments(0, mss_bytes, None);
                sender.figures().cwnd_pkts
            };
            assert_eq!(cwnd_pkts(60, 8400), 10, "{law}");
            assert_eq!(cwnd_pkts(6, 8400), 2, "{law}");
            assert_eq!(cwnd_pkts(60, 1400), 60, "{law}");
            assert_eq!(cwnd_pkts(60, 500), 60, "{law}");
        }
    }
}
