// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a flow that seed 004's test harness had as flags: each changes what happens as its source says.

use super::mapped;
use fatpath_scenario::Scenario;
use fatpath_sim::{FlowOutcome, Outcome, run};
use std::ops::ControlFlow;

/// 2 MB over 100 Mb/s and 20 ms, with these keys of the flow and effects of the link.
fn outcome(keys: &str, effects: &str) -> Outcome {
    let text = format!(
        "name = \"x\"\n[experiment]\nsample_every = \"1ms\"\n[hosts.a]\n[hosts.b]\n[links.wan]\n\
         between = [\"a\", \"b\"]\nrate = \"100mbit\"\ndelay = \"10ms\"\nqueue = \"10bdp\"\n{effects}\n[[flow]]\n\
         from = \"a\"\nto = \"b\"\nsource = \"bulk\"\nbytes = \"2MB\"\nlaw = \"fp_reno\"\n{keys}\n"
    );
    let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let spec = mapped(&scenario, "default.default").unwrap().spec;
    run(&spec, |_| ControlFlow::Continue(())).unwrap()
}

fn flow(keys: &str) -> FlowOutcome {
    outcome(keys, "").flows.remove(0)
}

fn counts(flow: &FlowOutcome) -> (u64, u64, u64) {
    (flow.retransmits, flow.timeouts, flow.congestion_events)
}

/// Seed 004: "configured to drop packet 20".
#[test]
fn a_segment_is_lost_on_purpose() {
    assert_eq!(counts(&flow("")), (0, 0, 0));
    assert_eq!(counts(&flow("drop = [20]")), (1, 0, 1));
    assert_eq!(flow("drop = [20, 20]").retransmits, 2);
}

/// Seed 004: in Reno-mode "multiple drops within a window result in a timeout"; NewReno and FACK avoid it.
#[test]
fn three_losses_are_a_timeout_in_reno_alone() {
    let with = |detection: &str| {
        flow(&format!(
            "detection = \"{detection}\"\ndrop = [100, 110, 120]"
        ))
    };
    assert!(with("reno").timeouts > 0);
    for detection in ["newreno", "fack", "sack", "rack"] {
        assert_eq!(counts(&with(detection)), (3, 0, 1), "{detection}");
    }
    let took_ns = |detection| with(detection).samples.len();
    assert!(took_ns("newreno") > took_ns("fack"), "a hole a round trip");
}

/// Samples whose window is above a threshold that a loss has set.
fn samples_above_threshold(flow: &FlowOutcome) -> usize {
    let samples = flow
        .samples
        .iter()
        .filter(|sample| (1..1000).contains(&sample.ssthresh_pkts));
    let above = samples
        .take(19)
        .filter(|sample| sample.cwnd_pkts > sample.ssthresh_pkts + 1);
    above.count()
}

#[test]
fn rampdown_takes_a_round_trip_and_at_once_none() {
    let with = |reduction: &str| {
        flow(&format!(
            "detection = \"fack\"\nreduction = \"{reduction}\"\ndrop = [200]"
        ))
    };
    assert!(samples_above_threshold(&with("rampdown")) >= 12);
    assert!(samples_above_threshold(&with("at_once")) <= 3);
}

/// RFC 3465: where acknowledgements are counted, delayed ones slow the growth down.
#[test]
fn growth_by_acks_suffers_from_delayed_acks() {
    let cwnd_after_ms = |growth: &str, ms: usize| {
        let keys = format!("delayed_acks = \"on\"\ngrowth = \"{growth}\"");
        flow(&keys).samples[ms].cwnd_pkts
    };
    let [segments, acks, abc] = ["segments", "acks", "abc"].map(|growth| cwnd_after_ms(growth, 90));
    assert!(
        f64::from(acks) < 0.7 * f64::from(segments),
        "{acks} {segments}"
    );
    assert_eq!(
        abc, segments,
        "two segments an acknowledgement are in bounds"
    );
}

/// Where acknowledgements are lost, more blocks tell again what the lost ones told.
#[test]
fn more_sack_blocks_save_retransmissions_where_acks_are_lost() {
    let lost: Vec<_> = (100..160).step_by(2).collect();
    let retransmits = |blocks: u8| {
        let keys = format!("sack_blocks = {blocks}\ndetection = \"sack\"\ndrop = {lost:?}");
        outcome(&keys, "backward.loss = \"20%\"").flows[0].retransmits
    };
    let of = [1, 3, 16].map(retransmits);
    assert!(of.is_sorted_by(|one, next| one > next), "{of:?}");
}

/// A flow paced at half of the bottleneck's rate makes no queue, segment by segment; a quantum of 10 ms is 42 segments.
#[test]
fn a_pacing_quantum_leaves_together() {
    let peak_bytes = |keys: &str| {
        let keys = format!("pacing_rate = \"50mbit\"\n{keys}");
        outcome(&keys, "").links[0][0].peak_queue_bytes
    };
    let (single, together) = (peak_bytes(""), peak_bytes("pacing_quantum = \"10ms\""));
    assert!(single < 15 * 1500, "{single}");
    assert!(together > 35 * 1500, "{together}");
}

/// A first window of forty stands in the queue; opened by two for an acknowledgement, little of it does.
#[test]
fn a_burst_is_capped() {
    let peak_bytes = |keys: &str| outcome(keys, "").links[0][0].peak_queue_bytes;
    let window = "cwnd_clamp = 40\ninitial_window = 40\ninitial_ssthresh = 40";
    let free = peak_bytes(window);
    let capped = peak_bytes(&format!("{window}\nmax_burst = 2"));
    assert!(free > 35 * 1500, "{free}");
    assert!(capped < 12 * 1500, "{capped}");
}
