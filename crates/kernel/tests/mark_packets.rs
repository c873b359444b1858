// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark on frames that nobody sent: what is written into which, and that all else is left as it is.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use libbpf_rs::{Object, ProgramInput};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use support::Mode;
use support::frame::{Dress, QINQ, VLAN, dress};
use support::parsed::Parsed;
use support::replay::loaded;
use support::wire::{folded, sum};

const REPLAY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mark_replay.bpf.o"));

/// How it is marked, and what the flow is.
#[derive(Clone, Copy, Debug)]
struct Orders {
    bits: u16,
    dscp: u8,
    mode: Mode,
}

const RUDE: Orders = Orders {
    bits: 0x200,
    dscp: 0,
    mode: Mode::Rude,
};

/// What became of a frame, and whether that is a mark.
fn marked(object: &Object, frame: &[u8], orders: Orders) -> (Vec<u8>, bool) {
    // struct __sk_buff; `cb` is at 48.
    let mut context = [0; 192];
    let words = [u32::from(orders.bits), orders.dscp.into(), orders.mode as _];
    for (n, word) in words.iter().enumerate() {
        context[48 + 4 * n..][..4].copy_from_slice(&u32::to_ne_bytes(*word));
    }
    let mut out = vec![0; frame.len() + 64];
    let input = ProgramInput {
        context_in: Some(&mut context),
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..ProgramInput::default()
    };
    let program = object.progs_mut().next().unwrap();
    let output = program.test_run(input).unwrap();
    let is_marked = output.return_value == 0;
    let frame = output.data.unwrap().to_vec();
    (frame, is_marked)
}

/// Where IP begins in the frame.
fn ip_at(dress: &Dress) -> usize {
    14 + 4 * dress.tags.len()
}

/// Where TCP begins.
fn tcp_at(dress: &Dress) -> usize {
    let extension_bytes = |kind: &u8| if *kind == 51 { 24 } else { 16 };
    let chain: usize = dress.extensions.iter().map(extension_bytes).sum();
    let fragment = 8 * (dress.chain() - dress.extensions.len());
    match dress.is_v6 {
        true => ip_at(dress) + 40 + chain + fragment,
        false => ip_at(dress) + 20 + 4 * usize::from(dress.options),
    }
}

fn is_readable(dress: &Dress) -> bool {
    dress.protocol == 6 && dress.tags.len() <= 2 && (!dress.is_v6 || dress.chain() <= 6)
}

/// RFC 3168, 5: 0 is not ECT, 3 is CE.
fn class(before: u8, orders: Orders) -> u8 {
    let ecn = match (before & 3, orders.mode) {
        (1 | 2, Mode::Rude) => 0,
        (ecn, _) => ecn,
    };
    match orders.dscp {
        0 => before & !3 | ecn,
        dscp => dscp << 2 | ecn,
    }
}

