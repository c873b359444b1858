// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the simulator is from the kernel: `fatpath lab compare` of experiments/agreement.toml, every law
//! over 1 Gb/s and 100 ms, clean and with random loss. A case's error is that of the medians of its runs,
//! each of which is to be trusted: one that is not is made again.

use crate::compared::Comparison;
use crate::figure::{Better, Figure, Summary};

const LAWS: Comparison = Comparison {
    scenario: "agreement.toml",
    repeats: 5,
};
const CHUNKS: Comparison = Comparison {
    scenario: "mpi/patterns-chunks.toml",
    ..LAWS
};
const ONE: Comparison = Comparison {
    scenario: "mpi/patterns-one.toml",
    repeats: 10,
};

/// Without random loss.
pub const CLEAN: Figure = Figure {
    name: "law.kernel_sim_error.clean",
    what: "goodput of every law, simulator against kernel, 1 Gb/s x 100 ms: worst error of the medians",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.10),
    summary: Summary::Worst,
    measure: |run| LAWS.errors(run, |case| case.is_clean()),
};

/// With it.
pub const LOSSY: Figure = Figure {
    name: "law.kernel_sim_error.lossy",
    what: "the same with one segment lost in 100,000, in 10,000 and in 1,000",
    unit: "ratio - 1",
    better: Better::Lower,
    goal: Some(0.20),
    summary: Summary::Worst,
    measure: |run| LAWS.errors(run, |case| !case.is_clean()),
};

/// Of these, CUBIC, which hosts without a policy have: clean and with loss.
pub const CUBIC: Figure = Figure {
    name: "law.kernel_sim_error.cubic",
    what: "the same of fp_cubic, clean and with loss",
    measure: |run| LAWS.errors(run, |case| case.variant == "fp_cubic"),
    ..LOSSY
};

/// Of the patterns of MPI programs, without MPI, the times of transfers: the mean of the chunks, and the 20 MB, which take longest.
pub const PATTERNS: Figure = Figure {
    name: "mpi.patterns_sim_error",
    what: "time of a transfer after a pause, and after an all-to-all, by default and with a policy, simulator against kernel: worst error of the medians",
    measure: |run| {
        let chunks = CHUNKS.times(run, |side| side.transfer_mean_s)?;
        let one = ONE.times(run, |side| side.transfer_p99_s)?;
        Ok([chunks, one].concat())
    },
    ..LOSSY
};
