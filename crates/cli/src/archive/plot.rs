// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath archive path --plot FILE`: what tests measured of a path, and what rules made of it, over time.

use super::time::shown;
use anyhow::{Context, Result};
use fatpath_api::TestOutcome;
use fatpath_archive::Kind;
use fatpath_archive::store::{Record, path_of};
use fatpath_measure::outcome::{rate_bps, rtt_us};
use fatpath_plot::{Format, PathOverTime, picture};
use ipnet::IpNet;
use serde::Deserialize;
use std::path::Path;

/// What is read of the event `rule.measured`.
#[derive(Deserialize)]
struct RuleMeasured {
    measured: InForce,
    before: Option<InForce>,
}

#[derive(Default, Deserialize)]
struct InForce {
    rtt_us: Option<f64>,
    rate_bps: Option<f64>,
}

pub fn write(file: &Path, prefix: IpNet, marks: &[Record]) -> Result<()> {
    let format = Format::of(file).context("--plot must end in .png or .svg")?;
    let picture = picture(&figure(prefix, marks), format)?;
    std::fs::write(file, picture).with_context(|| file.display().to_string())
}

/// Seconds count from the first of the events.
fn figure(prefix: IpNet, marks: &[Record]) -> PathOverTime {
    let path = path_of(prefix.network());
    let is_of_path = |record: &&Record| {
        let peer = record.event.peer;
        peer.is_some_and(|peer| prefix.contains(&peer) || path.contains(&peer))
    };
    let marks: Vec<&Record> = marks.iter().filter(is_of_path).collect();
    let (Some(first), Some(last)) = (marks.first(), marks.last()) else {
        return PathOverTime {
            title: format!("{prefix}: nothing was measured"),
            ..PathOverTime::default()
        };
    };
    let seconds = |record: &Record| (record.event.time_us - first.event.time_us) as f64 / 1e6;
    let mut figure = PathOverTime {
        title: format!("{prefix} from {} on", shown(first.event.time_us)),
        ..PathOverTime::default()
    };
    for record in marks.iter().filter(|record| record.kind == Kind::Test) {
        take_test(&mut figure, seconds(record), &record.event.body);
    }
    let decisions = marks.iter().filter(|it| it.event.name == "rule.measured");
    for record in decisions {
        take_decision(&mut figure, seconds(record), &record.event.body);
    }
    let end_s = seconds(last);
    for curve in [&mut figure.rate.in_force, &mut figure.rtt.in_force] {
        let value = curve.last().map(|(_, value)| *value);
        curve.extend(value.map(|value| (end_s, value)));
    }
    figure
}

/// A body of another version has no place in the figure.
fn take_test(figure: &mut PathOverTime, at_s: f64, body: &str) {
    if let Ok(outcome) = serde_json::from_str::<TestOutcome>(body) {
        let rtt_ms = rtt_us(&outcome).map(|us| (at_s, us / 1e3));
        let mbps = rate_bps(&outcome).map(|bps| (at_s, bps / 1e6));
        figure.rtt.tested.extend(rtt_ms);
        figure.rate.tested.extend(mbps);
    }
}

/// A step from what was in force before.
fn take_decision(figure: &mut PathOverTime, at_s: f64, body: &str) {
    let Ok(decision) = serde_json::from_str::<RuleMeasured>(body) else {
        return;
    };
    let before = decision.before.unwrap_or_default();
    for value in [before, decision.measured] {
        let mbps = value.rate_bps.map(|bps| (at_s, bps / 1e6));
        let rtt_ms = value.rtt_us.map(|us| (at_s, us / 1e3));
        figure.rate.in_force.extend(mbps);
        figure.rtt.in_force.extend(rtt_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::{Event, Origin};

    fn record(seconds: i64, kind: Kind, name: &str, peer: &str, body: &str) -> Record {
        let event = Event {
            time_us: 1_795_392_000_000_000 + seconds * 1_000_000,
            name: name.into(),
            peer: Some(peer.parse().unwrap()),
            rule: None,
            value: None,
            weight: 1,
            body: body.into(),
        };
        let (host, boot) = ("h".into(), "b".into());
        Record {
            origin: Origin { host, boot },
            sequence: 1,
            kind,
            event,
        }
    }

    #[test]
    fn a_rule_follows_in_steps_what_tests_found() {
        let test = r#"{"test":"t","tool":"iperf3","start_us":0,"duration_s":1,
            "values":{"goodput":[8e7,"b/s"],"rtt_min":[40000,"us"]}}"#;
        let near = r#"{"measured":{"rtt_us":20000,"rate_bps":50000000,"by":"x"},"before":null}"#;
        let far = r#"{"measured":{"rtt_us":40000,"rate_bps":80000000,"by":"x"},
            "before":{"rtt_us":20000,"rate_bps":50000000,"by":"x"}}"#;
        let marks = [
            record(0, Kind::Decision, "rule.measured", "192.0.2.0", near),
            record(5, Kind::Test, "test.iperf3", "192.0.2.7", test),
            record(6, Kind::Decision, "rule.measured", "192.0.2.0", far),
            record(7, Kind::Decision, "rule.measured", "192.0.3.0", near),
            record(9, Kind::Test, "test.ping", "192.0.2.7", "{}"),
        ];
        let figure = figure("192.0.2.7/32".parse().unwrap(), &marks);
        assert_eq!(figure.rate.tested, [(5.0, 80.0)]);
        assert_eq!(figure.rtt.tested, [(5.0, 40.0)]);
        let steps = [(0.0, 50.0), (6.0, 50.0), (6.0, 80.0), (9.0, 80.0)];
        assert_eq!(figure.rate.in_force, steps);
    }
}
