// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark of rude flows on a real interface, in namespaces.

use crate::support::wire::{A4, B4, B6, Capture, FIN, Segment, Wire, run, transfer};
use crate::support::{Mode, Turn, turn};
use libbpf_rs::{MapCore, MapFlags};
use std::net::{Shutdown, TcpStream};

const BIT: u16 = 0x200;
const RESERVED: u16 = 0x0f00;

struct Bench {
    loaded: Turn,
    wire: Wire,
}

/// Two hosts, of which `a` marks.
fn bench(name: &str) -> Option<Bench> {
    let loaded = turn()?;
    let wire = Wire::lay(name);
    loaded.mark_with(BIT.into(), 0);
    let marking = loaded.kernel.mark_in(&Wire::file(&wire.a)).unwrap();
    assert_eq!(marking.interfaces, ["wa"]);
    assert!(marking.unmarked.iter().all(|why| !why.starts_with("wa:")));
    Some(Bench { loaded, wire })
}

fn sent_by<'s>(segments: &'s [Segment], flow: &TcpStream) -> Vec<&'s Segment> {
    let from = flow.local_addr().unwrap();
    segments.iter().filter(|s| s.from == from).collect()
}

/// Sends over a flow from when it is rude until it is closed; answers what reached `b`.
fn rude_transfer(bench: &Bench, to: &str, bytes: usize) -> (Vec<Segment>, u32, TcpStream) {
    let (sender, receiver) = bench.wire.connection(to);
    bench.loaded.set_mode(&sender, Mode::Rude);
    let capture = Capture::start(&bench.wire.b);
    transfer(&sender, &receiver, bytes);
    transfer(&receiver, &sender, 100_000);
    sender.shutdown(Shutdown::Write).unwrap();
    transfer(&receiver, &sender, 1);
    let marked = bench.loaded.marked_pkts(&sender);
    (capture.stop(), marked, sender)
}

#[test]
fn every_segment_of_a_rude_flow_is_marked_and_nobody_elses() {
    let Some(bench) = bench("mark") else { return };
    for to in [B4, B6] {
        let (polite, polite_end) = bench.wire.connection(to);
        let (was_rude, was_rude_end) = bench.wire.connection(to);
        bench.loaded.set_mode(&was_rude, Mode::Polite);
        let capture = Capture::start(&bench.wire.b);
        transfer(&polite, &polite_end, 1_000_000);
        transfer(&was_rude, &was_rude_end, 1_000_000);
        let (rude, marked, sender) = rude_transfer(&bench, to, 4_000_000);
        let others = capture.stop();
        let ours = sent_by(&rude, &sender);
        let is_data = |s: &&&Segment| s.payload_bytes > 0;
        assert!(
            ours.iter()
                .filter(is_data)
                .any(|s| s.payload_bytes > 10_000),
            "TSO is on"
        );
        assert!(
            ours.iter()
                .any(|s| s.payload_bytes == 0 && s.flags & FIN == 0),
            "ACKs"
        );
        assert!(ours.iter().any(|s| s.flags & FIN != 0));
        assert!(
            ours.iter().all(|s| s.flags & RESERVED == BIT),
            "{to}: {ours:?}"
        );
        assert!(marked as usize >= 4_000_000 / 1500, "{marked}");
        let from = sender.local_addr().unwrap();
        assert!(
            others
                .iter()
                .filter(|s| s.from != from)
                .all(|s| s.flags & RESERVED == 0)
        );
        assert!(!sent_by(&others, &polite).is_empty() && !sent_by(&others, &was_rude).is_empty());
    }
}

#[test]
fn checksums_are_right_without_offload_for_bits_and_dscp() {
    let Some(bench) = bench("markcs") else { return };
    bench.wire.without_offload();
    for (bits, dscp) in [(0x200, 0), (0x100, 0), (0xe00, 5), (0, 63)] {
        bench.loaded.mark_with(bits, dscp);
        for to in [B4, B6] {
            let (segments, _, sender) = rude_transfer(&bench, to, 300_000);
            for segment in sent_by(&segments, &sender) {
                assert_eq!(u32::from(segment.flags & RESERVED), bits);
                assert_eq!(u32::from(segment.dscp), dscp);
                assert!(segment.tcp_checksum_is_good, "{segment:?}");
                assert!(segment.ip_checksum_is_good, "{segment:?}");
            }
        }
    }
}

