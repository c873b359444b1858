// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which trains to send: faster and faster ones until one is slower at the other end, then trains at chosen multiples
//! of the rate that was found.

use crate::estimate::OVERLOADED;
use crate::{Estimate, Response, Train};

/// Growth of the rate from train to train while nothing is overloaded.
const GROWTH: u64 = 4;

/// How long a train of the first phase lasts.
const GROWING_NS: u64 = 15_000_000;

/// Stretch that ends the first phase: the rate of what arrived is then at least half the bottleneck's, where cross
/// traffic takes half of it.
const FOUND: f64 = 1.25;

/// A sender that reaches less of the planned rate than this is at its own limit.
const OWN_LIMIT: f64 = 0.7;

/// So many trains must show that limit: one may have been sent while the host was busy.
const OWN_LIMIT_TRAINS: usize = 3;

/// Input rates of the second phase, in multiples of the output rate so far. The fastest fixes the bottleneck's
/// rate, the slowest the cross traffic.
const MULTIPLES: [f64; 3] = [6.0, 1.15, 2.2];

/// How often each is sent.
const ROUNDS: usize = 4;

/// Of the path's rate in a second, what all trains of the second phase send.
const SHARE: f64 = 0.7;

/// The same of all trains, unusable ones among them.
const MOST_SHARE: f64 = 0.85;

/// Most attempts at a train that proved unusable, all together.
const MOST_FAILURES: usize = 16;

/// Least packets of a train, so that its rate is one.
pub const LEAST_PACKETS: u32 = 16;

/// What a search may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rate of the first train; paths below a third of it are measured badly.
    pub least_bps: u64,
    /// Greatest rate of a train.
    pub most_bps: u64,
    /// Length of a packet, IP and UDP headers included.
    pub packet_bytes: u32,
    /// Most bytes of a train.
    pub train_bytes: u64,
}

impl Limits {
    /// Trains of at most this rate, of packets of this length.
    pub fn between(most_bps: u64, packet_bytes: u32) -> Limits {
        let usual = Limits::default();
        Limits {
            least_bps: usual.least_bps.min(most_bps),
            most_bps,
            packet_bytes,
            ..usual
        }
    }
}

impl Default for Limits {
    /// From 8 Mb/s to 15 Gb/s, with packets of 1500 bytes.
    fn default() -> Self {
        Limits {
            least_bps: 8_000_000,
            most_bps: 15_000_000_000,
            packet_bytes: 1500,
            train_bytes: 16_000_000,
        }
    }
}

/// A measurement that is under way.
#[derive(Clone, Debug)]
pub struct Search {
    limits: Limits,
    responses: Vec<Response>,
    /// Of the first phase; none once the bottleneck's rate is roughly known.
    growing_bps: Option<u64>,
    /// Trains of the second phase that were answered.
    measured: usize,
    failures: usize,
    /// Trains that the sender could not send as fast as planned.
    limited: usize,
    sent_bytes: u64,
}

impl Search {
    /// A measurement within `limits`.
    pub fn new(limits: Limits) -> Search {
        Search {
            limits,
            responses: vec![],
            growing_bps: Some(limits.least_bps),
            measured: 0,
            failures: 0,
            limited: 0,
            sent_bytes: 0,
        }
    }

    /// The train to send now; `None` at the end.
    pub fn next(&self) -> Option<Train> {
        if self.failures > MOST_FAILURES {
            return None;
        }
        match self.growing_bps {
            Some(rate_bps) => {
                Some(self.train(rate_bps as f64, rate_bps as f64 / 8e9 * GROWING_NS as f64))
            }
            None => self.measuring(),
        }
    }

    /// Takes in what became of the train that [`Search::next`] named: its response, or none if it was unusable.
    pub fn answer(&mut self, train: &Train, response: Option<Response>) {
        self.sent_bytes += train.bytes();
        let Some(response) = response else {
            self.failures += 1;
            return;
        };
        let contradicted = self.is_contradicted_by(&response);
        self.responses.push(response);
        match self.growing_bps {
            Some(rate_bps) => self.growing_bps = self.grown(rate_bps, &response),
            None if contradicted => self.grow_again(train, &response),
            None => self.measured += 1,
        }
    }

    /// Whether a train passed at twice the rate at which earlier ones seemed to meet the bottleneck.
    fn is_contradicted_by(&self, response: &Response) -> bool {
        response.stretch() < OVERLOADED && response.input_bps > 2.0 * self.output_bps()
    }

    /// Those trains were held up by something else, such as a host that was busy. They are forgotten.
    fn grow_again(&mut self, train: &Train, passed: &Response) {
        let is_true = |response: &Response| {
            response.stretch() < OVERLOADED || response.input_bps > passed.input_bps
        };
        self.responses.retain(is_true);
        self.growing_bps = Some((train.rate_bps * 2).min(self.limits.most_bps));
        self.measured = 0;
        self.failures += 1;
    }

