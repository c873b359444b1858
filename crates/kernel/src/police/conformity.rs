// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow with congestion control would reach at the loss and the round-trip time seen (pure).
//!
//! Reports measure by Floyd and Fall ("Promoting the Use of End-to-End Congestion Control", 1999, 3.2): what Reno
//! would reach by Mathis et al. (1997), 1.22 × MSS / (RTT × √p), with each retransmission as a loss. A penalty asks
//! for more: see [`Passed::is_unresponsive`].

/// √(3/2), of Mathis et al. for a receiver that acknowledges each segment.
const RENO: f64 = 1.22;
/// CUBIC's mean window, in segments, over (RTT / p)^(3/4), with RTT in seconds (RFC 9438, 5.1: C = 0.4, β = 0.7).
const CUBIC: f64 = 1.054;
/// Above so many times a law's rate a flow does not conform to it.
const TIMES: f64 = 4.0;
/// Fewer repeated segments, or events, in a look than this say nothing about a rate of loss.
const LEAST: f64 = 3.0;

/// What passed of a flow between two looks.
pub(crate) struct Passed {
    pub(crate) bytes: f64,
    pub(crate) repeated_bytes: f64,
    /// Losses within a round trip are one event, to which a sender answers once.
    pub(crate) loss_events: f64,
    pub(crate) interval_s: f64,
    pub(crate) rtt_s: f64,
    /// Round trip that is taken for flows whose own is not known.
    pub(crate) least_rtt_s: f64,
    pub(crate) segment_bytes: f64,
}

impl Passed {
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes / self.interval_s
    }

    pub(crate) fn loss(&self) -> f64 {
        self.repeated_bytes / self.bytes
    }

    /// The rate over Reno's, if it should be reported; none when too little was repeated to tell.
    pub(crate) fn times_reno(&self) -> Option<f64> {
        if self.repeated_bytes < LEAST * self.segment_bytes {
            return None;
        }
        let reno = RENO * self.segment_bytes / (self.rtt_s * self.loss().sqrt());
        Some(self.bytes_per_s() / reno).filter(|times| *times >= TIMES)
    }

    /// It sends several times what Reno and CUBIC would, by what favours it: loss events instead of losses, and the
    /// shorter of the round trips, for a measured one may hold the time for which the program waited.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.loss_events >= LEAST && self.bytes_per_s() >= TIMES * self.conforming_bytes_per_s()
    }

    fn conforming_bytes_per_s(&self) -> f64 {
        let event_rate = self.loss_events * self.segment_bytes / self.bytes;
        let rtt_s = self.rtt_s.min(self.least_rtt_s);
        let reno_pkts = RENO / event_rate.sqrt();
        let cubic_pkts = CUBIC * (rtt_s / event_rate).powf(0.75);
        reno_pkts.max(cubic_pkts) * self.segment_bytes / rtt_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(interval_s: f64, rate_bps: f64, loss: f64, rtt_s: f64) -> Passed {
        let bytes = rate_bps / 8.0 * interval_s;
        Passed {
            bytes,
            repeated_bytes: bytes * loss,
            loss_events: (bytes * loss / 1448.0).min(interval_s / rtt_s),
            interval_s,
            rtt_s,
            least_rtt_s: rtt_s,
            segment_bytes: 1448.0,
        }
    }

    fn reno_bps(loss: f64, rtt_s: f64) -> f64 {
        RENO * 1448.0 * 8.0 / (rtt_s * loss.sqrt())
    }

    #[test]
    fn four_times_reno_is_told_whatever_loss_and_distance() {
        for (loss, rtt_s) in [(0.001_f64, 0.1), (0.01, 0.02), (0.05, 0.001)] {
            let times = |times: f64| passed(1000.0, times * reno_bps(loss, rtt_s), loss, rtt_s);
            let five = times(5.0).times_reno().expect("it is above");
            assert!((five - 5.0).abs() < 1e-9, "{five}");
            assert_eq!(times(3.9).times_reno(), None);
        }
    }

    #[test]
    fn half_a_gigabit_at_one_percent_and_a_tenth_of_a_second_is_not_reno() {
        let flow = passed(1.0, 5e8, 0.01, 0.1);
        assert!(flow.times_reno().expect("it is above") > 100.0);
        assert!(flow.is_unresponsive());
    }

    #[test]
    fn without_loss_nothing_is_told_of_a_flow() {
        assert_eq!(passed(1.0, 1e10, 0.0, 0.1).times_reno(), None);
        assert_eq!(passed(1.0, 1e5, 0.1, 0.1).times_reno(), None, "one segment");
        assert!(!passed(1.0, 1e10, 0.0, 0.1).is_unresponsive());
    }

    /// On a fat path CUBIC is many times Reno, and on no path many times itself.
    #[test]
    fn cubic_is_not_unresponsive() {
        for (loss, rtt_s) in [
            (1e-6_f64, 0.2_f64),
            (1e-4, 0.1),
            (0.01, 0.02),
            (0.05, 0.001),
        ] {
            let cubic_pkts = CUBIC * (rtt_s / loss).powf(0.75);
            let bps = (cubic_pkts * 1448.0 * 8.0 / rtt_s).max(reno_bps(loss, rtt_s));
            assert!(!passed(1000.0, bps, loss, rtt_s).is_unresponsive());
            assert!(!passed(1000.0, 3.0 * bps, loss, rtt_s).is_unresponsive());
        }
        assert!(
            passed(1000.0, reno_bps(1e-6, 0.2) * 4.0, 1e-6, 0.2)
                .times_reno()
                .is_some()
        );
    }

    /// A burst that a full queue drops is one loss to the sender's law.
    #[test]
    fn a_burst_of_losses_is_one_event() {
        let mut flow = passed(10.0, 2e7, 0.1, 0.02);
        flow.loss_events = 20.0;
        assert!(flow.times_reno().is_some() && !flow.is_unresponsive());
    }

    /// A server whose client asked for nothing in the first five seconds.
    #[test]
    fn a_measured_round_trip_that_holds_a_pause_harms_nobody() {
        let mut flow = passed(10.0, reno_bps(0.01, 0.01), 0.01, 5.0);
        flow.least_rtt_s = 0.01;
        assert!(!flow.is_unresponsive());
    }
}
