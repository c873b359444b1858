// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy is, once read: rules in file order, each with what it matches and what it sets.
//!
//! Plain values. [`parse`](crate::parse) is what makes them, and it holds every range and limit named
//! here; nothing in this file checks again. Start at [`Policy`].

use crate::{HostSettings, Instruments, Law, PortRange, Prefix, Problem};
use serde::Serialize;

/// The most rules that a policy may have: the kernel keeps one bit for each.
pub const MAX_RULES: usize = 1024;
/// The most prefixes that all rules together may name as destination, and as source.
pub const MAX_PREFIXES_PER_SIDE: usize = 65_536;
/// The longest policy file, in bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// A policy file's meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Policy {
    /// What the host must allow so that the rules can take effect.
    pub host: HostSettings,
    /// The rules in file order; the first that matches a flow is the flow's rule. At most [`MAX_RULES`].
    pub rules: Vec<Rule>,
    /// Which flows are sampled.
    pub instruments: Instruments,
    /// What is allowed but cannot be what was meant, in file order.
    pub warnings: Vec<Problem>,
}

/// One named rule: which flows, and what they get.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rule {
    /// Unique in the policy; 1 to 63 bytes of `[A-Za-z0-9._-]`.
    pub name: String,
    /// The line of the file where the rule begins, from 1.
    pub line: u32,
    /// Which flows.
    pub matches: Match,
    /// What the administrator says of the path.
    pub path: Path,
    /// What the flows get.
    pub settings: Settings,
}

/// Which flows a rule is for. Every part must hold; an empty or absent part holds for every flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Match {
    /// Prefixes of the peer's address, whichever side opened the connection.
    pub destination: Vec<Prefix>,
    /// Prefixes of this host's address.
    pub source: Vec<Prefix>,
    /// The peer's port; sorted, no two overlap.
    pub destination_ports: Vec<PortRange>,
    /// This host's port; sorted, no two overlap.
    pub source_ports: Vec<PortRange>,
    /// The cgroup-2 path of the flow's socket, or one above it. Begins with `/`.
    pub cgroup: Option<String>,
}

/// The path as the administrator knows it. With both parts, `bdp` has a meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Path {
    /// Round-trip time in microseconds, 1 us to 60 s.
    pub rtt_us: Option<u32>,
    /// Bottleneck rate in bits a second, 1 kb/s to 100 Tb/s.
    pub rate_bps: Option<u64>,
}

/// A value together with why it is what it is, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chosen<T> {
    /// The value, in the unit of the field that holds it.
    pub value: T,
    /// Where it comes from, for instance `1 Gb/s x 100 ms = 12.5 MB (bdp), x 2`.
    pub reason: String,
}

/// What the flows of a rule get. An absent setting leaves the kernel's own value alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Settings {
    /// SO_SNDBUF as setsockopt takes it (the kernel doubles it), 4 KiB to 1 GiB - 1.
    pub send_buffer_bytes: Option<Chosen<u32>>,
    /// SO_RCVBUF as setsockopt takes it (the kernel doubles it), 4 KiB to 1 GiB - 1.
    pub receive_buffer_bytes: Option<Chosen<u32>>,
    /// TCP_CONGESTION, and the law's parameters.
    pub law: Option<Chosen<Law>>,
    /// TCP_BPF_IW in segments, 1 to 65535.
    pub initial_window_pkts: Option<Chosen<u32>>,
    /// TCP_BPF_SNDCWND_CLAMP in segments, 2 to 2^20. The kernel also bounds ssthresh by it.
    pub cwnd_clamp_pkts: Option<Chosen<u32>>,
    /// TCP_BPF_RTO_MIN in microseconds, 1 ms to 200 ms. The kernel does not go under two jiffies.
    pub rto_min_us: Option<Chosen<u32>>,
    /// TCP_BPF_DELACK_MAX in microseconds, 1 ms to 200 ms.
    pub delayed_ack_max_us: Option<Chosen<u32>>,
    /// SO_MAX_PACING_RATE in bits a second, 8 kb/s to 34 Gb/s (BPF gives 32 bits of bytes a second).
    pub pacing_rate_bps: Option<Chosen<u64>>,
    /// TCP_NOTSENT_LOWAT in bytes, 1 to 1 GiB - 1.
    pub notsent_lowat_bytes: Option<Chosen<u32>>,
    /// Limited slow start (RFC 3742) beyond this window, segments. This and the next four with our laws only.
    pub max_ssthresh_pkts: Option<Chosen<u32>>,
    /// The slow-start threshold of a new flow.
    pub initial_ssthresh: Option<Chosen<Ssthresh>>,
    /// The rate of a paced start of a new flow, bits a second.
    pub initial_rate_bps: Option<Chosen<u64>>,
    /// What becomes of the window in a pause longer than the RTO; absent: what the host does.
    pub after_idle: Option<Chosen<AfterIdle>>,
    /// Slow start ends when the round-trip time rises (RFC 9406).
    pub hystart: Option<Chosen<bool>>,
    /// Whether a flow may go on without congestion control; absent: never. This and the next four: docs/rude.md.
    pub rude: Option<Chosen<Rude>>,
    /// A rude flow's share of the path in bits a second, 8 kb/s to 1 Tb/s; absent: it is estimated.
    pub rude_rate_bps: Option<Chosen<u64>>,
    /// All rude flows of the rule together, bits a second, 8 kb/s to 1 Tb/s.
    pub rude_total_rate_bps: Option<Chosen<u64>>,
    /// Who may be rude; absent: everybody. Never empty.
    pub rude_users: Option<Chosen<Vec<User>>>,
    /// RUDE_OFF_NICELY ends when the artificial window is within this of the fair one, thousandths, 1 to 1000.
    pub rude_converged_milli: Option<Chosen<u32>>,
    /// Route metric `reordering` in segments, 3 to 300. See [`routes`](crate::routes).
    pub reordering_pkts: Option<Chosen<u32>>,
    /// Route metric `quickack`. See [`routes`](crate::routes).
    pub quickack: Option<Chosen<bool>>,
    /// The program's own SO_SNDBUF and SO_RCVBUF are ignored, for those buffers that the rule sets.
    pub override_application: bool,
    /// The buffers are shared among the rule's concurrent flows.
    pub divide: bool,
}

