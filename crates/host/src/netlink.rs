// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading and writing the main routing table of this network namespace.

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload, Parseable,
};
use netlink_packet_route::route::{RouteAttribute, RouteHeader, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// A netlink socket of this namespace.
pub(crate) struct Netlink(Socket);

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink(socket))
    }

    /// The routes of the main table, both families.
    pub(crate) fn routes(&self) -> io::Result<Vec<RouteMessage>> {
        let mut routes = self.dump(AddressFamily::Inet)?;
        routes.extend(self.dump(AddressFamily::Inet6)?);
        routes.retain(|route| route.header.table == RouteHeader::RT_TABLE_MAIN);
        Ok(routes.into_iter().map(without_volatile).collect())
    }

    /// Adds the route, or puts it in the place of the one with the same destination and priority.
    pub(crate) fn put(&self, route: RouteMessage) -> io::Result<()> {
        self.request(
            RouteNetlinkMessage::NewRoute(route),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    pub(crate) fn delete(&self, route: RouteMessage) -> io::Result<()> {
        self.request(RouteNetlinkMessage::DelRoute(route), 0)
    }

    fn dump(&self, family: AddressFamily) -> io::Result<Vec<RouteMessage>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        self.send(RouteNetlinkMessage::GetRoute(message), NLM_F_DUMP)?;
        let mut routes = Vec::new();
        loop {
            let (bytes, _) = self.0.recv_from_full()?;
            if read_dump(&bytes, &mut routes)? {
                return Ok(routes);
            }
        }
    }

    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        let (bytes, _) = self.0.recv_from_full()?;
        match parse(&bytes)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }

    fn send(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0).map(drop)
    }
}

fn parse(bytes: &[u8]) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(bytes).map_err(io::Error::other)
}

/// Reads one datagram of a dump; true when it was the last.
fn read_dump(bytes: &[u8], routes: &mut Vec<RouteMessage>) -> io::Result<bool> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let message = parse(rest)?;
        // Messages are aligned to 4 bytes (NLMSG_ALIGNTO).
        let length = (message.header.length as usize).next_multiple_of(4).max(16);
        rest = rest.get(length..).unwrap_or_default();
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                routes.push(route)
            }
            _ => {}
        }
    }
    Ok(false)
}

/// Leaves out what the kernel adds and does not take back.
fn without_volatile(mut route: RouteMessage) -> RouteMessage {
    route.attributes.retain(|attribute| {
        !matches!(
            attribute,
            RouteAttribute::CacheInfo(_) | RouteAttribute::Expires(_)
        )
    });
    route.header.flags = Default::default();
    route
}

pub(crate) fn to_hex(route: &RouteMessage) -> String {
    let mut bytes = vec![0; route.buffer_len()];
    route.emit(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(hex: &str) -> Option<RouteMessage> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    RouteMessage::parse(&bytes[..]).ok()
}
