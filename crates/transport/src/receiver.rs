// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that writes the data.

use std::collections::VecDeque;

use fatpath_link::Ecn;
use fatpath_tcp::{ReceiverFigures, Segment};

use super::close::{CloseCode, Closing};
use super::frame::{self, AckFrame, Data, Writes};
use super::keys::FlowSecret;
use super::packet::{HEADER_BYTES, Header, Kind};
use super::seal::{KeyExhausted, Opener, Refused, Sealer};
use super::silence::Silence;
use super::spec::{Spec, SpecError};

/// Segments beyond the next one in order that are taken, for memory goes by the holes: later ones count as lost. So many bytes
/// of the window for each, which is what a hole takes about, and no more than that.
const BYTES_OF_HOLE: u64 = 64;
const MOST_AHEAD: u64 = 1 << 22;
/// Answers to probes of the path's MTU that wait; a sender has no more on its way.
const MOST_SIZED: usize = 8;

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    tcp: fatpath_tcp::Receiver,
    opener: Opener,
    sealer: Sealer,
    most_segment_bytes: u32,
    most_ahead: u64,
    /// When the datagram arrived that the next acknowledgement echoes.
    echo_arrived_ns: u64,
    closing: Closing,
    silence: Silence,
    says_hello: bool,
    /// Datagrams that asked for a size, which the sender is to hear of.
    sized: VecDeque<u64>,
    /// Datagrams that arrived as ECT(0), as CE.
    ecn_pkts: (u64, u64),
}

/// What a datagram brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'d> {
    /// To be written, or held ([`Receiver::set_held_bytes`]). None of what had arrived before, but where the path's MTU fell and
    /// the sender did not hear what had arrived of long segments.
    pub writes: Writes<'d>,
}

impl Receiver {
    /// Of a connection whose keys were agreed on in `rtt_ns`, as far as is known.
    ///
    /// # Errors
    /// What of `spec` is out of range.
    pub fn new(
        spec: &Spec,
        secret: FlowSecret,
        rtt_ns: u64,
        now_ns: u64,
    ) -> Result<Receiver, SpecError> {
        let (sealer, opener) = secret.of_receiver(spec.cipher);
        Ok(Receiver {
            tcp: fatpath_tcp::Receiver::new(&spec.tcp()?, rtt_ns, now_ns),
            opener,
            sealer,
            most_segment_bytes: spec.most_segment_bytes(),
            most_ahead: (spec.window_bytes / BYTES_OF_HOLE).min(MOST_AHEAD),
            echo_arrived_ns: now_ns,
            closing: Closing::default(),
            silence: Silence::new(spec.silence_ns),
            says_hello: false,
            sized: VecDeque::new(),
            ecn_pkts: (0, 0),
        })
    }

    /// The next datagram tells the sender where this end is: the sender's packets cannot reach it before, where this end is
    /// the one that knows the other's address. To be said again until something arrives.
    pub fn say_hello(&mut self) {
        self.says_hello = true;
    }

    /// Whether data are expected now: the sender's silence counts only then.
    pub fn expect_data(&mut self, now_ns: u64, is_expected: bool) {
        self.silence.expect(now_ns, is_expected);
    }

    /// The sender owes data and has said nothing that verifies for [`Spec::silence_ns`]: it is gone, or the path carries
    /// nothing.
    pub fn is_abandoned(&self, now_ns: u64) -> bool {
        self.silence.is_over(now_ns)
    }

    /// When something that verifies came last, or the program said that the other end lives; 0: never.
    pub fn heard_ns(&self) -> u64 {
        self.silence.heard_ns()
    }

    /// The program knows by another way that the other end lives, or did not listen itself: silence counts from now on.
    pub fn peer_is_alive(&mut self, now_ns: u64) {
        self.silence.heard(now_ns);
    }

    /// So many bytes of what arrived the program holds, and has not written: the sender may send so many less. What it
    /// sends all the same is not taken, so that no more than the window is ever held.
    pub fn set_held_bytes(&mut self, bytes: u64) {
        self.tcp.set_unread_bytes(bytes);
    }

    /// Ends the connection.
    pub fn close(&mut self, code: CloseCode) {
        self.closing.close(code);
    }

    /// The sender has ended the connection.
    pub fn closed_by_peer(&self) -> Option<CloseCode> {
        self.closing.peers()
    }

