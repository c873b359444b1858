// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel, RFC 8289: drops or marks at the head of the line, by how long segments waited there.
//!
//! The sections cited are the RFC's. It decides on a segment when that is taken to be sent; here, as
//! many segments of a super-packet are decided on at once as no later arrival can have a say in.

use crate::cells::queue::line::{Line, Waiting};
use crate::{Counters, DropCause, Ecn, Packet, Wire};

#[derive(Debug)]
pub(crate) struct Codel {
    ecn: bool,
    control: Control,
    /// The longest segment so far, for the MTU of section 5.6's `maxpacket_`.
    longest_bytes: u64,
}

/// What decides, without the packets (section 5.3).
#[derive(Clone, Copy, Debug)]
struct Control {
    target_ns: u64,
    interval_ns: u64,
    /// When the sojourn will have been above the target for an interval.
    first_above_ns: Option<u64>,
    dropping: bool,
    drop_next_ns: u64,
    /// Drops since dropping began.
    count: u32,
    last_count: u32,
    /// The last segment taken was dropped, for this reason, and the next is taken in its place.
    replaces: Option<Signal>,
}

/// Why a segment is dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    /// Dropping begins.
    Enter,
    /// The time for the next drop has come.
    Next,
}

impl Codel {
    pub(crate) fn new(target_ns: u64, interval_ns: u64, ecn: bool) -> Codel {
        Codel {
            ecn,
            control: Control {
                target_ns,
                interval_ns,
                first_above_ns: None,
                dropping: false,
                drop_next_ns: 0,
                count: 0,
                last_count: 0,
                replaces: None,
            },
            longest_bytes: 0,
        }
    }

    pub(crate) fn change(&mut self, target_ns: u64, interval_ns: u64, ecn: bool) {
        self.ecn = ecn;
        self.control.target_ns = target_ns;
        self.control.interval_ns = interval_ns;
    }

    /// Takes the segments to send from `now_ns` on (section 5.5), the one that so many bytes precede at
    /// the moment that `begins_ns` says.
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        line: &mut Line<P>,
        now_ns: u64,
        begins_ns: impl Fn(u64) -> Option<u64>,
        counters: &mut Counters,
    ) -> Option<Waiting<P>> {
        loop {
            let Some(front) = line.front() else {
                self.control.run_empty();
                return None;
            };
            let (wire, arrived_ns) = (front.packet.wire(), front.arrived_ns);
            let overhead_bytes = line.overhead_bytes();
            let segment_bytes = wire.front_bytes(1, overhead_bytes);
            self.longest_bytes = self.longest_bytes.max(segment_bytes);
            let behind_bytes = line.depth().bytes - segment_bytes;
            let sojourn_ns = now_ns - arrived_ns;
            let short = behind_bytes <= self.longest_bytes;
            let Some(signal) = self.control.judge(now_ns, sojourn_ns, short) else {
                let after_bytes = line.depth().bytes - wire.len_bytes(overhead_bytes);
                let more = self.certain(wire, overhead_bytes, after_bytes, arrived_ns, begins_ns);
                return line.take_front(1 + more);
            };
            let mut taken = line.take_front(1)?;
            match taken.packet.ecn() {
                ecn if !self.ecn || ecn == Ecn::NotCapable => {
                    counters.drop(DropCause::Early, taken.packet.wire());
                    self.control.dropped(signal);
                }
                ecn => {
                    if ecn == Ecn::Capable {
                        taken.packet.mark();
                        counters.marked.add(taken.packet.wire());
                    }
                    self.control.marked(signal);
                    return Some(taken);
                }
            }
        }
    }

    /// How many segments behind the first one pass, whatever arrives until they are taken: those with
    /// a short sojourn, and those with a long enough line behind them. `after_bytes` wait behind the
    /// packet.
    fn certain(
        &mut self,
        wire: Wire,
        overhead_bytes: u32,
        after_bytes: u64,
        arrived_ns: u64,
        begins_ns: impl Fn(u64) -> Option<u64>,
    ) -> u32 {
        let taken_ns = |index| begins_ns(wire.front_bytes(index, overhead_bytes));
        let in_target = |at_ns: u64| at_ns - arrived_ns < self.control.target_ns;
        let last = wire.segments - 1;
        if last == 0 {
            return 0;
        }
        // The verdict on the first, which waited less, left nothing for the others to change.
        if taken_ns(last).is_some_and(in_target) {
            return last;
        }
        for index in 1..=last {
            let Some(at_ns) = taken_ns(index) else {
                return index - 1;
            };
            let sojourn_ns = at_ns - arrived_ns;
            let own_bytes =
                wire.len_bytes(overhead_bytes) - wire.front_bytes(index + 1, overhead_bytes);
            let short = own_bytes + after_bytes <= self.longest_bytes;
            let uncertain = short && sojourn_ns >= self.control.target_ns;
            let mut next = self.control;
            if uncertain || next.judge(at_ns, sojourn_ns, short).is_some() {
                return index - 1;
            }
            self.control = next;
        }
        last
    }
}

impl Control {
    /// Whether the segment that is taken at `now_ns` is to be dropped or marked, and why. `short`: no
    /// more than one packet of the largest size waits behind it.
    fn judge(&mut self, now_ns: u64, sojourn_ns: u64, short: bool) -> Option<Signal> {
        let may_drop = self.may_drop(now_ns, sojourn_ns, short);
        match self.replaces.take() {
            // What follows the first drop is sent, whatever it waited.
            Some(Signal::Enter) => return None,
            Some(Signal::Next) if may_drop => self.schedule(self.drop_next_ns),
            Some(Signal::Next) => {}
            None if !self.dropping && may_drop => {
                self.enter(now_ns);
                return Some(Signal::Enter);
            }
            None => {}
        }
        self.dropping &= may_drop;
        if !self.dropping || now_ns < self.drop_next_ns {
            return None;
        }
        self.count = self.count.saturating_add(1);
        Some(Signal::Next)
    }

    /// Section 5.6: the sojourn was above the target for an interval, and the line is not short.
    fn may_drop(&mut self, now_ns: u64, sojourn_ns: u64, short: bool) -> bool {
        if sojourn_ns < self.target_ns || short {
            self.first_above_ns = None;
            return false;
        }
        let above_ns = now_ns.saturating_add(self.interval_ns);
        now_ns >= *self.first_above_ns.get_or_insert(above_ns)
    }

    /// Section 5.5: when dropping ended a short time ago, it goes on at the rate that it had reached.
    fn enter(&mut self, now_ns: u64) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now_ns.saturating_sub(self.drop_next_ns) < 16 * self.interval_ns;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.schedule(now_ns);
        self.last_count = self.count;
    }

    /// The control law: interval / √count after `from_ns` (section 5.4).
    fn schedule(&mut self, from_ns: u64) {
        let gap_ns = self.interval_ns as f64 / f64::from(self.count.max(1)).sqrt();
        self.drop_next_ns = from_ns.saturating_add(gap_ns as u64);
    }

    fn dropped(&mut self, signal: Signal) {
        self.replaces = Some(signal);
    }

    /// A marked segment is sent, so that none takes its place.
    fn marked(&mut self, signal: Signal) {
        if signal == Signal::Next {
            self.schedule(self.drop_next_ns);
        }
    }

    fn run_empty(&mut self) {
        self.first_above_ns = None;
        self.replaces = None;
        self.dropping = false;
    }
}
