// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is summed of a group of flows, and how their transfers are distributed. [`SUMS`] and [`HISTOGRAMS`]
//! say it once, for every form of metrics.

use fatpath_api::Sample;

/// A sum over the flows of a group.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Name of the metric, unit included.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Unit as OpenTelemetry writes it (UCUM).
    pub unit: &'static str,
    /// Value of the label `by`, for a metric that is split.
    pub by: Option<&'static str>,
    /// So many of the flow's own units are one of the metric's.
    pub per_unit: f64,
    of: fn(&Sample, &Origin) -> u64,
}

/// A flow where its counting begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    now_ns: u64,
    busy_us: u64,
}

impl Origin {
    /// Of a flow that is counted from its first byte on.
    pub(super) fn begin_of(sample: &Sample) -> Origin {
        Origin {
            now_ns: sample.begin_ns,
            busy_us: 0,
        }
    }

    /// Of a flow that is counted from here on.
    pub(super) fn at(sample: &Sample) -> Origin {
        Origin {
            now_ns: sample.now_ns,
            busy_us: sample.busy_us,
        }
    }

    fn idle_us(&self, sample: &Sample) -> u64 {
        let elapsed_us = sample.now_ns.saturating_sub(self.now_ns) / 1000;
        elapsed_us.saturating_sub(sample.busy_us.saturating_sub(self.busy_us))
    }
}

const LIMITED: &str = "Time of flows by what held the sender back (RFC 4898, SndLimTime)";
const MICROS: f64 = 1e6;

const fn sum(
    (name, unit): (&'static str, &'static str),
    help: &'static str,
    of: fn(&Sample, &Origin) -> u64,
) -> Sum {
    Sum {
        name,
        help,
        unit,
        by: None,
        per_unit: 1.0,
        of,
    }
}

const fn limited(by: &'static str, of: fn(&Sample, &Origin) -> u64) -> Sum {
    Sum {
        name: "limited_seconds",
        unit: "s",
        help: LIMITED,
        by: Some(by),
        per_unit: MICROS,
        of,
    }
}

/// The sums of each group; those that are one metric stand together.
pub const SUMS: [Sum; 12] = [
    sum(
        ("sent_bytes", "By"),
        "Payload sent, retransmissions included",
        |s, _| s.bytes_sent,
    ),
    sum(
        ("acked_bytes", "By"),
        "Payload that the peer acknowledged",
        |s, _| s.bytes_acked,
    ),
    sum(
        ("received_bytes", "By"),
        "Payload received in order",
        |s, _| s.bytes_received,
    ),
    sum(
        ("retransmitted_bytes", "By"),
        "Payload retransmitted",
        |s, _| s.bytes_retrans,
    ),
    sum(
        ("sent_segments", "{segment}"),
        "Segments with payload sent",
        |s, _| s.data_segs_out,
    ),
    sum(
        ("retransmitted_segments", "{segment}"),
        "Segments retransmitted",
        |s, _| s.segs_retrans,
    ),
    sum(
        ("congestion_signals", "{signal}"),
        "Reductions of the congestion window",
        |s, _| s.cong_signals.into(),
    ),
    sum(
        ("timeouts", "{timeout}"),
        "Ends of the retransmission timer, those after a first one included",
        |s, _| u64::from(s.timeouts) + u64::from(s.subsequent_timeouts),
    ),
    limited("application", |s, origin| origin.idle_us(s)),
    limited("receiver", |s, _| s.rwnd_limited_us),
    limited("send_buffer", |s, _| s.sndbuf_limited_us),
    limited("network", |s, _| {
        s.busy_us
            .saturating_sub(s.rwnd_limited_us + s.sndbuf_limited_us)
    }),
];

/// A flow's own numbers, in the order of [`SUMS`], and what moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    sums: [u64; SUMS.len()],
    sent_bytes: u64,
    retransmitted_bytes: u64,
    /// Acknowledged or received, whichever is more.
    moved_bytes: u64,
}

impl Counters {
    pub(super) fn of(sample: &Sample, origin: &Origin) -> Counters {
        Counters {
            sums: SUMS.map(|sum| (sum.of)(sample, origin)),
            sent_bytes: sample.bytes_sent,
            retransmitted_bytes: sample.bytes_retrans,
            moved_bytes: sample.bytes_acked.max(sample.bytes_received),
        }
    }

