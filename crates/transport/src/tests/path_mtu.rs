// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths that carry less than the device takes, say nothing of it, and change.

use fatpath_cc::Law;
use fatpath_link::{CellSpec, ChainSpec};
use proptest::prelude::*;

use super::super::frame;
use super::super::{Ecn, Extent, HEADER_BYTES, Kind, Receiver, Refused, Sender, Spec};
use super::delivery::{Harm, harm, spec, way};
use super::transfer::{MS, RTT, Transfer, secret};

const BYTES: usize = 6_000_000;

fn ways() -> [ChainSpec; 2] {
    let rate = CellSpec::rate(100_000_000, Some(250_000));
    let there = ChainSpec::of([rate, CellSpec::delay(RTT / 2)]);
    [there, ChainSpec::of([CellSpec::delay(RTT / 2)])]
}

fn searching(law: &str, datagram_bytes: u16, most_bytes: u16) -> Spec {
    Spec {
        datagram_bytes,
        search: Some(1232..=most_bytes),
        ..spec(Law::named(law).unwrap())
    }
}

fn over(spec: &Spec, passes_bytes: usize) -> Transfer {
    let mut transfer = Transfer::new(spec, &[BYTES], ways());
    transfer.passes_bytes = passes_bytes;
    transfer
}

fn lengths(transfer: &Transfer) -> impl Iterator<Item = usize> {
    let data = transfer.log.iter().filter(|datagram| datagram.has_data);
    data.map(|datagram| datagram.payload.len())
}

/// From a size that every path carries to that of this one, whose routers say nothing; a lost probe is no congestion.
#[test]
fn a_path_that_carries_less_is_found_without_a_retransmission() {
    for law in ["reno", "cubic", "bbr"] {
        let mut spec = searching(law, 1232, 1452);
        spec.window_bytes = 150_000; // so that no queue overflows
        let mut transfer = Transfer::new(&spec, &[5 * BYTES], ways());
        transfer.passes_bytes = 1372;
        transfer.run(60_000 * MS);
        transfer.check_complete();
        let figures = transfer.sender.figures();
        assert_eq!(
            (figures.retransmits, figures.congestion_events),
            (0, 0),
            "{law}"
        );
        let lost = lengths(&transfer).filter(|length| *length > 1372).count();
        assert!((3..=6).contains(&lost), "{law}: {lost} probes of two sizes");
        assert_eq!(transfer.sender.datagram_bytes(), 1372, "{law}");
    }
}

/// A probe for each way; afterwards, and no sooner, full datagrams are as long.
#[test]
fn jumbo_frames_are_used_where_they_pass() {
    for law in ["reno", "cubic", "bbr"] {
        let mut spec = searching(law, 1452, 8952);
        spec.window_bytes = 200_000;
        let mut transfer = over(&spec, 8952);
        transfer.run(60_000 * MS);
        transfer.check_complete();
        assert_eq!(transfer.sender.datagram_bytes(), 8952, "{law}");
        assert_eq!(transfer.sender.figures().retransmits, 0, "{law}");
        let long = lengths(&transfer).filter(|length| *length == 8952).count();
        assert!((600..700).contains(&long), "{law}: {long}");
        let took_ms = transfer.now_ns / MS;
        assert!(took_ms < 1200, "{law}: {took_ms} ms"); // 480 at the rate of the link, and slow start
    }
}

/// All full datagrams vanish from some time on: the transfer goes on with others, soon, and back when they pass again.
#[test]
fn a_path_mtu_that_falls_is_noticed() {
    for (law, at_first, then) in [
        ("cubic", 1452, 1352),
        ("bbr", 1452, 1300),
        ("bbr", 8952, 1452),
        ("reno", 8952, 900),
    ] {
        let mut spec = searching(law, at_first, at_first);
        spec.window_bytes = 300_000;
        let mut transfer = over(&spec, at_first.into());
        transfer.run(200 * MS);
        assert!(!transfer.sender.is_done());
        transfer.passes_bytes = then;
        let fell_ns = transfer.now_ns;
        transfer.run(fell_ns + 3000 * MS);
        let size = transfer.sender.datagram_bytes();
        assert!(size < at_first, "{law} {at_first}");
        transfer.run(120_000 * MS);
        transfer.check_all_there();
        let took_ms = (transfer.now_ns - fell_ns) / MS;
        assert!(took_ms < 20_000, "{law} {at_first}: {took_ms} ms");
        let size = usize::from(transfer.sender.datagram_bytes());
        assert!(size <= then, "{law} {at_first}: {size}");
    }
}

