// SPDX-License-Identifier: MIT OR Apache-2.0
//! The police of an interface: put in place, read, taken away. No daemon takes part in it.
//!
//! Each police has a directory of pins of its own: its maps, and its program. What is needed to undo it
//! stands in its map `fp_police` before it is done. Interfaces are those of the network namespace of
//! the calling thread.
//!
//! Start at [`Police::put`].

use crate::abi;
use crate::error::KernelError;
use crate::load::{last_said, program, quieten_libbpf};
use crate::mark::{is_bare, is_ethernet, netns_here};
use crate::pod::{Pod, bytes_of, field_of, text_of, value_of};
use crate::tc::{Direction, Filter, has_clsact, program_id, remove_idle_clsact};
use crate::unload::pins;
use fatpath_netlink::{Interface, Netlink};
use fatpath_policy::Prefix;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, Program, Xdp, XdpFlags};
use serde::Serialize;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

const POLICE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/police.bpf.o"));
const PROGRAM: &str = "prog_police";

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
#[derive(Clone, Debug)]
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

/// Segments and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Segments on the wire.
    pub pkts: u64,
    /// Bytes of frames.
    pub bytes: u64,
}

/// What a police has seen and done since it was put in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tallies {
    /// Not marked: passed.
    pub unmarked: Tally,
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
    /// Whether it watches flows that are not marked.
    pub watches: bool,
    /// Since it was put in place.
    pub tallies: Tallies,
    /// Segments that each exception let through.
    pub exceptions: Vec<(String, u64)>,
}

/// A police in place.
#[derive(Debug)]
pub struct Police {
    pins: PathBuf,
    facts: abi::fp_police,
}

impl Police {
    /// Puts a police on an interface. One that is there is replaced, its counters begin anew.
    ///
    /// `root` is the directory of all polices' pins, on a BPF file system.
    ///
    /// # Errors
    /// No such interface, a kind of link that is not known, no permission, or the kernel's refusal.
    pub fn put(root: &Path, interface: &str, orders: &Orders) -> Result<Police, KernelError> {
        quieten_libbpf();
        let netlink = netlink()?;
        let interface = find(&netlink, interface)?;
        if let Some(there) = Police::at(root, interface.index)? {
            there.take_away()?;
        }
        let police = Police {
            pins: root.join(directory(interface.index)),
            facts: facts(&interface, orders)?,
        };
        std::fs::create_dir_all(root)
            .and_then(|()| std::fs::create_dir(&police.pins))
            .map_err(KernelError::io(format!("make {}", police.pins.display())))?;
        let put = police
            .load(orders)
            .and_then(|object| police.attach(&netlink, &object, orders));
        match put {
            Ok(facts) => Ok(Police { facts, ..police }),
            Err(error) => {
                let _ = police.take_away();
                Err(error)
            }
        }
    }

    /// The police of an interface, if it has one; also of one that is gone.
    ///
    /// # Errors
    /// Pins that cannot be read.
    pub fn of(root: &Path, interface: &str) -> Result<Option<Police>, KernelError> {
        quieten_libbpf();
        if let Ok(there) = find(&netlink()?, interface) {
            return Police::at(root, there.index);
        }
        let netns = netns_here()?;
        let mut all = Police::all(root)?.into_iter();
        Ok(all.find(|p| p.facts.netns == netns && p.interface() == interface))
    }

