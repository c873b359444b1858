// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon of our own, unloaded when it is dropped.

use crate::alone::Alone;
use crate::instance::{PIN_DIR, READY_WITHIN, RUN_DIR, TICK, fatpath, place, unload};
use crate::run::Run;
use anyhow::{Context, Result, bail};
use fatpath_api::KernelStatus;
use fatpath_kernel::{Kernel, Places};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

/// A running daemon with a policy.
pub struct Loaded {
    fatpath: PathBuf,
    daemon: Child,
}

impl Loaded {
    /// Starts `fatpath daemon` with this policy and waits until it is live.
    ///
    /// For all flows, or for those of a cgroup.
    pub fn start(run: &Run, alone: &Alone, policy: &str, cgroup: Option<&Path>) -> Result<Loaded> {
        alone.wait_until_unloaded(run)?;
        std::fs::create_dir_all(RUN_DIR).context(RUN_DIR)?;
        let file = place("policy.toml");
        std::fs::write(&file, policy)?;
        let mut command = fatpath(&run.fatpath, &["daemon"]);
        command.arg("--policy").arg(&file);
        command.arg("--flow-log").arg(place("flows.jsonl"));
        command.arg("--archive").arg(place("archive"));
        command.arg("--measure").arg(place("measure.toml"));
        if let Some(cgroup) = cgroup {
            command.arg("--cgroup").arg(cgroup);
        }
        let daemon = command.stderr(File::create(place("stderr"))?).spawn()?;
        let mut loaded = Loaded {
            fatpath: run.fatpath.clone(),
            daemon,
        };
        loaded.wait_until_ready(run)?;
        Ok(loaded)
    }

    fn wait_until_ready(&mut self, run: &Run) -> Result<()> {
        let end = Instant::now() + READY_WITHIN;
        while !place("ready").exists() {
            let ended = self.daemon.try_wait()?.is_some();
            if ended || Instant::now() > end {
                let said = std::fs::read_to_string(place("stderr")).unwrap_or_default();
                bail!("the daemon is not ready: {said}");
            }
            run.pause(TICK)?;
        }
        Ok(())
    }

    /// The daemon's.
    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// A handle on its kernel half.
    pub fn kernel(&self) -> Result<Kernel> {
        Ok(Kernel::open(Places::new(Some(PIN_DIR.into()), None)?)?)
    }

    /// What the kernel half counted so far.
    pub fn status(&self) -> Result<KernelStatus> {
        Ok(self.kernel()?.status()?)
    }
}

impl Drop for Loaded {
    /// The daemon goes first: one that is still starting would refuse the unload.
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if let Err(error) = unload(&self.fatpath) {
            eprintln!("{error:#}");
        }
        let _ = std::fs::remove_dir_all(RUN_DIR);
    }
}
