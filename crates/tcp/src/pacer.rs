// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the next segment may leave: TCP's own pacing, as Linux does it without a queueing discipline.

use crate::TcpSpec;

/// Segments at a connection's beginning that are not paced (`tcp_update_skb_after_send` in Linux).
const UNPACED_PKTS: u64 = 10;

/// Linux paces at twice the window a round trip in slow start, 1.2 times after it
/// (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`), percent.
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

/// With a quantum: the most that is made up of late wake-ups, some turns of a scheduler; and how much of each gap is, which
/// makes the rate a third higher meanwhile. Below a ceiling, the most is what keeps any 100 ms within a twentieth of it, two
/// quanta of a quarter of a millisecond among it.
const MOST_OWED_NS: u64 = 20_000_000;
const MOST_OWED_BELOW_CEILING_NS: u64 = 4_000_000;
const MADE_UP_PART: u64 = 4;

/// A pace within an eighth of the ceiling is held back by that: a law cruises a little below the rate that it found, 10 % at
/// most (draft-ietf-ccwg-bbr, 5.3.3.1), which the ceiling bounds when it looks for more.
const NEAR_CEILING: u64 = 8;

/// The pace of a flow.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Paced by the window, from the beginning to the end.
    is_always: bool,
    /// Never above this, bytes a second.
    ceiling: Option<u64>,
    /// The rate of a paced start, bytes a second.
    start_rate: Option<u64>,
    /// The rate that the flow's control sets, bytes a second; `None`: it follows from the window.
    rate: Option<u64>,
    /// Segments leave this much before their time, and make up for as much lateness.
    quantum_ns: u64,
    /// When the next segment may leave.
    next_ns: u64,
    /// What was lost to wake-ups later than a quantum, and is being made up.
    owed_ns: u64,
}

/// What Linux's rate follows from.
pub(super) struct Pace {
    pub(super) window_bytes: u64,
    pub(super) srtt_us: u64,
    pub(super) is_slow_start: bool,
    pub(super) sent_pkts: u64,
}

impl Pacer {
    pub(super) fn new(spec: &TcpSpec) -> Pacer {
        Pacer {
            is_always: spec.pacing || spec.pacing_rate_bps.is_some(),
            ceiling: ceiling_of(spec.pacing_rate_bps),
            start_rate: None,
            rate: None,
            quantum_ns: spec.pacing_quantum_ns,
            next_ns: 0,
            owed_ns: 0,
        }
    }

    /// Never above this from now on.
    pub(super) fn set_ceiling(&mut self, rate_bps: Option<u64>) {
        self.ceiling = ceiling_of(rate_bps);
    }

    /// A paced start, at `rate` bytes a second; `None`: it is over.
    pub(super) fn set_start(&mut self, rate: Option<u64>) {
        self.start_rate = rate.map(|rate| rate.max(1));
    }

    /// A paced start is under way.
    pub(super) fn is_start(&self) -> bool {
        self.start_rate.is_some()
    }

    /// The flow's control sets this rate, bytes a second; `None`: it follows from the window.
    pub(super) fn set_rate(&mut self, rate: Option<u64>) {
        self.rate = rate.map(|rate| rate.max(1));
    }

    /// How long segments have to wait; `None`: they may leave.
    pub(super) fn waits_until_ns(&self, now_ns: u64) -> Option<u64> {
        let is_late = self.next_ns <= now_ns.saturating_add(self.quantum_ns);
        (self.is_on() && !is_late).then_some(self.next_ns)
    }

    /// The sender had waited for the time of the next segment, and wakes now. What it is late by beyond a quantum is made up
    /// little by little, with no burst: on a busy machine a thread wakes late by milliseconds, and the rate would not be kept.
    pub(super) fn wake(&mut self, now_ns: u64) {
        if self.quantum_ns > 0 {
            let late_ns = now_ns.saturating_sub(self.next_ns.saturating_add(self.quantum_ns));
            let most_ns = match self.ceiling {
                Some(_) => MOST_OWED_BELOW_CEILING_NS,
                None => MOST_OWED_NS,
            };
            self.owed_ns = (self.owed_ns + late_ns).min(most_ns);
        }
    }

