// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs of a run measured: goodput at the receiver, retransmissions, what datagrams met,
//! throughput over time.
//!
//! Pure. Start with [`Measured`].

use serde::{Deserialize, Serialize};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What the receiver got, bits a second over the whole run.
    pub goodput_bps: f64,
    /// Segments retransmitted; `None` where the sender's system does not count them.
    pub retransmits: Option<u64>,
    /// When it began, seconds since the programs of its run began.
    #[serde(default)]
    pub begin_s: f64,
    /// Over which `goodput_bps` is taken, in seconds.
    #[serde(default)]
    pub lasting_s: f64,
    /// What its datagrams met; `None` with TCP.
    #[serde(default)]
    pub udp: Option<Udp>,
    /// Whether the server sent (`-R`).
    pub reverse: bool,
    /// Whose intervals these are.
    pub seen_by: SeenBy,
    /// Throughput over time.
    pub intervals: Vec<Interval>,
    /// Retransmission timeouts; `None` where nothing counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Times at which the law reduced the window; `None` where nothing counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_events: Option<u64>,
    /// Of these, those taken back since the loss was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_events: Option<u64>,
    /// Transfers that were completed; `None` where nothing times them, and of several programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// The congestion window; `None` where nothing tells of it, and of several connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// Transfers that were completed: web objects, chunks, files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfers {
    /// How many.
    pub count: u64,
    /// How long they took: the mean.
    pub mean_s: f64,
    /// Half of them took longer.
    pub median_s: f64,
    /// One of a hundred took longer.
    pub p99_s: f64,
}

/// How the congestion window of one connection moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Mean over time, segments.
    pub mean_pkts: f64,
    /// Coefficient of variation over time: standard deviation by mean.
    pub cov: f64,
    /// From the first loss until the window was again what it had been; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
}

/// What the receiver saw of a UDP test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Udp {
    /// Datagrams that were sent.
    pub packets: u64,
    /// Of these, those that did not come.
    pub lost_packets: u64,
    /// Jitter as RFC 1889 has it, in milliseconds; of several tests, the mean.
    pub jitter_ms: f64,
}

impl Udp {
    /// Of all datagrams, in per cent.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.lost_packets as f64 / self.packets.max(1) as f64
    }
}

impl Transfers {
    /// By their names in tables.
    pub fn figures(&self) -> [(&'static str, f64); 4] {
        [
            ("transfers", self.count as f64),
            ("transfer_mean_s", self.mean_s),
            ("transfer_median_s", self.median_s),
            ("transfer_p99_s", self.p99_s),
        ]
    }
}

impl Window {
    /// By their names in tables.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 3] {
        [
            ("cwnd_mean_pkts", Some(self.mean_pkts)),
            ("cwnd_cov", Some(self.cov)),
            ("recovery_s", self.recovery_s),
        ]
    }
}

/// Which end counted the bytes of the intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenBy {
    /// The end that got the data: the true throughput.
    Receiver,
    /// The end that sent it: bytes given to the kernel, which its buffer hides.
    Sender,
}

/// The throughput of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Begin, seconds since the programs of the run began.
    #[serde(rename = "start")]
    pub start_s: f64,
    /// End, likewise.
    #[serde(rename = "end")]
    pub end_s: f64,
    /// Mean rate of application bytes in bits a second.
    #[serde(rename = "bits_per_second")]
    pub rate_bps: f64,
}

impl Measured {
    /// The same of a program that began so much later than its run.
    #[must_use]
    pub fn begun_at(mut self, begin_s: f64) -> Measured {
        self.begin_s += begin_s;
        for interval in &mut self.intervals {
            interval.start_s += begin_s;
            interval.end_s += begin_s;
        }
        self
    }

    /// What several programs of one run measured together; `None` of none. Goodput is all bytes over the
    /// time from the first begin to the last end: rates of different times would add up to more than the
    /// path carries.
    pub fn sum(all: &[&Measured]) -> Option<Measured> {
        let (first, others) = all.split_first()?;
        let mut n = 1.0;
        let mut sum = others.iter().fold((*first).clone(), |mut sum, next| {
            n += 1.0;
            sum.retransmits = either(sum.retransmits, next.retransmits, |a, b| a + b);
            sum.udp = either(sum.udp, next.udp, |a, b| Udp {
                packets: a.packets + b.packets,
                lost_packets: a.lost_packets + b.lost_packets,
                jitter_ms: a.jitter_ms + (b.jitter_ms - a.jitter_ms) / n,
            });
            sum.timeouts = either(sum.timeouts, next.timeouts, |a, b| a + b);
            sum.congestion_events =
                either(sum.congestion_events, next.congestion_events, |a, b| a + b);
            sum.undone_events = either(sum.undone_events, next.undone_events, |a, b| a + b);
            sum.window = None;
            if next.seen_by == SeenBy::Sender {
                sum.seen_by = SeenBy::Sender;
            }
            sum
        });
        if !others.is_empty() {
            sum.transfers = of_the_only_one(all);
            (sum.begin_s, sum.lasting_s) = span(all);
            sum.goodput_bps = goodput_bps(all, sum.lasting_s);
            sum.intervals = intervals(all);
        }
        Some(sum)
    }
}

/// Times of transfers: those of several programs have no common median.
fn of_the_only_one(all: &[&Measured]) -> Option<Transfers> {
    let mut timed = all.iter().filter_map(|one| one.transfers);
    let first = timed.next();
    first.filter(|_| timed.next().is_none())
}

