// SPDX-License-Identifier: MIT OR Apache-2.0
//! One path as its flows show it now, from one moment to the next: unlike an [`Estimate`](crate::Estimate), which rests on
//! many flows, it follows a path that changes under a flow that lives.
//!
//! A shorter round trip, and a rate that was reached, are certain. What is not: a longer round trip may be a queue, a lower
//! rate may be a flow that begins, and a flow that this host's buffer held back does not show what the path carries. Where
//! a buffer holds flows back, it is asked for twice as much: what the flows make of it tells a longer path, and one that
//! carries more, from a queue.

use crate::evidence::{Limit, MOST_BPS};
use crate::moment::{Moment, Window, Windows};

/// Less than a quarter is no other path.
const OFF: f64 = 1.25;

/// Round-trip times that differ by less are the same.
const SAME: f64 = 1.1;

/// So many moments in a row are no chance.
const MOMENTS: usize = 2;
const MORE_MOMENTS: usize = 3;

/// A buffer that holds flows back is asked for so many times what they reach.
const MORE: f64 = 2.0;

/// Where that brought nothing it is asked for again after a minute, then after twice as long each time.
const LEAST_WAIT_US: i64 = 60_000_000;
const MOST_WAIT_US: i64 = 600_000_000;

/// One path as its flows show it.
#[derive(Clone, Debug)]
pub struct Following {
    windows: Windows,
    at_us: i64,
    base_us: Option<f64>,
    rate: Option<FollowedRate>,
    /// The latest rates that the path itself set.
    of_path: Vec<f64>,
    /// The rate that was reached before the round trip became longer.
    before_bps: f64,
    /// Moments in a row with a longer round trip that is no queue, and their least.
    longer: usize,
    longer_us: f64,
    /// Moments in a row in which more buffer brought nothing.
    idle: usize,
    doubt: Option<Doubt>,
    last: Option<Moment>,
    asked_us: i64,
    wait_us: i64,
}

/// What a path carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowedRate {
    /// Bits a second.
    pub bps: f64,
    /// Whether the path set it; it may carry more otherwise.
    pub is_of_path: bool,
}

/// The round trip is longer and the rate lower: another path, or a queue.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    base_us: f64,
    bps: f64,
    moments: usize,
}

impl Default for Following {
    fn default() -> Following {
        Following {
            windows: Windows::default(),
            at_us: i64::MIN,
            base_us: None,
            rate: None,
            of_path: Vec::new(),
            before_bps: 0.0,
            longer: 0,
            longer_us: f64::MAX,
            idle: 0,
            doubt: None,
            last: None,
            asked_us: i64::MIN,
            wait_us: LEAST_WAIT_US,
        }
    }
}

impl Following {
    /// Takes windows of the path's flows that closed since the last time.
    pub fn take(&mut self, closed: impl IntoIterator<Item = Window>) {
        if let Some(moment) = self.windows.take(closed) {
            self.follow(&moment);
        }
    }

    /// When a flow last showed something, µs since 1970.
    pub fn at_us(&self) -> i64 {
        self.at_us
    }

    /// Round-trip time without the flows' own queue, µs.
    pub fn rtt_us(&self) -> Option<f64> {
        self.base_us
    }

    /// What the path carries.
    pub fn rate(&self) -> Option<FollowedRate> {
        self.rate
    }

    fn follow(&mut self, now: &Moment) {
        self.at_us = now.at_us;
        match self.doubt {
            Some(doubt) => self.follow_in_doubt(now, doubt),
            None => self.follow_rtt(now),
        }
        if self.doubt.is_none() {
            self.follow_rate(now);
        }
        self.last = Some(*now);
    }

    /// More in flight, and it takes no longer: there is no queue.
    fn shows_no_queue(&self, now: &Moment) -> bool {
        self.last.is_some_and(|last| {
            let of_rtt = now.rtt_us / last.rtt_us;
            now.bps >= OFF * last.bps && (1.0 / SAME..=SAME).contains(&of_rtt)
        })
    }

