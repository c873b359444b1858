// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variables of RFC 4898 by their names: what Linux gives for each, and which it cannot give.
//!
//! Nothing is invented: a variable without a source in the kernel is listed with the reason, and has no
//! value. Variables that Linux has and the RFC has not are in a group of their own. One group a file.

mod app;
mod linux;
mod path;
mod perf;
mod stack;

use fatpath_api::Sample;
use serde::Serialize;

/// The RFC's groups, and Linux's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Group {
    /// tcpEStatsPerfTable: what decides throughput.
    Perf,
    /// tcpEStatsPathTable: what is known of the path.
    Path,
    /// tcpEStatsStackTable: TCP's own state.
    Stack,
    /// tcpEStatsAppTable: what the application does.
    App,
    /// tcpEStatsTuneTable: limits that can be set.
    Tune,
    /// Not of the RFC.
    Linux,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Out of each sample.
    Sample {
        /// The kernel's field, or who counts it.
        field: &'static str,
        /// The first kernel with it.
        since: &'static str,
        /// Its value; none where this kernel or this moment has none.
        get: fn(&Sample) -> Option<f64>,
    },
    /// Not to be had, and why.
    Absent(&'static str),
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// As RFC 4898 writes it, without `tcpEStats` and the group.
    pub name: &'static str,
    /// Its group.
    pub group: Group,
    /// Its unit; empty for plain numbers and truth values (1 = true).
    pub unit: &'static str,
    /// In a few words.
    pub meaning: &'static str,
    /// Where it comes from.
    pub source: Source,
}

impl Variable {
    /// The value in a sample.
    pub fn of(&self, sample: &Sample) -> Option<f64> {
        match self.source {
            Source::Sample { get, .. } => get(sample),
            Source::Absent(_) => None,
        }
    }

    /// Linux gives it.
    pub fn is_present(&self) -> bool {
        matches!(self.source, Source::Sample { .. })
    }
}

/// All of them, in the RFC's order within each group.
pub fn all() -> impl Iterator<Item = &'static Variable> {
    let groups = [perf::ALL, path::ALL, stack::ALL, app::ALL, linux::ALL];
    groups.into_iter().flatten()
}

/// By its name, or by the name that the WAD gave it.
pub fn named(name: &str) -> Option<&'static Variable> {
    let name = of_the_wad(name);
    all().find(|variable| variable.name == name)
}

/// Web100's names where they differ from the RFC's.
fn of_the_wad(name: &str) -> &str {
    match name {
        "DataBytesOut" => "HCDataOctetsOut",
        "DataBytesIn" => "HCDataOctetsIn",
        "PktsOut" => "SegsOut",
        "PktsIn" => "SegsIn",
        "DataPktsOut" => "DataSegsOut",
        "DataPktsIn" => "DataSegsIn",
        "PktsRetrans" => "SegsRetrans",
        "BytesRetrans" => "OctetsRetrans",
        "ThruBytesAcked" => "HCThruOctetsAcked",
        "ThruBytesReceived" => "HCThruOctetsReceived",
        "StartTime" => "StartTimeStamp",
        "CurrTime" => "now",
        "SampledRTT" => "SampleRTT",
        "CongestionSignals" => "CongSignals",
        other => other,
    }
}

