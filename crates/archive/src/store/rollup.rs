// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the flows of a path measured in a minute or an hour, without the flows.

use super::Histogram;
use super::path_key::{Key, key, path_of};
use crate::Event;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How long an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Kept for 7 days after the day's events are gone.
    Minute,
    /// Kept for 400 days.
    Hour,
}

impl Width {
    /// Both.
    pub const ALL: [Width; 2] = [Width::Minute, Width::Hour];

    /// The width of so many seconds; none: one of another version.
    pub(super) fn of_seconds(seconds: i64) -> Option<Width> {
        let mut widths = Width::ALL.into_iter();
        widths.find(|width| width.seconds() == seconds)
    }

    /// In seconds.
    pub fn seconds(self) -> i64 {
        match self {
            Width::Minute => 60,
            Width::Hour => 3600,
        }
    }

    /// For so many days.
    pub(super) fn kept_days(self) -> i64 {
        match self {
            Width::Minute => 7,
            Width::Hour => 400,
        }
    }
}

/// What is measured of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes acknowledged or received over the flow's life, bits a second.
    GoodputBps,
    /// Smoothed round-trip time at its end, µs.
    SrttUs,
    /// Least round-trip time, µs.
    MinRttUs,
    /// Segments retransmitted, of those sent.
    RetransmittedShare,
}

impl Measure {
    /// All.
    pub const ALL: [Measure; 4] = [
        Measure::GoodputBps,
        Measure::SrttUs,
        Measure::MinRttUs,
        Measure::RetransmittedShare,
    ];

    /// The measure of a name; none: one of another version.
    pub(super) fn named(name: &str) -> Option<Measure> {
        let mut measures = Measure::ALL.into_iter();
        measures.find(|measure| measure.name() == name)
    }

    /// Its name, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Measure::GoodputBps => "goodput_bps",
            Measure::SrttUs => "srtt_us",
            Measure::MinRttUs => "min_rtt_us",
            Measure::RetransmittedShare => "retransmitted_share",
        }
    }
}

/// Numbers of one measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollup {
    /// How many; a sampled flow counts as all that it stands for.
    pub n: u64,
    /// Sums over those above 0 of the logarithm and of its square.
    pub sum_ln: f64,
    /// See `sum_ln`.
    pub sum_ln2: f64,
    /// Their distribution.
    pub histogram: Histogram,
}

impl Rollup {
    /// Counts a value so many times.
    pub fn add(&mut self, value: f64, times: u32) {
        self.n += u64::from(times);
        self.histogram.add(value, times.into());
        if value > 0.0 {
            let ln = value.ln();
            self.sum_ln += ln * f64::from(times);
            self.sum_ln2 += ln * ln * f64::from(times);
        }
    }

    /// Adds another's numbers.
    pub fn merge(&mut self, other: &Rollup) {
        self.n += other.n;
        self.sum_ln += other.sum_ln;
        self.sum_ln2 += other.sum_ln2;
        self.histogram.merge(&other.histogram);
    }
}

/// Which interval of which path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) path: Key,
    pub(super) width: Width,
    pub(super) measure: Measure,
    /// Seconds since 1970.
    pub(super) begin_s: i64,
}

/// Roll-ups of a batch.
#[derive(Debug, Default)]
pub(super) struct Rollups(HashMap<Place, Rollup>);

/// The part of a flow's end that is rolled up; fields as in the flow log.
#[derive(Deserialize)]
struct Measured {
    goodput_mbps: f64,
    srtt_us: f64,
    min_rtt_us: Option<f64>,
    segments_retransmitted: f64,
    segments_sent: f64,
}

impl Measured {
    fn values(&self) -> impl Iterator<Item = (Measure, f64)> {
        let sent = self.segments_sent;
        let share = (sent > 0.0).then(|| self.segments_retransmitted / sent);
        let values = [
            (Measure::GoodputBps, Some(self.goodput_mbps * 1e6)),
            // 0: never measured.
            (Measure::SrttUs, Some(self.srtt_us).filter(|us| *us > 0.0)),
            (Measure::MinRttUs, self.min_rtt_us),
            (Measure::RetransmittedShare, share),
        ];
        let known = values.into_iter();
        known.filter_map(|(measure, value)| Some((measure, value?)))
    }
}

impl Rollups {
    /// Counts the end of a flow. One without a peer, or with another body, counts nowhere.
    pub(super) fn count(&mut self, event: &Event) {
        let measured = serde_json::from_str::<Measured>(&event.body);
        let (Some(peer), Ok(measured)) = (event.peer, measured) else {
            return;
        };
        let path = key(path_of(peer).network());
        let time_s = event.time_us.div_euclid(1_000_000);
        for (measure, value) in measured.values() {
            for width in Width::ALL {
                let place = Place {
                    path,
                    width,
                    measure,
                    begin_s: time_s - time_s.rem_euclid(width.seconds()),
                };
                let rollup = self.0.entry(place).or_default();
                rollup.add(value, event.weight);
            }
        }
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (Place, Rollup)> {
        self.0.into_iter()
    }
}
