// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mean rates of long flows under loss, in segments a round trip.

use super::{Comparison, outcome, seconds_ns};
use crate::simulated::{self, MSS_BYTES, path_of};
use anyhow::{Context, Result};
use fatpath_cc::Law;
use fatpath_link::{CellSpec, LossSpec};
use fatpath_model::{Losses, Model, Path, Quantity};
use fatpath_model::{aimd, bbr, cubic, highspeed, mathis, pftk, recovery, scalable, streams, tfrc};
use fatpath_sim::{FlowSpec, Outcome, Spec};

/// Losses that one simulation has, so that the mean of random ones is within 2 or 3 %.
const RANDOM_LOSSES: f64 = 1_500.0;
/// Cycles of regular losses.
const CYCLES: f64 = 40.0;
/// Left out at the beginning, as a share of the time.
const BEGINNING: f64 = 0.2;

/// A law under loss on a path.
struct Case {
    law: Law,
    path: Path,
    losses: Losses,
    flows: u32,
    /// What the model expects, of all flows together.
    window_pkts: f64,
}

pub(super) fn comparisons(model: &Model) -> Result<Vec<Comparison>> {
    let cases = cases(model)?;
    cases.iter().map(compare).collect()
}

fn cases(model: &Model) -> Result<Vec<Case>> {
    match model.name {
        "mathis" => reno(Losses::Regular, &[1e-4, 1e-3, 5e-3], |p| {
            mathis::window_pkts(mathis::C_REGULAR, p.loss)
        }),
        "mathis-random" => reno(Losses::Random, &[1e-4, 1e-3, 5e-3], |p| {
            mathis::window_pkts(mathis::C_RANDOM, p.loss)
        }),
        "mathis-delack" => counting_acks(),
        "pftk" => padhye(),
        "tfrc" => reno(Losses::Random, &[1e-4, 1e-3, 1e-2], |p| {
            tfrc::window_pkts(p.loss)
        }),
        "aimd" => aimd_cases(Losses::Regular, aimd::regular_pkts),
        "aimd-random" => aimd_cases(Losses::Random, aimd::random_pkts),
        "scalable" => scalable_cases(
            &[(0.01, 0.125), (0.02, 0.25), (0.04, 0.5)],
            scalable::window_pkts,
        ),
        "scalable-first" => {
            scalable_cases(&[(0.005, 0.063), (0.01, 0.125)], scalable::first_term_pkts)
        }
        "highspeed" => highspeed_cases(),
        "cubic" => cubic_cases(),
        "bbr" => bbr_cases(),
        "streams" => stream_cases(),
        _ => Ok(Vec::new()),
    }
}

fn law(name: &str) -> Result<Law> {
    Law::named(name).with_context(|| format!("no law `{name}`"))
}

fn case(law: Law, losses: Losses, path: Path, window_pkts: f64) -> Case {
    Case {
        law,
        path,
        losses,
        flows: 1,
        window_pkts,
    }
}

fn reno(losses: Losses, rates: &[f64], window_of: fn(&Path) -> f64) -> Result<Vec<Case>> {
    let paths = rates.iter().map(|loss| Path::new(0.1, *loss));
    Ok(paths
        .map(|path| case(Law::RENO, losses, path, window_of(&path)))
        .collect())
}

/// Half a segment a round trip is how TCP grows that counts delayed ACKs.
fn counting_acks() -> Result<Vec<Case>> {
    let law = Law::aimd(0.5, 0.5)?;
    let of = |loss| {
        let window_pkts = mathis::window_pkts(mathis::C_REGULAR_DELAYED_ACK, loss);
        case(law, Losses::Regular, Path::new(0.1, loss), window_pkts)
    };
    Ok([1e-4, 1e-3].map(of).into())
}

