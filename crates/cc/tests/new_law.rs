// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/new-law.md: the law it writes is added to a copy of bpf/cc as it says, compiled for the host and
//! for the kernel, and run.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros
)] // builds a crate elsewhere

use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Prints the law's name, whether it takes its initial parameters, and the mean window of a sawtooth
/// with a congestion event every 10,000 segments.
const PROGRAM: &str = r#"
#include "host.c"
#include <stdio.h>

static const cc_u32 values[CC_PARAMS] = { 1000, 500 };

static cc_u32 lose(struct cc_window *w)
{
	w->cwnd_pkts = w->ssthresh_pkts = cc_ssthresh(CC_LAW_sqrt, values, w, w->cwnd_pkts);
	return 0;
}

int main(void)
{
	struct cc_window w = { .cwnd_pkts = 100, .ssthresh_pkts = 2, .clamp_pkts = ~0u };
	struct cc_start start = { 0 };
	cc_u32 sent = 0;
	double sum = 0;

	for (int trip = 0; trip < 100000; trip++) {
		sum += w.cwnd_pkts;
		sent += w.cwnd_pkts;
		cc_acked(CC_LAW_sqrt, values, &start, &w, w.cwnd_pkts);
		sent = sent < 10000 ? sent : lose(&w);
	}
	printf("%s %d %f\n", fatpath_laws()[CC_LAW_sqrt].name, cc_law_accepts(CC_LAW_sqrt, values),
	       sum / 100000);
	return 0;
}
"#;

/// The kernel's side of it: every function of the table is compiled.
const FOR_BPF: &str = r#"
#include "laws.h"

cc_u32 run(struct cc_window *w, const struct cc_start *s, const cc_u32 *values, cc_u32 law)
{
	cc_acked((enum cc_law)law, values, s, w, 10);
	return cc_ssthresh((enum cc_law)law, values, w, 10) + cc_law_accepts((enum cc_law)law, values);
}
"#;

/// The first block of a language in the page.
fn listing(page: &str, language: &str) -> String {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Lines that begin with `-` become those that begin with `+`, behind the same neighbours.
fn patched(text: &str, diff: &str) -> String {
    let side = |dropped: char| -> String {
        let kept = diff.lines().filter(|line| !line.starts_with(dropped));
        kept.map(|line| format!("{}\n", line.get(1..).unwrap_or("")))
            .collect()
    };
    let (before, after) = (side('+'), side('-'));
    assert!(text.contains(&before), "bpf/cc/laws.h has not:\n{before}");
    text.replacen(&before, &after, 1)
}

fn copy_of_the_laws() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-law");
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(Path::new(CRATE).join("../../bpf/cc")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    std::fs::copy(Path::new(CRATE).join("src/host.c"), copy.join("host.c")).unwrap();
    copy
}

fn compile(compiler: &str, directory: &Path, arguments: &[&str]) -> bool {
    let made = Command::new(compiler)
        .current_dir(directory)
        .args(["-O2", "-Wall", "-Wextra", "-Werror"])
        .args(arguments)
        .output();
    let Ok(made) = made else { return false };
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{compiler}: {errors}");
    true
}

#[test]
fn the_law_of_the_page_compiles_and_keeps_its_formula() {
    let page = std::fs::read_to_string(Path::new(CRATE).join("../../docs/new-law.md")).unwrap();
    let directory = copy_of_the_laws();
    std::fs::write(directory.join("sqrt.h"), listing(&page, "c")).unwrap();
    let table = std::fs::read_to_string(directory.join("laws.h")).unwrap();
    let table = patched(&table, &listing(&page, "diff"));
    std::fs::write(directory.join("laws.h"), table).unwrap();
    std::fs::write(directory.join("program.c"), PROGRAM).unwrap();
    std::fs::write(directory.join("for_bpf.c"), FOR_BPF).unwrap();

    assert!(
        compile("cc", &directory, &["-o", "program", "program.c"]),
        "cc"
    );
    let output = Command::new(directory.join("program")).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let mean = output.strip_prefix("sqrt 1 ").expect(&output);
    let mean: f64 = mean.trim().parse().unwrap();
    let expected = (1e4f64 / 0.5).sqrt();
    assert!((mean / expected - 1.0).abs() < 0.1, "{mean} for {expected}");

    let for_bpf = [
        "-target",
        "bpf",
        "-mcpu=v3",
        "-c",
        "for_bpf.c",
        "-o",
        "for_bpf.o",
    ];
    if !compile("clang", &directory, &for_bpf) {
        println!("skipped: clang cannot be run, the page's law is not compiled for the kernel");
    }
}
