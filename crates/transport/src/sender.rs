// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that has the data.

use std::collections::VecDeque;

use fatpath_link::Ecn;
use fatpath_tcp::{DropList, Segment, SendLimit, SenderFigures};

use super::close::{CloseCode, Closing};
use super::departures::Departures;
use super::ecn::EcnPath;
use super::frame::{self, AckFrame};
use super::keys::FlowSecret;
use super::lowest::Lowest;
use super::packet::{HEADER_BYTES, Kind, TAG_BYTES};
use super::path_mtu::PathMtu;
use super::queue::{Extent, Queue, Run};
use super::seal::{KeyExhausted, Opener, Refused, Sealer};
use super::silence::Silence;
use super::spec::{OVERHEAD_BYTES, Spec, SpecError};

/// Why nothing could be sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError<E> {
    /// The bytes of a run could not be read. The segment counts as sent and lost: it is asked for again.
    #[error("{0}")]
    Read(E),
    /// The connection ends: what is polled next tells the receiver.
    #[error(transparent)]
    KeyExhausted(#[from] KeyExhausted),
}

/// What keeps an end from sending more, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// All that was given has left.
    Data,
    /// Congestion control, by its window or its pace: the path carries no more.
    Path,
    /// The rate that was given.
    Rate,
    /// [`Spec::window_bytes`].
    Window,
    /// The receiver, which offers less than the window: it holds what it has not written.
    Receiver,
}

/// A receiver that offers less than the window by an eighth holds as much; less is what arrives together.
const MUCH_HELD: u64 = 8;

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    tcp: fatpath_tcp::Sender,
    sealer: Sealer,
    opener: Opener,
    queue: Queue,
    /// What TCP knows of that is to be sent and in no segment yet, bytes.
    told_bytes: u64,
    /// Segments from `first` on that are not acknowledged.
    sent: VecDeque<Box<[Run]>>,
    first: u64,
    /// The lowest byte of those segments.
    lowest: Lowest,
    /// What was found lost, and waits until all else has left.
    lost: Vec<Extent>,
    departures: Departures,
    drops: DropList,
    spec: Spec,
    path_mtu: Option<PathMtu>,
    /// No more is on its way, whatever the receiver offers.
    window_bytes: u64,
    closing: Closing,
    silence: Silence,
    ecn: EcnPath,
    ack_delay_us: u32,
}

/// Of a segment.
fn bytes_of(runs: &[Run]) -> u32 {
    runs.iter().map(Run::segment_bytes).sum()
}

impl Sender {
    /// Of a connection whose keys were agreed on in `rtt_ns`, as far as is known.
    ///
    /// # Errors
    /// What of `spec` is out of range.
    pub fn new(
        spec: &Spec,
        secret: FlowSecret,
        rtt_ns: u64,
        now_ns: u64,
    ) -> Result<Sender, SpecError> {
        let tcp_spec = spec.tcp()?;
        let mut tcp = fatpath_tcp::Sender::new(&tcp_spec, rtt_ns, now_ns);
        // What the receiver, made of the same spec, offers before its first acknowledgement.
        let peer = fatpath_tcp::Receiver::new(&tcp_spec, rtt_ns, now_ns);
        tcp.set_peer_window(peer.window_bytes());
        let (sealer, opener) = secret.of_sender(spec.cipher);
        Ok(Sender {
            tcp,
            sealer,
            opener,
            queue: Queue::default(),
            told_bytes: 0,
            sent: VecDeque::new(),
            first: 0,
            lowest: Lowest::default(),
            lost: Vec::new(),
            departures: Departures::default(),
            drops: DropList::new(&spec.tcp.drops),
            path_mtu: (spec.search.as_ref()).map(|search| {
                PathMtu::new(*Spec::DATAGRAM_BYTES.start(), spec.datagram_bytes, search)
            }),
            spec: spec.clone(),
            window_bytes: spec.window_bytes,
            closing: Closing::default(),
            silence: Silence::new(spec.silence_ns),
            // ECT says that the sender slows down for a mark (RFC 3168, 5).
            ecn: EcnPath::new(spec.tcp.ecn && spec.tcp.rude.is_none()),
            ack_delay_us: 0,
        })
    }