/// Where everything is lost for a while, the size stays.
#[test]
fn an_outage_is_no_smaller_path() {
    let mut transfer = over(&searching("cubic", 1452, 1452), 1452);
    transfer.run(100 * MS);
    transfer.passes_bytes = 0;
    transfer.run(2000 * MS);
    transfer.passes_bytes = 1452;
    transfer.run(120_000 * MS);
    transfer.check_complete();
    assert!(transfer.sender.figures().timeouts > 0);
    assert_eq!(transfer.sender.datagram_bytes(), 1452);
}

/// A peer that has the keys tells of datagrams that never left, or that asked for nothing.
#[test]
fn sizes_that_were_not_asked_for_are_not_believed() {
    let spec = searching("reno", 1232, 1452);
    let mut sender = Sender::new(&spec, secret(), RTT, 0).unwrap();
    let (object, offset, bytes) = (0, 0, 1 << 20);
    sender.send(Extent {
        object,
        offset,
        bytes,
    });
    let mut datagram = vec![];
    for _ in 0..3 {
        datagram.clear();
        let read = |_: &_, _: &mut [u8]| Ok::<(), ()>(());
        assert!(sender.poll_transmit(0, &mut datagram, read).unwrap());
        let expected = if sender.figures().sent_pkts == 0 {
            1452
        } else {
            1232
        };
        assert_eq!(datagram.len(), expected);
    }
    let (mut sealer, _) = secret().of_receiver(spec.cipher);
    let mut told = |frame: &[u8]| {
        let mut datagram = [&[0; HEADER_BYTES], frame].concat();
        sealer.seal(Kind::Sized, &mut datagram, 0).unwrap();
        let handled = sender.handle_datagram(RTT, &mut datagram);
        (handled, sender.datagram_bytes())
    };
    assert_eq!(told(&3u64.to_be_bytes()), (Err(Refused::Nonsense), 1232));
    assert_eq!(told(&[0; 9]), (Err(Refused::Nonsense), 1232));
    assert_eq!(told(&1u64.to_be_bytes()), (Ok(()), 1232));
    assert_eq!(told(&0u64.to_be_bytes()), (Ok(()), 1452));
}

/// A peer that has the keys asks for more sizes than a sender has on its way: a few are answered.
#[test]
fn answers_to_sizes_are_bounded() {
    let spec = searching("reno", 1232, 1452);
    let mut receiver = Receiver::new(&spec, secret(), RTT, 0).unwrap();
    let (mut sealer, mut opener) = (
        secret().of_sender(spec.cipher).0,
        secret().of_sender(spec.cipher).1,
    );
    for _ in 0..100 {
        let mut datagram = vec![0; 1000];
        sealer.seal(Kind::Size, &mut datagram, 0).unwrap();
        receiver
            .handle_datagram(RTT, Ecn::NotCapable, &mut datagram)
            .unwrap();
    }
    let mut answers = vec![];
    let mut datagram = vec![];
    while receiver.poll_transmit(RTT, &mut datagram).unwrap() {
        answers.extend(frame::number(opener.open(&mut datagram).unwrap().frame));
        datagram.clear();
    }
    assert_eq!(answers, (0..8).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whatever the path carries, loses, doubles and reorders, and however it changes: all arrives, and no datagram is longer than
    /// what was confirmed, but for probes.
    #[test]
    fn all_arrives_whatever_the_path_carries(
        there in harm(),
        back in harm(),
        seed in any::<u64>(),
        sizes in prop::collection::vec(0usize..200_000, 1..5),
        law in prop::sample::select(vec!["reno", "cubic", "bbr"]),
        changes in prop::collection::vec((512usize..9000, 1u64..3000), 0..5),
        begins in prop::sample::select(vec![1232u16, 1452, 8952]),
    ) {
        let spec = searching(law, begins, 8952);
        let lossy = |harm: Harm, seed| way(50_000_000, harm, seed);
        let links = [lossy(there, seed), lossy(back, !seed)];
        let mut transfer = Transfer::new(&spec, &sizes, links);
        for (passes_bytes, ms) in changes {
            transfer.passes_bytes = passes_bytes;
            let now_ns = transfer.now_ns;
            transfer.run(now_ns + ms * MS);
        }
        transfer.run(36_000_000 * MS);
        transfer.check_all_there();
    }
}
