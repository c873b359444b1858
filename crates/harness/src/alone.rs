// SPDX-License-Identifier: MIT OR Apache-2.0
//! Having the host to oneself: the registry of laws, the root cgroup, the processor. And
//! finding it clean: what a killed run left behind is taken away.

use crate::instance::take_away_leftovers;
use crate::run::Run;
use anyhow::{Context, Result, bail};
use fatpath_emulator::remove_namespace;
use fatpath_kernel::registered_laws;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::time::{Duration, Instant};

/// The kernel frees a law's name a grace period after its unload.
const GRACE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);

/// Of every emulated network here, so that the next run finds what a killed one left.
pub const NETWORK: &str = "fp-bench";

/// While this lives no test of the workspace loads a daemon.
pub struct Alone {
    _lock: File,
}

impl Alone {
    /// Waits for tests to end: the lock is theirs (`tests/support/mod.rs`).
    pub fn wait(run: &Run) -> Result<Alone> {
        let path = std::env::temp_dir().join("fatpath-tests.lock");
        let lock = File::create(&path).with_context(|| path.display().to_string())?;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            run.pause(TICK)?;
        }
        take_away_leftovers(run)?;
        for host in ["client", "server"] {
            remove_namespace(&format!("{NETWORK}-{host}"))?;
        }
        Ok(Alone { _lock: lock })
    }

    /// Waits until no law of fatpath's is registered: then none is loaded anywhere on this
    /// host. Refuses to measure beside one that somebody else loaded.
    pub fn wait_until_unloaded(&self, run: &Run) -> Result<()> {
        let end = Instant::now() + GRACE;
        while registered_laws()?.iter().any(|law| law.starts_with("fp_")) {
            if Instant::now() > end {
                bail!("a fatpath is loaded on this host: run `fatpath unload` first");
            }
            run.pause(TICK)?;
        }
        Ok(())
    }
}
