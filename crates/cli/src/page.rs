// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath page`: the address of the page, or the way to it.

use crate::arguments::PageArguments;
use crate::not_running::not_running;
use anyhow::{Context, Result};
use fatpath_api::endpoint::GetStatus;
use fatpath_daemon::{Instance, client, token_file};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

pub(crate) fn run(arguments: &PageArguments) -> Result<()> {
    let instance = Instance::new(&arguments.instance, None)?;
    let status =
        client::get::<GetStatus>(&instance.socket())?.with_context(|| not_running(&instance))?;
    match status.page {
        Some(address) => print_address(address, &instance.run_dir),
        None => {
            if let Some(error) = status.page_error {
                println!(
                    "The page is not served over TCP: {error}; the daemon tries again every few seconds."
                );
            }
            print_way(&instance.view_socket());
            Ok(())
        }
    }
}

fn print_address(address: SocketAddr, run_dir: &Path) -> Result<()> {
    let file = token_file(run_dir);
    let token = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(error).context("only root may read the token: run `sudo fatpath page`");
        }
        read => read.with_context(|| format!("cannot read {}", file.display()))?,
    };
    println!("http://{address}/#token={}", token.trim());
    Ok(())
}

/// Two ways to reach the page where it is not served over TCP.
fn print_way(socket: &Path) {
    let socket = socket.display();
    println!("The page is served on {socket}, which a browser cannot open itself.");
    println!("From your own machine, as a user in the group fatpath (or as root):");
    println!("  ssh -N -L 127.0.0.1:7070:{socket} THIS-HOST");
    println!(
        "and open http://127.0.0.1:7070/. Every user of that machine can read the flows while ssh runs."
    );
    println!(
        "Do not forward fatpath.sock: whoever reaches it through root's ssh can change this host."
    );
    println!("Or start the daemon with --listen 127.0.0.1:7070 and ask again.");
}
