// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the runs gave: a row for each run, a summary for each case, tables for people.
//!
//! Pure but for [`files`]. It judges nothing: a run that is not to be trusted keeps its figures and
//! is marked. Start with [`Row`].

mod csv;
pub mod files;
mod pairs;
pub(crate) mod series;
pub mod summary;
mod table;

use std::collections::BTreeMap;

use fatpath_observation::{DirectionFigures, Lateness};
use serde::{Deserialize, Serialize};

use crate::measured::{Measured, Transfers, Udp, Window};

pub(crate) use pairs::pairs;
pub use table::{name, table};

/// One row of `results.json`: a run. Rates in Mb/s, decimal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The case of the network.
    pub path: String,
    /// The case of the tuning.
    pub variant: String,
    /// What the receivers got of application data from the first begin of a program to the last end; `None` (null) if the run failed.
    pub goodput_mbps: Option<f64>,
    /// The rate of the bottleneck in bits on the wire; `None` (null) if there is no limit, or not
    /// one for all programs and the whole run.
    pub bottleneck_mbps: Option<f64>,
    /// Segments retransmitted; `None` (null) if the run failed or the sender does not count them.
    pub retransmits: Option<u64>,
    /// What `vary` gave the case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, String>,
    /// When it ran: 1 is the first counted run. In the simulator, by repeat and case.
    pub run: u32,
    /// Which repeat of its case it is, from 1.
    pub repeat: u32,
    /// It is the run of every repeat, for nothing in it is drawn; absent: it is not. Only the simulator tells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every_repeat: bool,
    /// How often it was made until it was to be trusted or given up, this time included; absent in the
    /// simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// What the datagrams met; absent without UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<Udp>,
    /// Retransmission timeouts; only the simulator counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Times at which the law reduced the window; only the simulator counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_events: Option<u64>,
    /// Of these, those taken back since the loss was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_events: Option<u64>,
    /// How long transfers took; absent unless one flow has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// How the congestion window moved; absent unless there is one connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Each program with a result, if there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramFigures>,
    /// Each direction of each link while the programs ran; empty without an observation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<DirectionFigures>,
    /// How well the emulator kept its times; absent if it did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorFigures>,
    /// What the daemon's flow log says; absent without a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowFigures>,
    /// Whether the figures show what the links do; `None` (null) if the run failed, which has none.
    pub trusted: Option<bool>,
    /// Why they may not; absent if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distrust: Option<String>,
    /// Why the run failed; absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What one program of a run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramFigures {
    /// Its place, host and name, such as `2-client-iperf3`.
    pub program: String,
    /// What its receiver got.
    pub goodput_mbps: f64,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
    /// What its datagrams met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<Udp>,
    /// Retransmission timeouts; only the simulator counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Times at which the law reduced the window; only the simulator counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_events: Option<u64>,
    /// Of these, those taken back since the loss was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_events: Option<u64>,
    /// How long its transfers took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transfers>,
    /// How its congestion window moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// How long after its due time each packet left the emulator, and what never reached it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulatorFigures {
    /// Of all packets of the run.
    pub lateness: Lateness,
    /// How long they waited before the emulator read them, at most.
    #[serde(default)]
    pub waiting: Lateness,
    /// Packets that the devices dropped before any cell saw them.
    pub missed_packets: u64,
}

/// What the daemon logged of the flows that ended in the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Flows that ended.
    pub ended: u64,
    /// Settings that the kernel refused them.
    pub settings_refused: u64,
    /// Segments that they retransmitted.
    pub segments_retransmitted: u64,
    /// The least round-trip time of any.
    pub min_rtt_us: Option<u64>,
    /// Seconds with data to send or in flight, over all flows.
    pub busy_s: f64,
    /// Of these, limited by the receiver's window.
    pub receiver_limited_s: f64,
    /// By the sender's own buffer.
    pub sender_limited_s: f64,
    /// By the congestion window.
    pub network_limited_s: f64,
}

/// One run as it is kept: its row, and the throughput over time behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its row.
    pub row: Row,
    /// What the programs measured, summed; `None` if the run failed.
    pub measured: Option<Measured>,
    /// The file of the simulator's series of it, in their folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
}

impl Run {
    /// Takes on what the programs measured, in order. One alone is not listed for itself.
    pub fn give(&mut self, programs: &[(String, Measured)]) {
        let measured: Vec<&Measured> = programs.iter().map(|(_, measured)| measured).collect();
        let Some(sum) = Measured::sum(&measured) else {
            return;
        };
        self.row.goodput_mbps = Some(mbps(sum.goodput_bps));
        self.row.retransmits = sum.retransmits;
        self.row.udp = sum.udp;
        self.row.timeouts = sum.timeouts;
        self.row.congestion_events = sum.congestion_events;
        self.row.undone_events = sum.undone_events;
        self.row.transfers = sum.transfers;
        self.row.window = sum.window;
        if programs.len() > 1 {
            self.row.programs = programs.iter().map(ProgramFigures::of).collect();
        }
        self.measured = Some(sum);
    }
}

impl ProgramFigures {
    fn of((label, measured): &(String, Measured)) -> ProgramFigures {
        ProgramFigures {
            program: label.clone(),
            goodput_mbps: mbps(measured.goodput_bps),
            retransmits: measured.retransmits,
            udp: measured.udp,
            timeouts: measured.timeouts,
            congestion_events: measured.congestion_events,
            undone_events: measured.undone_events,
            transfers: measured.transfers,
            window: measured.window,
        }
    }
}

