// SPDX-License-Identifier: MIT OR Apache-2.0
//! An sshd for a figure: its keys, configuration and log are in a folder of its own, and it knows one user's key, made for it.
//! Nothing of the host's own sshd is read.

use crate::run::Run;
use anyhow::{Context, Result, bail, ensure};
use fatpath_emulator::Namespace;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where distributions have it, whether or not the user's PATH names it.
const PLACE: &str = "/usr/sbin";
const WITHIN: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(20);

/// A running sshd, which lets this program's user in; ended when it is dropped.
pub struct Sshd {
    process: Child,
    client: PathBuf,
}

impl Sshd {
    /// Starts one in `host` at `address`, with its files in `folder`, which is made, and waits until it listens.
    pub fn start(run: &Run, host: &Namespace, address: IpAddr, folder: &Path) -> Result<Sshd> {
        fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        for name in ["host", "user"] {
            make_key(&folder.join(name))?;
        }
        let (server, client) = (folder.join("sshd_config"), folder.join("ssh_config"));
        fs::write(&server, server_config(address, folder))?;
        fs::write(&client, client_config(folder))?;
        let log = folder.join("log");
        let mut command = host.command(program()?);
        command.arg("-D").arg("-f").arg(server).arg("-E").arg(&log);
        let process = command.spawn().context("sshd")?;
        let mut sshd = Sshd { process, client };
        sshd.wait(run, &log)?;
        Ok(sshd)
    }

    /// The file for `ssh -F` and `scp -F`.
    pub fn client_config(&self) -> &Path {
        &self.client
    }

    fn wait(&mut self, run: &Run, log: &Path) -> Result<()> {
        let end = Instant::now() + WITHIN;
        loop {
            let said = fs::read_to_string(log).unwrap_or_default();
            if said.contains("Server listening on") {
                return Ok(());
            }
            if self.process.try_wait()?.is_some() || Instant::now() > end {
                bail!("sshd does not listen: {said}");
            }
            run.pause(TICK)?;
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// By its whole path: sshd starts itself again for each connection, and refuses to be started by another name.
fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PLACE.into()]);
    let mut programs = places.map(|place| place.join("sshd"));
    programs
        .find(|program| program.exists())
        .context("there is no sshd: apt-get install openssh-server")
}

fn make_key(path: &Path) -> Result<()> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path);
    let status = command
        .stdin(Stdio::null())
        .status()
        .context("ssh-keygen")?;
    ensure!(status.success(), "ssh-keygen: {status}");
    Ok(())
}

fn server_config(address: IpAddr, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "ListenAddress {address}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nSubsystem sftp internal-sftp\n\
         HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
    )
}

fn client_config(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "IdentityFile {folder}/user\nIdentitiesOnly yes\nIdentityAgent none\nBatchMode yes\nLogLevel ERROR\n\
         StrictHostKeyChecking accept-new\nUserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile /dev/null\n"
    )
}
