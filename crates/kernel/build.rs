// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles bpf/*.bpf.c with the distribution's clang; the objects are embedded in the library.

use std::path::{Path, PathBuf};
use std::process::Command;

const OBJECTS: [&str; 17] = [
    "tune",
    "override",
    "flows",
    "estats",
    "laws",
    "rate_laws",
    "rate_trace",
    "replay",
    "rude_replay",
    "rude_trace",
    "mark",
    "mark_replay",
    "phases",
    "police",
    "trace",
    "rude",
    "rude_option",
];

/// Of tests: what the verifier refuses, and another program on the same cgroup.
const OF_TESTS: [&str; 2] = ["refused", "neighbour"];

fn main() {
    // At run time, for a target directory may be that of another checkout.
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let source = here.join("../../bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let headers = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    let compile_in = |folder: &Path, object: &str| {
        let (from, to) = (format!("{object}.bpf.c"), format!("{object}.bpf.o"));
        compile(&folder.join(from), &out.join(to), &headers);
    };
    for object in OF_TESTS {
        println!("cargo:rerun-if-changed=tests/{object}.bpf.c");
        compile_in(&here.join("tests"), object);
    }
    for object in OBJECTS {
        compile_in(&source, object);
    }
}

fn compile(source: &Path, object: &Path, headers: &str) {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let processor = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo says what it builds for");
    // As the headers of libbpf call it, which know the registers of a probed function by it.
    let registers = match processor.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    };
    let status = Command::new(&clang)
        .args([
            "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Wextra", "-Werror",
        ])
        .arg("-Wno-unused-parameter")
        .arg(format!("-D__TARGET_ARCH_{registers}"))
        .args(["-I", headers])
        // Debian keeps asm/ under the multiarch directory, which clang leaves out for bpf.
        .args(["-idirafter", &format!("/usr/include/{processor}-linux-gnu")])
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match status {
        Ok(s) if s.success() => {}
        Ok(s) => panic!("{clang} could not compile {}: {s}", source.display()),
        Err(e) => panic!("{clang} cannot be run ({e}): install the package clang"),
    }
}
