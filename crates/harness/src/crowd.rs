// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of idle connections over loopback, held by processes of their own: a process may open
//! 20,000 files at most on some hosts (RLIMIT_NOFILE), and each connection needs two.

use crate::run::Run;
use anyhow::{Context, Result, bail, ensure};
use rustix::net::sockopt::set_socket_linger;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// At most, of one process.
const CONNECTIONS_EACH: usize = 4500;

/// The connections; closed when it is dropped.
pub struct Crowd(Vec<Holder>);

/// A process that holds some of them.
struct Holder {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Crowd {
    /// Both ends of `flows / 2` connections.
    pub fn of(run: &Run, flows: usize) -> Result<Crowd> {
        let mut crowd = Crowd(Vec::new());
        let mut left = flows / 2;
        while left > 0 {
            run.check()?;
            let connections = left.min(CONNECTIONS_EACH);
            crowd.0.push(Holder::start(connections)?);
            left -= connections;
        }
        Ok(crowd)
    }

    /// One connection in a hundred carries a byte. Answers how many sockets that moved.
    pub fn move_one_in_a_hundred(&mut self) -> Result<usize> {
        self.0.iter_mut().map(Holder::move_some).sum()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for holder in &mut self.0 {
            // Each ends at the end of its input.
            drop(holder.child.stdin.take());
            let _ = holder.child.wait();
        }
    }
}

impl Holder {
    fn start(connections: usize) -> Result<Holder> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args(["--hold-connections", &connections.to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().context("it was piped")?;
        let mut holder = Holder {
            child,
            said: BufReader::new(said),
        };
        if holder.line()? != "ready" {
            let _ = holder.child.wait();
            bail!("{connections} connections could not be opened");
        }
        Ok(holder)
    }

    fn move_some(&mut self) -> Result<usize> {
        let orders = self.child.stdin.as_mut().context("it was piped")?;
        orders.write_all(b"move\n")?;
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

/// What such a process does: opens them, says so, and until the end of its input has some carry a byte at each line.
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
    for line in std::io::stdin().lines() {
        line?;
        let mut moved = 0;
        for (opener, acceptor) in held.iter().step_by(100) {
            (&*opener).write_all(&[7])?;
            (&*acceptor).read_exact(&mut [0])?;
            moved += 2;
        }
        println!("{moved}");
    }
    drop(held);
    Ok(())
}
