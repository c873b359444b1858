// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `ip link`, `ip addr` and `ip route` would do, over netlink, in the namespace of the caller.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use fatpath_netlink::{
    EMULATED_LINK, IFLA_IFALIAS, NLM_F_CREATE, NLM_F_EXCL, Request, family, octets, push_attribute,
};
use ipnet::IpNet;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use crate::topology::RouteSpec;

const LOOPBACK_INDEX: u32 = 1;

// linux/rtnetlink.h, if_link.h, veth.h and if_addr.h
const RTM_NEWLINK: u16 = 16;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFF_UP: u32 = 1;
const IFF_NOARP: u32 = 0x80;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// Of `struct ifinfomsg`.
const HEADER_BYTES: usize = 16;
/// Of both ends of a veth pair: without ARP, the kernel addresses frames to the sender's own address.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// A netlink socket of the namespace in which it was opened.
pub(crate) struct Netlink(fatpath_netlink::Netlink);

/// The index of a device in the namespace of the calling thread.
pub(crate) fn device_index(device: &str) -> io::Result<u32> {
    let any_socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(any_socket, device)?)
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        fatpath_netlink::Netlink::open().map(Netlink)
    }

    pub(crate) fn set_loopback_up(&self) -> io::Result<()> {
        self.0.request(set_link(LOOPBACK_INDEX, IFF_UP))
    }

    /// Makes a veth pair, one device here and one in the namespace `other`, both of this name.
    pub(crate) fn add_veth(&self, name: &str, other: BorrowedFd) -> io::Result<()> {
        let name = [name.as_bytes(), &[0]].concat();
        let mut peer = vec![0; HEADER_BYTES];
        push_attribute(&mut peer, IFLA_IFNAME, &name);
        push_attribute(&mut peer, IFLA_ADDRESS, &MAC);
        push_attribute(&mut peer, IFLA_NET_NS_FD, &other.as_raw_fd().to_ne_bytes());
        let mut data = vec![];
        push_attribute(&mut data, VETH_INFO_PEER, &peer);
        let mut info = vec![];
        push_attribute(&mut info, IFLA_INFO_KIND, b"veth");
        push_attribute(&mut info, IFLA_INFO_DATA, &data);
        let request = Request::new(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL)
            .bytes(&[0; HEADER_BYTES])
            .attribute(IFLA_IFNAME, &name)
            .attribute(IFLA_ADDRESS, &MAC)
            .attribute(IFLA_LINKINFO, &info);
        self.0.request(request)
    }

    /// Gives a device of the forwarder's a transmit queue in packets, and its mark. A request that also sets it up would
    /// stop it for a moment, for the sake of the queue, in which the kernel's own first packets may be dropped.
    pub(crate) fn prepare(&self, index: u32, txqueuelen: u32) -> io::Result<()> {
        let request = set_link(index, 0)
            .attribute(IFLA_TXQLEN, &txqueuelen.to_ne_bytes())
            .attribute(IFLA_IFALIAS, EMULATED_LINK.as_bytes());
        self.0.request(request)
    }

    /// Sets a device up with an MTU in bytes, and without ARP and neighbour discovery: a link has one neighbour, and no
    /// packets but programs'.
    pub(crate) fn set_up(&self, index: u32, mtu: u32) -> io::Result<()> {
        let size = set_link(index, 0).attribute(IFLA_MTU, &mtu.to_ne_bytes());
        self.0.request(size)?;
        self.0.request(set_link(index, IFF_UP | IFF_NOARP))
    }

    /// Gives a device an address, usable at once: no duplicate can be on a link of two.
    pub(crate) fn add_address(&self, index: u32, address: IpNet) -> io::Result<()> {
        let addr = address.addr();
        let request = Request::new(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL)
            .bytes(&[family(addr), address.prefix_len(), IFA_F_NODAD, 0])
            .bytes(&index.to_ne_bytes())
            .attribute(IFA_LOCAL, &octets(addr))
            .attribute(IFA_ADDRESS, &octets(addr));
        self.0.request(request)
    }

    pub(crate) fn add_route(&self, route: &RouteSpec) -> io::Result<()> {
        let to = route.to.network();
        let request = Request::new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL)
            .bytes(&[family(to), route.to.prefix_len(), 0, 0])
            .bytes(&[RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST])
            .bytes(&0u32.to_ne_bytes())
            .attribute(RTA_DST, &octets(to))
            .attribute(RTA_GATEWAY, &octets(route.via));
        self.0.request(request)
    }
}

/// Sets these flags; the others stay.
fn set_link(index: u32, flags: u32) -> Request {
    let (family_and_type, flags) = ([0; 4], flags.to_ne_bytes());
    Request::new(RTM_SETLINK, 0)
        .bytes(&family_and_type)
        .bytes(&index.to_ne_bytes())
        .bytes(&flags)
        .bytes(&flags)
}
