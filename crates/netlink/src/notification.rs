// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel reports of interfaces and routes that come, change or go.

use crate::{MAX_DATAGRAM_BYTES, Netlink, messages};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, bind, recv};
use std::io;
use std::time::Duration;

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

    /// Waits for notifications, and returns all that are there; none when nothing came for so long.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, at_most: Duration) -> io::Result<Vec<Notification>> {
        set_socket_timeout(&self.0.0, Timeout::Recv, Some(at_most))?;
        let mut all = Vec::new();
        let mut flags = RecvFlags::empty();
        while self.receive(flags, &mut all)? {
            flags = RecvFlags::DONTWAIT;
        }
        Ok(all)
    }

    /// Whether there was something to receive.
    fn receive(&self, flags: RecvFlags, all: &mut Vec<Notification>) -> io::Result<bool> {
        let mut datagram = vec![0; MAX_DATAGRAM_BYTES];
        match recv(&self.0.0, &mut datagram[..], flags).map_err(io::Error::from) {
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

/// asm-generic/errno.h
const ENOBUFS: i32 = 105;
