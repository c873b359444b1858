// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long processes have run, user and system together. Threads that ended count.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Of this process.
pub fn own() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Of the children of this process that were waited for, to 1/100 s.
pub fn of_children() -> Result<Duration> {
    of_children_of(std::process::id())
}

/// Of the children of another process that it waited for, and of theirs, to 1/100 s.
pub fn of_children_of(pid: u32) -> Result<Duration> {
    of_stat(&format!("/proc/{pid}/stat"), [15, 16])
}

/// Of another process, to 1/100 s.
pub fn of_process(pid: u32) -> Result<Duration> {
    of_stat(&format!("/proc/{pid}/stat"), [13, 14])
}

/// Two fields of proc_pid_stat(5), counted from 0, in USER_HZ, which is 100 on every architecture.
fn of_stat(file: &str, fields: [usize; 2]) -> Result<Duration> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    // The second field, a name in brackets, may hold spaces.
    let after_name = text.rsplit_once(") ").context("no name")?.1;
    let ticks = fields.map(|field| after_name.split(' ').nth(field - 2).map(str::parse::<u64>));
    let mut sum = 0;
    for tick in ticks {
        sum += tick.context("a field is missing")??;
    }
    Ok(Duration::from_millis(sum * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_clocks_of_a_process_agree() {
        let start = own();
        while own() - start < Duration::from_millis(200) {}
        let by_stat = of_process(std::process::id()).unwrap();
        assert!(by_stat.abs_diff(own()) < Duration::from_millis(100));
        assert!(of_children().unwrap() < Duration::from_secs(3600));
    }
}
