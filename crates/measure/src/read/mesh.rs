// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[mesh]]`: hosts that all test one another.

use super::{NAMES, name_of, needed, peer, read_run};
use crate::{Mesh, Plan, Test};
use fatpath_toml::{Refusal, Section, Value};
use std::collections::BTreeSet;

/// Reads each `[[mesh]]`, after all tests.
pub(super) fn read(root: &mut Section, plan: &mut Plan) {
    let sections = root.noted(root.clone().take_list("mesh"));
    root.allow(["mesh"]);
    for section in sections.unwrap_or_default() {
        let mesh = mesh(&mut section.titled("[[mesh]]"), plan);
        plan.meshes.extend(mesh);
    }
}

fn mesh(section: &mut Section, before: &Plan) -> Option<Mesh> {
    let is_taken = |name: &str| before.meshes.iter().any(|mesh| mesh.name == name);
    let name = needed(section, "name", NAMES, |value| {
        name_of(value, "mesh", is_taken)
    });
    let hosts = needed(section, "hosts", HOSTS, hosts);
    let run = read_run(section);
    let (name, hosts, run) = (name?, hosts?, run?);
    let test = Test {
        name: name.clone(),
        ..run
    };
    let mesh = Mesh { name, hosts, test };
    let others = before.tests.iter().cloned();
    let others = others.chain(before.meshes.iter().flat_map(Mesh::tests));
    let taken: BTreeSet<String> = others.map(|test| test.name).collect();
    if let Some(test) = mesh.tests().find(|test| taken.contains(&test.name)) {
        let refusal = section.refusal(format!("a test named `{}`, as one of this mesh", test.name));
        section.note(refusal.allowed("each test needs a name of its own"));
    }
    Some(mesh)
}

/// A table of more is not read by anybody.
const MOST_HOSTS: usize = 1000;
const HOSTS: &str = "2 to 1000 hosts, each by its own name: [\"dtn1\", \"dtn2\"]";

fn hosts(value: &Value) -> Result<Vec<String>, Refusal> {
    let items = value.items(HOSTS)?;
    if !(2..=MOST_HOSTS).contains(&items.len()) {
        return Err(value.found(HOSTS));
    }
    let hosts = items.iter().map(peer).collect::<Result<Vec<_>, _>>()?;
    let is_twice = |(n, host): &(usize, &String)| hosts[..*n].contains(host);
    if let Some((n, host)) = hosts.iter().enumerate().find(is_twice) {
        let refusal = items[n].refusal(format!("`{host}` twice"));
        return Err(refusal.allowed("each host once"));
    }
    Ok(hosts)
}
