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
    /// Hosts that all test one another. Each has a name of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meshes: Vec<Mesh>,
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

/// One `[[mesh]]`: hosts that all test one another. Each of them has the same file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mesh {
    /// Unique in the file.
    pub name: String,
    /// Each by its own name, by which the others reach it, too.
    pub hosts: Vec<String>,
    /// What each runs to each other one, which has the place of `to`.
    pub test: Test,
}

/// Beyond the duration and 20 round trips, for a name to be looked up and a connection to be made.
const GRACE_US: u64 = 15_000_000;

impl Test {
    /// A run that lasts longer is killed: the duration + 20 round trips + 15 s, and what the other end may take of it.
    pub fn timeout_us(&self, rtt_us: u64) -> u64 {
        self.duration_us + 20 * rtt_us + GRACE_US + self.tool.waits_us()
    }
}

impl Mesh {
    /// The name of the test to a host.
    pub(crate) fn test_name(&self, to: &str) -> String {
        format!("{}.{to}", self.name)
    }

    /// To all hosts.
    pub(crate) fn tests(&self) -> impl Iterator<Item = Test> {
        self.hosts.iter().map(|to| Test {
            name: self.test_name(to),
            to: Some(to.clone()),
            ..self.test.clone()
        })
    }
}

impl Plan {
    /// Adds what the host of that name runs as one of its meshes.
    pub fn join_meshes(&mut self, host: &str) {
        let meshes = self.meshes.iter();
        let joined = meshes.filter(|mesh| mesh.hosts.iter().any(|it| it == host));
        let tests = joined.flat_map(Mesh::tests);
        let of_others = tests.filter(|test| test.to.as_deref() != Some(host));
        self.tests.extend(of_others.collect::<Vec<_>>());
    }

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

    const MESH: &str = "[[mesh]]\nname = 'core'\nhosts = ['a', 'b', 'c']\ntool = 'ping'\nevery = '10s'\nduration = '1s'\n";

    #[test]
    fn each_host_tests_all_others() {
        let names = |host: &str| -> Vec<String> {
            let mut plan = crate::parse(MESH).unwrap();
            plan.join_meshes(host);
            let tests = plan.tests.iter();
            tests
                .map(|test| format!("{} to {:?}", test.name, test.to))
                .collect()
        };
        assert_eq!(
            names("b"),
            ["core.a to Some(\"a\")", "core.c to Some(\"c\")"]
        );
        assert!(names("elsewhere").is_empty());
    }

    #[test]
    fn what_a_mesh_may_not_be_is_said() {
        let said = |text: &str| crate::parse(text).unwrap_err()[0].to_string();
        let one = said(&MESH.replace("'a', 'b', 'c'", "'a'"));
        assert!(one.contains("2 to 1000 hosts"), "{one}");
        let twice = said(&MESH.replace("'b'", "'a'"));
        assert!(twice.contains("`a` twice"), "{twice}");
        let with_peer = said(&format!("{MESH}to = 'd'\n"));
        assert!(with_peer.contains("unknown key `to`"), "{with_peer}");
        let test = "[[test]]\nname = 'core.c'\ntool = 'ping'\nto = 'h'\nevery = '1min'\n";
        let named = said(&format!("{MESH}{test}"));
        assert!(named.contains("a test named `core.c`"), "{named}");
        let of_other = MESH.replace("'core'", "'core.b'").replace("'c'", "'d'");
        let also = MESH.replace("'c'", "'b.d'");
        let same = said(&format!("{of_other}{also}"));
        assert!(same.contains("a test named `core.b.d`"), "{same}");
        let again = said(&format!("{MESH}{MESH}"));
        assert!(again.contains("a second mesh named `core`"), "{again}");
    }
}
