// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interfaces of a network namespace.

use crate::{Netlink, Request, attribute};
use std::io;

// linux/rtnetlink.h, linux/if_link.h, linux/if.h
const RTM_GETLINK: u16 = 18;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
/// The attribute of the text that `ip link set … alias` sets.
pub const IFLA_IFALIAS: u16 = 20;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFF_LOOPBACK: u32 = 8;
/// Alias of the emulator's TUN devices: their packets are those of an emulated wire, not of a tunnel.
pub const EMULATED_LINK: &str = "fatpath emulated link";
/// struct ifinfomsg: family, kind, index, flags, changed flags.
const HEADER_BYTES: usize = 16;

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The driver's name where the interface was made by software, such as `veth` or `wireguard`.
    pub kind: Option<String>,
    /// What `ip link set … alias` wrote.
    pub alias: Option<String>,
    /// The interface of this namespace on which it is stacked, such as a VLAN's; of a veth its peer.
    pub lower: Option<u32>,
    /// The bridge, bond or team of which it is a port.
    pub master: Option<u32>,
    /// The kernel's number of its program at XDP; of several, in driver and card, none.
    pub xdp_program: Option<u32>,
}

impl Interface {
    fn parse(body: &[u8]) -> Option<Interface> {
        let (header, rest) = body.split_first_chunk::<HEADER_BYTES>()?;
        let number = |at: usize| Some(u32::from_ne_bytes(*header.get(at..)?.first_chunk()?));
        let text = |value: &[u8]| {
            let text = value.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        let kind = attribute(rest, IFLA_LINKINFO).and_then(|nest| attribute(nest, IFLA_INFO_KIND));
        let is_here = attribute(rest, IFLA_LINK_NETNSID).is_none();
        let lower = attribute(rest, IFLA_LINK).filter(|_| is_here);
        let word = |value: &[u8]| value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let xdp = attribute(rest, IFLA_XDP).and_then(|nest| attribute(nest, IFLA_XDP_PROG_ID));
        Some(Interface {
            index: number(4)?,
            name: attribute(rest, IFLA_IFNAME).and_then(text)?,
            hardware: u16::from_ne_bytes([header[2], header[3]]),
            mtu_bytes: attribute(rest, IFLA_MTU).and_then(word).unwrap_or(0),
            is_loopback: number(8)? & IFF_LOOPBACK != 0,
            kind: kind.and_then(text),
            alias: attribute(rest, IFLA_IFALIAS).and_then(text),
            lower: lower.and_then(word),
            master: attribute(rest, IFLA_MASTER).and_then(word),
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
