// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fp_bbr` reaches on the real kernel, over the paths of `experiments/bbr`, and what it leaves to others. A share
//! of a path is of the data that the path can carry: 1448 bytes in packets of 1500.

use crate::compared::Comparison;
use crate::figure::{Better, Figure, Summary};
use crate::lab::{self, Case, Reached};
use crate::run::Run;
use anyhow::{Context, Result, ensure};

const DATA_OF_RATE: f64 = 1448.0 / 1500.0;
const SEGMENT_BITS: f64 = 1448.0 * 8.0;
/// The token bucket of policer.toml, and how long its runs last.
const POLICER_MBPS: f64 = 300.0;
const POLICER_S: f64 = 30.0;
/// Of queues.toml: 100 Mb/s with 40 ms.
const QUEUES_BDP_BYTES: f64 = 500_000.0;

const AGREEMENT: Comparison = Comparison {
    scenario: "bbr/agreement.toml",
    repeats: lab::REPEATS,
};

/// Those of the lab.
pub const FIGURES: [Figure; 15] = [
    share("bbr.share.0", 0.85, |run| shares(run, "0%")),
    share("bbr.share.0.01", 0.85, |run| shares(run, "0.01%")),
    share("bbr.share.0.1", 0.85, |run| shares(run, "0.1%")),
    share("bbr.share.1", 0.75, |run| shares(run, "1%")),
    cubic_share("bbr.cubic_share.0.25bdp", 0.5, |run| {
        cubic_shares(run, "bbr", "0.25bdp")
    }),
    cubic_share("bbr.cubic_share.1bdp", 0.7, |run| {
        cubic_shares(run, "bbr", "1bdp")
    }),
    cubic_share("bbr.cubic_share.4bdp", 0.7, |run| {
        cubic_shares(run, "bbr", "4bdp")
    }),
    Figure {
        what: "CUBIC's goodput beside fp_bbr over that beside the kernel's bbr, 100 Mb/s x 40 ms, 0.25 bdp, in pairs",
        unit: "ratio",
        ..share("bbr.cubic_share_over_version_1", 1.0, cubic_over_version_1)
    },
    Figure {
        what: "Jain's index of four flows of fp_bbr, 100 Mb/s x 40 ms, 1 bdp, from 20 s to 60 s",
        unit: "index",
        ..share("bbr.jain", 0.95, jain)
    },
    Figure {
        what: "queue that fp_bbr alone does not exceed 95 % of the time, 100 Mb/s x 40 ms, 4 bdp",
        unit: "bdp",
        ..at_most("bbr.queue_bdp_p95", 0.3, queue_bdp)
    },
    Figure {
        what: "segments that fp_bbr retransmits behind a policer of 300 Mb/s and 45 kB, of all that it sends",
        ..at_most("bbr.policer_retransmits", 0.03, policer_retransmits)
    },
    Figure {
        what: "goodput of fp_bbr behind it, over the policer's rate",
        ..share("bbr.policer_share", 0.8, policer_share)
    },
    Figure {
        what: "goodput of fp_bbr over that of the kernel's CUBIC with the same buffers, 5 Gb/s x 50 ms, in pairs",
        unit: "ratio",
        ..share("bbr.share_5g_over_cubic", 0.85, over_cubic)
    },
    Figure {
        summary: Summary::Worst,
        unit: "ratio - 1",
        what: "goodput of fp_bbr, simulator against kernel, 100, 300, 1000 Mb/s x 100 ms: worst error of the medians",
        ..at_most("bbr.kernel_sim_error.clean", 0.1, |run| {
            AGREEMENT.errors(run, |case| case.is_clean())
        })
    },
    Figure {
        summary: Summary::Worst,
        unit: "ratio - 1",
        what: "the same with 0.01, 0.1 and 1 % of random loss",
        ..at_most("bbr.kernel_sim_error.lossy", 0.2, |run| {
            AGREEMENT.errors(run, |case| !case.is_clean())
        })
    },
];

type Measure = fn(&Run) -> Result<Vec<f64>>;

