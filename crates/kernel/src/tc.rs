// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters of ours on an interface's clsact, next to those of other programs.
//!
//! Ours are found by their handle and by their program, so that what others attached is neither
//! replaced nor removed, and nobody has to remember where ours are. A clsact that was there before
//! stays, and so does one that others use now. Everything here is of the network namespace of the
//! calling thread.
//!
//! Start at [`Filter`].
#![allow(unsafe_code)] // a program's id: libbpf-rs tells it only of programs that it loaded

use fatpath_netlink::{Netlink, Request, attribute};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{ErrorKind, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

// linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h
const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_ID: u16 = 11;
/// TC_H_CLSACT, the place of clsact, and of the older `ingress`.
const PLACE: u32 = 0xffff_fff1;
const CLSACT: &[u8] = b"clsact\0";

/// "FP": the number of our filters within their priority.
const HANDLE: u32 = 0x4650;
/// Early, for a filter before ours could end the packet's way. Another kind of classifier, or one for
/// a single protocol, keeps its priority for itself.
const PRIORITIES: std::ops::RangeInclusive<u32> = 1..=16;

/// Which packets of the interface a filter sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ingress,
    Egress,
}

impl Direction {
    fn point(self) -> TcAttachPoint {
        match self {
            Direction::Ingress => TC_INGRESS,
            Direction::Egress => TC_EGRESS,
        }
    }

    /// TC_H_CLSACT with the lower half TC_H_MIN_INGRESS or TC_H_MIN_EGRESS.
    fn parent(self) -> u32 {
        match self {
            Direction::Ingress => 0xffff_fff2,
            Direction::Egress => 0xffff_fff3,
        }
    }
}

/// What an interface has for filters to hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Qdisc {
    None,
    Clsact,
    /// The older one, in clsact's place, for packets that arrive. What is attached to its egress
    /// hangs on its ingress.
    Ingress,
}

impl Qdisc {
    pub(crate) fn of(netlink: &Netlink, ifindex: u32) -> io::Result<Qdisc> {
        let qdiscs = netlink.dump(Request::new(RTM_GETQDISC, 0).bytes(&header(0, 0)))?;
        let mut messages = qdiscs.iter().filter_map(|body| Message::parse(body));
        let there = messages.find(|m| m.ifindex == ifindex && m.parent == PLACE);
        Ok(
            match there.and_then(|it| attribute(it.attributes, TCA_KIND)) {
                None => Qdisc::None,
                Some(CLSACT) => Qdisc::Clsact,
                Some(_) => Qdisc::Ingress,
            },
        )
    }
}

/// A filter of ours, or the place for one.
pub(crate) struct Filter<'p> {
    pub(crate) netlink: &'p Netlink,
    pub(crate) ifindex: u32,
    pub(crate) direction: Direction,
    pub(crate) program: BorrowedFd<'p>,
}

impl Filter<'_> {
    /// Makes what the filter hangs on, where it is missing.
    pub(crate) fn make_clsact(&self) -> io::Result<()> {
        if Qdisc::of(self.netlink, self.ifindex)? == Qdisc::Ingress
            && self.direction == Direction::Egress
        {
            return Err(io::Error::other(
                "it has the qdisc `ingress`: replace it by `clsact`, which takes the same filters",
            ));
        }
        self.hook(0).create().map(drop).map_err(told)
    }

    /// Attaches the program at the first priority that takes it. The clsact has to be there.
    pub(crate) fn attach(&self) -> io::Result<()> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for priority in PRIORITIES {
            match self.hook(priority).attach() {
                Ok(_) => return Ok(()),
                Err(error) if is_taken(&error) => refused = told(error),
                Err(error) => return Err(told(error)),
            }
        }
        Err(refused)
    }

    pub(crate) fn is_there(&self) -> io::Result<bool> {
        Ok(!self.priorities()?.is_empty())
    }

    /// Takes it away, wherever it is; answers whether it was there.
    pub(crate) fn detach(&self) -> io::Result<bool> {
        let priorities = self.priorities()?;
        for priority in &priorities {
            self.hook(*priority).detach().map_err(told)?;
        }
        Ok(!priorities.is_empty())
    }

    /// Removes the clsact unless filters hang on it.
    pub(crate) fn remove_idle_clsact(&self) -> io::Result<()> {
        if Qdisc::of(self.netlink, self.ifindex)? != Qdisc::Clsact {
            return Ok(());
        }
        for direction in [Direction::Ingress, Direction::Egress] {
            if !self.filters(direction)?.is_empty() {
                return Ok(());
            }
        }
        let mut both = self.hook(0);
        let destroyed = both.attach_point(TC_INGRESS | TC_EGRESS).destroy();
        destroyed.map_err(told)
    }

    /// Where the program hangs by our handle.
    fn priorities(&self) -> io::Result<Vec<u32>> {
        let ours = program_id(self.program);
        let filters = self.filters(self.direction)?;
        let filters = filters.iter().filter_map(|body| Message::parse(body));
        let ours =
            filters.filter(|f| f.handle == HANDLE && ours.is_some() && f.program_id() == ours);
        Ok(ours.map(|filter| filter.priority).collect())
    }

    fn filters(&self, direction: Direction) -> io::Result<Vec<Vec<u8>>> {
        let header = header(self.ifindex, direction.parent());
        self.netlink
            .dump(Request::new(RTM_GETTFILTER, 0).bytes(&header))
    }

    fn hook(&self, priority: u32) -> TcHook {
        TcHookBuilder::new(self.program)
            .ifindex(self.ifindex as i32)
            .handle(HANDLE)
            .priority(priority)
            .hook(self.direction.point())
    }
}

/// The priority is of another classifier or protocol (EINVAL), or the handle of another fatpath.
fn is_taken(error: &libbpf_rs::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::InvalidInput
    )
}

fn told(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// The kernel's number for a program.
pub(crate) fn program_id(program: BorrowedFd<'_>) -> Option<u32> {
    let mut info = sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: an open descriptor, and a struct of `bytes` bytes that the kernel fills.
    let told = unsafe { sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut bytes) };
    (told == 0).then_some(info.id)
}

/// struct tcmsg: family, index, handle, parent, info.
const HEADER_BYTES: usize = 20;

fn header(ifindex: u32, parent: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}

/// A qdisc or a filter as a dump tells it.
struct Message<'b> {
    ifindex: u32,
    handle: u32,
    parent: u32,
    /// Of a filter.
    priority: u32,
    attributes: &'b [u8],
}

impl Message<'_> {
    fn parse(body: &[u8]) -> Option<Message<'_>> {
        let (header, attributes) = body.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?));
        Some(Message {
            ifindex: word(4)?,
            handle: word(8)?,
            parent: word(12)?,
            priority: word(16)? >> 16,
            attributes,
        })
    }

    fn program_id(&self) -> Option<u32> {
        let id = attribute(attribute(self.attributes, TCA_OPTIONS)?, TCA_BPF_ID)?;
        id.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    }
}
