// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel half, seen from user space: loads, pins, updates, reads and removes it.
//!
//! The only crate that knows libbpf. It decides nothing: the policy comes compiled
//! from `fatpath-policy`, what a flow's record means is the caller's affair. Programs,
//! maps and links live in a directory of the BPF file system, so they outlive every
//! process; a [`Kernel`] is a handle on what is pinned there.
//!
//! Start at [`Kernel::load`], then [`Kernel::publish`] and [`Kernel::unload`].

#[allow(clippy::all)] // generated
mod abi;
mod cgroup;
mod clock;
mod error;
mod events;
mod flow;
mod instruments;
mod law;
mod load;
mod maps;
mod mark;
mod netns;
mod options;
mod places;
mod pod;
mod police;
mod police_hook;
mod police_orders;
mod police_status;
mod publish;
mod rehearsal;
mod rude;
mod rule;
mod samples;
mod status;
mod tc;
mod unload;
mod users;
mod walk;
mod watch;

pub use cgroup::{cgroup_directory, cgroup_id, cgroup_path};
pub use clock::monotonic_ns;
pub use error::KernelError;
pub use events::{Event, Events};
pub use flow::{Endpoint, Flow, Limits, Measures, Opened, SettingReport, SettingValue};
pub use instruments::SampleCounts;
pub use law::{OthersLaw, laws_of_others, registered_laws};
pub use load::{Kernel, Missing, Takeover};
pub use mark::Marking;
pub use places::{Places, bpffs, bpffs_is_mounted, mount_bpffs};
pub use police::Police;
pub use police_orders::{Hook, Orders, PoliceMark, PoliceMode};
pub use police_status::{PoliceStatus, Tallies, Tally};
pub use publish::Published;
pub use rehearsal::Rehearsal;
pub use rude::{Gated, RudeFlow, RudeGate, RudeMark, RudeMode, RudeStatus};
pub use samples::Samples;
pub use status::{Counts, Pinned, Status};
pub use unload::Unloaded;
pub use users::{Account, account};
pub use walk::Walked;
pub use watch::{Suspect, Watch};
