// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of the program: which `fatpath` it uses, and whether somebody pressed Ctrl-C.
//!
//! A signal only raises a flag. Whoever waits looks at it and returns an error, so that
//! daemons, namespaces and sysctls are put back by the values that own them.

use anyhow::{Context, Result, bail, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How soon a wait notices the flag.
const TICK: Duration = Duration::from_millis(100);

/// A benchmark just before this one leaves a load of about 1.
const MAX_LOAD: f64 = 1.5;

/// What every figure is given.
pub struct Run {
    /// The `fatpath` beside this program.
    pub fatpath: PathBuf,
    /// For so long the figures `load.*` open connections.
    pub load_lasts: Duration,
    interrupted: Arc<AtomicBool>,
}

impl Run {
    /// Finds `fatpath` and takes the signals over.
    pub fn new(load_lasts: Duration) -> Result<Run> {
        let here = std::env::current_exe().context("cannot tell where this program is")?;
        let fatpath = here.with_file_name("fatpath");
        ensure!(
            fatpath.exists(),
            "{} is missing: cargo build --profile dist",
            fatpath.display()
        );
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Run {
            fatpath,
            load_lasts,
            interrupted,
        })
    }

    /// An error once a signal came.
    pub fn check(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Waits, but not past a signal.
    pub fn pause(&self, wait: Duration) -> Result<()> {
        let end = Instant::now() + wait;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TICK));
        }
    }

    /// Says so when others use the machine: its figures then say less of fatpath.
    pub fn say_load(&self) -> Result<()> {
        let text = std::fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
        let load: f64 = text.split(' ').next().unwrap_or_default().parse()?;
        if load > MAX_LOAD {
            self.say(format!(
                "  the machine is busy (load {load}): measure again on a quiet one"
            ));
        }
        Ok(())
    }

    /// Progress.
    pub fn say(&self, text: impl std::fmt::Display) {
        eprintln!("{text}");
    }
}
