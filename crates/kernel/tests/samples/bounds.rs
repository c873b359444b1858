// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much is sampled, what is lost, and what is left when all is taken away.

use crate::support::machine;
use crate::support::wire::{A4, B4, Wire, transfer};
use crate::{LONG, Read, TICK, order, publish, reading, sampling, sampling_in_turn, walked};
use fatpath_api::{SampleCounts, SampleKind};
use fatpath_kernel::Kernel;
use libbpf_rs::query::{LinkInfoIter, ProgInfoIter};
use rustix::net::sockopt::set_socket_linger;
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn counts(kernel: &Kernel) -> SampleCounts {
    kernel.sample_counts().unwrap()
}

fn connections(wire: &Wire, count: usize) -> Vec<(TcpStream, TcpStream)> {
    (0..count).map(|_| wire.connection(B4)).collect()
}

fn tracked(kernel: &Kernel, flows: &[(TcpStream, TcpStream)]) -> usize {
    let ends = flows.iter().flat_map(|(a, b)| [a, b]);
    ends.filter(|flow| walked(kernel, flow).is_tracked).count()
}

#[test]
fn no_more_flows_than_max_flows_and_room_comes_back() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("most", "max_flows = 4");
    let wire = Wire::lay("most");
    // Connections of others on this host may take room: never more than there is.
    let flows = connections(&wire, 5);
    assert!(counts(&loaded.kernel).flows_sampled <= 4);
    assert!(counts(&loaded.kernel).flows_beyond_bounds >= 6);
    let beyond = counts(&loaded.kernel).flows_beyond_bounds;
    assert!(tracked(&loaded.kernel, &flows) <= 4);
    let after = counts(&loaded.kernel).flows_beyond_bounds;
    assert!(after < beyond + 6, "walks count nothing: {beyond}, {after}");
    drop(flows);
    let end = Instant::now() + LONG;
    loop {
        let flows = connections(&wire, 1);
        if tracked(&loaded.kernel, &flows) > 0 {
            break;
        }
        assert!(Instant::now() < end, "room never came back");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn no_more_flows_of_a_prefix_than_it_may_have() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("prefix", "max_flows_per_prefix = 3");
    let wire = Wire::lay("prefix");
    let flows = connections(&wire, 5);
    assert_eq!(
        tracked(&loaded.kernel, &flows),
        3,
        "both ends are in {A4}/24"
    );
    let other = wire.connection(crate::support::wire::B6);
    assert!(
        walked(&loaded.kernel, &other.0).is_tracked,
        "another prefix"
    );
}

#[test]
fn one_in_n_flows_is_sampled() {
    let Some(loaded) = sampling_in_turn("one_in = 4") else {
        return;
    };
    let wire = Wire::lay("one");
    let flows = connections(&wire, 100);
    let tracked = tracked(&loaded.kernel, &flows);
    // 200 flows, 50 expected, sigma 6.
    assert!((20..=80).contains(&tracked), "{tracked} of 200");
    drop(flows);
}

/// From Linux 6.12 on a program outside sockops can switch a socket's callbacks.
fn switches_callbacks() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|n| n.trim().parse::<u32>());
    let mut next = || numbers.next().unwrap().unwrap();
    (next(), next()) >= (6, 12)
}

#[test]
fn flows_obey_new_orders() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("orders", "flows = 'none'");
    let wire = Wire::lay("orders");
    let (a, b) = wire.connection(B4);
    transfer(&a, &b, 1000);
    let before = walked(&loaded.kernel, &a);
    assert!(
        !before.is_tracked && before.bytes_acked == 1001,
        "{before:?}"
    );
    order(&loaded.kernel, "interval = '1ms'");
    let adopted = walked(&loaded.kernel, &a);
    assert_eq!(adopted.is_tracked, switches_callbacks(), "docs/kernel.md");
    if !adopted.is_tracked {
        return;
    }
    assert!(adopted.flow.is_adopted);
    reading(&loaded.kernel, |read| {
        transfer(&a, &b, 1000);
        std::thread::sleep(Duration::from_millis(5));
        transfer(&a, &b, 1000);
        read.until(&a, "a sample", |s| s.kind == SampleKind::Interval);
        order(&loaded.kernel, "flows = 'none'");
        transfer(&a, &b, 1000);
        assert!(!walked(&loaded.kernel, &a).is_tracked);
        let before = read.of(&a).len();
        transfer(&a, &b, 1000);
        assert_eq!(read.of(&a).len(), before);
    });
}

/// While `work` is done again and again.
fn until_none_is_sampled(kernel: &Kernel, mut work: impl FnMut()) {
    let end = Instant::now() + LONG;
    while counts(kernel).flows_sampled > 0 {
        work();
        assert!(Instant::now() < end, "{:?}", counts(kernel));
        std::thread::sleep(TICK);
    }
}

