// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath police` as an administrator uses it: a router between two hosts, and no daemon.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use support::host::Host;
use support::{FATPATH, alone, until};

struct Router {
    host: Host,
    _other: Host,
    pins: PathBuf,
}

impl Router {
    fn make(name: &str) -> Router {
        let (host, other) = (
            Host::make(&format!("{name}-r")),
            Host::make(&format!("{name}-o")),
        );
        host.lay_wire(&other);
        Router {
            host,
            _other: other,
            pins: format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()).into(),
        }
    }

    fn command(&self, arguments: &str) -> Command {
        self.command_on(&self.host, arguments)
    }

    fn command_on(&self, host: &Host, arguments: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", host.0));
        command.args([FATPATH, "police"]).args(arguments.split(' '));
        command.arg("--police-dir").arg(&self.pins);
        command
    }

    fn ask(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn printed(&self, arguments: &str) -> String {
        let output = self.ask(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> Value {
        let all: Value = serde_json::from_str(&self.printed("status --json")).unwrap();
        all[0].clone()
    }

    /// What it says is wrong.
    fn refused(&self, arguments: &str) -> String {
        let output = self.ask(arguments);
        assert!(!output.status.success(), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn watch(&self) -> Child {
        let mut watch = self.command("v0 --watch");
        watch.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = watch.spawn().unwrap();
        until("the police to watch", || {
            (self.status()["watches"] == true).then_some(())
        });
        child
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.ask("v0 --off");
    }
}

#[test]
fn a_police_stays_without_its_program_until_it_is_taken_off() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pcli");
    assert!(
        router
            .printed("status")
            .contains("no interface has a policer")
    );
    let printed = router.printed("v0 --mode limit=50mbit --mark dscp=4 --except 10.0.0.0/8");
    assert!(
        printed.contains("v0: limit=50 Mb/s, mark dscp=4"),
        "{printed}"
    );
    let status = router.status();
    assert_eq!(
        (&status["interface"], &status["is_in_place"]),
        (&"v0".into(), &true.into())
    );
    assert_eq!(status["exceptions"][0][0], "10.0.0.0/8");
    // A second one takes the place of the first.
    router.printed("v0 --mode reset");
    assert_eq!(router.status()["mode"], "reset");
    assert_eq!(router.status()["hook"], "tc");
    router.printed("v0 --off");
    assert!(!router.pins.exists());
    assert!(!router.host.run("tc qdisc show").contains("clsact"));
}

#[test]
fn only_mode_changes_a_mode() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pkeep");
    router.printed("v0 --mode limit=50mbit --mark dscp=4 --except 10.0.0.0/8 --hook tc");
    let before = router.status();
    let kept = |what: &str| {
        let now = router.status();
        for key in ["mode", "mark", "hook", "exceptions"] {
            assert_eq!(now[key], before[key], "{key} after {what}");
        }
    };
    let printed = router.printed("v0");
    assert!(
        printed.contains("v0: limit=50 Mb/s, mark dscp=4"),
        "{printed}"
    );
    kept("showing it");
    assert_eq!(router.status()["watches"], false);
    for _ in 0..2 {
        let mut watch = router.watch();
        kept("watching");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    kept("the end of the watch");
    router.printed("v0 --mark 0x400");
    assert_eq!(router.status()["mode"], before["mode"], "a mark is no mode");
    router.printed("v0 --mode drop");
    assert_eq!(router.status()["mode"], "drop");
    assert_eq!(router.status()["watches"], false);
}

#[test]
fn one_that_was_cut_short_keeps_nobody_from_anything() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pcut");
    let netns = std::fs::metadata(format!("/run/netns/{}", router.host.0)).unwrap();
    let link = router.host.run("ip -o link show dev v0");
    let directory = format!("{}-{}", netns.ino(), link.split(':').next().unwrap());
    for then in ["v0 --off", "v0 --mode drop"] {
        std::fs::create_dir_all(router.pins.join(&directory)).unwrap();
        assert_eq!(router.status()["is_in_place"], false);
        router.printed(then);
    }
    assert_eq!(router.status()["is_in_place"], true);
}

#[test]
fn a_police_at_xdp_goes_where_its_interface_goes_and_can_be_taken_off_there() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pmove");
    for taken_off_there in [true, false] {
        let (old, new) = (&router.host, Host::make("pmove-n"));
        router.printed("v0 --mode drop --hook xdp");
        old.run(&format!("ip link set v0 netns {}", new.0));
        assert_eq!(router.status()["is_in_place"], true);
        let host = if taken_off_there { &new } else { old };
        let off = router.command_on(host, "v0 --off").output().unwrap();
        assert!(off.status.success(), "{off:?}");
        assert!(!new.run("ip link show v0").contains("xdp"));
        assert!(!router.pins.exists());
        new.run(&format!("ip link set v0 netns {}", old.0));
    }
}

#[test]
fn what_cannot_be_policed_is_refused_with_a_reason() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pref");
    assert!(router.refused("v9").contains("ip link"));
    assert!(router.refused("lo").contains("unknown kind of link"));
    let refused = router.refused("v0 --mode reset --hook xdp");
    assert_eq!(
        refused.matches("needs tc").count(),
        1,
        "told once: {refused}"
    );
    assert!(
        router
            .refused("v0 --off")
            .contains("no policer is attached")
    );
    assert!(!router.pins.exists(), "nothing is left of what was refused");
    router.printed("v0 --mode drop");
    router.refused("v0 --mode reset --hook xdp");
    assert_eq!(router.status()["mode"], "drop", "what was there stays");
}

#[test]
fn who_watches_may_be_killed_and_ends_when_the_police_does() {
    let Some(_alone) = alone() else { return };
    let router = Router::make("pwat");
    let mut killed = router.watch();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(router.status()["is_in_place"], true);
    router.printed("v0 --off");
    let watching = router.watch();
    router.printed("v0 --off");
    let ended = watching.wait_with_output().unwrap();
    assert!(!ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("policer of v0 is gone"), "{said}");
    // Of an interface that goes, only the pins are left.
    router.printed("v0");
    router.host.run("ip link del v0");
    assert_eq!(router.status()["is_in_place"], false);
    assert!(router.printed("status").contains("not in place"));
    router.printed("v0 --off");
    assert!(!router.pins.exists());
}
