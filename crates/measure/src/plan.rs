// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of a file, and the tests that it lets others make.

use crate::{Peer, Responder, Tool};
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What a file says, in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Each has a name of its own.
    pub tests: Vec<Test>,
    /// Where tests of others are answered; none: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<Responder>,
    /// Whose tests are answered. Each has a name of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
}

/// One `[[test]]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// Unique in the file.
    pub name: String,
    /// The peer: a host name or an address. Only a program may have none.
    pub to: Option<String>,
    /// From one run to the next, 1 s to 7 days.
    pub every_us: u64,
    /// A run lasts so long by itself.
    pub duration_us: u64,
    /// A run may be earlier or later by this share of `every_us`, 0 to 0.5.
    pub jitter: f64,
    /// What the test loads (interfaces, named paths), sorted: no two tests load one at a time.
    pub resources: Vec<String>,
    /// Whether a rate test is left out when ordinary flows of the last hour say enough.
    pub passive_first: bool,
    /// What is run.
    pub tool: Tool,
}

/// Beyond the duration and 20 round trips, for a name to be looked up and a connection to be made.
const GRACE_US: u64 = 15_000_000;

impl Test {
    /// A run that lasts longer is killed: the duration + 20 round trips + 15 s, and what the other end may take of it.
    pub fn timeout_us(&self, rtt_us: u64) -> u64 {
        self.duration_us + 20 * rtt_us + GRACE_US + self.tool.waits_us()
    }
}

impl Plan {
    /// The test of this name.
    pub fn test(&self, name: &str) -> Option<&Test> {
        self.tests.iter().find(|test| test.name == name)
    }

    /// What tests of others load, sorted by name, each once.
    pub fn responder_resources(&self) -> Vec<String> {
        let said = self.responder.as_ref().and_then(|it| it.resources.clone());
        said.unwrap_or_else(|| {
            let of_tests = self.tests.iter().flat_map(|test| test.resources.clone());
            BTreeSet::from_iter(of_tests).into_iter().collect()
        })
    }

    /// Whether an address is of any peer.
    pub fn has_peer_at(&self, address: IpAddr) -> bool {
        self.peers.iter().any(|peer| peer.is_at(address))
    }

    /// Who has this key, at this address.
    pub fn peer(&self, address: IpAddr, key: &str) -> Option<&Peer> {
        let mut peers = self.peers.iter();
        peers.find(|peer| peer.key == key && peer.is_at(address))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_timeout_grows_with_the_round_trip() {
        let plan = crate::parse(
            "[[test]]\nname = 'a'\ntool = 'ping'\nto = 'h'\nevery = '1min'\nduration = '10s'\n",
        );
        assert_eq!(
            plan.unwrap().tests[0].timeout_us(100_000),
            27_000_000,
            "10 s + 20 x 100 ms + 15 s"
        );
    }

    #[test]
    fn tests_of_others_load_what_the_file_says_or_what_its_tests_load() {
        let ping = |name, resource| {
            format!(
                "[[test]]\nname = '{name}'\ntool = 'ping'\nto = 'h'\nevery = '1min'\nresource = {resource}\n"
            )
        };
        let tests = [ping("a", "'wan'"), ping("b", "['wan', 'eth0']")].concat();
        let resources = |more: &str| {
            let file = format!("[responder]\nlisten = '[::]:4748'\n{more}\n{tests}");
            crate::parse(&file).unwrap().responder_resources()
        };
        assert_eq!(resources(""), ["eth0", "wan"]);
        assert_eq!(resources("resource = 'eth1'"), ["eth1"]);
        assert!(resources("resource = []").is_empty());
    }
}
