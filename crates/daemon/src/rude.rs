// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a program of this host may send datagrams without congestion control: the gate, where it is open, and the policy.
//! Segments of TCP are the kernel half's (`may_be_rude()` in bpf/include/rude.h).

use crate::engine::Engine;
use anyhow::Result;
use fatpath_api::{RudePermission, RudePermit};
use fatpath_kernel::user_number;
use fatpath_page::Asking;
use fatpath_policy::{Flow, Policy, User};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;

/// Senders ask again each second: one that misses two answers goes on with congestion control.
const GOOD_FOR_MS: u32 = 3000;

/// What decides at this moment; the policy is looked into by [`by_policy`], which asks for names of users and so may take long.
pub(crate) struct Terms {
    dscp: u8,
    policy: Policy,
}

/// What decides about datagrams of `asking`, or why none may leave.
///
/// # Errors
/// When a map of the kernel half cannot be read.
pub(crate) fn terms(engine: &Engine, asking: Asking) -> Result<Result<Terms, String>> {
    let Some(namespace) = namespace_of(asking) else {
        let why = "the daemon does not see the program's process, and so not its network namespace";
        return Ok(Err(why.to_owned()));
    };
    let dscp = match engine.kernel.rude_gate()?.dscp_of_datagrams() {
        Ok(dscp) => dscp,
        Err(why) => return Ok(Err(why)),
    };
    if !engine.kernel.marks_in(namespace)? {
        let why = "the gate is not open in the network namespace of the program: as root, `fatpath rude on --mark dscp=N \
                   --netns NAME`";
        return Ok(Err(why.to_owned()));
    }
    let policy = engine.policy.clone();
    Ok(Ok(Terms { dscp, policy }))
}

/// The answer to `asking`, of datagrams to `destination`.
pub(crate) fn by_policy(terms: &Terms, asking: Asking, destination: SocketAddr) -> RudePermission {
    let flow = Flow {
        destination_port: Some(destination.port()),
        cgroup: asking.process.and_then(cgroup_of),
        ..Flow::to(destination.ip())
    };
    let is_listed = |user: &User| user_number(user) == Some(asking.user);
    match terms.policy.rude_share(&flow, is_listed) {
        Ok(share) => RudePermission::Granted(RudePermit {
            rule: share.rule,
            rate_bps: share.rate_bps,
            dscp: terms.dscp,
            good_for_ms: GOOD_FOR_MS,
        }),
        Err(why) => RudePermission::Refused(why.to_string()),
    }
}

/// The inode of its network namespace; `None`: it has ended, or is in a process namespace that this one does not see.
fn namespace_of(asking: Asking) -> Option<u32> {
    let process = asking.process.filter(|process| *process > 0)?;
    let namespace = std::fs::metadata(format!("/proc/{process}/ns/net")).ok()?;
    Some(namespace.ino() as u32)
}

/// The path of its cgroup of version 2.
fn cgroup_of(process: i32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(user: u32, destination: &str) -> RudePermission {
        let policy = "[[rule]]\nname = 'own'\ndestination = ['192.0.2.0/24']\ncgroup = '/no.such'\nrude = 'never'\n\
             [[rule]]\nname = 'lent'\ndestination = ['192.0.2.0/24']\ndestination_ports = [50000]\n\
             rude = 'allowed'\nrude_rate = '900mbit'\nrude_users = ['root', 77]\n";
        let policy = fatpath_policy::parse(policy, None).expect("it is a policy");
        let process = i32::try_from(std::process::id()).ok();
        let asking = Asking { user, process };
        let terms = Terms { dscp: 44, policy };
        by_policy(&terms, asking, destination.parse().expect("one"))
    }

    #[test]
    fn the_user_the_cgroup_and_the_port_decide() {
        for user in [0, 77] {
            let permit = RudePermit {
                rule: "lent".to_owned(),
                rate_bps: 900_000_000,
                dscp: 44,
                good_for_ms: GOOD_FOR_MS,
            };
            assert_eq!(
                asked(user, "192.0.2.1:50000"),
                RudePermission::Granted(permit)
            );
        }
        for (user, destination, told) in [
            (78, "192.0.2.1:50000", "rude_users"),
            (0, "192.0.2.1:50001", "no rule"),
            (0, "192.0.3.1:50000", "no rule"),
        ] {
            match asked(user, destination) {
                RudePermission::Refused(why) => assert!(why.contains(told), "{why}"),
                RudePermission::Granted(permit) => panic!("{destination}: {permit:?}"),
            }
        }
    }
}
