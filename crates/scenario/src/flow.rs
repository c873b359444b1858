// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow of a scenario: what a `[[flow]]` says.
//!
//! Plain values. Start with [`Flow`]; the table is read in `flows.rs`.

use std::fmt::Debug;
use std::time::Duration;

use fatpath_cc::Idle;
use fatpath_link::headers::{IPV4_TCP_BYTES, IPV6_TCP_BYTES, UDP_BYTES};
pub use fatpath_tcp::{Detection, Growth, WindowReduction};
use serde::{Serialize, Serializer};

/// Data from one host to another, over one connection or several alike. What serialises is what
/// decides the result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// For people and tables, such as `1-client-bulk`.
    pub label: String,
    /// The host that sends the data.
    pub from: String,
    /// The host that receives them.
    pub to: String,
    /// The receiver opens the connection.
    pub opened_by_receiver: bool,
    /// Over IPv6.
    pub ipv6: bool,
    /// The ports of who opens the connection (`None`: any) and of who listens.
    pub ports: (Option<u16>, u16),
    /// Connections, each with a source of its own; 1 at least.
    pub streams: u32,
    /// When they open, since the programs started.
    pub start: Duration,
    /// How long data are sent; `None`: until all are through.
    pub lasts: Option<Duration>,
    /// When a flow that is not through has failed, since it started.
    pub time_limit: Duration,
    /// What carries it.
    #[serde(skip_serializing_if = "Transport::is_tcp")]
    pub transport: Transport,
    /// What is sent.
    #[serde(serialize_with = "shown")]
    pub source: Source,
    /// What its program asks of the connections.
    pub requests: Requests,
    /// The line of the file where it stands, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Transport {
    /// The kernel's TCP.
    #[default]
    Tcp,
    /// TCP's machinery over UDP, in user space (docs/transport.md): its ends have all that [`Requests`] name.
    Udp,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// As much as can be, `bytes` at most; again and again with a new connection each time if `again`.
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
        /// Of the first one, where it differs.
        first_chunk_bytes: Option<u64>,
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

/// When the receiver acknowledges data that arrived in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAcks {
    /// Every segment.
    Off,
    /// Every second one, or after the longest wait.
    On,
    /// Every one at the beginning, then as [`DelayedAcks::On`]; so does Linux.
    QuickAtStart,
}

/// The end of being rude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudeOff {
    /// Since the programs started.
    pub at_ns: u64,
    /// RUDE_OFF_NICELY, not RUDE_OFF_NOW.
    pub nicely: bool,
}

/// What a program asks of its connections; where it asks for nothing, the host and the policy decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Requests {
    /// The law.
    pub law: Option<LawRequest>,
    /// Largest payload of a segment.
    pub mss_bytes: Option<u32>,
    /// Both buffers as setsockopt takes them: the kernel bounds them and doubles them.
    pub window_bytes: Option<u32>,
    /// SO_MAX_PACING_RATE, bits a second.
    pub pacing_rate_bps: Option<u64>,
    /// What programs cannot ask of the kernel: the simulator gives it, and so does the transport over UDP.
    pub ends: EndSettings,
}

/// The inside of a connection's ends, which programs do not reach.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndSettings {
    /// What the sender may hold, bytes of data.
    pub send_buffer_bytes: Option<u64>,
    /// The receiver's window at most, bytes of data.
    pub receive_buffer_bytes: Option<u64>,
    /// Initial window.
    pub initial_window_pkts: Option<u32>,
    /// The congestion window never grows past it.
    pub cwnd_clamp_pkts: Option<u32>,
    /// Segments longer than the path's MTU leave all the same, for IP to fragment; otherwise none is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<bool>,
    /// How loss is found.
    #[serde(serialize_with = "shown")]
    pub detection: Option<Detection>,
    /// Segments SACKed beyond that mean a loss.
    pub dupthresh: Option<u32>,
    /// SACK blocks in an acknowledgement at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack_blocks: Option<u8>,
    /// How the window comes down in recovery.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub reduction: Option<WindowReduction>,
    /// What an acknowledgement counts for the window's growth.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shown")]
    pub growth: Option<Growth>,
    /// Segments that leave between one acknowledgement and the next at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_burst_pkts: Option<u32>,
    /// Paced, whatever the law.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Paced segments leave up to this much before their time, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_quantum_ns: Option<u64>,
    /// Segments that the sender loses on purpose, numbers from 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<u64>,
    /// Least retransmission timeout.
    pub rto_min_ns: Option<u64>,
    /// When the receiver acknowledges.
    #[serde(serialize_with = "shown")]
    pub delayed_acks: Option<DelayedAcks>,
    /// How long an acknowledgement waits at most; Linux's time where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_max_ns: Option<u64>,
    /// Segments that one acknowledgement waits for; two where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_ack_pkts: Option<u32>,
    /// Tail loss probes.
    pub tail_loss_probe: Option<bool>,
    /// Limited slow start begins at this window.
    pub max_ssthresh_pkts: Option<u32>,
    /// The first slow-start threshold.
    pub initial_ssthresh_pkts: Option<u32>,
    /// The rate at which a flow starts that knows no threshold, bits a second.
    pub initial_rate_bps: Option<u64>,
    /// What becomes of the window in a pause.
    #[serde(serialize_with = "shown")]
    pub idle: Option<Idle>,
    /// Slow start ends when the round-trip time rises.
    pub hystart: Option<bool>,
    /// Without congestion control.
    pub rude: Option<RudeRequest>,
}

/// A flow that goes on without congestion control (docs/rude.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RudeRequest {
    /// Its share of the path, bits of IP packets a second; `None`: it is estimated.
    pub share_bps: Option<u64>,
    /// When it ends being so.
    #[serde(serialize_with = "shown")]
    pub off: Option<RudeOff>,
}

/// A law by its name with some of its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LawRequest {
    /// As the kernel knows it, such as `fp_aimd`.
    pub name: String,
    /// Keys and values; others stay at their defaults.
    pub parameters: Vec<(String, f64)>,
}

impl Transport {
    /// The kernel's TCP.
    pub fn is_tcp(&self) -> bool {
        *self == Transport::Tcp
    }
}

impl Flow {
    /// Who opens the connection, and who listens.
    pub fn client_and_server(&self) -> [&str; 2] {
        match self.opened_by_receiver {
            true => [&self.to, &self.from],
            false => [&self.from, &self.to],
        }
    }

    /// IP and UDP headers of a datagram.
    pub fn network_bytes(&self) -> u32 {
        match self.ipv6 {
            true => UDP_BYTES + IPV6_TCP_BYTES - IPV4_TCP_BYTES,
            false => UDP_BYTES,
        }
    }

    /// UDP payload of the largest datagram that a path of this MTU carries whole.
    pub fn most_datagram_bytes(&self, mtu_bytes: u32) -> u16 {
        let bytes = mtu_bytes.saturating_sub(self.network_bytes());
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// Whether IP may fragment its segments.
    pub fn may_be_fragmented(&self) -> bool {
        self.requests.ends.fragment == Some(true)
    }

    /// Whether it is datagrams at a constant rate, without TCP's machinery.
    pub fn is_udp(&self) -> bool {
        matches!(self.source, Source::ConstantRate { .. })
    }
}

/// Values of other crates, which tell themselves apart by their `Debug`.
fn shown<S: Serializer>(value: &impl Debug, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:?}"))
}