    pub(super) fn sends_batches(&self) -> bool {
        self.quantum_ns > 0
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_always || self.start_rate.is_some() || self.rate.is_some()
    }

    /// A segment leaves.
    pub(super) fn sent(&mut self, now_ns: u64, payload_bytes: u32, pace: &Pace) {
        let Some(rate) = self.rate_of(pace) else {
            return;
        };
        let mut gap_ns = u64::from(payload_bytes) * 1_000_000_000 / rate;
        if self.quantum_ns > 0 {
            let made_up_ns = (gap_ns / MADE_UP_PART).min(self.owed_ns);
            self.owed_ns -= made_up_ns;
            gap_ns -= made_up_ns;
            let earliest_ns = now_ns.saturating_sub(self.quantum_ns);
            self.next_ns = self.next_ns.max(earliest_ns) + gap_ns;
            return;
        }
        let late_ns = now_ns.saturating_sub(self.next_ns);
        gap_ns -= late_ns.min(gap_ns / 2);
        self.next_ns = self.next_ns.max(now_ns) + gap_ns;
    }

    /// The ceiling is what holds the flow back: without it, the pace would be as fast, but for the little by which laws go below
    /// what they found.
    pub(super) fn is_at_ceiling(&self, pace: &Pace) -> bool {
        let is_at = |ceiling: u64| {
            let wanted = self.wanted_rate(pace);
            wanted.is_none_or(|wanted| wanted >= ceiling - ceiling / NEAR_CEILING)
        };
        self.ceiling.is_some_and(is_at)
    }

    fn rate_of(&self, pace: &Pace) -> Option<u64> {
        if self.start_rate.is_none() && pace.sent_pkts < UNPACED_PKTS {
            return self.ceiling.filter(|_| self.sends_batches());
        }
        let rate = self.wanted_rate(pace);
        rate.map(|rate| self.at_most_ceiling(rate))
    }

    /// Bytes a second, whatever the ceiling; `None`: it is not paced yet.
    fn wanted_rate(&self, pace: &Pace) -> Option<u64> {
        if let Some(rate) = self.start_rate {
            return Some(rate);
        }
        if pace.sent_pkts < UNPACED_PKTS {
            return None;
        }
        if let Some(rate) = self.rate {
            return Some(rate);
        }
        Some(window_rate(pace))
    }

    /// `sk_pacing_rate`, which the kernel reckons whether it paces or not; bytes a second.
    pub(super) fn kernel_rate(&self, pace: &Pace) -> u64 {
        let rate = self.start_rate.or(self.rate);
        self.at_most_ceiling(rate.unwrap_or_else(|| window_rate(pace)))
    }

    fn at_most_ceiling(&self, rate: u64) -> u64 {
        self.ceiling.map_or(rate, |ceiling| rate.min(ceiling))
    }
}

/// `tcp_update_pacing_rate`: bytes a second.
fn window_rate(pace: &Pace) -> u64 {
    let percent = if pace.is_slow_start {
        SLOW_START_PERCENT
    } else {
        AVOIDANCE_PERCENT
    };
    let rate = pace.window_bytes.saturating_mul(percent * 10_000) / pace.srtt_us.max(1);
    rate.max(1)
}

