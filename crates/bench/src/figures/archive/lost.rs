// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that a writer acknowledged and that are lost or there twice, after it was killed at 200 random moments under load.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::killed_writer::{KILLS, kill_writers};
use crate::run::Run;
use anyhow::Result;
use std::process::Command;

/// A count.
pub const LOST_OR_DOUBLED: Figure = Figure {
    name: "archive.lost_or_doubled",
    what: "events lost or there twice: 200 times kill -9 under load, for 50 of them without the store",
    unit: "events",
    better: Better::Lower,
    goal: Some(0.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let outcome = kill_writers(|| {
        run.check()?;
        let mut this = Command::new(std::env::current_exe()?);
        this.arg("--write-until-killed");
        Ok(this)
    })?;
    run.say(format!("  {outcome:?} after {KILLS} kills"));
    let wrong = outcome.lost + outcome.doubled + outcome.miscounted;
    Ok(vec![wrong as f64])
}
