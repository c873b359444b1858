// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search of the path's MTU by probes of the transport's own (DPLPMTUD, RFC 8899): which size full datagrams have, which
//! probe is due, and what its answer, its loss, or the loss of full datagrams means. Sizes are UDP payload, bytes.
//!
//! | RFC 8899, 5.2 | here |
//! |---|---|
//! | BASE | the size that a connection begins with was confirmed before, as the base is where it is fallen back to |
//! | SEARCHING | [`Phase::Search`]: one probe at a time, of the largest usual size first, then of the middle |
//! | SEARCH_COMPLETE | [`Phase::Complete`]: nothing is gained by more; the whole is searched again after a while |
//! | ERROR | the size is below the base, which a search then tries first |
//! | a black hole, 4.3 | [`Phase::Doubt`]: nothing was acknowledged in time. Are small probes answered while full ones are not? |

use std::ops::RangeInclusive;

/// A probe is lost when no answer came for so long (RFC 8899, 5.1.1: no less than a second, and more than it takes).
const PROBE_TIMER_NS: u64 = 1_000_000_000;
/// Timeouts of the transport in a probe's timer, where that is more.
const TIMEOUTS_OF_PROBE: u64 = 2;
/// A size of which so many probes were lost does not pass; nor does the size of full datagrams, when so many small probes
/// were answered instead (RFC 8899, 5.1.2).
const MAX_PROBES: u8 = 3;
/// When the size may have become larger (RFC 8899, 5.1.1).
const PMTU_RAISE_TIMER_NS: u64 = 600_000_000_000;
/// Usual sizes: IPv6's least MTU, IPv4 in a tunnel of 1400, IPv6 over Ethernet and over jumbo frames.
const USUAL: [u16; 4] = [1232, 1372, 1452, 8952];
/// No more than this part of a size is worth a search.
const WORTH_PART: u32 = 32;
/// Probes whose answers are known again.
const REMEMBERED: usize = 8;

/// What is being found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Whether `failed` can be neared: so many probes of one size were lost.
    Search { lost: u8 },
    /// Nothing, until then.
    Complete { raise_ns: u64 },
    /// Whether full datagrams still pass: so many times a smaller one was answered, the largest of this size.
    Doubt { answered: u8, largest: u16 },
}

/// A probe that left.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    size: u16,
}

/// The search of one connection.
#[derive(Debug)]
pub(crate) struct PathMtu {
    floor: u16,
    base: u16,
    most: u16,
    /// Confirmed: what full datagrams have.
    size: u16,
    /// Sizes from here on do not pass, as far as is known.
    failed: u32,
    phase: Phase,
    /// Of the probes that left in this phase, the newest.
    left: Vec<Probe>,
    /// Sizes of probes that are to leave, the first last.
    due: Vec<u16>,
    /// When the latest probe is lost.
    lost_at_ns: Option<u64>,
}

impl PathMtu {
    /// Begins with `size`, which is known to pass, and goes no lower than `floor`; `search`: the base, and the largest size.
    pub(crate) fn new(floor: u16, size: u16, search: &RangeInclusive<u16>) -> PathMtu {
        let (base, most) = (*search.start(), *search.end());
        let mut path = PathMtu {
            floor: floor.min(base),
            base,
            most,
            size,
            failed: u32::from(most) + 1,
            phase: Phase::Search { lost: 0 },
            left: Vec::new(),
            due: Vec::new(),
            lost_at_ns: None,
        };
        path.search(0);
        path
    }

    /// UDP payload of a full datagram.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Of a probe that is to leave now; to be asked until there is none, with [`PathMtu::left`] in between.
    pub(crate) fn due(&self) -> Option<u16> {
        self.due.last().copied()
    }

    /// The probe that was due left as the datagram of this number; the transport's timeout is `timeout_ns`.
    pub(crate) fn left(&mut self, now_ns: u64, number: u64, timeout_ns: u64) {
        let Some(size) = self.due.pop() else {
            return;
        };
        if self.left.len() == REMEMBERED {
            self.left.remove(0);
        }
        self.left.push(Probe { number, size });
        let timer_ns = PROBE_TIMER_NS.max(TIMEOUTS_OF_PROBE.saturating_mul(timeout_ns));
        self.lost_at_ns = Some(now_ns.saturating_add(timer_ns));
    }

