// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong between user space and the kernel half, each with its remedy.

use std::io;
use std::path::PathBuf;

/// Why an operation on the kernel half failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The process may not use BPF.
    #[error(
        "not permitted to load BPF programs: run as root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)"
    )]
    NotPermitted,
    /// No cgroup-2 hierarchy is mounted.
    #[error(
        "no cgroup of version 2 is mounted: mount it with `mount -t cgroup2 none /sys/fs/cgroup/unified`"
    )]
    NoCgroup2,
    /// The kernel has no type information.
    #[error(
        "the kernel has no BTF (/sys/kernel/btf/vmlinux is missing): a kernel with \
         CONFIG_DEBUG_INFO_BTF=y is needed; nothing of fatpath's kernel half works without it"
    )]
    NoBtf,
    /// No BPF file system, and none could be mounted.
    #[error("no BPF file system at {}: mount it with `mount -t bpf bpf {}`", .0.display(), .0.display())]
    NoBpffs(PathBuf),
    /// Nothing is pinned where a loaded kernel half was expected.
    #[error("nothing is loaded at {}, so no flow is tuned: start the daemon (systemctl start fatpath, or fatpath daemon)", .0.display())]
    NotLoaded(PathBuf),
    /// The place of the pins is a link, or another user's directory: he could put pins of his own there.
    #[error(
        "{} does not belong to root, or is not a directory: find out who made it, and remove it; nobody else can make \
         it when the BPF file system is mounted with mode=0700", .0.display()
    )]
    NotOurs(PathBuf),
    /// Another process may change what is pinned.
    #[error("another fatpath daemon uses the pins at {}", .0.display())]
    InUse(PathBuf),
    /// The law's name is another instance's: its flows would follow that one's parameters.
    #[error(
        "the law {law} is registered by another fatpath, with its pins at {}: unload that one \
         (`fatpath unload --pin-dir {}`), or do not use {law} here", .owner.display(), .owner.display()
    )]
    OthersLaw {
        /// The kernel's name for the law.
        law: String,
        /// Directory of the owner's pins.
        owner: PathBuf,
    },
    /// The same, of an instance whose pins are in a BPF file system that this process does not see.
    #[error(
        "the law {0} is registered by another fatpath, whose pins are in no BPF file system that is mounted here, but in \
         that of a container or of another mount namespace: unload it there, or do not use {0} here; if nobody can reach \
         it any more, `fatpath unload --orphans` unregisters its laws"
    )]
    UnseenLaw(String),
    /// libbpf or the kernel refused a step. Told with the causes, of which libbpf's own words are the first.
    #[error("cannot {step}: {source:#}{}", .log.as_deref().map(|l| format!("\n{l}")).unwrap_or_default())]
    Bpf {
        /// What was tried.
        step: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
        /// What libbpf printed meanwhile.
        log: Option<String>,
    },
    /// A file of the BPF file system, of cgroupfs or of /proc could not be used.
    #[error("cannot {step}: {source}")]
    Io {
        /// What was tried.
        step: String,
        /// The system's error.
        source: io::Error,
    },
    /// The build that is loaded goes on.
    #[error("{0}; the build of fatpath that is loaded was not replaced and goes on tuning")]
    NotReplaced(#[source] Box<KernelError>),
    /// More rules than ids: policies were replaced faster than flows could leave the old rules.
    #[error("no free rule id: {0} rules are in use; run `fatpath policy apply` again")]
    NoRuleId(usize),
}

impl KernelError {
    /// Whether a law is missing because another instance has registered it: the kernel has refused nothing.
    pub fn is_anothers_law(&self) -> bool {
        matches!(self, Self::OthersLaw { .. } | Self::UnseenLaw(_))
    }

    pub(crate) fn bpf(step: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> KernelError {
        let step = step.into();
        move |source| KernelError::Bpf {
            step,
            source,
            log: None,
        }
    }

    pub(crate) fn io(step: impl Into<String>) -> impl FnOnce(io::Error) -> KernelError {
        let step = step.into();
        move |source| KernelError::Io { step, source }
    }
}
