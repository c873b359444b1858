// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast segments are delivered, as Linux samples it (`tcp_rate.c`,
//! draft-cheng-iccrg-delivery-rate-estimation): what was delivered between the sending of a segment
//! and its arrival, over the longer of the times that sending and arriving took.

use std::collections::VecDeque;

use super::arrivals::Arrivals;

/// How things stood when a segment was last sent.
#[derive(Clone, Copy, Debug)]
struct Mark {
    sent_ns: u64,
    /// When the segment was sent that was the newest to have arrived.
    first_sent_ns: u64,
    delivered_pkts: u64,
    delivered_ns: u64,
    is_app_limited: bool,
    /// Segments of two sizes are delivered until it is: they do not count together.
    is_mixed: bool,
    at_sending: AtSending,
}

/// What Linux does not keep with each segment: two of them draft-ietf-ccwg-bbr-06 does (2.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtSending {
    /// In flight, with the segment (`P.tx_in_flight`).
    pub(super) in_flight_pkts: u32,
    /// Found lost by then (`P.lost`).
    pub(super) lost_pkts: u64,
    /// Known by then to have met congestion and been marked.
    pub(super) marked_pkts: u64,
}

/// What one acknowledgement tells of the rate: Linux's `struct rate_sample`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Delivered when that segment was sent which was sent last of those that arrived.
    pub(super) prior_delivered_pkts: u64,
    /// Delivered since.
    pub(super) delivered_pkts: u64,
    /// 0: there is none, or it is shorter than any round trip, and tells of a burst, not of the path, or it is of segments of
    /// two sizes.
    pub(super) interval_ns: u64,
    pub(super) is_app_limited: bool,
    pub(super) at_sending: AtSending,
}

impl Sample {
    /// Bytes a second that arrived, of segments of this size; 0: there is none.
    pub(super) fn bytes_per_s(&self, mss_bytes: u32) -> u64 {
        let bytes = self.delivered_pkts.saturating_mul(mss_bytes.into());
        let bytes = u128::from(bytes) * 1_000_000_000;
        bytes.checked_div(self.interval_ns.into()).unwrap_or(0) as u64
    }
}

/// The samples of a flow.
#[derive(Debug, Default)]
pub(super) struct DeliveryRate {
    /// Of the segments that are on their way, from number `first` on.
    marks: VecDeque<Mark>,
    first: u64,
    delivered_pkts: u64,
    delivered_ns: u64,
    first_sent_ns: u64,
    /// Segments below are of another size than those from there on.
    other_below: u64,
    /// While fewer have been delivered, the program is what limits; 0: it does not.
    app_limited_until_pkts: u64,
    pkts_per_s: f64,
    is_app_limited: bool,
}

impl DeliveryRate {
    /// A segment leaves, for the first time or again. `was_idle`: nothing was on its way.
    pub(super) fn sent(&mut self, now_ns: u64, number: u64, was_idle: bool, at_sending: AtSending) {
        if was_idle {
            (self.first_sent_ns, self.delivered_ns) = (now_ns, now_ns);
            (self.marks, self.first) = (VecDeque::new(), number);
        }
        let mark = Mark {
            sent_ns: now_ns,
            first_sent_ns: self.first_sent_ns,
            delivered_pkts: self.delivered_pkts,
            delivered_ns: self.delivered_ns,
            is_app_limited: self.is_held_by_program(),
            is_mixed: self.first < self.other_below,
            at_sending,
        };
        match self.marks.get_mut((number - self.first) as usize) {
            Some(sent) => *sent = mark,
            None => self.marks.push_back(mark),
        }
    }

    /// Segments from number `next` on are of another size.
    pub(super) fn resize_segments(&mut self, next: u64) {
        self.other_below = next;
        self.marks.iter_mut().for_each(|mark| mark.is_mixed = true);
    }

    /// All has been sent that the program gave.
    pub(super) fn program_limits(&mut self, in_flight: u32) {
        self.app_limited_until_pkts = (self.delivered_pkts + u64::from(in_flight)).max(1);
    }

