// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several flows of one transfer: each has a socket, keys, a window and congestion control of its own, and takes what it
//! sends from one queue, as it gets on. So a path that gives each flow a share, or spreads flows over several lines, carries
//! more of them together.

use crate::beside::{Quiet, silent_beside};
use crate::receive::wait_all as wait_to_receive;
use crate::send::wait_all as wait_to_send;
use crate::{LATE, RecvEnd, SendEnd, Sink, Source, StepError, Waits};
use fatpath_tcp::SenderFigures;
use fatpath_transport::{CloseCode, Extent, Queue};
use std::time::{Duration, Instant};

/// A flow takes so much at once: what flows read lies close together.
const PIECE_BYTES: u64 = 128 << 10;
/// All flows together are given so much ahead: what one was given no other sends.
const AHEAD_BYTES: u64 = 4 << 20;
/// When more stretches that were lost wait, they leave before the rest: a receiver asks for 10,000 at most when a transfer goes
/// on, and both ends keep note of each.
const MOST_LOST: usize = 8192;
/// A flow that has less to send would soon have nothing: a step of 10 Gb/s takes so much.
const LEAST_AHEAD_BYTES: u64 = 256 << 10;

/// The sending ends.
pub struct SendFlows {
    flows: Vec<SendEnd>,
    queue: Queue,
    /// What was found lost and leaves after all else ([`fatpath_transport::Spec::lost_last`]).
    lost: Queue,
    /// How many were given up, and how they stood.
    given_up: usize,
    given_up_figures: SenderFigures,
    waits: Waits,
}

/// The receiving ends.
pub struct RecvFlows {
    flows: Vec<RecvEnd>,
    waited_ns: u64,
}

impl SendFlows {
    /// Of these flows, one at least.
    pub fn new(flows: Vec<SendEnd>) -> SendFlows {
        SendFlows {
            flows,
            queue: Queue::default(),
            lost: Queue::default(),
            given_up: 0,
            given_up_figures: SenderFigures::default(),
            waits: Waits::default(),
        }
    }

    /// For how long steps waited, and for what, since this was asked last.
    pub fn take_waits(&mut self) -> Waits {
        std::mem::take(&mut self.waits)
    }

    /// Of that, for how long all that was given had left, nanoseconds: it is not given again.
    pub fn take_data_ns(&mut self) -> u64 {
        std::mem::take(&mut self.waits.data_ns)
    }

    /// This is to be sent, after what was given before.
    pub fn send(&mut self, extent: Extent) {
        self.queue.push(extent);
    }

    /// Bytes that were given and have not left, without those that were found lost and leave last.
    pub fn unsent_bytes(&self) -> u64 {
        let of_flows: u64 = self.flows.iter().map(SendEnd::unsent_bytes).sum();
        self.queue.bytes() + of_flows
    }