impl Row {
    /// Every figure of the run by its name in tables; those that it has no value for are absent.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let mut figures = vec![];
        let mut add = |name: &str, value: Option<f64>| {
            figures.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("goodput_mbps", self.goodput_mbps);
        add("attempts", self.attempts.map(f64::from));
        let counts = [
            ("retransmits", self.retransmits),
            ("timeouts", self.timeouts),
            ("congestion_events", self.congestion_events),
            ("undone_events", self.undone_events),
        ];
        counts
            .into_iter()
            .for_each(|(name, count)| add(name, count.map(|count| count as f64)));
        for (figure, value) in self.transfers.iter().flat_map(Transfers::figures) {
            add(figure, Some(value));
        }
        for (figure, value) in self.window.iter().flat_map(Window::figures) {
            add(figure, value);
        }
        add("lost_percent", self.udp.map(|udp| udp.lost_percent()));
        add("jitter_ms", self.udp.map(|udp| udp.jitter_ms));
        for program in &self.programs {
            let of = |figure: &str| format!("{}.{figure}", program.program);
            add(&of("goodput_mbps"), Some(program.goodput_mbps));
            let counts = [
                ("retransmits", program.retransmits),
                ("timeouts", program.timeouts),
                ("congestion_events", program.congestion_events),
                ("undone_events", program.undone_events),
            ];
            counts
                .into_iter()
                .for_each(|(name, count)| add(&of(name), count.map(|count| count as f64)));
            let lost = program.udp.map(|udp| udp.lost_percent());
            add(&of("lost_percent"), lost);
            for (figure, value) in program.transfers.iter().flat_map(Transfers::figures) {
                add(&of(figure), Some(value));
            }
            for (figure, value) in program.window.iter().flat_map(Window::figures) {
                add(&of(figure), value);
            }
        }
        for direction in &self.directions {
            for (figure, value) in direction.figures() {
                add(&format!("{}.{figure}", direction.name()), value);
            }
        }
        for (name, value) in self.emulator.iter().flat_map(EmulatorFigures::figures) {
            add(name, Some(value));
        }
        for (name, value) in self.flows.iter().flat_map(FlowFigures::figures) {
            add(name, value);
        }
        figures
    }
}

impl EmulatorFigures {
    fn figures(&self) -> [(&'static str, f64); 5] {
        [
            ("lateness_p50_us", self.lateness.p50_us),
            ("lateness_p90_us", self.lateness.p90_us),
            ("lateness_p99_us", self.lateness.p99_us),
            ("lateness_max_us", self.lateness.max_us),
            ("missed_packets", self.missed_packets as f64),
        ]
    }
}

impl FlowFigures {
    fn figures(&self) -> [(&'static str, Option<f64>); 8] {
        let number = |count: u64| Some(count as f64);
        [
            ("flows_ended", number(self.ended)),
            ("flows_settings_refused", number(self.settings_refused)),
            (
                "flows_segments_retransmitted",
                number(self.segments_retransmitted),
            ),
            ("flows_min_rtt_us", self.min_rtt_us.map(|us| us as f64)),
            ("flows_busy_s", Some(self.busy_s)),
            ("flows_receiver_limited_s", Some(self.receiver_limited_s)),
            ("flows_sender_limited_s", Some(self.sender_limited_s)),
            ("flows_network_limited_s", Some(self.network_limited_s)),
        ]
    }
}

/// To the bit: more digits only look exact.
fn mbps(bps: f64) -> f64 {
    (bps / 1e3).round() / 1e3
}

/// Rows for tests of this module's files.
#[cfg(test)]
pub(crate) mod examples {
    use super::*;
    use crate::measured::examples::measured;

    pub(crate) fn run(path: &str, variant: &str, goodput_bps: f64) -> Run {
        let mut run = failed(path, variant, "");
        run.row.error = None;
        run.row.trusted = Some(true);
        run.give(&[("2-client-iperf3".into(), measured(goodput_bps))]);
        run
    }

    pub(crate) fn failed(path: &str, variant: &str, error: &str) -> Run {
        Run {
            row: Row {
                path: path.into(),
                variant: variant.into(),
                bottleneck_mbps: Some(1000.0),
                run: 1,
                repeat: 1,
                error: Some(error.into()),
                ..Row::default()
            },
            measured: None,
            series: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::examples::{failed, run};
    use super::*;
    use crate::measured::examples::measured;

    #[test]
    fn a_row_begins_with_the_five_keys_and_an_error_comes_last() {
        let row = run("clean", "default", 312_345_678.9).row;
        let five = r#"{"path":"clean","variant":"default","goodput_mbps":312.346,"bottleneck_mbps":1000.0,"retransmits":7,"#;
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.starts_with(five), "{text}");
        assert!(!text.contains("error"), "{text}");
        let text = serde_json::to_string(&failed("clean", "tuned", "why").row).unwrap();
        assert!(text.contains(r#""goodput_mbps":null"#), "{text}");
        assert!(text.contains(r#""trusted":null"#), "{text}");
        assert!(text.ends_with(r#""error":"why"}"#), "{text}");
    }

    #[test]
    fn several_programs_are_summed_and_listed() {
        let mut run = run("clean", "default", 0.0);
        run.give(&[
            ("2-a-iperf3".into(), measured(100e6)),
            ("3-b-iperf3".into(), measured(50e6)),
        ]);
        assert_eq!(run.row.goodput_mbps, Some(150.0));
        assert_eq!(run.row.retransmits, Some(14));
        assert_eq!(run.row.programs.len(), 2);
        let figures = run.row.figures();
        assert!(figures.contains(&("3-b-iperf3.goodput_mbps".into(), 50.0)));
        assert_eq!(run.measured.unwrap().intervals[0].rate_bps, 150e6);
    }

    #[test]
    fn a_run_is_read_back_as_it_was_kept() {
        let run = run("clean", "default", 1e6);
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    }
}
