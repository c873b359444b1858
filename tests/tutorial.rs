// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/tutorial.md, typed: every command that stands there in a block `sh` works, and the path is faster after it.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{FATPATH, Lab, alone, until};

const TUTORIAL: &str = include_str!("../docs/tutorial.md");

/// The commands of a part of the tutorial, in the order in which they stand there.
fn commands(heading: &str) -> String {
    let part = TUTORIAL
        .split("\n## ")
        .find(|part| part.starts_with(heading));
    let blocks = part.unwrap().split("\n```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("\n```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n") + "\n"
}

/// What the shell said.
fn typed(mut shell: Command, script: &str, folder: &Path) -> String {
    let path = format!(
        "{}:{}",
        Path::new(FATPATH).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    // A daemon that a failure left would keep its output open, and the laws.
    let script =
        format!("trap 'kill $(jobs -p) 2>/dev/null; fatpath unload >/dev/null 2>&1' ERR\n{script}");
    let output = shell
        .args(["timeout", "120", "bash", "-e", "-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{wrong}");
    said
}

/// Rates of the lines in which iperf3 tells what arrived, Mb/s.
fn received(said: &str) -> Vec<f64> {
    let lines = said.lines().filter(|line| line.ends_with("receiver"));
    let rates = lines.map(|line| {
        let before = line.split(" Mbits/sec").next().unwrap();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    });
    rates.collect()
}

/// The lab that the tutorial brings up; down again also where a command fails.
struct LabOfTheTutorial;

impl Drop for LabOfTheTutorial {
    fn drop(&mut self) {
        let down = Command::new(FATPATH)
            .args(["lab", "down", "tutorial"])
            .output();
        drop(down);
    }
}

#[test]
fn the_path_on_ones_own_machine_is_faster_after_it() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let _lab = LabOfTheTutorial;
    let said = typed(
        Command::new("env"),
        &commands("A long path on your own machine"),
        folder.path(),
    );
    let [before, after] = received(&said)[..] else {
        panic!("{said}");
    };
    assert!(after > 1.3 * before, "{before} then {after} Mb/s: {said}");
    for part in [
        "policy.toml: 2 rules, ",
        "to-10.77.0.2",
        "lab tutorial is down",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_path_of_ones_own_is_tried_tuned_and_left_as_it_was() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up(
        "tutorial",
        "rate = '300mbit'\ndelay = '30ms'\nqueue = '1bdp'",
    );
    drop(
        lab.command("b", &["iperf3", "--server", "--daemon"])
            .status(),
    );
    until("iperf3 to listen", || {
        let listening = lab.output("b", &["ss", "-Hltn", "sport", "=", ":5201"]);
        listening.contains("5201").then_some(())
    });
    let folder = tempfile::tempdir().unwrap();
    // `ip netns exec` would hide the BPF file system.
    let mut shell = Command::new("nsenter");
    shell.arg(format!("--net=/run/netns/{}", lab.namespace("a")));
    shell.env("DEST", lab.address("b"));
    // Only the first namespace has net.core.wmem_max.
    let outside = format!("nsenter --net=/proc/{}/ns/net", std::process::id());
    let commands = commands("A path of your own");
    let commands = commands.replace("\nfatpath daemon", &format!("\n{outside} fatpath daemon"));
    let said = typed(shell, &commands, folder.path());
    assert_eq!(received(&said).len(), 1, "{said}");
    let name = format!("to-{}", lab.address("b"));
    assert!(said.contains(&name), "{said}");
    assert!(said.contains("pins removed"), "{said}");
}

/// An address that is only this host's own.
const NEAR: &str = "127.0.8.1";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The same commands where the way to the peer is the host's own, and no emulator is late: they ask each kernel of the
/// matrix for what a first tuned flow needs.
#[test]
fn the_typed_commands_tune_a_flow_under_this_kernel() {
    let Some(_alone) = alone() else { return };
    let mut server = Command::new("iperf3");
    server
        .args(["--server", "--bind", NEAR])
        .stdout(Stdio::null());
    let _server = Server(server.spawn().unwrap());
    until("iperf3 to listen", || {
        let listening = Command::new("ss")
            .args(["-Hltn", "sport", "=", ":5201"])
            .output();
        (!listening.unwrap().stdout.is_empty()).then_some(())
    });
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("env");
    shell.arg(format!("DEST={NEAR}"));
    // A peer as near as that needs no rule, and `policy suggest` says so.
    let check = "fatpath policy check own.toml";
    let rule = format!(
        "printf '[[rule]]\\nname = \"to-{NEAR}\"\\ndestination = [\"{NEAR}\"]\\ncongestion_control = \"fp_cubic\"\\n' >>own.toml"
    );
    let commands = commands("A path of your own").replace(check, &format!("{rule}\n{check}"));
    // Under an emulated processor the commands that look at the flow take longer than it lasts.
    let commands = commands.replace("--time 3", "--time 12");
    let said = typed(shell, &commands, folder.path());
    assert_eq!(received(&said).len(), 1, "{said}");
    let flows = said.split("LAW").nth(1).unwrap_or_default();
    let of_rule = flows
        .lines()
        .find(|line| line.contains(&format!("to-{NEAR}")));
    assert!(
        of_rule.is_some_and(|line| line.contains("fp_cubic")),
        "{said}"
    );
    assert!(said.contains("pins removed"), "{said}");
}
