// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host must allow so that the rules can take effect: the `[host]` section.
//!
//! Only five sysctls are known, because only they bound what the rules set. Nothing here raises one;
//! the daemon does, and it never lowers. Start at [`HostSettings`].

use crate::Chosen;
use serde::{Serialize, Serializer};
use std::fmt;

/// The `[host]` section.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HostSettings {
    /// The sysctls to raise, at most one of each name. An `"auto"` that no rule asks for is left out.
    pub sysctls: Vec<Sysctl>,
    /// Of the TCP memory at which the kernel's pressure begins (the second number of net.ipv4.tcp_mem), the share
    /// beyond which no flow is given a buffer above the kernel's own, in thousandths; `None`: all of it.
    pub tcp_mem_share_milli: Option<u32>,
    /// Of one processor, the share that sampling flows may take, in thousandths; `None`: 20.
    pub sample_cpu_share_milli: Option<u32>,
    /// Samples of all flows a second, at most; `None`: only the share bounds them.
    pub samples_per_s: Option<u32>,
}

/// One sysctl to raise when it is lower.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sysctl {
    /// Which one.
    pub name: SysctlName,
    /// The least value that it must have, 1 to 2^31 - 1; of a triple, the third (the maximum).
    pub at_least: Chosen<u32>,
    /// The line of the file, from 1.
    pub line: u32,
}

/// The sysctls that a policy can raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SysctlName {
    /// The most that SO_RCVBUF takes, in bytes.
    CoreRmemMax,
    /// The most that SO_SNDBUF takes, in bytes.
    CoreWmemMax,
    /// Three values in bytes of memory; the third bounds the receive buffer's own growth.
    TcpRmem,
    /// Three values in bytes of memory; the third bounds the send buffer's own growth.
    TcpWmem,
    /// 1: windows above 64 KiB (RFC 7323).
    TcpWindowScaling,
}

impl SysctlName {
    /// All five.
    pub const ALL: [SysctlName; 5] = [
        SysctlName::CoreRmemMax,
        SysctlName::CoreWmemMax,
        SysctlName::TcpRmem,
        SysctlName::TcpWmem,
        SysctlName::TcpWindowScaling,
    ];

    /// The name as sysctl(8) writes it; with `/` for `.`, the path under /proc/sys.
    pub fn as_str(self) -> &'static str {
        match self {
            SysctlName::CoreRmemMax => "net.core.rmem_max",
            SysctlName::CoreWmemMax => "net.core.wmem_max",
            SysctlName::TcpRmem => "net.ipv4.tcp_rmem",
            SysctlName::TcpWmem => "net.ipv4.tcp_wmem",
            SysctlName::TcpWindowScaling => "net.ipv4.tcp_window_scaling",
        }
    }

    /// Whether the sysctl holds three values, of which the third is meant.
    pub fn is_triple(self) -> bool {
        matches!(self, SysctlName::TcpRmem | SysctlName::TcpWmem)
    }
}

impl HostSettings {
    /// The share of the TCP memory beyond which buffers are withheld, in thousandths.
    pub fn tcp_mem_share_milli(&self) -> u32 {
        self.tcp_mem_share_milli.unwrap_or(1000)
    }

    /// So many samples a second may be made of all flows if one costs `sample_ns` of a processor's time; at least 1.
    pub fn sample_budget(&self, sample_ns: u64) -> u32 {
        let share_ns = u64::from(self.sample_cpu_share_milli.unwrap_or(20)) * 1_000_000;
        let paid = (share_ns / sample_ns.max(1)).clamp(1, u32::MAX.into()) as u32;
        paid.min(self.samples_per_s.unwrap_or(u32::MAX))
    }

    /// The least value that the policy gives for a sysctl.
    pub fn at_least(&self, name: SysctlName) -> Option<u32> {
        self.sysctls
            .iter()
            .find(|sysctl| sysctl.name == name)
            .map(|found| found.at_least.value)
    }
}

impl HostSettings {
    /// Raises what the other raises more.
    pub(crate) fn raise_with(&mut self, other: &HostSettings) {
        for more in &other.sysctls {
            let mut known = self.sysctls.iter_mut();
            match known.find(|known| known.name == more.name) {
                Some(known) if known.at_least.value < more.at_least.value => *known = more.clone(),
                Some(_) => {}
                None => self.sysctls.push(more.clone()),
            }
        }
    }
}

impl fmt::Display for SysctlName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for SysctlName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
