// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crates that read no clock, make no randomness and do no I/O (ARCHITECTURE.md).
//!
//! Clippy refuses what the standard library has for these: each such crate's clippy.toml is a link to
//! xtask/pure.clippy.toml. Checked here is that the link is there, that no product code allows what it refuses
//! (tests may do I/O), and what the crates depend on.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PURE: [&str; 22] = [
    "abi",
    "api",
    "capture",
    "cc",
    "doctor",
    "estats",
    "link",
    "manual",
    "measure",
    "model",
    "observation",
    "path",
    "policy",
    "scenario",
    "sim",
    "statistics",
    "table",
    "tcp",
    "toml",
    "train",
    "transport",
    "units",
];

/// Libraries that a pure crate may use: they hold data, numbers and texts only. Of aws-lc-rs the transport uses AEAD and
/// HKDF, which compute; keys and nonces come from outside.
const LIBRARIES: [&str; 18] = [
    "aws-lc-rs",
    "compact_str",
    "etherparse",
    "exmex",
    "foldhash",
    "hashbrown",
    "hdrhistogram",
    "ipnet",
    "pcap-parser",
    "rand_core",
    "rand_xoshiro",
    "schemars",
    "serde",
    "serde_json",
    "shlex",
    "thiserror",
    "toml",
    "zerocopy",
];

const REFUSED: &str = "xtask/pure.clippy.toml";

/// One line a breach.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let refused = std::fs::read_to_string(root.join(REFUSED)).context(REFUSED)?;
    let mut breaches: Vec<String> = PURE
        .iter()
        .filter(|name| {
            let own = std::fs::read_to_string(root.join(format!("crates/{name}/clippy.toml")));
            !own.is_ok_and(|own| own == refused)
        })
        .map(|name| format!("  crates/{name}/clippy.toml: link it to {REFUSED}"))
        .collect();
    for package in packages(root)? {
        breaches.extend(impure_dependencies(&package));
    }
    Ok(breaches)
}

/// A source file of a pure crate that switches the refusal off for more than its tests.
pub fn exception(name: &Path, text: &str) -> Option<String> {
    let is_pure = PURE
        .iter()
        .any(|c| name.starts_with(format!("crates/{c}/src")));
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    (is_pure && product.contains("clippy::disallowed"))
        .then(|| format!("  {}: a pure crate allows no exception", name.display()))
}

/// What cargo knows of the packages of this repository.
fn packages(root: &Path) -> Result<Vec<Value>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => anyhow::bail!("cargo metadata names no packages"),
    }
}

fn impure_dependencies(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if !is_pure(name) {
        return Vec::new();
    }
    let dependencies = package["dependencies"].as_array();
    dependencies
        .into_iter()
        .flatten()
        // Those of tests and of the build script have a kind.
        .filter(|dependency| dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|dependency| !is_pure(dependency) && !LIBRARIES.contains(dependency))
        .map(|dependency| {
            format!("  {name} is pure and may not depend on {dependency} (xtask/src/purity.rs)")
        })
        .collect()
}

fn is_pure(package: &str) -> bool {
    package
        .strip_prefix("fatpath-")
        .is_some_and(|name| PURE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn a_clock_a_socket_and_randomness_are_no_dependencies_of_a_pure_crate() {
        let package = serde_json::json!({
            "name": "fatpath-sim",
            "dependencies": [
                { "name": "fatpath-link", "kind": null },
                { "name": "serde", "kind": null },
                { "name": "fatpath-host", "kind": null },
                { "name": "rand", "kind": null },
                { "name": "tempfile", "kind": "dev" },
            ],
        });
        let breaches = impure_dependencies(&package);
        assert_eq!(breaches.len(), 2);
        assert!(breaches[0].contains("fatpath-host") && breaches[1].contains("on rand "));
    }

    #[test]
    fn every_pure_crate_is_in_the_repository() {
        let names: Vec<String> = packages(&root())
            .unwrap()
            .iter()
            .filter_map(|package| package["name"].as_str().map(str::to_owned))
            .collect();
        for pure in PURE {
            assert!(names.contains(&format!("fatpath-{pure}")), "{pure}");
        }
    }

    #[test]
    fn product_code_of_a_pure_crate_allows_no_exception() {
        let allowed = "#[allow(clippy::disallowed_types)]\nfn f() {}";
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{allowed}\n}}");
        let seen = |name: &str, text: &str| exception(Path::new(name), text).is_some();
        assert!(seen("crates/sim/src/lib.rs", allowed));
        assert!(!seen("crates/sim/src/lib.rs", &in_tests));
        assert!(!seen("crates/host/src/lib.rs", allowed));
    }
}
