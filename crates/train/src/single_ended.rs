// SPDX-License-Identifier: MIT OR Apache-2.0
//! A search whose packets the other end answers, where nobody runs there who could time their arrival.
//!
//! The answers' spacing is then what is known. A path carries so many bits a second; a host that answers, or a limit on its
//! answers, so many packets. So trains of packets half as long follow: over a path their rate is the same, at such a host it is
//! half (Jacobson's pathchar 1997 and Jin's pipechar 2001 tell the two apart by size, too).

use crate::estimate::{BLIND_DOUBT, OVERLOADED};
use crate::{Estimate, LEAST_PACKETS, Limits, Response, Search, Train};

/// Trains of short packets.
const SHORT_TRAINS: usize = 5;
/// Of the path's rate in a second, what each of them sends; with those of [`Search`] all send less than 1.
const SHORT_SHARE: f64 = 0.02;
/// Their rate, of the bottleneck's.
const SHORT_MULTIPLE: f64 = 1.5;
/// A short train shows a limit on packets if it had more of them in a second than the bottleneck has of long ones: half of its
/// rate, and a margin.
const SHORT_LEAST: f64 = 0.75;

/// A measurement by answers that is under way.
#[derive(Clone, Debug)]
pub struct SingleEndedSearch {
    search: Search,
    limits: Limits,
    short: Vec<Response>,
    short_trains: usize,
    short_bytes: u64,
}

/// By how much the rate is higher if every packet costs the same time besides that of its bits, where packets half as long had
/// this share of it: the rate by the difference of the two lengths' times, as pathchar has it, against that of the longer ones.
fn doubt(short_share: f64) -> f64 {
    ((1.0 - short_share) / (2.0 * short_share - 1.0).max(0.01)).min(1.0)
}

/// What answers say of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleEndedEstimate {
    /// Its doubts are no less than what packets half as long say.
    pub of: Estimate,
    /// Rate of packets half as long, as a share of the bottleneck's, 1 at most; none where no train showed it.
    pub short_share: Option<f64>,
}

impl SingleEndedSearch {
    /// A measurement within `limits`.
    pub fn new(limits: Limits) -> SingleEndedSearch {
        SingleEndedSearch {
            search: Search::new(limits),
            limits,
            short: vec![],
            short_trains: 0,
            short_bytes: 0,
        }
    }

    /// The train to send now; `None` at the end.
    pub fn next(&self) -> Option<Train> {
        self.search.next().or_else(|| self.short_train())
    }

    fn short_train(&self) -> Option<Train> {
        if self.short_trains == SHORT_TRAINS || self.search.gave_up() {
            return None;
        }
        let bottleneck = self.search.estimate()?.bottleneck;
        // They would not take such a doubt away, and what an answerer that lies says must not decide how much is sent.
        if bottleneck.at_least || bottleneck.doubt >= BLIND_DOUBT {
            return None;
        }
        let packet_bytes = self.limits.packet_bytes / 2;
        let bps = bottleneck.bps.min(self.limits.most_bps as f64);
        let packets = SHORT_SHARE * bps / 8.0 / f64::from(packet_bytes.max(1));
        let rate_bps = SHORT_MULTIPLE * bottleneck.bps;
        Some(Train {
            rate_bps: (rate_bps as u64).clamp(1, self.limits.most_bps),
            packets: (packets as u32).max(LEAST_PACKETS),
            packet_bytes,
        })
    }

    /// Takes in what became of the train that [`SingleEndedSearch::next`] named.
    pub fn answer(&mut self, train: &Train, response: Option<Response>) {
        if train.packet_bytes == self.limits.packet_bytes {
            return self.search.answer(train, response);
        }
        self.short_trains += 1;
        self.short_bytes += train.bytes();
        self.short.extend(response);
    }

    /// What is known; `None` where too few trains were answered for it to mean anything.
    pub fn estimate(&self) -> Option<SingleEndedEstimate> {
        let mut of = self.search.estimate().filter(|_| !self.search.gave_up())?;
        of.sent_bytes += self.short_bytes;
        let short_share = self.short_share(&of);
        if !of.bottleneck.at_least {
            let least = short_share.map_or(BLIND_DOUBT, doubt);
            for value in [&mut of.bottleneck, &mut of.available] {
                value.doubt = value.doubt.max(least);
            }
        }
        Some(SingleEndedEstimate { of, short_share })
    }