/// The first begin, and from there to the last end.
fn span(all: &[&Measured]) -> (f64, f64) {
    let begin_s = all.iter().map(|one| one.begin_s).fold(f64::MAX, f64::min);
    let ends = all.iter().map(|one| one.begin_s + one.lasting_s);
    (begin_s, ends.fold(begin_s, f64::max) - begin_s)
}

fn goodput_bps(all: &[&Measured], lasting_s: f64) -> f64 {
    let bits = all.iter().map(|one| one.goodput_bps * one.lasting_s);
    match bits.sum::<f64>() / lasting_s {
        rate_bps if rate_bps.is_finite() => rate_bps,
        // None of them took any time.
        _ => 0.0,
    }
}

/// Throughput of all together, in intervals as long as the longest of any.
fn intervals(all: &[&Measured]) -> Vec<Interval> {
    let own = || all.iter().flat_map(|one| &one.intervals);
    let begin_s = own().map(|one| one.start_s).fold(f64::MAX, f64::min);
    let end_s = own().map(|one| one.end_s).fold(0.0, f64::max);
    let length_s = own().map(|one| one.end_s - one.start_s).fold(0.0, f64::max);
    if length_s <= 0.0 {
        return vec![];
    }
    // What is left of the last one may be the rounding of times.
    let count = ((end_s - begin_s) / length_s - 1e-6).ceil().max(1.0) as usize;
    let at = |n: usize| begin_s + n as f64 * length_s;
    let mut sum: Vec<Interval> = (0..count)
        .map(|n| Interval {
            start_s: at(n),
            end_s: if n + 1 == count { end_s } else { at(n + 1) },
            rate_bps: 0.0,
        })
        .collect();
    own().for_each(|one| share_out(one, begin_s, length_s, &mut sum));
    sum
}

/// Adds an interval to those of equal length that it lies in, each its part.
fn share_out(one: &Interval, begin_s: f64, length_s: f64, sum: &mut [Interval]) {
    let first = ((one.start_s - begin_s) / length_s) as usize;
    // It is no longer than they are, so it lies in two, or three by the rounding of times.
    for into in sum.iter_mut().skip(first.saturating_sub(1)).take(3) {
        let common_s = one.end_s.min(into.end_s) - one.start_s.max(into.start_s);
        into.rate_bps += one.rate_bps * common_s.max(0.0) / (into.end_s - into.start_s);
    }
}

/// Both joined, or the one that there is.
fn either<T>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    }
}

/// For tests of this crate.
#[cfg(test)]
pub(crate) mod examples {
    use super::*;

    pub(crate) fn measured(goodput_bps: f64) -> Measured {
        let interval = |n: u32| Interval {
            start_s: n.into(),
            end_s: f64::from(n) + 1.0,
            rate_bps: goodput_bps,
        };
        Measured {
            goodput_bps,
            begin_s: 0.0,
            lasting_s: 10.0,
            retransmits: Some(7),
            udp: None,
            reverse: false,
            seen_by: SeenBy::Receiver,
            intervals: (0..10).map(interval).collect(),
            timeouts: None,
            congestion_events: None,
            undone_events: None,
            transfers: None,
            window: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::examples::measured;
    use super::*;

    fn one(begin_s: f64, lasting_s: f64, rate_bps: f64) -> Measured {
        let mut one = measured(rate_bps);
        one.lasting_s = lasting_s;
        let interval = |n: u32| Interval {
            start_s: f64::from(n),
            end_s: f64::from(n) + 1.0,
            rate_bps,
        };
        one.intervals = (0..lasting_s as u32).map(interval).collect();
        one.begun_at(begin_s)
    }

    #[test]
    fn programs_one_after_the_other_never_exceed_their_path() {
        let sum = Measured::sum(&[&one(0.0, 5.0, 95e6), &one(5.0, 5.0, 95e6)]).unwrap();
        assert_eq!((sum.goodput_bps, sum.lasting_s), (95e6, 10.0));
        assert_eq!(sum.intervals.len(), 10);
        assert!(sum.intervals.iter().all(|one| one.rate_bps == 95e6));
    }

    #[test]
    fn programs_that_overlap_are_added_where_they_do() {
        let sum = Measured::sum(&[&one(0.5, 2.0, 10e6), &one(0.0, 4.0, 40e6)]).unwrap();
        assert_eq!(sum.goodput_bps, (2.0 * 10e6 + 4.0 * 40e6) / 4.0);
        let rates: Vec<f64> = sum.intervals.iter().map(|one| one.rate_bps / 1e6).collect();
        assert_eq!(rates, [45.0, 50.0, 45.0, 40.0]);
        // Of programs that begin and end together, the sum is that of the rates.
        let sum = Measured::sum(&[&one(1.0, 3.0, 10e6), &one(1.0, 3.0, 40e6)]).unwrap();
        assert_eq!((sum.goodput_bps, sum.begin_s), (50e6, 1.0));
    }

    #[test]
    fn transfers_of_several_programs_are_no_figure() {
        let without = one(0.0, 1.0, 1e6);
        let timed = |mean_s: f64| Measured {
            transfers: Some(Transfers {
                count: 1,
                mean_s,
                median_s: mean_s,
                p99_s: mean_s,
            }),
            ..without.clone()
        };
        let of = |all: &[&Measured]| Measured::sum(all).unwrap().transfers;
        let (one, two, three) = (timed(1.0), timed(2.0), timed(3.0));
        assert_eq!(of(&[&one]), one.transfers);
        assert_eq!(of(&[&without, &two]), two.transfers);
        assert_eq!(of(&[&one, &two]), None);
        assert_eq!(of(&[&one, &two, &three]), None);
    }
}
