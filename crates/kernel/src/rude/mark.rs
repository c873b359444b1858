// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark of rude flows, on the interfaces of a network namespace: put there, kept there as
//! interfaces come and go, taken away.
//!
//! What was done to which interface stands in the pinned map `fp_marks` before it is done, so that
//! any later process can undo it. A flow may be rude when the device of its route is there, and its
//! namespace in `fp_marked_netns`, which is written last, and from which a namespace is removed first. It
//! has the namespaces' cookies too, because a namespace that is made when one is gone gets its inode.
//!
//! Start at [`Kernel::mark_here`].

use crate::abi;
use crate::handle::Kernel;
use crate::namespaces::{cookie_here, namespaces, netns_here, netns_of, within};
use crate::pod::value_of;
use crate::rude::tunnel::encapsulating;
use crate::tc::{Direction, Filter, Qdisc};
use crate::{KernelError, places::Places};
use fatpath_netlink::{Interface, Netlink};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Program};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use zerocopy::IntoBytes;

const MARKS: &str = "fp_marks";
const MARKED_NETNS: &str = "fp_marked_netns";

/// A filter on a clsact that was there before.
const WHOLE: abi::fp_mark = abi::fp_mark {
    made_clsact: 0,
    is_whole: 1,
};

/// ARPHRD_ETHER of linux/if_arp.h.
const ETHERNET: u16 = 1;
/// Packets of these begin with IP: ARPHRD_PPP, TUNNEL, TUNNEL6, SIT, RAWIP and NONE (TUN, WireGuard).
const BARE: [u16; 6] = [512, 768, 769, 776, 519, 0xfffe];

/// Which interfaces of a namespace mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marking {
    /// Inode of the namespace.
    pub netns: u32,
    /// Names of those that mark.
    pub interfaces: Vec<String>,
    /// Those that cannot, and why: flows over them are not marked, and so cannot stay rude.
    pub unmarked: Vec<String>,
}

impl Kernel {
    /// Makes every interface of the calling thread's network namespace mark, but the loopback device.
    /// To be called again when interfaces came or went; what is in place stays as it is.
    ///
    /// # Errors
    /// When the interfaces cannot be listed or a map cannot be written. An interface that refuses is
    /// no error: see [`Marking::unmarked`].
    pub fn mark_here(&self) -> Result<Marking, KernelError> {
        let marker = Marker::open(&self.places)?;
        let mut marking = Marking {
            netns: marker.netns,
            ..Marking::default()
        };
        let interfaces = marker.interfaces()?;
        if marker.is_anothers() {
            marker.forget()?;
        }
        marker.forget_gone(&interfaces)?;
        let tunnels = encapsulating(&interfaces);
        for interface in interfaces.iter().filter(|i| !i.is_loopback) {
            let marked = match tunnels.contains(&interface.index) {
                true => marker.leave_unmarked(interface.index),
                false => marker.mark(interface),
            };
            match marked {
                Ok(()) => marking.interfaces.push(interface.name.clone()),
                Err(why) => marking.unmarked.push(format!("{}: {why}", interface.name)),
            }
        }
        marker.tell(marking.interfaces.len())?;
        Ok(marking)
    }

    /// The same in another network namespace: `/run/netns/NAME`, or a process's `ns/net`.
    ///
    /// # Errors
    /// As of [`Kernel::mark_here`], and when the namespace cannot be entered.
    pub fn mark_in(&self, namespace: &File) -> Result<Marking, KernelError> {
        let entered = within(namespace, || self.mark_here())?;
        entered.unwrap_or_else(|| Err(cannot_enter()))
    }

    /// Takes the marks away from the calling thread's network namespace.
    ///
    /// # Errors
    /// The first thing that could not be undone; what could be is.
    pub fn unmark_here(&self) -> Result<(), KernelError> {
        let marker = Marker::open(&self.places)?;
        marker.tell(0)?;
        let undone = marker.marks()?.into_iter().map(|interface| {
            let undone = marker.unmark(interface.ifindex);
            undone.map_err(KernelError::io(
                "remove the mark's filter from an interface",
            ))
        });
        undone.fold(Ok(()), Result::and)
    }

