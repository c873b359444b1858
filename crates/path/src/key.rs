// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which addresses share a path.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// From an address of this host to the peers of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PathKey {
    /// This host's address.
    pub local: IpAddr,
    /// The peers': a /24, of IPv6 a /48.
    pub prefix: IpNet,
}

impl PathKey {
    /// The path of a flow.
    pub fn new(local: IpAddr, remote: IpAddr) -> PathKey {
        PathKey {
            local: local.to_canonical(),
            prefix: path_of(remote),
        }
    }
}

/// The prefix that counts as one path: a /24, of IPv6 a /48.
pub fn path_of(peer: IpAddr) -> IpNet {
    match peer.to_canonical() {
        IpAddr::V4(peer) => {
            let net = Ipv4Net::new(peer, 24).expect("24 is a length of IPv4");
            net.trunc().into()
        }
        IpAddr::V6(peer) => {
            let net = Ipv6Net::new(peer, 48).expect("48 is a length of IPv6");
            net.trunc().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_24_or_a_48() {
        let path = |peer: &str| path_of(peer.parse().unwrap()).to_string();
        assert_eq!(path("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(path("::ffff:192.0.2.77"), "192.0.2.0/24");
        assert_eq!(path("2001:db8:0:7::1"), "2001:db8::/48");
    }
}
