// SPDX-License-Identifier: MIT OR Apache-2.0
//! What peers have used of their limits. What a test may send counts from its beginning, so that a crash gives nothing
//! back; what it did not send is given back when it ends.

use crate::{Cost, Kind, Peer};
use fatpath_units::{show_bytes, show_rate, show_time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const DAY_US: i64 = 86_400_000_000;

/// What all peers have used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// By name.
    peers: BTreeMap<String, Used>,
    #[serde(skip)]
    running: BTreeSet<String>,
}

/// What one has used in a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Days since 1970, of UTC.
    pub day: i64,
    /// Sent to it or received in trains, or kept for a test that runs.
    pub bytes: u64,
    /// Tests that were answered.
    pub tests: u64,
    /// Tests that were refused.
    pub refused: u64,
    /// The last test, µs since 1970.
    pub last_us: i64,
}

/// Why a test is not answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer may not make such tests.
    #[error("tests of the kind {0} are not answered")]
    Kind(Kind),
    /// It lasts too long.
    #[error("a test lasts {most} at most", most = show_time(*.0))]
    Longer(u64),
    /// It sends too fast.
    #[error("a test sends {most} at most", most = show_rate(*.0))]
    Faster(u64),
    /// It sends more than is left of the day.
    #[error("{left} are left for today (UTC)", left = show_bytes(*.0))]
    Bytes(u64),
    /// One at a time.
    #[error("another test of this peer runs")]
    Running,
}

impl Ledger {
    /// Keeps for the test what it may send.
    ///
    /// # Errors
    /// It is beyond a limit; see [`Refusal`].
    pub fn begin(&mut self, peer: &Peer, cost: &Cost, now_us: i64) -> Result<(), Refusal> {
        let used = self.of(&peer.name, now_us);
        let judged = match self.running.contains(&peer.name) {
            true => Err(Refusal::Running),
            false => judge(peer, cost, used.bytes),
        };
        let noted = match judged {
            Ok(()) => Used {
                bytes: used.bytes.saturating_add(cost.bytes),
                tests: used.tests + 1,
                last_us: now_us,
                ..used
            },
            Err(_) => Used {
                refused: used.refused + 1,
                ..used
            },
        };
        self.peers.insert(peer.name.clone(), noted);
        if judged.is_ok() {
            self.running.insert(peer.name.clone());
        }
        judged
    }

    /// Keeps more for the test of the peer that runs.
    ///
    /// # Errors
    /// So much is not left of the day.
    pub fn more(&mut self, peer: &Peer, bytes: u64, now_us: i64) -> Result<(), Refusal> {
        let used = self.of(&peer.name, now_us);
        let left_bytes = peer.bytes_a_day.saturating_sub(used.bytes);
        if bytes > left_bytes {
            return Err(Refusal::Bytes(left_bytes));
        }
        let bytes = used.bytes + bytes;
        self.peers.insert(peer.name.clone(), Used { bytes, ..used });
        Ok(())
    }

    /// Whether a test is within the limits of the peer; nothing is kept or counted.
    ///
    /// # Errors
    /// It is beyond one; see [`Refusal`].
    pub fn judge(&self, peer: &Peer, cost: &Cost, now_us: i64) -> Result<(), Refusal> {
        judge(peer, cost, self.of(&peer.name, now_us).bytes)
    }

    /// A test of the peer has ended: `kept_bytes` were kept for it at its beginning, on `day`, and it used `used_bytes`, which
    /// count also where they are more.
    pub fn end(&mut self, peer: &str, day: i64, kept_bytes: u64, used_bytes: u64) {
        self.running.remove(peer);
        if let Some(used) = self.peers.get_mut(peer).filter(|used| used.day == day) {
            let bytes = used.bytes.saturating_add(used_bytes);
            used.bytes = bytes.saturating_sub(kept_bytes);
        }
    }

    /// So much of what was kept for the peer on `day` is not sent.
    pub fn give_back(&mut self, peer: &str, day: i64, bytes: u64) {
        // What was kept on a day that is over matters no more.
        if let Some(used) = self.peers.get_mut(peer).filter(|used| used.day == day) {
            used.bytes = used.bytes.saturating_sub(bytes);
        }
    }

    /// What a peer has used of the day. A clock that is set back begins no day anew, unless it was ahead by more than a day: what
    /// was used by such a clock would keep the peer out for as long.
    pub fn of(&self, peer: &str, now_us: i64) -> Used {
        let used = self.peers.get(peer).copied().unwrap_or_default();
        let day = now_us.div_euclid(DAY_US);
        match day > used.day || day + 1 < used.day {
            true => Used {
                day,
                last_us: used.last_us,
                ..Used::default()
            },
            false => used,
        }
    }
}