/// The whole of an IPv4 header's checksum, RFC 791.
fn put_ipv4_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = !folded(sum(header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The frame as it should leave, its TCP checksum aside, which covers more than some frames have.
fn expected(dress: &Dress, orders: Orders) -> Vec<u8> {
    let mut dress = dress.clone();
    if is_readable(&dress) {
        dress.traffic_class = class(dress.traffic_class, orders);
        let is_signed = dress.is_v6 && dress.extensions.contains(&51);
        if dress.fragment_at == 0 && !is_signed {
            dress.flags |= orders.bits & 0xf00;
        }
    }
    dress.frame()
}

/// As one's complement, in which 0 is 0xffff.
fn tcp_sum(dress: &Dress, frame: &[u8]) -> u16 {
    folded(sum(&frame[tcp_at(dress)..])) % 0xffff
}

fn any_orders() -> impl Strategy<Value = Orders> {
    let mode = prop_oneof![Just(Mode::Rude), Just(Mode::GoingPolite)];
    let bits = prop_oneof![Just(0u16), Just(0x100), Just(0x200), Just(0xffff)];
    let dscp = prop_oneof![Just(0u8), 1u8..64];
    (bits, dscp, mode).prop_map(|(bits, dscp, mode)| Orders { bits, dscp, mode })
}

#[test]
fn what_is_marked_leaves_without_ect_in_every_dress() {
    let Some(object) = loaded(REPLAY) else { return };
    let mut runner = TestRunner::new(Config::with_cases(1500));
    let run = runner.run(&(dress(), any_orders()), |(dress, orders)| {
        let frame = dress.frame();
        let (mut after, is_marked) = marked(&object, &frame, orders);
        let mut expected = expected(&dress, orders);
        let has_header = is_readable(&dress) && dress.fragment_at == 0;
        if has_header {
            prop_assert_eq!(tcp_sum(&dress, &frame), tcp_sum(&dress, &after));
            for frame in [&mut after, &mut expected] {
                frame[tcp_at(&dress) + 16..][..2].fill(0);
            }
        }
        if !dress.is_v6 {
            let header = ip_at(&dress)..ip_at(&dress) + 20 + 4 * usize::from(dress.options);
            prop_assert_eq!(folded(sum(&after[header.clone()])), 0xffff);
            // 0 is 0xffff there too.
            put_ipv4_checksum(&mut after[header.clone()]);
            put_ipv4_checksum(&mut expected[header]);
        }
        prop_assert_eq!(after, expected, "{:?}", orders);
        let is_signed = dress.is_v6 && dress.extensions.contains(&51);
        let is_refused = orders.bits > 0 && has_header && is_signed;
        let is_expected = is_readable(&dress) && (orders.bits > 0 || orders.dscp > 0);
        prop_assert_eq!(is_marked, is_expected && !is_refused);
        Ok(())
    });
    run.unwrap();
}

/// What IPsec signs but not as mutable (RFC 4302, 3.3.3) stays as it was; IPv4's AH hides TCP altogether.
#[test]
fn a_signed_segment_loses_ect_and_gets_no_bit() {
    let Some(object) = loaded(REPLAY) else { return };
    let v6 = Dress {
        is_v6: true,
        extensions: vec![0, 51, 60],
        traffic_class: 2,
        ..Dress::default()
    };
    let without_ect = Dress {
        traffic_class: 0,
        ..v6.clone()
    };
    let (after, is_marked) = marked(&object, &v6.frame(), RUDE);
    assert_eq!((after, is_marked), (without_ect.frame(), false));
    let v4 = Dress {
        protocol: 51,
        traffic_class: 2,
        ..Dress::default()
    };
    let (after, is_marked) = marked(&object, &v4.frame(), RUDE);
    assert_eq!((after, is_marked), (v4.frame(), false));
}

#[test]
fn what_is_cut_stays_as_it_is() {
    let Some(object) = loaded(REPLAY) else { return };
    for is_v6 in [false, true] {
        let whole = Dress {
            is_v6,
            traffic_class: 2,
            tcp_words: 8,
            payload: 0,
            tags: vec![QINQ, VLAN],
            extensions: vec![0, 60],
            ..Dress::default()
        };
        let frame = whole.frame();
        // At tc the kernel runs nothing on less than the IP header that Ethernet announces.
        for bytes in 14 + 40..frame.len() {
            let (after, is_marked) = marked(&object, &frame[..bytes], RUDE);
            assert_eq!((after, is_marked), (frame[..bytes].to_vec(), false));
        }
        assert!(marked(&object, &frame, RUDE).1);
    }
}

/// Bytes of chance in a frame: where another parser finds no TCP header, nothing but the class and its
/// checksum changes, for a later fragment has these too.
#[test]
fn chance_is_written_into_only_where_another_parser_finds_tcp() {
    let Some(object) = loaded(REPLAY) else { return };
    let mut runner = TestRunner::deterministic();
    let changes = prop::collection::vec((0usize..120, any::<u8>()), 1..6);
    let chance = (dress(), changes);
    let (mut with, mut without) = (0, 0);
    for _ in 0..3000 {
        let (dress, changes) = chance.new_tree(&mut runner).unwrap().current();
        let mut frame = dress.frame();
        for (at, byte) in changes {
            let at = 12 + at % (frame.len() - 12);
            frame[at] = byte;
        }
        let (after, is_marked) = marked(&object, &frame, RUDE);
        assert_eq!(after.len(), frame.len());
        let changed = (0..frame.len()).filter(|at| after[*at] != frame[*at]);
        match Parsed::of(&frame) {
            Parsed::NoTcp => {
                let ip = 14..14 + 4 * 2 + 12;
                assert!(changed.clone().all(|at| ip.contains(&at)), "{frame:02x?}");
                assert!(changed.count() <= 3);
                without += 1;
            }
            Parsed::Tcp(flags) => {
                let bit = if is_marked { RUDE.bits } else { 0 };
                assert_eq!(Parsed::of(&after), Parsed::Tcp(flags | bit), "{frame:02x?}");
                with += u32::from(is_marked);
            }
            Parsed::Open => {}
        }
    }
    assert!(with > 300 && without > 300, "{with} {without}");
}
