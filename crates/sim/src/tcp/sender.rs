// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end. This first version knows cumulative acknowledgements and the timeout only.

use std::collections::VecDeque;

use fatpath_cc::{Control, Window};

use super::{Ack, Segment, SenderFigures};
use crate::TcpSpec;

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    control: Control,
    window: Window,
    mss_bytes: u32,
    rto_ns: u64,
    una: u64,
    resend_from: u64,
    sent: VecDeque<u32>,
    sent_bytes: u64,
    unsent_bytes: u64,
    peer_window_bytes: u64,
    deadline_ns: Option<u64>,
    figures: SenderFigures,
}

impl Sender {
    /// Of a connection whose handshake has just ended after `rtt_ns`.
    pub fn new(spec: &TcpSpec, rtt_ns: u64, _now_ns: u64) -> Sender {
        let mut window = Window::new(spec.initial_window_pkts);
        window.clamp_pkts = spec.cwnd_clamp_pkts;
        let mut control = Control::new(spec.law, spec.start);
        control.begin(&mut window);
        Sender {
            control,
            window,
            mss_bytes: spec.mss_bytes,
            rto_ns: rtt_ns + spec.rto_min_ns.max(2 * rtt_ns),
            una: 0,
            resend_from: 0,
            sent: VecDeque::new(),
            sent_bytes: 0,
            unsent_bytes: 0,
            peer_window_bytes: 65_536,
            deadline_ns: None,
            figures: SenderFigures::default(),
        }
    }

    /// What the receiver offered in the handshake.
    pub fn set_peer_window(&mut self, bytes: u64) {
        self.peer_window_bytes = bytes;
    }

    /// The program gives data.
    pub fn write(&mut self, bytes: u64) {
        self.unsent_bytes += bytes;
    }

    /// An acknowledgement arrives.
    pub fn handle_ack(&mut self, now_ns: u64, ack: &Ack) {
        self.peer_window_bytes = ack.window_bytes;
        let mut acked_pkts = 0;
        while self.una < ack.next {
            let bytes = u64::from(self.sent.pop_front().unwrap_or(0));
            self.sent_bytes -= bytes;
            self.figures.acked_bytes += bytes;
            self.una += 1;
            acked_pkts += 1;
        }
        if acked_pkts > 0 {
            self.resend_from = self.resend_from.max(self.una);
            self.control.acked(&mut self.window, acked_pkts);
            self.deadline_ns = (!self.sent.is_empty()).then_some(now_ns + self.rto_ns);
        }
    }

    /// The next segment to leave now; to be asked until `None`.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Segment> {
        if self.resend_from - self.una >= u64::from(self.window.cwnd_pkts) {
            return None;
        }
        let number = self.resend_from;
        let payload_bytes = match self.sent.get((number - self.una) as usize) {
            Some(&bytes) => bytes,
            None => {
                let bytes = self.unsent_bytes.min(u64::from(self.mss_bytes));
                if bytes == 0 || self.sent_bytes + bytes > self.peer_window_bytes {
                    return None;
                }
                self.sent.push_back(bytes as u32);
                self.sent_bytes += bytes;
                self.unsent_bytes -= bytes;
                bytes as u32
            }
        };
        self.resend_from += 1;
        self.deadline_ns.get_or_insert(now_ns + self.rto_ns);
        self.figures.sent_pkts += 1;
        Some(Segment {
            number,
            payload_bytes,
            sent_ns: now_ns,
            echo_ns: 0,
        })
    }

    /// When [`Sender::handle_timeout`] is to be called.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// A time that [`Sender::next_timeout_ns`] named has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.deadline_ns.is_none_or(|at| at > now_ns) {
            return;
        }
        self.window.ssthresh_pkts = self.control.ssthresh(&mut self.window);
        self.window.cwnd_pkts = 1;
        self.resend_from = self.una;
        self.deadline_ns = Some(now_ns + self.rto_ns);
        self.figures.timeouts += 1;
    }

    /// Written and not yet acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.sent_bytes + self.unsent_bytes
    }

    /// All that was written has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.unacked_bytes() == 0
    }

    /// How it stands.
    pub fn figures(&self) -> SenderFigures {
        SenderFigures {
            cwnd_pkts: self.window.cwnd_pkts,
            ssthresh_pkts: self.window.ssthresh_pkts,
            in_flight_pkts: (self.resend_from - self.una) as u32,
            ..self.figures
        }
    }
}
