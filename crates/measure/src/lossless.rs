// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for the highest rate at which a path loses nothing, by runs of UDP at one rate after another: half of what is
//! left goes with each run.

use crate::Values;

/// The rate is found when it is known to this share.
const PRECISION: f64 = 0.02;
/// Of a rate of which less arrives, and nothing is lost, less was sent. A run of a second is measured over some more.
const SENT: f64 = 0.9;
/// A rate below a thousandth of the highest is not looked for.
const MOST_RUNS: u32 = 16;

/// What is known so far.
#[derive(Debug)]
pub struct Lossless {
    most_bps: u64,
    /// The highest at which all arrived.
    low_bps: u64,
    /// Beyond this something would be lost.
    high_bps: Option<u64>,
    /// The lowest at which something was lost.
    lossy_bps: Option<u64>,
    runs: u32,
    /// The sender was no faster than this.
    is_bounded: bool,
}

impl Lossless {
    /// No run is faster than `most_bps`.
    pub fn up_to(most_bps: u64) -> Lossless {
        Lossless {
            most_bps,
            low_bps: 0,
            high_bps: None,
            lossy_bps: None,
            runs: 0,
            is_bounded: false,
        }
    }

    /// The rate of the next run; `None`: there is no other.
    pub fn next(&self) -> Option<u64> {
        let high_bps = match self.high_bps {
            None => return (self.runs == 0).then_some(self.most_bps),
            Some(high_bps) => high_bps,
        };
        let is_known = (high_bps - self.low_bps) as f64 <= PRECISION * high_bps as f64;
        let ends = is_known || self.is_bounded || self.runs == MOST_RUNS;
        (!ends).then_some(self.low_bps.midpoint(high_bps))
    }

    /// A run at `rate_bps` gave these values. One that says nothing of loss found none.
    pub fn answer(&mut self, rate_bps: u64, values: &Values) {
        let number = |name: &str| values.get(name).map(|(value, _)| *value);
        let loss = number("loss").unwrap_or(0.0);
        let passed_bps = number("goodput").map_or(0, |bps| bps as u64).min(rate_bps);
        self.runs += 1;
        if loss > 0.0 {
            // More than arrived of a run does not pass without loss.
            let arrived_bps = (rate_bps as f64 * (1.0 - loss) * (1.0 + PRECISION)) as u64;
            let high_bps = arrived_bps.min(rate_bps).max(self.low_bps);
            self.high_bps = Some(high_bps);
            self.lossy_bps = self.lossy_bps.into_iter().chain([rate_bps]).min();
        } else {
            self.is_bounded = (passed_bps as f64) < rate_bps as f64 * SENT;
            let low_bps = if self.is_bounded {
                passed_bps
            } else {
                rate_bps
            };
            self.low_bps = self.low_bps.max(low_bps);
        }
    }

    /// What was found; `None`: something was lost at every rate.
    pub fn values(&self) -> Option<Values> {
        let name = match self.high_bps.is_some() && !self.is_bounded {
            true => "lossless_rate",
            false => "lossless_rate_at_least",
        };
        let mut values = Values::from([(name.to_owned(), (self.low_bps as f64, "b/s".into()))]);
        values.insert("runs".into(), (f64::from(self.runs), "1".into()));
        let lossy = self.lossy_bps.map(|bps| (bps as f64, "b/s".into()));
        values.extend(lossy.map(|lossy| ("lossy_rate".to_owned(), lossy)));
        (self.low_bps > 0).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a path that carries so much, by a sender of at most `sends_bps`; and the rates that were tried.
    fn search(most_bps: u64, carries_bps: u64, sends_bps: u64) -> (Option<Values>, Vec<u64>) {
        let mut search = Lossless::up_to(most_bps);
        let mut tried = vec![];
        while let Some(rate_bps) = search.next() {
            tried.push(rate_bps);
            let sent_bps = rate_bps.min(sends_bps);
            let arrived_bps = sent_bps.min(carries_bps) as f64;
            let loss = 1.0 - arrived_bps / sent_bps as f64;
            let values = [("goodput", arrived_bps), ("loss", loss)];
            let values = values.map(|(name, value)| (name.to_owned(), (value, String::new())));
            search.answer(rate_bps, &Values::from(values));
        }
        (search.values(), tried)
    }

    #[test]
    fn the_rate_of_a_path_is_found_from_below() {
        for carries_bps in [3_000_000, 20_000_000, 957_000_000, 999_000_000] {
            let (found, tried) = search(1_000_000_000, carries_bps, u64::MAX);
            let found = found.unwrap();
            let rate_bps = found["lossless_rate"].0;
            let carries = carries_bps as f64;
            assert!(
                (0.97 * carries..=carries).contains(&rate_bps),
                "{found:?} of {carries}"
            );
            assert!(found["lossy_rate"].0 >= carries, "{found:?}");
            assert!(tried.len() <= 8, "{tried:?}");
        }
    }

    #[test]
    fn a_path_that_loses_nothing_is_only_known_to_be_as_fast() {
        let (found, tried) = search(1_000_000_000, 2_000_000_000, u64::MAX);
        assert_eq!(found.unwrap()["lossless_rate_at_least"].0, 1e9);
        assert_eq!(tried, [1_000_000_000]);
    }

    #[test]
    fn a_slow_sender_says_nothing_of_higher_rates() {
        let (found, tried) = search(1_000_000_000, 2_000_000_000, 400_000_000);
        assert_eq!(found.unwrap()["lossless_rate_at_least"].0, 4e8);
        assert_eq!(tried.len(), 1);
    }

    #[test]
    fn a_path_that_always_loses_has_no_such_rate() {
        let (found, tried) = search(1_000_000_000, 0, u64::MAX);
        assert!(found.is_none());
        assert!(tried.len() <= MOST_RUNS as usize);
    }
}
