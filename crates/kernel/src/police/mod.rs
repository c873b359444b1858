// SPDX-License-Identifier: MIT OR Apache-2.0
//! The police of an interface: put in place, found, taken away. No daemon takes part in it.
//!
//! Each police has a directory of pins of its own, named by the network namespace and the interface's
//! number there: its maps, and its program. What is needed to undo it is pinned before it is done.
//!
//! Start at [`Police::put`].

mod conformity;
mod hook;
pub(crate) mod orders;
mod penalty;
pub(crate) mod rehearsal;
pub(crate) mod status;
pub(crate) mod watch;

use crate::abi;
use crate::error::KernelError;
use crate::libbpf_log::{last_said, quieten_libbpf};
use crate::namespaces::{namespaces, netns_here, netns_of, within};
use crate::pins::{name_of, pins};
use crate::pod::{Pod, field_of, text_of, value_of};
use crate::police::orders::{Hook, Orders};
use crate::rude::mark::{is_bare, is_ethernet};
use fatpath_netlink::{Interface, Netlink};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use std::io;
use std::path::{Path, PathBuf};

const POLICE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/police.bpf.o"));

/// A police in place.
#[derive(Debug)]
pub struct Police {
    pub(crate) pins: PathBuf,
    /// Inode of its network namespace.
    pub(crate) netns: u32,
    pub(crate) ifindex: u32,
    pub(crate) facts: abi::fp_police,
}

impl Police {
    /// Puts a police on an interface of the calling thread's network namespace. One that is there is
    /// replaced, its counters begin anew.
    ///
    /// `root` is the directory of all polices' pins, on a BPF file system.
    ///
    /// # Errors
    /// No such interface, a kind of link that is not known, no permission, or the kernel's refusal.
    pub fn put(root: &Path, interface: &str, orders: &Orders) -> Result<Police, KernelError> {
        quieten_libbpf();
        let mut police = Police::new(root, &find(interface)?, orders)?;
        if orders.hook == Some(Hook::Xdp) && !police.may_be_at_xdp() {
            return Err(KernelError::io("attach at XDP")(io::Error::other(
                "a RST to both ends, or a link without Ethernet, needs tc",
            )));
        }
        if let Some(there) = Police::of(root, interface)? {
            there.take_away()?;
        }
        std::fs::create_dir_all(root)
            .and_then(|()| std::fs::create_dir(&police.pins))
            .map_err(KernelError::io(format!("make {}", police.pins.display())))?;
        let put = police
            .load(orders)
            .and_then(|object| police.attach(&object, orders.hook));
        match put {
            Ok(()) => Ok(police),
            Err(error) => {
                let _ = police.take_away();
                Err(error)
            }
        }
    }

    fn new(root: &Path, interface: &Interface, orders: &Orders) -> Result<Police, KernelError> {
        if !is_ethernet(interface) && !is_bare(interface) {
            let why = format!("unknown kind of link {}", interface.hardware);
            return Err(KernelError::io(format!(
                "attach the policer to {}",
                interface.name
            ))(io::Error::other(why)));
        }
        let netns = netns_here()?;
        Ok(Police {
            pins: root.join(directory(netns, interface.index)),
            netns,
            ifindex: interface.index,
            facts: abi::fp_police {
                has_ethernet: is_ethernet(interface).into(),
                interface: field_of(&interface.name),
                ..orders.facts()
            },
        })
    }

    /// The police of an interface of the calling thread's namespace, if it has one; also of one that
    /// is gone, or that came from another namespace with its police at XDP.
    ///
    /// # Errors
    /// Pins that cannot be read.
    pub fn of(root: &Path, interface: &str) -> Result<Option<Police>, KernelError> {
        let netns = netns_here()?;
        let there = find(interface).ok();
        let is_of = |police: &Police| match &there {
            Some(it) if it.xdp_program.is_some() && it.xdp_program == police.program_id() => true,
            Some(it) => police.netns == netns && police.ifindex == it.index,
            None => police.netns == netns && police.interface() == interface,
        };
        Ok(Police::all(root)?.into_iter().find(is_of))
    }

    /// All of them, also those of other namespaces and of interfaces that are gone.
    ///
    /// # Errors
    /// When pins cannot be read.
    pub fn all(root: &Path) -> Result<Vec<Police>, KernelError> {
        quieten_libbpf();
        match root.exists() {
            true => pins(root)?.into_iter().map(Police::open).collect(),
            false => Ok(Vec::new()),
        }
    }