    fn follow_rtt(&mut self, now: &Moment) {
        let base_us = *self.base_us.get_or_insert(now.rtt_us);
        if now.rtt_us <= OFF * base_us {
            self.base_us = Some(base_us.min(now.rtt_us));
            self.before_bps = now.bps;
            self.end_longer();
            return;
        }
        if self.shows_no_queue(now) {
            self.base_us = Some(now.rtt_us);
            self.before_bps = now.bps;
            self.end_longer();
            return;
        }
        let is_slower = OFF * now.bps < self.before_bps;
        // A flow that its program holds back keeps no queue of its own.
        let has_no_queue = now.limit == Some(Limit::Application) && !now.receives;
        if !has_no_queue && (!is_slower || now.limit.is_none()) {
            // As fast as before: what takes longer is a queue. Or the path itself sets a lower rate, and has a queue.
            self.end_longer();
            return;
        }
        self.longer += 1;
        self.longer_us = self.longer_us.min(now.rtt_us);
        if self.longer < MOMENTS {
            return;
        }
        self.base_us = Some(self.longer_us);
        self.end_longer();
        if now.limit == Some(Limit::OwnBuffer) {
            self.doubt = Some(Doubt {
                base_us,
                bps: now.bps,
                moments: 0,
            });
            self.ask_for_more(now);
        }
    }

    fn end_longer(&mut self) {
        self.longer = 0;
        self.longer_us = f64::MAX;
    }

    /// The flows have got twice the buffer: on a longer path they are faster for it, in a queue they are not.
    fn follow_in_doubt(&mut self, now: &Moment, doubt: Doubt) {
        if now.rtt_us <= OFF * doubt.base_us {
            self.base_us = Some(doubt.base_us.min(now.rtt_us));
            self.doubt = None;
        } else if now.bps >= OFF * doubt.bps {
            self.base_us = self.base_us.map(|base_us| base_us.min(now.rtt_us));
            self.doubt = None;
        } else if doubt.moments + 1 >= MORE_MOMENTS {
            self.base_us = Some(doubt.base_us);
            self.doubt = None;
            self.set_by_path(now.bps);
        } else {
            self.doubt = Some(Doubt {
                moments: doubt.moments + 1,
                ..doubt
            });
        }
    }

    fn follow_rate(&mut self, now: &Moment) {
        match now.limit {
            None => self.follow_rate_of_path(now),
            Some(Limit::OwnBuffer) => self.follow_rate_of_buffer(now),
            Some(_) => {
                if self.rate.is_none_or(|rate| now.bps > OFF * rate.bps) {
                    self.rate = Some(at_least(now.bps));
                }
            }
        }
    }

    /// A rate that was reached counts at once, a lower one when the latest moments agree: flows begin slowly, and
    /// recover from losses.
    fn follow_rate_of_path(&mut self, now: &Moment) {
        match self.rate {
            Some(rate) if rate.is_of_path => {}
            Some(rate) => self.end_of_more(now.bps * MORE > OFF * rate.bps),
            None => {}
        }
        if self.rate.is_some_and(|rate| !rate.is_of_path) {
            self.of_path.clear();
        }
        self.of_path.push(now.bps);
        let old = self.of_path.len().saturating_sub(MORE_MOMENTS);
        self.of_path.drain(..old);
        self.reached(self.of_path.iter().copied().fold(0.0, f64::max));
    }

    fn follow_rate_of_buffer(&mut self, now: &Moment) {
        let wanted_bps = MORE * now.bps;
        match self.rate {
            Some(rate) if rate.is_of_path => {
                let is_near = now.bps * OFF >= rate.bps;
                let is_due = now.at_us >= self.asked_us.saturating_add(self.wait_us);
                if now.bps > OFF * rate.bps || is_near && is_due {
                    self.ask_for_more(now);
                }
            }
            // They have got as much already.
            Some(rate) if wanted_bps <= OFF * rate.bps => {
                self.idle += 1;
                if self.idle >= MORE_MOMENTS {
                    self.end_of_more(false);
                    self.set_by_path(now.bps);
                }
            }
            _ => self.ask_for_more(now),
        }
    }

    fn ask_for_more(&mut self, now: &Moment) {
        self.asked_us = now.at_us;
        self.idle = 0;
        self.rate = Some(at_least(MORE * now.bps));
    }

    /// Where it brought nothing, it is long until more is asked for again.
    fn end_of_more(&mut self, brought_something: bool) {
        self.idle = 0;
        self.wait_us = match brought_something {
            true => LEAST_WAIT_US,
            false => (2 * self.wait_us).min(MOST_WAIT_US),
        };
    }

    fn set_by_path(&mut self, bps: f64) {
        self.of_path = vec![bps];
        self.reached(bps);
    }

    fn reached(&mut self, bps: f64) {
        self.before_bps = bps;
        self.rate = Some(FollowedRate {
            bps,
            is_of_path: true,
        });
    }
}

fn at_least(bps: f64) -> FollowedRate {
    FollowedRate {
        bps: bps.min(MOST_BPS),
        is_of_path: false,
    }
}

#[cfg(test)]
mod tests;
