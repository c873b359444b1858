// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plan's hosts and links as the emulator takes them.
//!
//! It keeps nothing and decides nothing; the network itself is the supervisor's.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fatpath_emulator::{
    End, HostSpec, LinkSpec, Namespace, NamespaceError, RouteSpec, Topology, WireSpec,
    remove_namespace,
};
use fatpath_scenario::plan::{self, Plan, Route};
use fatpath_scenario::{Host, Link};

use crate::child;
use crate::machine;

/// The emulator's input for a plan.
pub fn topology(plan: &Plan) -> Topology {
    Topology {
        hosts: plan
            .hosts
            .iter()
            .map(|host| host_spec(plan, host))
            .collect(),
        links: links(plan, true).map(link_spec).collect(),
        wires: links(plan, false).map(wire_spec).collect(),
    }
}

/// With their places, which give the addresses.
fn links(plan: &Plan, emulated: bool) -> impl Iterator<Item = (usize, &Link)> {
    let all = plan.links.iter().enumerate();
    all.filter(move |(_, link)| link.emulated == emulated)
}

fn host_spec(plan: &Plan, host: &Host) -> HostSpec {
    HostSpec {
        name: host.name.clone(),
        netns: plan.namespace(&host.name),
        routes: plan.routes(&host.name).into_iter().map(route).collect(),
        forwarding: host.router,
    }
}

fn route(Route { to, via }: Route) -> RouteSpec {
    RouteSpec { to, via }
}

fn link_spec((index, link): (usize, &Link)) -> LinkSpec {
    LinkSpec {
        name: link.name.clone(),
        ends: ends(index, link),
        mtu: link.mtu_bytes.into(),
        exact: link.exact,
        directions: link.directions.clone(),
    }
}

fn wire_spec((index, link): (usize, &Link)) -> WireSpec {
    WireSpec {
        name: link.name.clone(),
        ends: ends(index, link),
        mtu: link.mtu_bytes.into(),
    }
}

fn ends(index: usize, link: &Link) -> [End; 2] {
    [0, 1].map(|end| End {
        host: link.between[end].clone(),
        ipv4: Some(plan::ipv4(index, end)),
        ipv6: Some(plan::ipv6(index, end)),
    })
}

/// The cgroup-2 folder in which a lab's programs run.
///
/// # Errors
/// If cgroup 2 is not mounted.
pub fn cgroup(lab: &str) -> io::Result<PathBuf> {
    Ok(machine::cgroup2_root()?.join(format!("fatpath-lab-{lab}")))
}

/// Whether a namespace of that name is there, whoever made it.
pub fn is_taken(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

/// Removes a namespace that fatpath made. One that is gone, or that another has made since, is
/// left alone.
///
/// # Errors
/// If the kernel refuses.
pub fn remove(namespace: &str) -> io::Result<()> {
    match remove_namespace(namespace) {
        Ok(()) | Err(NamespaceError::NotOurs(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// A command that will run on a host: in its namespace and in the lab's cgroup.
///
/// # Errors
/// If the lab is not up.
pub fn command(plan: &Plan, host: &str, program: impl AsRef<OsStr>) -> io::Result<Command> {
    let namespace = Namespace::open(&plan.namespace(host)).map_err(io::Error::other)?;
    let mut command = namespace.command(program);
    child::in_cgroup(&mut command, &cgroup(&plan.lab)?)?;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use fatpath_scenario::Scenario;

    use super::*;

    #[test]
    fn addresses_follow_the_scenarios_links_whoever_carries_them() {
        let text = "name = \"x\"\n[hosts.a]\n[hosts.b]\nrouter = true\n[hosts.c]\n[links.near]\nbetween = [\"a\", \"b\"]\n\
                    emulated = false\n[links.wan]\nbetween = [\"b\", \"c\"]\ndelay = \"5ms\"";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        let plan = Plan::of(&scenario, &scenario.cases[0], PathBuf::new());
        let topology = topology(&plan);
        let first = |ends: &[End; 2]| ends[0].ipv4.unwrap().to_string();
        let wires = topology
            .wires
            .iter()
            .map(|wire| (&*wire.name, first(&wire.ends)));
        assert_eq!(
            wires.collect::<Vec<_>>(),
            [("near", "10.77.0.1/24".to_owned())]
        );
        let links = topology
            .links
            .iter()
            .map(|link| (&*link.name, first(&link.ends)));
        assert_eq!(
            links.collect::<Vec<_>>(),
            [("wan", "10.77.1.1/24".to_owned())]
        );
    }
}
