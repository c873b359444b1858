// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel reports of interfaces and routes that come, change or go.

use crate::{MAX_DATAGRAM_BYTES, Netlink, messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, bind, recv};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

// linux/rtnetlink.h: bit n - 1 for the group n of `enum rtnetlink_groups`.
const LINK: u32 = 1;
const IPV4_ADDRESS: u32 = 1 << 4;
const IPV4_ROUTE: u32 = 1 << 6;
const IPV6_ADDRESS: u32 = 1 << 8;
const IPV6_ROUTE: u32 = 1 << 10;
const NEXTHOP: u32 = 1 << 31;

/// Notifications of one network namespace.
pub struct Notifications(Netlink);

/// What is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A message of the kernel.
    Message {
        /// `RTM_…` of linux/rtnetlink.h.
        kind: u16,
        /// What follows the netlink header.
        body: Vec<u8>,
    },
    /// Some came too fast and are lost: anything may have changed.
    Lost,
}

impl Notifications {
    /// Of the interfaces of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_interfaces() -> io::Result<Notifications> {
        Notifications::open(LINK)
    }

    /// Of its routes, and of all with which IPv4 routes go without a notification of their own.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_routes() -> io::Result<Notifications> {
        let carriers = LINK | IPV4_ADDRESS | IPV6_ADDRESS | NEXTHOP;
        Notifications::open(IPV4_ROUTE | IPV6_ROUTE | carriers)
    }

    fn open(groups: u32) -> io::Result<Notifications> {
        let socket = Netlink::open()?;
        // 0: the kernel chooses the port.
        bind(&socket.0, &SocketAddrNetlink::new(0, groups))?;
        Ok(Notifications(socket))
    }

    /// All that are there, without waiting for more: the file can be read when there are some.
    ///
    /// # Errors
    /// The kernel's.
    pub fn received(&self) -> io::Result<Vec<Notification>> {
        let mut all = Vec::new();
        while self.receive(&mut all)? {}
        Ok(all)
    }

    /// Whether there was something to receive.
    fn receive(&self, all: &mut Vec<Notification>) -> io::Result<bool> {
        let mut datagram = vec![0; MAX_DATAGRAM_BYTES];
        match recv(&self.0.0, &mut datagram[..], RecvFlags::DONTWAIT).map_err(io::Error::from) {
            Ok((len_bytes, _)) => {
                all.extend(messages(&datagram[..len_bytes]).map(|message| {
                    let (kind, body) = (message.kind, message.body.to_vec());
                    Notification::Message { kind, body }
                }));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) if error.raw_os_error() == Some(ENOBUFS) => {
                all.push(Notification::Lost);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// asm-generic/errno.h
const ENOBUFS: i32 = 105;
