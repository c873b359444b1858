// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of idle connections over loopback, held by processes of their own: a process may open
//! 20,000 files at most on some hosts (RLIMIT_NOFILE), and each connection needs two.

use crate::run::Run;
use anyhow::{Context, Result, bail, ensure};
use rustix::net::sockopt::set_socket_linger;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// At most, of one process.
const CONNECTIONS_EACH: usize = 4500;

/// The connections; closed when it is dropped.
pub struct Crowd(Vec<Child>);

impl Crowd {
    /// Both ends of `flows / 2` connections.
    pub fn of(run: &Run, flows: usize) -> Result<Crowd> {
        let mut crowd = Crowd(Vec::new());
        let mut left = flows / 2;
        while left > 0 {
            run.check()?;
            let connections = left.min(CONNECTIONS_EACH);
            crowd.0.push(holder(connections)?);
            left -= connections;
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Each ends at the end of its input.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn holder(connections: usize) -> Result<Child> {
    let program = std::env::current_exe()?;
    let mut child = Command::new(program)
        .args(["--hold-connections", &connections.to_string()])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let said = child.stdout.take().context("it was piped")?;
    BufReader::new(said).read_line(&mut line)?;
    if line.trim() != "ready" {
        let _ = child.wait();
        bail!("{connections} connections could not be opened");
    }
    Ok(child)
}

/// What such a process does: opens them, says so, and waits for the end of its input.
pub fn hold_connections(count: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let connection = |_| -> Result<_> {
        let opener = TcpStream::connect(address)?;
        let (acceptor, peer) = listener.accept()?;
        ensure!(peer == opener.local_addr()?, "somebody else connected");
        // A reset ends both: what waited in TIME_WAIT for a minute would be walked over too.
        set_socket_linger(&opener, Some(Duration::ZERO))?;
        Ok((opener, acceptor))
    };
    let held = (0..count).map(connection).collect::<Result<Vec<_>>>()?;
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(held);
    Ok(())
}