#[test]
fn no_choice_of_bits_reaches_the_flags() {
    let Some(bench) = bench("markmask") else {
        return;
    };
    bench.loaded.mark_with(0xffff_ffff, 0);
    let (segments, _, sender) = rude_transfer(&bench, B4, 100_000);
    let ours = sent_by(&segments, &sender);
    assert!(
        ours.iter()
            .all(|s| s.flags & 0x0fe6 == 0x0e00 | s.flags & 0x100),
        "{ours:?}"
    );
    assert!(
        ours.iter().all(|s| s.flags >> 12 >= 8),
        "with timestamps: 32 bytes of header, or more with SACK"
    );
}

#[test]
fn retransmissions_are_marked_and_a_flow_that_goes_polite_is_until_it_is() {
    let Some(bench) = bench("markrtx") else {
        return;
    };
    let (sender, receiver) = bench.wire.connection(B4);
    bench.loaded.set_mode(&sender, Mode::GoingPolite);
    let capture = Capture::start(&bench.wire.a);
    bench.wire.ip(&bench.wire.b, "link set wb down");
    let writer = sender.try_clone().unwrap();
    let written = std::thread::spawn(move || {
        use std::io::Write;
        let mut writer = writer;
        writer.write_all(&[7; 1000]).unwrap();
    });
    written.join().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    bench.wire.ip(&bench.wire.b, "link set wb up");
    let mut got = [0; 1000];
    std::io::Read::read_exact(&mut &receiver, &mut got).unwrap();
    let seen = capture.stop();
    let sent = sent_by(&seen, &sender);
    let data: Vec<_> = sent.iter().filter(|s| s.payload_bytes == 1000).collect();
    // What arrived was retransmitted: at first there was no link, and some kernels send nothing then.
    assert!(!data.is_empty());
    assert!(data.iter().all(|s| s.flags & RESERVED == BIT));
    bench.loaded.set_mode(&sender, Mode::Polite);
    let capture = Capture::start(&bench.wire.b);
    transfer(&sender, &receiver, 10_000);
    let seen = capture.stop();
    assert!(
        sent_by(&seen, &sender)
            .iter()
            .all(|s| s.flags & RESERVED == 0)
    );
}

#[test]
fn interfaces_that_come_are_marked_and_all_is_undone() {
    let Some(bench) = bench("markif") else { return };
    let Bench { wire, loaded, .. } = &bench;
    let (a, file) = (&wire.a, Wire::file(&wire.a));
    let qdiscs = || run(a, "tc qdisc show");
    assert_eq!(qdiscs().matches("clsact").count(), 1);
    // One with a clsact and a filter of somebody else's, at the priority that we would take first.
    wire.ip(a, "link add c0 type veth peer name c1");
    run(a, "tc qdisc add dev c0 clsact");
    run(
        a,
        "tc filter add dev c0 egress pref 1 protocol ip bpf bytecode '1,6 0 0 0'",
    );
    wire.ip(a, "link add d0 type veth peer name d1");
    let marking = loaded.kernel.mark_in(&file).unwrap();
    for name in ["wa", "c0", "c1", "d0", "d1"] {
        assert!(
            marking.interfaces.contains(&name.to_owned()),
            "{name}: {marking:?}"
        );
    }
    assert_eq!(
        loaded.kernel.mark_in(&file).unwrap(),
        marking,
        "nothing is done twice"
    );
    let filters = || run(a, "tc filter show dev c0 egress");
    assert_eq!(
        filters().matches("handle 0x4650").count(),
        1,
        "{}",
        filters()
    );
    wire.ip(a, "link del d0");
    let marking = loaded.kernel.mark_in(&file).unwrap();
    assert!(!marking.interfaces.contains(&"d0".to_owned()));
    assert_eq!(loaded.map("fp_marks").keys_count(), 3);
    assert_eq!(loaded.map("fp_marked_netns").keys_count(), 1);
    // A filter that came after us keeps the clsact that we made.
    run(
        a,
        "tc filter add dev c1 ingress pref 7 bpf bytecode '1,6 0 0 0'",
    );
    loaded.kernel.unmark().unwrap();
    assert_eq!(loaded.map("fp_marks").keys_count(), 0);
    assert_eq!(loaded.map("fp_marked_netns").keys_count(), 0);
    let left = qdiscs();
    assert!(
        left.contains("dev c0") && left.contains("dev c1") && !left.contains("clsact ffff: dev wa"),
        "{left}"
    );
    assert!(!filters().contains("mark_ethernet"));
    assert!(
        filters().contains("protocol ip pref 1 bpf"),
        "theirs stays: {}",
        filters()
    );
}

