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

/// Numbers that differ by less are the same.
const SAME: f64 = 1.1;

/// So many moments in a row are no chance.
const MOMENTS: usize = 2;
const MORE_MOMENTS: usize = 3;
const MANY_MOMENTS: usize = 8;

/// A queue is what delays by a quarter of the base round-trip time, 3 ms at least and 10 ms at most.
const LEAST_QUEUE_US: f64 = 3e3;
const MOST_QUEUE_US: f64 = 10e3;

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
    /// Moments in a row with a longer round trip.
    longer: Option<Longer>,
    /// Moments in a row in which more buffer brought nothing.
    idle: usize,
    doubt: Option<Doubt>,
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

/// Whether flows fill a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Empty,
    Full,
}

/// Moments in a row with a longer round trip.
#[derive(Clone, Copy, Debug)]
struct Longer {
    moments: usize,
    /// Those in which segments were sent again.
    lossy: usize,
    least_us: f64,
    /// The slowest of the latest moments whose round-trip times are the same.
    level: Moment,
    /// What the latest moment shows beside the level before it.
    shown: Option<Shown>,
}

/// What two moments with a longer round trip show.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    /// A path of this round trip, µs.
    Path(f64),
    Queue,
}

impl Shown {
    fn of(level: &Moment, now: &Moment, before_bps: f64) -> Option<Shown> {
        let is_same_rtt = is_same(now.rtt_us, level.rtt_us);
        // What ran at the rate of the path until then may have been its queue.
        let may_be_longer = now.rtt_us > level.rtt_us && !is_same(level.bps, before_bps);
        // More in flight is faster: the level's own did not fill the path.
        if now.bps >= OFF * level.bps && (is_same_rtt || may_be_longer) {
            return Some(Shown::Path(level.rtt_us.min(now.rtt_us)));
        }
        // Less in flight, or more, and the rate is the same.
        (!is_same_rtt && is_same(now.bps, level.bps)).then_some(Shown::Queue)
    }
}

impl Longer {
    fn first(now: &Moment) -> Longer {
        Longer {
            moments: 1,
            lossy: now.lost.into(),
            least_us: now.rtt_us,
            level: *now,
            shown: None,
        }
    }

    fn then(self, now: &Moment, before_bps: f64) -> Longer {
        let level = self.level;
        let is_slowest = is_same(now.rtt_us, level.rtt_us) && level.bps <= now.bps;
        Longer {
            moments: self.moments + 1,
            lossy: self.lossy + usize::from(now.lost),
            least_us: self.least_us.min(now.rtt_us),
            level: if is_slowest { level } else { *now },
            shown: Shown::of(&level, now, before_bps),
        }
    }

    /// What follows does not belong to the queue until now.
    fn anew(self) -> Longer {
        Longer {
            moments: 0,
            lossy: 0,
            least_us: f64::INFINITY,
            ..self
        }
    }
}

fn is_same(one: f64, other: f64) -> bool {
    (1.0 / SAME..=SAME).contains(&(one / other))
}

