// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undoing everything, through the daemon when one runs, else from what it left.

use crate::instance::Lock;
use crate::{Instance, client, token_file};
use anyhow::{Context, Result, ensure};
use fatpath_api::{UnloadReport, endpoint};
use fatpath_host::{Host, PutBack};
use fatpath_kernel::{Kernel, KernelError, Unloaded, unregister_unseen_laws};
use std::time::{Duration, Instant};

/// A daemon that has the lock and does not answer yet is starting: for half a second, in an emulated
/// machine for many.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Removes every program, map, pin, law, route metric and sysctl change of the instance.
///
/// # Errors
/// When something cannot be removed, or a daemon has the lock and does not answer.
pub fn unload(instance: &Instance) -> Result<UnloadReport> {
    let given_up = Instant::now() + STARTS_WITHIN;
    loop {
        if let Some(answer) = client::get::<endpoint::Unload>(&instance.socket())? {
            return Ok(answer);
        }
        match instance.try_lock()? {
            Lock::Taken(_running) => return unload_what_was_left(instance),
            Lock::HeldBy(pid) => ensure!(
                Instant::now() < given_up,
                "the daemon does not answer: kill pid {pid}, then unload again"
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Unregisters the laws that are pinned nowhere that this process sees; they are named as removed.
pub fn unregister_orphans() -> UnloadReport {
    UnloadReport {
        removed: unregister_unseen_laws(),
        ..UnloadReport::default()
    }
}

fn unload_what_was_left(instance: &Instance) -> Result<UnloadReport> {
    let _ = std::fs::remove_file(token_file(&instance.run_dir));
    let host = Host::open(&instance.run_dir)?;
    match Kernel::open_to_change(instance.places.clone()) {
        Ok(kernel) => take_away(&kernel, host),
        Err(KernelError::NotLoaded(_)) => put_back(host, Unloaded::default()),
        Err(error) => Err(error.into()),
    }
}

/// Kernel half first: nothing new is tuned while the host goes back.
pub(crate) fn take_away(kernel: &Kernel, host: Host) -> Result<UnloadReport> {
    let unloaded = kernel.unload().context("cannot unload the kernel half")?;
    put_back(host, unloaded)
}

fn put_back(mut host: Host, unloaded: Unloaded) -> Result<UnloadReport> {
    let mut report = UnloadReport {
        removed: unloaded.removed,
        flows_released: unloaded.walked.changed,
        ..UnloadReport::default()
    };
    for outcome in host.put_back()? {
        match outcome {
            PutBack::Restored(what) => report.put_back.push(what),
            PutBack::LeftAlone(what) => report.left_alone.push(what),
            PutBack::Failed(what) => report.failed.push(what),
        }
    }
    Ok(report)
}