    pub(super) fn since(&self, before: &Counters) -> Counters {
        self.with(before, u64::saturating_sub)
    }

    /// A walk knows less than a sample, and samples of several processors come in another order at times:
    /// what is counted already stays counted.
    pub(super) fn or_more(&self, other: &Counters) -> Counters {
        self.with(other, u64::max)
    }

    fn with(&self, other: &Counters, of_two: fn(u64, u64) -> u64) -> Counters {
        let mut sums = self.sums;
        for (ours, theirs) in sums.iter_mut().zip(other.sums) {
            *ours = of_two(*ours, theirs);
        }
        Counters {
            sums,
            sent_bytes: of_two(self.sent_bytes, other.sent_bytes),
            retransmitted_bytes: of_two(self.retransmitted_bytes, other.retransmitted_bytes),
            moved_bytes: of_two(self.moved_bytes, other.moved_bytes),
        }
    }

    /// Nothing was sent, acknowledged or received since.
    pub(super) fn did_as_much_as(&self, sample: &Sample) -> bool {
        self.sent_bytes >= sample.bytes_sent
            && self.moved_bytes >= sample.bytes_acked.max(sample.bytes_received)
    }

    pub(super) fn moved_bytes(&self) -> u64 {
        self.moved_bytes
    }
}

/// A distribution over the flows of a group.
#[derive(Clone, Copy, Debug)]
pub struct HistogramOf {
    /// Name of the metric, unit included.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Unit as OpenTelemetry writes it (UCUM).
    pub unit: &'static str,
    /// Upper ends of the buckets; one without end follows.
    pub bounds: &'static [f64],
}

/// The distributions of each group.
pub const HISTOGRAMS: [HistogramOf; 3] = [
    HistogramOf {
        name: "rtt_seconds",
        unit: "s",
        help: "Smoothed round-trip time of flows, every 10 s and at the end",
        // From a rack to a geostationary satellite and a full buffer before it.
        bounds: &[
            0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0,
        ],
    },
    HistogramOf {
        name: "goodput_bytes_per_second",
        unit: "By/s",
        help: "Payload acknowledged or received by flows that moved any, every 10 s and at the end",
        // 100 kb/s to 100 Gb/s, for the base unit of metrics is the byte.
        bounds: &[
            1.25e4, 1.25e5, 3.75e5, 1.25e6, 3.75e6, 1.25e7, 3.75e7, 1.25e8, 3.75e8, 1.25e9, 3.75e9,
            1.25e10,
        ],
    },
    HistogramOf {
        name: "retransmitted_share",
        unit: "1",
        help: "Share of the payload sent that was retransmitted, every 10 s and at the end",
        bounds: &[0.0, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3],
    },
];

/// Numbers of observations by bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// One more than there are bounds.
    pub buckets: Vec<u64>,
    /// Of all values.
    pub sum: f64,
}

impl Histogram {
    fn observe(&mut self, bounds: &[f64], value: f64) {
        self.buckets.resize(bounds.len() + 1, 0);
        self.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// All observations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The sums and distributions of some flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Flows seen for the first time.
    pub flows_begun: u64,
    /// Flows that ended.
    pub flows_ended: u64,
    /// In the order of [`SUMS`], in the flows' own units.
    pub sums: [u64; SUMS.len()],
    /// In the order of [`HISTOGRAMS`].
    pub histograms: [Histogram; HISTOGRAMS.len()],
}

impl Group {
    pub(super) fn add(&mut self, new: &Counters) {
        for (sum, new) in self.sums.iter_mut().zip(new.sums) {
            *sum += new;
        }
    }

    /// One flow over a span of time; what was not measured is not observed.
    pub(super) fn observe(&mut self, srtt_us: u32, new: &Counters, span_s: f64) {
        let rtt_s = (srtt_us > 0).then_some(f64::from(srtt_us) / MICROS);
        let moves = new.moved_bytes > 0 && span_s > 0.0;
        let goodput = moves.then(|| new.moved_bytes as f64 / span_s);
        let sends = new.sent_bytes > 0;
        let share = sends.then(|| new.retransmitted_bytes as f64 / new.sent_bytes as f64);
        let values = [rtt_s, goodput, share];
        for ((histogram, of), value) in self.histograms.iter_mut().zip(HISTOGRAMS).zip(values) {
            if let Some(value) = value {
                histogram.observe(of.bounds, value);
            }
        }
    }
}
