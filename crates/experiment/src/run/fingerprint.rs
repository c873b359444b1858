// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one experiment from another: all that decides what a run gives, and the program that made it.
//!
//! It reads policies and this program's own file. Start with [`fingerprint`].

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

use object::Object;
use object::read::{File as Elf, ReadCache};
use serde::Serialize;

use fatpath_scenario::Scenario;

use crate::results::files::WriteError;

/// The file of this program. The link leads to it even when it was removed since.
const PROGRAM: &str = "/proc/self/exe";

/// This program: its version, and what tells a law that was changed. That is the same for every copy of the file,
/// so that parts of an experiment may be made on several machines.
pub(super) fn build() -> &'static str {
    static BUILD: LazyLock<String> = LazyLock::new(|| {
        let file = build_id().unwrap_or_else(length_and_date);
        format!("{} {file}", env!("CARGO_PKG_VERSION"))
    });
    &BUILD
}

/// The hash that the linker made of the whole program, if it makes any.
fn build_id() -> Option<String> {
    let file = ReadCache::new(File::open(PROGRAM).ok()?);
    let elf = Elf::parse(&file).ok()?;
    let id = elf.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn length_and_date() -> String {
    let file = fs::metadata(PROGRAM);
    let (length, date) = file.map_or((0, 0), |file| (file.len(), file.mtime()));
    format!("{length} {date}")
}

/// Of the cases with everything resolved and the content of their policies. More repeats, another order, another
/// comment, another display or another folder of the files leave it as it is.
pub(super) fn fingerprint(scenario: &Scenario) -> Result<String, WriteError> {
    let mut hash = Fnv1a(0xcbf2_9ce4_8422_2325);
    let mut policies: HashMap<&Path, Vec<u8>> = HashMap::new();
    hash.add_json(&scenario.experiment);
    for case in &scenario.cases {
        let mut without_policy = case.clone();
        without_policy.policy = None;
        hash.add_json(&without_policy);
        if let Some(file) = case.policy.as_deref() {
            if !policies.contains_key(file) {
                policies.insert(file, fs::read(file).map_err(WriteError::at(file))?);
            }
            hash.add_json(&policies[file]);
        }
    }
    Ok(format!("{:016x}", hash.0))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine and with every compiler.
struct Fnv1a(u64);

impl Fnv1a {
    fn add_json(&mut self, value: &impl Serialize) {
        serde_json::to_writer(self, value).expect("plain values are JSON");
    }

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
            "[experiment]\nemulator_apart = true",
            "[links.wan]\nbetween = [\"a\", \"b\"]\ndelay = \"1ns\"",
        ] {
            assert_ne!(of(other), plain, "{other}");
        }
    }
    #[test]
    fn a_policy_counts_by_its_content_wherever_it_lies() {
        let folder = std::env::temp_dir().join(format!("fatpath-policies-{}", std::process::id()));
        let of = |part: &str, window: u32| {
            let part = folder.join(part);
            fs::create_dir_all(&part).unwrap();
            let policy = format!("[[rule]]\ninitial_window = {window}\n");
            fs::write(part.join("p.toml"), policy).unwrap();
            let text = "name = \"x\"\n[hosts.a]\n[[variant]]\nname = \"v\"\npolicy = \"p.toml\"\n";
            fs::write(part.join("x.toml"), text).unwrap();
            fingerprint(&crate::load::load(&part.join("x.toml")).unwrap()).unwrap()
        };
        let (one, copied, other) = (of("one", 10), of("copied", 10), of("other", 11));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(one, copied);
        assert_ne!(one, other);
    }

    #[test]
    fn a_copy_of_the_program_is_the_same_build() {
        // The linkers of Debian and Ubuntu make the hash; by it alone copies are known.
        let id = build_id().unwrap();
        assert!(id.len() >= 16, "{id}");
        assert!(build().ends_with(&id));
    }
}
