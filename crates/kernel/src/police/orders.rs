// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a police is to do: as it is asked for, and as the kernel half has it.
//!
//! Start at [`Orders`].

use crate::abi;
use fatpath_policy::Prefix;
use serde::Serialize;

/// What becomes of marked segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoliceMode {
    /// They pass, and are counted.
    Count,
    /// None passes.
    Drop,
    /// Both ends of the connection get a RST.
    Reset,
    /// All of them together get so many bits a second.
    Limit(u64),
}

/// How a marked segment is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoliceMark {
    /// All of these bits of the two bytes after the acknowledgement number, among 0x0f00.
    Bits(u16),
    /// This DSCP, 1 to 63.
    Dscp(u8),
}

/// Where packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// In the driver, before the kernel makes anything of a packet.
    Xdp,
    /// At clsact's ingress.
    Tc,
}

/// What a police is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// With marked segments.
    pub mode: PoliceMode,
    /// Which are marked.
    pub mark: PoliceMark,
    /// Marked segments from or to these pass.
    pub exceptions: Vec<Prefix>,
    /// Whether flows that are not marked are watched.
    pub watches: bool,
    /// Where; by default XDP where the driver has it, else tc.
    pub hook: Option<Hook>,
}

/// Marked segments, those of fatpath's default mark, are counted.
impl Default for Orders {
    fn default() -> Orders {
        Orders {
            mode: PoliceMode::Count,
            mark: PoliceMark::Bits(0x200),
            exceptions: Vec::new(),
            watches: false,
            hook: None,
        }
    }
}

impl Orders {
    /// As the kernel half has them; of an interface nothing yet.
    pub(crate) fn facts(&self) -> abi::fp_police {
        let (mode, limit_bps) = match self.mode {
            PoliceMode::Count => (abi::FP_POLICE_COUNT, 0),
            PoliceMode::Drop => (abi::FP_POLICE_DROP, 0),
            PoliceMode::Reset => (abi::FP_POLICE_RESET, 0),
            PoliceMode::Limit(bps) => (abi::FP_POLICE_LIMIT, bps),
        };
        let (mark_bits, mark_dscp) = match self.mark {
            PoliceMark::Bits(bits) => (u32::from(bits), 0),
            PoliceMark::Dscp(dscp) => (0, u32::from(dscp)),
        };
        abi::fp_police {
            limit_bps,
            mode,
            mark_bits,
            mark_dscp,
            has_exceptions: u32::from(!self.exceptions.is_empty()),
            watches: self.watches.into(),
            ..Default::default()
        }
    }

    /// The counters of the exceptions as they begin. Both families share the key space: each has its
    /// default, which an exception of the same length replaces.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (abi::fp_address_key, u64)> {
        let defaults = [Prefix::ANY_V6, Prefix::ANY_V4];
        let defaults = defaults.map(|prefix| (key_of(&prefix), abi::FP_NOT_EXCEPTED));
        let exceptions = self.exceptions.iter().map(|prefix| (key_of(prefix), 0));
        defaults.into_iter().chain(exceptions)
    }
}

fn key_of(prefix: &Prefix) -> abi::fp_address_key {
    abi::fp_address_key {
        prefix_len: u32::from(prefix.key_bits()),
        address: prefix.key(),
    }
}

pub(crate) fn mode_of(facts: &abi::fp_police) -> PoliceMode {
    match facts.mode {
        abi::FP_POLICE_DROP => PoliceMode::Drop,
        abi::FP_POLICE_RESET => PoliceMode::Reset,
        abi::FP_POLICE_LIMIT => PoliceMode::Limit(facts.limit_bps),
        _ => PoliceMode::Count,
    }
}

pub(crate) fn mark_of(facts: &abi::fp_police) -> PoliceMark {
    match facts.mark_bits {
        0 => PoliceMark::Dscp(facts.mark_dscp as u8),
        bits => PoliceMark::Bits(bits as u16),
    }
}

pub(crate) fn hook_of(facts: &abi::fp_police) -> Hook {
    match facts.hook {
        abi::FP_POLICE_XDP => Hook::Xdp,
        _ => Hook::Tc,
    }
}
