// SPDX-License-Identifier: MIT OR Apache-2.0
//! experiments/scalable/synchronised.toml, its first minute: flows of Scalable TCP lose together more than Reno's do.

use super::{experiments, mapped};
use fatpath_scenario::Scenario;
use fatpath_sim::{Outcome, run};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

const BULK_FLOWS: usize = 8;
const BEGIN_NS: u64 = 20_000_000_000;
/// Two round trips: a reduction so long after the one before belongs to another episode.
const GAP_NS: u64 = 200_000_000;

fn outcome(text: &str, law: &str) -> Outcome {
    let scenario = Scenario::parse("synchronised.toml", text).unwrap();
    let spec = mapped(&scenario, &format!("default.{law}.queue=0.1bdp"))
        .unwrap()
        .spec;
    run(&spec, |_| ControlFlow::Continue(())).unwrap()
}

/// Which bulk flows reduced their threshold, by time.
fn reductions(outcome: &Outcome) -> BTreeMap<u64, BTreeSet<usize>> {
    let mut at_ns: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (number, flow) in outcome.flows[..BULK_FLOWS].iter().enumerate() {
        let pairs = flow.samples.windows(2);
        let changed = pairs.filter(|pair| pair[0].ssthresh_pkts != pair[1].ssthresh_pkts);
        for pair in changed.filter(|pair| pair[1].at_ns >= BEGIN_NS) {
            at_ns.entry(pair[1].at_ns).or_default().insert(number);
        }
    }
    at_ns
}

/// Episodes of loss, and the mean share of the flows that lost in one.
fn episodes(outcome: &Outcome) -> (usize, f64) {
    let mut episodes: Vec<BTreeSet<usize>> = Vec::new();
    let mut last_ns = 0;
    for (at_ns, flows) in reductions(outcome) {
        match episodes.last_mut() {
            Some(episode) if at_ns - last_ns < GAP_NS => episode.extend(flows),
            _ => episodes.push(flows),
        }
        last_ns = at_ns;
    }
    let lost: usize = episodes.iter().map(BTreeSet::len).sum();
    let count = episodes.len();
    (count, lost as f64 / (count * BULK_FLOWS) as f64)
}

#[test]
fn flows_of_scalable_tcp_lose_together_more_than_renos() {
    let file = experiments().join("scalable/synchronised.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let short = text.replace("stop = \"400s\"", "stop = \"50s\"");
    assert_ne!(short, text);
    let [reno, scalable] = ["fp_reno", "fp_scalable"].map(|law| episodes(&outcome(&short, law)));
    assert!(
        reno.0 >= 3 && scalable.0 > 2 * reno.0,
        "{reno:?} {scalable:?}"
    );
    assert!(scalable.1 > reno.1, "{reno:?} {scalable:?}");
}
