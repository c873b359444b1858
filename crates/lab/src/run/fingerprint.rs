// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one experiment from another: all that decides what a run gives, and the program that made it.
//!
//! It reads policies and this program's own file. Start with [`fingerprint`].

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::results::files::WriteError;
use crate::scenario::Scenario;

/// This program: its version, and length and date of its file, which tell a law that was changed.
pub(super) fn build() -> String {
    // The link leads to the file even when it was removed since.
    let file = fs::metadata("/proc/self/exe");
    let file = file.map_or((0, 0), |file| (file.len(), file.mtime()));
    format!("{} {} {}", env!("CARGO_PKG_VERSION"), file.0, file.1)
}

/// Of the cases with everything resolved and their policies. More repeats, another order, another
/// comment or another display leave it as it is.
pub(super) fn fingerprint(scenario: &Scenario) -> Result<String, WriteError> {
    let mut hash = Fnv1a(0xcbf2_9ce4_8422_2325);
    // A path that is not UTF-8 is no JSON.
    serde_json::to_writer(&mut hash, &(&scenario.cases, &scenario.experiment))
        .map_err(|error| WriteError::at(Path::new(&scenario.name))(error.into()))?;
    let mut policies: Vec<&PathBuf> = scenario
        .cases
        .iter()
        .flat_map(|case| &case.policy)
        .collect();
    policies.dedup();
    for policy in policies {
        let text = fs::read(policy).map_err(WriteError::at(policy))?;
        hash.add(&text);
    }
    Ok(format!("{:016x}", hash.0))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine and with every compiler.
struct Fnv1a(u64);

impl Fnv1a {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Write for Fnv1a {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_decides_the_result_of_a_run_tells_experiments_apart() {
        let of = |text: &str| {
            let text = format!(
                "name = \"x\"\n[hosts.a]\n[hosts.b]\n[[program]]\nhost = \"a\"\nrun = \"x\"\n{text}"
            );
            fingerprint(&Scenario::parse("x.toml", &text).unwrap()).unwrap()
        };
        let plain = of("");
        for same in [
            "lasts = \"3s\"",
            "[experiment]\nrepeats = 9\norder = \"random\"",
        ] {
            assert_eq!(of(same), plain, "{same}");
        }
        for other in [
            "time_limit = \"3s\"",
            "[experiment]\nwarm_up = 1",
            "[experiment]\nobserve = true",
            "[experiment]\nlateness_limit = \"none\"",
            "[links.wan]\nbetween = [\"a\", \"b\"]\ndelay = \"1ns\"",
        ] {
            assert_ne!(of(other), plain, "{other}");
        }
    }
}
