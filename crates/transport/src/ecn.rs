// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification at the sender: whether the path carries it, and which acknowledgements tell TCP of a
//! mark. Datagrams leave as ECN-capable until the path is found to clear the field, to mangle it, or to lose what has it
//! (RFC 9000, 13.4.2); then never again.

use super::frame::AckFrame;

/// Datagrams that a path is tried with before it is taken to mark, or to lose, whatever is capable: as many as a QUIC sender
/// tries (RFC 9000, 13.4.2).
const TRIED_PKTS: u64 = 10;

/// What is known of the path.
#[derive(Debug)]
pub(crate) struct EcnPath {
    is_on: bool,
    /// An acknowledgement showed that ECN-capable datagrams arrive.
    is_shown: bool,
    marked_pkts: u64,
    /// Timeouts since something new was acknowledged.
    timeouts_in_row: u32,
}

impl EcnPath {
    pub(crate) fn new(is_on: bool) -> EcnPath {
        EcnPath {
            is_on,
            is_shown: false,
            marked_pkts: 0,
            timeouts_in_row: 0,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Marks that were told.
    pub(crate) fn marked_pkts(&self) -> u64 {
        self.marked_pkts
    }

    /// Whether an acknowledgement tells of marks that none had told of. Each segment below its next came in a datagram at
    /// least, and all of them were capable: fewer that arrived so mean that the field was changed. That holds whatever order
    /// acknowledgements come in.
    pub(crate) fn acked(&mut self, ack: &AckFrame) -> bool {
        let is_cleared = ack.capable_pkts + ack.marked_pkts < ack.next;
        let is_mangled = ack.capable_pkts == 0 && ack.marked_pkts >= TRIED_PKTS;
        self.is_on &= !is_cleared && !is_mangled;
        self.is_shown |= ack.capable_pkts + ack.marked_pkts > 0;
        let is_new = self.is_on && ack.marked_pkts > self.marked_pkts;
        if is_new {
            self.marked_pkts = ack.marked_pkts;
        }
        is_new
    }

    /// What had not been acknowledged is.
    pub(crate) fn advanced(&mut self) {
        self.timeouts_in_row = 0;
    }

    /// The sender, of which so many datagrams left, has waited in vain for an acknowledgement of something. The path loses
    /// what is capable where as many as are tried left and none is known to have arrived, or, since that may begin at any
    /// time, where what was sent again was lost too.
    pub(crate) fn timed_out(&mut self, sent_pkts: u64) {
        self.timeouts_in_row += 1;
        let is_lost_from_start = !self.is_shown && sent_pkts >= TRIED_PKTS;
        self.is_on &= !is_lost_from_start && self.timeouts_in_row < 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(next: u64, capable_pkts: u64, marked_pkts: u64) -> AckFrame {
        AckFrame {
            next,
            capable_pkts,
            marked_pkts,
            ..AckFrame::decode(&[0; 46]).expect("zeros are an acknowledgement")
        }
    }

    /// Those of a path, and what comes of each: whether it tells of a mark, and whether ECN goes on.
    fn check(acks: &[(u64, u64, u64)], expected: &[(bool, bool)]) {
        let mut path = EcnPath::new(true);
        let told = acks.iter().map(|(next, capable, marked)| {
            let tells = path.acked(&ack(*next, *capable, *marked));
            (tells, path.is_on())
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn marks_are_told_of_once() {
        let (quiet, tells) = ((false, true), (true, true));
        check(
            &[(4, 4, 0), (8, 6, 2), (8, 8, 2), (6, 5, 1), (9, 8, 3)],
            &[quiet, tells, quiet, quiet, tells],
        );
    }

    #[test]
    fn a_path_that_changes_the_field_is_found_out() {
        let (fine, off) = ((false, true), (false, false));
        check(&[(2, 0, 0), (5, 5, 5)], &[off, off]);
        check(&[(90, 95, 0), (95, 95, 0), (96, 95, 0)], &[fine, fine, off]);
        check(&[(9, 0, 9), (10, 0, 10)], &[(true, true), off]);
    }

    #[test]
    fn a_path_that_loses_capable_datagrams_is_found_out() {
        let after = |acked: bool, sent_pkts: &[u64]| {
            let mut path = EcnPath::new(true);
            if acked {
                path.acked(&ack(1, 1, 0));
            }
            sent_pkts.iter().for_each(|sent| path.timed_out(*sent));
            path.is_on()
        };
        assert!(after(false, &[9]) && !after(false, &[10]) && !after(false, &[1, 2]));
        assert!(after(true, &[10]) && !after(true, &[10, 11]));
        let mut path = EcnPath::new(true);
        path.timed_out(5);
        path.advanced();
        path.timed_out(6);
        assert!(path.is_on());
    }
}
