// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath --version` says: the version, and in builds that are released the commit.
//!
//! A build for development names none: each commit would compile the command line and link all its tests anew. Nor
//! does a build from a tarball; whoever packages one can name it in the environment variable FATPATH_COMMIT.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=FATPATH_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=FATPATH_VERSION={version}");
}

fn commit() -> Option<String> {
    if let Ok(named) = std::env::var("FATPATH_COMMIT") {
        return Some(named).filter(|named| !named.is_empty());
    }
    // Without this line cargo would run this program again for any file of the package.
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") || !is_our_repository() {
        return None;
    }
    // Each commit and each checkout adds a line to it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    let log = Path::new(&log).canonicalize().ok()?;
    println!("cargo::rerun-if-changed={}", log.display());
    git(&["rev-parse", "--short=9", "HEAD"])
}

/// A tarball may be unpacked inside of somebody else's repository.
fn is_our_repository() -> bool {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let top = git(&["rev-parse", "--show-toplevel"]);
    let top = top.and_then(|top| Path::new(&top).canonicalize().ok());
    top.is_some() && top == own.canonicalize().ok()
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
