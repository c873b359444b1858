// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two programs that make a flow of a scenario: one listens where the data go, one sends. They are iperf3, or those of
//! `fatpath flow`: over fatpath's transport (`transport = "udp"`), and over the kernel's TCP where iperf3 cannot make what is sent.
//!
//! Pure. What neither can be asked for is refused with the line. Start with [`launches`].

use std::path::PathBuf;
use std::time::Duration;

use fatpath_link::headers::{TIMESTAMP_BYTES, udp_payload_rate_bps};
use thiserror::Error;

use fatpath_scenario::plan::{Family, Plan};
use fatpath_scenario::{EndSettings, Flow, ResultKind, Source, Transport};

use super::launch::{Launch, Stop};
use crate::lab_directory::LabDirectory;
use crate::program::Ready;
use crate::transported;

/// Connections of one iperf3: MAX_STREAMS of iperf.h; of `fatpath flow` as many.
const MOST_STREAMS: u32 = 128;

/// A flow that only the simulator can make.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {why}; `fatpath sim` can do it")]
pub struct OnlySimulated {
    /// Where the flow stands in the file.
    pub line: usize,
    /// What the lab cannot do.
    pub why: String,
}

/// That iperf3 can make a flow.
///
/// # Errors
/// What it cannot be asked for.
pub(super) fn check(flow: &Flow) -> Result<(), OnlySimulated> {
    let options = match (flow.transport, makes_chunks(flow)) {
        (Transport::Tcp, false) => options(flow),
        (Transport::Tcp, true) => {
            kernels_own(flow).and_then(|()| Ok(streams(flow)? + &requests(flow)?))
        }
        (Transport::Udp, _) => streams(flow),
    };
    options.map(drop).map_err(|why| OnlySimulated {
        line: flow.line,
        why,
    })
}

/// The servers of flows that iperf3 can make, then their clients.
pub(super) fn launches(flows: &[Flow], plan: &Plan) -> Vec<Launch> {
    let clients = flows.iter().filter_map(|flow| client(flow, plan));
    flows
        .iter()
        .map(|flow| server(flow, plan))
        .chain(clients)
        .collect()
}

fn server(flow: &Flow, plan: &Plan) -> Launch {
    let (words, ready) = match is_of_iperf3(flow) {
        true => iperf3_server(flow),
        false => {
            let control = control(flow, plan);
            (transported::receiver(&control), Ready::File(control))
        }
    };
    Launch {
        host: flow.to.clone(),
        words,
        peer: Some(flow.from.clone()),
        ready: Some(ready),
        result: None,
        time_limit: flow.start + flow.time_limit,
        start: flow.start,
        stop: None,
    }
}

/// `fatpath flow` makes all others.
fn is_of_iperf3(flow: &Flow) -> bool {
    flow.transport == Transport::Tcp && !makes_chunks(flow)
}

/// iperf3 makes no pauses.
fn makes_chunks(flow: &Flow) -> bool {
    matches!(flow.source, Source::Chunks { .. })
}

fn iperf3_server(flow: &Flow) -> (Vec<String>, Ready) {
    let (_, port) = flow.ports;
    let options = format!("--server --one-off --json --port {port} --interval 0.5");
    (iperf3(&options), Ready::Port(port))
}

/// Where the ends of the transport meet, in the lab's own folder.
fn control(flow: &Flow, plan: &Plan) -> PathBuf {
    let (_, port) = flow.ports;
    LabDirectory::of(&plan.lab).path(&format!("flow-{port}"))
}

fn client(flow: &Flow, plan: &Plan) -> Option<Launch> {
    let (words, result) = match is_of_iperf3(flow) {
        true => (
            later(flow.start, iperf3_client(flow, plan)?),
            ResultKind::Iperf3,
        ),
        false => {
            let words = transported::sender(flow, plan, &control(flow, plan))?;
            (words, ResultKind::Flow)
        }
    };
    Some(Launch {
        host: flow.from.clone(),
        words,
        peer: Some(flow.to.clone()),
        ready: None,
        result: Some(result),
        time_limit: flow.start + flow.time_limit,
        start: flow.start,
        stop: stop(flow),
    })
}

fn iperf3_client(flow: &Flow, plan: &Plan) -> Option<Vec<String>> {
    let family = match flow.ipv6 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    };
    let address = plan.address(&flow.to, &flow.from, family)?;
    let options = format!("--client {address} {}", options(flow).ok()?);
    Some(iperf3(&options))
}

fn iperf3(options: &str) -> Vec<String> {
    let words = std::iter::once("iperf3").chain(options.split(' '));
    words.map(str::to_owned).collect()
}

/// All programs start together: one of a later flow waits by itself.
fn later(start: Duration, words: Vec<String>) -> Vec<String> {
    match start.as_secs_f64() {
        0.0 => words,
        start_s => {
            let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let script = format!("sleep {start_s}; exec {}", quoted.join(" "));
            vec!["sh".to_owned(), "-c".to_owned(), script]
        }
    }
}

