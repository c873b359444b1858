// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of processes.

use anyhow::{Context, Result};

/// What it holds now.
pub fn resident_kib(pid: u32) -> Result<u64> {
    of_status(pid, "VmRSS:")
}

/// The most that it ever held.
pub fn peak_kib(pid: u32) -> Result<u64> {
    of_status(pid, "VmHWM:")
}

fn of_status(pid: u32, field: &'static str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context(field)?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_no_less_than_what_is_held() {
        let own = std::process::id();
        let held = resident_kib(own).unwrap();
        assert!(held > 0 && peak_kib(own).unwrap() >= held);
    }
}
