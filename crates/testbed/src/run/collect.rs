// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one run has written, as its row: the programs' output, the observation, the emulator's
//! figures, the daemon's flow log.
//!
//! It reads files and decides whether the figures can be trusted. Start with [`run`].

use std::fs;
use std::path::Path;
use std::time::Duration;

use fatpath_api::SettingOutcome;
use fatpath_experiment::measured::Measured;
use fatpath_experiment::results::{EmulatorFigures, FlowFigures, Row, Run};
use fatpath_observation::{DirectionName, Lateness};
use fatpath_scenario::limit::{Limit, bottleneck_mbps_between};
use fatpath_scenario::plan::Plan;
use fatpath_scenario::{Case, ResultKind};
use serde::Deserialize;

use super::launch::Launch;
use super::{CaseError, ResultError};
use crate::iperf3;
use crate::observe::{self, Window};
use crate::program::{Job, Ready, RunError};
use crate::records::Records;
use crate::transported;

/// Where to look, and how to judge.
pub(super) struct Written<'w> {
    pub(super) case: &'w Case,
    pub(super) plan: &'w Plan,
    pub(super) launches: &'w [Launch],
    /// Those of `launches`, in their order.
    pub(super) jobs: &'w [Job],
    pub(super) records: &'w Records,
    /// When the programs ran; `None` if they did not all begin and end.
    pub(super) window: Option<Window>,
    /// What somebody else has changed of the machine meanwhile.
    pub(super) disturbed: Option<String>,
    pub(super) lateness_limit_us: Option<u64>,
}

/// The run's row filled in, or why it has failed.
pub(super) fn run(
    written: &Written,
    ran: Result<(), RunError>,
    row: Row,
) -> Result<Run, CaseError> {
    let programs = measured(written, ran)?;
    let mut run = Run {
        row,
        ..Run::default()
    };
    run.give(&programs);
    let reverse = programs.first().is_some_and(|(_, one)| one.reverse);
    let row = &mut run.row;
    row.bottleneck_mbps = bottleneck_mbps(
        written.case,
        written.plan,
        written.launches,
        reverse,
        written.ran_for(),
    );
    let mut doubts: Vec<String> = written.disturbed.iter().cloned().collect();
    emulator(written, row, &mut doubts);
    observation(written, row, &mut doubts);
    row.flows = written
        .plan
        .daemon
        .as_ref()
        .and_then(|daemon| flows(&daemon.flow_log));
    row.trusted = Some(doubts.is_empty());
    row.distrust = (!doubts.is_empty()).then(|| doubts.join("; "));
    Ok(run)
}

/// What each program with a result measured. If a program failed, iperf3's own reason is the better
/// one.
fn measured(
    written: &Written,
    ran: Result<(), RunError>,
) -> Result<Vec<(String, Measured)>, CaseError> {
    let launches = written.launches.iter().zip(written.jobs);
    let results = launches.filter_map(|(launch, job)| Some((job, launch, launch.result?)));
    let parsed: Result<Vec<_>, CaseError> = results
        .map(|(job, launch, kind)| {
            let parsed = parse(written, job, launch, kind);
            let parsed = parsed.map_err(|error| CaseError::Result {
                label: job.label.clone(),
                error,
            });
            let begin_s = launch.start.as_secs_f64();
            Ok((job.label.clone(), parsed?.begun_at(begin_s)))
        })
        .collect();
    match (ran, parsed) {
        (Err(_), Err(error)) if error.is_programs_own() => Err(error),
        (Err(error), _) => Err(error.into()),
        (Ok(()), parsed) => parsed,
    }
}

fn parse(
    written: &Written,
    job: &Job,
    launch: &Launch,
    kind: ResultKind,
) -> Result<Measured, ResultError> {
    let text = |job: &Job| fs::read_to_string(&job.output);
    let server = launch.stop.as_ref().and_then(|stop| {
        let mut jobs = written.jobs.iter();
        jobs.find(|job| job.ready == Some(Ready::Port(stop.server_port)))
    });
    Ok(match (kind, server) {
        (ResultKind::Iperf3, None) => iperf3::parse(&text(job)?)?,
        (ResultKind::Iperf3, Some(server)) => iperf3::parse_stopped(&text(job)?, &text(server)?)?,
        (ResultKind::Flow, _) => transported::parse(&text(job)?).map_err(ResultError::NoReport)?,
    })
}

impl Written<'_> {
    fn ran_for(&self) -> Duration {
        self.window
            .map_or(Duration::MAX, |window| window.duration())
    }
}

/// The bottleneck between the programs with a result and their peers; `None`
/// if there is none, if its rate is not one throughout the run, or not the same for all of them.
pub(super) fn bottleneck_mbps(
    case: &Case,
    plan: &Plan,
    launches: &[Launch],
    reverse: bool,
    lasting: Duration,
) -> Option<f64> {
    let results = launches.iter().filter(|launch| launch.result.is_some());
    let ends = results.map(|launch| {
        let (own, peer) = (&launch.host[..], launch.peer.as_deref()?);
        Some(if reverse { (peer, own) } else { (own, peer) })
    });
    let ends: Option<Vec<_>> = ends.collect();
    bottleneck_mbps_between(plan, &case.changes, ends?, lasting)
}

