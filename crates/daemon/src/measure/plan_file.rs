// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that lists the tests, and what this host's schedule is drawn from.

use crate::archive::Archive;
use anyhow::{Context, Result, bail};
use fatpath_measure::{Plan, parse};
use fatpath_policy::Refused;
use std::io::Read;
use std::path::Path;

/// Far more than thousands of tests take.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the file that lists the tests.
///
/// # Errors
/// When it cannot be read, or a [`Refused`] with every problem.
pub fn read_plan_file(file: &Path) -> Result<Plan> {
    let name = file.display();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("{name} is larger than {MAX_FILE_BYTES} bytes");
    }
    parse_plan(file, &text)
}

/// Reads the text of such a file, with what this host runs as one of a mesh.
///
/// # Errors
/// A [`Refused`] with every problem.
pub fn parse_plan(file: &Path, text: &str) -> Result<Plan> {
    let file = file.display().to_string();
    let mut plan = parse(text).map_err(|problems| Refused { file, problems })?;
    plan.join_meshes(&Archive::own_host());
    Ok(plan)
}

/// Random from host to host, and the same after each restart: phases and jitter follow from it.
pub fn host_seed() -> u64 {
    let id = std::fs::read("/etc/machine-id");
    let id = id.or_else(|_| std::fs::read("/proc/sys/kernel/random/boot_id"));
    let bytes = id.unwrap_or_default();
    // FNV-1a; the schedule mixes it further.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
