// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a bottleneck serves, exactly: no rounding is ever carried from packet to packet.
//!
//! A server is a function of time: the *work* that it could have done since moment 0, in units in which
//! a bit a second does a whole number every nanosecond, so that sums never drift. When bytes have been
//! served is the inverse of it. Knows nothing of packets and queues.

use std::fmt;
use std::ops::RangeInclusive;

use fatpath_units::show_rate;
use serde::{Deserialize, Serialize};

use crate::SpecError;

/// How fast a bottleneck serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// At once; no queue builds.
    Unlimited,
    /// At one rate, within [`Service::RANGE_BPS`].
    Constant {
        /// Bits per second.
        rate_bps: u64,
    },
    /// At rates that change at given times. A segment on the way goes on at the new rate.
    Steps {
        /// The steps, the first at 0, times rising; a rate of 0 is an outage.
        steps: Vec<RateStep>,
        /// When the steps begin anew, after the last one; `None`: the last rate stays.
        repeat_after_ns: Option<u64>,
    },
    /// By delivery opportunities, as mahimahi's traces list them: at each, 1504 bytes may leave, and
    /// what is not used is lost. Each segment costs 4 bytes beside its IP length, there and in the
    /// queue, so that 1500 bytes of IP fill an opportunity. A packet leaves when its last byte was
    /// delivered, and what arrives at the very moment of an opportunity waits for the next one.
    Opportunities {
        /// Milliseconds since the chain was made, not falling, the last from 1 to
        /// [`Service::MAX_TRACE_MS`]; the list then repeats.
        at_ms: Vec<u64>,
    },
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Since the chain was made, which is moment 0 of its caller's clock.
    pub at_ns: u64,
    /// Bits per second, within [`Service::RANGE_BPS`]; or 0: nothing leaves.
    pub rate_bps: u64,
}

impl Service {
    /// Rates that there are: 1 kb/s to 1 Tb/s.
    pub const RANGE_BPS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
    /// The longest list of opportunities: a year.
    pub const MAX_TRACE_MS: u64 = 365 * 24 * 3_600_000;

    /// What a segment costs this service beyond its IP length, whatever the overhead of the link.
    pub(crate) fn header_bytes(&self) -> u32 {
        match self {
            Service::Opportunities { .. } => TUN_HEADER_BYTES,
            Service::Unlimited | Service::Constant { .. } | Service::Steps { .. } => 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self {
            Service::Unlimited => Ok(()),
            Service::Constant { rate_bps } => check_rate(*rate_bps),
            Service::Steps {
                steps,
                repeat_after_ns,
            } => check_steps(steps, *repeat_after_ns),
            Service::Opportunities { at_ms } => check_opportunities(at_ms),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Service::Unlimited => f.write_str("rate unlimited"),
            Service::Constant { rate_bps } => write!(f, "rate {}", show_rate(*rate_bps)),
            Service::Steps { steps, .. } => write!(f, "rate in {} steps", steps.len()),
            Service::Opportunities { at_ms } => {
                write!(f, "rate trace of {} packets", at_ms.len())
            }
        }
    }
}

fn check_rate(rate_bps: u64) -> Result<(), SpecError> {
    match Service::RANGE_BPS.contains(&rate_bps) {
        true => Ok(()),
        false => Err(SpecError::Rate(rate_bps)),
    }
}

fn check_steps(steps: &[RateStep], repeat_after_ns: Option<u64>) -> Result<(), SpecError> {
    let refuse = |message: &str| Err(SpecError::Other(message.to_owned()));
    if steps.first().is_none_or(|first| first.at_ns != 0) {
        return refuse("steps of a rate: give one at least, the first at time 0");
    }
    if !steps.is_sorted_by(|one, next| one.at_ns < next.at_ns) {
        return refuse("steps of a rate: give times that rise");
    }
    let last_ns = steps.last().map_or(0, |last| last.at_ns);
    if repeat_after_ns.is_some_and(|repeat_ns| repeat_ns <= last_ns) {
        return refuse("steps of a rate that repeat: give a time after the last step");
    }
    let mut rates = steps.iter().map(|step| step.rate_bps);
    rates.try_for_each(|rate_bps| match rate_bps {
        0 => Ok(()),
        rate_bps => check_rate(rate_bps),
    })
}

fn check_opportunities(at_ms: &[u64]) -> Result<(), SpecError> {
    let refuse = |message: &str| Err(SpecError::Other(message.to_owned()));
    if !at_ms.is_sorted() {
        return refuse("trace of delivery opportunities: give milliseconds that do not fall");
    }
    let last_ms = at_ms.last().copied().unwrap_or_default();
    match (1..=Service::MAX_TRACE_MS).contains(&last_ms) {
        true => Ok(()),
        false => refuse(
            "trace of delivery opportunities: give one at least, the last after 1 ms to a year",
        ),
    }
}

/// One byte in units of work: 8 bits, each a second at 1 bit/s.
const BYTE_WORK: u128 = 8 * 1_000_000_000;

const MS_NS: u64 = 1_000_000;

/// The work of `len_bytes`.
#[inline]
pub(crate) fn work_of(len_bytes: u64) -> u128 {
    u128::from(len_bytes) * BYTE_WORK
}

/// The least number of whole bytes that covers `work`.
#[inline]
pub(crate) fn bytes_covering(work: u128) -> u64 {
    match u64::try_from(work) {
        // Up to 2 GB, in a tenth of the time.
        Ok(work) => work.div_ceil(BYTE_WORK as u64),
        Err(_) => work.div_ceil(BYTE_WORK) as u64,
    }
}

/// A [`Service`] with a limit, ready for arithmetic. A `u128` of work holds 584 years at 1 Tb/s.
#[derive(Debug)]
pub(crate) enum Server {
    Rates(Rates),
    Opportunities(Opportunities),
}

impl Server {
    /// The server of a checked service; `None` if it is unlimited.
    pub(crate) fn of(service: &Service) -> Option<Server> {
        match service {
            Service::Unlimited => None,
            Service::Constant { rate_bps } => Some(Server::Rates(Rates::constant(*rate_bps))),
            Service::Steps {
                steps,
                repeat_after_ns,
            } => Some(Server::Rates(Rates::new(steps, *repeat_after_ns))),
            Service::Opportunities { at_ms } => Some(Server::Opportunities(Opportunities {
                at_ms: at_ms.clone(),
            })),
        }
    }

