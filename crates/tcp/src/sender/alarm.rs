// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one timer of a sender, as in Linux, and what it is set for.

use super::Sender;
use super::State;

/// The least that Linux waits beyond what an estimate says: `TCP_TIMEOUT_MIN_US`, ns. It was two jiffies
/// before 6.6.
const LEAST_WAIT_NS: u64 = 2_000_000;

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlarmKind {
    /// RFC 6298.
    Retransmission,
    /// What may be reordered is lost then (RFC 8985, 6.2, step 5).
    Reordering,
    /// RFC 8985, 7.
    TailProbe,
    /// Of a closed window (RFC 9293, 3.8.6.1).
    WindowProbe,
}

/// The timer.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    set: Option<(AlarmKind, u64)>,
}

impl Alarm {
    pub(super) fn kind(&self) -> Option<AlarmKind> {
        self.set.map(|(kind, _)| kind)
    }

    pub(super) fn at_ns(&self) -> Option<u64> {
        self.set.map(|(_, at_ns)| at_ns)
    }

    pub(super) fn set(&mut self, kind: AlarmKind, at_ns: u64) {
        self.set = Some((kind, at_ns));
    }

    pub(super) fn clear(&mut self) {
        self.set = None;
    }

    /// What it was set for, if its time has come.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<AlarmKind> {
        self.set
            .take_if(|(_, at_ns)| *at_ns <= now_ns)
            .map(|(kind, _)| kind)
    }
}

impl Sender {
    /// After an acknowledgement of new data, which starts the timeout anew (RFC 6298, 5.3).
    pub(super) fn set_alarm(&mut self, now_ns: u64) {
        if !self.schedule_tail_probe(now_ns, self.rtt.rto_ns()) {
            self.restart_timeout(now_ns);
        }
    }

    /// `tcp_rearm_rto`: the timeout counts from now, or, where another alarm had taken its place, from
    /// when the oldest segment was sent.
    pub(super) fn restart_timeout(&mut self, now_ns: u64) {
        let Some(sent_ns) = self.board.oldest_sent_ns() else {
            return self.alarm.clear();
        };
        let since_ns = match self.alarm.kind() {
            Some(AlarmKind::Reordering | AlarmKind::TailProbe) => sent_ns,
            _ => now_ns,
        };
        let at_ns = (since_ns + self.rtt.rto_ns()).max(now_ns + 1);
        self.alarm.set(AlarmKind::Retransmission, at_ns);
    }

    /// A new burst has left: the tail loss probe's timer, no later than the timeout.
    pub(super) fn schedule_tail_probe_of_burst(&mut self, now_ns: u64) {
        if let Some(sent_ns) = self.board.oldest_sent_ns() {
            let left_ns = (sent_ns + self.rtt.rto_ns()).saturating_sub(now_ns);
            self.schedule_tail_probe(now_ns, left_ns);
        }
    }

    /// Two round trips, and the time of a delayed acknowledgement for a single segment (RFC 8985, 7.2). It needs SACK
    /// (7.1).
    fn schedule_tail_probe(&mut self, now_ns: u64, timeout_left_ns: u64) -> bool {
        let may_probe = matches!(self.state, State::Open | State::Cwr);
        if !self.tail_loss_probe
            || !self.detection.uses_sack()
            || self.board.is_empty()
            || !may_probe
        {
            return false;
        }
        let extra_ns = match self.board.packets_out() {
            1 => self.rtt.rto_min_ns(),
            _ => LEAST_WAIT_NS,
        };
        let mut wait_ns = 2 * self.rtt.srtt_ns() + extra_ns;
        if timeout_left_ns > 0 {
            wait_ns = wait_ns.min(timeout_left_ns);
        }
        self.alarm.set(AlarmKind::TailProbe, now_ns + wait_ns);
        true
    }

    /// Some segments may be late or lost: at `lost_at_ns` they are lost.
    pub(super) fn schedule_reordering(&mut self, lost_at_ns: u64) {
        self.alarm
            .set(AlarmKind::Reordering, lost_at_ns + LEAST_WAIT_NS);
    }

    /// Something is to be sent and nothing is on its way: the peer's window is closed.
    pub(super) fn schedule_window_probe(&mut self, now_ns: u64) {
        if self.board.is_empty() && self.has_unsent() && self.alarm.kind().is_none() {
            let wait_ns = self.rtt.rto_ns().max(self.rtt.rto_min_ns());
            self.alarm.set(AlarmKind::WindowProbe, now_ns + wait_ns);
        }
    }
}
