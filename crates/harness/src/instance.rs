// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the daemon of a benchmark keeps its files and pins. They are always the same, so that what a killed run left
//! behind is found, and taken away, by the next one.

use crate::run::Run;
use anyhow::{Result, ensure};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Its files.
pub const RUN_DIR: &str = "/run/fatpath-bench";
/// Its pins.
pub const PIN_DIR: &str = "/sys/fs/bpf/fatpath-bench";
/// A daemon is ready, or has ended, within this.
pub const READY_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks at whether it is.
pub const TICK: Duration = Duration::from_millis(20);

/// Unloads what a killed run left. Its daemon answers the unload, and ends a moment later.
pub fn take_away_leftovers(run: &Run) -> Result<()> {
    unload(&run.fatpath)?;
    let end = Instant::now() + READY_WITHIN;
    while place("daemon.pid").exists() {
        ensure!(Instant::now() < end, "an old daemon does not end");
        run.pause(TICK)?;
    }
    let _ = std::fs::remove_dir_all(RUN_DIR);
    Ok(())
}

/// Ends the daemon and takes its tuning away.
pub fn unload(program: &Path) -> Result<()> {
    let output = fatpath(program, &["unload"]).output()?;
    ensure!(
        output.status.success(),
        "fatpath unload: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// In a process group of its own, so that Ctrl-C reaches this program alone, which then
/// unloads in good order.
pub fn fatpath(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command.args(["--run-dir", RUN_DIR, "--pin-dir", PIN_DIR]);
    command.process_group(0).stdin(Stdio::null());
    command
}

/// A file of that name in [`RUN_DIR`].
pub fn place(name: &str) -> PathBuf {
    Path::new(RUN_DIR).join(name)
}
