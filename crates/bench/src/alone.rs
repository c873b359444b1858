// SPDX-License-Identifier: MIT OR Apache-2.0
//! Having the host's registry of laws and its root cgroup to oneself.

use crate::run::Run;
use anyhow::{Context, Result, bail};
use fatpath_kernel::registered_laws;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::time::{Duration, Instant};

/// The kernel frees a law's name a grace period after its unload.
const GRACE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);

/// While this lives no test of the workspace loads a daemon.
pub struct Alone {
    _lock: File,
}

impl Alone {
    /// Waits for tests to end (their lock, `tests/support/mod.rs`); refuses to measure
    /// beside a fatpath that somebody else loaded.
    pub fn wait(run: &Run) -> Result<Alone> {
        let path = std::env::temp_dir().join("fatpath-tests.lock");
        let lock = File::create(&path).with_context(|| path.display().to_string())?;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            run.pause(TICK)?;
        }
        Ok(Alone { _lock: lock })
    }

    /// Waits until no law of fatpath's is registered: then none is loaded anywhere on this host.
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