#[test]
fn no_flow_begins_to_be_sampled_at_its_end() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("closing", "flows = 'all'");
    let wire = Wire::lay("closing");
    let (a, b) = wire.connection(B4);
    transfer(&a, &b, 1000);
    assert!(walked(&loaded.kernel, &a).is_tracked);
    order(&loaded.kernel, "flows = 'none'");
    until_none_is_sampled(&loaded.kernel, || {
        transfer(&a, &b, 1000);
        transfer(&b, &a, 1000);
    });
    order(&loaded.kernel, "flows = 'all'");
    set_socket_linger(&a, Some(Duration::ZERO)).unwrap();
    drop((a, b));
    until_none_is_sampled(&loaded.kernel, || ());
}

#[test]
fn only_flows_of_a_rule() {
    let Some(loaded) = sampling_in_turn("flows = 'none'") else {
        return;
    };
    let text = format!(
        "[[rule]]\nname = 'them'\ndestination = ['{B4}/32']\nnotsent_lowat = 65536\n\
         [instruments]\nrules = ['them']\n"
    );
    publish(&loaded.kernel, &fatpath_policy::parse(&text, None).unwrap());
    let wire = Wire::lay("rule");
    let (a, b) = wire.connection(B4);
    let ours = walked(&loaded.kernel, &a);
    assert!(ours.is_tracked && ours.flow.rule_id.is_some());
    assert!(!walked(&loaded.kernel, &b).is_tracked, "its peer is {A4}");
}

/// Both ends, closed by a reset.
fn short_connection(listener: &TcpListener) {
    let opener = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = listener.accept().unwrap().0;
    set_socket_linger(&opener, Some(Duration::ZERO)).unwrap();
    drop(opener);
    drop(accepted);
}

#[test]
fn what_the_full_ring_buffer_could_not_take_is_counted() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("full", "flows = 'all'");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = counts(&loaded.kernel);
    let mut made = 0;
    while counts(&loaded.kernel).samples_lost < 1000 {
        (0..1000).for_each(|_| short_connection(&listener));
        made += 1000;
        assert!(made < 100_000);
    }
    let after = counts(&loaded.kernel);
    let all = after.samples + after.samples_lost - before.samples - before.samples_lost;
    // A begin and an end of each of its two ends; others on this host have theirs.
    assert!(all >= 4 * made, "{all} of {}", 4 * made);
    let read_all = |read: &Read| {
        let end = Instant::now() + LONG;
        let came = || read.samples.lock().unwrap().len() as u64;
        while came() < after.samples {
            assert!(Instant::now() < end, "{} of {}", came(), after.samples);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    reading(&loaded.kernel, read_all);
}

#[test]
fn the_program_that_samples_is_attached_while_there_is_something_to_sample() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("rest", "flows = 'none'");
    let is_attached = || {
        let links = ["link_sample_flow", "link_sample_received"];
        let there = links.map(|link| loaded.pin_dir.join(link).exists());
        assert_eq!(there[0], there[1]);
        there[0]
    };
    assert!(!is_attached());
    order(&loaded.kernel, "flows = 'all'");
    assert!(is_attached());
    let wire = Wire::lay("rest");
    let ends = wire.connection(B4);
    assert!(counts(&loaded.kernel).flows_sampled >= 2);

    order(&loaded.kernel, "flows = 'none'");
    loaded.kernel.rest_instruments().unwrap();
    assert!(is_attached(), "the ends of sampled flows are still to come");
    drop(ends);
    until_none_is_sampled(&loaded.kernel, || ());
    loaded.kernel.rest_instruments().unwrap();
    assert!(is_attached(), "one that begins may not be counted yet");
    loaded.kernel.rest_instruments().unwrap();
    assert!(!is_attached());
    order(&loaded.kernel, "flows = 'all'");
    assert!(is_attached());
}

/// The instruments' programs that the kernel has, by id: those of a test before may still be on their way out.
fn loaded_programs() -> BTreeSet<u32> {
    let ours = [
        "sample_flow",
        "sample_received",
        "state_set",
        "walk_samples",
    ];
    ProgInfoIter::default()
        .filter(|info| ours.iter().any(|name| info.name == *name))
        .map(|info| info.id)
        .collect()
}

#[test]
fn an_unload_leaves_nothing_and_flows_go_on() {
    let Some(_machine) = machine() else { return };
    let links_before = LinkInfoIter::default().count();
    let before = loaded_programs();
    let wire = Wire::lay("gone");
    let loaded = sampling("gone", "interval = '1ms'");
    let (a, b) = wire.connection(B4);
    transfer(&a, &b, 100_000);
    let pins = loaded.pin_dir.clone();
    let own: BTreeSet<u32> = &loaded_programs() - &before;
    assert!(own.len() >= 4, "{own:?}");
    drop(loaded);
    assert!(!pins.exists());
    let end = Instant::now() + LONG;
    while !own.is_disjoint(&loaded_programs()) || LinkInfoIter::default().count() > links_before {
        assert!(Instant::now() < end, "{own:?} of {:?}", loaded_programs());
        std::thread::sleep(Duration::from_millis(50));
    }
    transfer(&a, &b, 100_000);
}
