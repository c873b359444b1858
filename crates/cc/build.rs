// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the laws of bpf/cc for the host: the files that the kernel half includes.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // a build script speaks with cargo

use std::path::Path;

fn main() {
    let laws = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../bpf/cc");
    println!("cargo:rerun-if-changed={}", laws.display());
    println!("cargo:rerun-if-changed=src/host.c");
    cc::Build::new()
        .file("src/host.c")
        .include(laws)
        .warnings_into_errors(true)
        // In every profile: the simulator calls a law for each acknowledgement.
        .opt_level(2)
        .compile("fatpath_cc");
}
