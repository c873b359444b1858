// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP segment as a frame carries it, with what the analysis needs of the layers below.

use crate::options::Options;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Flags of the TCP header (RFC 9293, section 3.1; RFC 3168 for the last two).
pub mod flag {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Begins a connection.
    pub const SYN: u8 = 0x02;
    /// Aborts one.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// One end of a connection. IPv4 addresses are held as IPv4-mapped IPv6 addresses, which no packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    address: u128,
    port: u16,
}

impl End {
    /// An end at this address and port.
    pub fn new(address: IpAddr, port: u16) -> End {
        let mapped = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        End {
            address: mapped.to_bits(),
            port,
        }
    }

    /// An IPv4 address is mapped.
    pub(crate) fn at(address: u128, port: u16) -> End {
        End { address, port }
    }

    /// As the standard library has it.
    pub fn socket(&self) -> SocketAddr {
        let address = Ipv6Addr::from_bits(self.address);
        SocketAddr::new(address.to_canonical(), self.port)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket().fmt(f)
    }
}

impl Serialize for End {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The two bits of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// 00.
    NotCapable,
    /// 01.
    Ect1,
    /// 10.
    Ect0,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    pub(crate) fn of(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// A segment, and when it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Since 1970.
    pub time_ns: i64,
    /// Who sent it.
    pub source: End,
    /// To whom.
    pub destination: End,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number; 0 without [`flag::ACK`].
    pub ack: u32,
    /// See [`flag`].
    pub flags: u8,
    /// As the header has it, not scaled.
    pub window: u16,
    /// Length of its data.
    pub payload_bytes: u32,
    /// Identification of the IPv4 header; none in IPv6, and 0 of hosts that do not count.
    pub ip_id: Option<u16>,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
    /// TCP options.
    pub options: Options,
}

impl Segment {
    /// Whether all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Whether one of these flags is set.
    pub fn has_any(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers that it takes: data, SYN and FIN.
    pub fn sequence_bytes(&self) -> u32 {
        let one = |flag| u32::from(self.has(flag));
        self.payload_bytes
            .wrapping_add(one(flag::SYN))
            .wrapping_add(one(flag::FIN))
    }
}
