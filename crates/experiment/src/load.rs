// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a scenario file, and the policies and traces that it names, relative to its own folder.
//!
//! Start with [`load`].

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use fatpath_scenario::{Files, NamedText, Refused, Scenario};

/// Why a scenario file cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// The scenario file.
        file: String,
        /// The system's reason.
        error: io::Error,
    },
    /// What it says is wrong.
    #[error("{0}")]
    Wrong(#[from] Refused),
}

/// Reads and checks a file. Policy paths become relative to the file's folder, and must exist.
///
/// # Errors
/// See [`LoadError`].
pub fn load(file: &Path) -> Result<Scenario, LoadError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| LoadError::Read {
        file: name.clone(),
        error,
    })?;
    let folder = Folder(file.parent().unwrap_or(Path::new(".")).to_owned());
    Ok(Scenario::of_text(&name, &text, &folder)?)
}

/// The folder of a scenario file.
struct Folder(PathBuf);

impl Files for Folder {
    fn existing(&self, name: &str) -> Result<PathBuf, String> {
        let found = self.0.join(name);
        found
            .canonicalize()
            .map_err(|error| format!("{}: {error}", found.display()))
    }

    fn text(&self, name: &str, most_bytes: u64) -> Result<NamedText, String> {
        let file = self.0.join(name);
        let path = file.display().to_string();
        let failed = |error: io::Error| format!("{path}: {error}");
        let length = std::fs::metadata(&file).map_err(failed)?.len();
        if length > most_bytes {
            return Err(format!("{path}: is larger than {} MiB", most_bytes >> 20));
        }
        let text = std::fs::read_to_string(&file).map_err(failed)?;
        Ok(NamedText { path, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_and_policies_are_files_next_to_the_scenario() {
        let folder = std::env::temp_dir().join(format!("fatpath-load-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("s.toml");
        let text = "name = \"x\"\n[set]\nwindow = \"p\"\n[hosts.a]\n[hosts.b]\n[links.wan]\n\
                    between = [\"a\", \"b\"]\ndelay = \"50ms\"\nrate_trace = \"up.trace\"\n\
                    [[variant]]\nname = \"v\"\npolicy = \"{window}.toml\"\n";
        let outcome = |trace: &str, policy: &str| {
            std::fs::write(folder.join("up.trace"), trace).unwrap();
            std::fs::write(folder.join(policy), "").unwrap();
            std::fs::write(&file, text).unwrap();
            load(&file).map_err(|error| error.to_string().replace(folder.to_str().unwrap(), ""))
        };
        let wrong = [
            outcome("1\n0\n", "q.toml").unwrap_err(),
            outcome("1\n2\n", "q.toml").unwrap_err(),
        ];
        let right = outcome("1\n2\n", "p.toml").unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        insta::assert_snapshot!(wrong.join("\n"), @r#"
        /s.toml:9:14: error: links.wan.rate_trace: /up.trace:2: "0" is not a whole number of milliseconds, not less than the one before, at most 86400000
        /s.toml:12:10: error: variant[1].policy: /p.toml: No such file or directory (os error 2)
        /s.toml:12:10: error: variant[1].policy: /p.toml: No such file or directory (os error 2)
        "#);
        let directions = &right.cases[0].links[0].directions;
        let text = serde_json::to_string(&directions[0].cells).unwrap();
        assert!(text.contains("[1,2]"), "{text}");
        assert!(right.cases[0].policy.as_ref().unwrap().is_absolute());
    }

    #[test]
    fn every_scenario_of_the_repository_is_right() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut folders = vec![root];
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if name.ends_with(".toml")
                    && !["-policy.toml", "-measure.toml"]
                        .iter()
                        .any(|end| name.ends_with(end))
                {
                    load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
                    count += 1;
                }
            }
        }
        assert!(count >= 13, "{count} scenarios were found");
    }
}
