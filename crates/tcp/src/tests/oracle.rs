// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scoreboard against one that keeps nothing but a list and walks all of it each time.

use proptest::prelude::*;

use super::super::arrivals::Arrivals;
use super::super::rack::Rack;
use super::super::scoreboard::{Counts, Scoreboard};
use super::super::{Ack, Block, Detection, MAX_BLOCKS};

/// A segment in the naive scoreboard.
#[derive(Clone, Debug, Default)]
struct Naive {
    sent_ns: u64,
    is_sacked: bool,
    is_lost: bool,
    is_resent: bool,
}

#[derive(Clone, Debug, Default)]
struct Walker {
    una: usize,
    sent: Vec<Naive>,
}

impl Walker {
    fn outstanding(&self) -> impl Iterator<Item = (u64, &Naive)> {
        (self.una as u64..).zip(&self.sent[self.una..])
    }

    fn counts(&self) -> Counts {
        let count =
            |is: fn(&Naive) -> bool| self.sent[self.una..].iter().filter(|s| is(s)).count() as u32;
        Counts {
            sacked: count(|s| s.is_sacked),
            lost: count(|s| s.is_lost),
            resent: count(|s| s.is_resent),
        }
    }

    fn next_lost(&self) -> Option<u64> {
        self.outstanding()
            .find(|(_, s)| s.is_lost && !s.is_resent)
            .map(|(number, _)| number)
    }

    fn sack(&mut self, block: Block) {
        for number in
            (block.from as usize).max(self.una)..(block.until as usize).min(self.sent.len())
        {
            let sent = &mut self.sent[number];
            if !sent.is_sacked {
                sent.is_resent &= !sent.is_lost;
                (sent.is_sacked, sent.is_lost) = (true, false);
            }
        }
    }

    /// RFC 8985, 6.2, step 5, by its words.
    fn lose_by_time(&mut self, rack: &Rack, reo_wnd_ns: u64, now_ns: u64) {
        for number in self.una..self.sent.len() {
            let sent = &mut self.sent[number];
            let waits = sent.is_lost && !sent.is_resent;
            let is_late = rack.lost_at_ns(sent.sent_ns, reo_wnd_ns) <= now_ns;
            if !sent.is_sacked && !waits && rack.sent_after(sent.sent_ns, number as u64) && is_late
            {
                (sent.is_lost, sent.is_resent) = (true, false);
            }
        }
    }

    /// `IsLost` of RFC 6675, by its words: for a segment that never was lost before.
    fn lose_by_count(&mut self, dupthresh: u32) {
        for number in self.una..self.sent.len() {
            let beyond = self.sent[number..].iter().filter(|s| s.is_sacked).count();
            let sent = &mut self.sent[number];
            if !sent.is_sacked && !sent.is_lost && beyond >= dupthresh as usize {
                (sent.is_lost, sent.is_resent) = (true, false);
            }
        }
    }
}

impl Walker {
    /// FACK, by its words: below the highest that was SACKed.
    fn lose_by_highest(&mut self, dupthresh: u64) {
        let highest = self.sent.iter().rposition(|sent| sent.is_sacked);
        for number in self.una..self.sent.len() {
            let is_below = highest.is_some_and(|top| number as u64 + dupthresh <= top as u64);
            let sent = &mut self.sent[number];
            if is_below && !sent.is_sacked && !sent.is_lost {
                (sent.is_lost, sent.is_resent) = (true, false);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    /// Where among the outstanding, and how many.
    Sack(u16, u8),
    Acknowledge(u8),
    Lose(u64),
    Resend(u8),
    Timeout,
    Undo,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u8..30).prop_map(Step::Send),
        6 => (any::<u16>(), 1u8..12).prop_map(|(at, count)| Step::Sack(at, count)),
        3 => (1u8..20).prop_map(Step::Acknowledge),
        4 => (0u64..3).prop_map(Step::Lose),
        3 => (1u8..10).prop_map(Step::Resend),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
    ]
}

fn ack(next: u64, now_ns: u64) -> Ack {
    Ack {
        next,
        sent_ns: now_ns,
        echo_ns: now_ns,
        window_bytes: 0,
        ece: false,
        tells_duplicate: false,
        block_count: 0,
        blocks: [Block::default(); MAX_BLOCKS],
    }
}

fn compare(detection: Detection, steps: Vec<Step>) {
    let (mut board, mut walker, mut rack) = (Scoreboard::default(), Walker::default(), Rack::new());
    let mut now_ns = 1000;
    for step in steps {
        now_ns += 1;
        let mut arrivals = Arrivals::new(now_ns, now_ns, 0, 0);
        let out = board.next() - board.una();
        match step {
            Step::Send(count) => {
                for _ in 0..count {
                    board.send(now_ns, 1);
                    walker.sent.push(Naive {
                        sent_ns: now_ns,
                        ..Naive::default()
                    });
                }
            }
            Step::Sack(at, count) if out > 1 => {
                let from = board.una() + 1 + u64::from(at) % (out - 1);
                let until = (from + u64::from(count)).min(board.next());
                board.sack(Block { from, until }, &mut rack, &mut arrivals);
                walker.sack(Block { from, until });
            }
            Step::Sack(..) => (),
            Step::Acknowledge(count) => {
                let next = (board.una() + u64::from(count)).min(board.next());
                board.acknowledge(&ack(next, now_ns), &mut rack, &mut arrivals);
                walker.una = next as usize;
            }
            Step::Lose(reo_wnd_ns) if detection == Detection::Rack => {
                board.lose_by_time(&rack, reo_wnd_ns, now_ns);
                walker.lose_by_time(&rack, reo_wnd_ns, now_ns);
            }
            Step::Lose(_) if detection == Detection::Fack => {
                board.lose_by_highest(3);
                walker.lose_by_highest(3);
            }
            Step::Lose(_) => {
                board.lose_by_count(3);
                walker.lose_by_count(3);
            }
            Step::Resend(count) => {
                for _ in 0..count {
                    assert_eq!(board.next_lost(), walker.next_lost());
                    let Some(number) = board.next_lost() else {
                        break;
                    };
                    board.resend(number, now_ns);
                    let sent = &mut walker.sent[number as usize];
                    (sent.is_resent, sent.sent_ns) = (true, now_ns);
                }
            }
            Step::Undo => {
                board.find_all();
                walker.sent.iter_mut().for_each(|sent| sent.is_lost = false);
            }
            Step::Timeout => {
                board.lose_all(|_| true);
                for sent in &mut walker.sent[walker.una..] {
                    if !sent.is_sacked {
                        (sent.is_lost, sent.is_resent) = (true, false);
                    }
                }
            }
        }
        board.check_counts();
        assert_eq!(board.counts(), walker.counts());
        assert_eq!(board.next_lost(), walker.next_lost());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn losses_are_those_that_a_walk_finds(
        detection in prop::sample::select(vec![Detection::Rack, Detection::Sack, Detection::Fack]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        compare(detection, steps);
    }
}
