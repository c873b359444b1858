// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows of a scenario as programs of the lab: an iperf3 at either end.
//!
//! Pure. What iperf3 cannot be asked for is refused with the line. Start with [`with_programs`].

use std::time::Duration;

use fatpath_link::headers::{TIMESTAMP_BYTES, udp_payload_rate_bps};
use thiserror::Error;

use fatpath_scenario::{Case, EndSettings, Flow, Program, ResultKind, Scenario, Source, Stop};

/// Connections of one iperf3: MAX_STREAMS of iperf.h.
const MOST_STREAMS: u32 = 128;
/// What an iperf3 takes in addition to its time.
const AROUND_A_TEST: Duration = Duration::from_secs(2);

/// A flow that only the simulator can make.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {why}; `fatpath sim` can do it")]
pub struct OnlySimulated {
    /// Where the flow stands in the file.
    pub line: usize,
    /// What the lab cannot do.
    pub why: String,
}

/// The scenario with programs in place of its flows.
///
/// # Errors
/// The first flow that iperf3 cannot make.
pub fn with_programs(scenario: &Scenario) -> Result<Scenario, OnlySimulated> {
    let mut scenario = scenario.clone();
    for case in &mut scenario.cases {
        let flows = std::mem::take(&mut case.flows);
        add(case, &flows)?;
    }
    Ok(scenario)
}

fn add(case: &mut Case, flows: &[Flow]) -> Result<(), OnlySimulated> {
    case.programs.extend(flows.iter().map(server));
    for flow in flows {
        let line = flow.line;
        let client = client(flow).map_err(|why| OnlySimulated { line, why })?;
        case.programs.push(client);
    }
    Ok(())
}

fn server(flow: &Flow) -> Program {
    let (_, port) = flow.ports;
    Program {
        host: flow.to.clone(),
        run: format!("iperf3 --server --one-off --json --port {port} --interval 0.5"),
        ready_port: Some(port),
        result: None,
        lasts: None,
        time_limit: flow.start + flow.time_limit,
        start: flow.start,
        stop: None,
        line: flow.line,
    }
}

fn client(flow: &Flow) -> Result<Program, String> {
    if flow.requests.ends != EndSettings::default() {
        return Err("programs cannot ask for what this flow asks of TCP".to_owned());
    }
    let (_, port) = flow.ports;
    let mut run = format!(
        "iperf3 --client {{{}}} --port {port} --json --get-server-output --interval 0.5",
        flow.to
    );
    for option in [lasts(flow)?, source(flow)?, streams(flow)?, requests(flow)?] {
        run.push_str(&option);
    }
    let start_s = flow.start.as_secs_f64();
    if start_s > 0.0 {
        run = format!("sh -c 'sleep {start_s}; exec {run}'");
    }
    Ok(Program {
        host: flow.from.clone(),
        run,
        ready_port: None,
        result: Some(ResultKind::Iperf3),
        lasts: flow.lasts.map(|lasts| flow.start + lasts + AROUND_A_TEST),
        time_limit: flow.start + flow.time_limit,
        start: flow.start,
        stop: stop(flow),
        line: flow.line,
    })
}

/// iperf3 ends after a time or after so many bytes: where either may be first, the lab watches the time.
fn stop(flow: &Flow) -> Option<Stop> {
    let server_port = flow.ports.1;
    let after = flow.lasts.filter(|_| has_size(flow))?;
    Some(Stop {
        after: flow.start + after,
        server_port,
    })
}

fn has_size(flow: &Flow) -> bool {
    matches!(flow.source, Source::Bulk { bytes: Some(_), .. })
}

fn lasts(flow: &Flow) -> Result<String, String> {
    match flow.lasts.filter(|_| !has_size(flow)) {
        None => Ok(String::new()),
        Some(lasts) if lasts.subsec_nanos() == 0 => Ok(format!(" --time {}", lasts.as_secs())),
        Some(_) => Err("iperf3 sends for whole seconds".to_owned()),
    }
}

fn source(flow: &Flow) -> Result<String, String> {
    match flow.source {
        Source::Bulk { again: true, .. } => Err("again: iperf3 sends once".to_owned()),
        Source::Bulk {
            bytes: Some(bytes), ..
        } => {
            let of_all = bytes.saturating_mul(flow.streams.into());
            Ok(format!(" --bytes {of_all}"))
        }
        Source::Bulk { bytes: None, .. } => Ok(String::new()),
        Source::Chunks { .. } => Err("source = \"chunks\": iperf3 makes no pauses".to_owned()),
        Source::Web { .. } => Err("source = \"web\": iperf3 is no user".to_owned()),
        Source::ConstantRate {
            rate_bps,
            payload_bytes,
        } => {
            let rate_bps = udp_payload_rate_bps(rate_bps, payload_bytes);
            Ok(format!(
                " --udp --bitrate {rate_bps} --length {payload_bytes}"
            ))
        }
    }
}