    /// The median of the short trains.
    fn short_share(&self, of: &Estimate) -> Option<f64> {
        let bottleneck_bps = of.bottleneck.bps;
        let cross = 1.0 - of.available.bps / bottleneck_bps;
        let fast_enough = |response: &&Response| response.input_bps > SHORT_LEAST * bottleneck_bps;
        let share = |response: &Response| {
            let stretch = response.input_bps / bottleneck_bps + cross;
            let expected = if stretch > OVERLOADED { stretch } else { 1.0 };
            (expected / response.stretch()).min(1.0)
        };
        let mut shares: Vec<f64> = self.short.iter().filter(fast_enough).map(share).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a bottleneck makes of a train, and a host behind it that answers so many packets a second.
    fn response(train: &Train, path_bps: f64, packets_a_second: f64) -> Response {
        let input_bps = train.rate_bps as f64;
        let host_bps = packets_a_second * f64::from(train.packet_bytes) * 8.0;
        Response {
            input_bps,
            output_bps: input_bps.min(path_bps).min(host_bps),
            sent_packets: train.packets,
            arrived_packets: train.packets,
            queued_ns: 0,
            in_overflow: false,
        }
    }

    fn measured(path_bps: f64, packets_a_second: f64) -> SingleEndedEstimate {
        let mut search = SingleEndedSearch::new(Limits::default());
        while let Some(train) = search.next() {
            search.answer(&train, Some(response(&train, path_bps, packets_a_second)));
        }
        search.estimate().unwrap()
    }

    #[test]
    fn the_rate_of_a_path_does_not_depend_on_the_packets() {
        for path_bps in [10e6, 100e6, 1e9] {
            let found = measured(path_bps, 1e9);
            assert!((found.of.bottleneck.bps / path_bps - 1.0).abs() < 1e-6);
            assert!(found.short_share.unwrap() > 0.99, "{found:?}");
            assert!(found.of.bottleneck.doubt < 0.1, "{found:?}");
            let sent = found.of.sent_bytes as f64 * 8.0 / path_bps;
            assert!((0.3..1.0).contains(&sent), "{sent} of a second");
        }
    }

    #[test]
    fn a_host_that_answers_so_many_packets_a_second_is_no_path() {
        let found = measured(1e9, 5_000.0);
        assert!((found.of.bottleneck.bps / 60e6 - 1.0).abs() < 1e-6);
        assert!((found.short_share.unwrap() - 0.5).abs() < 1e-6, "{found:?}");
        assert!(found.of.bottleneck.doubt >= BLIND_DOUBT, "{found:?}");
        assert!(found.of.available.doubt >= BLIND_DOUBT, "{found:?}");
    }

    #[test]
    fn what_each_packet_costs_besides_its_bits_is_the_doubt() {
        // 1500 and 750 bytes at 100 Mb/s with 10 µs each: 130 and 70 µs, so 92.3 and 85.7 Mb/s.
        let share = (750.0 / 70.0) / (1500.0 / 130.0);
        let by_slope = 1.0 + doubt(share);
        assert!((92.3 * by_slope - 100.0).abs() < 0.1, "{by_slope}");
        assert_eq!((doubt(1.0), doubt(0.5), doubt(0.1)), (0.0, 1.0, 1.0));
    }

    #[test]
    fn short_trains_without_an_answer_leave_the_rate_in_doubt() {
        let mut search = SingleEndedSearch::new(Limits::default());
        while let Some(train) = search.next() {
            let is_long = train.packet_bytes == Limits::default().packet_bytes;
            search.answer(&train, is_long.then(|| response(&train, 50e6, 1e9)));
        }
        let found = search.estimate().unwrap();
        assert_eq!(
            (found.short_share, search.short_trains),
            (None, SHORT_TRAINS)
        );
        assert!(found.of.bottleneck.doubt >= BLIND_DOUBT, "{found:?}");
    }

    #[test]
    fn short_trains_that_were_too_slow_to_tell_say_nothing() {
        let mut search = SingleEndedSearch::new(Limits::default());
        while let Some(train) = search.next() {
            let mut response = response(&train, 50e6, 1e9);
            if train.packet_bytes != Limits::default().packet_bytes {
                response.input_bps = 20e6;
                response.output_bps = 20e6;
            }
            search.answer(&train, Some(response));
        }
        assert_eq!(search.estimate().unwrap().short_share, None);
    }

    #[test]
    fn who_answers_nothing_gives_no_estimate() {
        let mut search = SingleEndedSearch::new(Limits::default());
        while let Some(train) = search.next() {
            search.answer(&train, None);
        }
        assert_eq!((search.estimate(), search.short_trains), (None, 0));
    }

    #[test]
    fn a_lower_bound_needs_no_short_packets() {
        let most_bps = 40_000_000;
        let limits = Limits {
            most_bps,
            ..Limits::default()
        };
        let mut search = SingleEndedSearch::new(limits);
        while let Some(train) = search.next() {
            search.answer(&train, Some(response(&train, 1e9, 1e9)));
        }
        let found = search.estimate().unwrap();
        assert!(found.of.bottleneck.at_least && search.short_trains == 0);
        assert!(found.of.bottleneck.doubt < BLIND_DOUBT, "{found:?}");
    }
}
