// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-way delay between two hosts: by the clocks of both, with the doubt that the clocks leave. What a peer's clock says is
//! held to what this host's own clock saw: no delay is longer than its round trip.

use crate::tool::{ReadError, Values, values};
use serde::{Deserialize, Serialize};

/// How fast a clock is corrected at most: MAXFREQ of linux/timex.h.
const SLEW_PPM: i128 = 500;

/// What is known of a host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// It differs from the true time by no more: `maxerror` of adjtimex(2), or what the administrator says.
    pub most_us: u64,
    /// It is thought to differ by so much: `esterror`.
    pub estimated_us: u64,
}

impl Clock {
    /// That of a host whose administrator says how wrong it may be.
    pub fn within(error_us: u64) -> Clock {
        Clock {
            most_us: error_us,
            estimated_us: error_us,
        }
    }
}

/// A datagram that came back. Times are ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// There and back, by a clock of this host that nobody sets.
    pub trip_ns: u64,
    /// When this host sent it.
    pub sent_ns: u64,
    /// When the peer received it, as it says.
    pub received_ns: u64,
    /// When the peer sent it back, as it says.
    pub answered_ns: u64,
    /// When this host received it.
    pub came_ns: u64,
}

/// Why there is no delay to state.
#[derive(Debug, PartialEq, thiserror::Error)]
enum Contradiction {
    #[error(
        "the peer says that it held a datagram for longer than its round trip, or less than no time"
    )]
    Held,
    #[error("this host's clock was set during the test")]
    Set,
    #[error("the clocks differ by {0:.3} ms more than both hosts say they may")]
    Differ(f64),
}

/// The delays of datagrams that came back. What is known of the clocks is of the test's end: the kernel lets an error grow until
/// somebody corrects the clock.
///
/// # Errors
/// None came back, or the clocks contradict each other.
pub fn one_way(trips: &[Trip], ours: &Clock, theirs: &Clock) -> Result<Values, ReadError> {
    let doubt_ns = |ours: u64, theirs: u64| ours.saturating_add(theirs).saturating_mul(1000);
    let most_ns = doubt_ns(ours.most_us, theirs.most_us);
    let estimated_ns = doubt_ns(ours.estimated_us, theirs.estimated_us);
    let delays = trips.iter().map(|trip| delays(trip, most_ns));
    let delays = delays.collect::<Result<Vec<_>, _>>();
    let delays = delays.map_err(|contradiction| ReadError::Tool(contradiction.to_string()))?;
    let longest_ns = trips.iter().map(|trip| trip.trip_ns).max();
    let longest_ns = longest_ns.ok_or_else(|| ReadError::Missing("datagram".into()))?;
    let there = Spread::of(delays.iter().map(|(there, _)| *there));
    let back = Spread::of(delays.iter().map(|(_, back)| *back));
    let doubt = |ns: u64| ns.min(longest_ns) as f64 / 1e6;
    Ok(values([
        ("delay_there_min", there.min_ms, "ms"),
        ("delay_there_avg", there.mean_ms, "ms"),
        ("delay_there_max", there.max_ms, "ms"),
        ("delay_back_min", back.min_ms, "ms"),
        ("delay_back_avg", back.mean_ms, "ms"),
        ("delay_back_max", back.max_ms, "ms"),
        ("delay_doubt", doubt(most_ns), "ms"),
        (
            "delay_doubt_estimated",
            doubt(estimated_ns.min(most_ns)),
            "ms",
        ),
    ]))
}

/// There and back, in ns. Together they are the round trip without what the peer held; neither is less than nothing.
fn delays(trip: &Trip, doubt_ns: u64) -> Result<(u64, u64), Contradiction> {
    let [sent, received, answered, came] = [
        trip.sent_ns,
        trip.received_ns,
        trip.answered_ns,
        trip.came_ns,
    ]
    .map(i128::from);
    let (trip_ns, doubt_ns) = (i128::from(trip.trip_ns), i128::from(doubt_ns));
    let held = answered - received;
    if !(0..=trip_ns).contains(&held) {
        return Err(Contradiction::Held);
    }
    // Both say the same of the round trip, but for how fast the clock is corrected.
    let slewed = trip_ns * SLEW_PPM / 1_000_000 + 1_000_000;
    if (came - sent - trip_ns).abs() > slewed {
        return Err(Contradiction::Set);
    }
    let (there, most) = (received - sent, trip_ns - held);
    let beyond = (-there).max(there - most);
    if beyond > doubt_ns {
        return Err(Contradiction::Differ((beyond - doubt_ns) as f64 / 1e6));
    }
    let there = there.clamp(0, most);
    Ok((there as u64, (most - there) as u64))
}