    fn at(root: &Path, ifindex: u32) -> Result<Option<Police>, KernelError> {
        let pins = root.join(directory(ifindex));
        pins.exists().then(|| Police::open(pins)).transpose()
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

    /// One that was cut short before its map was written has nothing but pins.
    fn open(pins: PathBuf) -> Result<Police, KernelError> {
        let mut police = Police {
            pins,
            facts: abi::fp_police::default(),
        };
        if police.pins.join("fp_police").exists() {
            police.facts = get(&police.map("fp_police")?, 0u32)?;
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
        for mut map in open.maps_mut().filter(|map| map.name() == "fp_watched") {
            if !orders.watches {
                map.set_max_entries(1).map_err(failed)?;
            }
        }
        let object = open.load().map_err(failed)?;
        let exceptions = self.map("fp_police_exceptions")?;
        for prefix in &orders.exceptions {
            put(&exceptions, &key_of(prefix), &0u64)?;
        }
        Ok(object)
    }

    /// Where the orders leave it open, XDP first: a driver without it, or one with another's program,
    /// says no.
    fn attach(
        &self,
        netlink: &Netlink,
        object: &Object,
        orders: &Orders,
    ) -> Result<abi::fp_police, KernelError> {
        let may_xdp = orders.mode != PoliceMode::Reset && self.facts.has_ethernet == 1;
        match orders.hook {
            Some(Hook::Xdp) if !may_xdp => Err(KernelError::io("attach at XDP")(io::Error::other(
                "a RST to both ends, or a link without Ethernet, needs tc",
            ))),
            Some(Hook::Xdp) => self.attach_xdp(object),
            Some(Hook::Tc) => self.attach_tc(netlink, object),
            None if may_xdp => match self.attach_xdp(object) {
                Ok(facts) => Ok(facts),
                Err(_) => self.attach_tc(netlink, object),
            },
            None => self.attach_tc(netlink, object),
        }
    }

    fn attach_xdp(&self, object: &Object) -> Result<abi::fp_police, KernelError> {
        let mut facts = abi::fp_police {
            hook: abi::FP_POLICE_XDP,
            ..self.facts
        };
        self.note(&facts)?;
        let program = self.pin_program(object, "police_xdp")?;
        let flags = XdpFlags::DRV_MODE | XdpFlags::UPDATE_IF_NOEXIST;
        Xdp::new(program.as_fd())
            .attach(facts.ifindex as i32, flags)
            .map_err(KernelError::bpf("attach at XDP"))?;
        facts.is_whole = 1;
        self.note(&facts).map(|()| facts)
    }

    fn attach_tc(&self, netlink: &Netlink, object: &Object) -> Result<abi::fp_police, KernelError> {
        let failed = || KernelError::io("attach at tc ingress");
        let ifindex = self.facts.ifindex;
        let mut facts = abi::fp_police {
            hook: abi::FP_POLICE_TC,
            made_clsact: u32::from(!has_clsact(netlink, ifindex).map_err(failed())?),
            ..self.facts
        };
        self.note(&facts)?;
        let program = self.pin_program(object, "police_tc")?;
        let filter = filter(ifindex, &program);
        filter.make_clsact().map_err(failed())?;
        facts.priority = filter.attach().map_err(failed())?;
        facts.is_whole = 1;
        self.note(&facts).map(|()| facts)
    }

    /// So that whoever takes the police away knows its program.
    fn pin_program(&self, object: &Object, name: &str) -> Result<OwnedFd, KernelError> {
        let pin = self.pins.join(PROGRAM);
        let _ = std::fs::remove_file(&pin);
        program(object, name)?
            .pin(&pin)
            .map_err(KernelError::bpf(format!("pin the program {name}")))?;
        self.program()
    }

    pub(crate) fn program(&self) -> Result<OwnedFd, KernelError> {
        Program::fd_from_pinned_path(self.pins.join(PROGRAM))
            .map_err(KernelError::bpf("open the program of the police"))
    }

    fn note(&self, facts: &abi::fp_police) -> Result<(), KernelError> {
        put(&self.map("fp_police")?, &0u32, facts)
    }

    /// Takes it away: the program, a clsact that was made for it and that nobody else uses, the pins.
    ///
    /// # Errors
    /// When something cannot be removed, or the interface is of another network namespace.
    pub fn take_away(self) -> Result<(), KernelError> {
        // The map has the latest facts, also when the attaching failed.
        let there = Police::open(self.pins.clone())?;
        if there.facts.ifindex != 0 && there.interface_is_there()? {
            there.detach()?;
        }
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

    /// Refuses one of another namespace: there its number may be another interface.
    fn interface_is_there(&self) -> Result<bool, KernelError> {
        if self.facts.netns != netns_here()? {
            return Err(KernelError::io("take away a police")(io::Error::other(
                format!(
                    "{} is of another network namespace",
                    text_of(&self.facts.interface)
                ),
            )));
        }
        let there = interfaces(&netlink()?)?;
        Ok(there.iter().any(|i| i.index == self.facts.ifindex))
    }

    fn detach(&self) -> Result<(), KernelError> {
        let Ok(program) = self.program() else {
            return Ok(());
        };
        match self.facts.hook {
            abi::FP_POLICE_XDP => self.detach_xdp(&program),
            _ => self.detach_tc(&program),
        }
    }

    fn detach_xdp(&self, program: &OwnedFd) -> Result<(), KernelError> {
        let (xdp, ifindex) = (Xdp::new(program.as_fd()), self.facts.ifindex as i32);
        let there = xdp.query_id(ifindex, XdpFlags::DRV_MODE).ok();
        if there.is_none() || there != program_id(program.as_fd()) {
            return Ok(());
        }
        xdp.detach(ifindex, XdpFlags::DRV_MODE)
            .map_err(KernelError::bpf("detach from XDP"))
    }

    fn detach_tc(&self, program: &OwnedFd) -> Result<(), KernelError> {
        let failed = || KernelError::io("detach from tc ingress");
        let filter = filter(self.facts.ifindex, program);
        let there = (self.facts.priority > 0).then(|| filter.program_id(self.facts.priority));
        if there
            .flatten()
            .is_some_and(|id| program_id(program.as_fd()) == Some(id))
        {
            filter.detach(self.facts.priority).map_err(failed())?;
        }
        let netlink = netlink()?;
        let made = self.facts.made_clsact == 1;
        if made && has_clsact(&netlink, self.facts.ifindex).map_err(failed())? {
            remove_idle_clsact(&netlink, &filter).map_err(failed())?;
        }
        Ok(())
    }

    /// What it is and what it did.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn status(&self) -> Result<PoliceStatus, KernelError> {
        let facts = &self.facts;
        Ok(PoliceStatus {
            interface: text_of(&facts.interface),
            netns: facts.netns,
            ifindex: facts.ifindex,
            mode: match facts.mode {
                abi::FP_POLICE_DROP => PoliceMode::Drop,
                abi::FP_POLICE_RESET => PoliceMode::Reset,
                abi::FP_POLICE_LIMIT => PoliceMode::Limit(facts.limit_bps),
                _ => PoliceMode::Count,
            },
            mark: match facts.mark_bits {
                0 => PoliceMark::Dscp(facts.mark_dscp as u8),
                bits => PoliceMark::Bits(bits as u16),
            },
            hook: self.hook(),
            watches: facts.watches == 1,
            tallies: self.tallies()?,
            exceptions: self.exceptions()?,
        })
    }

    fn tallies(&self) -> Result<Tallies, KernelError> {
        let map = self.map("fp_police_tallies")?;
        let of = |which: u32| -> Result<Tally, KernelError> {
            let values = map.lookup_percpu(bytes_of(&which), MapFlags::ANY);
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
            malformed: of(abi::FP_TALLY_CUT)?,
            marked: of(abi::FP_TALLY_MARKED)?,
            excepted: of(abi::FP_TALLY_EXCEPTED)?,
            passed: of(abi::FP_TALLY_PASSED)?,
            dropped: of(abi::FP_TALLY_DROPPED)?,
            reset: of(abi::FP_TALLY_RESET)?,
        })
    }

    fn exceptions(&self) -> Result<Vec<(String, u64)>, KernelError> {
        let map = self.map("fp_police_exceptions")?;
        let keys = map.keys().collect::<Vec<_>>().into_iter();
        keys.filter_map(|key| value_of::<abi::fp_address_key>(&key))
            .map(|key| Ok((shown(&key), get(&map, key)?)))
            .collect()
    }

    pub(crate) fn hook(&self) -> Hook {
        match self.facts.hook {
            abi::FP_POLICE_XDP => Hook::Xdp,
            _ => Hook::Tc,
        }
    }

    /// The interface's name when the police was put in place.
    pub fn interface(&self) -> String {
        text_of(&self.facts.interface)
    }

    /// The largest TCP segment's data that the interface takes: IPv4, timestamps.
    pub(crate) fn segment_bytes(&self) -> u32 {
        const HEADERS_BYTES: u32 = 52;
        let there = netlink()
            .and_then(|netlink| interfaces(&netlink))
            .unwrap_or_default();
        let it = there.iter().find(|i| i.index == self.facts.ifindex);
        it.map_or(1448, |it| it.mtu_bytes.saturating_sub(HEADERS_BYTES))
    }
}

fn facts(interface: &Interface, orders: &Orders) -> Result<abi::fp_police, KernelError> {
    if !is_ethernet(interface) && !is_bare(interface) {
        let why = format!("unknown kind of link {}", interface.hardware);
        return Err(KernelError::io(format!("police {}", interface.name))(
            io::Error::other(why),
        ));
    }
    let (mode, limit_bps) = match orders.mode {
        PoliceMode::Count => (abi::FP_POLICE_COUNT, 0),
        PoliceMode::Drop => (abi::FP_POLICE_DROP, 0),
        PoliceMode::Reset => (abi::FP_POLICE_RESET, 0),
        PoliceMode::Limit(bps) => (abi::FP_POLICE_LIMIT, bps),
    };
    let (mark_bits, mark_dscp) = match orders.mark {
        PoliceMark::Bits(bits) => (u32::from(bits), 0),
        PoliceMark::Dscp(dscp) => (0, u32::from(dscp)),
    };
    Ok(abi::fp_police {
        limit_bps,
        mode,
        mark_bits,
        mark_dscp,
        has_ethernet: is_ethernet(interface).into(),
        has_exceptions: u32::from(!orders.exceptions.is_empty()),
        watches: orders.watches.into(),
        netns: netns_here()?,
        ifindex: interface.index,
        interface: field_of(&interface.name),
        ..Default::default()
    })
}

fn filter(ifindex: u32, program: &OwnedFd) -> Filter<'_> {
    Filter {
        ifindex,
        direction: Direction::Ingress,
        program: program.as_fd(),
    }
}

