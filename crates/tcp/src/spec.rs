// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a connection's two ends are set to. Plain values.

use fatpath_cc::{Kind, Law, Start};
use fatpath_link::headers::{ETHERNET_MSS_BYTES, IPV4_TCP_BYTES, TIMESTAMP_BYTES};

use super::segment::{MAX_BLOCKS, TIMESTAMPED_BLOCKS};

/// RFC 791: the length is 16 bits.
const MAX_PACKET_BYTES: u32 = 65_535;
/// Beside the headers, the most SACK blocks (RFC 2018, 3).
const MAX_OPTION_BYTES: u32 = 4 + 8 * MAX_BLOCKS as u32;

/// The two ends of a connection. The default is a mainline kernel's.
#[derive(Clone, Debug)]
pub struct TcpSpec {
    /// The law; of a rude flow that of its fair window.
    pub law: Law,
    /// Without congestion control, from the beginning.
    pub rude: Option<RudeSpec>,
    /// How it starts.
    pub start: Start,
    /// The law is CUBIC, and starts as the kernel's own `cubic`: by HyStart, not HyStart++, and faster until its first loss.
    pub starts_as_kernel: bool,
    /// Largest payload of a segment (MTU less IP and TCP headers and timestamps).
    pub mss_bytes: u32,
    /// Headers of every packet: IP, TCP, timestamps.
    pub header_bytes: u32,
    /// Initial window, segments (RFC 6928).
    pub initial_window_pkts: u32,
    /// The congestion window never grows past it.
    pub cwnd_clamp_pkts: u32,
    /// What the sender may hold, sent and unsent, bytes of data.
    pub send_buffer: Buffer,
    /// What the receiver may hold, bytes of data.
    pub receive_buffer: Buffer,
    /// Pacing never above this, bits a second; `None`: no bound.
    pub pacing_rate_bps: Option<u64>,
    /// Paced, also without that.
    pub pacing: bool,
    /// Paced segments leave up to this much before their time, together, so that one wake-up sends many; 0: each at its own
    /// time, as Linux's timers let them.
    pub pacing_quantum_ns: u64,
    /// The most segments that leave between one acknowledgement and the next; 0: no bound. Rude flows have none.
    pub max_burst_pkts: u32,
    /// New segments leave together as Linux gives them to a device that cuts them (TSO), and wait for that.
    pub offload: bool,
    /// How loss is found.
    pub detection: Detection,
    /// SACK blocks in an acknowledgement at most, 1 to [`MAX_BLOCKS`]; not read where `detection` knows no SACK.
    pub sack_blocks: u8,
    /// How the window comes down to the threshold in recovery.
    pub reduction: WindowReduction,
    /// What an acknowledgement counts for the window's growth.
    pub growth: Growth,
    /// Duplicate acknowledgements, or segments SACKed beyond, that mean a loss (RFC 6675); it rises
    /// with the reordering that is seen, as in Linux.
    pub dupthresh: u32,
    /// Least retransmission timeout.
    pub rto_min_ns: u64,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// When the receiver acknowledges.
    pub delayed_acks: DelayedAcks,
    /// Full segments that a delayed acknowledgement waits for; RFC 5681, 4.2: two.
    pub delayed_ack_pkts: u32,
    /// Segments that the sender loses on purpose, numbers from 0: it counts them as sent, and they never leave. A number
    /// that is there twice is lost twice, its first retransmission too.
    pub drops: Vec<u64>,
    /// Both ends agreed on explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// A law that samples the delivery rate is told what was in flight and lost when each segment left,
    /// which Linux does not keep.
    pub knows_sending: bool,
    /// A law that samples the delivery rate is not told of losses that come without a queue, unless they are many: it would
    /// take what a bad line loses for what the path does not carry. Linux tells of all.
    pub tells_losses_apart: bool,
}

/// A flow without congestion control ("Rude TCP").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudeSpec {
    /// What bounds it beside its window.
    pub rate: RudeRate,
    /// When it gets congestion control again; `None`: never.
    pub off: Option<RudeOff>,
    /// Its artificial window is within so many thousandths of the fair one: it is polite.
    pub converged_milli: u32,
}

/// What bounds a rude flow beside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RudeRate {
    /// It is paced at what the path is found to carry, and slower as soon as a queue builds.
    Estimated,
    /// It is paced at its share of the path, bits of data a second.
    Share(u64),
    /// Nothing: it is not paced.
    Unlimited,
}

/// The end of being rude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudeOff {
    /// When.
    pub at_ns: u64,
    /// RUDE_OFF_NICELY, not RUDE_OFF_NOW.
    pub nicely: bool,
}

/// A buffer's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Fixed, bytes of data.
    Fixed(u64),
    /// It grows with need from the first to the second, as Linux's autotuning does.
    Auto(u64, u64),
}

/// How loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// By time (RFC 8985), as Linux does since 4.18.
    Rack,
    /// By counting segments (RFC 6675), as before: `tcp_recovery = 0`.
    Sack,
    /// By the highest segment that was SACKed (Mathis and Mahdavi, Forward Acknowledgement, SIGCOMM 1996, 3): all that
    /// is `dupthresh` or more below it is lost. Linux had it until 4.14 (`tcp_fack`).
    Fack,
    /// By duplicate acknowledgements without SACK, and by partial ones in recovery (RFC 6582).
    NewReno,
    /// By duplicate acknowledgements without SACK (RFC 5681, 3.2): the first acknowledgement of new data ends recovery.
    Reno,
}