fn judge(peer: &Peer, cost: &Cost, used_bytes: u64) -> Result<(), Refusal> {
    let left_bytes = peer.bytes_a_day.saturating_sub(used_bytes);
    if !peer.kinds.contains(&cost.kind) {
        return Err(Refusal::Kind(cost.kind));
    }
    if cost.duration_us > peer.longest_us {
        return Err(Refusal::Longer(peer.longest_us));
    }
    if cost.rate_bps > peer.rate_bps {
        return Err(Refusal::Faster(peer.rate_bps));
    }
    match cost.bytes > left_bytes {
        true => Err(Refusal::Bytes(left_bytes)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Datagrams, Trains};
    use proptest::prelude::*;

    fn peer() -> Peer {
        Peer {
            name: "dtn1".into(),
            prefixes: vec![],
            key: String::new(),
            kinds: vec![Kind::Echo],
            longest_us: 10_000_000,
            bytes_a_day: 20_000,
            rate_bps: 10_000,
        }
    }

    /// 10 s of 8,960 b/s: 11,200 bytes.
    const DATAGRAMS: Datagrams = Datagrams {
        port: 9,
        packets: 100,
        packet_bytes: 64,
        interval_us: 100_000,
    };

    fn cost() -> Cost {
        Ask::Echo(DATAGRAMS).cost(&peer())
    }

    #[test]
    fn limits_hold() {
        let begin = |peer: Peer, cost: Cost| Ledger::default().begin(&peer, &cost, 0);
        assert_eq!(begin(peer(), cost()), Ok(()));
        let none = Peer {
            kinds: vec![],
            ..peer()
        };
        assert_eq!(begin(none, cost()), Err(Refusal::Kind(Kind::Echo)));
        let longer = Cost {
            duration_us: 10_000_001,
            ..cost()
        };
        assert_eq!(begin(peer(), longer), Err(Refusal::Longer(10_000_000)));
        let faster = Cost {
            rate_bps: 10_001,
            ..cost()
        };
        assert_eq!(begin(peer(), faster), Err(Refusal::Faster(10_000)));
    }

    #[test]
    fn what_was_not_sent_is_given_back_and_a_day_has_its_end() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.begin(&peer(), &cost(), 0), Ok(()));
        assert_eq!(ledger.begin(&peer(), &cost(), 0), Err(Refusal::Running));
        ledger.end("dtn1", 0, cost().bytes, 1_200);
        assert_eq!(ledger.of("dtn1", 0).bytes, 1_200);
        assert_eq!(ledger.begin(&peer(), &cost(), 0), Ok(()));
        ledger.end("dtn1", 0, cost().bytes, cost().bytes);
        assert_eq!(
            ledger.begin(&peer(), &cost(), 0),
            Err(Refusal::Bytes(7_600))
        );
        let used = ledger.of("dtn1", 0);
        assert_eq!((used.tests, used.refused), (2, 2));
        assert_eq!(ledger.begin(&peer(), &cost(), DAY_US), Ok(()));
        ledger.end("dtn1", 1, cost().bytes, cost().bytes);
        // Back to the first day, and no day is begun anew.
        assert_eq!(
            ledger.begin(&peer(), &cost(), 0),
            Err(Refusal::Bytes(8_800))
        );
    }

    #[test]
    fn each_train_counts_until_the_day_is_used_up() {
        let (mut ledger, peer) = (
            Ledger::default(),
            Peer {
                kinds: vec![Kind::Rate],
                ..peer()
            },
        );
        let trains = Trains {
            port: 9,
            duration_us: 1_000_000,
            patience_us: 0,
        };
        assert_eq!(
            ledger.begin(&peer, &Ask::Rate(trains).cost(&peer), 0),
            Ok(())
        );
        assert_eq!(ledger.more(&peer, 15_000, 0), Ok(()));
        assert_eq!(ledger.more(&peer, 6_000, 0), Err(Refusal::Bytes(5_000)));
        assert_eq!(ledger.more(&peer, 5_000, 0), Ok(()));
        ledger.give_back("dtn1", 0, 5_000);
        let another = Err(Refusal::Running);
        assert_eq!(
            ledger.begin(&peer, &Ask::Rate(trains).cost(&peer), 0),
            another
        );
        ledger.end("dtn1", 0, 0, 0);
        assert_eq!(ledger.of("dtn1", 0).bytes, 15_000);
        assert_eq!(ledger.more(&peer, 6_000, DAY_US), Ok(()));
    }

    #[test]
    fn a_clock_that_was_years_ahead_keeps_nobody_out() {
        let mut ledger = Ledger::default();
        let ahead_us = 10_000 * DAY_US;
        assert_eq!(ledger.begin(&peer(), &cost(), ahead_us), Ok(()));
        ledger.end("dtn1", 10_000, cost().bytes, cost().bytes);
        assert_eq!(ledger.begin(&peer(), &cost(), DAY_US), Ok(()));
        assert_eq!(ledger.of("dtn1", DAY_US).bytes, cost().bytes);
    }

    #[test]
    fn a_crash_gives_nothing_back() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.begin(&peer(), &cost(), 0), Ok(()));
        let text = serde_json::to_string(&ledger).unwrap();
        let mut ledger: Ledger = serde_json::from_str(&text).unwrap();
        assert_eq!(
            ledger.begin(&peer(), &cost(), 0),
            Err(Refusal::Bytes(8_800))
        );
    }

    proptest! {
        #[test]
        fn no_day_has_more_bytes_than_its_limit(
            steps in prop::collection::vec((1_u32..200, 56_u16..2000, 1_000_u32..1_000_000, 0_u64..20_000, 0_i64..DAY_US), 1..100),
        ) {
            let (mut ledger, mut now_us) = (Ledger::default(), 0);
            let mut sent: BTreeMap<i64, u64> = BTreeMap::new();
            for (packets, packet_bytes, interval_us, most, wait_us) in steps {
                now_us += wait_us / 20;
                let cost = Ask::Echo(Datagrams { packets, packet_bytes, interval_us, ..DATAGRAMS }).cost(&peer());
                if ledger.begin(&peer(), &cost, now_us).is_ok() {
                    let day = ledger.of("dtn1", now_us).day;
                    let bytes = most.min(cost.bytes);
                    *sent.entry(day).or_default() += bytes;
                    if ledger.more(&peer(), most, now_us).is_ok() {
                        *sent.entry(day).or_default() += most;
                    }
                    ledger.end("dtn1", day, cost.bytes, bytes);
                }
            }
            prop_assert!(sent.values().all(|bytes| *bytes <= peer().bytes_a_day), "{sent:?}");
        }
    }
}
