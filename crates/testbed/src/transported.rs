// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of `fatpath flow` that make a flow of a scenario over the transport (`transport = "udp"`) or over the kernel's
//! TCP, and what they say.
//!
//! Pure but for the name of this program. They tell each other what to do by a file, so that nothing but the flow is on the
//! links. Start with [`receiver`], [`sender`] and [`parse`].

use std::path::Path;
use std::time::Duration;

use fatpath_experiment::measured::{self, Measured, SeenBy, Transfers};
use fatpath_flow::{Interval, Report};
use fatpath_scenario::plan::{Family, Plan};
use fatpath_scenario::{Flow, RoundTrip, Source, Transport};
use fatpath_statistics::{Statistic, quantile};

use crate::child;

/// As long as those of iperf3, and longer where there were more than so many.
const INTERVAL: Duration = Duration::from_millis(500);
const MOST_INTERVALS: u32 = 5000;

/// The command of the end that receives.
pub(crate) fn receiver(control: &Path) -> Vec<String> {
    words("receive", &["--control".to_owned(), shown(control)])
}

/// The command of the end that sends; `None`: no way leads there.
pub(crate) fn sender(flow: &Flow, plan: &Plan, control: &Path) -> Option<Vec<String>> {
    let family = match flow.ipv6 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    };
    let RoundTrip { rtt_ns, mtu_bytes } = plan.round_trip(&flow.from, &flow.to)?;
    let mut options = vec![
        plan.address(&flow.to, &flow.from, family)?,
        "--json".to_owned(),
    ];
    let mut put = |name: &str, value: String| options.extend([name.to_owned(), value]);
    put("--control", shown(control));
    put("--rtt", nanos(Duration::from_nanos(rtt_ns.max(1000))));
    let least = flow.lasts.unwrap_or_default() / MOST_INTERVALS;
    put("--interval", nanos(INTERVAL.max(least)));
    match flow.transport {
        Transport::Tcp => put("--kernel", flow.ports.1.to_string()),
        Transport::Udp => {
            let datagram_bytes = flow.most_datagram_bytes(mtu_bytes);
            put("--datagram-bytes", datagram_bytes.to_string());
        }
    }
    if !flow.start.is_zero() {
        put("--start", nanos(flow.start));
    }
    put("--streams", flow.streams.to_string());
    if let Some(lasts) = flow.lasts {
        put("--lasts", nanos(lasts));
    }
    match flow.source {
        Source::Bulk {
            bytes: Some(bytes), ..
        } => put("--bytes", format!("{bytes}B")),
        Source::Chunks {
            chunk_bytes,
            first_chunk_bytes,
            every_ns,
            count,
        } => {
            put("--chunk", format!("{chunk_bytes}B"));
            if let Some(bytes) = first_chunk_bytes {
                put("--first-chunk", format!("{bytes}B"));
            }
            put("--every", nanos(Duration::from_nanos(every_ns.max(1000))));
            if let Some(count) = count {
                put("--count", count.to_string());
            }
        }
        _ => {}
    }
    for text in flow.requests.texts() {
        put("--tcp", text);
    }
    Some(words("send", &options))
}

fn words(end: &str, options: &[String]) -> Vec<String> {
    let program = shown(&child::this_file());
    let words = [program, "flow".to_owned(), end.to_owned()];
    words.into_iter().chain(options.iter().cloned()).collect()
}

fn shown(file: &Path) -> String {
    file.to_string_lossy().into_owned()
}

fn nanos(time: Duration) -> String {
    format!("{}ns", time.as_nanos())
}

