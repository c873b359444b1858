// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a police is and what it did: from its pins alone.

use crate::abi;
use crate::error::KernelError;
use crate::pod::value_of;
use crate::police::orders::{Hook, Orders, PoliceMark, PoliceMode, hook_of, mark_of, mode_of};
use crate::police::{Police, get};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Segments and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Segments, as they are on the wire.
    pub pkts: u64,
    /// Bytes of their frames.
    pub bytes: u64,
}

/// What a police has seen and done since it was put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tallies {
    /// Not marked: passed.
    pub unmarked: Tally,
    /// Not marked, and dropped: their flows had a penalty.
    pub penalized: Tally,
    /// TCP by its IP header, but malformed: passed.
    pub malformed: Tally,
    /// Marked; the sum of those below.
    pub marked: Tally,
    /// Passed by an exception.
    pub excepted: Tally,
    /// Passed by the mode.
    pub passed: Tally,
    /// Dropped.
    pub dropped: Tally,
    /// Answered with RSTs.
    pub reset: Tally,
}

/// A police as it is now.
#[derive(Clone, Debug, Serialize)]
pub struct PoliceStatus {
    /// The interface's name when the police was put in place.
    pub interface: String,
    /// Inode of its network namespace.
    pub netns: u32,
    /// The interface's number there.
    pub ifindex: u32,
    /// What it does.
    pub mode: PoliceMode,
    /// With which segments.
    pub mark: PoliceMark,
    /// Where.
    pub hook: Hook,
    /// Whether packets meet it: false when the interface is gone, or somebody took the program off.
    pub is_in_place: bool,
    /// Whether it watches flows that are not marked.
    pub watches: bool,
    /// Since it was put in place.
    pub tallies: Tallies,
    /// Segments that each exception let through.
    pub exceptions: Vec<(String, u64)>,
}

impl PoliceStatus {
    /// What it was ordered to do; `None`: nothing is known of one that was cut short, or that another build put.
    pub fn orders(&self) -> Option<Orders> {
        let exceptions = self.exceptions.iter();
        (self.mark != PoliceMark::Dscp(0)).then(|| Orders {
            mode: self.mode,
            mark: self.mark,
            exceptions: exceptions
                .filter_map(|(prefix, _)| prefix.parse().ok())
                .collect(),
            watches: self.watches,
            hook: Some(self.hook),
        })
    }
}

impl Police {
    /// What it is and what it did; of one that was cut short while it was put, as far as it came.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn status(&self) -> Result<PoliceStatus, KernelError> {
        let facts = &self.facts;
        Ok(PoliceStatus {
            interface: self.interface(),
            netns: self.netns,
            ifindex: self.ifindex,
            mode: mode_of(facts),
            mark: mark_of(facts),
            hook: hook_of(facts),
            is_in_place: self.is_attached()?,
            watches: facts.watches == 1,
            tallies: self.tallies()?,
            exceptions: self.exceptions()?,
        })
    }

    fn tallies(&self) -> Result<Tallies, KernelError> {
        let Ok(map) = self.map("fp_police_tallies") else {
            return Ok(Tallies::default());
        };
        let of = |which: u32| -> Result<Tally, KernelError> {
            let values = map.lookup_percpu(which.as_bytes(), MapFlags::ANY);
            let values = values.map_err(KernelError::bpf("read the tallies"))?;
            let tallies = values.unwrap_or_default().into_iter();
            let tallies = tallies.filter_map(|value| value_of::<abi::fp_tally>(&value));
            Ok(tallies.fold(Tally::default(), |sum, tally| Tally {
                pkts: sum.pkts + tally.pkts,
                bytes: sum.bytes + tally.bytes,
            }))
        };
        Ok(Tallies {
            unmarked: of(abi::FP_TALLY_UNMARKED)?,
            penalized: of(abi::FP_TALLY_PENALIZED)?,
            malformed: of(abi::FP_TALLY_CUT)?,
            marked: of(abi::FP_TALLY_MARKED)?,
            excepted: of(abi::FP_TALLY_EXCEPTED)?,
            passed: of(abi::FP_TALLY_PASSED)?,
            dropped: of(abi::FP_TALLY_DROPPED)?,
            reset: of(abi::FP_TALLY_RESET)?,
        })
    }

    fn exceptions(&self) -> Result<Vec<(String, u64)>, KernelError> {
        let Ok(map) = self.map("fp_police_exceptions") else {
            return Ok(Vec::new());
        };
        let keys = map.keys().collect::<Vec<_>>().into_iter();
        let keys = keys.filter_map(|key| value_of::<abi::fp_address_key>(&key));
        let counted: Result<Vec<(String, u64)>, KernelError> =
            keys.map(|key| Ok((shown(&key), get(&map, key)?))).collect();
        let mut counted = counted?;
        counted.retain(|(_, pkts)| *pkts != abi::FP_NOT_EXCEPTED);
        Ok(counted)
    }
}

fn shown(key: &abi::fp_address_key) -> String {
    let address = Ipv6Addr::from(key.address);
    match address.to_ipv4_mapped() {
        Some(address) if key.prefix_len >= 96 => format!("{address}/{}", key.prefix_len - 96),
        _ => format!("{address}/{}", key.prefix_len),
    }
}