/// Numbers, for a name in the BPF file system may hold no dot, and an interface's may.
fn directory(ifindex: u32) -> String {
    format!("{}-{ifindex}", netns_here().unwrap_or_default())
}

fn netlink() -> Result<Netlink, KernelError> {
    Netlink::open().map_err(KernelError::io("open a netlink socket"))
}

fn interfaces(netlink: &Netlink) -> Result<Vec<Interface>, KernelError> {
    netlink
        .interfaces()
        .map_err(KernelError::io("list the interfaces"))
}

fn find(netlink: &Netlink, name: &str) -> Result<Interface, KernelError> {
    let mut there = interfaces(netlink)?.into_iter();
    there
        .find(|interface| interface.name == name)
        .ok_or_else(|| {
            let none =
                io::Error::other("there is none of that name: `ip link` lists those there are");
            KernelError::io(format!("find the interface {name}"))(none)
        })
}

fn key_of(prefix: &Prefix) -> abi::fp_address_key {
    abi::fp_address_key {
        prefix_len: u32::from(prefix.key_bits()),
        address: prefix.key(),
    }
}

fn shown(key: &abi::fp_address_key) -> String {
    let address = Ipv6Addr::from(key.address);
    match address.to_ipv4_mapped() {
        Some(address) if key.prefix_len >= 96 => format!("{address}/{}", key.prefix_len - 96),
        _ => format!("{address}/{}", key.prefix_len),
    }
}

fn put<K: Pod, V: Pod>(map: &MapHandle, key: &K, value: &V) -> Result<(), KernelError> {
    map.update(bytes_of(key), bytes_of(value), MapFlags::ANY)
        .map_err(KernelError::bpf("write a map of the police"))
}

fn get<K: Pod, V: Pod>(map: &MapHandle, key: K) -> Result<V, KernelError> {
    let bytes = map.lookup(bytes_of(&key), MapFlags::ANY);
    let bytes = bytes.map_err(KernelError::bpf("read a map of the police"))?;
    Ok(bytes.and_then(|bytes| value_of(&bytes)).unwrap_or_default())
}