struct Spread {
    min_ms: f64,
    mean_ms: f64,
    max_ms: f64,
}

impl Spread {
    /// Of at least one.
    fn of(delays_ns: impl Iterator<Item = u64> + Clone) -> Spread {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (mut sum, mut count) = (0.0, 0.0);
        delays_ns.clone().for_each(|ns| {
            sum += ms(ns);
            count += 1.0;
        });
        Spread {
            min_ms: ms(delays_ns.clone().min().unwrap_or_default()),
            mean_ms: sum / count,
            max_ms: ms(delays_ns.max().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 1_795_392_000_000_000_000;
    const CLOCK: Clock = Clock {
        most_us: 2_000,
        estimated_us: 100,
    };

    /// 30 ms there and 10 ms back, 1 ms held, by a peer whose clock is ahead.
    fn trip(ahead_ns: i64) -> Trip {
        let theirs = |ns: u64| (START_NS + ns).saturating_add_signed(ahead_ns);
        Trip {
            trip_ns: 41 * MS,
            sent_ns: START_NS,
            received_ns: theirs(30 * MS),
            answered_ns: theirs(31 * MS),
            came_ns: START_NS + 41 * MS,
        }
    }

    fn delay(trips: &[Trip]) -> Result<Values, ReadError> {
        one_way(trips, &CLOCK, &CLOCK)
    }

    #[test]
    fn delays_are_told_apart_with_their_doubt() {
        let values = delay(&[trip(0), trip(1_000_000)]).unwrap();
        let ms = |name: &str| values[name].0;
        assert_eq!((ms("delay_there_min"), ms("delay_there_max")), (30.0, 31.0));
        assert_eq!((ms("delay_back_min"), ms("delay_back_avg")), (9.0, 9.5));
        // Of both clocks.
        assert_eq!(ms("delay_doubt"), 4.0);
        assert_eq!(ms("delay_doubt_estimated"), 0.2);
    }

    #[test]
    fn a_clock_beyond_its_doubt_is_said_and_not_believed() {
        let said = |trip| delay(&[trip]).unwrap_err().to_string();
        assert!(said(trip(20 * MS as i64)).contains("differ by 6.000 ms more"));
        assert!(said(trip(-40 * MS as i64)).contains("differ by 6.000 ms more"));
        assert!(
            said(Trip {
                answered_ns: 0,
                ..trip(0)
            })
            .contains("held")
        );
        assert!(
            said(Trip {
                received_ns: 0,
                ..trip(0)
            })
            .contains("held")
        );
        assert!(
            said(Trip {
                came_ns: START_NS,
                ..trip(0)
            })
            .contains("was set")
        );
        assert!(delay(&[]).is_err());
    }

    proptest! {
        /// Whatever the peer says of its times and of its clock.
        #[test]
        fn no_lie_makes_a_delay_longer_than_the_round_trip(
            received_ns: u64, held_ns in 0..50 * MS, near in -60_000_000_i64..60_000_000, is_near: bool, most_us: u64, estimated_us: u64,
        ) {
            let received_ns = if is_near { START_NS.saturating_add_signed(near) } else { received_ns };
            let lie = Trip { received_ns, answered_ns: received_ns.saturating_add(held_ns), ..trip(0) };
            let clock = Clock { most_us, estimated_us };
            if let Ok(values) = one_way(&[lie], &CLOCK, &clock) {
                let ms = |name: &str| values[name].0;
                for name in ["delay_there_max", "delay_back_max", "delay_doubt"] {
                    prop_assert!((0.0..=41.0).contains(&ms(name)), "{values:?}");
                }
                prop_assert!(ms("delay_there_max") + ms("delay_back_max") <= 41.0 + 1e-9, "{values:?}");
            }
        }
    }
}
