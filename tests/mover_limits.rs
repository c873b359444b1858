// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` and `recv` say what held a transfer back.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use support::mover::*;
use support::{FATPATH, Lab, alone};

/// What held it back for longest; its times are all of the time in which data went.
fn limited_by(report: &Value) -> &str {
    let times = report["limit_times_s"].as_object().unwrap();
    let times = times.values().map(|seconds| seconds.as_f64().unwrap());
    let total_s: f64 = times.sum();
    let seconds = report["seconds"].as_f64().unwrap();
    assert!(total_s > 0.0 && total_s <= seconds, "{report}");
    report["limited_by"].as_str().unwrap()
}

/// Sends `file` from host `a` of a lab to host `b`.
fn sent(lab: &Lab, file: &Path, options: &[&str]) -> Value {
    let to = file.with_extension("there");
    let place = format!("{}:{}", lab.namespace("b"), text(&to));
    let address = lab.address("b");
    let mut command = lab.command("a", &[FATPATH, "send", "-I", text(file), &place]);
    command.args(["--rsh", "ip netns exec", "--remote-fatpath", FATPATH]);
    command.args(["--address", &address, "--json"]);
    done({
        command.args(options);
        command
    })
}

/// A path of 50 Mb/s, a limit of 10, and a window of a quarter of what the path could have on its way.
#[test]
fn the_path_the_rate_and_the_window_are_told_apart() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("limits", "rate = '50mbit'\ndelay = '40ms'\nqueue = '1bdp'");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, content(6 << 20)).unwrap();
    let (udp, tcp) = (["--carrier", "udp"], ["--carrier", "tcp"]);
    for carrier in [udp, tcp] {
        let report = sent(&lab, &file, &carrier);
        assert_eq!(limited_by(&report), "path", "{report}");
        let slow = [&carrier[..], &["--limit", "10mbit"]].concat();
        let report = sent(&lab, &file, &slow);
        assert_eq!(limited_by(&report), "given_rate", "{report}");
    }
    let report = sent(&lab, &file, &[&udp[..], &["--window", "128KiB"]].concat());
    assert_eq!(limited_by(&report), "window", "{report}");
}

/// In a shell, with `$send` and `$recv` as commands; what the last of them reports.
fn shell(folder: &Path, script: &str) -> Value {
    let command = |verb: &str| {
        let here = here(folder);
        format!(
            "{FATPATH} {verb} --rsh {here} --remote-fatpath {FATPATH} --address 127.0.0.1 --json"
        )
    };
    let mut shell = Command::new("bash");
    shell.args(["-o", "pipefail", "-c", script]);
    shell.env("send", command("send"));
    shell.env("recv", command("recv"));
    let output = shell.current_dir(folder).output().unwrap();
    // Where output has the file, the report is on standard error.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{script}: {said}");
    let begin = said.find('{').unwrap_or_else(|| panic!("{script}: {said}"));
    serde_json::from_str(&said[begin..]).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn who_feeds_standard_input_or_reads_standard_output_slowly_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), content(8 << 20)).unwrap();
    let slowly = "for part in $(seq 20); do head -c 400000; sleep 0.1; done; cat";
    for carrier in ["udp", "tcp"] {
        let carrier = format!("--carrier {carrier}");
        let script = format!("({slowly}) < file | $send - host:to/input {carrier}");
        let report = shell(folder, &script);
        assert_eq!(limited_by(&report), "source", "{report}");
        same(&folder.join("file"), &folder.join("to/input"));
        let script = format!("$recv host:file - --window 512KiB {carrier} | ({slowly}) > output");
        let report = shell(folder, &script);
        assert_eq!(limited_by(&report), "output", "{report}");
        same(&folder.join("file"), &folder.join("output"));
    }
}

/// A file of 1 GiB of which little is data: what is measured is known long before that has gone, and leaves nothing.
#[test]
fn before_a_large_transfer_the_disks_are_measured() {
    const DATA_BYTES: usize = 48 << 20;
    let folder = tempfile::tempdir().unwrap();
    let room = rustix::fs::statvfs(folder.path()).unwrap();
    if room.f_bavail * room.f_frsize < 2 << 30 {
        println!("skipped: the file system has little room");
        return;
    }
    let (name, to) = (folder.path().join("file"), folder.path().join("to"));
    let file = fs::File::create(&name).unwrap();
    file.write_all_at(&content(DATA_BYTES), 1 << 30).unwrap();
    let arguments = [
        "send",
        "-S",
        text(&name),
        &target(&to),
        "--limit",
        "100mbit",
    ];
    let report = done(mover(folder.path(), &arguments));
    assert!(
        report["receiver_disk_bps"].as_u64().unwrap() > 0,
        "{report}"
    );
    assert!(
        report["sender_disk_bps"].is_null(),
        "of a hole no disk tells: {report}"
    );
    assert_eq!(report["moved_bytes"], DATA_BYTES, "{report}");
    assert_eq!(report["limited_by"], "given_rate", "{report}");
    assert!(is_clean(&to));
    // Where it is no large one, nothing is.
    let small = folder.path().join("small");
    fs::write(&small, content(8000)).unwrap();
    let report = done(mover(folder.path(), &["send", text(&small), &target(&to)]));
    assert!(report["receiver_disk_bps"].is_null(), "{report}");
}
