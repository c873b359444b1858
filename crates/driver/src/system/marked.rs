// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams that leave with a DSCP. `quinn-udp` gives each call the two bits of ECN as the whole of the field, so that what a
//! socket is set to does not count: these leave by a call of our own, many at once as others do.

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The mark of a socket's datagrams.
pub(crate) struct Mark {
    /// The DSCP, then the bits of ECN: not ECT.
    class: u8,
    lacks_offload: Cell<bool>,
}

impl Mark {
    /// A DSCP of 1 to 63.
    pub(crate) fn new(dscp: u8) -> Mark {
        Mark {
            class: dscp << 2,
            lacks_offload: Cell::new(false),
        }
    }

    /// The kernel cuts what is given to it into datagrams, as far as is known.
    pub(crate) fn has_offload(&self) -> bool {
        !self.lacks_offload.get()
    }

    /// Sends `contents`, cut into datagrams of this length.
    ///
    /// # Errors
    /// The kernel's. Where the device lacks the offload, what was given is lost, and the next batch is one datagram.
    pub(crate) fn send(
        &self,
        socket: &UdpSocket,
        destination: SocketAddr,
        contents: &[u8],
        datagram_bytes: usize,
    ) -> io::Result<()> {
        let (class, wide_class) = (self.class, self.class.into());
        let field = match destination.ip().to_canonical() {
            IpAddr::V4(_) => ControlMessage::Ipv4Tos(&class),
            IpAddr::V6(_) => ControlMessage::Ipv6TClass(&wide_class),
        };
        let size = datagram_bytes as u16; // one that fits UDP
        let cut =
            (contents.len() > datagram_bytes).then_some(ControlMessage::UdpGsoSegments(&size));
        let is_cut = cut.is_some();
        let controls: Vec<_> = std::iter::once(field).chain(cut).collect();
        let to = SockaddrStorage::from(destination);
        let send = || {
            let contents = [IoSlice::new(contents)];
            let flags = MsgFlags::empty();
            sendmsg(socket.as_raw_fd(), &contents, &controls, flags, Some(&to))
        };
        let mut sent = send();
        while sent == Err(Errno::EINTR) {
            sent = send();
        }
        if is_cut && matches!(sent, Err(Errno::EIO | Errno::EINVAL)) {
            self.lacks_offload.set(true);
        }
        Ok(sent.map(drop)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use nix::cmsg_space;
    use nix::sys::socket::{ControlMessageOwned, recvmsg};
    use rustix::net::sockopt::{set_ip_recvtos, set_ipv6_recvtclass};
    use std::io::IoSliceMut;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    /// Length and field of the next datagram.
    fn received(socket: &UdpSocket) -> (usize, i32) {
        let mut bytes = [0; 2000];
        let mut into = [IoSliceMut::new(&mut bytes)];
        let mut space = cmsg_space!(i32);
        let flags = MsgFlags::empty();
        let message =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut into, Some(&mut space), flags);
        let message = message.unwrap();
        let class = message.cmsgs().unwrap().find_map(|control| match control {
            ControlMessageOwned::Ipv4Tos(class) => Some(class.into()),
            ControlMessageOwned::Ipv6TClass(class) => Some(class),
            _ => None,
        });
        (message.bytes, class.unwrap())
    }

    #[test]
    fn datagrams_carry_the_dscp_and_no_ect() {
        for here in [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ] {
            let receiver = UdpSocket::bind((here, 0)).unwrap();
            match here {
                IpAddr::V4(_) => set_ip_recvtos(&receiver, true).unwrap(),
                IpAddr::V6(_) => set_ipv6_recvtclass(&receiver, true).unwrap(),
            }
            let patience = Some(Duration::from_secs(10));
            receiver.set_read_timeout(patience).unwrap();
            let sender = UdpSocket::bind((here, 0)).unwrap();
            let mark = Mark::new(44);
            let to = receiver.local_addr().unwrap();
            mark.send(&sender, to, &[7; 2500], 1000).unwrap();
            mark.send(&sender, to, &[7; 900], 1000).unwrap();
            let all = [(); 4].map(|()| received(&receiver));
            let lengths = [1000, 1000, 500, 900];
            assert_eq!(all, lengths.map(|bytes| (bytes, 44 << 2)), "{here}");
            assert!(mark.has_offload());
        }
    }
}
