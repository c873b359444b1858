// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send` beside what people move files with, one after another over one path, all by the same sshd, from the start of
//! the command to its end. Kernel TCP has CUBIC there, as installed. The first round tells of rsync, and of scp by the kernel's
//! BBR, beside.

use super::{Place, fill, path, sending};
use crate::alone::Alone;
use crate::emulated::forwarded;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use crate::sshd::Sshd;
use anyhow::{Context, Result, ensure};
use fatpath_emulator::{Namespace, Network};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: u64 = 3;
/// So many that ssh's handshake, which takes both tools 1.5 s, is not most of the time.
const BYTES: u64 = 500_000_000;
const LOSS: f64 = 0.0001;
/// Of `two_hosts`.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));
const LAW: &str = "net.ipv4.tcp_congestion_control";

pub const FIGURE: Figure = Figure {
    name: "mover.over_scp",
    what: "a file of 500 MB over 1 Gb/s x 100 ms with 0.01 % of loss, ssh's handshake included: its rate over that of scp",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(10.0),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill(&place.path("file"), BYTES, 1)?;
    let round = |n| {
        run.check()?;
        run.say(format!("  round {n} of {ROUNDS}"));
        let (ratio, _) = forwarded(&path(50, LOSS, n), |network| {
            let round = Round::begin(run, &place, network)?;
            let ratio = round.ratio()?;
            if n == 1 {
                round.tell_of_others()?;
            }
            fs::remove_dir_all(place.path("ssh"))?;
            Ok(ratio)
        })?;
        Ok(ratio)
    };
    (1..=ROUNDS).map(round).collect()
}

/// One path, on which the tools take turns.
struct Round<'a> {
    run: &'a Run,
    place: &'a Place,
    network: &'a Network,
    client: &'a Namespace,
    sshd: Sshd,
}

impl Round<'_> {
    fn begin<'a>(run: &'a Run, place: &'a Place, network: &'a Network) -> Result<Round<'a>> {
        let host = |name| network.host(name).context("`two_hosts` names it");
        let (client, server) = (host("client")?, host("server")?);
        let sshd = Sshd::start(run, server, SERVER, &place.path("ssh"))?;
        Ok(Round {
            run,
            place,
            network,
            client,
            sshd,
        })
    }

    fn ratio(&self) -> Result<f64> {
        let (ssh, host) = (self.ssh(), SERVER.to_string());
        let ours = sending(self.run, self.place, self.network, ["file", &ssh, &host])?;
        let ours_bps = self.bps("fatpath", "cubic", ours)?;
        Ok(ours_bps / self.bps("scp", "cubic", self.scp())?)
    }

    fn tell_of_others(&self) -> Result<()> {
        if is_installed("rsync") {
            self.bps("rsync", "cubic", self.rsync())?;
        }
        if has_law("bbr")? {
            self.bps("scp", "bbr", self.scp())?;
        }
        Ok(())
    }

    fn ssh(&self) -> String {
        format!("ssh -F {}", self.sshd.client_config().display())
    }

    fn scp(&self) -> Command {
        let mut command = self.client.command("scp");
        command.arg("-q").arg("-F").arg(self.sshd.client_config());
        self.with_places(command)
    }

    fn rsync(&self) -> Command {
        let mut command = self.client.command("rsync");
        command.args(["-e", &self.ssh()]);
        self.with_places(command)
    }

    fn with_places(&self, mut command: Command) -> Command {
        let to = format!("{SERVER}:{}/", self.place.path("to").display());
        command.arg(self.place.path("file")).arg(to);
        command
    }

    /// What a tool reaches where kernel TCP has this law.
    fn bps(&self, tool: &str, law: &str, mut command: Command) -> Result<f64> {
        self.run.check()?;
        self.client.set_sysctl(LAW, law)?;
        let to = self.place.path("to");
        fs::create_dir(&to)?;
        let begun = Instant::now();
        let output = command.output().with_context(|| tool.to_owned())?;
        let bps = BYTES as f64 * 8.0 / begun.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{tool}: {said}");
        let arrived = fs::metadata(to.join("file")).context(to.display().to_string())?;
        ensure!(arrived.len() == BYTES, "{tool}: {} bytes", arrived.len());
        fs::remove_dir_all(to)?;
        let mbps = bps / 1e6;
        self.run
            .say(format!("    {tool}, kernel TCP by {law}: {mbps:.1} Mb/s"));
        Ok(bps)
    }
}

/// Of the running kernel.
fn has_law(law: &str) -> Result<bool> {
    let laws = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(laws.split_whitespace().any(|one| one == law))
}

fn is_installed(tool: &str) -> bool {
    let mut command = Command::new(tool);
    let status = command.arg("--version").stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
