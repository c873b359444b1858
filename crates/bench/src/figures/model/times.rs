// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of transfers, of slow start, and of recovery after one loss.

use super::{Comparison, outcome, seconds_ns};
use crate::simulated::{MSS_BYTES, path_of, unlimited_flow};
use anyhow::{Context, Result, ensure};
use fatpath_cc::Law;
use fatpath_link::{CellSpec, LossSpec};
use fatpath_model::{Model, Path, Quantity, cardwell, recovery, slow_start, transfer};
use fatpath_sim::{Sample, Source, Spec};

/// Of the series that times are read from.
const SAMPLE_NS: u64 = 5_000_000;
const INITIAL_WINDOW_PKTS: f64 = 10.0;

pub(super) fn comparisons(model: &Model) -> Result<Vec<Comparison>> {
    match model.name {
        "cardwell" => by_cardwell(),
        "transfer" => by_transfer(),
        "recovery" => recoveries(),
        "slow-start" => slow_starts(),
        _ => Ok(Vec::new()),
    }
}

/// Bytes, loss, bottleneck, and how many transfers one after another.
type Load = (u64, f64, f64, u64);

/// Of about one loss in a transfer at most.
const FEW_LOSSES: [Load; 5] = [
    (100_000, 0.0, 100e6, 1),
    (2_000_000, 0.0, 1e9, 1),
    (20_000_000, 0.0, 100e6, 1),
    (100_000, 1e-3, 1e9, 1_000),
    (2_000_000, 1e-4, 1e9, 300),
];

/// Short ones, and with more losses.
const OTHERS: [Load; 5] = [
    (20_000, 0.0, 1e9, 1),
    (2_000_000, 1e-3, 1e9, 300),
    (20_000_000, 1e-4, 1e9, 60),
    (100_000, 1e-2, 1e9, 1_000),
    (2_000_000, 1e-2, 1e9, 100),
];

fn by_cardwell() -> Result<Vec<Comparison>> {
    transfers(&FEW_LOSSES, |path, segments, of| {
        cardwell::transfer(path, segments, of).total_s()
    })
}

fn by_transfer() -> Result<Vec<Comparison>> {
    let all: Vec<Load> = FEW_LOSSES.into_iter().chain(OTHERS).collect();
    transfers(&all, transfer::mean_s)
}

fn transfers(
    loads: &[Load],
    time_s: impl Fn(&Path, f64, &cardwell::Parameters) -> f64,
) -> Result<Vec<Comparison>> {
    let compare = |load: &Load| {
        let (bytes, loss, rate_bps, count) = *load;
        let path = Path {
            rate_bps: Some(rate_bps),
            ..Path::new(0.1, loss)
        };
        let segments = (bytes as f64 / MSS_BYTES as f64).ceil();
        let expected = time_s(&path, segments, &cardwell::Parameters::linux(path.rtt_s));
        Ok(Comparison {
            case: format!(
                "{bytes} bytes, loss of {loss:e}, {:.0} Mb/s",
                rate_bps / 1e6
            ),
            asked: vec![
                (Quantity::Loss, loss),
                (Quantity::TransferPkts, segments),
                (Quantity::LossesOfTransfer, segments * loss),
            ],
            expected,
            simulated: mean_transfer_s(&path, bytes, count, expected)?,
        })
    };
    loads.iter().map(compare).collect()
}

/// Of `count` transfers one after another, each over a connection of its own.
fn mean_transfer_s(path: &Path, bytes: u64, count: u64, about_s: f64) -> Result<f64> {
    let rate_bps = path.rate_bps.context("it has a rate")?;
    let cells = [
        CellSpec::loss(path.loss),
        CellSpec::rate(rate_bps as u64, None),
    ];
    let end_ns = seconds_ns(count as f64 * about_s * 2.0);
    let mut spec = path_of(seconds_ns(path.rtt_s), cells, end_ns);
    spec.flows = vec![unlimited_flow(Law::RENO)];
    spec.flows[0].source = Source::Bulk {
        bytes: Some(bytes),
        again: count > 1,
    };
    let completions = &outcome(&spec)?.flows[0].completions;
    ensure!(
        2 * completions.count >= count,
        "only {} transfers",
        completions.count
    );
    let mean_ns = completions.took_mean_ns().context("no transfer ended")?;
    Ok(mean_ns / 1e9)
}