    /// When [`PathMtu::handle_timeout`] has something to do.
    pub(crate) fn next_timeout_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Complete { raise_ns } => Some(raise_ns),
            Phase::Search { .. } | Phase::Doubt { .. } => self.lost_at_ns,
        }
    }

    /// Time passes.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) {
        if self.next_timeout_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return;
        }
        self.lost_at_ns = None;
        match &mut self.phase {
            Phase::Complete { .. } => {
                self.failed = u32::from(self.most) + 1;
                self.search(now_ns);
            }
            Phase::Search { lost } => {
                *lost += 1;
                let size = self.left.last().map_or(self.size, |probe| probe.size);
                match *lost < MAX_PROBES {
                    true => self.due = vec![size],
                    false => self.fails(now_ns, size),
                }
            }
            Phase::Doubt { .. } => self.ask_all(),
        }
    }

    /// The other end has the datagram of this number.
    pub(crate) fn answered(&mut self, now_ns: u64, number: u64) {
        let Some(place) = self.left.iter().position(|probe| probe.number == number) else {
            return;
        };
        let size = self.left.remove(place).size;
        match self.phase {
            Phase::Doubt { .. } if size < self.size => self.smaller_answered(now_ns, size),
            Phase::Doubt { .. } => self.search(now_ns),
            Phase::Search { .. } | Phase::Complete { .. } if size > self.size => {
                self.size = size;
                self.failed = self.failed.max(u32::from(size) + 1);
                self.search(now_ns);
            }
            Phase::Search { .. } | Phase::Complete { .. } => {}
        }
    }

    fn smaller_answered(&mut self, now_ns: u64, size: u16) {
        let Phase::Doubt { answered, largest } = &mut self.phase else {
            return;
        };
        *largest = size.max(*largest);
        *answered += u8::from(size == self.floor); // which leaves last: once for each time that all were asked
        if *answered < MAX_PROBES {
            if size == self.floor {
                self.ask_all();
            }
            return;
        }
        let largest = *largest;
        self.failed = self.size.into();
        self.size = largest;
        self.search(now_ns);
    }

    /// What is acknowledged came in a datagram of this size: if that is larger than the base, such ones pass.
    pub(crate) fn arrived(&mut self, now_ns: u64, size: u16) {
        if matches!(self.phase, Phase::Doubt { .. }) && size > self.base {
            self.search(now_ns);
        }
    }

    /// The transport has waited in vain for an acknowledgement.
    pub(crate) fn timed_out(&mut self) {
        if self.size > self.floor && !matches!(self.phase, Phase::Doubt { .. }) {
            self.phase = Phase::Doubt {
                answered: 0,
                largest: self.floor,
            };
            // What was answered before the doubt says nothing of the path since.
            self.left.clear();
            self.ask_all();
        }
    }

    /// The device takes nothing of this size.
    pub(crate) fn too_long(&mut self, now_ns: u64, size: u16) {
        if size <= self.size {
            self.size = self.base.min(size - 1).max(self.floor);
            self.left.clear();
        }
        self.fails(now_ns, size);
    }

    fn fails(&mut self, now_ns: u64, size: u16) {
        self.failed = self.failed.min(size.into()).max(u32::from(self.size) + 1);
        self.search(now_ns);
    }

    /// The full size first, so that the answers to others come after its own.
    fn ask_all(&mut self) {
        self.due = vec![self.floor];
        if (self.floor + 1..self.size).contains(&self.base) {
            self.due.push(self.base);
        }
        self.due.push(self.size);
    }

    /// Goes on with the next size, if one is worth it.
    fn search(&mut self, now_ns: u64) {
        self.lost_at_ns = None;
        match self.next_size() {
            Some(size) => (self.phase, self.due) = (Phase::Search { lost: 0 }, vec![size]),
            None => {
                let raise_ns = now_ns.saturating_add(PMTU_RAISE_TIMER_NS);
                (self.phase, self.due) = (Phase::Complete { raise_ns }, vec![]);
            }
        }
    }

    fn next_size(&self) -> Option<u16> {
        let fits = |size: &u16| *size > self.size && u32::from(*size) < self.failed;
        if self.size < self.base {
            return Some(self.base).filter(fits);
        }
        let usual = USUAL.into_iter().chain([self.most]);
        let usual = usual.filter(|size| *size <= self.most).filter(fits).max();
        let (size, room) = (u32::from(self.size), self.failed - u32::from(self.size));
        let middle = (room > size / WORTH_PART + 1).then(|| (size + room / 2) as u16);
        usual.or(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const RTT: u64 = 50 * MS;
    const FLOOR: u16 = 512;

    /// A path, and whoever sends over it.
    struct Path {
        mtu: PathMtu,
        /// The largest size that passes; and that the device takes.
        passes: u16,
        device: u16,
        now_ns: u64,
        number: u64,
        /// Sizes that were answered, and the one that was known at first.
        confirmed: Vec<u16>,
    }

    impl Path {
        fn new(size: u16, search: RangeInclusive<u16>, passes: u16) -> Path {
            Path {
                mtu: PathMtu::new(FLOOR, size, &search),
                passes,
                device: u16::MAX,
                now_ns: 0,
                number: 0,
                confirmed: vec![size],
            }
        }

        /// Sends what is due, of which `is_lost` may take some, and hears the answers a round trip later, or the timer.
        fn step(&mut self, is_lost: &mut impl FnMut() -> bool) {
            let mut arrived = vec![];
            while let Some(size) = self.mtu.due() {
                assert!(size >= FLOOR);
                if size > self.device {
                    self.mtu.too_long(self.now_ns, size);
                    continue;
                }
                self.mtu.left(self.now_ns, self.number, 4 * RTT);
                if size <= self.passes && !is_lost() {
                    arrived.push((self.number, size));
                }
                self.number += 1;
            }
            self.now_ns += RTT;
            for (number, size) in arrived {
                self.confirmed.push(size);
                self.mtu.answered(self.now_ns, number);
            }
            if self.mtu.due().is_none() {
                let at_ns = self.mtu.next_timeout_ns().expect("it goes on");
                if matches!(self.mtu.phase, Phase::Complete { .. }) {
                    return;
                }
                self.now_ns = self.now_ns.max(at_ns);
                self.mtu.handle_timeout(self.now_ns);
            }
        }

        fn run(&mut self, steps: usize, mut is_lost: impl FnMut() -> bool) {
            for _ in 0..steps {
                self.step(&mut is_lost);
                // What is larger than the path carries is not acknowledged.
                if self.mtu.size() > self.passes {
                    self.mtu.timed_out();
                }
                assert!(self.confirmed.contains(&self.mtu.size()), "{:?}", self.mtu);
            }
        }

        fn raise(&mut self) {
            if let Phase::Complete { raise_ns } = self.mtu.phase {
                self.now_ns = raise_ns;
                self.mtu.handle_timeout(raise_ns);
            }
        }
    }

    fn is_near(found: u16, passes: u16) -> bool {
        let found = u32::from(found);
        (found..=found + found / WORTH_PART + 1).contains(&passes.into())
    }

    proptest! {
        /// Whatever is lost, no more than passes, no less than was known; and when nothing is lost any more, all that is worth it.
        #[test]
        fn what_passes_is_found(
            passes in 1232u16..=9000,
            begins_high in any::<bool>(),
            lost in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let size = if begins_high && passes >= 1452 { 1452 } else { 1232 };
            let mut path = Path::new(size, 1232..=8952, passes);
            let mut lost = lost.into_iter();
            for _ in 0..200 {
                path.run(1, || lost.next().unwrap_or(false));
                prop_assert!((size..=passes).contains(&path.mtu.size()));
            }
            path.raise();
            path.run(200, || false);
            prop_assert!(is_near(path.mtu.size(), passes.min(8952)), "{:?}", path.mtu);
            prop_assert_eq!(path.mtu.due(), None);
        }

        /// A path that carries less from some time on, or more, is followed, also where probes are lost.
        #[test]
        fn what_changes_is_followed(
            all in prop::collection::vec((512u16..=9000, prop::collection::vec(any::<bool>(), 0..12)), 1..6),
        ) {
            let mut path = Path::new(1452, 1232..=8952, 1452);
            for (passes, lost) in all {
                path.passes = passes;
                let mut lost = lost.into_iter();
                path.run(200, || lost.next().unwrap_or(false));
                prop_assert!((FLOOR..=passes).contains(&path.mtu.size()), "{:?}", path.mtu);
                path.raise();
                path.run(200, || false);
                let expected = if passes < 1232 { FLOOR..=passes } else { 1232..=passes };
                prop_assert!(expected.contains(&path.mtu.size()), "{:?}", path.mtu);
            }
        }

        /// Answers to what was never asked, and any order of events, leave the size within what was confirmed.
        #[test]
        fn nothing_but_an_answer_raises_it(events in prop::collection::vec((0u8..6, 0u64..40), 0..200)) {
            let mut mtu = PathMtu::new(FLOOR, 1452, &(1232..=8952));
            let (mut now_ns, mut sizes, mut number) = (0, vec![], 0);
            for (event, what) in events {
                let before = mtu.size();
                match event {
                    0 => while let Some(size) = mtu.due() {
                        mtu.left(now_ns, number, RTT);
                        sizes.push(size);
                        number += 1;
                    },
                    1 => mtu.answered(now_ns, what),
                    2 => mtu.timed_out(),
                    3 => mtu.arrived(now_ns, 1400),
                    4 => mtu.too_long(now_ns, 1300 + 200 * what as u16),
                    _ => {
                        now_ns += what * 1_000 * MS;
                        mtu.handle_timeout(now_ns);
                    }
                }
                let is_answer = event == 1 && sizes.get(what as usize) == Some(&mtu.size());
                prop_assert!(mtu.size() <= before || is_answer);
                prop_assert!((FLOOR..=8952).contains(&mtu.size()));
            }
        }
    }

    #[test]
    fn ethernet_is_found_by_one_probe_and_jumbo_frames_are() {
        let mut path = Path::new(1232, 1232..=1452, 1452);
        path.run(1, || false);
        assert_eq!((path.mtu.size(), path.number), (1452, 1));
        let mut path = Path::new(1452, 1232..=8952, 9000);
        path.run(1, || false);
        assert_eq!((path.mtu.size(), path.number), (8952, 1));
        // Where the device says what it takes, nothing waits for an answer.
        let mut path = Path::new(1452, 1232..=65_487, 1472);
        path.device = 1472;
        path.run(1, || false);
        assert_eq!(
            (path.mtu.size(), path.mtu.due(), path.number),
            (1452, None, 0)
        );
    }

    /// A lost probe is sent again, and a size fails when three of them were.
    #[test]
    fn a_size_fails_by_three_losses() {
        for losses in 0..5 {
            let mut path = Path::new(1232, 1232..=1452, 1452);
            let mut lost = (0..losses).map(|_| true);
            path.run(losses + 1, || lost.next().unwrap_or(false));
            assert_eq!(path.mtu.size() == 1452, losses < 3, "{losses}");
        }
    }

    /// A timeout alone changes nothing, nor do small probes that pass while a full one does, or data.
    #[test]
    fn a_doubt_ends_where_full_datagrams_pass() {
        let mut path = Path::new(1452, 1232..=1452, 1452);
        path.mtu.timed_out();
        path.run(1, || false);
        assert_eq!((path.mtu.size(), path.mtu.due()), (1452, None));
        path.mtu.timed_out();
        assert_eq!(path.mtu.due(), Some(1452));
        path.mtu.arrived(path.now_ns, 1232);
        assert!(path.mtu.due().is_some());
        path.mtu.arrived(path.now_ns, 1300);
        assert_eq!(path.mtu.due(), None);
        // An outage: nothing is answered, and nothing is concluded.
        path.mtu.timed_out();
        path.run(50, || true);
        assert_eq!(path.mtu.size(), 1452);
    }

    /// It arrived when the path may still have carried it.
    #[test]
    fn an_answer_of_before_a_doubt_does_not_count() {
        let mut mtu = PathMtu::new(FLOOR, 1452, &(1232..=8952));
        mtu.left(0, 0, RTT);
        mtu.timed_out();
        mtu.answered(RTT, 0);
        assert_eq!((mtu.size(), mtu.due()), (1452, Some(1452)));
    }

    /// Three round trips, and not more, once it is doubted.
    #[test]
    fn a_black_hole_is_found_in_three_round_trips() {
        let mut path = Path::new(8952, 1232..=8952, 1400);
        path.mtu.timed_out();
        path.run(3, || false);
        assert_eq!((path.mtu.size(), path.now_ns), (1232, 3 * RTT));
        path.run(60, || false);
        assert!(is_near(path.mtu.size(), 1400), "{:?}", path.mtu);
    }
}