/// Reads what `fatpath flow send --json` printed.
///
/// # Errors
/// It is something else.
pub(crate) fn parse(text: &str) -> Result<Measured, serde_json::Error> {
    let report: Report = serde_json::from_str(text)?;
    let interval = |interval: &Interval| measured::Interval {
        start_s: interval.start,
        end_s: interval.end,
        rate_bps: interval.bits_per_second,
    };
    Ok(Measured {
        goodput_bps: report.goodput_bps,
        begin_s: 0.0,
        lasting_s: report.seconds,
        retransmits: Some(report.retransmits),
        udp: None,
        reverse: false,
        seen_by: SeenBy::Receiver,
        intervals: report.intervals.iter().map(interval).collect(),
        timeouts: Some(report.timeouts),
        congestion_events: report.congestion_events,
        undone_events: report.undone_events,
        transfers: (report.streams == 1)
            .then(|| transfers(&report.chunks_s))
            .flatten(),
        window: None,
    })
}

/// `None` of none.
fn transfers(seconds: &[f64]) -> Option<Transfers> {
    let share = |share| quantile(seconds.iter().copied(), share);
    Some(Transfers {
        count: seconds.len() as u64,
        mean_s: Statistic::of(seconds)?.mean,
        median_s: share(0.5)?,
        p99_s: share(0.99)?,
    })
}

#[cfg(test)]
mod tests {
    use fatpath_scenario::Scenario;

    use super::*;

    #[test]
    fn all_that_a_flow_asks_for_is_told_to_its_sender() {
        let text = "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\ndelay = \"5ms\"\nmtu = 9000\n\
                    [[flow]]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"bulk\"\nbytes = \"10MB\"\nstop = \"9s\"\n\
                    streams = 3\nlaw = { law = \"fp_aimd\", a = 6 }\ndrop = [20, 25]\nhystart = false";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        let case = &scenario.cases[0];
        let plan = Plan::of(&scenario, case, "flows.jsonl".into());
        let words = sender(&case.flows[0], &plan, Path::new("/run/meet")).unwrap();
        insta::assert_snapshot!(words[1..].join(" "), @"flow send 10.77.0.2 --json --control /run/meet --rtt 10000000ns --interval 500000000ns --datagram-bytes 8972 --streams 3 --lasts 9000000000ns --bytes 10000000B --tcp law={ law = \"fp_aimd\", a = 6 } --tcp drop=[20,25] --tcp hystart=false");
    }

    #[test]
    fn chunks_and_their_first_one_are_told_to_its_sender() {
        let text = "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n[[flow]]\nfrom = \"a\"\nto = \"b\"\n\
                    transport = \"udp\"\nsource = \"chunks\"\nchunk = \"2MB\"\nfirst_chunk = \"10kB\"\nevery = \"1s\"\ncount = 3";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        let case = &scenario.cases[0];
        let plan = Plan::of(&scenario, case, "flows.jsonl".into());
        let words = sender(&case.flows[0], &plan, Path::new("/run/meet")).unwrap();
        let told = words.join(" ");
        assert!(
            told.contains("--chunk 2000000B --first-chunk 10000B --every 1000000000ns --count 3"),
            "{told}"
        );
    }

    #[test]
    fn what_the_sender_prints_is_its_result() {
        let text = r#"{"seconds": 2.0, "bytes": 1000000, "goodput_bps": 4e6, "streams": 1, "datagram_bytes": 1452,
            "sent_pkts": 900, "retransmits": 7, "timeouts": 1, "congestion_events": 2, "undone_events": 0, "min_rtt_us": 10, "chunks_s": [1.0, 3.0],
            "intervals": [{"start": 0.0, "end": 2.0, "bits_per_second": 4e6, "retransmits": 7, "srtt_us": 12, "cwnd_pkts": 3}]}"#;
        let measured = parse(text).unwrap();
        assert_eq!((measured.goodput_bps, measured.lasting_s), (4e6, 2.0));
        assert_eq!(
            (measured.retransmits, measured.timeouts),
            (Some(7), Some(1))
        );
        let transfers = measured.transfers.unwrap();
        assert_eq!((transfers.count, transfers.mean_s), (2, 2.0));
        assert_eq!(measured.intervals[0].rate_bps, 4e6);
        assert!(parse("{}").is_err());
    }
}
