// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end: reassembly, SACK and DSACK blocks (RFC 2018, 2883), timestamps (RFC 7323).
//!
//! What lies beyond a hole is kept as ranges, so memory goes by the holes. The program reads at once, or says what it has
//! not read ([`Receiver::set_unread_bytes`]).

use std::collections::BTreeMap;

use fatpath_link::Ecn;

use super::acknowledging::{Acknowledging, Arrival};
use super::ranges::Ranges;
use super::receive_window::ReceiveWindow;
use super::{Ack, Block, MAX_BLOCKS, ReceiverFigures, Segment};
use crate::TcpSpec;

/// Blocks that the receiver remembers at least (`TCP_NUM_SACKS`).
const REMEMBERED: usize = 4;

/// Acknowledgements that do not wait after a mark (`__tcp_ecn_check_ce`).
const QUICK_AFTER_MARK: u64 = 2;

/// Blocks that the next acknowledgements surely carry (`TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED: usize = 2;

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    mss_bytes: u32,
    /// The next segment in order.
    next: u64,
    /// `next` of the last acknowledgement.
    acked_next: u64,
    /// Timestamp to echo (`TS.Recent`).
    echo_ns: u64,
    beyond: Ranges,
    /// Data beyond the first hole.
    beyond_bytes: u64,
    /// What the program has, and has not read.
    unread_bytes: u64,
    /// By how much segments beyond a hole are shorter than the MSS, or longer where it is less than 0.
    short: BTreeMap<u64, i64>,
    /// Where the newest segments arrived, newest first.
    recent: [Block; MAX_BLOCKS],
    recent_count: usize,
    /// Blocks in an acknowledgement at most; 0: no SACK.
    most_blocks: usize,
    duplicate: Option<Block>,
    /// A mark is echoed until the sender says that it has reduced its window.
    echoes_mark: bool,
    window: ReceiveWindow,
    acknowledging: Acknowledging,
    figures: ReceiverFigures,
}

impl Receiver {
    /// Of a connection whose handshake has just ended after `rtt_ns`.
    pub fn new(spec: &TcpSpec, rtt_ns: u64, now_ns: u64) -> Receiver {
        Receiver {
            mss_bytes: spec.mss_bytes,
            next: 0,
            acked_next: 0,
            echo_ns: 0,
            beyond: Ranges::default(),
            beyond_bytes: 0,
            unread_bytes: 0,
            short: BTreeMap::new(),
            recent: [Block::default(); MAX_BLOCKS],
            recent_count: 0,
            most_blocks: match spec.detection.uses_sack() {
                true => spec.sack_blocks.into(),
                false => 0,
            },
            duplicate: None,
            echoes_mark: false,
            window: ReceiveWindow::new(spec, rtt_ns, now_ns),
            acknowledging: Acknowledging::new(spec, rtt_ns),
            figures: ReceiverFigures::default(),
        }
    }

    /// The window it has offered last; at first the handshake's.
    pub fn window_bytes(&self) -> u64 {
        self.window.offered(self.figures.delivered_bytes)
    }

    /// So much of what was delivered the program has not read: it counts against the window, and when much of it was read,
    /// an acknowledgement says so.
    pub fn set_unread_bytes(&mut self, bytes: u64) {
        let has_read = bytes < std::mem::replace(&mut self.unread_bytes, bytes);
        let delivered_bytes = self.figures.delivered_bytes;
        if has_read && self.window.has_opened(delivered_bytes, self.held_bytes()) {
            self.acknowledging.hurry();
        }
    }

    /// What the program has not read of what was delivered.
    pub fn unread_bytes(&self) -> u64 {
        self.unread_bytes
    }

    /// What lies in the buffer.
    fn held_bytes(&self) -> u64 {
        self.beyond_bytes.saturating_add(self.unread_bytes)
    }

    /// A segment arrives. Whether it brought data for the first time.
    pub fn handle_segment(&mut self, now_ns: u64, segment: &Segment) -> bool {
        self.window.measure_rtt(now_ns, segment.echo_ns);
        if segment.payload_bytes == 0 {
            self.acknowledging.duplicate(self.window_bytes());
            return false;
        }
        self.figures.arrived_pkts += 1;
        self.note_ecn(segment);
        if segment.number <= self.acked_next {
            self.echo_ns = self.echo_ns.max(segment.sent_ns);
        }
        if segment.number < self.next || self.beyond.containing(segment.number).is_some() {
            self.arrived_again(segment.number);
            return false;
        }
        let had_hole = self.beyond.first().is_some();
        let fresh_bytes = if segment.number == self.next {
            self.deliver(now_ns, segment)
        } else {
            self.keep(segment);
            0
        };
        let has_hole = self.beyond.first().is_some();
        self.acknowledging.arrived(&Arrival {
            now_ns,
            fresh_bytes,
            next: self.next,
            has_hole,
            fills_last_hole: had_hole && !has_hole,
            window_bytes: self.window_bytes(),
        });
        true
    }

    /// RFC 3168, 6.1.3; Linux's first echo does not wait (`__tcp_ecn_check_ce`).
    fn note_ecn(&mut self, segment: &Segment) {
        if segment.cwr {
            self.echoes_mark = false;
            self.acknowledging.hurry();
        }
        if segment.ecn == Ecn::Marked && !self.echoes_mark {
            self.echoes_mark = true;
            self.acknowledging
                .quicken(self.window_bytes(), QUICK_AFTER_MARK);
        }
    }

