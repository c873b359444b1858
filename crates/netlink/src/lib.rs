// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routing netlink, as much of it as the house needs: a socket, requests, attributes.
//!
//! What a message means is the caller's affair: attributes are numbers and bytes, so one that
//! nobody here knows passes through unharmed. The crates that know them all take a minute to compile.
//!
//! Start at [`Netlink`].

mod interface;
mod notification;

pub use interface::{EMULATED_LINK, IFLA_IFALIAS, Interface};
pub use notification::{Notification, Notifications};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

// linux/netlink.h
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_ACK: u16 = 0x004;
const NLM_F_DUMP: u16 = 0x300;
/// Things came or went while they were listed: the list may lack some that were there all along.
const NLM_F_DUMP_INTR: u16 = 0x010;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;

/// The request fails when the thing exists.
pub const NLM_F_EXCL: u16 = 0x200;
/// The request replaces the thing that exists.
pub const NLM_F_REPLACE: u16 = 0x100;
/// The request makes the thing when it does not exist.
pub const NLM_F_CREATE: u16 = 0x400;

/// A list that changes under each of so many dumps is given up.
const DUMP_TRIES: u32 = 16;

/// Datagrams of a dump are at most this long (netlink_dump(): max_recvmsg_len).
const MAX_DATAGRAM_BYTES: usize = 64 << 10;

/// A netlink socket of the network namespace in which it was opened.
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens it in the namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Netlink> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        // No protocol is protocol 0, NETLINK_ROUTE.
        Ok(Netlink(socket_with(family, SocketType::RAW, flags, None)?))
    }

    /// Sends one request and waits for its acknowledgement.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn request(&self, request: Request) -> io::Result<()> {
        send(&self.0, &request.finished(NLM_F_ACK), SendFlags::empty())?;
        let mut reply = [0; 4096];
        let (len_bytes, _) = recv(&self.0, &mut reply, RecvFlags::empty())?;
        match messages(&reply[..len_bytes]).next() {
            Some(Message {
                kind: NLMSG_ERROR,
                body,
                ..
            }) => outcome(body),
            _ => Err(invalid("no acknowledgement from netlink")),
        }
    }

    /// Asks for all things of a kind; each answer's body follows its netlink header.
    ///
    /// # Errors
    /// What the kernel answers; [`io::ErrorKind::Interrupted`] when they change all the time.
    pub fn dump(&self, request: Request) -> io::Result<Vec<Vec<u8>>> {
        let request = request.finished(NLM_F_DUMP);
        for _ in 0..DUMP_TRIES {
            send(&self.0, &request, SendFlags::empty())?;
            if let Some(bodies) = self.dumped()? {
                return Ok(bodies);
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    /// One dump to its end; `None` when it was interrupted.
    fn dumped(&self) -> io::Result<Option<Vec<Vec<u8>>>> {
        let mut datagram = vec![0; MAX_DATAGRAM_BYTES];
        let mut bodies = Vec::new();
        let mut flags = 0;
        loop {
            let (len_bytes, _) = recv(&self.0, &mut datagram[..], RecvFlags::empty())?;
            for message in messages(&datagram[..len_bytes]) {
                flags |= message.flags;
                match message.kind {
                    NLMSG_DONE => return Ok((flags & NLM_F_DUMP_INTR == 0).then_some(bodies)),
                    NLMSG_ERROR => outcome(message.body)?,
                    _ => bodies.push(message.body.to_vec()),
                }
            }
        }
    }
}

/// What an acknowledgement says: its error number is 0, or the negative of an errno.
fn outcome(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(invalid("a cut netlink message")),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

struct Message<'d> {
    kind: u16,
    flags: u16,
    body: &'d [u8],
}

/// The messages of a datagram, up to the first that is malformed.
fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let half = |at: usize| Some(u16::from_ne_bytes(*rest.get(at..)?.first_chunk()?));
        let message = Message {
            kind: half(4)?,
            flags: half(6)?,
            body: rest.get(HEADER_BYTES..length)?,
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Kind and value of each attribute, up to the first that is malformed.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of a kind.
pub fn attribute(among: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut all = attributes(among);
    all.find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// A netlink message in the making.
pub struct Request(Vec<u8>);

impl Request {
    /// A message of `kind` (`RTM_…`) with flags beside those of every request.
    pub fn new(kind: u16, flags: u16) -> Request {
        // The length comes last; sequence number and port are free to be 0.
        Request(vec![0; 4])
            .bytes(&kind.to_ne_bytes())
            .bytes(&(NLM_F_REQUEST | flags).to_ne_bytes())
            .bytes(&[0; 8])
    }

    /// Bytes as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Request {
        self.0.extend(bytes);
        self
    }

    /// An attribute, padded to four bytes.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        push_attribute(&mut self.0, kind, value);
        self
    }

    fn finished(mut self, flags: u16) -> Vec<u8> {
        let len_bytes = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len_bytes.to_ne_bytes());
        let all = u16::from_ne_bytes([self.0[6], self.0[7]]) | flags;
        self.0[6..8].copy_from_slice(&all.to_ne_bytes());
        self.0
    }
}

/// Appends an attribute, padded to four bytes, to a message or to a nest of attributes.
pub fn push_attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len_bytes = (4 + value.len()) as u16;
    to.extend(len_bytes.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The address family's number, as the first byte of most messages has it.
pub fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    family.as_raw() as u8
}

/// The address in network byte order.
pub fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_pushed() {
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, 7, b"odd");
        push_attribute(&mut bytes, 9, b"four");
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(7, &b"odd"[..]), (9, &b"four"[..])]);
    }

    #[test]
    fn what_is_cut_or_lies_about_its_length_ends_the_list() {
        for bytes in [
            &[][..],
            &[1],
            &[8, 0, 1, 0, 5],
            &[0, 0, 1, 0],
            &[3, 0, 1, 0, 9, 9, 9, 9],
        ] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
            assert_eq!(messages(bytes).count(), 0, "{bytes:?}");
        }
    }
}