    /// Of one that was cut short before its map was written, or that another build of fatpath put, no more is
    /// known than its place.
    fn open(pins: PathBuf) -> Result<Police, KernelError> {
        let name = name_of(&pins);
        let numbers = name
            .split_once('-')
            .and_then(|(netns, ifindex)| Some((netns.parse().ok()?, ifindex.parse().ok()?)));
        let Some((netns, ifindex)) = numbers else {
            let step = format!("read {}", pins.display());
            return Err(KernelError::io(step)(io::Error::other(
                "only polices are looked for here",
            )));
        };
        let mut police = Police {
            pins,
            netns,
            ifindex,
            facts: abi::fp_police::default(),
        };
        let facts = police.map("fp_police").ok();
        let is_known = |map: &MapHandle| map.value_size() as usize == size_of_val(&police.facts);
        if let Some(map) = facts.filter(is_known) {
            police.facts = get(&map, 0u32)?;
        }
        Ok(police)
    }

    pub(crate) fn map(&self, name: &str) -> Result<MapHandle, KernelError> {
        MapHandle::from_pinned_path(self.pins.join(name))
            .map_err(KernelError::bpf(format!("open the map {name}")))
    }

    fn load(&self, orders: &Orders) -> Result<Object, KernelError> {
        let failed = |source| KernelError::Bpf {
            step: "load police.bpf.o".into(),
            source,
            log: last_said(),
        };
        let mut open = ObjectBuilder::default()
            .pin_root_path(&self.pins)
            .and_then(|builder| builder.open_memory(POLICE))
            .map_err(failed)?;
        let is_of_watching =
            |name: &std::ffi::OsStr| name == "fp_watched" || name == "fp_penalties";
        for mut map in open.maps_mut().filter(|map| is_of_watching(map.name())) {
            if !orders.watches {
                map.set_max_entries(1).map_err(failed)?;
            }
        }
        let object = open.load().map_err(failed)?;
        let exceptions = self.map("fp_police_exceptions")?;
        for (prefix, counter) in orders.counters() {
            put(&exceptions, &prefix, &counter)?;
        }
        Ok(object)
    }

    pub(crate) fn note(&self) -> Result<(), KernelError> {
        put(&self.map("fp_police")?, &0u32, &self.facts)
    }

    /// Takes it away, from whatever namespace: the program, a clsact that was made for it and that nobody else
    /// uses, the pins.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn take_away(self) -> Result<(), KernelError> {
        self.detach()?;
        for pin in pins(&self.pins)? {
            std::fs::remove_file(&pin)
                .map_err(KernelError::io(format!("remove {}", pin.display())))?;
        }
        let removed = std::fs::remove_dir(&self.pins);
        if let Some(root) = self.pins.parent() {
            let _ = std::fs::remove_dir(root);
        }
        removed.map_err(KernelError::io(format!("remove {}", self.pins.display())))
    }

    /// Does `work` in its network namespace; `None` when that is gone.
    pub(crate) fn there<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<Option<T>, KernelError> {
        if netns_here().is_ok_and(|here| here == self.netns) {
            return Ok(Some(work()));
        }
        let mut all = namespaces().into_iter();
        match all.find(|namespace| netns_of(namespace) == Some(self.netns)) {
            Some(namespace) => within(&namespace, work),
            None => Ok(None),
        }
    }

    /// The interface's name when the police was put in place; its number, where no name was written.
    pub fn interface(&self) -> String {
        let name = text_of(&self.facts.interface);
        match name.is_empty() {
            true => self.ifindex.to_string(),
            false => name,
        }
    }
}

/// Numbers, for a name in the BPF file system may hold no dot, and an interface's may.
fn directory(netns: u32, ifindex: u32) -> String {
    format!("{netns}-{ifindex}")
}

pub(crate) fn netlink() -> Result<Netlink, KernelError> {
    Netlink::open().map_err(KernelError::io("open a netlink socket"))
}

fn find(name: &str) -> Result<Interface, KernelError> {
    let interfaces = netlink()?
        .interfaces()
        .map_err(KernelError::io("list the interfaces"))?;
    let mut there = interfaces.into_iter();
    there
        .find(|interface| interface.name == name)
        .ok_or_else(|| {
            let none = io::Error::other("no such interface; `ip link` lists them");
            KernelError::io(format!("find the interface {name}"))(none)
        })
}

fn put<K: Pod, V: Pod>(map: &MapHandle, key: &K, value: &V) -> Result<(), KernelError> {
    map.update(key.as_bytes(), value.as_bytes(), MapFlags::ANY)
        .map_err(KernelError::bpf("write a map of the policer"))
}

pub(crate) fn get<K: Pod, V: Pod>(map: &MapHandle, key: K) -> Result<V, KernelError> {
    let bytes = map.lookup(key.as_bytes(), MapFlags::ANY);
    let bytes = bytes.map_err(KernelError::bpf("read a map of the policer"))?;
    Ok(bytes.and_then(|bytes| value_of(&bytes)).unwrap_or_default())
}
