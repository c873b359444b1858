// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a host. Whoever reads a host fills this in.

use crate::ConfLine;
use fatpath_policy::Policy;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A fact, or why it could not be seen.
pub type Seen<T> = Result<T, String>;

/// Everything that [`judge`](crate::judge) looks at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel and what is mounted.
    pub system: System,
    /// Congestion control.
    pub laws: Laws,
    /// The values of [`SYSCTLS`](crate::SYSCTLS), words separated by one space. One that is missing cannot be read
    /// here, as in a network namespace that does not have it.
    pub sysctls: BTreeMap<String, String>,
    /// The TCP memory at which the kernel's pressure begins, bytes.
    pub tcp_pressure_bytes: Option<u64>,
    /// The TCP memory in use, bytes.
    pub tcp_used_bytes: Option<u64>,
    /// Who else tunes.
    pub rivals: Rivals,
    /// Whether the group fatpath exists.
    pub has_group: bool,
    /// The daemon.
    pub daemon: Seen<Daemon>,
    /// The policy file.
    pub policy: PolicyFile,
    /// The version of this fatpath.
    pub version: &'static str,
}

/// The kernel and what is mounted.
#[derive(Clone, Debug)]
pub struct System {
    /// As `uname -r` prints it.
    pub kernel_release: String,
    /// Whether the kernel has type information (/sys/kernel/btf/vmlinux).
    pub has_btf: bool,
    /// Where cgroup 2 is mounted.
    pub cgroup2: Option<PathBuf>,
    /// Whether the BPF file system is mounted at /sys/fs/bpf.
    pub has_bpffs: bool,
    /// The least `memory.max` that holds for the daemon, bytes; `None` without one.
    pub daemon_memory_max_bytes: Seen<Option<u64>>,
    /// Whether something keeps the clock synchronised (adjtimex(2)).
    pub has_synchronised_clock: Seen<bool>,
}

/// Congestion control.
#[derive(Clone, Debug)]
pub struct Laws {
    /// What the kernel has registered (net.ipv4.tcp_available_congestion_control).
    pub registered: Seen<Vec<String>>,
    /// Those that fatpath brings.
    pub brought: Vec<String>,
    /// Those that another fatpath has registered, each with its pins or a word about where these are.
    pub of_others: Seen<Vec<(String, String)>>,
}

/// Who else tunes.
#[derive(Clone, Debug, Default)]
pub struct Rivals {
    /// The process of bpftune.
    pub bpftune_pid: Option<u32>,
    /// The active profile of tuned, while tuned runs.
    pub tuned_profile: Option<String>,
    /// The sysctls that this profile sets.
    pub tuned_lines: Vec<ConfLine>,
    /// The lines of the files of sysctl.d(5), in the order in which they are applied.
    pub sysctl_lines: Vec<ConfLine>,
    /// Programs of others on the root cgroup; `None` where cgroup 2 is not mounted.
    pub sockops: Option<Seen<Vec<Sockops>>>,
}

/// A sockops program of somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockops {
    /// The kernel's number of the program.
    pub id: u32,
    /// Its name, of 15 characters at most.
    pub name: String,
    /// Whether it lets no other program onto its cgroup (neither BPF_F_ALLOW_MULTI nor BPF_F_ALLOW_OVERRIDE).
    pub is_exclusive: bool,
}

/// What is there of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// It answers.
    Runs {
        /// Its process.
        pid: u32,
        /// Its version.
        version: String,
        /// What it says is wrong: a log, the archive, the page.
        errors: Vec<String>,
        /// Whether it lists flows a network namespace at a time.
        lists_by_namespace: bool,
    },
    /// None answers, but what one has loaded goes on.
    OnlyPins,
    /// Nothing is loaded.
    NotLoaded,
}

/// The policy file.
#[derive(Clone, Debug)]
pub struct PolicyFile {
    /// Its name.
    pub file: String,
    /// Whether there is one.
    pub is_there: bool,
    /// What it says; otherwise its problems, or why it cannot be read, a line each.
    pub policy: Result<Policy, Vec<String>>,
}