    /// Whether unusable trains ended it before half of the second phase was measured: what is known may then come of the few
    /// trains that were held up a little.
    pub fn gave_up(&self) -> bool {
        let half = MULTIPLES.len() * ROUNDS / 2;
        self.failures > MOST_FAILURES && self.measured < half
    }

    /// What is known so far.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.responses, self.sent_bytes)
    }

    /// What every train gave.
    pub fn responses(&self) -> &[Response] {
        &self.responses
    }

    fn grown(&mut self, rate_bps: u64, response: &Response) -> Option<u64> {
        let is_limited = response.input_bps < OWN_LIMIT * rate_bps as f64;
        self.limited += usize::from(is_limited);
        if response.stretch() > FOUND || self.limited >= OWN_LIMIT_TRAINS {
            return None;
        }
        match is_limited {
            true => Some(rate_bps),
            false if rate_bps >= self.limits.most_bps => None,
            false => Some((rate_bps * GROWTH).min(self.limits.most_bps)),
        }
    }

    fn measuring(&self) -> Option<Train> {
        let trains = MULTIPLES.len() * ROUNDS;
        let overloaded = self
            .responses
            .iter()
            .any(|response| response.stretch() > OVERLOADED);
        if self.measured >= trains || !overloaded {
            return None;
        }
        let output_bps = self.output_bps();
        let bytes = SHARE * output_bps / 8.0 / trains as f64;
        let multiple = MULTIPLES[self.measured % MULTIPLES.len()];
        let train = self.train(multiple * output_bps, bytes);
        let sent_bytes = (self.sent_bytes + train.bytes()) as f64;
        (sent_bytes <= MOST_SHARE * output_bps / 8.0).then_some(train)
    }

    /// Of the trains that overloaded the path, the upper quartile of the output rates: near the bottleneck's.
    fn output_bps(&self) -> f64 {
        let overloaded = self
            .responses
            .iter()
            .filter(|response| response.stretch() > OVERLOADED);
        let mut rates: Vec<f64> = overloaded.map(|response| response.output_bps).collect();
        rates.sort_by(f64::total_cmp);
        let upper = rates.get(rates.len() * 3 / 4);
        upper.copied().unwrap_or(self.limits.least_bps as f64)
    }

    fn train(&self, rate_bps: f64, bytes: f64) -> Train {
        let packet_bytes = u64::from(self.limits.packet_bytes.max(1));
        let most = self.limits.train_bytes / packet_bytes;
        let packets = (bytes as u64 / packet_bytes)
            .min(most)
            .max(LEAST_PACKETS.into());
        Train {
            rate_bps: (rate_bps as u64).clamp(1, self.limits.most_bps),
            packets: packets as u32,
            packet_bytes: self.limits.packet_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of `rate_bps` without others, and a host whose every second train is unusable.
    fn answer(search: &mut Search, train: &Train, rate_bps: f64, usable: bool) {
        let input_bps = train.rate_bps as f64;
        let response = Response {
            input_bps,
            output_bps: input_bps.min(rate_bps),
            sent_packets: train.packets,
            arrived_packets: train.packets,
            queued_ns: 0,
            in_overflow: false,
        };
        search.answer(train, usable.then_some(response));
    }

    #[test]
    fn unusable_trains_do_not_exceed_a_second_of_the_rate() {
        for rate_bps in [10e6, 100e6, 1e9, 5e9] {
            let mut search = Search::new(Limits::default());
            let mut number = 0;
            while let Some(train) = search.next() {
                number += 1;
                answer(&mut search, &train, rate_bps, number % 2 == 0);
            }
            let estimate = search.estimate().unwrap();
            assert!((estimate.bottleneck.bps / rate_bps - 1.0).abs() < 1e-6);
            assert!(estimate.sent_bytes as f64 * 8.0 < rate_bps, "{estimate:?}");
            assert!(!search.gave_up());
        }
    }

    #[test]
    fn a_stall_of_the_host_is_not_taken_for_the_bottleneck() {
        let mut search = Search::new(Limits::default());
        let mut number = 0;
        while let Some(train) = search.next() {
            number += 1;
            answer(
                &mut search,
                &train,
                if number == 2 { 5e6 } else { 500e6 },
                true,
            );
        }
        let estimate = search.estimate().unwrap();
        assert!(
            (estimate.bottleneck.bps / 500e6 - 1.0).abs() < 1e-6,
            "{estimate:?}"
        );
    }

    #[test]
    fn a_path_that_answers_nothing_is_given_up() {
        let mut search = Search::new(Limits::default());
        let mut sent = 0;
        while let Some(train) = search.next() {
            sent += 1;
            search.answer(&train, None);
        }
        assert_eq!((sent, search.estimate()), (MOST_FAILURES + 1, None));
        assert!(search.gave_up());
    }
}
