// SPDX-License-Identifier: MIT OR Apache-2.0
//! One JSON line an event, all in one envelope: the fields of NetLogger's events, which the WAD's tools read
//! (timestamp, program, event, source and destination host, value, and whatever more there is).
//!
//! Events are a flow's begin and end, what happened to it, findings, and once a second its derived values.
//! What the file cannot take, or what came faster than it was written, is counted and said.

use super::Instruments;
use crate::archive::Archive;
use crate::flow_log::FlowLog;
use anyhow::{Result, bail};
use fatpath_api::{Flow, FlowView, Sample, SampleKind};
use fatpath_archive::{Event, Kind};
use fatpath_clock::unix_ns;
use fatpath_estats::Changes;
use fatpath_supervisor::Heartbeat;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::{Duration, Instant, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::TryRecvError;

/// Derived values and findings are looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The same for the archive, which is on for weeks: to look at every flow that does something costs.
const ARCHIVE_LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// How long events wait for the file when there were none: longer and longer while none comes.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// The envelope.
#[derive(Serialize)]
struct Line {
    #[serde(skip)]
    unix_ns: u64,
    /// RFC 3339, UTC.
    timestamp: String,
    program: &'static str,
    event: String,
    source_host: Option<IpAddr>,
    destination_host: Option<IpAddr>,
    /// What the event is about: see docs/instruments.md.
    value: Value,
    attributes: Value,
}

/// Writes events to the event log.
///
/// # Errors
/// When no more samples can come: the log itself may fail and recover.
pub(crate) fn follow(
    instruments: &Instruments,
    log: &FlowLog,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let mut samples = instruments.subscribe();
    let mut known = Known::default();
    let mut looked = Instant::now();
    let mut pause = PAUSE;
    let mut write = |line: Line| log.write(&line);
    while heartbeat.goes_on() {
        match samples.try_recv() {
            Ok(sample) => {
                pause = PAUSE;
                of_sample(&sample).into_iter().for_each(&mut write);
            }
            Err(TryRecvError::Lagged(lost)) => write(of_loss(lost)),
            Err(TryRecvError::Empty) => {
                log.flush();
                heartbeat.rest(pause)?;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
            Err(TryRecvError::Closed) => bail!("the table of flows has ended"),
        }
        if looked.elapsed() >= LOOK_INTERVAL {
            looked = Instant::now();
            let changes = instruments.changes(known.mark);
            known.look(changes).into_iter().for_each(&mut write);
        }
    }
    log.flush();
    Ok(())
}

/// Puts findings and derived values into the archive, while it is on.
pub(crate) fn follow_findings(
    instruments: &Instruments,
    archive: &Archive,
    heartbeat: &Heartbeat,
) -> Result<()> {
    let mut known = Known::default();
    let look_is_due = || async {
        tokio::time::sleep(ARCHIVE_LOOK_INTERVAL).await;
        archive.turned_on().await;
    };
    let runtime = Handle::current();
    while runtime.block_on(heartbeat.wait(look_is_due())).is_some() {
        let changes = instruments.changes(known.mark);
        for line in known.look(changes) {
            archive.put(line.kind(), line.into_event());
        }
    }
    Ok(())
}

impl Line {
    fn kind(&self) -> Kind {
        match self.event.starts_with("derived.") {
            true => Kind::Sample,
            false => Kind::Event,
        }
    }

    fn into_event(self) -> Event {
        Event {
            time_us: (self.unix_ns / 1000) as i64,
            peer: self.destination_host,
            rule: self.attributes["rule"].as_str().map(str::to_owned),
            value: self.value.as_f64(),
            weight: 1,
            // Texts and numbers give no reason to fail.
            body: serde_json::to_string(&self).unwrap_or_default(),
            name: self.event,
        }
    }
}

fn of_sample(sample: &Sample) -> Option<Line> {
    let moved = sample.bytes_acked.max(sample.bytes_received);
    let (event, value) = match sample.kind {
        SampleKind::Begin => ("flow.begin", json!(sample.law)),
        SampleKind::End => ("flow.end", json!(moved)),
        SampleKind::Congestion => ("flow.congestion", json!(sample.ssthresh_pkts)),
        SampleKind::Timeout => ("flow.timeout", json!(sample.rto_us)),
        SampleKind::Retransmission => ("flow.retransmission", json!(sample.segs_retrans)),
        SampleKind::Interval | SampleKind::State | SampleKind::Walk => return None,
    };
    let mut attributes = about(&sample.flow);
    let more = json!({
        "elapsed_s": sample.elapsed_s(),
        "cwnd_pkts": sample.cwnd_pkts,
        "ssthresh_pkts": sample.ssthresh_pkts,
        "srtt_us": sample.srtt_us,
        "bytes_acked": sample.bytes_acked,
        "bytes_received": sample.bytes_received,
        "segs_retrans": sample.segs_retrans,
        "cong_signals": sample.cong_signals,
        "timeouts": sample.timeouts,
        "law": sample.law,
    });
    extend(&mut attributes, more);
    Some(line(event, sample.now_ns, &sample.flow, value, attributes))
}

fn line(event: &str, now_ns: u64, flow: &Flow, value: Value, attributes: Value) -> Line {
    // The sender of most bytes is not known at the begin: the source is always this host.
    let unix_ns = unix_ns(now_ns);
    Line {
        unix_ns,
        timestamp: rfc3339(unix_ns),
        program: "fatpath",
        event: event.to_owned(),
        source_host: Some(flow.local.ip().to_canonical()),
        destination_host: Some(flow.remote.ip().to_canonical()),
        value,
        attributes,
    }
}

/// Writes a run of a test to the event log.
pub(crate) fn write_test(log: &FlowLog, event: &Event, outcome: &impl Serialize) {
    let unix_ns = u64::try_from(event.time_us).unwrap_or_default() * 1000;
    let line = Line {
        unix_ns,
        timestamp: rfc3339(unix_ns),
        program: "fatpath",
        event: event.name.clone(),
        source_host: None,
        destination_host: event.peer,
        value: json!(event.value),
        attributes: serde_json::to_value(outcome).unwrap_or_default(),
    };
    log.write(&line);
    log.flush();
}

fn of_loss(lost: u64) -> Line {
    let unix_ns = unix_ns(fatpath_clock::monotonic_ns());
    Line {
        unix_ns,
        timestamp: rfc3339(unix_ns),
        program: "fatpath",
        event: "samples.lost".to_owned(),
        source_host: None,
        destination_host: None,
        value: json!(lost),
        attributes: json!({ "why": "samples arrived faster than events were written" }),
    }
}

fn rfc3339(unix_ns: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_micros(time).to_string()
}

fn about(flow: &Flow) -> Value {
    json!({
        "cookie": flow.cookie,
        "source_port": flow.local.port(),
        "destination_port": flow.remote.port(),
        "is_passive": flow.is_passive,
    })
}

fn extend(attributes: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (attributes, more) {
        all.extend(more);
    }
}

/// What was said of flows already.
#[derive(Default)]
struct Known {
    mark: u64,
    findings: HashMap<u64, HashSet<String>>,
}

impl Known {
    fn look(&mut self, changes: Changes) -> Vec<Line> {
        self.mark = changes.mark;
        if changes.is_broken {
            self.findings.clear();
        }
        for cookie in changes.gone {
            self.findings.remove(&cookie);
        }
        changes
            .flows
            .iter()
            .flat_map(|view| self.of_view(view))
            .collect()
    }

    fn of_view(&mut self, view: &FlowView) -> Vec<Line> {
        let (flow, now_ns) = (&view.flow, view.sample.now_ns);
        // A flow that did nothing has nothing new to tell.
        let is_idle = view.sample.kind == SampleKind::Walk;
        let derived = view
            .derived
            .iter()
            .filter(|_| !is_idle)
            .map(|(name, value)| {
                let mut attributes = about(flow);
                extend(&mut attributes, json!({ "rule": view.rule }));
                line(
                    &format!("derived.{name}"),
                    now_ns,
                    flow,
                    json!(value),
                    attributes,
                )
            });
        let mut lines: Vec<Line> = derived.collect();
        let before = self.findings.remove(&flow.cookie).unwrap_or_default();
        for finding in view.findings.iter().filter(|f| !before.contains(&f.id)) {
            let mut attributes = about(flow);
            let more = json!({ "rule": view.rule, "finding": finding });
            extend(&mut attributes, more);
            lines.push(line("finding", now_ns, flow, json!(finding.id), attributes));
        }
        if !view.findings.is_empty() {
            let ids = view.findings.iter().map(|finding| finding.id.clone());
            self.findings.insert(flow.cookie, ids.collect());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_estats::{Bounds, Derived, FlowTable, testing};

    #[test]
    fn an_event_has_the_whole_envelope() {
        let mut sample = testing::sample(7, SampleKind::Congestion, testing::SECOND);
        sample.flow.local = "[::ffff:10.0.0.1]:40000".parse().unwrap();
        sample.flow.remote = "[2001:db8::2]:443".parse().unwrap();
        (sample.cwnd_pkts, sample.ssthresh_pkts) = (30, Some(21));
        let line = serde_json::to_value(of_sample(&sample)).unwrap();
        let keys: Vec<&str> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let envelope = "attributes destination_host event program source_host timestamp value";
        assert_eq!(keys.join(" "), envelope);
        assert_eq!(line["program"], "fatpath");
        assert_eq!(line["event"], "flow.congestion");
        assert_eq!(
            (&line["source_host"], &line["destination_host"]),
            (&json!("10.0.0.1"), &json!("2001:db8::2"))
        );
        assert_eq!(line["value"], 21);
        assert_eq!(line["attributes"]["cookie"], 7);
        assert_eq!(line["attributes"]["destination_port"], 443);
        assert_eq!(line["attributes"]["cwnd_pkts"], 30);
        let at = humantime::parse_rfc3339(line["timestamp"].as_str().unwrap()).unwrap();
        assert!(at > UNIX_EPOCH);
    }

    #[test]
    fn whatever_a_name_holds_an_event_is_one_line() {
        let mut sample = testing::sample(7, SampleKind::Begin, 0);
        sample.law = "x\n\"}{\u{1b}[2J\0".into();
        let line = serde_json::to_string(&of_sample(&sample)).unwrap();
        assert!(!line.contains(char::is_control), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["value"], sample.law.as_str());
    }

    /// Samples are dated by a clock that nobody sets; only what is shown of them follows the host's.
    #[test]
    fn an_event_is_dated_by_the_hosts_clock_as_it_is_now() {
        let now = fatpath_clock::monotonic_ns();
        let shown = |ns| humantime::parse_rfc3339(&rfc3339(unix_ns(ns))).unwrap();
        let five_seconds_ago = shown(now - 5_000_000_000);
        let age = std::time::SystemTime::now().duration_since(five_seconds_ago);
        assert_eq!(age.unwrap().as_secs(), 5);
        // After the daemon's clock, as by a reader on another processor: now, not an overflow.
        let later = shown(now + 3_600_000_000_000);
        assert!(later <= std::time::SystemTime::now());
    }

    #[test]
    fn an_interval_is_no_event() {
        let sample = testing::sample(7, SampleKind::Interval, testing::SECOND);
        assert!(of_sample(&sample).is_none());
    }

    #[test]
    fn derived_values_are_told_of_flows_that_do_something() {
        let mut table = FlowTable::new(Bounds::default());
        table.set_policy([], Derived::parse([("Double", "CurMSS * 2")]).unwrap());
        let mut known = Known::default();
        let mut look = |kind, seconds| {
            table.take(testing::sample(7, kind, seconds * testing::SECOND));
            let lines = known.look(table.changes(known.mark));
            lines
                .into_iter()
                .map(|line| (line.event, line.value))
                .collect::<Vec<_>>()
        };
        let mss = testing::sample(7, SampleKind::Begin, 0).mss_bytes;
        let told = ("derived.Double".to_owned(), json!(f64::from(mss) * 2.0));
        assert_eq!(look(SampleKind::Begin, 0), std::slice::from_ref(&told));
        assert_eq!(look(SampleKind::Interval, 1), [told]);
        assert_eq!(look(SampleKind::Walk, 2), []);
    }

    #[test]
    fn a_finding_is_told_once() {
        let mut table = FlowTable::new(Bounds::default());
        table.take(testing::sample(7, SampleKind::Begin, 0));
        let mut view = table.views().next().unwrap();
        view.findings = vec![fatpath_api::Finding {
            id: "FP-TEST".into(),
            title: "slow".into(),
            evidence: vec![],
            severity: fatpath_api::Severity::Problem,
            gain: Some(2.0),
            cure: None,
        }];
        let mut known = Known::default();
        let told = |lines: Vec<Line>| lines.into_iter().map(|line| line.value).collect::<Vec<_>>();
        assert_eq!(told(known.of_view(&view)), [json!("FP-TEST")]);
        assert_eq!(told(known.of_view(&view)), [json!(null); 0]);
        // It went and came again.
        let found = std::mem::take(&mut view.findings);
        known.of_view(&view);
        view.findings = found;
        assert_eq!(told(known.of_view(&view)), [json!("FP-TEST")]);
    }
}