    /// A datagram arrives, with this ECN field ([`Ecn::Capable`] is ECT(0) alone); it is opened in place.
    ///
    /// # Errors
    /// Why it is refused; then nothing has changed, but that [`Refused::Nonsense`] is not opened again.
    pub fn handle_datagram<'d>(
        &mut self,
        now_ns: u64,
        ecn: Ecn,
        datagram: &'d mut [u8],
    ) -> Result<Received<'d>, Refused> {
        let opened = self.opener.open(datagram)?;
        self.ecn_pkts.0 += u64::from(ecn == Ecn::Capable);
        self.ecn_pkts.1 += u64::from(ecn == Ecn::Marked);
        self.sealer.heard(self.opener.phase());
        self.silence.heard(now_ns);
        let (header, frame): (Header, &'d [u8]) = (opened.header, opened.frame);
        match header.kind {
            Kind::Data => self.handle_data(now_ns, header.number, ecn, frame),
            Kind::Probe => {
                let segment = frame::number(frame).ok_or(Refused::Nonsense)?;
                self.arrived(now_ns, header.number, ecn, (segment, 0));
                Ok(Received::NOTHING)
            }
            Kind::Close => {
                let code = frame::close(frame).ok_or(Refused::Nonsense)?;
                self.closing.closed_by_peer(code);
                Ok(Received::NOTHING)
            }
            Kind::Size => {
                self.closing.heard();
                self.sized.push_back(header.number);
                self.sized.truncate(MOST_SIZED);
                Ok(Received::NOTHING)
            }
            Kind::Ack | Kind::Hello | Kind::Sized => Err(Refused::Nonsense),
        }
    }

    fn handle_data<'d>(
        &mut self,
        now_ns: u64,
        number: u64,
        ecn: Ecn,
        frame: &'d [u8],
    ) -> Result<Received<'d>, Refused> {
        let data = Data::decode(frame).ok_or(Refused::Nonsense)?;
        if data.run_bytes > self.most_segment_bytes {
            return Err(Refused::Nonsense);
        }
        let is_far = data.segment >= self.tcp.next_segment() + self.most_ahead;
        if is_far || self.is_beyond_window(&data) {
            return Ok(Received::NOTHING);
        }
        let segment = (data.segment, data.run_bytes.max(1));
        if self.arrived(now_ns, number, ecn, segment) {
            let writes = data.writes;
            return Ok(Received { writes });
        }
        Ok(Received::NOTHING)
    }

    /// A sender that keeps the window sends no such segment. The next one in order is taken in any case while the program
    /// has written all: it needs no memory.
    fn is_beyond_window(&self, data: &Data) -> bool {
        let (run_bytes, window_bytes) = (u64::from(data.run_bytes), self.tcp.window_bytes());
        match data.segment == self.tcp.next_segment() {
            true => self.tcp.unread_bytes() > 0 && run_bytes > window_bytes,
            false => self.tcp.beyond_bytes() + run_bytes > window_bytes,
        }
    }

    /// Whether the segment of this number and length is new, and the connection goes on.
    fn arrived(&mut self, now_ns: u64, datagram: u64, ecn: Ecn, segment: (u64, u32)) -> bool {
        self.closing.heard();
        if self.closing.is_closed() {
            return false;
        }
        let is_new = self.tcp.handle_segment(
            now_ns,
            &Segment {
                number: segment.0,
                payload_bytes: segment.1,
                sent_ns: datagram, // rises as times do, and is echoed as it is
                echo_ns: 0,
                ecn,
                // Counts tell of marks, so each is a first one, of which the sender hears at once (RFC 9000, 13.2.1).
                cwr: ecn == Ecn::Marked,
            },
        );
        if self.tcp.echo_ns() == datagram {
            self.echo_arrived_ns = now_ns;
        }
        is_new
    }

    /// A time that [`Receiver::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.tcp.handle_timeout(now_ns);
    }

    /// When [`Receiver::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.closing.is_closed() {
            return None;
        }
        let tcp_ns = self.tcp.next_timeout_ns();
        tcp_ns.into_iter().chain(self.silence.ends_ns()).min()
    }

    /// Appends the next datagram that is to leave now to `datagrams`, and says whether there is one; to be asked until there
    /// is none.
    ///
    /// # Errors
    /// The key is exhausted, and the connection ends: what is polled next tells the sender.
    pub fn poll_transmit(
        &mut self,
        now_ns: u64,
        datagrams: &mut Vec<u8>,
    ) -> Result<bool, KeyExhausted> {
        let begin = datagrams.len();
        datagrams.resize(begin + HEADER_BYTES, 0);
        let Some(kind) = self.put_frame(now_ns, datagrams) else {
            datagrams.truncate(begin);
            return Ok(false);
        };
        let sealed = self.sealer.seal(kind, datagrams, begin);
        sealed.inspect_err(|_| {
            self.closing.close(CloseCode::KEY_EXHAUSTED);
            datagrams.truncate(begin); // nothing that is not sealed leaves
        })?;
        Ok(true)
    }

    fn put_frame(&mut self, now_ns: u64, datagram: &mut Vec<u8>) -> Option<Kind> {
        if let Some(code) = self.closing.take_due() {
            frame::push_close(datagram, code);
            return Some(Kind::Close);
        }
        if self.closing.is_closed() {
            return None;
        }
        if std::mem::take(&mut self.says_hello) {
            return Some(Kind::Hello);
        }
        if let Some(number) = self.sized.pop_front() {
            frame::push_segment(datagram, number);
            return Some(Kind::Sized);
        }
        let ack = self.tcp.poll_ack(now_ns)?;
        let delay_us = now_ns.saturating_sub(self.echo_arrived_ns) / 1000;
        let delay_us = u32::try_from(delay_us).unwrap_or(u32::MAX);
        AckFrame::of(&ack, delay_us, self.ecn_pkts).push(datagram);
        Some(Kind::Ack)
    }

    /// How TCP stands; bytes are those of segments, headers of runs among them.
    pub fn figures(&self) -> ReceiverFigures {
        self.tcp.figures()
    }
}

impl Received<'_> {
    const NOTHING: Received<'static> = Received {
        writes: Writes::NONE,
    };
}