    /// What could have been served from moment 0 to `now_ns`.
    pub(crate) fn work(&self, now_ns: u64) -> u128 {
        match self {
            Server::Rates(rates) => rates.work(now_ns),
            Server::Opportunities(opportunities) => opportunities.work(now_ns),
        }
    }

    /// The first whole nanosecond at which `work` could have been done; `None` if it never comes.
    pub(crate) fn done_ns(&self, work: u128) -> Option<u64> {
        match self {
            Server::Rates(rates) => rates.done_ns(work),
            Server::Opportunities(opportunities) => opportunities.done_ns(work),
        }
    }

    /// Where a server stands that has no packet from `now_ns` on: the rest of an opportunity is lost.
    #[inline]
    pub(crate) fn idle(&self, free_at: u128, now_ns: u64) -> u128 {
        match self {
            Server::Rates(_) => free_at,
            Server::Opportunities(opportunities) => opportunities.work(now_ns),
        }
    }
}

/// Rates from moments on.
#[derive(Debug)]
pub(crate) struct Rates {
    /// The first begins at 0.
    pieces: Vec<Piece>,
    repeat: Option<Repeat>,
}

#[derive(Debug)]
struct Piece {
    from_ns: u64,
    /// Done before `from_ns`.
    work: u128,
    rate_bps: u128,
}

#[derive(Debug)]
struct Repeat {
    after_ns: u64,
    work: u128,
}

impl Rates {
    fn constant(rate_bps: u64) -> Rates {
        Rates::new(&[RateStep { at_ns: 0, rate_bps }], None)
    }

    fn new(steps: &[RateStep], repeat_after_ns: Option<u64>) -> Rates {
        let mut rates = Rates {
            pieces: Vec::with_capacity(steps.len()),
            repeat: None,
        };
        for step in steps {
            let work = rates.work_once(step.at_ns);
            rates.pieces.push(Piece {
                from_ns: step.at_ns,
                work,
                rate_bps: step.rate_bps.into(),
            });
        }
        rates.repeat = repeat_after_ns.map(|after_ns| Repeat {
            after_ns,
            work: rates.work_once(after_ns),
        });
        rates
    }

    fn work(&self, now_ns: u64) -> u128 {
        match &self.repeat {
            None => self.work_once(now_ns),
            Some(repeat) => {
                u128::from(now_ns / repeat.after_ns) * repeat.work
                    + self.work_once(now_ns % repeat.after_ns)
            }
        }
    }

    /// The work up to `now_ns`, were there no repetition.
    fn work_once(&self, now_ns: u64) -> u128 {
        let begun = self.pieces.partition_point(|piece| piece.from_ns <= now_ns);
        let Some(piece) = begun.checked_sub(1).map(|index| &self.pieces[index]) else {
            return 0;
        };
        piece.work + u128::from(now_ns - piece.from_ns) * piece.rate_bps
    }

    fn done_ns(&self, work: u128) -> Option<u64> {
        if work == 0 {
            return Some(0);
        }
        let Some(repeat) = &self.repeat else {
            return self.done_once_ns(work);
        };
        // The work of a whole repetition is done at its end, not at the beginning of the next.
        let repetitions = (work - 1).checked_div(repeat.work)?;
        let rest_ns = self.done_once_ns(work - repetitions * repeat.work)?;
        let before_ns = u64::try_from(repetitions)
            .ok()?
            .checked_mul(repeat.after_ns)?;
        before_ns.checked_add(rest_ns)
    }