    /// The same in another network namespace.
    ///
    /// # Errors
    /// As of [`Kernel::unmark_here`], and when the namespace cannot be entered.
    pub fn unmark_in(&self, namespace: &File) -> Result<(), KernelError> {
        let entered = within(namespace, || self.unmark_here())?;
        entered.unwrap_or_else(|| Err(cannot_enter()))
    }

    /// Takes them away from all namespaces. Of one that is gone, or that nobody can find, only the
    /// record goes: with a namespace go its interfaces.
    ///
    /// # Errors
    /// The first thing that could not be undone; what could be is.
    pub fn unmark(&self) -> Result<(), KernelError> {
        if !self.places.pin(MARKS).exists() {
            return Ok(());
        }
        let marked: HashSet<u32> = keys(&open(&self.places, MARKS)?).map(|i| i.netns).collect();
        let mut failed = None;
        for namespace in namespaces() {
            if netns_of(&namespace).is_some_and(|netns| marked.contains(&netns)) {
                failed = failed.or(self.unmark_in(&namespace).err());
            }
        }
        for name in [MARKS, MARKED_NETNS] {
            clear(&open(&self.places, name)?);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Lets a flow be marked as though it were rude, with 0x200 where no mark is chosen; its law stays.
    /// To measure what the mark costs.
    ///
    /// # Errors
    /// When a map cannot be written.
    #[doc(hidden)]
    pub fn mark_as_if_rude(&self, flow: BorrowedFd<'_>) -> Result<(), KernelError> {
        let gate = self.table("fp_rude_gate")?;
        let mut chosen: abi::fp_rude_gate = gate.get(0)?;
        if chosen.mark_bits == 0 && chosen.mark_dscp == 0 {
            chosen.mark_bits = 0x200;
            gate.set(0, &chosen)?;
        }
        let rude = abi::fp_rude_flow {
            mode: abi::FP_RUDE,
            ..Default::default()
        };
        // Socket storage takes a descriptor for its key.
        self.table("fp_rudes")?.set(flow.as_raw_fd() as u32, &rude)
    }

    /// Segments of a flow that were marked.
    ///
    /// # Errors
    /// When the map cannot be read.
    #[doc(hidden)]
    pub fn marked_pkts(&self, flow: BorrowedFd<'_>) -> Result<u32, KernelError> {
        let rude = self.table("fp_rudes")?.get(flow.as_raw_fd() as u32);
        rude.map(|rude: abi::fp_rude_flow| rude.marked_pkts)
    }

    /// Marks anew, but not what has come to have the same number since.
    fn mark_here_again(&self) -> Result<(), KernelError> {
        let marker = Marker::open(&self.places)?;
        match marker.is_anothers() {
            true => marker.forget(),
            false => self.mark_here().map(drop),
        }
    }

    /// Marks anew where it is marked, for interfaces that came since.
    ///
    /// # Errors
    /// The first of [`Kernel::mark_here`]; the other namespaces are marked all the same.
    pub(crate) fn mark_again(&self) -> Result<(), KernelError> {
        let marked: HashSet<u32> = keys_of(&open(&self.places, MARKED_NETNS)?).collect();
        let mut failed = None;
        for namespace in namespaces() {
            if netns_of(&namespace).is_some_and(|netns| marked.contains(&netns)) {
                let again = within(&namespace, || self.mark_here_again());
                let again = again.and_then(|again| again.unwrap_or_else(|| Err(cannot_enter())));
                failed = failed.or(again.err());
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Forgets the namespaces that are gone: the kernel gives their numbers to others.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn forget_gone_namespaces(&self) -> Result<(), KernelError> {
        let there: HashSet<u32> = namespaces().iter().filter_map(netns_of).collect();
        let marked = open(&self.places, MARKED_NETNS)?;
        for netns in keys_of::<u32>(&marked).filter(|netns| !there.contains(netns)) {
            let _ = marked.delete(netns.as_bytes());
        }
        let marks = open(&self.places, MARKS)?;
        for interface in keys(&marks).filter(|i| !there.contains(&i.netns)) {
            let _ = marks.delete(interface.as_bytes());
        }
        Ok(())
    }
}

/// What marking one namespace needs.
struct Marker {
    netns: u32,
    cookie: u64,
    netlink: Netlink,
    marks: MapHandle,
    marked_netns: MapHandle,
    ethernet: OwnedFd,
    bare: OwnedFd,
}

impl Marker {
    fn open(places: &Places) -> Result<Marker, KernelError> {
        let program = |name: &str| {
            Program::fd_from_pinned_path(places.pin(&format!("prog_{name}")))
                .map_err(KernelError::bpf(format!("open the program {name}")))
        };
        Ok(Marker {
            netns: netns_here()?,
            cookie: cookie_here()?,
            netlink: Netlink::open().map_err(KernelError::io("open a netlink socket"))?,
            marks: open(places, MARKS)?,
            marked_netns: open(places, MARKED_NETNS)?,
            ethernet: program("mark_ethernet")?,
            bare: program("mark_bare")?,
        })
    }

    fn interfaces(&self) -> Result<Vec<Interface>, KernelError> {
        let listed = self.netlink.interfaces();
        listed.map_err(KernelError::io("list the interfaces"))
    }

    fn filter<'m>(&'m self, ifindex: u32, program: &'m OwnedFd) -> Filter<'m> {
        Filter {
            netlink: &self.netlink,
            ifindex,
            direction: Direction::Egress,
            program: program.as_fd(),
        }
    }

    fn mark(&self, interface: &Interface) -> io::Result<()> {
        let program = match interface.hardware {
            _ if is_ethernet(interface) => &self.ethernet,
            _ if is_bare(interface) => &self.bare,
            other => return Err(io::Error::other(format!("unknown kind of link {other}"))),
        };
        let filter = self.filter(interface.index, program);
        let noted = self.noted(interface.index);
        if filter.is_there()? {
            // Without a note, what was there before us is not known: it stays.
            return noted.map_or_else(|| self.note(interface.index, &WHOLE), |_| Ok(()));
        }
        self.attach(interface.index, &filter, noted)
    }

    fn attach(
        &self,
        ifindex: u32,
        filter: &Filter<'_>,
        noted: Option<abi::fp_mark>,
    ) -> io::Result<()> {
        // One that was cut short has made the clsact that is there now.
        let was_made = noted.is_some_and(|mark| mark.is_whole == 0 && mark.made_clsact == 1);
        let is_made = was_made || Qdisc::of(&self.netlink, ifindex)? == Qdisc::None;
        let mut mark = abi::fp_mark {
            made_clsact: is_made.into(),
            is_whole: 0,
        };
        self.note(ifindex, &mark)?;
        if let Err(why) = filter.make_clsact().and_then(|()| filter.attach()) {
            let _ = self.unmark(ifindex);
            return Err(why);
        }
        mark.is_whole = 1;
        self.note(ifindex, &mark)
    }

    /// A bridge that was marked may have got a tunnel for a port since.
    fn leave_unmarked(&self, ifindex: u32) -> io::Result<()> {
        if self.noted(ifindex).is_some() {
            self.unmark(ifindex)?;
        }
        Err(io::Error::other(
            "it encapsulates: no router on the way would see the mark",
        ))
    }

    /// Detaches the filter if it is still there, and removes a clsact that we made and nobody uses. Where a
    /// filter that was whole is gone, so is its clsact: what is there now is another's.
    fn unmark(&self, ifindex: u32) -> io::Result<()> {
        let mark = self.noted(ifindex).unwrap_or_default();
        let mut is_ours = mark.is_whole == 0;
        for program in [&self.ethernet, &self.bare] {
            is_ours |= self.filter(ifindex, program).detach()?;
        }
        if mark.made_clsact == 1 && is_ours {
            self.filter(ifindex, &self.ethernet).remove_idle_clsact()?;
        }
        let _ = self.marks.delete(self.key(ifindex).as_bytes());
        Ok(())
    }

    fn key(&self, ifindex: u32) -> abi::fp_interface {
        let netns = self.netns;
        abi::fp_interface { netns, ifindex }
    }

    fn noted(&self, ifindex: u32) -> Option<abi::fp_mark> {
        let bytes = self
            .marks
            .lookup(self.key(ifindex).as_bytes(), MapFlags::ANY);
        value_of(&bytes.ok().flatten()?)
    }

    fn note(&self, ifindex: u32, mark: &abi::fp_mark) -> io::Result<()> {
        let key = self.key(ifindex);
        let noted = self
            .marks
            .update(key.as_bytes(), mark.as_bytes(), MapFlags::ANY);
        noted.map_err(|error| io::Error::other(error.to_string()))
    }

    /// Those of this namespace.
    fn marks(&self) -> Result<Vec<abi::fp_interface>, KernelError> {
        let here = keys(&self.marks).filter(|interface| interface.netns == self.netns);
        Ok(here.collect())
    }

    fn forget_gone(&self, interfaces: &[Interface]) -> Result<(), KernelError> {
        for noted in self.marks()? {
            if interfaces.iter().all(|there| there.index != noted.ifindex) {
                let _ = self.marks.delete(noted.as_bytes());
            }
        }
        Ok(())
    }

    /// What is noted of this number is of an earlier namespace.
    fn is_anothers(&self) -> bool {
        let noted = self
            .marked_netns
            .lookup(self.netns.as_bytes(), MapFlags::ANY);
        let noted = noted.ok().flatten();
        let noted: Option<abi::fp_marked> = noted.and_then(|bytes| value_of(&bytes));
        noted.is_some_and(|noted| noted.cookie != self.cookie)
    }

    /// The earlier namespace of this number is gone, and with it what was done there.
    fn forget(&self) -> Result<(), KernelError> {
        let _ = self.marked_netns.delete(self.netns.as_bytes());
        self.forget_gone(&[])
    }

    /// Says that so many interfaces of the namespace mark.
    fn tell(&self, interfaces: usize) -> Result<(), KernelError> {
        if interfaces == 0 {
            let _ = self.marked_netns.delete(self.netns.as_bytes());
            return Ok(());
        }
        let marked = abi::fp_marked {
            cookie: self.cookie,
            interfaces: interfaces as u32,
            pad: 0,
        };
        let (key, value) = (self.netns.as_bytes(), marked.as_bytes());
        let recorded = self.marked_netns.update(key, value, MapFlags::ANY);
        recorded.map_err(KernelError::bpf(
            "record that a network namespace marks segments",
        ))
    }
}

fn open(places: &Places, name: &str) -> Result<MapHandle, KernelError> {
    MapHandle::from_pinned_path(places.pin(name))
        .map_err(KernelError::bpf(format!("open the map {name}")))
}

fn keys(map: &MapHandle) -> impl Iterator<Item = abi::fp_interface> {
    keys_of(map)
}

/// Collected first: a key that is deleted would begin the walk anew.
fn keys_of<T: crate::pod::Pod>(map: &MapHandle) -> impl Iterator<Item = T> + use<T> {
    let keys: Vec<Vec<u8>> = map.keys().collect();
    keys.into_iter().filter_map(|key| value_of(&key))
}

fn clear(map: &MapHandle) {
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        let _ = map.delete(&key);
    }
}

pub(crate) fn is_ethernet(interface: &Interface) -> bool {
    interface.hardware == ETHERNET
}

pub(crate) fn is_bare(interface: &Interface) -> bool {
    BARE.contains(&interface.hardware)
}

fn cannot_enter() -> KernelError {
    KernelError::io("enter a network namespace")(io::ErrorKind::PermissionDenied.into())
}
