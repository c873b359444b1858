// SPDX-License-Identifier: MIT OR Apache-2.0
//! The examples of TCP_RUDE, built and run where their tools are: each says that it is rude, and all
//! that it was given arrives.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Daemon, Lab, alone};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rude")
}

/// Not in /tmp, which may forbid to run what lies there.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(Path::new(support::FATPATH).parent().unwrap()).unwrap()
}

fn has(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        println!("skipped: {tool} is not here");
    }
    has
}

fn build(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// `program` with host and port is rude, and polite where there is no fatpath; it hands on what it reads.
fn is_rude_and_sends(program: &[&str], port: u16) {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("rex", "rate = \"100mbit\"\ndelay = \"1ms\"");
    let policy = "[[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16']\nrude = 'allowed'\n";
    let daemon = Daemon::start(policy);
    let opened = daemon.ask(&["rude", "on", "--netns", &lab.namespace("a")]);
    assert!(opened.status.success());
    assert_eq!(sends(&lab, program, port), "rude\n");
    drop(daemon);
    assert_eq!(sends(&lab, program, port), "polite\n");
}

/// What it says.
fn sends(lab: &Lab, program: &[&str], port: u16) -> String {
    let listener = lab.on("b", || TcpListener::bind(("0.0.0.0", port)).unwrap());
    let (address, port) = (lab.address("b"), port.to_string());
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", lab.namespace("a")));
    command.args(program).args([address, port]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut socket = listener.accept().unwrap().0;
    let sent = vec![7; 1 << 20];
    let mut stdin = child.stdin.take().unwrap();
    let given = sent.clone();
    let giving = std::thread::spawn(move || stdin.write_all(&given));
    let mut received = Vec::new();
    socket.read_to_end(&mut received).unwrap();
    giving.join().unwrap().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(received == sent);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn c() {
    if !has("cc") {
        return;
    }
    let directory = scratch();
    let program = directory.path().join("rude");
    let include = examples().join("../../include");
    build(
        Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .arg(include)
            .arg(examples().join("rude.c"))
            .arg("-o")
            .arg(&program),
    );
    is_rude_and_sends(&[program.to_str().unwrap()], 7101);
}

#[test]
fn python() {
    if has("python3") {
        let program = examples().join("rude.py");
        is_rude_and_sends(&["python3", program.to_str().unwrap()], 7102);
    }
}

#[test]
fn go() {
    if !has("go") {
        return;
    }
    let directory = scratch();
    let program = directory.path().join("rude");
    build(
        Command::new("go")
            .arg("build")
            .arg("-o")
            .arg(&program)
            .arg(examples().join("rude.go")),
    );
    is_rude_and_sends(&[program.to_str().unwrap()], 7103);
}

#[test]
fn rust() {
    if !has("rustc") {
        return;
    }
    let directory = scratch();
    let program = directory.path().join("rude");
    build(
        Command::new("rustc")
            .args(["--edition", "2024", "-o"])
            .arg(&program)
            .arg(examples().join("rude.rs")),
    );
    is_rude_and_sends(&[program.to_str().unwrap()], 7104);
}