    /// The first moment at which `work`, above 0, is done, were there no repetition.
    fn done_once_ns(&self, work: u128) -> Option<u64> {
        let begun = self.pieces.partition_point(|piece| piece.work < work);
        let piece = &self.pieces[begun.checked_sub(1)?];
        let in_piece_ns = match piece.rate_bps {
            0 => return None,
            rate_bps => (work - piece.work).div_ceil(rate_bps),
        };
        piece.from_ns.checked_add(u64::try_from(in_piece_ns).ok()?)
    }
}

/// Moments at which a fixed number of bytes may leave, over and over.
#[derive(Debug)]
pub(crate) struct Opportunities {
    at_ms: Vec<u64>,
}

/// What one opportunity delivers (`PACKET_SIZE` of mahimahi's link_queue.hh): 1500 bytes of IP and
/// their header.
const OPPORTUNITY_BYTES: u64 = 1504;

/// The header of `struct tun_pi` that mahimahi's packets carry, and that its link shell counts: its
/// netdevice.cc opens TUN devices without IFF_NO_PI.
const TUN_HEADER_BYTES: u32 = 4;

impl Opportunities {
    fn work(&self, now_ns: u64) -> u128 {
        let now_ms = now_ns / MS_NS;
        let repeat_ms = self.repeat_ms();
        let now = self
            .at_ms
            .partition_point(|at_ms| *at_ms <= now_ms % repeat_ms);
        let before = u128::from(now_ms / repeat_ms) * self.at_ms.len() as u128;
        (before + now as u128) * work_of(OPPORTUNITY_BYTES)
    }

    fn done_ns(&self, work: u128) -> Option<u64> {
        let last = work.div_ceil(work_of(OPPORTUNITY_BYTES)).checked_sub(1);
        let Some(last) = last else { return Some(0) };
        let length = self.at_ms.len() as u128;
        let at_ms = self.at_ms[(last % length) as usize];
        let repetitions = u64::try_from(last / length).ok()?;
        let before_ms = repetitions.checked_mul(self.repeat_ms())?;
        before_ms.checked_add(at_ms)?.checked_mul(MS_NS)
    }

    /// The list begins anew at its last moment.
    fn repeat_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or_default().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_rate_does_not_drift_in_a_billion_packets() {
        let rates = Rates::constant(7_777);
        let work = work_of(1500) * 1_000_000_000;
        let exact_ns = 1500u128 * 8 * 1_000_000_000 * 1_000_000_000 / 7_777 + 1;
        assert_eq!(rates.done_ns(work).map(u128::from), Some(exact_ns));
    }

    #[test]
    fn a_fast_rate_keeps_parts_of_a_nanosecond() {
        let rates = Rates::constant(1_000_000_000_000);
        let done_ns = [1, 125, 126].map(|bytes| rates.done_ns(work_of(bytes)));
        assert_eq!(done_ns, [Some(1), Some(1), Some(2)]);
    }

    /// 1 Mb/s, an outage and 2 Mb/s of a millisecond each.
    fn steps(repeat_after_ns: Option<u64>) -> Rates {
        let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
        let steps = [
            step(0, 1_000_000),
            step(MS_NS, 0),
            step(2 * MS_NS, 2_000_000),
        ];
        Rates::new(&steps, repeat_after_ns)
    }

    #[test]
    fn an_outage_does_no_work() {
        let rates = steps(None);
        assert_eq!(rates.work(MS_NS), work_of(125));
        assert_eq!(rates.work(2 * MS_NS), work_of(125));
        assert_eq!(rates.done_ns(work_of(125)), Some(MS_NS));
        assert_eq!(rates.done_ns(work_of(126)), Some(2 * MS_NS + 4_000));
    }

    #[test]
    fn steps_repeat() {
        let rates = steps(Some(3 * MS_NS));
        assert_eq!(rates.work(300 * MS_NS), work_of(37_500));
        assert_eq!(rates.done_ns(work_of(37_500)), Some(300 * MS_NS));
        assert_eq!(rates.done_ns(work_of(37_625)), Some(301 * MS_NS));
        assert_eq!(rates.done_ns(work_of(37_626)), Some(302 * MS_NS + 4_000));
    }

    #[test]
    fn what_no_rate_serves_is_never_done() {
        let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
        let ends = Rates::new(&[step(0, 8_000), step(MS_NS, 0)], None);
        assert_eq!(ends.done_ns(work_of(1)), Some(MS_NS));
        assert_eq!(ends.done_ns(work_of(2)), None);
        assert_eq!(Rates::new(&[step(0, 0)], Some(5)).done_ns(1), None);
    }

    #[test]
    fn opportunities_come_at_their_milliseconds_and_again() {
        let opportunities = Opportunities {
            at_ms: vec![0, 3, 3, 5],
        };
        let done_ms = |bytes| opportunities.done_ns(work_of(bytes)).map(|ns| ns / MS_NS);
        assert_eq!(
            [1, 1505, 3009, 4513, 6017, 7521].map(done_ms),
            [0, 3, 3, 5, 5, 8].map(Some)
        );
        let served = |ms| opportunities.work(ms * MS_NS) / work_of(OPPORTUNITY_BYTES);
        assert_eq!([0, 2, 3, 5, 8].map(served), [1, 1, 3, 5, 7]);
    }
}