/// Law, window at the loss, round-trip time.
fn recoveries() -> Result<Vec<Comparison>> {
    let law = |name: &str| Law::named(name).with_context(|| format!("no law `{name}`"));
    let cases = [
        (Law::RENO, 100, 0.1),
        (Law::RENO, 170, 0.2),
        (Law::aimd(4.0, 0.125)?, 1_000, 0.1),
        (law("scalable")?, 1_000, 0.1),
        (law("scalable")?, 8_000, 0.1),
        (law("highspeed")?, 1_000, 0.1),
        (law("highspeed")?, 8_000, 0.1),
        (law("cubic")?, 1_000, 0.1),
        (law("cubic")?, 8_000, 0.1),
        (law("cubic")?, 200, 0.02),
    ];
    let compare = |(law, window_pkts, rtt_s)| {
        let expected = recovery::recovery_s(&law, f64::from(window_pkts), rtt_s);
        let expected = expected.with_context(|| format!("{law} has no time to recover"))?;
        Ok(Comparison {
            case: format!("{law} at {window_pkts} segments and {rtt_s} s"),
            asked: vec![(Quantity::WindowPkts, f64::from(window_pkts))],
            expected,
            simulated: recovery_s(law, window_pkts, rtt_s, expected)?,
        })
    };
    cases.into_iter().map(compare).collect()
}

/// From the first reduction of the window until it is as it was.
fn recovery_s(law: Law, window_pkts: u32, rtt_s: f64, about_s: f64) -> Result<f64> {
    // Sent by the time slow start has reached the window, and then for a round trip.
    let first = 3 * u64::from(window_pkts);
    let loss = CellSpec::Loss(LossSpec::Periodic {
        every: u64::from(u32::MAX),
        first,
    });
    let start_s = 16.0 * rtt_s;
    let mut spec = path_of(
        seconds_ns(rtt_s),
        [loss],
        seconds_ns(start_s + 2.0 * about_s),
    );
    spec.flows = vec![unlimited_flow(law)];
    spec.flows[0].tcp.start.initial_ssthresh_pkts = window_pkts;
    spec.sample_every_ns = Some(SAMPLE_NS);
    let outcome = outcome(&spec)?;
    let samples = &outcome.flows[0].samples;
    ensure!(
        outcome.flows[0].congestion_events == 1,
        "more than one loss"
    );
    recovered_s(samples).context("the window did not come back")
}

fn recovered_s(samples: &[Sample]) -> Option<f64> {
    let fell = samples
        .windows(2)
        .position(|two| two[1].cwnd_pkts < two[0].cwnd_pkts)?;
    let (before, after) = (&samples[fell], &samples[fell + 1..]);
    let back = after
        .iter()
        .find(|sample| sample.cwnd_pkts >= before.cwnd_pkts)?;
    Some((back.at_ns - before.at_ns) as f64 / 1e9)
}

fn slow_starts() -> Result<Vec<Comparison>> {
    let cases = [
        (100, None),
        (1_000, None),
        (8_000, None),
        (1_000, Some(100)),
        (2_000, Some(200)),
    ];
    let compare = |(window_pkts, max_ssthresh_pkts): (u32, Option<u32>)| {
        let most = max_ssthresh_pkts.map(f64::from);
        let trips = slow_start::round_trips(INITIAL_WINDOW_PKTS, f64::from(window_pkts), most);
        Ok(Comparison {
            case: format!("to {window_pkts} segments, max_ssthresh {max_ssthresh_pkts:?}"),
            asked: vec![(Quantity::WindowPkts, f64::from(window_pkts))],
            expected: trips,
            simulated: trips_to(window_pkts, max_ssthresh_pkts, trips)?,
        })
    };
    cases.into_iter().map(compare).collect()
}

/// Round trips from the establishment until the window is there.
fn trips_to(window_pkts: u32, max_ssthresh_pkts: Option<u32>, about: f64) -> Result<f64> {
    let rtt_s = 0.1;
    let mut spec: Spec = path_of(
        seconds_ns(rtt_s),
        [],
        seconds_ns((2.0 * about + 4.0) * rtt_s),
    );
    let mut flow = unlimited_flow(Law::RENO);
    flow.tcp.start.initial_ssthresh_pkts = window_pkts;
    flow.tcp.start.max_ssthresh_pkts = max_ssthresh_pkts.unwrap_or(0);
    spec.flows = vec![flow];
    spec.sample_every_ns = Some(SAMPLE_NS);
    let flow = &outcome(&spec)?.flows[0];
    let established_ns = flow.established_ns.context("it was never established")?;
    let there = flow
        .samples
        .iter()
        .find(|sample| sample.cwnd_pkts >= window_pkts);
    let there = there.context("the window was never there")?;
    Ok((there.at_ns - established_ns) as f64 / 1e9 / rtt_s)
}
