// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a police sees packets: put there, found there, taken from there.
//!
//! It is found by its program, which is pinned before it is attached: whatever else is at the same place
//! is another's, and stays. Generic XDP is never used: it is slower than tc.
//!
//! Start at [`Police::attach`].

use crate::abi;
use crate::error::KernelError;
use crate::namespaces::{namespaces, within};
use crate::object::program;
use crate::pod::text_of;
use crate::police::orders::Hook;
use crate::police::{Police, netlink};
use crate::tc::{Direction, Filter, Qdisc, program_id};
use fatpath_netlink::Netlink;
use libbpf_rs::{Object, Program, Xdp, XdpFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

const PROGRAM: &str = "prog_police";

impl Police {
    /// Where the orders leave it open, XDP first: a driver without it, or one with another's program,
    /// says no.
    pub(crate) fn attach(
        &mut self,
        object: &Object,
        wanted: Option<Hook>,
    ) -> Result<(), KernelError> {
        match wanted {
            Some(Hook::Xdp) => self.attach_xdp(object),
            None if self.may_be_at_xdp() => {
                self.attach_xdp(object).or_else(|_| self.attach_tc(object))
            }
            _ => self.attach_tc(object),
        }
    }

    /// Whether it can do there what it is to do.
    pub(crate) fn may_be_at_xdp(&self) -> bool {
        self.facts.mode != abi::FP_POLICE_RESET && self.facts.has_ethernet == 1
    }

    fn attach_xdp(&mut self, object: &Object) -> Result<(), KernelError> {
        self.facts.hook = abi::FP_POLICE_XDP;
        self.note()?;
        let program = self.pin_program(object, "police_xdp")?;
        let flags = XdpFlags::DRV_MODE | XdpFlags::UPDATE_IF_NOEXIST;
        let xdp = Xdp::new(program.as_fd());
        xdp.attach(self.ifindex as i32, flags).map_err(|error| {
            match xdp.query_id(self.ifindex as i32, XdpFlags::NONE) {
                Ok(other) if other != 0 => self.is_taken_by(other),
                _ => KernelError::bpf("attach at XDP")(error),
            }
        })
    }

    fn is_taken_by(&self, program: u32) -> KernelError {
        let interface = text_of(&self.facts.interface);
        KernelError::io("attach at XDP")(io::Error::other(format!(
            "the program {program} is there (`bpftool prog show id {program}`): choose `--hook tc`, \
             or take it away (`ip link set dev {interface} xdp off`)"
        )))
    }

    fn attach_tc(&mut self, object: &Object) -> Result<(), KernelError> {
        let failed = || KernelError::io("attach at tc ingress");
        let netlink = netlink()?;
        let qdisc = Qdisc::of(&netlink, self.ifindex).map_err(failed())?;
        self.facts.hook = abi::FP_POLICE_TC;
        self.facts.made_clsact = u32::from(qdisc == Qdisc::None);
        self.note()?;
        let program = self.pin_program(object, "police_tc")?;
        let filter = self.filter(&netlink, &program);
        filter.make_clsact().map_err(failed())?;
        filter.attach().map_err(failed())
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
            .map_err(KernelError::bpf("open the policer's program"))
    }

    /// The kernel's number for its program, once it has one.
    pub(crate) fn program_id(&self) -> Option<u32> {
        program_id(self.program().ok()?.as_fd())
    }

    /// Whether packets meet it: the interface may have gone, or somebody may have taken it off.
    pub(crate) fn is_attached(&self) -> Result<bool, KernelError> {
        let Ok(program) = self.program() else {
            return Ok(false);
        };
        let failed = || KernelError::io("look for the policer at tc ingress");
        let at_tc = || {
            let filter = self.filter(&netlink()?, &program).is_there();
            filter.map_err(failed())
        };
        let is_at_xdp = self.where_at_xdp(|_| ()).is_some();
        Ok(is_at_xdp || self.there(at_tc)?.unwrap_or(Ok(false))?)
    }

    /// Where it is not, nothing is done.
    pub(crate) fn detach(&self) -> Result<(), KernelError> {
        let Ok(program) = self.program() else {
            return Ok(());
        };
        let from_xdp = |ifindex| Xdp::new(program.as_fd()).detach(ifindex, XdpFlags::DRV_MODE);
        let detached = self.where_at_xdp(from_xdp).unwrap_or(Ok(()));
        detached.map_err(KernelError::bpf("detach from XDP"))?;
        let detached = self.there(|| self.detach_tc(&program))?.unwrap_or(Ok(()));
        detached.map_err(KernelError::io("detach from tc ingress"))
    }

    /// Does `work` where its program is at XDP, with the interface's number there: an interface that moves to
    /// another namespace takes the program along.
    fn where_at_xdp<T: Send>(&self, work: impl Fn(i32) -> T + Sync) -> Option<T> {
        let program = self.program_id()?;
        let here = || interface_with(program).map(&work);
        let in_all = || {
            namespaces()
                .iter()
                .find_map(|it| within(it, here).ok()?.flatten())
        };
        self.there(here).ok()?.flatten().or_else(in_all)
    }

    fn detach_tc(&self, program: &OwnedFd) -> io::Result<()> {
        let netlink = Netlink::open()?;
        let filter = self.filter(&netlink, program);
        let was_there = filter.detach()?;
        if was_there && self.facts.made_clsact == 1 {
            filter.remove_idle_clsact()?;
        }
        Ok(())
    }

    fn filter<'p>(&self, netlink: &'p Netlink, program: &'p OwnedFd) -> Filter<'p> {
        Filter {
            netlink,
            ifindex: self.ifindex,
            direction: Direction::Ingress,
            program: program.as_fd(),
        }
    }
}

fn interface_with(xdp_program: u32) -> Option<i32> {
    let mut interfaces = netlink().ok()?.interfaces().ok()?.into_iter();
    let it = interfaces.find(|interface| interface.xdp_program == Some(xdp_program))?;
    Some(it.index as i32)
}
