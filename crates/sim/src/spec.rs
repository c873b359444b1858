// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is simulated: hosts, links, and the flows between hosts. Plain values.

use fatpath_cc::{Law, Start};
use fatpath_link::ChainSpec;

use fatpath_link::headers::{ETHERNET_MSS_BYTES, IPV4_TCP_BYTES, TIMESTAMP_BYTES};

/// A whole simulation. Hosts are numbers from 0; all of them forward.
#[derive(Clone, Debug, Default)]
pub struct Spec {
    /// How many hosts and routers.
    pub hosts: usize,
    /// The links between them.
    pub links: Vec<LinkSpec>,
    /// For every host, for every destination host: the link to take first and its direction (0 or 1);
    /// `None` where there is no way.
    pub routes: Vec<Vec<Option<(usize, usize)>>>,
    /// What links become while it runs, by rising time.
    pub changes: Vec<ChangeSpec>,
    /// What is sent.
    pub flows: Vec<FlowSpec>,
    /// When it ends at the latest.
    pub end_ns: u64,
    /// Of the sources' randomness.
    pub seed: u64,
    /// Time between two samples of a flow; `None`: no series.
    pub sample_every_ns: Option<u64>,
}

impl Spec {
    /// Whether seeds matter. If not, equal specs but for their seeds give equal outcomes.
    pub fn is_random(&self) -> bool {
        let links = self.links.iter().flat_map(|link| &link.directions);
        let changes = self.changes.iter().flat_map(|change| &change.directions);
        let is_web = |flow: &FlowSpec| matches!(flow.source, Source::Web { .. });
        links.chain(changes).any(ChainSpec::is_random) || self.flows.iter().any(is_web)
    }
}

/// A link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its two hosts.
    pub between: [usize; 2],
    /// The largest IP packet.
    pub mtu_bytes: u32,
    /// From the first to the second, and back.
    pub directions: [ChainSpec; 2],
}

/// A link that becomes another.
#[derive(Clone, Debug)]
pub struct ChangeSpec {
    /// When.
    pub at_ns: u64,
    /// Which.
    pub link: usize,
    /// What it does from then on.
    pub directions: [ChainSpec; 2],
}

/// A flow, or the flows of many users.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The host that sends the data.
    pub from: usize,
    /// The host that receives them.
    pub to: usize,
    /// When its connection opens (a round trip for the handshake comes first).
    pub start_ns: u64,
    /// When its program stops sending; `None`: with the simulation.
    pub stop_ns: Option<u64>,
    /// How long its program sends at most, from the establishment of its first connection on, as iperf3
    /// counts; users ([`Source::Web`]) and datagrams, which wait for none, from the start on.
    pub lasts_ns: Option<u64>,
    /// What the program sends.
    pub source: Source,
    /// Its ends; not read for [`Source::ConstantRate`].
    pub tcp: TcpSpec,
}

/// What a program sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// As much as it can, `bytes` at most; again and again with a new connection each time if `again`.
    Bulk {
        /// `None`: until it stops.
        bytes: Option<u64>,
        /// A new connection follows when all has been acknowledged.
        again: bool,
    },
    /// `chunk_bytes` over one connection, a pause after each has been acknowledged, and so on.
    Chunks {
        /// Of each chunk.
        chunk_bytes: u64,
        /// From the beginning of a chunk to that of the next one, if it was through by then.
        every_ns: u64,
        /// How many; `None`: until it stops.
        count: Option<u64>,
    },
    /// Users who fetch pages from `from`, a connection for each object, and think in between.
    Web {
        /// How many.
        users: u32,
        /// Mean of the objects' sizes, which are Pareto.
        mean_object_bytes: f64,
        /// Pareto shape of the sizes, above 1.
        shape: f64,
        /// Objects a page.
        objects_per_page: u32,
        /// Mean of the exponential time between a page and the next.
        mean_think_ns: u64,
    },
    /// UDP at a constant rate.
    ConstantRate {
        /// IP bits a second.
        rate_bps: u64,
        /// UDP payload of a datagram.
        payload_bytes: u32,
    },
}

/// The two ends of a connection. The default is a mainline kernel's.
#[derive(Clone, Debug)]
pub struct TcpSpec {
    /// The law; of a rude flow that of its fair window.
    pub law: Law,
    /// Without congestion control, from the beginning.
    pub rude: Option<RudeSpec>,
    /// How it starts.
    pub start: Start,
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
    /// The most segments that leave between one acknowledgement and the next; 0: no bound. Rude flows have none.
    pub max_burst_pkts: u32,
    /// How loss is found.
    pub detection: Detection,
    /// Duplicate acknowledgements, or segments SACKed beyond, that mean a loss (RFC 6675); it rises
    /// with the reordering that is seen, as in Linux.
    pub dupthresh: u32,
    /// Least retransmission timeout.
    pub rto_min_ns: u64,
    /// Tail loss probes (RFC 8985, section 7).
    pub tail_loss_probe: bool,
    /// When the receiver acknowledges.
    pub delayed_acks: DelayedAcks,
    /// Both ends agreed on explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// A law that samples the delivery rate is told what was in flight and lost when each segment left,
    /// which Linux does not keep.
    pub knows_sending: bool,
}

/// A flow without congestion control ("Rude TCP").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudeSpec {
    /// What it may send, bits of data a second; `None`: it finds out what the path carries.
    pub share_bps: Option<u64>,
    /// When it gets congestion control again; `None`: never.
    pub off: Option<RudeOff>,
    /// Its artificial window is within so many thousandths of the fair one: it is polite.
    pub converged_milli: u32,
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
}

/// When the receiver acknowledges data that arrived in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAcks {
    /// Every segment.
    Off,
    /// Every second one, or after this time.
    On {
        /// The longest wait.
        max_ns: u64,
    },
    /// As Linux: every one at the beginning, then every second one or after this time.
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
            mss_bytes: ETHERNET_MSS_BYTES,
            header_bytes: IPV4_TCP_BYTES + TIMESTAMP_BYTES,
            initial_window_pkts: 10,
            cwnd_clamp_pkts: u32::MAX,
            send_buffer: Buffer::Auto(16_384, 4_194_304),
            receive_buffer: Buffer::Auto(65_536, 3_145_728),
            pacing_rate_bps: None,
            pacing: false,
            max_burst_pkts: 0,
            detection: Detection::Rack,
            dupthresh: 3,
            rto_min_ns: 200_000_000,
            tail_loss_probe: true,
            delayed_acks: DelayedAcks::QuickAtStart {
                max_ns: DelayedAcks::MAX_NS,
            },
            ecn: false,
            knows_sending: false,
        }
    }
}
