// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a model is asked about.

use fatpath_link::headers::{ETHERNET_MSS_BYTES, IPV4_TCP_BYTES, TIMESTAMP_BYTES};

/// A path, and what limits a flow on it beside its law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Round-trip time without queues, above 0.
    pub rtt_s: f64,
    /// Share of the segments that are lost, 0 to 1.
    pub loss: f64,
    /// Data in a segment, above 0.
    pub mss_bytes: u32,
    /// Of the bottleneck, bits of IP packets a second; `None`: no limit.
    pub rate_bps: Option<f64>,
    /// The largest window that buffers allow, segments; `None`: no limit.
    pub max_window_pkts: Option<f64>,
}

impl Path {
    /// Over Ethernet, without other limits.
    pub fn new(rtt_s: f64, loss: f64) -> Path {
        Path {
            rtt_s,
            loss,
            mss_bytes: ETHERNET_MSS_BYTES,
            rate_bps: None,
            max_window_pkts: None,
        }
    }

    /// The rate of a flow that sends a window each round trip, bits of data a second.
    pub fn rate_of_window_bps(&self, window_pkts: f64) -> f64 {
        window_pkts * f64::from(self.mss_bytes) * 8.0 / self.rtt_s
    }

    /// The window that gives a rate, segments: its bandwidth-delay product.
    pub fn window_of_rate_pkts(&self, data_bps: f64) -> f64 {
        data_bps * self.rtt_s / (f64::from(self.mss_bytes) * 8.0)
    }

    /// What the bottleneck carries of data, bits a second: without the headers of IPv4 and TCP with timestamps.
    pub fn data_rate_bps(&self) -> Option<f64> {
        let mss_bytes = f64::from(self.mss_bytes);
        let packet_bytes = mss_bytes + f64::from(IPV4_TCP_BYTES + TIMESTAMP_BYTES);
        Some(self.rate_bps? * mss_bytes / packet_bytes)
    }

    /// The window that fills the bottleneck without a queue, segments.
    pub fn bdp_pkts(&self) -> Option<f64> {
        self.data_rate_bps()
            .map(|data_bps| self.window_of_rate_pkts(data_bps))
    }

    /// The smaller of the window that buffers allow and the one that fills the bottleneck; `None`: no limit.
    pub fn largest_useful_pkts(&self) -> Option<f64> {
        let limits = [self.max_window_pkts, self.bdp_pkts()];
        limits.into_iter().flatten().min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_and_a_tenth_of_a_second_are_8333_segments() {
        let path = Path {
            rate_bps: Some(1e9),
            ..Path::new(0.1, 0.0)
        };
        assert!((path.bdp_pkts().unwrap() - 8333.3).abs() < 0.1);
        let data_bps = path.data_rate_bps().unwrap();
        assert!((path.rate_of_window_bps(8333.33) / data_bps - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_smaller_limit_counts() {
        let mut path = Path::new(0.1, 0.0);
        assert_eq!(path.largest_useful_pkts(), None);
        path.max_window_pkts = Some(100.0);
        path.rate_bps = Some(1e9);
        assert_eq!(path.largest_useful_pkts(), Some(100.0));
    }
}
