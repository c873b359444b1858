// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the laws of bpf/cc for the host: the files that the kernel half includes.

fn main() {
    let laws = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/cc");
    println!("cargo:rerun-if-changed={laws}");
    println!("cargo:rerun-if-changed=src/host.c");
    cc::Build::new()
        .file("src/host.c")
        .include(laws)
        .warnings_into_errors(true)
        .compile("fatpath_cc");
}
