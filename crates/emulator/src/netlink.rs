// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `ip link`, `ip addr` and `ip route` would do, over netlink, in the namespace of the caller.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::net::{AddressFamily as SocketFamily, SocketType, netdevice, socket};

use crate::topology::RouteSpec;

const LOOPBACK_INDEX: u32 = 1;

/// A netlink socket of the namespace in which it was opened.
pub(crate) struct Netlink(Socket);

/// The index of a device in the namespace of the calling thread.
pub(crate) fn device_index(device: &str) -> io::Result<u32> {
    let any_socket = socket(SocketFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(any_socket, device)?)
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink(socket))
    }

    pub(crate) fn set_loopback_up(&self) -> io::Result<()> {
        self.set_link(LOOPBACK_INDEX, vec![])
    }

    /// Sets a device up with an MTU in bytes and a transmit queue in packets.
    pub(crate) fn set_up(&self, index: u32, mtu: u32, txqueuelen: u32) -> io::Result<()> {
        self.set_link(
            index,
            vec![
                LinkAttribute::Mtu(mtu),
                LinkAttribute::TxQueueLen(txqueuelen),
            ],
        )
    }

    fn set_link(&self, index: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address, usable at once: no duplicate can be on a link of two.
    pub(crate) fn add_address(&self, index: u32, address: IpNet) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address.addr());
        message.header.prefix_len = address.prefix_len();
        message.header.index = index;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![
            AddressAttribute::Local(address.addr()),
            AddressAttribute::Address(address.addr()),
        ];
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    pub(crate) fn add_route(&self, route: &RouteSpec) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.to.addr());
        message.header.destination_prefix_length = route.to.prefix_len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(route.to.network().into()),
            RouteAttribute::Gateway(route.via.into()),
        ];
        self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Sends one request and waits for its acknowledgement.
    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let (reply, _) = self.0.recv_from_full()?;
        let reply = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&reply);
        match reply.map_err(io::Error::other)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
