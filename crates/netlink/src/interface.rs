// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interfaces of a network namespace, and word of those that come and go.

use crate::{Netlink, Request, attribute};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, bind, recv};
use std::io;
use std::time::Duration;

// linux/rtnetlink.h, linux/if_link.h, linux/if.h
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFF_LOOPBACK: u32 = 8;
const RTMGRP_LINK: u32 = 1;
/// struct ifinfomsg: family, kind, index, flags, changed flags.
const HEADER_BYTES: usize = 16;

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number, which no other interface of the namespace gets later.
    pub index: u32,
    /// As `ip link` shows it.
    pub name: String,
    /// What its packets begin with (`ARPHRD_…` of linux/if_arp.h).
    pub hardware: u16,
    /// The largest IP packet that it takes.
    pub mtu_bytes: u32,
    /// It leads nowhere but back.
    pub is_loopback: bool,
    /// The kernel's number of its program at XDP; of several, in driver and card, none.
    pub xdp_program: Option<u32>,
}

impl Interface {
    fn parse(body: &[u8]) -> Option<Interface> {
        let (header, rest) = body.split_first_chunk::<HEADER_BYTES>()?;
        let number = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?));
        let name = attribute(rest, IFLA_IFNAME)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let word = |value: &[u8]| value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let xdp = attribute(rest, IFLA_XDP).and_then(|nest| attribute(nest, IFLA_XDP_PROG_ID));
        Some(Interface {
            index: number(4)?,
            name: String::from_utf8_lossy(name).into_owned(),
            hardware: u16::from_ne_bytes([header[2], header[3]]),
            mtu_bytes: attribute(rest, IFLA_MTU).and_then(word).unwrap_or(0),
            is_loopback: number(8)? & IFF_LOOPBACK != 0,
            xdp_program: xdp.and_then(word),
        })
    }
}

impl Netlink {
    /// The interfaces of the socket's namespace.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn interfaces(&self) -> io::Result<Vec<Interface>> {
        let bodies = self.dump(Request::new(RTM_GETLINK, 0).bytes(&[0; HEADER_BYTES]))?;
        let parsed = bodies.iter().filter_map(|body| Interface::parse(body));
        Ok(parsed.collect())
    }
}

/// Word of interfaces that come, change or go.
pub struct InterfaceEvents(Netlink);

impl InterfaceEvents {
    /// Of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<InterfaceEvents> {
        let socket = Netlink::open()?;
        // 0: the kernel chooses the port.
        bind(&socket.0, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
        Ok(InterfaceEvents(socket))
    }

    /// Waits until something changed; false when nothing did for so long. What changed is to be
    /// looked up: all events that wait count as one, and so do those that came too fast and were lost.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, at_most: Duration) -> io::Result<bool> {
        set_socket_timeout(&self.0.0, Timeout::Recv, Some(at_most))?;
        let has_changed = self.received(RecvFlags::empty())?;
        while has_changed && self.received(RecvFlags::DONTWAIT)? {}
        Ok(has_changed)
    }

    fn received(&self, flags: RecvFlags) -> io::Result<bool> {
        let mut datagram = [0; 4096];
        match recv(&self.0.0, &mut datagram, RecvFlags::TRUNC | flags).map_err(io::Error::from) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) if error.raw_os_error() == Some(ENOBUFS) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Events were lost: asm-generic/errno.h.
const ENOBUFS: i32 = 105;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_listed_as_such() {
        let interfaces = Netlink::open().unwrap().interfaces().unwrap();
        let loopback = interfaces.iter().find(|i| i.name == "lo").unwrap();
        assert!(loopback.is_loopback);
        assert_eq!(loopback.index, 1);
        assert!(interfaces.iter().all(|i| i.name == "lo" || !i.is_loopback));
    }

    #[test]
    fn a_cut_message_is_no_interface() {
        for bytes in [&[][..], &[0; 15], &[0; 16], &[0; 20]] {
            assert_eq!(Interface::parse(bytes), None);
        }
    }
}