fn padhye() -> Result<Vec<Case>> {
    let points = [
        (0.1, 1e-4, None),
        (0.1, 1e-3, None),
        (0.1, 1e-2, None),
        (0.1, 3e-2, None),
        (0.3, 1e-2, None),
        (0.1, 1e-4, Some(50.0)),
        (0.1, 1e-3, Some(20.0)),
    ];
    let of = |(rtt_s, loss, max_window_pkts)| {
        let path = Path {
            max_window_pkts,
            ..Path::new(rtt_s, loss)
        };
        let window_pkts = pftk::window_pkts(&path, &pftk::Parameters::linux(rtt_s));
        case(Law::RENO, Losses::Random, path, window_pkts)
    };
    Ok(points.map(of).into())
}

fn aimd_cases(losses: Losses, window_of: fn(f64, f64, f64) -> f64) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (a, b) in [(4.0, 0.125), (6.0, 0.3), (10.0, 0.31), (1.0, 0.75)] {
        for loss in [1e-4, 1e-3] {
            let path = Path::new(0.1, loss);
            cases.push(case(Law::aimd(a, b)?, losses, path, window_of(a, b, loss)));
        }
    }
    Ok(cases)
}

fn scalable_cases(
    parameters: &[(f64, f64)],
    window_of: fn(f64, f64, f64) -> f64,
) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (a, b) in parameters {
        let law = law("scalable")?.with_all(&[("a", *a), ("b", *b)])?;
        for losses in [Losses::Regular, Losses::Random] {
            for loss in [5e-5, 5e-4] {
                let window_pkts = window_of(*a, *b, loss);
                cases.push(case(law, losses, Path::new(0.1, loss), window_pkts));
            }
        }
    }
    Ok(cases)
}

fn highspeed_cases() -> Result<Vec<Case>> {
    let law = law("highspeed")?;
    let of = |loss| {
        let window_pkts = highspeed::window_pkts(&law, loss);
        case(law, Losses::Regular, Path::new(0.1, loss), window_pkts)
    };
    Ok([1e-5, 1e-4, 1e-3].map(of).into())
}

fn cubic_cases() -> Result<Vec<Case>> {
    let law = law("cubic")?;
    let of = |(rtt_s, loss)| {
        let window_pkts = cubic::window_pkts(0.4, 0.7, rtt_s, loss);
        case(law, Losses::Regular, Path::new(rtt_s, loss), window_pkts)
    };
    Ok([
        (0.1, 1e-3),
        (0.1, 1e-4),
        (0.1, 1e-5),
        (0.02, 1e-4),
        (0.3, 1e-4),
    ]
    .map(of)
    .into())
}

fn bbr_cases() -> Result<Vec<Case>> {
    let law = law("bbr")?;
    let mut cases = Vec::new();
    for loss in [0.0, 1e-4, 1e-3, 1e-2] {
        let path = Path {
            rate_bps: Some(200e6),
            ..Path::new(0.1, loss)
        };
        let data_bps = path.data_rate_bps().context("it has a rate")?;
        let bound_bps =
            bbr::rate_bps(&law, data_bps, path.rtt_s, loss).context("below the threshold")?;
        cases.push(case(
            law,
            Losses::Random,
            path,
            path.window_of_rate_pkts(bound_bps),
        ));
    }
    Ok(cases)
}

fn stream_cases() -> Result<Vec<Case>> {
    let loss = 1e-3;
    let one = mathis::window_pkts(mathis::C_RANDOM, loss);
    let of = |flows| Case {
        flows,
        ..case(
            Law::RENO,
            Losses::Random,
            Path::new(0.1, loss),
            streams::together_pkts(flows, one),
        )
    };
    Ok([2, 4, 16].map(of).into())
}