#[test]
fn an_unload_undoes_what_a_dead_process_marked() {
    let Some(bench) = bench("markun") else { return };
    let Bench { wire, loaded, .. } = &bench;
    assert!(run(&wire.a, "tc qdisc show").contains("clsact"));
    loaded.kernel.unload().unwrap();
    assert!(!run(&wire.a, "tc qdisc show").contains("clsact"));
    let (sender, receiver) = wire.connection(B4);
    transfer(&sender, &receiver, 100_000);
    assert_eq!(sender.local_addr().unwrap().ip().to_string(), A4);
}

#[test]
fn an_interface_with_the_older_qdisc_is_refused_and_told() {
    let Some(bench) = bench("marking") else {
        return;
    };
    let Bench { wire, loaded, .. } = &bench;
    wire.ip(&wire.a, "link add c0 type veth peer name c1");
    run(&wire.a, "tc qdisc add dev c0 ingress");
    let marking = loaded.kernel.mark_in(&Wire::file(&wire.a)).unwrap();
    assert_eq!(marking.interfaces, ["wa", "c1"]);
    let why = marking.unmarked.iter().find(|why| why.starts_with("c0"));
    assert!(why.unwrap().contains("clsact"), "{marking:?}");
    assert_eq!(run(&wire.a, "tc filter show dev c0 ingress"), "");
    loaded.kernel.unmark().unwrap();
    assert!(run(&wire.a, "tc qdisc show dev c0").contains("ingress"));
}

/// What a process that is killed leaves at each step.
#[test]
fn a_mark_that_was_cut_short_is_made_whole_and_undone() {
    let Some(bench) = bench("markcut") else {
        return;
    };
    let Bench { wire, loaded, .. } = &bench;
    let file = Wire::file(&wire.a);
    let mark_again = || {
        loaded.kernel.mark_in(&file).unwrap();
        let filters = run(&wire.a, "tc filter show dev wa egress");
        assert_eq!(filters.matches("handle 0x4650").count(), 1, "{filters}");
    };
    let marks = loaded.map("fp_marks");
    let key = marks.keys().next().unwrap();
    let note = |made_clsact: u32, is_whole: u32| {
        let value = [made_clsact.to_ne_bytes(), is_whole.to_ne_bytes()].concat();
        marks.update(&key, &value, MapFlags::ANY).unwrap();
    };
    let has_clsact = || run(&wire.a, "tc qdisc show dev wa").contains("clsact");
    // Attached, and not noted so.
    note(1, 0);
    mark_again();
    loaded.kernel.unmark_in(&file).unwrap();
    assert!(!has_clsact());
    // Nothing but the clsact is made.
    run(&wire.a, "tc qdisc add dev wa clsact");
    note(1, 0);
    mark_again();
    loaded.kernel.unmark_in(&file).unwrap();
    assert!(!has_clsact());
    // The note is lost: whose the clsact is, nobody knows.
    mark_again();
    marks.delete(&key).unwrap();
    mark_again();
    loaded.kernel.unmark_in(&file).unwrap();
    assert!(has_clsact());
    assert_eq!(run(&wire.a, "tc filter show dev wa egress"), "");
}

#[test]
fn a_clsact_that_replaced_ours_stays() {
    let Some(bench) = bench("markrepl") else {
        return;
    };
    let Bench { wire, loaded, .. } = &bench;
    run(&wire.a, "tc qdisc del dev wa clsact");
    run(&wire.a, "tc qdisc add dev wa clsact");
    loaded.kernel.unmark().unwrap();
    assert!(run(&wire.a, "tc qdisc show dev wa").contains("clsact"));
}

trait Count {
    fn keys_count(&self) -> usize;
}

impl Count for libbpf_rs::MapHandle {
    fn keys_count(&self) -> usize {
        self.keys().count()
    }
}
