// SPDX-License-Identifier: MIT OR Apache-2.0
//! A queue that marks ECN-capable segments drops those of a rude flow instead.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_emulator::unshaped::two_hosts;
use fatpath_emulator::{CellSpec, ChainSpec, Counters, DropCause, ForwardOptions, Network};
use fatpath_link::{Discipline, QueueSpec, RateSpec, Service};
use std::net::{TcpListener, TcpStream};
use support::wire::{Wire, negotiate_ecn, transfer};
use support::{Loaded, Mode, alone};

/// 20 Mb/s, 10 ms each way, and a queue that tells early.
fn path(name: &str) -> Network {
    let queue = QueueSpec {
        limit_bytes: Some(1_000_000),
        limit_packets: None,
        discipline: Discipline::Red {
            min_bytes: 15_000,
            max_bytes: 900_000,
            max_probability: 1.0,
            weight: 0.1,
            ecn: true,
        },
        mark_above_bytes: None,
    };
    let rate = CellSpec::Rate(RateSpec {
        service: Service::Constant {
            rate_bps: 20_000_000,
        },
        queue,
        overhead_bytes: 0,
    });
    let delay = || CellSpec::delay(10_000_000);
    let run_name = format!("{name}-{}", std::process::id());
    let mut topology = two_hosts(&run_name, &ChainSpec::of([delay(), rate]));
    topology.links[0].directions[1] = ChainSpec::of([delay()]);
    Network::up(&topology).unwrap()
}

fn connection(network: &Network, to: &str) -> (TcpStream, TcpStream) {
    let [client, server] = ["client", "server"].map(|host| network.host(host).unwrap());
    let listen = || TcpListener::bind(to).unwrap();
    let listener = server.run(listen).unwrap();
    let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let sender = client.run(connect).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// What the queue did while a flow sent over it that was `mode` from its first data on.
fn queue_of(loaded: &Loaded, name: &str, to: &str, mode: Mode) -> Counters {
    let network = path(name);
    let [client, server] = ["client", "server"].map(|host| network.host(host).unwrap());
    negotiate_ecn(client);
    negotiate_ecn(server);
    let marking = loaded.kernel.mark_in(&Wire::file(client)).unwrap();
    assert_eq!(marking.interfaces, ["wan"]);
    let transfer = |_: &_| {
        let (sender, receiver) = connection(&network, to);
        loaded.set_mode(&sender, mode);
        transfer(&sender, &receiver, 2_000_000);
    };
    let ((), stats) = network
        .forward_while(ForwardOptions::default(), transfer)
        .unwrap();
    loaded.kernel.unmark_in(&Wire::file(client)).unwrap();
    stats.links[0].directions[0].cells[1]
}

#[test]
fn a_queue_that_marks_drops_what_is_rude() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::at("ectqueue");
    loaded.mark_with(0x200, 0);
    for to in ["10.99.0.2:0", "[fd00:99::2]:0"] {
        for mode in [Mode::Polite, Mode::GoingPolite] {
            let queue = queue_of(&loaded, "ectqueue", to, mode);
            assert!(queue.marked.packets > 0, "{to}: {queue:?}");
        }
        let queue = queue_of(&loaded, "ectqueue", to, Mode::Rude);
        assert_eq!(queue.marked.packets, 0, "{to}: {queue:?}");
        assert!(queue.dropped(DropCause::Early).packets > 0, "{queue:?}");
    }
}
