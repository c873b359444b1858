// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath send`, whose `--rate` asks the daemon of this host.

use anyhow::{Context, Result};
use clap::Args;
use fatpath_api::endpoint::GetRudePermission;
use fatpath_api::{RudePermission, RudePermissionQuery};
use fatpath_daemon::{client, gate_socket_in};
use fatpath_mover::SendArguments;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    send: SendArguments,
    /// Directory of the sockets of this host's daemon, which --rate asks
    #[arg(long, value_name = "DIR", default_value = "/run/fatpath")]
    run_dir: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let socket = gate_socket_in(&arguments.run_dir);
    let ask = Arc::new(move |destination| permission(&socket, destination));
    fatpath_mover::cli::run_send(&arguments.send, ask)
}

fn permission(socket: &Path, destination: SocketAddr) -> Result<RudePermission> {
    let answer = client::ask::<GetRudePermission>(socket, &RudePermissionQuery { destination })?;
    answer.context("its daemon is not running: as root, `systemctl start fatpath`")
}