/// A variable that each sample has.
const fn given(
    (name, group): (&'static str, Group),
    unit: &'static str,
    meaning: &'static str,
    (field, since): (&'static str, &'static str),
    get: fn(&Sample) -> Option<f64>,
) -> Variable {
    let source = Source::Sample { field, since, get };
    Variable {
        name,
        group,
        unit,
        meaning,
        source,
    }
}

/// One that cannot be had.
const fn absent(
    (name, group): (&'static str, Group),
    meaning: &'static str,
    reason: &'static str,
) -> Variable {
    Variable {
        name,
        group,
        unit: "",
        meaning,
        source: Source::Absent(reason),
    }
}

/// The kernel keeps no such counter, and no hook of ours sees every case.
const NO_COUNTER: &str = "no counter in the kernel";
/// A maximum or minimum over time, which the kernel does not keep.
const KEPT: (&str, &str) = ("counted by fatpath", "");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use fatpath_api::{Extremes, SampleKind};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let mut names = HashSet::new();
        assert!(all().all(|variable| names.insert(variable.name)));
    }

    #[test]
    fn the_wads_names_lead_to_variables_that_are_there() {
        for name in [
            "DataBytesOut",
            "StartTime",
            "CurrTime",
            "now",
            "PktsRetrans",
        ] {
            assert!(named(name).is_some_and(Variable::is_present), "{name}");
        }
        assert!(named("DataByteOut").is_none());
    }

    #[test]
    fn a_flow_that_is_not_sampled_has_no_extremes() {
        let max_rto = named("MaxRTO").unwrap();
        let walked = Sample {
            extremes: None,
            ..sample(1, SampleKind::Walk, 0)
        };
        assert_eq!(max_rto.of(&walked), None);
        let extremes = Extremes {
            max_rto_us: 400_000,
            ..Extremes::default()
        };
        let sampled = Sample {
            extremes: Some(extremes),
            ..walked
        };
        assert_eq!(max_rto.of(&sampled), Some(400_000.0));
        assert_eq!(named("MaxSsthresh").unwrap().of(&sampled), None);
    }

    /// The tables of RFC 4898, section 4, without its index and control objects.
    #[test]
    fn no_variable_of_the_rfc_is_passed_over() {
        let rfc = "SegsOut DataSegsOut DataOctetsOut HCDataOctetsOut SegsRetrans OctetsRetrans SegsIn \
            DataSegsIn DataOctetsIn HCDataOctetsIn ElapsedSecs ElapsedMicroSecs StartTimeStamp CurMSS \
            PipeSize MaxPipeSize SmoothedRTT CurRTO CongSignals CurCwnd CurSsthresh Timeouts CurRwinSent \
            MaxRwinSent ZeroRwinSent CurRwinRcvd MaxRwinRcvd ZeroRwinRcvd SndLimTransRwin SndLimTransCwnd \
            SndLimTransSnd SndLimTimeRwin SndLimTimeCwnd SndLimTimeSnd RetranThresh NonRecovDAEpisodes \
            SumOctetsReordered NonRecovDA SampleRTT RTTVar MaxRTT MinRTT SumRTT HCSumRTT CountRTT MaxRTO \
            MinRTO IpTtl IpTosIn IpTosOut PreCongSumCwnd PreCongSumRTT PostCongSumRTT PostCongCountRTT \
            ECNsignals DupAckEpisodes RcvRTT DupAcksOut CERcvd ECESent ActiveOpen MSSSent MSSRcvd \
            WinScaleSent WinScaleRcvd TimeStamps ECN WillSendSACK WillUseSACK State Nagle MaxSsCwnd \
            MaxCaCwnd MaxSsthresh MinSsthresh InRecovery DupAcksIn SpuriousFrDetected SpuriousRtoDetected \
            SoftErrors SoftErrorReason SlowStart CongAvoid OtherReductions CongOverCount FastRetran \
            SubsequentTimeouts CurTimeoutCount AbruptTimeouts SACKsRcvd SACKBlocksRcvd SendStall DSACKDups \
            MaxMSS MinMSS SndInitial RecInitial CurRetxQueue MaxRetxQueue CurReasmQueue MaxReasmQueue \
            EarlyRetrans EarlyRetransDelay SndUna SndNxt SndMax ThruOctetsAcked HCThruOctetsAcked RcvNxt \
            ThruOctetsReceived HCThruOctetsReceived CurAppWQueue MaxAppWQueue CurAppRQueue MaxAppRQueue \
            LimCwnd LimSsthresh LimRwin LimMSS";
        let missing: Vec<_> = rfc
            .split_whitespace()
            .filter(|name| named(name).is_none())
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