fn queue_of(now: &Moment, base_us: f64) -> Queue {
    let least_us = (base_us / 4.0).clamp(LEAST_QUEUE_US.min(base_us), MOST_QUEUE_US);
    match now.mean_rtt_us >= base_us + least_us {
        true => Queue::Full,
        false => Queue::Empty,
    }
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
            longer: None,
            idle: 0,
            doubt: None,
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
        let seen = match self.doubt {
            Some(doubt) => self.follow_in_doubt(now, doubt),
            None => self.follow_rtt(now),
        };
        if let Some(queue) = seen {
            self.follow_rate(now, queue);
        }
    }

    /// Answers whether there is a queue; none while it cannot be told.
    fn follow_rtt(&mut self, now: &Moment) -> Option<Queue> {
        let base_us = *self.base_us.get_or_insert(now.rtt_us);
        if now.rtt_us <= OFF * base_us {
            self.base_us = Some(base_us.min(now.rtt_us));
            let known = self.rate.filter(|rate| rate.is_of_path);
            self.before_bps = known.map_or(now.bps, |rate| rate.bps);
            self.longer = None;
            return Some(queue_of(now, base_us));
        }
        let longer = match self.longer {
            Some(longer) => longer.then(now, self.before_bps),
            None => Longer::first(now),
        };
        self.longer = Some(longer);
        let is_slower = OFF * now.bps < self.before_bps;
        // A flow that its program holds back keeps no queue of its own.
        let has_no_queue = now.limit == Some(Limit::Application) && !now.receives;
        match (longer.shown, now.limit) {
            (Some(Shown::Path(rtt_us)), _) => {
                self.is_longer(rtt_us);
                let is_longer_still = now.rtt_us > OFF * rtt_us;
                self.longer = is_longer_still.then(|| Longer::first(now));
                Some(queue_of(now, rtt_us))
            }
            _ if has_no_queue && longer.moments >= MOMENTS => self.is_longer(longer.least_us),
            _ if has_no_queue => None,
            _ if !is_slower => {
                self.longer = Some(longer.anew());
                Some(Queue::Full)
            }
            (Some(Shown::Queue), _) => Some(Queue::Full),
            // A longer path loses nothing for being longer, but for what is sent again by mistake at the change.
            (None, None) => {
                let is_full = longer.lossy >= MOMENTS || longer.moments >= MANY_MOMENTS;
                is_full.then_some(Queue::Full)
            }
            _ if longer.moments < MOMENTS => None,
            (None, Some(Limit::OwnBuffer)) => {
                self.is_longer(longer.least_us);
                self.doubt = Some(Doubt {
                    base_us,
                    bps: now.bps,
                    moments: 0,
                });
                self.ask_for_more(now);
                None
            }
            (None, Some(_)) => self.is_longer(longer.least_us),
        }
    }

    fn is_longer(&mut self, rtt_us: f64) -> Option<Queue> {
        self.base_us = Some(rtt_us);
        self.longer = None;
        Some(Queue::Empty)
    }

    /// The flows have got twice the buffer: on a longer path they are faster for it, in a queue they are not.
    fn follow_in_doubt(&mut self, now: &Moment, doubt: Doubt) -> Option<Queue> {
        if now.rtt_us <= OFF * doubt.base_us {
            self.base_us = Some(doubt.base_us.min(now.rtt_us));
            self.doubt = None;
            return Some(Queue::Full);
        }
        if now.bps >= OFF * doubt.bps {
            self.base_us = self.base_us.map(|base_us| base_us.min(now.rtt_us));
            self.doubt = None;
            return Some(Queue::Empty);
        }
        let moments = doubt.moments + 1;
        self.doubt = Some(Doubt { moments, ..doubt });
        if moments >= MORE_MOMENTS {
            self.base_us = Some(doubt.base_us);
            self.doubt = None;
            self.set_by_path(now.bps);
        }
        None
    }

    fn follow_rate(&mut self, now: &Moment, queue: Queue) {
        match now.limit {
            None => self.follow_rate_of_path(now, queue),
            Some(Limit::OwnBuffer) => self.follow_rate_of_buffer(now),
            Some(_) => {
                if self.rate.is_none_or(|rate| now.bps > OFF * rate.bps) {
                    self.rate = Some(at_least(now.bps));
                }
            }
        }
    }

    /// A rate that was reached counts at once, a lower one when the latest moments agree. Without a queue it may be a flow
    /// that begins, or recovers from a loss: then many have to.
    fn follow_rate_of_path(&mut self, now: &Moment, queue: Queue) {
        if let Some(rate) = self.rate.filter(|rate| !rate.is_of_path) {
            self.idle += 1;
            if queue == Queue::Empty && now.bps < rate.bps && self.idle < MANY_MOMENTS {
                // Its law makes use of the buffer by and by.
                return;
            }
            self.end_of_more(now.bps * MORE > OFF * rate.bps);
            self.of_path = vec![self.before_bps];
        }
        self.of_path.push(now.bps);
        let count = match queue {
            Queue::Full => MORE_MOMENTS,
            Queue::Empty => MANY_MOMENTS,
        };
        let latest = &self.of_path[self.of_path.len().saturating_sub(count)..];
        let bps = latest.iter().copied().fold(0.0, f64::max);
        let most = match self.rate {
            Some(rate) if bps < rate.bps => count,
            _ => MANY_MOMENTS,
        };
        let old = self.of_path.len().saturating_sub(most);
        self.of_path.drain(..old);
        self.reached(bps);
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
