// SPDX-License-Identifier: MIT OR Apache-2.0
//! A resource that one test of this host loads, whichever program makes the test: the daemon, or the responder.

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What the names begin with.
const PREFIX: &str = "fatpath/resource/";

/// The kernel keeps it as the name of a socket (abstract, unix(7)): one holder in a network namespace has it, as one interface is in
/// one, and it is free the moment that its holder ends, also by SIGKILL. A file would belong to one of the users that tests run as.
#[derive(Debug)]
pub struct HostLease {
    _name: UnixDatagram,
}

impl HostLease {
    /// Takes the resource; `None`: another test of this host loads it.
    ///
    /// # Errors
    /// This process may have no Unix socket, or the name is longer than one may be.
    pub fn take(resource: &str) -> io::Result<Option<HostLease>> {
        let name = SocketAddr::from_abstract_name(format!("{PREFIX}{resource}"))?;
        match UnixDatagram::bind_addr(&name) {
            Ok(name) => Ok(Some(HostLease { _name: name })),
            Err(error) if error.kind() == ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes all of them; `None`, and none of them is held: another test loads one.
    ///
    /// # Errors
    /// As of [`HostLease::take`].
    pub fn take_all(resources: &[String]) -> io::Result<Option<Vec<HostLease>>> {
        let leases = resources.iter().map(|resource| HostLease::take(resource));
        leases.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: [&str; 2]) -> Vec<String> {
        let of_this_test = |name| format!("{name}-{}", std::process::id());
        names.map(of_this_test).to_vec()
    }

    #[test]
    fn one_holder_has_a_resource_until_it_ends() {
        let [a, b] = &names(["a", "b"])[..] else {
            unreachable!()
        };
        let held = HostLease::take(a).unwrap();
        assert!(held.is_some() && HostLease::take(a).unwrap().is_none());
        assert!(HostLease::take(b).unwrap().is_some(), "another resource");
        drop(held);
        assert!(HostLease::take(a).unwrap().is_some());
    }

    #[test]
    fn who_gets_not_all_holds_none() {
        let both = names(["c", "d"]);
        let held = HostLease::take(&both[1]).unwrap();
        assert!(HostLease::take_all(&both).unwrap().is_none());
        assert!(HostLease::take(&both[0]).unwrap().is_some());
        drop(held);
        assert!(HostLease::take_all(&both).unwrap().is_some());
    }

    #[test]
    fn the_longest_name_of_a_file_can_be_held() {
        let longest = "x".repeat(fatpath_measure::MOST_RESOURCE_LETTERS);
        assert!(HostLease::take(&longest).unwrap().is_some());
        assert!(HostLease::take(&"x".repeat(200)).is_err());
    }
}
