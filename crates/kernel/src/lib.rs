// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel half, seen from user space: loads, pins, updates, reads and removes it.
//!
//! The only crate that knows libbpf. It decides nothing: the policy comes compiled
//! from `fatpath-policy`, what a flow's record means is the caller's affair. Programs,
//! maps and links live in a directory of the BPF file system, so they outlive every
//! process; a [`Kernel`] is a handle on what is pinned there.
//!
//! Start at [`Kernel::load`], then [`Kernel::publish`] and [`Kernel::unload`].

mod bbr;
mod build;
mod cgroup;
mod error;
mod events;
mod handle;
mod hooks;
mod instruments;
mod law;
mod libbpf_log;
mod load;
mod maps;
mod namespaces;
mod neighbours;
mod object;
mod phases;
mod pins;
mod places;
mod police;
mod release;
mod rude;
mod status;
mod tc;
mod tune;
mod unload;
mod upgrade;
mod users;

use fatpath_abi::{self as abi, pod};

pub use build::Build;
pub use cgroup::{cgroup_directory, cgroup_id, cgroup_memory_max, cgroup_path};
pub use error::KernelError;
pub use events::{Event, Events};
pub use handle::Kernel;
pub use instruments::budget::TimedSamples;
pub use instruments::samples::Samples;
pub use law::{OthersLaw, default_law, laws_of_others, registered_laws, unregister_unseen_laws};
pub use load::{Missing, Takeover};
pub use namespaces::netns_here;
pub use neighbours::{Neighbour, sockops_of_others};
pub use phases::{GATE as PHASE_GATE, Phases};
pub use places::{Places, bpffs, bpffs_is_mounted, mount_bpffs};
pub use police::Police;
pub use police::orders::{Hook, Orders, PoliceMark, PoliceMode};
pub use police::rehearsal::Rehearsal;
pub use police::status::{PoliceStatus, Tallies, Tally};
pub use police::watch::{Suspect, Watch};
pub use rude::mark::Marking;
pub use rude::user_number;
pub use tune::flow::tick_us;
pub use tune::paths::{KnownPath, PathAddresses, PathChange, PathRule};
pub use tune::publish::Published;
pub use tune::rule::is_path_rule;
pub use tune::walk::Walked;
pub use unload::Unloaded;
pub use users::{Account, account, has_group};
