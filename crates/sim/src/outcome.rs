// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulation gives: what each flow reached, and what each link did.

use fatpath_link::{Count, Counters};
use hdrhistogram::Histogram;
use serde::Serialize;

/// What a simulation gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// In the order of [`crate::Spec::flows`].
    pub flows: Vec<FlowOutcome>,
    /// Both directions of each link, in the order of [`crate::Spec::links`].
    pub links: Vec<[LinkOutcome; 2]>,
    /// When it ended: with the time of the spec, with the last of its flows, or when it was stopped.
    pub ended_ns: u64,
    /// The caller stopped it.
    pub stopped: bool,
    /// Data segments and datagrams that reached their host.
    pub delivered_packets: u64,
    /// Moments at which something happened: the work that was done.
    pub events: u64,
}

/// What a flow reached; of many users, the sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// Data handed to the receiving program, each byte once.
    pub delivered_bytes: u64,
    /// From its start to its stop, to its last completion if nothing is left to send, or to the end.
    pub duration_ns: u64,
    /// When its first connection was established; of datagrams, its start. `None`: never.
    pub established_ns: Option<u64>,
    /// Connections that were established.
    pub connections: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times at which the law reduced the window.
    pub congestion_events: u64,
    /// Of these, those taken back since the loss was none.
    pub undone_events: u64,
    /// Transfers that were completed: the whole of a bulk flow, its chunks, its objects.
    pub completions: Completions,
    /// For [`crate::Source::ConstantRate`].
    pub datagrams: Option<DatagramOutcome>,
    /// One every [`crate::Spec::sample_every_ns`] while the flow runs.
    pub samples: Vec<Sample>,
}

impl FlowOutcome {
    /// Delivered data over the time of the flow, handshake and all, bits a second; 0 before any time has
    /// passed.
    pub fn goodput_bps(&self) -> f64 {
        match self.duration_ns {
            0 => 0.0,
            duration_ns => self.delivered_bytes as f64 * 8e9 / duration_ns as f64,
        }
    }
}

/// A flow at one moment. Of a flow with many users only the sums that have a meaning: bytes, segments in
/// flight, retransmits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When.
    pub at_ns: u64,
    /// Congestion window.
    pub cwnd_pkts: u32,
    /// Slow-start threshold.
    pub ssthresh_pkts: u32,
    /// The fair window, while the flow is rude or going polite.
    pub fair_pkts: Option<u32>,
    /// Segments in flight, as the sender estimates them.
    pub in_flight_pkts: u64,
    /// Smoothed round-trip time.
    pub srtt_us: u32,
    /// Data handed to the receiving program since the flow began.
    pub delivered_bytes: u64,
    /// Segments retransmitted since the flow began.
    pub retransmits: u64,
}

/// A transfer that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// When.
    pub at_ns: u64,
    /// Its size.
    pub bytes: u64,
    /// From its beginning: for a chunk its first byte, else the SYN.
    pub took_ns: u64,
}

/// Transfers that were completed. The first [`Completions::LISTED`] are known one by one, more only by
/// their distribution, so that memory has a bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Completions {
    /// How many.
    pub count: u64,
    /// Of all together.
    pub bytes: u64,
    /// The first ones, in order.
    pub first: Vec<Completion>,
    /// Times of all of them, ns; none until they are too many to list.
    #[serde(skip)]
    took_ns: Option<Box<Histogram<u64>>>,
}

impl Completions {
    /// How many are listed one by one.
    pub const LISTED: usize = 1_000;
    /// Of the distribution: three significant digits.
    const DIGITS: u8 = 3;

    pub(crate) fn add(&mut self, completion: Completion) {
        self.count += 1;
        self.bytes += completion.bytes;
        if self.first.len() < Self::LISTED {
            return self.first.push(completion);
        }
        let times = self
            .took_ns
            .get_or_insert_with(|| Box::new(times_of(&self.first)));
        note(times, completion.took_ns);
    }

    /// The time, ns, that `share` (0 to 1) of the transfers took at most; exact while all are listed, to
    /// 0.1 % after; `None` without any.
    pub fn took_quantile_ns(&self, share: f64) -> Option<u64> {
        if let Some(times) = &self.took_ns {
            return Some(times.value_at_quantile(share));
        }
        let mut times: Vec<_> = self.first.iter().map(|one| one.took_ns).collect();
        times.sort_unstable();
        let rank = (share * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied()
    }

    /// The mean time, ns; `None` without any.
    pub fn took_mean_ns(&self) -> Option<f64> {
        if let Some(times) = &self.took_ns {
            return Some(times.mean());
        }
        let sum: u128 = self.first.iter().map(|one| u128::from(one.took_ns)).sum();
        (self.count > 0).then(|| sum as f64 / self.count as f64)
    }
}

fn times_of(completions: &[Completion]) -> Histogram<u64> {
    let mut times = Histogram::new(Completions::DIGITS).expect("1 to 5 digits are allowed");
    times.auto(true);
    let each = completions.iter().map(|completion| completion.took_ns);
    each.for_each(|took_ns| note(&mut times, took_ns));
    times
}

fn note(times: &mut Histogram<u64>, took_ns: u64) {
    times.record(took_ns).expect("it grows as needed");
}

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DatagramOutcome {
    /// Sent.
    pub sent: u64,
    /// Arrived before the flow ended; one that the network doubled, twice.
    pub received: u64,
    /// Neither arrived nor under way when the flow ended.
    pub lost: u64,
    /// Arrived after one that was sent later.
    pub out_of_order: u64,
    /// Interarrival jitter when the last one arrived (RFC 3550, section 6.4.1).
    pub jitter_ns: u64,
    /// Mean time under way; 0 if none arrived.
    pub mean_delay_ns: u64,
    /// Longest time under way.
    pub max_delay_ns: u64,
}

/// What a direction of a link did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkOutcome {
    /// Of its cells together.
    pub counters: Counters,
    /// Of each cell, in order.
    pub cells: Vec<Counters>,
    /// Still under way at the end.
    pub held: Count,
    /// Longer than the link's MTU: never let in.
    pub too_big: Count,
    /// Deepest queue.
    pub peak_queue_bytes: u64,
    /// One every [`crate::Spec::sample_every_ns`].
    pub samples: Vec<LinkSample>,
}

/// A direction of a link at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkSample {
    /// When.
    pub at_ns: u64,
    /// What left it since the beginning, bytes of IP.
    pub left_bytes: u64,
    /// Segments that it dropped since the beginning.
    pub dropped_packets: u64,
    /// Deepest queue since the sample before.
    pub peak_queue_bytes: u64,
}