impl Detection {
    /// Whether the two ends agree on SACK (RFC 2018).
    pub fn uses_sack(self) -> bool {
        !matches!(self, Detection::NewReno | Detection::Reno)
    }
}

/// How the window comes down to the threshold in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// In proportion to what arrives (RFC 6937, RFC 9937), as Linux does it since 3.2.
    Prr,
    /// At once (RFC 5681, 3.2; RFC 6675, 5): nothing leaves until what was on its way fits.
    AtOnce,
    /// Evenly over one window of arrivals: with a halving one segment leaves for two that arrive (rampdown of Mathis and
    /// Mahdavi, SIGCOMM 1996, 4.2).
    Rampdown,
}

/// What an acknowledgement counts for the window's growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The segments that it says have arrived, as Linux counts.
    Segments,
    /// One, whatever it acknowledges (RFC 5681, 3.1): delayed acknowledgements slow the growth down.
    Acks,
    /// As [`Growth::Segments`], in slow start two at most, and one after a timeout (RFC 3465, 2.2 and 2.3).
    AppropriateBytes,
}

/// When the receiver acknowledges data that arrived in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAcks {
    /// Every segment.
    Off,
    /// Every [`TcpSpec::delayed_ack_pkts`], or after this time.
    On {
        /// The longest wait.
        max_ns: u64,
    },
    /// As Linux: every one at the beginning, then as [`DelayedAcks::On`].
    QuickAtStart {
        /// The longest wait.
        max_ns: u64,
    },
}

impl DelayedAcks {
    /// The longest wait in Linux: TCP_DELACK_MIN of include/net/tcp.h.
    pub const MAX_NS: u64 = 40_000_000;
}

impl Default for TcpSpec {
    /// Linux over Ethernet: 1448 bytes of data beside 52 of headers, 10 segments, 200 ms of least RTO,
    /// `tcp_wmem` `4096 16384 4194304`, `tcp_rmem` `4096 131072 6291456` of which half is data.
    fn default() -> TcpSpec {
        TcpSpec {
            law: Law::RENO,
            rude: None,
            start: Start::default(),
            starts_as_kernel: false,
            mss_bytes: ETHERNET_MSS_BYTES,
            header_bytes: IPV4_TCP_BYTES + TIMESTAMP_BYTES,
            initial_window_pkts: 10,
            cwnd_clamp_pkts: u32::MAX,
            send_buffer: Buffer::Auto(16_384, 4_194_304),
            receive_buffer: Buffer::Auto(65_536, 3_145_728),
            pacing_rate_bps: None,
            pacing: false,
            pacing_quantum_ns: 0,
            max_burst_pkts: 0,
            offload: false,
            detection: Detection::Rack,
            sack_blocks: TIMESTAMPED_BLOCKS,
            reduction: WindowReduction::Prr,
            growth: Growth::Segments,
            dupthresh: 3,
            rto_min_ns: 200_000_000,
            tail_loss_probe: true,
            delayed_acks: DelayedAcks::QuickAtStart {
                max_ns: DelayedAcks::MAX_NS,
            },
            delayed_ack_pkts: 2,
            drops: vec![],
            ecn: false,
            knows_sending: false,
            tells_losses_apart: false,
        }
    }
}

/// A value of a [`TcpSpec`] is out of range: which, and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutOfRange(pub &'static str);

impl TcpSpec {
    /// Says what is out of range.
    ///
    /// # Errors
    /// The first such value.
    pub fn check(&self) -> Result<(), OutOfRange> {
        unless(self.mss_bytes > 0, "MSS: give more than 0 bytes")?;
        let lengths = [self.mss_bytes, MAX_OPTION_BYTES];
        let packet = lengths.map(|bytes| bytes.checked_add(self.header_bytes));
        unless(
            packet
                .iter()
                .all(|bytes| bytes.is_some_and(|bytes| bytes <= MAX_PACKET_BYTES)),
            "MSS: with headers, give at most 65535 bytes",
        )?;
        unless(
            self.initial_window_pkts > 0,
            "initial window: give more than 0 segments",
        )?;
        unless(
            self.cwnd_clamp_pkts > 0,
            "largest window: give more than 0 segments",
        )?;
        unless(self.dupthresh > 0, "duplicate ACKs: give more than 0")?;
        unless(
            (1..=MAX_BLOCKS).contains(&self.sack_blocks.into()),
            "SACK blocks: give 1 to 16",
        )?;
        unless(
            self.pacing_rate_bps != Some(0),
            "pacing: give more than 0 bit/s",
        )?;
        let has_window = self.law.spec().kind == Kind::Window;
        unless(
            self.rude.is_none() || has_window,
            "law: the fair window of a rude flow needs a law of windows, not one that samples delivery rates",
        )?;
        let is_still = self
            .rude
            .is_some_and(|rude| rude.rate == RudeRate::Share(0));
        unless(!is_still, "share: give more than 0 bit/s")?;
        unless(
            self.delayed_ack_pkts > 0,
            "delayed ACKs: give more than 0 segments",
        )?;
        unless(self.rto_min_ns > 0, "least RTO: give more than 0")
    }
}

fn unless(is_right: bool, problem: &'static str) -> Result<(), OutOfRange> {
    match is_right {
        true => Ok(()),
        false => Err(OutOfRange(problem)),
    }
}
