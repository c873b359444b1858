// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a child process is, and what it does between fork and exec: own session, cgroup, death with
//! its parent.
//!
//! Only system calls there: the child of a program with threads may not allocate. It starts
//! nothing; each function makes a [`Command`] or adds to it.
#![allow(
    unsafe_code,
    reason = "pre_exec is unsafe; each closure makes only async-signal-safe calls"
)]

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};

/// This very program, also when its file was removed or replaced since it was started.
pub fn this_program() -> Command {
    Command::new(this_file())
}

/// Its file.
pub fn this_file() -> PathBuf {
    // The system calls a file that is gone by another name, which is no file's.
    let file = std::env::current_exe().ok().filter(|file| file.exists());
    file.unwrap_or_else(|| "/proc/self/exe".into())
}

/// From now on no child gets a descriptor that this process inherited, such as one that holds a lock of the
/// caller's: a child gets its three standard streams alone.
///
/// # Errors
/// If /proc cannot be read.
pub fn close_inherited_on_exec() -> io::Result<()> {
    let names = fs::read_dir("/proc/self/fd")?.collect::<io::Result<Vec<_>>>()?;
    let numbers = names
        .iter()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number: &RawFd| *number > 2) {
        // SAFETY: a number that is no open descriptor any more, as that of the folder, is refused by the kernel.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}

/// The child leads a session of its own: Ctrl-C and hang-ups of the terminal do not reach it.
pub fn in_own_session(command: &mut Command) {
    // SAFETY: setsid is async-signal-safe and touches no memory.
    unsafe { command.pre_exec(|| Ok(setsid().map(drop)?)) };
}

/// The child gets `signal` when the thread that starts it ends, however that comes about.
pub fn dies_with_parent(command: &mut Command, signal: Signal) {
    let parent = rustix::process::getpid();
    // SAFETY: prctl and getppid are async-signal-safe; the closure owns plain integers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before the line above.
            if getppid() == Some(parent) {
                Ok(())
            } else {
                Err(io::ErrorKind::Interrupted.into())
            }
        })
    };
}

/// The child is in the cgroup-2 folder from its first instruction on.
///
/// # Errors
/// If there is no such cgroup, or this process may not move others into it.
pub fn in_cgroup(command: &mut Command, folder: &Path) -> io::Result<()> {
    let processes = OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.procs"))?;
    // SAFETY: one write of a constant to a file that the closure owns; "0" means the writer.
    unsafe { command.pre_exec(move || Ok(rustix::io::write(&processes, b"0").map(drop)?)) };
    Ok(())
}
