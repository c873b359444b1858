// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a host is fit for fatpath: what is missing, what it costs, and the remedy.
//!
//! Facts in, checks out: this crate reads no file and asks no kernel. What could not be seen is a fact too
//! ([`Seen`]), and is reported as such. It changes nothing and advises no sysctl that nobody asked for: a value
//! is in the way only where it keeps the policy, or TCP on a long path, from working.
//!
//! Start at [`judge`]; [`path`] does the same for a path.

mod check;
mod conf;
mod facts;
mod network;
pub mod path;
mod report;
mod rivals;
mod service;
mod system;

pub use check::{Check, Level};
pub use conf::{ConfLine, sysctl_lines, tuned_includes, tuned_lines};
pub use facts::{Daemon, Facts, Laws, PolicyFile, Rivals, Seen, Sockops, System};
pub use network::SYSCTLS;
pub use report::{Report, write_wrapped};

/// Every check, in the order in which they are printed: what fatpath cannot do without comes first.
pub fn judge(facts: &Facts) -> Report {
    let checks = system::checks(&facts.system)
        .into_iter()
        .chain(network::checks(facts))
        .chain(rivals::checks(facts))
        .chain(service::checks(facts));
    Report {
        checks: checks.collect(),
    }
}

#[cfg(test)]
mod tests;
