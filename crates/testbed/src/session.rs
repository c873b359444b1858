// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who brought a lab up: a session (a terminal's, a job's) and its user.
//!
//! `lab down` without a name takes down only what its own session brought up. Start with
//! [`Session::of_this_process`].

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::machine;

/// A session and its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    leader: u32,
    leader_start_ticks: u64,
    /// Of several users who are root by sudo, the one who called it.
    user: String,
}

impl Session {
    /// `None` where the leader is gone, or cannot be seen from this PID namespace.
    pub fn of_this_process() -> Option<Session> {
        let leader = leader_before_sudo(std::process::id())?;
        let user = std::env::var("SUDO_UID").unwrap_or_else(|_| getuid().as_raw().to_string());
        Some(Session {
            leader,
            leader_start_ticks: machine::start_ticks(leader)?,
            user,
        })
    }
}

/// The session's leader. sudo may run each command in a session of its own (`use_pty`): its caller's counts.
fn leader_before_sudo(pid: u32) -> Option<u32> {
    let mut lineage = machine::lineage(pid)?;
    while let Some(parent) = machine::lineage(lineage.parent).filter(|it| it.name == "sudo") {
        lineage = machine::lineage(parent.parent)?;
    }
    Some(lineage.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_of_the_session_of_its_parent() {
        let here = leader_before_sudo(std::process::id()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert_eq!(leader_before_sudo(child.id()), Some(here));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