const fn share(name: &'static str, goal: f64, measure: Measure) -> Figure {
    Figure {
        name,
        what: "goodput of fp_bbr over 1 Gb/s x 100 ms, 15 s from the start, of the path's; loss in % at the end",
        unit: "share",
        better: Better::Higher,
        goal: Some(goal),
        summary: Summary::Median,
        measure,
    }
}

const fn cubic_share(name: &'static str, goal: f64, measure: Measure) -> Figure {
    Figure {
        what: "CUBIC's goodput beside one flow of fp_bbr, 100 Mb/s x 40 ms, over its half; the queue at the end",
        ..share(name, goal, measure)
    }
}

const fn at_most(name: &'static str, goal: f64, measure: Measure) -> Figure {
    Figure {
        better: Better::Lower,
        ..share(name, goal, measure)
    }
}

/// A figure of each run of a case.
fn each(run: &Run, case: Case, figure: impl Fn(&Reached) -> Result<f64>) -> Result<Vec<f64>> {
    lab::runs(run, case)?.iter().map(figure).collect()
}

fn shares(run: &Run, loss: &str) -> Result<Vec<f64>> {
    let case = Case::of("bbr/random-loss.toml", "bbr").vary("loss", loss);
    each(run, case, |reached| {
        Ok(reached.goodput_mbps / (reached.bottleneck_mbps * DATA_OF_RATE))
    })
}

fn cubic_shares(run: &Run, variant: &str, queue: &str) -> Result<Vec<f64>> {
    let case = Case::of("bbr/beside.toml", variant).path("cubic-1-1");
    each(run, case.vary("queue", queue), |reached| {
        let [_, cubic_mbps] = reached.programs_mbps[..] else {
            anyhow::bail!("{} programs of two", reached.programs_mbps.len())
        };
        Ok(cubic_mbps / (reached.bottleneck_mbps * DATA_OF_RATE / 2.0))
    })
}

fn cubic_over_version_1(run: &Run) -> Result<Vec<f64>> {
    let [ours, first] = ["bbr", "version-1"].map(|law| cubic_shares(run, law, "0.25bdp"));
    Ok(pairs(ours?, first?))
}

fn pairs(over: Vec<f64>, under: Vec<f64>) -> Vec<f64> {
    over.iter().zip(under).map(|(a, b)| a / b).collect()
}

fn jain(run: &Run) -> Result<Vec<f64>> {
    each(run, Case::of("bbr/fairness.toml", "bbr"), |reached| {
        let rates = &reached.programs_mbps;
        ensure!(rates.len() == 4, "{} flows of four", rates.len());
        Ok(jains_index(rates))
    })
}

/// 1 when all are equal.
fn jains_index(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

fn queue_bdp(run: &Run) -> Result<Vec<f64>> {
    let case = Case::of("bbr/queues.toml", "bbr").vary("queue", "4bdp");
    each(run, case, |reached| {
        let bytes = reached.p95_queue_bytes.context("no observation")?;
        Ok(bytes as f64 / QUEUES_BDP_BYTES)
    })
}

fn behind_policer(run: &Run, figure: impl Fn(&Reached) -> f64) -> Result<Vec<f64>> {
    let case = Case::of("bbr/policer.toml", "bbr").vary("burst", "45kB");
    each(run, case, |reached| Ok(figure(reached)))
}

fn policer_share(run: &Run) -> Result<Vec<f64>> {
    behind_policer(run, |reached| {
        reached.goodput_mbps / (POLICER_MBPS * DATA_OF_RATE)
    })
}

fn policer_retransmits(run: &Run) -> Result<Vec<f64>> {
    behind_policer(run, |reached| {
        let delivered = reached.goodput_mbps * 1e6 * POLICER_S / SEGMENT_BITS;
        let resent = reached.retransmits as f64;
        resent / (delivered + resent)
    })
}

fn over_cubic(run: &Run) -> Result<Vec<f64>> {
    let goodputs = |variant| {
        let case = Case::of("bbr/five-gigabit.toml", variant);
        each(run, case, |reached| Ok(reached.goodput_mbps))
    };
    Ok(pairs(goodputs("bbr")?, goodputs("cubic")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_that_of_the_book() {
        assert_eq!(jains_index(&[5.0; 4]), 1.0);
        assert_eq!(jains_index(&[1.0, 0.0, 0.0, 0.0]), 0.25);
    }
}