/// For the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// iperf3 ends after a time or after so many bytes: where either may be first, the lab watches the time.
fn stop(flow: &Flow) -> Option<Stop> {
    let server_port = flow.ports.1;
    let is_both = has_size(flow) && flow.transport == Transport::Tcp;
    let after = flow.lasts.filter(|_| is_both)?;
    Some(Stop {
        after: flow.start + after,
        server_port,
    })
}

/// What the client is asked for, its server's address apart.
fn options(flow: &Flow) -> Result<String, String> {
    kernels_own(flow)?;
    let (_, port) = flow.ports;
    let fixed = format!("--port {port} --json --get-server-output --interval 0.5");
    let chosen = [lasts(flow)?, source(flow)?, streams(flow)?, requests(flow)?];
    Ok(fixed + &chosen.concat())
}

/// What is asked for are options of sockets.
fn kernels_own(flow: &Flow) -> Result<(), String> {
    match flow.requests.ends == EndSettings::default() {
        true => Ok(()),
        false => Err("programs cannot ask for what this flow asks of TCP".to_owned()),
    }
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
        Source::Web { .. } => Err("source = \"web\": iperf3 does not imitate users".to_owned()),
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
        _ => Err(format!(
            "streams: {MOST_STREAMS} are the most that the lab makes of a flow"
        )),
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
    use fatpath_scenario::Scenario;

    use super::*;

    fn programs(flow: &str) -> Result<Vec<String>, String> {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n[[flow]]\n\
             from = \"a\"\nto = \"b\"\n{flow}"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let case = &scenario.cases[0];
        let plan = Plan::of(&scenario, case, "flows.jsonl".into());
        let checked = case.flows.iter().try_for_each(check);
        checked.map_err(|error| error.to_string())?;
        let launches = launches(&case.flows, &plan).into_iter();
        Ok(launches
            .map(|launch| format!("{}: {}", launch.host, launch.words.join(" ")))
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
        a: sh -c sleep 1; exec iperf3 --client 10.77.0.2 --port 6001 --json --get-server-output --interval 0.5 --time 10 --parallel 2 --congestion reno --set-mss 1412 --window 65536 --fq-rate 1000000000
        b: iperf3 --server --one-off --json --port 6001 --interval 0.5
        a: iperf3 --client 10.77.0.2 --port 6001 --json --get-server-output --interval 0.5 --time 5 --udp --bitrate 10000000 --length 1000
        b: iperf3 --server --one-off --json --port 6001 --interval 0.5
        a: iperf3 --client 10.77.0.2 --port 6001 --json --get-server-output --interval 0.5 --bytes 10000000
        "#);
    }

    #[test]
    fn chunks_over_the_kernels_tcp_are_of_fatpath_flow() {
        let chunks = "source = \"chunks\"\nchunk = \"1MB\"\nevery = \"1s\"\ncount = 3\nstart = \"1s\"\nlaw = \"cubic\"";
        let told = programs(chunks).unwrap();
        assert!(
            told[0].starts_with("b: /") && told[0].ends_with("/flow-6001"),
            "{told:?}"
        );
        let sender = told[1].split_once(" flow send ").unwrap().1;
        let options = sender
            .split(" --")
            .filter(|option| !option.starts_with("control "));
        insta::assert_snapshot!(options.collect::<Vec<_>>().join(" --"), @"10.77.0.2 --json --rtt 1000ns --interval 500000000ns --kernel 6001 --start 1000000000ns --streams 1 --chunk 1000000B --every 1000000000ns --count 3 --tcp law=cubic");
    }

    #[test]
    fn what_only_the_simulator_can_do_is_refused_with_its_line() {
        let told = [
            "source = \"web\"\nusers = 1\nmean_object = \"10kB\"\nthink = \"1s\"\nstop = \"9s\"",
            "source = \"chunks\"\nchunk = \"1MB\"\nevery = \"1s\"\ncount = 3\nlaw = { law = \"fp_aimd\", a = 6 }",
            "source = \"chunks\"\nchunk = \"1MB\"\nevery = \"1s\"\ncount = 3\nhystart = false",
            "source = \"bulk\"\nbytes = \"1MB\"\nagain = true\nstop = \"9s\"",
            "source = \"bulk\"\nstop = \"9.5s\"",
            "source = \"bulk\"\nstop = \"9s\"\nstreams = 129",
            "source = \"bulk\"\nstop = \"9s\"\ndupthresh = 9",
            "source = \"bulk\"\nstop = \"9s\"\nlaw = { law = \"fp_aimd\", a = 6 }",
        ]
        .map(|flow| programs(flow).unwrap_err());
        insta::assert_snapshot!(told.join("\n"), @r#"
        line 6: source = "web": iperf3 does not imitate users; `fatpath sim` can do it
        line 6: law: its parameters come from a variant's policy in the lab; `fatpath sim` can do it
        line 6: programs cannot ask for what this flow asks of TCP; `fatpath sim` can do it
        line 6: again: iperf3 sends once; `fatpath sim` can do it
        line 6: iperf3 sends for whole seconds; `fatpath sim` can do it
        line 6: streams: 128 are the most that the lab makes of a flow; `fatpath sim` can do it
        line 6: programs cannot ask for what this flow asks of TCP; `fatpath sim` can do it
        line 6: law: its parameters come from a variant's policy in the lab; `fatpath sim` can do it
        "#);
    }
}