/// A slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ssthresh {
    /// In segments, 2 to 2^20.
    Segments(u32),
    /// What the path holds, in bytes: see [`Ssthresh::pkts`].
    Bytes(u64),
}

/// What becomes of the window in a pause longer than the RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterIdle {
    /// It decays to the initial window (RFC 2861), and slow start follows.
    Restart,
    /// It stays.
    Keep,
    /// It decays, and the flow goes on paced at ssthresh × MSS / RTT until the first ACK.
    Pace,
}

/// Whether a flow may go on without congestion control, once the gate is open (`fatpath rude on`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rude {
    /// Whatever is asked.
    Never,
    /// When its program asks, by the socket option TCP_RUDE or `fatpath rude run`.
    Allowed,
    /// Whatever its program says.
    Always,
}

/// A user as the policy names him.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum User {
    /// By the name in /etc/passwd.
    Name(String),
    /// By number.
    Id(u32),
}

impl Rude {
    pub(crate) const ALL: [Rude; 3] = [Rude::Never, Rude::Allowed, Rude::Always];

    /// As it stands in the policy file.
    pub fn name(self) -> &'static str {
        match self {
            Rude::Never => "never",
            Rude::Allowed => "allowed",
            Rude::Always => "always",
        }
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            User::Name(name) => f.write_str(name),
            User::Id(id) => write!(f, "uid {id}"),
        }
    }
}

impl Ssthresh {
    /// In segments of `mss_bytes`; 2 at least, as the kernel half has it.
    pub fn pkts(self, mss_bytes: u32) -> u32 {
        match self {
            Ssthresh::Segments(pkts) => pkts,
            Ssthresh::Bytes(bytes) => {
                let pkts = bytes / u64::from(mss_bytes.max(1));
                u32::try_from(pkts).unwrap_or(u32::MAX).max(2)
            }
        }
    }
}

impl AfterIdle {
    /// As it stands in the policy file.
    pub fn name(self) -> &'static str {
        match self {
            AfterIdle::Restart => "restart",
            AfterIdle::Keep => "keep",
            AfterIdle::Pace => "pace",
        }
    }
}

impl Settings {
    /// Whether some flow of the rule may be rude.
    pub fn may_be_rude(&self) -> bool {
        let rude = self.rude.as_ref().map(|chosen| chosen.value);
        matches!(rude, Some(Rude::Allowed | Rude::Always))
    }

    /// How a flow of this rule starts, as `fatpath-cc` has it; `otherwise` where the rule does not say.
    /// `mss_bytes` is what a bdp is counted in.
    pub fn start(&self, otherwise: fatpath_cc::Start, mss_bytes: u32) -> fatpath_cc::Start {
        let mut start = otherwise;
        let give = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
        let ssthresh = self.initial_ssthresh.as_ref();
        give(
            &mut start.max_ssthresh_pkts,
            self.max_ssthresh_pkts.as_ref().map(|chosen| chosen.value),
        );
        give(
            &mut start.initial_ssthresh_pkts,
            ssthresh.map(|chosen| chosen.value.pkts(mss_bytes)),
        );
        if let Some(rate) = &self.initial_rate_bps {
            start.initial_rate_bps = rate.value;
        }
        if let Some(after_idle) = &self.after_idle {
            start.idle = after_idle.value.into();
        }
        if let Some(hystart) = &self.hystart {
            start.hystart = hystart.value;
        }
        start
    }
}

impl From<AfterIdle> for fatpath_cc::Idle {
    fn from(after_idle: AfterIdle) -> Self {
        match after_idle {
            AfterIdle::Restart => fatpath_cc::Idle::Restart,
            AfterIdle::Keep => fatpath_cc::Idle::Keep,
            AfterIdle::Pace => fatpath_cc::Idle::Pace,
        }
    }
}

impl Match {
    /// Whether the peer's address alone decides: nothing else is asked of the flow.
    pub fn by_destination_only(&self) -> bool {
        self.source.is_empty()
            && self.destination_ports.is_empty()
            && self.source_ports.is_empty()
            && self.cgroup.is_none()
    }
}

impl<T> Chosen<T> {
    pub(crate) fn new(value: T, reason: impl Into<String>) -> Self {
        Chosen {
            value,
            reason: reason.into(),
        }
    }
}
