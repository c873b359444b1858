// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses as keys of an index: 16 bytes, of which prefixes are ranges.

pub use fatpath_path::path_of;
use ipnet::IpNet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Reads a prefix, or an address for the prefix of this address alone.
pub fn parse_prefix(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).ok()
}

pub(super) type Key = [u8; 16];

/// Of IPv4 the mapped address of IPv6.
pub(super) fn key(address: IpAddr) -> Key {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The keys of all addresses of a prefix.
pub(super) fn keys(prefix: IpNet) -> RangeInclusive<Key> {
    key(prefix.network())..=key(prefix.broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_range_of_keys() {
        let keys_of = |prefix: &str| keys(prefix.parse().unwrap());
        let key_of = |address: &str| key(address.parse::<IpAddr>().unwrap());
        let four = keys_of("192.0.2.0/24");
        assert!(
            four.contains(&key_of("192.0.2.255")) && four.contains(&key_of("::ffff:192.0.2.1"))
        );
        assert!(!four.contains(&key_of("192.0.3.0")));
        let six = keys_of("2001:db8::/48");
        assert!(six.contains(&key_of("2001:db8::1")) && !six.contains(&key_of("2001:db8:1::1")));
    }
}