    /// What the program gave has not been delivered yet (`app_limited`).
    pub(super) fn is_held_by_program(&self) -> bool {
        self.app_limited_until_pkts > 0
    }

    /// An acknowledgement arrived, by which `delivered_pkts` have been delivered since the flow began,
    /// `una` is the oldest segment on its way, and no round trip took less than `min_rtt_ns`.
    pub(super) fn acknowledged(
        &mut self,
        arrivals: &Arrivals,
        delivered_pkts: u64,
        una: u64,
        min_rtt_ns: u64,
    ) -> Sample {
        if delivered_pkts > self.app_limited_until_pkts {
            self.app_limited_until_pkts = 0;
        }
        self.delivered_pkts = delivered_pkts;
        if arrivals.delivered_pkts > 0 {
            self.delivered_ns = arrivals.now_ns;
        }
        let index = arrivals.newest.map(|(_, number)| number - self.first);
        let mark = index.and_then(|index| self.marks.get(index as usize).copied());
        let sample = mark.map(|mark| {
            self.first_sent_ns = mark.sent_ns;
            self.sample(&mark, arrivals.now_ns, min_rtt_ns)
        });
        let gone = una.saturating_sub(self.first).min(self.marks.len() as u64);
        self.marks.drain(..gone as usize);
        self.first += gone;
        sample.unwrap_or_default()
    }

    fn sample(&mut self, mark: &Mark, now_ns: u64, min_rtt_ns: u64) -> Sample {
        let sending_ns = mark.sent_ns - mark.first_sent_ns;
        let interval_ns = sending_ns.max(now_ns - mark.delivered_ns);
        let is_plausible = interval_ns > 0 && interval_ns >= min_rtt_ns && !mark.is_mixed;
        let sample = Sample {
            prior_delivered_pkts: mark.delivered_pkts,
            delivered_pkts: self.delivered_pkts - mark.delivered_pkts,
            interval_ns: if is_plausible { interval_ns } else { 0 },
            is_app_limited: mark.is_app_limited,
            at_sending: mark.at_sending,
        };
        self.note(&sample);
        sample
    }

    fn note(&mut self, sample: &Sample) {
        if sample.interval_ns == 0 {
            return;
        }
        let pkts_per_s = sample.delivered_pkts as f64 * 1e9 / sample.interval_ns as f64;
        if !sample.is_app_limited || pkts_per_s >= self.pkts_per_s {
            self.pkts_per_s = pkts_per_s;
            self.is_app_limited = sample.is_app_limited;
        }
    }

    /// The latest sample, segments a second, and whether the program was what limited it.
    pub(super) fn latest(&self) -> (f64, bool) {
        (self.pkts_per_s, self.is_app_limited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Segments 0 to 3 are of one size, those from 4 on of another: none tells a rate of which some delivered were others.
    #[test]
    fn segments_of_two_sizes_do_not_count_together() {
        let mut rate = DeliveryRate::default();
        for number in 0..4 {
            rate.sent(number * MS, number, number == 0, AtSending::default());
        }
        let is_sample = |rate: &mut DeliveryRate, now_ms: u64, number: u64| {
            let mut arrivals = Arrivals::new(now_ms * MS, 0, 0, 0);
            (arrivals.newest, arrivals.delivered_pkts) = (Some((0, number)), 1);
            let sample = rate.acknowledged(&arrivals, number + 1, number + 1, 0);
            sample.interval_ns > 0
        };
        assert!(is_sample(&mut rate, 20, 0));
        rate.resize_segments(4);
        rate.sent(21 * MS, 4, false, AtSending::default());
        assert!((1..4).all(|number| !is_sample(&mut rate, 30 + number, number)));
        rate.sent(34 * MS, 5, false, AtSending::default());
        assert!(!is_sample(&mut rate, 41, 4), "left beside the others");
        assert!(is_sample(&mut rate, 54, 5));
    }
}
