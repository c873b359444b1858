// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one flow showed of its path.

use crate::profile::Law;
use serde::{Deserialize, Serialize};

/// A flow that moved less says nothing of its path.
const LEAST_BYTES: u64 = 64 << 10;

/// A start is judged by so many segments at least.
const LEAST_START_PKTS: u64 = 40;
/// Fewer may be a bad line's own, or a needless probe.
const LEAST_LOST_IN_START: u64 = 3;
const MOST_LOST_IN_START: f64 = 0.01;

/// Over a second a paced flow sends at most so many times its rate.
const ABOVE_PACING: f64 = 1.02;

/// From this share of it on its rate was what held it back.
const NEAR_PACING: f64 = 0.9;

/// A value above this is no measurement of a real path: 60 s, and 10 Tb/s.
pub(crate) const MOST_RTT_US: f64 = 60e6;
pub(crate) const MOST_BPS: f64 = 1e13;

/// What one flow showed so far. Later evidence of the same flow takes the place of earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Names the flow: its socket's cookie.
    pub flow: u64,
    /// When it began, µs since 1970.
    pub begin_us: i64,
    /// Until when this was seen, µs since 1970.
    pub seen_us: i64,
    /// Bytes acknowledged or received, whichever is more.
    pub bytes: u64,
    /// Segments with data that this host sent.
    pub sent_pkts: u64,
    /// Segments that it sent again.
    pub retransmitted_pkts: u64,
    /// Least round-trip time, µs.
    pub min_rtt_us: f64,
    /// Mean round-trip time, µs.
    pub mean_rtt_us: f64,
    /// Most bits a second in a window of at least 1 s and ten round trips; none of a flow that lasted less.
    pub rate_bps: Option<f64>,
    /// What held the flow back in a quarter of its time or more.
    pub limit: Option<Limit>,
    /// What losses it had; none where it cannot be told.
    pub loss: Option<Loss>,
    /// Segment size, bytes.
    pub mss_bytes: u32,
    /// Under a law that does not answer to losses, the share of bytes sent again since its start was over; none before a whole window
    /// after that showed its rate.
    #[serde(default)]
    pub excess_share: Option<f64>,
    /// The most that its rule lets it send, bits a second.
    #[serde(default)]
    pub paced_bps: Option<u64>,
    /// Segments with data that it sent in a row since it is so held, without a congestion signal: the largest mean so far. None of a flow
    /// that is not, or of which an earlier build told.
    #[serde(default)]
    pub paced_run_pkts: Option<u64>,
    /// Its law, where a path can ask for it.
    #[serde(default)]
    pub law: Option<Law>,
    /// Whether what was learned of its path gave it its settings.
    #[serde(default)]
    pub is_given: bool,
    /// What its settings tell of the path; what makes evidence of a flow does not know them.
    #[serde(default)]
    pub under: Under,
}

/// What a flow tells by the learned settings that it began with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Under {
    /// Under a law that does not answer to losses it was over its start, and nothing but the path set its rate: it has found
    /// that.
    #[serde(default)]
    pub found_rate: bool,
    /// It never sent faster than this, bits a second.
    pub paced_bps: Option<u64>,
    /// It lost segments without a queue all the same.
    pub lost_paced: bool,
}

/// What else than the path held a flow back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its program gave or took no more.
    Application,
    /// This host's own buffer.
    OwnBuffer,
    /// A buffer of this host that the program set.
    ProgramBuffer,
    /// The peer's window.
    PeerWindow,
    /// Its law, which took losses that meet no queue for congestion.
    Loss,
    /// Its own pacing rate.
    Pacing,
}

/// When segments are lost on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Never, in a number of segments that would show it.
    None,
    /// When a queue overflows.
    Queue,
    /// The same of one that is too short for CUBIC to have the path's rate, or is kept so by an AQM.
    ShortQueue,
    /// At any rate, with empty queues.
    Random,
    /// Above one rate, with empty queues.
    Policed,
}

impl Limit {
    /// Its name, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Application => "application",
            Limit::OwnBuffer => "own_buffer",
            Limit::ProgramBuffer => "program_buffer",
            Limit::PeerWindow => "peer_window",
            Limit::Loss => "loss",
            Limit::Pacing => "pacing",
        }
    }
}

impl Loss {
    /// Each kind.
    pub const ALL: [Loss; 5] = [
        Loss::None,
        Loss::Queue,
        Loss::ShortQueue,
        Loss::Random,
        Loss::Policed,
    ];

    /// Whether a law that answers to losses has less than the path's rate for them.
    pub fn holds_back(self) -> bool {
        matches!(self, Loss::ShortQueue | Loss::Random | Loss::Policed)
    }

    /// Its name, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Loss::None => "none",
            Loss::Queue => "queue",
            Loss::ShortQueue => "short_queue",
            Loss::Random => "random",
            Loss::Policed => "policed",
        }
    }
}

impl Under {
    /// With what the flow told earlier: its settings may have changed since.
    pub(crate) fn after(self, before: Option<&Evidence>) -> Under {
        let before = before.map(|before| before.under).unwrap_or_default();
        Under {
            found_rate: self.found_rate || before.found_rate,
            paced_bps: before.paced_bps.or(self.paced_bps),
            lost_paced: self.lost_paced || before.lost_paced,
        }
    }
}

impl Evidence {
    /// A flow that was paced below the path's rate shows neither that rate nor whether the path would lose more.
    pub(crate) fn heed_pacing(&mut self) {
        let Some(paced_bps) = self.under.paced_bps else {
            return;
        };
        let of_pacing = |bps: f64| bps / paced_bps as f64;
        let Some(of_pacing) = self.rate_bps.map(of_pacing) else {
            return;
        };
        if of_pacing <= ABOVE_PACING {
            let is_limit = of_pacing >= NEAR_PACING;
            self.limit = is_limit.then_some(Limit::Pacing).or(self.limit);
            self.loss = self.loss.filter(|loss| *loss != Loss::None);
        }
    }

    /// Whether it may move an estimate: the flow carried enough, and its numbers are possible.
    pub fn is_usable(&self) -> bool {
        let is_time = |us: f64| us > 0.0 && us <= MOST_RTT_US;
        let is_rate = |bps: f64| bps > 0.0 && bps <= MOST_BPS;
        self.bytes >= LEAST_BYTES
            && is_time(self.min_rtt_us)
            && is_time(self.mean_rtt_us)
            && self.mean_rtt_us >= self.min_rtt_us
            && self.rate_bps.is_none_or(is_rate)
    }

    /// Whether more than 1 % was sent again, in enough segments to tell, and more than a bad line loses by chance: of a long flow
    /// that started at the path's rate the start is not told apart.
    pub(crate) fn is_start_lossy(&self) -> bool {
        self.sent_pkts >= LEAST_START_PKTS
            && self.retransmitted_pkts >= LEAST_LOST_IN_START
            && self.retransmitted_pkts as f64 > MOST_LOST_IN_START * self.sent_pkts as f64
    }

    /// Whether a buffer that its program set held it back.
    pub(crate) fn is_of_small_buffer(&self) -> bool {
        self.limit == Some(Limit::ProgramBuffer)
    }

    /// The rate where the path itself set it.
    pub(crate) fn path_rate_bps(&self) -> Option<f64> {
        self.rate_bps.filter(|_| self.limit.is_none())
    }
}