fn compare(case: &Case) -> Result<Comparison> {
    let spec = spec(case);
    let outcome = outcome(&spec)?;
    let path = &case.path;
    let timeout_s = pftk::Parameters::linux(path.rtt_s).timeout_s;
    // BBR's bound has what is lost in it already.
    let arrives = if path.rate_bps.is_some() {
        1.0
    } else {
        1.0 - path.loss
    };
    let mut asked = vec![
        (Quantity::Loss, path.loss),
        (
            Quantity::WindowPkts,
            case.window_pkts / f64::from(case.flows),
        ),
        (Quantity::TimeoutRtt, timeout_s / path.rtt_s),
    ];
    let given_up = recovery::given_up(&case.law, case.window_pkts);
    asked.extend(given_up.map(|b| (Quantity::GivenUp, b)));
    Ok(Comparison {
        case: text_of(case),
        asked,
        expected: case.window_pkts * arrives,
        simulated: delivered_pkts(&outcome, &spec) * path.rtt_s / watched_s(&spec),
    })
}

fn text_of(case: &Case) -> String {
    let Path {
        rtt_s,
        loss,
        max_window_pkts,
        ..
    } = case.path;
    let most = max_window_pkts.map_or(String::new(), |most| format!(", at most {most}"));
    let flows = if case.flows > 1 {
        format!("{} x ", case.flows)
    } else {
        String::new()
    };
    format!(
        "{flows}{} {} losses of {loss:e} at {rtt_s} s{most}",
        case.law, case.losses
    )
}

fn spec(case: &Case) -> Spec {
    let mut spec = path_of(
        seconds_ns(case.path.rtt_s),
        cells(case),
        seconds_ns(seconds(case)),
    );
    spec.flows = vec![flow(case); case.flows as usize];
    spec.sample_every_ns = Some((spec.end_ns as f64 * BEGINNING) as u64);
    spec
}

fn cells(case: &Case) -> Vec<CellSpec> {
    let loss = case.path.loss;
    let every = (1.0 / loss) as u64;
    let mut cells = match case.losses {
        _ if loss == 0.0 => vec![],
        Losses::Regular => vec![CellSpec::Loss(LossSpec::Periodic {
            every,
            first: every / 2,
        })],
        _ => vec![CellSpec::loss(loss)],
    };
    let queue = case.path.rate_bps.map(|rate_bps| {
        let bdp_bytes = rate_bps * case.path.rtt_s / 8.0;
        CellSpec::rate(rate_bps as u64, Some(bdp_bytes as u64))
    });
    cells.extend(queue);
    cells
}

fn seconds(case: &Case) -> f64 {
    if case.path.rate_bps.is_some() {
        return 60.0;
    }
    let losses = match case.losses {
        Losses::Regular => CYCLES,
        _ => RANDOM_LOSSES,
    };
    losses / case.path.loss / case.window_pkts * case.path.rtt_s / (1.0 - BEGINNING)
}

fn flow(case: &Case) -> FlowSpec {
    let most = case.path.max_window_pkts;
    let mut flow = match most {
        Some(most) => simulated::flow(case.law, most as u64 * MSS_BYTES),
        None => simulated::unlimited_flow(case.law),
    };
    // No slow start beyond the mean: its losses would be others.
    if case.path.rate_bps.is_none() {
        let one_pkts = case.window_pkts / f64::from(case.flows);
        flow.tcp.start.initial_ssthresh_pkts = (one_pkts as u32).max(2);
    }
    flow
}

fn delivered_pkts(outcome: &Outcome, spec: &Spec) -> f64 {
    let beginning_ns = spec.sample_every_ns.unwrap_or(0);
    let flows = outcome.flows.iter().map(|flow| {
        let before = flow
            .samples
            .iter()
            .rfind(|sample| sample.at_ns <= beginning_ns);
        flow.delivered_bytes - before.map_or(0, |sample| sample.delivered_bytes)
    });
    flows.sum::<u64>() as f64 / MSS_BYTES as f64
}

fn watched_s(spec: &Spec) -> f64 {
    (spec.end_ns - spec.sample_every_ns.unwrap_or(0)) as f64 / 1e9
}
