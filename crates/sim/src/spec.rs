// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is simulated: hosts, links, and the flows between hosts. Plain values.

use fatpath_link::ChainSpec;

pub use fatpath_tcp::{
    Buffer, DelayedAcks, Detection, Growth, RudeOff, RudeRate, RudeSpec, TcpSpec, WindowReduction,
};

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
    /// It is paced at its part of a rate, and no faster than its ends say; not read for [`Source::ConstantRate`].
    pub shared_rate: Option<SharedRate>,
    /// Links fragment its data segments that are longer than their MTU, as IPv4 does without the DF flag; otherwise such ones
    /// are lost. Those of [`Source::ConstantRate`] are always fragmented.
    pub may_be_fragmented: bool,
}

/// A rate of which each of the n flows that send has 1/n (`"500mbit/n"` of a policy's rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRate {
    /// Bits a second, of all flows of the group together.
    pub bps: u64,
    /// Those who share it have the same number.
    pub group: usize,
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
