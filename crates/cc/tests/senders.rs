// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many flows of a group send: those that do are counted at once, and those that stopped are forgotten.

use fatpath_cc::Senders;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// A host's clock is not at 0.
const BEGIN_NS: u64 = 1_000_000 * MS;

/// Flows that are acknowledged once a round trip.
struct Flows {
    group: Senders,
    counted_in: Vec<u32>,
    rtt_ms: u64,
    now_ns: u64,
}

impl Flows {
    fn new(flows: usize, rtt_ms: u64) -> Flows {
        Flows {
            group: Senders::default(),
            counted_in: vec![0; flows],
            rtt_ms,
            now_ns: BEGIN_NS,
        }
    }

    /// For so long these flows send, one after the other within each round trip. Answers all that they were told.
    fn send(&mut self, flows: &[usize], for_ms: u64) -> Vec<u32> {
        let end_ns = self.now_ns + for_ms * MS;
        let mut told = Vec::new();
        while self.now_ns < end_ns {
            for flow in flows {
                let rtt_us = self.rtt_ms as u32 * 1000;
                let counted_in = &mut self.counted_in[*flow];
                told.push(self.group.note(counted_in, self.now_ns, rtt_us));
                self.now_ns += self.rtt_ms * MS / flows.len() as u64;
            }
        }
        told
    }

    /// Two windows, and what is left of the round trips.
    fn forgotten_ms(&self) -> u64 {
        2 * (100 + self.rtt_ms) + 2 * self.rtt_ms
    }
}

proptest! {
    #[test]
    fn all_that_send_are_counted_all_the_time(flows in 1usize..40, rtt_ms in 1u64..900) {
        let mut of = Flows::new(flows, rtt_ms);
        let all: Vec<usize> = (0..flows).collect();
        let first: Vec<u32> = (1..=flows as u32).collect();
        prop_assert_eq!(&of.send(&all, 1)[..flows], first);
        let told = of.send(&all, 20 * rtt_ms + 1000);
        prop_assert!(told.iter().all(|n| *n as usize == flows), "{:?}", told);
    }

    #[test]
    fn those_that_stop_are_forgotten_and_no_sooner(
        flows in 2usize..40, stays in 1usize..39, rtt_ms in 1u64..900,
    ) {
        let stays = stays.min(flows - 1);
        let mut of = Flows::new(flows, rtt_ms);
        let all: Vec<usize> = (0..flows).collect();
        of.send(&all, 1000 + 5 * rtt_ms);
        let last = of.send(&all[..stays], of.forgotten_ms());
        prop_assert!(last.iter().all(|n| (stays..=flows).contains(&(*n as usize))), "{:?}", last);
        let told = of.send(&all[..stays], 1000 + 10 * rtt_ms);
        prop_assert!(told.iter().all(|n| *n as usize == stays), "{:?}", told);
    }

    #[test]
    fn after_a_pause_a_flow_is_alone_at_once(flows in 2usize..40, rtt_ms in 1u64..200, pause_ms in 1u64..5000) {
        let mut of = Flows::new(flows, rtt_ms);
        let all: Vec<usize> = (0..flows).collect();
        of.send(&all, 1000);
        of.now_ns += (of.forgotten_ms() + pause_ms) * MS;
        prop_assert_eq!(of.send(&all[..1], 1)[0], 1);
    }
}

#[test]
fn each_has_an_equal_share_and_none_is_stopped() {
    let of = Senders::share_of_rate;
    assert_eq!(
        [0, 1, 2, 3].map(|flows| of(900_000, flows)),
        [900_000, 900_000, 450_000, 300_000]
    );
    assert_eq!(of(900_000, 73), 12_500);
    assert_eq!([of(1000, 1), of(1000, 50)], [1000, 1000]);
}

/// A flow in another processor may have an older time.
#[test]
fn a_time_that_goes_back_begins_nothing() {
    let mut of = Flows::new(3, 10);
    of.send(&[0, 1], 500);
    of.now_ns -= 20 * MS;
    assert_eq!(of.send(&[2], 1), [3]);
}

/// Its acknowledgements are one in a window of the others' length.
#[test]
fn a_flow_with_a_long_round_trip_counts_among_short_ones() {
    let mut of = Flows::new(2, 10);
    let (mut slow, rtt_us) = (0, 600_000);
    for turn in 0..20 {
        let told = of.group.note(&mut slow, of.now_ns, rtt_us);
        assert!(turn < 1 || told == 2, "{turn}: {told}");
        let told = of.send(&[0], 600);
        assert!(told.iter().all(|n| *n == 2), "{turn}: {told:?}");
    }
}

/// A peer that delays acknowledgements for a minute keeps nobody counted for so long.
#[test]
fn a_peer_cannot_keep_others_counted() {
    let mut of = Flows::new(2, 10);
    of.send(&[0], 200);
    let mut slow = 0;
    of.group.note(&mut slow, of.now_ns, 60_000_000);
    of.send(&[0], 2300);
    assert_eq!(of.send(&[0], 1), [1]);
}
