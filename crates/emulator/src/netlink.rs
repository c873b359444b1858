// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `ip link`, `ip addr` and `ip route` would do, over netlink, in the namespace of the caller.
//!
//! Three requests, encoded here: the netlink crate that would do it takes longer to compile than all
//! the rest of the emulator. Nothing is parsed but the acknowledgement.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ipnet::IpNet;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, send, socket,
    socket_with,
};

use crate::topology::RouteSpec;

const LOOPBACK_INDEX: u32 = 1;

// linux/netlink.h
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_ACK: u16 = 0x004;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 2;
const NLMSG_HEADER_BYTES: usize = 16;
// linux/rtnetlink.h, if_link.h and if_addr.h
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFF_UP: u32 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// A netlink socket of the namespace in which it was opened.
pub(crate) struct Netlink(OwnedFd);

/// The index of a device in the namespace of the calling thread.
pub(crate) fn device_index(device: &str) -> io::Result<u32> {
    let any_socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(any_socket, device)?)
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        // No protocol is protocol 0, NETLINK_ROUTE.
        Ok(Netlink(socket_with(family, SocketType::RAW, flags, None)?))
    }

    pub(crate) fn set_loopback_up(&self) -> io::Result<()> {
        self.request(Request::set_link_up(LOOPBACK_INDEX))
    }

    /// Sets a device up with an MTU in bytes and a transmit queue in packets.
    pub(crate) fn set_up(&self, index: u32, mtu: u32, txqueuelen: u32) -> io::Result<()> {
        let request = Request::set_link_up(index)
            .attribute(IFLA_MTU, &mtu.to_ne_bytes())
            .attribute(IFLA_TXQLEN, &txqueuelen.to_ne_bytes());
        self.request(request)
    }

    /// Gives a device an address, usable at once: no duplicate can be on a link of two.
    pub(crate) fn add_address(&self, index: u32, address: IpNet) -> io::Result<()> {
        let addr = address.addr();
        let request = Request::new(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)
            .bytes(&[family(addr), address.prefix_len(), IFA_F_NODAD, 0])
            .bytes(&index.to_ne_bytes())
            .attribute(IFA_LOCAL, &octets(addr))
            .attribute(IFA_ADDRESS, &octets(addr));
        self.request(request)
    }

    pub(crate) fn add_route(&self, route: &RouteSpec) -> io::Result<()> {
        let to = route.to.network();
        let request = Request::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL)
            .bytes(&[family(to), route.to.prefix_len(), 0, 0])
            .bytes(&[RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST])
            .bytes(&0u32.to_ne_bytes())
            .attribute(RTA_DST, &octets(to))
            .attribute(RTA_GATEWAY, &octets(route.via));
        self.request(request)
    }

    /// Sends one request and waits for its acknowledgement.
    fn request(&self, request: Request) -> io::Result<()> {
        send(&self.0, &request.finished(), SendFlags::empty())?;
        let mut reply = [0; 4096];
        let (len_bytes, _) = recv(&self.0, &mut reply, RecvFlags::empty())?;
        acknowledged(&reply[..len_bytes])
    }
}

/// What an acknowledgement says: its error number is 0, or the negative of an errno.
fn acknowledged(reply: &[u8]) -> io::Result<()> {
    let kind = reply
        .get(4..6)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u16::from_ne_bytes);
    let error = reply
        .get(NLMSG_HEADER_BYTES..)
        .and_then(<[u8]>::first_chunk);
    match (kind, error.map(|bytes| i32::from_ne_bytes(*bytes))) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no acknowledgement from netlink",
        )),
    }
}

/// A netlink message in the making.
struct Request(Vec<u8>);

impl Request {
    fn new(kind: u16, flags: u16) -> Request {
        let flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        // The length comes last; sequence number and port are free to be 0.
        Request(vec![0; 4])
            .bytes(&kind.to_ne_bytes())
            .bytes(&flags.to_ne_bytes())
            .bytes(&[0; 8])
    }

    fn set_link_up(index: u32) -> Request {
        let (family_and_type, flags) = ([0; 4], IFF_UP.to_ne_bytes());
        Request::new(RTM_SETLINK, 0)
            .bytes(&family_and_type)
            .bytes(&index.to_ne_bytes())
            .bytes(&flags)
            .bytes(&flags)
    }

    fn bytes(mut self, bytes: &[u8]) -> Request {
        self.0.extend(bytes);
        self
    }

    /// An attribute; its value has a length that needs no padding.
    fn attribute(self, kind: u16, value: &[u8]) -> Request {
        let len_bytes = (4 + value.len()) as u16;
        self.bytes(&len_bytes.to_ne_bytes())
            .bytes(&kind.to_ne_bytes())
            .bytes(value)
    }

    fn finished(mut self) -> Vec<u8> {
        let len_bytes = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len_bytes.to_ne_bytes());
        self.0
    }
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    family.as_raw() as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