    /// This is to be sent, after what was given before.
    ///
    /// # Panics
    /// If it ends beyond byte 2^62 of its object.
    pub fn send(&mut self, extent: Extent) {
        self.queue.push(extent);
    }

    /// Bytes that were given and are in no segment yet.
    pub fn unsent_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The lowest byte of what was given that may not have arrived: its object, and where in it; `None`: all has.
    pub fn lowest(&self) -> Option<(u32, u64)> {
        self.lowest
            .get()
            .into_iter()
            .chain(self.queue.lowest())
            .chain(self.lost.iter().map(|lost| (lost.object, lost.offset)))
            .min()
    }

    /// With [`Spec::lost_last`]: what was found lost and waits until all else has left, for whoever has more to send than was
    /// given here, and gives it again.
    pub fn take_lost(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.lost)
    }

    /// What was given and may not have arrived, for another connection to send.
    pub fn into_rest(self) -> impl Iterator<Item = Extent> {
        let sent = self.sent.into_iter().flatten();
        sent.map(|run| Extent::from(&run))
            .chain(self.queue.into_extents())
            .chain(self.lost)
    }

    /// All that was given has arrived.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.lost.is_empty() && self.sent.is_empty()
    }

    /// When something that verifies came last, or the program said that the other end lives; 0: never.
    pub fn heard_ns(&self) -> u64 {
        self.silence.heard_ns()
    }

    /// The program knows by another way that the other end lives, or did not listen itself: silence counts from now on.
    pub fn peer_is_alive(&mut self, now_ns: u64) {
        self.silence.heard(now_ns);
    }

    /// Ends the connection, whether all has arrived or not.
    pub fn close(&mut self, code: CloseCode) {
        self.closing.close(code);
    }

    /// The receiver has ended the connection.
    pub fn closed_by_peer(&self) -> Option<CloseCode> {
        self.closing.peers()
    }

    /// A datagram arrives.
    ///
    /// # Errors
    /// Why it is refused; then nothing has changed, but that [`Refused::Nonsense`] is not opened again.
    pub fn handle_datagram(&mut self, now_ns: u64, datagram: &mut [u8]) -> Result<(), Refused> {
        let opened = self.opener.open(datagram)?;
        self.sealer.heard(self.opener.phase());
        self.silence.heard(now_ns);
        match opened.header.kind {
            Kind::Hello => match opened.frame.is_empty() {
                true => Ok(()),
                false => Err(Refused::Nonsense),
            },
            Kind::Ack => self.handle_ack(now_ns, opened.frame),
            Kind::Close => {
                let code = frame::close(opened.frame).ok_or(Refused::Nonsense)?;
                self.closing.closed_by_peer(code);
                Ok(())
            }
            Kind::Sized => {
                let number = frame::number(opened.frame).ok_or(Refused::Nonsense)?;
                if number >= self.sealer.next_number() {
                    return Err(Refused::Nonsense);
                }
                self.note_path(now_ns, |path| path.answered(now_ns, number));
                Ok(())
            }
            Kind::Data | Kind::Probe | Kind::Size => Err(Refused::Nonsense),
        }
    }

    fn handle_ack(&mut self, now_ns: u64, frame: &[u8]) -> Result<(), Refused> {
        let mut ack = AckFrame::decode(frame).ok_or(Refused::Nonsense)?;
        let sent_end = self.first + self.sent.len() as u64;
        let echo_ns = self.departures.at_ns(ack.echo).ok_or(Refused::Nonsense)?;
        let is_sent = ack.capable_pkts + ack.marked_pkts <= self.sealer.next_number();
        if ack.end() > sent_end || !is_sent {
            return Err(Refused::Nonsense);
        }
        ack.window_bytes = ack.window_bytes.min(self.window_bytes);
        self.closing.heard();
        self.ack_delay_us = ack.delay_us;
        let tells_mark = self.ecn.acked(&ack);
        self.tcp
            .handle_ack(now_ns, &ack.as_tcp(echo_ns, tells_mark));
        let acked = ack.next.saturating_sub(self.first);
        if acked > 0 {
            self.ecn.advanced();
        }
        let longest = self
            .sent
            .drain(..acked as usize)
            .map(|runs| bytes_of(&runs));
        if let Some(longest) = longest.max().filter(|_| self.path_mtu.is_some()) {
            let size = u16::try_from(longest + OVERHEAD_BYTES).unwrap_or(u16::MAX);
            self.note_path(now_ns, |path| path.arrived(now_ns, size));
        }
        self.first += acked;
        self.lowest.forget_below(self.first);
        Ok(())
    }

    /// It has no congestion control now.
    pub fn is_rude(&self) -> bool {
        self.tcp.is_rude()
    }

    /// Congestion control is back at once, with the fair window (RUDE_OFF_NOW, docs/rude.md); one that has it is left alone.
    pub fn be_polite_now(&mut self) {
        self.tcp.be_polite_now();
    }

    /// A time that [`Sender::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        let timeouts = self.tcp.figures().timeouts;
        self.tcp.handle_timeout(now_ns);
        if self.tcp.figures().timeouts > timeouts {
            self.ecn.timed_out(self.sealer.next_number());
            self.note_path(now_ns, PathMtu::timed_out);
        }
        if !self.is_done() {
            self.note_path(now_ns, |path| path.handle_timeout(now_ns));
        }
    }

    /// UDP payload of a full datagram that leaves from now until the next `handle_*` or [`Sender::too_long`].
    pub fn datagram_bytes(&self) -> u16 {
        let found = self.path_mtu.as_ref().map(PathMtu::size);
        found.unwrap_or(self.spec.datagram_bytes)
    }

    /// The device takes no datagram of this size: the path's MTU is searched below. What was polled so is lost. Says whether
    /// others may pass.
    pub fn too_long(&mut self, now_ns: u64, datagram_bytes: u16) -> bool {
        self.note_path(now_ns, |path| path.too_long(now_ns, datagram_bytes));
        self.datagram_bytes() < datagram_bytes
    }

    /// Something is known of the path's MTU; if full datagrams have another size from now on, segments have.
    fn note_path(&mut self, now_ns: u64, note: impl FnOnce(&mut PathMtu)) {
        let before = self.datagram_bytes();
        self.path_mtu.as_mut().map(note);
        let now = self.datagram_bytes();
        if now != before {
            let rate_bps = self.spec.pacing_rate_bps(now);
            let bytes = Spec::segment_bytes(now);
            self.tcp.resize_segments(now_ns, bytes, rate_bps);
        }
    }

    /// The ECN field that datagrams are to leave with, from now until the next `handle_*`: ECT(0), while nothing speaks
    /// against it, also for what is sent again.
    pub fn ecn(&self) -> Ecn {
        match self.ecn.is_on() {
            true => Ecn::Capable,
            false => Ecn::NotCapable,
        }
    }

    /// Datagrams that met congestion and were marked, as far as was told (RFC 3168).
    pub fn marked_pkts(&self) -> u64 {
        self.ecn.marked_pkts()
    }

    /// When [`Sender::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.closing.is_closed() {
            return None;
        }
        let path_mtu = self.path_mtu.as_ref().filter(|_| !self.is_done());
        let path_ns = path_mtu.and_then(PathMtu::next_timeout_ns);
        let of_ends = [self.tcp.next_timeout_ns(), self.silence.ends_ns(), path_ns];
        of_ends.into_iter().flatten().min()
    }

    /// The receiver owes acknowledgements and has said nothing that verifies for [`Spec::silence_ns`]: it is gone, or the
    /// path carries nothing.
    pub fn is_abandoned(&self, now_ns: u64) -> bool {
        self.silence.is_over(now_ns)
    }

    /// Since when the receiver owes acknowledgements and has said nothing that verifies; `None`: it owes none.
    pub fn silent_since_ns(&self) -> Option<u64> {
        self.silence.since_ns()
    }

    /// Appends the next datagram that is to leave now to `datagrams`, and says whether there is one; to be asked until there
    /// is none. `read` gives the bytes of a run, those of a lost one again. Into an empty `datagrams` one may come that asks for
    /// a longer size than [`Sender::datagram_bytes`]: none follows it there.
    ///
    /// # Errors
    /// What `read` said, or the key is exhausted.
    pub fn poll_transmit<E>(
        &mut self,
        now_ns: u64,
        datagrams: &mut Vec<u8>,
        read: impl FnMut(&Run, &mut [u8]) -> Result<(), E>,
    ) -> Result<bool, PollError<E>> {
        let begin = datagrams.len();
        let left = match self.size_due(datagrams) {
            Some(size) => self.put_size(now_ns, datagrams, size),
            None => self.put_datagram(now_ns, datagrams, read),
        };
        if !matches!(left, Ok(true)) {
            datagrams.truncate(begin); // nothing that is not sealed leaves
        }
        self.silence.expect(now_ns, !self.sent.is_empty());
        left
    }

    /// A probe of the path's MTU that may leave now, alone, while there is something to send.
    fn size_due(&self, datagrams: &[u8]) -> Option<u16> {
        let may_leave = datagrams.is_empty() && !self.closing.is_closed() && !self.is_done();
        let path_mtu = self.path_mtu.as_ref().filter(|_| may_leave)?;
        path_mtu.due()
    }

    /// No segment, so that its loss is none.
    fn put_size<E>(
        &mut self,
        now_ns: u64,
        datagram: &mut Vec<u8>,
        size: u16,
    ) -> Result<bool, PollError<E>> {
        datagram.resize(usize::from(size) - TAG_BYTES, 0);
        let sealed = self.sealer.seal(Kind::Size, datagram, 0);
        let number = sealed.inspect_err(|_| self.closing.close(CloseCode::KEY_EXHAUSTED))?;
        self.departures.note(now_ns, self.sent.len());
        self.tcp.pace_other(now_ns, size.into());
        let timeout_ns = self.tcp.figures().rto_us.saturating_mul(1000);
        self.note_path(now_ns, |path| path.left(now_ns, number, timeout_ns));
        Ok(true)
    }

    fn put_datagram<E>(
        &mut self,
        now_ns: u64,
        datagrams: &mut Vec<u8>,
        read: impl FnMut(&Run, &mut [u8]) -> Result<(), E>,
    ) -> Result<bool, PollError<E>> {
        let begin = datagrams.len();
        datagrams.resize(begin + HEADER_BYTES, 0);
        let Some(kind) = self.put_frame(now_ns, datagrams, read)? else {
            return Ok(false);
        };
        let sealed = self.sealer.seal(kind, datagrams, begin);
        sealed.inspect_err(|_| self.closing.close(CloseCode::KEY_EXHAUSTED))?;
        self.departures.note(now_ns, self.sent.len());
        Ok(true)
    }

    fn put_frame<E>(
        &mut self,
        now_ns: u64,
        datagram: &mut Vec<u8>,
        mut read: impl FnMut(&Run, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Kind>, PollError<E>> {
        if let Some(code) = self.closing.take_due() {
            frame::push_close(datagram, code);
            return Ok(Some(Kind::Close));
        }
        if self.closing.is_closed() {
            return Ok(None);
        }
        let begin = datagram.len();
        loop {
            if self.queue.is_empty() {
                let lost = self.take_lost().into_iter();
                lost.for_each(|lost| self.queue.push(lost));
            }
            self.tell();
            let Some(segment) = self.tcp.poll_transmit(now_ns) else {
                return Ok(None);
            };
            datagram.truncate(begin);
            frame::push_segment(datagram, segment.number);
            if segment.payload_bytes == 0 {
                return Ok(Some(Kind::Probe));
            }
            self.put_runs(&segment, datagram, &mut read)?;
            if !self.drops.take(segment.number) {
                return Ok(Some(Kind::Data));
            }
        }
    }

    /// TCP never knows of more than is there: cutting an extent adds a header, and a remainder may not hold one, so more
    /// is told as it shows.
    fn tell(&mut self) {
        let least_bytes = self.queue.least_bytes();
        if least_bytes > self.told_bytes {
            self.tcp.write(least_bytes - self.told_bytes);
            self.told_bytes = least_bytes;
        }
    }

    fn put_runs<E>(
        &mut self,
        segment: &Segment,
        datagram: &mut Vec<u8>,
        read: &mut impl FnMut(&Run, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), PollError<E>> {
        let place = (segment.number - self.first) as usize;
        if place == self.sent.len() {
            self.told_bytes -= u64::from(segment.payload_bytes);
            let runs = self.queue.cut(segment.payload_bytes);
            let lowest = runs.iter().map(|run| (run.object, run.offset)).min();
            self.lowest.push(segment.number, lowest);
            self.sent.push_back(runs);
        } else if self.spec.lost_last && !self.queue.is_empty() {
            let runs = std::mem::take(&mut self.sent[place]);
            self.lost.extend(runs.iter().map(Extent::from));
        } else {
            self.shorten(place);
        }
        for run in &self.sent[place] {
            let bytes = frame::push_run(datagram, run);
            read(run, bytes).map_err(PollError::Read)?;
        }
        Ok(())
    }

    /// What no longer fits into the segment, as the path carries less than when it was sent first, leaves in others.
    fn shorten(&mut self, place: usize) {
        let mut room = Spec::segment_bytes(self.datagram_bytes());
        if bytes_of(&self.sent[place]) <= room {
            return;
        }
        let (mut kept, mut rests) = (vec![], vec![]);
        for run in &self.sent[place] {
            let (first, rest) = run.split(room);
            room -= first.map_or(0, |first| first.segment_bytes());
            kept.extend(first);
            rests.extend(rest);
        }
        self.sent[place] = kept.into();
        let rests = rests.into_iter().rev();
        rests.for_each(|rest| self.queue.push_front(rest));
    }

    /// How TCP stands; bytes are those of segments, headers of runs among them.
    pub fn figures(&self) -> SenderFigures {
        self.tcp.figures()
    }

    /// What keeps more from leaving, once [`Sender::poll_transmit`] gave nothing more.
    pub fn limit(&self) -> Limit {
        match self.tcp.limit() {
            SendLimit::Program => Limit::Data,
            SendLimit::Congestion => Limit::Path,
            SendLimit::Rate => Limit::Rate,
            SendLimit::PeerWindow => {
                let figures = self.tcp.figures();
                let held_bytes = self.window_bytes.saturating_sub(figures.peer_window_bytes);
                let was_told = figures.delivered_pkts > 0;
                match was_told && held_bytes > self.window_bytes / MUCH_HELD {
                    true => Limit::Receiver,
                    false => Limit::Window,
                }
            }
        }
    }

    /// How long the receiver waited before it acknowledged last, microseconds.
    pub fn ack_delay_us(&self) -> u32 {
        self.ack_delay_us
    }

    #[cfg(test)]
    pub(crate) fn limit_key(&mut self, renewal: u64, end: u64) {
        self.sealer.limit(renewal, end);
    }

    #[cfg(test)]
    pub(crate) fn phase(&self) -> u8 {
        self.sealer.phase()
    }
}
