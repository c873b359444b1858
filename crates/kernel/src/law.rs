// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry of congestion-control laws, one for the whole host.
//!
//! The kernel says which of its struct_ops maps are registered, the pins say whose they are. A
//! registered map of ours that nobody has pinned reads a policy that is gone, and keeps its name: an
//! orphan. Only the BPF file systems that this process sees are searched.

use crate::KernelError;
use crate::pins::{LAW_PREFIX, name_of, pins};
use fatpath_policy::OUR_PREFIX;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, MapType};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// `struct bpf_struct_ops_common_value` begins every value: the reference count, then the state.
const STATE: std::ops::Range<usize> = 4..8;

/// BPF_STRUCT_OPS_STATE_INUSE.
const IN_USE: u32 = 1;

/// A law that another instance has registered: its flows follow that instance's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OthersLaw {
    /// The kernel's name for it.
    pub law: String,
    /// Directory of the owner's pins.
    pub pin_dir: PathBuf,
}

impl From<OthersLaw> for KernelError {
    fn from(other: OthersLaw) -> KernelError {
        KernelError::OthersLaw {
            law: other.law,
            owner: other.pin_dir,
        }
    }
}

/// A registered map and the directory in which it is pinned.
struct Registered {
    law: String,
    map: MapHandle,
    pin_dir: Option<PathBuf>,
}

/// The laws of ours that other instances than the one with its pins at `own` have registered.
pub fn laws_of_others(own: &Path) -> Vec<OthersLaw> {
    let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
    let owned = registered_maps().into_iter().filter_map(|registered| {
        let (law, pin_dir) = (registered.law, registered.pin_dir?);
        Some(OthersLaw { law, pin_dir })
    });
    owned.filter(|other| other.pin_dir != own).collect()
}

/// Unregisters the laws of ours that nobody has pinned; their names.
pub(crate) fn take_orphans_away() -> Vec<String> {
    let orphans = registered_maps().into_iter();
    let orphans = orphans.filter(|registered| registered.pin_dir.is_none());
    let gone = orphans.filter(|orphan| orphan.map.delete(&0u32.to_ne_bytes()).is_ok());
    gone.map(|orphan| orphan.law).collect()
}

fn registered_maps() -> Vec<Registered> {
    let pinned: Vec<(u32, PathBuf)> = fatpath_mounts::mounts_of("bpf")
        .unwrap_or_default()
        .iter()
        .flat_map(|fs| law_pins(fs))
        .collect();
    let ours = MapInfoIter::default().filter(|info| {
        info.ty == MapType::StructOps && info.name.to_string_lossy().starts_with(OUR_PREFIX)
    });
    ours.filter_map(|info| {
        let map = MapHandle::from_map_id(info.id).ok().filter(is_in_use)?;
        let pin = pinned.iter().find(|(id, _)| *id == info.id);
        Some(Registered {
            law: info.name.to_string_lossy().into_owned(),
            map,
            pin_dir: pin.map(|(_, directory)| directory.clone()),
        })
    })
    .collect()
}

fn is_in_use(map: &MapHandle) -> bool {
    let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
    let state = value
        .ok()
        .flatten()
        .and_then(|value| value.get(STATE)?.try_into().ok());
    state.map(u32::from_ne_bytes) == Some(IN_USE)
}

/// Ids of the laws' maps pinned in `directory` and below, each with its directory.
fn law_pins(directory: &Path) -> Vec<(u32, PathBuf)> {
    let mut found = Vec::new();
    for pin in pins(directory).unwrap_or_default() {
        if pin.is_dir() {
            found.extend(law_pins(&pin));
        } else if name_of(&pin).starts_with(LAW_PREFIX)
            && let Ok(map) = MapHandle::from_pinned_path(&pin)
            && let Ok(info) = MapInfo::new(map.as_fd())
        {
            found.push((info.info.id, directory.to_path_buf()));
        }
    }
    found
}

/// The laws that a flow can be given now, by the kernel's names.
///
/// # Errors
/// When /proc/sys cannot be read.
pub fn registered_laws() -> Result<Vec<String>, KernelError> {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(list).map_err(KernelError::io(format!("read {list}")))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The law that new sockets of this thread's network namespace get.
pub(crate) fn default_law() -> Result<String, KernelError> {
    let name = "/proc/sys/net/ipv4/tcp_congestion_control";
    let text = std::fs::read_to_string(name).map_err(KernelError::io(format!("read {name}")))?;
    Ok(text.trim().to_owned())
}
