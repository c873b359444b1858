// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of ends that have not proved who they are. Of one kind a listener keeps few; where there would be more, a
//! stranger takes the places of its own, so that nobody keeps others out by saying nothing.

use std::collections::HashMap;
use std::net::IpAddr;

/// The place of the first address of the network that is there most often; `None`: there is none at all.
pub fn first_of_most(addresses: impl Iterator<Item = IpAddr>) -> Option<usize> {
    let networks: Vec<u128> = addresses.map(network).collect();
    let mut counts = HashMap::new();
    for network in &networks {
        *counts.entry(network).or_insert(0) += 1;
    }
    let most = counts.values().max();
    networks
        .iter()
        .position(|network| counts.get(network) == most)
}

/// What one host may have for itself: an address of IPv4, a /64 of IPv6.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn who_has_most_loses_the_first() {
        let first = |texts: &[&str]| first_of_most(texts.iter().map(|text| text.parse().unwrap()));
        assert_eq!(first(&[]), None);
        assert_eq!(first(&["192.0.2.1", "192.0.2.2", "192.0.2.2"]), Some(1));
        assert_eq!(first(&["192.0.2.1", "192.0.2.2"]), Some(0));
        let of_one = [
            "192.0.2.1",
            "2001:db8::1",
            "2001:db8::2",
            "::ffff:192.0.2.3",
        ];
        assert_eq!(first(&of_one), Some(1));
    }
}