/// What the supervisor writes when its forwarder ends.
#[derive(Deserialize)]
struct Emulated {
    lateness: Lateness,
    waiting: Lateness,
    links: Vec<EmulatedLink>,
    observation_error: Option<String>,
}

#[derive(Deserialize)]
struct EmulatedLink {
    directions: Vec<EmulatedDirection>,
}

#[derive(Deserialize)]
struct EmulatedDirection {
    missed_packets: u64,
}

fn emulator(written: &Written, row: &mut Row, doubts: &mut Vec<String>) {
    let Some(file) = &written.records.stats else {
        return;
    };
    let text = fs::read(file).map_err(|error| error.to_string());
    let stats = text.and_then(|text| {
        serde_json::from_slice::<Emulated>(&text).map_err(|error| error.to_string())
    });
    let stats = match stats {
        Ok(stats) => stats,
        Err(error) => {
            doubts.push(format!("the emulator's own figures are missing ({error})"));
            return;
        }
    };
    doubts.extend(
        stats
            .observation_error
            .map(|error| format!("the observation is not whole: {error}")),
    );
    let directions = stats.links.iter().flat_map(|link| &link.directions);
    let figures = EmulatorFigures {
        lateness: stats.lateness,
        waiting: stats.waiting,
        missed_packets: directions.map(|direction| direction.missed_packets).sum(),
    };
    if figures.missed_packets > 0 {
        doubts.push(format!(
            "{} packets were lost before the links: the machine was too slow for them",
            figures.missed_packets
        ));
    }
    let p99_us = figures.lateness.p99_us.max(figures.waiting.p99_us);
    let limit_us = written.lateness_limit_us;
    if let Some(limit_us) = limit_us.filter(|limit_us| p99_us > *limit_us as f64) {
        doubts.push(format!(
            "1 % of the packets were later than {p99_us:.0} us; the limit is {limit_us} us"
        ));
    }
    row.emulator = Some(figures);
}

fn observation(written: &Written, row: &mut Row, doubts: &mut Vec<String>) {
    let (Some(file), Some(window)) = (&written.records.observation, written.window) else {
        return;
    };
    match observe::figures(file, window, |name| limit(written, name)) {
        Ok((directions, is_whole)) => {
            row.directions = directions;
            if !is_whole {
                doubts.push("the observation is cut short".to_owned());
            }
        }
        Err(error) => doubts.push(format!("the observation cannot be read: {error}")),
    }
}

/// What limits a direction while the programs run.
fn limit(written: &Written, name: &DirectionName) -> Limit {
    let mut links = written.plan.links.iter();
    let found = links.find_map(|link| {
        let sender = link.between.iter().position(|host| *host == name.from)?;
        (link.name == name.link).then_some((link, sender))
    });
    found.map_or(Limit::None, |(link, sender)| {
        Limit::during(link, sender, &written.case.changes, written.ran_for())
    })
}

/// The figures of a line of the daemon's flow log that count here; see `docs/lab.md`.
#[derive(Deserialize)]
struct FlowLine {
    segments_retransmitted: u64,
    min_rtt_us: Option<u64>,
    settings: Vec<SettingLine>,
    limited: LimitedLine,
}

#[derive(Deserialize)]
struct SettingLine {
    outcome: SettingOutcome,
}

#[derive(Deserialize)]
struct LimitedLine {
    busy_s: f64,
    receiver_s: f64,
    sender_s: f64,
    network_s: f64,
}

/// `None` if the daemon has written no log: no flow of its rules ended.
fn flows(log: &Path) -> Option<FlowFigures> {
    Some(sum_flows(&fs::read_to_string(log).ok()?))
}

/// The sums over all lines that can be read.
fn sum_flows(log: &str) -> FlowFigures {
    let mut sum = FlowFigures::default();
    let lines = log.lines();
    for line in lines.filter_map(|line| serde_json::from_str::<FlowLine>(line).ok()) {
        let is_refused = |setting: &&SettingLine| setting.outcome == SettingOutcome::Refused;
        sum.ended += 1;
        sum.settings_refused += line.settings.iter().filter(is_refused).count() as u64;
        sum.segments_retransmitted += line.segments_retransmitted;
        sum.min_rtt_us = [sum.min_rtt_us, line.min_rtt_us]
            .into_iter()
            .flatten()
            .min();
        sum.busy_s += line.limited.busy_s;
        sum.receiver_limited_s += line.limited.receiver_s;
        sum.sender_limited_s += line.limited.sender_s;
        sum.network_limited_s += line.limited.network_s;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_summed_and_lines_that_are_none_left_out() {
        let line = |rtt: &str| {
            format!(
                r#"{{"event":"flow_end","segments_retransmitted":3,"min_rtt_us":{rtt},
                "settings":[{{"setting":"a","outcome":"refused"}},{{"setting":"b","outcome":"given"}}],
                "limited":{{"busy_s":2.0,"receiver_s":0.5,"sender_s":0.25,"network_s":1.25}}}}"#
            )
            .replace('\n', "")
        };
        let log = [line("200"), "torn {".into(), line("100"), line("null")].join("\n");
        let sum = sum_flows(&log);
        assert_eq!((sum.ended, sum.settings_refused), (3, 3));
        assert_eq!((sum.segments_retransmitted, sum.min_rtt_us), (9, Some(100)));
        assert_eq!((sum.busy_s, sum.network_limited_s), (6.0, 3.75));
    }
}