    /// The lowest byte that may not have arrived: its object, and where in it; `None`: all has.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        let of_flows = self.flows.iter().filter_map(SendEnd::lowest);
        let waiting = [self.queue.lowest(), self.lost.lowest()];
        of_flows.chain(waiting.into_iter().flatten()).min()
    }

    /// What they send from now on has this DSCP, until they are made polite.
    pub fn mark(&mut self, dscp: u8) {
        self.flows.iter_mut().for_each(|flow| flow.mark(dscp));
    }

    /// Congestion control is back at once, and the mark ends.
    pub fn be_polite_now(&mut self) {
        self.flows.iter_mut().for_each(SendEnd::be_polite_now);
    }

    /// UDP payload of a full datagram, of the flow whose path carries least.
    pub fn datagram_bytes(&self) -> u16 {
        let flows = self.flows.iter().map(SendEnd::datagram_bytes);
        flows.min().unwrap_or_default()
    }

    /// Flows that were silent while others went on: these have done their work, too.
    pub fn given_up(&self) -> usize {
        self.given_up
    }

    /// All that was given has arrived.
    pub fn is_done(&self) -> bool {
        let is_empty = self.queue.is_empty() && self.lost.is_empty();
        is_empty && self.flows.iter().all(SendEnd::is_done)
    }

    /// Tells the receiver that this is the end; the next step sends it.
    pub fn close(&mut self, code: CloseCode) {
        self.flows.iter_mut().for_each(|flow| flow.close(code));
    }

    /// When something that verifies came last by any flow, or the program said that the other end lives.
    pub fn heard(&self) -> Instant {
        newest(self.flows.iter().map(SendEnd::heard))
    }

    /// The program knows by another way that the other end lives, which waits for a disk perhaps: it is not silent.
    pub fn peer_is_alive(&mut self) {
        self.flows.iter_mut().for_each(SendEnd::peer_is_alive);
    }

    /// How they stand together: windows and counts are sums, the round-trip time is the longest.
    pub fn figures(&self) -> SenderFigures {
        let flows = self.flows.iter();
        flows.fold(self.given_up_figures, |sum, flow| {
            let figures = flow.figures();
            SenderFigures {
                cwnd_pkts: sum.cwnd_pkts.saturating_add(figures.cwnd_pkts),
                ssthresh_pkts: sum.ssthresh_pkts.saturating_add(figures.ssthresh_pkts),
                in_flight_pkts: sum.in_flight_pkts + figures.in_flight_pkts,
                srtt_us: sum.srtt_us.max(figures.srtt_us),
                ..counts(sum, flow)
            }
        })
    }

    /// A step of each flow; waits for at most `wait` when none had anything to do.
    ///
    /// # Errors
    /// One of them cannot go on.
    pub fn step(&mut self, source: &mut impl Source, wait: Duration) -> Result<(), StepError> {
        self.give_up_silent();
        self.deal();
        let (begun, mut has_worked) = (Instant::now(), false);
        for flow in &mut self.flows {
            has_worked |= flow.work(source)?;
            let lost = flow.take_lost().into_iter();
            lost.for_each(|lost| self.lost.push(lost));
        }
        if begun.elapsed() >= LATE {
            self.peer_is_alive(); // it may have spoken by any flow while the source stood
        }
        if !has_worked {
            let begun = Instant::now();
            wait_to_send(&mut self.flows, wait)?;
            let limits = self.flows.iter().map(SendEnd::limit);
            self.waits.add(limits, begun.elapsed().as_nanos() as u64);
        }
        Ok(())
    }

    /// What a flow had that is silent beside others is theirs.
    fn give_up_silent(&mut self) {
        let flows = self.flows.iter().map(|flow| {
            flow.knows_peer().then(|| Quiet {
                silent_for: flow.silent_for().unwrap_or_default(),
                was_heard: flow.was_heard(),
            })
        });
        let Some(place) = silent_beside(self.flows[0].silence(), flows) else {
            return;
        };
        let flow = self.flows.swap_remove(place);
        self.given_up += 1;
        self.given_up_figures = counts(self.given_up_figures, &flow);
        flow.into_rest().for_each(|extent| self.queue.push(extent));
    }

    fn deal(&mut self) {
        let most = AHEAD_BYTES / self.flows.len() as u64;
        if self.lost.extents() > MOST_LOST {
            self.deal_lost(most);
        }
        self.deal_queue(most);
        if self.queue.is_empty() {
            self.deal_lost(LEAST_AHEAD_BYTES.min(most));
        }
    }

    /// To flows that have less than `most` to send.
    fn deal_lost(&mut self, most: u64) {
        for flow in &mut self.flows {
            while flow.unsent_bytes() < most
                && flow.knows_peer()
                && let Some(lost) = self.lost.take(PIECE_BYTES)
            {
                flow.send(lost);
            }
        }
    }

    /// Pieces to the flows in turn, so that what they read is close together.
    fn deal_queue(&mut self, most: u64) {
        let mut has_room = true;
        while has_room {
            has_room = false;
            for flow in &mut self.flows {
                // One whose other end was not heard has nowhere to send to.
                if flow.unsent_bytes() >= most || !flow.knows_peer() {
                    continue;
                }
                let Some(piece) = self.queue.take(PIECE_BYTES) else {
                    return;
                };
                flow.send(piece);
                has_room = true;
            }
        }
    }
}

impl RecvFlows {
    /// Of these flows, one at least.
    pub fn new(flows: Vec<RecvEnd>) -> RecvFlows {
        RecvFlows {
            flows,
            waited_ns: 0,
        }
    }

    /// For how long steps waited for something to arrive, since this was asked last, nanoseconds.
    pub fn take_waited_ns(&mut self) -> u64 {
        std::mem::take(&mut self.waited_ns)
    }

    /// When something that verifies came last by any flow, or the program said that the other end lives.
    pub fn heard(&self) -> Instant {
        newest(self.flows.iter().map(RecvEnd::heard))
    }

    /// A step of each flow; waits for at most `wait` when nothing had arrived.
    ///
    /// # Errors
    /// One of them cannot go on.
    pub fn step(&mut self, sink: &mut impl Sink, wait: Duration) -> Result<(), StepError> {
        let mut has_arrived = false;
        for (number, flow) in self.flows.iter_mut().enumerate() {
            has_arrived |= flow.work(number, sink)?;
        }
        if !has_arrived {
            let begun = Instant::now();
            wait_to_receive(&self.flows, wait)?;
            self.waited_ns += begun.elapsed().as_nanos() as u64;
        }
        Ok(())
    }
}

/// With what this flow has sent.
fn counts(sum: SenderFigures, flow: &SendEnd) -> SenderFigures {
    let figures = flow.figures();
    SenderFigures {
        sent_pkts: sum.sent_pkts + figures.sent_pkts,
        retransmits: sum.retransmits + figures.retransmits,
        acked_bytes: sum.acked_bytes + figures.acked_bytes,
        delivered_pkts: sum.delivered_pkts + figures.delivered_pkts,
        timeouts: sum.timeouts + figures.timeouts,
        congestion_events: sum.congestion_events + figures.congestion_events,
        undone_events: sum.undone_events + figures.undone_events,
        marked_pkts: sum.marked_pkts + flow.marked_pkts(),
        ..sum
    }
}

fn newest(times: impl Iterator<Item = Instant>) -> Instant {
    times.max().unwrap_or_else(Instant::now)
}