/// Bytes a second.
fn ceiling_of(rate_bps: Option<u64>) -> Option<u64> {
    rate_bps.map(|bits| (bits / 8).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        window_bytes: u64::MAX,
        srtt_us: 100_000,
        is_slow_start: false,
        sent_pkts: UNPACED_PKTS,
    };

    fn spec(pacing_rate_bps: Option<u64>) -> TcpSpec {
        TcpSpec {
            pacing_rate_bps,
            ..TcpSpec::default()
        }
    }

    /// 100 segments of 1000 bytes in 100 ms: each 1.2 or 2 times as early as if they were spread evenly.
    #[test]
    fn without_a_ceiling_the_window_says_the_pace() {
        let mut pacer = Pacer::new(&TcpSpec {
            pacing: true,
            ..TcpSpec::default()
        });
        for (is_slow_start, gap_ns) in [(false, 833_333), (true, 500_000)] {
            let pace = Pace {
                window_bytes: 100_000,
                is_slow_start,
                ..PACE
            };
            let now_ns = pacer.next_ns;
            pacer.sent(now_ns, 1000, &pace);
            assert_eq!(pacer.waits_until_ns(now_ns), Some(now_ns + gap_ns));
        }
    }

    #[test]
    fn a_ceiling_spaces_segments_by_their_payload() {
        let mut pacer = Pacer::new(&spec(Some(8_000_000)));
        let mut left = Vec::new();
        let mut now = 5;
        for _ in 0..4 {
            left.push(now);
            pacer.sent(now, 1000, &PACE);
            now = pacer.waits_until_ns(now).unwrap();
        }
        assert_eq!(
            left[1..]
                .iter()
                .zip(&left)
                .map(|(b, a)| b - a)
                .collect::<Vec<_>>(),
            [1_000_000 - 5, 1_000_000, 1_000_000]
        );
    }

    #[test]
    fn a_pace_that_would_be_as_fast_without_it_is_held_back_by_the_ceiling() {
        let mut pacer = Pacer::new(&spec(Some(8_000_000)));
        let slow = Pace {
            window_bytes: 50_000,
            ..PACE
        };
        assert!(pacer.is_at_ceiling(&PACE));
        assert!(!pacer.is_at_ceiling(&slow));
        for (rate, is_at) in [(999_000, true), (876_000, true), (874_000, false)] {
            pacer.set_rate(Some(rate));
            assert_eq!(pacer.is_at_ceiling(&PACE), is_at, "{rate}");
        }
        assert!(!Pacer::new(&spec(None)).is_at_ceiling(&PACE));
    }

    #[test]
    fn what_is_late_is_made_up_for_by_half_a_gap_at_most() {
        let mut pacer = Pacer::new(&spec(Some(8_000_000)));
        pacer.sent(0, 1000, &PACE);
        pacer.sent(9_000_000, 1000, &PACE);
        assert_eq!(pacer.waits_until_ns(9_000_000), Some(9_500_000));
    }

    /// 8 Mb/s, a quantum of 5 ms, and who sends wakes every 4 ms and once much too late: batches, and the rate is kept.
    #[test]
    fn with_a_quantum_segments_leave_in_batches_at_the_same_rate() {
        let mut pacer = Pacer::new(&TcpSpec {
            pacing_quantum_ns: 5_000_000,
            ..spec(Some(8_000_000))
        });
        let mut sent = Vec::new();
        for now_ns in (0..100u64).map(|step| step * 4_000_000) {
            let before = sent.len();
            while pacer.waits_until_ns(now_ns).is_none() {
                pacer.sent(now_ns, 1000, &PACE);
                sent.push(now_ns);
            }
            assert!(
                (4..=11).contains(&(sent.len() - before)),
                "{now_ns}: {}",
                sent.len()
            );
        }
        assert!((400..=411).contains(&sent.len()), "{}", sent.len());
        let late_ns = 1_000_000_000;
        let burst = (0..).take_while(|_| {
            let leaves = pacer.waits_until_ns(late_ns).is_none();
            if leaves {
                pacer.sent(late_ns, 1000, &PACE);
            }
            leaves
        });
        assert_eq!(burst.count(), 11, "two quanta at most");
    }

    /// 8 Mb/s, a quantum of 1 ms, and who sends wakes 4 ms late each time: the rate is kept, and no burst is longer than
    /// the time since the last one makes it, and a third.
    #[test]
    fn late_wake_ups_are_made_up() {
        let mut pacer = Pacer::new(&TcpSpec {
            pacing_quantum_ns: 1_000_000,
            ..spec(None)
        });
        pacer.set_rate(Some(1_000_000));
        let (mut now_ns, mut sent) = (0, 0);
        for _ in 0..200 {
            let burst = (0..).take_while(|_| {
                let leaves = pacer.waits_until_ns(now_ns).is_none();
                if leaves {
                    pacer.sent(now_ns, 1000, &PACE);
                }
                leaves
            });
            sent += burst.count() as u64;
            now_ns = pacer.waits_until_ns(now_ns).unwrap() + 500_000;
            pacer.wake(now_ns);
        }
        let due = now_ns / 1_000_000;
        assert!(due - 3 <= sent && sent <= due + 3, "{sent} of {due}");
        // One turn of the scheduler, 10 ms: lost at first, made up in the next 40.
        now_ns += 10_000_000;
        pacer.wake(now_ns);
        let mut later = 0;
        for _ in 0..40 {
            let burst = (0..).take_while(|_| {
                let leaves = pacer.waits_until_ns(now_ns).is_none();
                if leaves {
                    pacer.sent(now_ns, 1000, &PACE);
                }
                leaves
            });
            let burst = burst.count() as u64;
            assert!(burst <= 4, "{burst}");
            later += burst;
            now_ns += 1_000_000;
            pacer.wake(now_ns);
        }
        assert!((48..=52).contains(&later), "{later}");
    }

    /// 100 Mb/s and the transport's quantum, from the first segment on; a thread that sleeps up to half a millisecond too long
    /// each time, and now and then stands for 1 to 60 ms: in no 100 ms do more than 5 % above the ceiling leave, and what is
    /// late by less than 4 ms is made up.
    #[test]
    fn a_ceiling_holds_over_any_100_ms_whatever_stands_in_between() {
        const BYTES: u32 = 1400;
        const WINDOW_NS: u64 = 100_000_000;
        let ceiling_bytes = 12_500_000 / 10;
        for (stalls_ns, least) in [(60_000_000, 0.6), (4_000_000, 0.985)] {
            let mut pacer = Pacer::new(&TcpSpec {
                pacing_quantum_ns: 250_000,
                ..spec(Some(100_000_000))
            });
            let (mut now_ns, mut state, mut left) = (0, 1u64, Vec::new());
            let mut random = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % below
            };
            while now_ns < 3_000_000_000 {
                while pacer.waits_until_ns(now_ns).is_none() {
                    let sent_pkts = left.len() as u64;
                    pacer.sent(now_ns, BYTES, &Pace { sent_pkts, ..PACE });
                    left.push(now_ns);
                }
                let wakes_ns = pacer.waits_until_ns(now_ns).unwrap();
                let stands_ns = match random(100) {
                    0 => 1_000_000 + random(stalls_ns),
                    _ => random(500_000),
                };
                now_ns = wakes_ns + stands_ns;
                pacer.wake(now_ns);
            }
            let mut first = 0;
            for (last, at_ns) in left.iter().enumerate() {
                while left[first] + WINDOW_NS <= *at_ns {
                    first += 1;
                }
                let bytes = (last + 1 - first) as u64 * u64::from(BYTES);
                assert!(
                    bytes * 100 <= ceiling_bytes * 105,
                    "{bytes} bytes by {at_ns}"
                );
            }
            let rate = left.len() as f64 * f64::from(BYTES) / (now_ns as f64 * 12.5e-3);
            assert!(rate >= least, "{rate}");
        }
    }

    #[test]
    fn without_ceiling_or_paced_start_nothing_waits() {
        let mut pacer = Pacer::new(&spec(None));
        assert!(!pacer.is_on());
        pacer.set_start(Some(1_000_000));
        pacer.sent(0, 1000, &PACE);
        assert_eq!(pacer.waits_until_ns(0), Some(1_000_000));
        pacer.set_start(None);
        assert_eq!(pacer.waits_until_ns(0), None);
    }
}
