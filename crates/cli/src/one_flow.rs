// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which connection is meant: two ends, or what the daemon knows by less.

use crate::not_running::not_running;
use anyhow::{Context, Result, bail};
use fatpath_api::TunedFlow;
use fatpath_api::endpoint::GetFlows;
use fatpath_daemon::{Instance, client};
use std::net::SocketAddr;

/// Local and remote end.
pub fn ends(given: &[String], instance: &Instance) -> Result<[SocketAddr; 2]> {
    match given {
        [local, remote] => Ok([end(local)?, end(remote)?]),
        [one] => {
            let flows = client::get::<GetFlows>(&instance.socket())?;
            let flows = flows.with_context(|| {
                format!(
                    "{}; without a daemon give both ends, local and remote ADDRESS:PORT",
                    not_running(instance)
                )
            })?;
            only(one, &flows)
        }
        _ => bail!("give one flow: its two ends, its remote end, or its cookie"),
    }
}

fn end(text: &str) -> Result<SocketAddr> {
    let end = text.parse();
    end.with_context(|| {
        format!("'{text}' is not ADDRESS:PORT, such as 10.0.0.1:443 or [2001:db8::1]:443")
    })
}

/// The flow that has this cookie, or this remote end.
fn only(text: &str, flows: &[TunedFlow]) -> Result<[SocketAddr; 2]> {
    let is_it: Box<dyn Fn(&TunedFlow) -> bool> = match text.parse::<u64>() {
        Ok(cookie) => Box::new(move |flow| flow.flow.cookie == cookie),
        Err(_) => {
            let remote = end(text)?;
            Box::new(move |flow| flow.flow.remote == remote)
        }
    };
    let found: Vec<&TunedFlow> = flows.iter().filter(|flow| is_it(flow)).collect();
    match found[..] {
        [one] => Ok([one.flow.local, one.flow.remote]),
        [] => bail!("no flow {text}: `fatpath flows` lists them"),
        _ => bail!(
            "{} flows have the remote end {text}: give the local end, too",
            found.len()
        ),
    }
}
