// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry of congestion-control laws, one for the whole host.
//!
//! The kernel says which of its struct_ops maps are registered, the pins say whose they are. Pins can only be
//! searched in the BPF file systems that this process sees; a container or another mount namespace may have one of
//! its own. The ids of programs and maps are the host's: as long as an instance is loaded, programs other than its
//! laws use its maps. A law whose maps no other program uses is an orphan: it reads a policy that nobody can change
//! any more, and keeps its name.

use crate::KernelError;
use crate::pins::{LAW_PREFIX, name_of, pins, staging};
use fatpath_policy::OUR_PREFIX;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, MapType, ProgramType};
use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `struct bpf_struct_ops_common_value` begins every value: the reference count, then the state.
const STATE: std::ops::Range<usize> = 4..8;

/// BPF_STRUCT_OPS_STATE_INUSE.
const IN_USE: u32 = 1;

/// A program that has just lost its last reference is listed until a grace period of the kernel is over.
const GRACE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);

/// A law that another instance has registered: its flows follow that instance's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OthersLaw {
    /// The kernel's name for it.
    pub law: String,
    /// Directory of the owner's pins; `None`: in no BPF file system that this process sees.
    pub pin_dir: Option<PathBuf>,
}

impl From<OthersLaw> for KernelError {
    fn from(other: OthersLaw) -> KernelError {
        let law = other.law;
        match other.pin_dir {
            Some(owner) => KernelError::OthersLaw { law, owner },
            None => KernelError::UnseenLaw(law),
        }
    }
}

/// Who uses a registered law.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// The instance with its pins in this directory.
    Pins(PathBuf),
    /// An instance whose pins are not seen here, or nothing is known of it.
    Unseen,
    Nobody,
}

struct Registered {
    law: String,
    map: MapHandle,
    owner: Owner,
}

/// The laws of ours that other instances than the one with its pins at `own` have registered.
pub fn laws_of_others(own: &Path) -> Vec<OthersLaw> {
    let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
    let own = [staging(&own), own];
    let of_another = |registered: Registered| {
        let pin_dir = match registered.owner {
            Owner::Nobody => return None,
            Owner::Unseen => None,
            Owner::Pins(pin_dir) if own.contains(&pin_dir) => return None,
            Owner::Pins(pin_dir) => Some(pin_dir),
        };
        let law = registered.law;
        Some(OthersLaw { law, pin_dir })
    };
    let registered = registered_maps().into_iter();
    registered.filter_map(of_another).collect()
}

/// Unregisters the laws of ours that nobody uses.
pub(crate) fn take_orphans_away() {
    unregister(|owner| *owner == Owner::Nobody);
}

/// Unregisters the laws of ours that are pinned in no BPF file system that this process sees, also those of an
/// instance that lives where it cannot be seen. Answers their names.
pub fn unregister_unseen_laws() -> Vec<String> {
    unregister(|owner| !matches!(owner, Owner::Pins(_)))
}

/// Flows that have such a law keep its code until they end or get another.
fn unregister(is_to_go: impl Fn(&Owner) -> bool) -> Vec<String> {
    let registered = registered_maps().into_iter();
    let to_go = registered.filter(|registered| is_to_go(&registered.owner));
    let gone = to_go.filter(|law| law.map.delete(&0u32.to_ne_bytes()).is_ok());
    gone.map(|law| law.law).collect()
}

/// Asks again while an instance that is not seen may be about to disappear.
fn registered_maps() -> Vec<Registered> {
    let end = Instant::now() + GRACE;
    loop {
        let listed = list_registered();
        let is_settled = listed.iter().all(|law| law.owner != Owner::Unseen);
        if is_settled || Instant::now() > end {
            return listed;
        }
        std::thread::sleep(TICK);
    }
}

fn list_registered() -> Vec<Registered> {
    let pinned: Vec<(u32, PathBuf)> = fatpath_mounts::mounts_of("bpf")
        .unwrap_or_default()
        .iter()
        .flat_map(|fs| law_pins(fs))
        .collect();
    let ours = MapInfoIter::default().filter(|info| {
        info.ty == MapType::StructOps && info.name.to_string_lossy().starts_with(OUR_PREFIX)
    });
    let registered = ours.filter_map(|info| {
        let map = MapHandle::from_map_id(info.id).ok()?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        is_in_use(&value).then_some((info, map, value))
    });
    let registered: Vec<_> = registered.collect();
    // After the laws: an instance that registers one has its other programs already.
    let programs = Programs::of_the_host();
    let owned = registered.into_iter().map(|(info, map, value)| {
        let pin = pinned.iter().find(|(id, _)| *id == info.id);
        let owner = match pin {
            Some((_, directory)) => Owner::Pins(directory.clone()),
            None if programs.is_orphan(&value) => Owner::Nobody,
            None => Owner::Unseen,
        };
        let law = info.name.to_string_lossy().into_owned();
        Registered { law, map, owner }
    });
    owned.collect()
}

/// Which maps the programs of the host use, by ids.
struct Programs {
    maps_of_laws: HashMap<u32, Vec<u32>>,
    maps_of_others: HashSet<u32>,
}

impl Programs {
    fn of_the_host() -> Programs {
        let mut programs = Programs {
            maps_of_laws: HashMap::new(),
            maps_of_others: HashSet::new(),
        };
        let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
        for program in ProgInfoIter::with_query_opts(with_maps) {
            match program.ty {
                ProgramType::StructOps => {
                    programs.maps_of_laws.insert(program.id, program.map_ids);
                }
                _ => programs.maps_of_others.extend(program.map_ids),
            }
        }
        programs
    }

    /// The kernel shows a struct_ops map's functions as the ids of their programs, one a word. A word that is no
    /// function and equals an id can only add maps: an instance that is loaded is never taken for an orphan.
    fn is_orphan(&self, value: &[u8]) -> bool {
        let (words, _) = value.as_chunks::<8>();
        let ids = words.iter().map(|word| u64::from_ne_bytes(*word));
        let ids = ids.filter_map(|id| u32::try_from(id).ok());
        let mut maps = ids
            .filter_map(|id| self.maps_of_laws.get(&id))
            .flatten()
            .peekable();
        maps.peek().is_some() && maps.all(|map| !self.maps_of_others.contains(map))
    }
}

fn is_in_use(value: &[u8]) -> bool {
    let state = value.get(STATE).and_then(|state| state.try_into().ok());
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
///
/// # Errors
/// When /proc/sys cannot be read.
pub fn default_law() -> Result<String, KernelError> {
    let name = "/proc/sys/net/ipv4/tcp_congestion_control";
    let text = std::fs::read_to_string(name).map_err(KernelError::io(format!("read {name}")))?;
    Ok(text.trim().to_owned())
}