    fn arrived_again(&mut self, number: u64) {
        self.figures.duplicate_pkts += 1;
        let until = number + 1;
        self.duplicate = Some(Block {
            from: number,
            until,
        });
        self.acknowledging.duplicate(self.window_bytes());
    }

    /// The next segment in order arrived, and with it what lay beyond it; gives their data.
    fn deliver(&mut self, now_ns: u64, segment: &Segment) -> u64 {
        let mut bytes = u64::from(segment.payload_bytes);
        self.next += 1;
        if let Some(first) = self.beyond.first().filter(|first| first.from == self.next) {
            bytes += self.take_beyond(first);
        }
        self.figures.delivered_bytes += bytes;
        let stretch_bytes = self.stretch_bytes();
        let delivered_bytes = self.figures.delivered_bytes;
        if (self.window).delivered(now_ns, bytes, delivered_bytes, stretch_bytes) {
            self.acknowledging.window_grows();
        }
        bytes
    }

    fn take_beyond(&mut self, first: Block) -> u64 {
        self.next = first.until;
        self.beyond.forget_below(first.until);
        let mut bytes = (first.until - first.from) * u64::from(self.mss_bytes);
        while let Some(short) = self
            .short
            .first_entry()
            .filter(|short| *short.key() < self.next)
        {
            bytes = bytes.wrapping_add_signed(-short.remove());
        }
        self.beyond_bytes -= bytes;
        self.forget_recent(self.next);
        bytes
    }

    fn forget_recent(&mut self, limit: u64) {
        let mut kept = 0;
        for place in 0..self.recent_count {
            if self.recent[place].from >= limit {
                self.recent[kept] = self.recent[place];
                kept += 1;
            }
        }
        self.recent_count = kept;
    }

    /// A segment beyond a hole.
    fn keep(&mut self, segment: &Segment) {
        self.figures.out_of_order_pkts += 1;
        let block = Block {
            from: segment.number,
            until: segment.number + 1,
        };
        self.beyond.insert(block, |_| ());
        self.beyond_bytes += u64::from(segment.payload_bytes);
        if segment.payload_bytes != self.mss_bytes {
            let short = i64::from(self.mss_bytes) - i64::from(segment.payload_bytes);
            self.short.insert(segment.number, short);
        }
        self.window.held_beyond(self.stretch_bytes());
        if let Some(range) = self.beyond.containing(segment.number) {
            self.remember(range);
        }
    }

    /// The range where the newest segment arrived becomes the first; those that it took in go.
    fn remember(&mut self, range: Block) {
        let mut rest = [Block::default(); MAX_BLOCKS];
        let mut count = 0;
        let mut place = self.recent_count;
        for (index, block) in self.recent[..self.recent_count].iter().enumerate() {
            if range.contains(block.from) {
                place = place.min(index);
            } else {
                rest[count] = *block;
                count += 1;
            }
        }
        if place >= EXPECTED.min(self.most_blocks) {
            self.acknowledging.hurry_compressed();
        }
        let kept = count.min(REMEMBERED.max(self.most_blocks) - 1);
        self.recent[0] = range;
        self.recent[1..=kept].copy_from_slice(&rest[..kept]);
        self.recent_count = kept + 1;
    }

    /// From the next byte in order to the last that arrived, holes among them.
    fn stretch_bytes(&self) -> u64 {
        let end = self.beyond.end().unwrap_or(self.next);
        (end - self.next) * u64::from(self.mss_bytes)
    }

    /// The next acknowledgement to leave now; to be asked until `None`.
    pub fn poll_ack(&mut self, now_ns: u64) -> Option<Ack> {
        self.acknowledging
            .take_due()
            .then(|| self.acknowledge(now_ns))
    }

    fn acknowledge(&mut self, now_ns: u64) -> Ack {
        let mut blocks = [Block::default(); MAX_BLOCKS];
        let mut count = 0;
        let duplicate = self.duplicate.take().filter(|_| self.most_blocks > 0);
        let recent = &self.recent[..self.recent_count];
        for block in duplicate.iter().chain(recent).take(self.most_blocks) {
            blocks[count] = *block;
            count += 1;
        }
        self.acked_next = self.next;
        self.figures.acks += 1;
        Ack {
            next: self.next,
            sent_ns: now_ns,
            echo_ns: self.echo_ns,
            window_bytes: self
                .window
                .offer(self.figures.delivered_bytes, self.held_bytes()),
            ece: self.echoes_mark,
            tells_duplicate: duplicate.is_some(),
            block_count: count as u8,
            blocks,
        }
    }

    /// When [`Receiver::handle_timeout`] is to be called.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        self.acknowledging.next_timeout_ns()
    }

    /// A time that [`Receiver::next_timeout_ns`] named has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.acknowledging.handle_timeout(now_ns);
    }

    /// The next segment in order.
    pub fn next_segment(&self) -> u64 {
        self.next
    }

    /// What the next acknowledgement echoes (`TS.Recent` of RFC 7323).
    pub fn echo_ns(&self) -> u64 {
        self.echo_ns
    }

    /// Data that arrived beyond a hole and wait for it, bytes.
    pub fn beyond_bytes(&self) -> u64 {
        self.beyond_bytes
    }

    /// Handed to the program, in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.figures.delivered_bytes
    }

    /// How it stands.
    pub fn figures(&self) -> ReceiverFigures {
        ReceiverFigures {
            buffer_bytes: self.window.buffer_bytes(),
            ..self.figures
        }
    }
}