fn streams(flow: &Flow) -> Result<String, String> {
    match flow.streams {
        1 => Ok(String::new()),
        2..=MOST_STREAMS => Ok(format!(" --parallel {}", flow.streams)),
        _ => Err(format!("streams: an iperf3 makes {MOST_STREAMS} at most")),
    }
}

fn requests(flow: &Flow) -> Result<String, String> {
    let requests = &flow.requests;
    let mut options = String::new();
    if let Some(law) = &requests.law {
        if !law.parameters.is_empty() {
            return Err("law: its parameters come from a variant's policy in the lab".to_owned());
        }
        options.push_str(&format!(" --congestion {}", law.name));
    }
    if let Some(mss_bytes) = requests.mss_bytes {
        options.push_str(&format!(" --set-mss {}", mss_bytes + TIMESTAMP_BYTES));
    }
    if let Some(bytes) = requests.window_bytes {
        options.push_str(&format!(" --window {bytes}"));
    }
    if let Some(rate_bps) = requests.pacing_rate_bps {
        options.push_str(&format!(" --fq-rate {rate_bps}"));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(flow: &str) -> Result<Vec<String>, String> {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n[[flow]]\n\
             from = \"a\"\nto = \"b\"\n{flow}"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let programs = with_programs(&scenario).map_err(|error| error.to_string())?;
        let programs = programs.cases[0].programs.iter();
        Ok(programs
            .map(|program| format!("{}: {}", program.host, program.run))
            .collect())
    }

    #[test]
    fn a_flow_becomes_an_iperf3_at_either_end() {
        let bulk = "source = \"bulk\"\nstart = \"1s\"\nstop = \"11s\"\nstreams = 2\nlaw = \"reno\"\n\
                    mss = 1400\nwindow = \"64KiB\"\npacing_rate = \"1gbit\"";
        let udp = "source = \"udp\"\nrate = \"10.28mbit\"\npayload = 1000\nstop = \"5s\"";
        let sized = "source = \"bulk\"\nbytes = \"10MB\"\nstop = \"9.5s\"";
        let told = [bulk, udp, sized].map(|flow| programs(flow).unwrap().join("\n"));
        insta::assert_snapshot!(told.join("\n"), @r#"
        b: iperf3 --server --one-off --json --port 6001 --interval 0.5
        a: sh -c 'sleep 1; exec iperf3 --client {b} --port 6001 --json --get-server-output --interval 0.5 --time 10 --parallel 2 --congestion reno --set-mss 1412 --window 65536 --fq-rate 1000000000'
        b: iperf3 --server --one-off --json --port 6001 --interval 0.5
        a: iperf3 --client {b} --port 6001 --json --get-server-output --interval 0.5 --time 5 --udp --bitrate 10000000 --length 1000
        b: iperf3 --server --one-off --json --port 6001 --interval 0.5
        a: iperf3 --client {b} --port 6001 --json --get-server-output --interval 0.5 --bytes 10000000
        "#);
    }

    #[test]
    fn what_only_the_simulator_can_do_is_refused_with_its_line() {
        let told = [
            "source = \"web\"\nusers = 1\nmean_object = \"10kB\"\nthink = \"1s\"\nstop = \"9s\"",
            "source = \"chunks\"\nchunk = \"1MB\"\nevery = \"1s\"\ncount = 3",
            "source = \"bulk\"\nbytes = \"1MB\"\nagain = true\nstop = \"9s\"",
            "source = \"bulk\"\nstop = \"9.5s\"",
            "source = \"bulk\"\nstop = \"9s\"\nstreams = 129",
            "source = \"bulk\"\nstop = \"9s\"\ndupthresh = 9",
            "source = \"bulk\"\nstop = \"9s\"\nlaw = { law = \"fp_aimd\", a = 6 }",
        ]
        .map(|flow| programs(flow).unwrap_err());
        insta::assert_snapshot!(told.join("\n"), @r#"
        line 6: source = "web": iperf3 is no user; `fatpath sim` can do it
        line 6: source = "chunks": iperf3 makes no pauses; `fatpath sim` can do it
        line 6: again: iperf3 sends once; `fatpath sim` can do it
        line 6: iperf3 sends for whole seconds; `fatpath sim` can do it
        line 6: streams: an iperf3 makes 128 at most; `fatpath sim` can do it
        line 6: programs cannot ask for what this flow asks of TCP; `fatpath sim` can do it
        line 6: law: its parameters come from a variant's policy in the lab; `fatpath sim` can do it
        "#);
    }
}
