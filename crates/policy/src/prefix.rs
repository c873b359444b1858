// SPDX-License-Identifier: MIT OR Apache-2.0
//! An address prefix of either family, and its form as a key of 128 bits.
//!
//! Refuses what would be silently changed: host bits under the mask, and IPv4 addresses written as IPv6.
//! Start at [`Prefix`].

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The bits of an IPv4 prefix's key that come before the address: those of `::ffff:0:0/96`.
const MAPPED_BITS: u8 = 96;

/// An IPv4 or IPv6 prefix. No bit is set beyond its length.
///
/// In order, IPv4 comes first, and within a family a prefix directly or later follows those that cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpNet);

/// Why a text is not a [`Prefix`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Neither family can read the part before the slash.
    #[error("`{0}` is not an IP address")]
    Address(String),
    /// The part after the slash is no number, or longer than the address.
    #[error("`/{found}` is not a prefix length of 0 to {longest}")]
    Length {
        /// What stands after the slash.
        found: String,
        /// The longest length of the address's family, in bits.
        longest: u8,
    },
    /// Bits are set beyond the prefix length.
    #[error("{found} has bits set beyond its length")]
    HostBits {
        /// The prefix as written.
        found: String,
        /// The prefix that those bits belong to.
        right: Prefix,
    },
    /// An IPv4 address written as IPv6.
    #[error("{found} is an IPv4-mapped IPv6 prefix")]
    Mapped {
        /// The prefix as written.
        found: String,
        /// The same in IPv4; absent when the prefix is wider than IPv4.
        right: Option<Prefix>,
    },
}

impl Prefix {
    /// The whole of IPv4, `0.0.0.0/0`.
    pub const ANY_V4: Prefix = Prefix(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)));
    /// The whole of IPv6, `::/0`.
    pub const ANY_V6: Prefix = Prefix(IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)));

    /// The prefix of `length_bits` that holds `address`; bits beyond the length are dropped.
    ///
    /// `None` when the length is longer than the address. A mapped IPv6 address counts as IPv4.
    pub fn holding(address: IpAddr, length_bits: u8) -> Option<Prefix> {
        let network = IpNet::new(address.to_canonical(), length_bits).ok()?;
        Some(Prefix(network.trunc()))
    }

    /// Of one address.
    pub fn of(address: IpAddr) -> Prefix {
        Prefix(IpNet::from(address.to_canonical()))
    }

    /// The key in a trie of both families: IPv6 as it is, IPv4 as `::ffff:a.b.c.d`; network byte order.
    pub fn key(&self) -> [u8; 16] {
        match self.address() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }

    /// The length of the key's prefix in bits: of IPv6 0 to 128, of IPv4 96 more than in its own notation.
    pub fn key_bits(&self) -> u8 {
        self.length_bits() + if self.is_ipv4() { MAPPED_BITS } else { 0 }
    }

    /// Whether this is a prefix of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.address().is_ipv4()
    }

    /// The first address, which is the one that stands in the prefix's notation.
    pub fn address(&self) -> IpAddr {
        self.0.addr()
    }

    /// The length in bits as in the prefix's notation: of IPv4 0 to 32, of IPv6 0 to 128.
    pub fn length_bits(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether `address` lies within. A mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether the whole of `other` lies within. The families are apart: `::/0` covers no IPv4.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.0.contains(&other.0)
    }
}

fn longest(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `10.5.0.0/16`, `2001:db8::/32`, or an address alone.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address_text, length_text) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address_text
            .parse()
            .map_err(|_| PrefixError::Address(address_text.to_owned()))?;
        let length_bits = read_length(length_text, longest(address))?;
        refuse_mapped(text, address, length_bits)?;
        let prefix = Prefix::holding(address, length_bits).expect("the length was checked");
        match prefix.address() == address {
            true => Ok(prefix),
            false => Err(PrefixError::HostBits {
                found: text.to_owned(),
                right: prefix,
            }),
        }
    }
}

fn read_length(text: Option<&str>, longest: u8) -> Result<u8, PrefixError> {
    let Some(text) = text else { return Ok(longest) };
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(length) if plain && length <= longest => Ok(length),
        _ => Err(PrefixError::Length {
            found: text.to_owned(),
            longest,
        }),
    }
}

/// The mapped range is where IPv4 lives in the kernel's tries, so no IPv6 prefix may name it.
fn refuse_mapped(text: &str, address: IpAddr, length_bits: u8) -> Result<(), PrefixError> {
    let IpAddr::V6(v6) = address else {
        return Ok(());
    };
    let Some(v4) = v6.to_ipv4_mapped() else {
        return Ok(());
    };
    let right = length_bits
        .checked_sub(MAPPED_BITS)
        .and_then(|bits| Prefix::holding(v4.into(), bits));
    Err(PrefixError::Mapped {
        found: text.to_owned(),
        right,
    })
}

impl PrefixError {
    /// What to write instead.
    pub fn remedy(&self) -> String {
        match self {
            PrefixError::Address(_) => {
                "write an address or prefix such as 10.5.0.0/16, 192.0.2.7 or 2001:db8::/32".into()
            }
            PrefixError::Length { longest, .. } => {
                format!("a length of 0 to {longest} after the slash")
            }
            PrefixError::HostBits { found, right } => {
                let address = found.split('/').next().unwrap_or(found);
                format!("write {right} for the network, or {address} for the one address")
            }
            PrefixError::Mapped {
                right: Some(right), ..
            } => format!("write {right}"),
            PrefixError::Mapped { right: None, .. } => {
                "write 0.0.0.0/0 for IPv4, ::/0 for IPv6, or both".into()
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
