// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters of ours on an interface's clsact, beside those of others.
//!
//! Ours are found by their handle and by their program, so that what others attached is neither
//! replaced nor removed. A clsact that was there before stays, and so does one that others use now.
//! Everything here is of the network namespace of the calling thread.
#![allow(unsafe_code)] // a program's id: libbpf-rs tells it only of programs that it loaded

use fatpath_netlink::{Netlink, Request, attributes};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

// linux/rtnetlink.h, linux/pkt_sched.h
const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
const TCA_KIND: u16 = 1;
const CLSACT: &[u8] = b"clsact\0";
/// TC_H_CLSACT and the lower halves TC_H_MIN_INGRESS, TC_H_MIN_EGRESS.
const PARENTS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
/// struct tcmsg: family, index, handle, parent, info.
const HEADER_BYTES: usize = 20;

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
}

/// A filter of ours, or the place for one.
pub(crate) struct Filter<'p> {
    pub(crate) ifindex: u32,
    pub(crate) direction: Direction,
    pub(crate) program: BorrowedFd<'p>,
}

impl Filter<'_> {
    fn hook(&self, priority: u32) -> TcHook {
        TcHookBuilder::new(self.program)
            .ifindex(self.ifindex as i32)
            .handle(HANDLE)
            .priority(priority)
            .hook(self.direction.point())
    }

    /// Attaches the program at the first priority that takes it, and answers that priority. The clsact
    /// has to be there.
    pub(crate) fn attach(&self) -> io::Result<u32> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for priority in PRIORITIES {
            match self.hook(priority).attach() {
                Ok(_) => return Ok(priority),
                Err(error) => refused = io::Error::other(error.to_string()),
            }
        }
        Err(refused)
    }

    /// Id of the program that stands where a filter of ours with this priority would.
    pub(crate) fn program_id(&self, priority: u32) -> Option<u32> {
        self.hook(priority).query().ok()
    }

    pub(crate) fn detach(&self, priority: u32) -> io::Result<()> {
        let detached = self.hook(priority).detach();
        detached.map_err(|error| io::Error::other(error.to_string()))
    }

    pub(crate) fn make_clsact(&self) -> io::Result<()> {
        let made = self.hook(0).create();
        made.map(|_| ())
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Whether an interface has a clsact.
pub(crate) fn has_clsact(netlink: &Netlink, ifindex: u32) -> io::Result<bool> {
    let qdiscs = netlink.dump(Request::new(RTM_GETQDISC, 0).bytes(&header(0, 0)))?;
    let is_it = |body: &Vec<u8>| {
        let is_clsact = || {
            let kind = attributes(body.get(HEADER_BYTES..)?).find(|(kind, _)| *kind == TCA_KIND)?;
            (kind.1 == CLSACT).then_some(())
        };
        index_of(body) == Some(ifindex) && is_clsact().is_some()
    };
    Ok(qdiscs.iter().any(is_it))
}

/// Removes the clsact unless filters hang on it.
pub(crate) fn remove_idle_clsact(netlink: &Netlink, filter: &Filter<'_>) -> io::Result<()> {
    for parent in PARENTS {
        let request = Request::new(RTM_GETTFILTER, 0).bytes(&header(filter.ifindex, parent));
        if !netlink.dump(request)?.is_empty() {
            return Ok(());
        }
    }
    let mut both = filter.hook(0);
    let destroyed = both.attach_point(TC_INGRESS | TC_EGRESS).destroy();
    destroyed.map_err(|error| io::Error::other(error.to_string()))
}

/// The kernel's number for a program.
pub(crate) fn program_id(program: BorrowedFd<'_>) -> Option<u32> {
    let mut info = sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: an open descriptor, and a struct of `bytes` bytes that the kernel fills.
    let told = unsafe { sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut bytes) };
    (told == 0).then_some(info.id)
}

fn header(ifindex: u32, parent: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    header
}

fn index_of(body: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*body.get(4..)?.first_chunk()?))
}
