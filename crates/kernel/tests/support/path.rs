// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulated path between two namespaces, and a connection over it.

use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, Control, ForwardOptions, Network};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A path that is up.
pub struct Path<'n> {
    network: &'n Network,
    control: &'n Control,
}

/// One way.
const DELAY_NS: u64 = 10_000_000;

/// Two hosts with Reno, both directions: 20 ms round trip, and these cells on the way from client to server.
pub fn over(name: &str, cells: &[CellSpec], work: impl FnOnce(&Path)) {
    let name = format!("fpt-{name}-{}", std::process::id());
    let mut topology = two_hosts(&name, &way(&[]));
    topology.links[0].directions[0] = way(cells);
    let network = Network::up(&topology).unwrap();
    for host in ["client", "server"] {
        let host = network.host(host).unwrap();
        host.set_sysctl("net.ipv4.tcp_congestion_control", "reno")
            .unwrap();
    }
    network
        .forward_while(ForwardOptions::default(), |control| {
            work(&Path {
                network: &network,
                control,
            });
        })
        .unwrap();
}

fn way(cells: &[CellSpec]) -> ChainSpec {
    ChainSpec::of([cells, &[CellSpec::delay(DELAY_NS)]].concat())
}

impl Path<'_> {
    /// From client to server: both ends.
    pub fn connection(&self) -> (TcpStream, TcpStream) {
        let (client, server) = (self.host("client"), self.host("server"));
        let listener = server
            .run(|| TcpListener::bind("10.99.0.2:0").unwrap())
            .unwrap();
        let to = listener.local_addr().unwrap();
        let sender = client.run(|| TcpStream::connect(to).unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    pub fn host(&self, name: &str) -> &fatpath_emulator::Namespace {
        self.network.host(name).unwrap()
    }

    /// Other cells from client to server, at once.
    pub fn change(&self, cells: &[CellSpec]) {
        let directions = [way(cells), way(&[])];
        self.control
            .change("wan", directions, Duration::ZERO)
            .unwrap();
    }
}
