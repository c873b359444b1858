// SPDX-License-Identifier: MIT OR Apache-2.0
//! The police on frames that nobody sent: what matches, what never does, what becomes of it.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{Hook, Orders, Police, PoliceMark, PoliceMode, Tally};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::path::PathBuf;
use std::time::Instant;
use support::alone;
use support::frame::{ACKNOWLEDGEMENT, Dress, QINQ, SEQUENCE, VLAN, dress};
use support::parsed::Parsed;
use support::wire::{RST, Wire, segment};

const BIT: u16 = 0x200;
/// The protocol's number.
const UDP: u8 = 17;

fn orders(mode: PoliceMode, hook: Hook) -> Orders {
    Orders {
        mode,
        mark: PoliceMark::Bits(BIT),
        exceptions: Vec::new(),
        watches: false,
        hook: Some(hook),
    }
}

struct Station {
    wire: Wire,
    root: PathBuf,
    _alone: std::fs::File,
}

impl Station {
    fn make(name: &str) -> Option<Station> {
        let alone = alone()?;
        Some(Station {
            wire: Wire::lay(name),
            root: format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()).into(),
            _alone: alone,
        })
    }

    fn put(&self, orders: &Orders) -> Police {
        let put = || Police::put(&self.root, "wb", orders).unwrap();
        self.wire.b.run(put).unwrap()
    }

    fn take_away(&self, police: Police) {
        self.wire.b.run(|| police.take_away().unwrap()).unwrap();
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        let left = self.wire.b.run(|| Police::of(&self.root, "wb"));
        if let Ok(Ok(Some(police))) = left {
            self.take_away(police);
        }
    }
}

/// Whether the police should know the mark of such a frame.
fn shows_mark(dress: &Dress) -> bool {
    dress.protocol == 6
        && dress.fragment_at == 0
        && dress.flags & BIT != 0
        && dress.tags.len() <= 2
        && (!dress.is_v6 || dress.chain() <= 6)
}

#[test]
fn a_mark_is_found_in_every_dress_and_nowhere_else() {
    let Some(station) = Station::make("dress") else {
        return;
    };
    for hook in [Hook::Xdp, Hook::Tc] {
        let police = station.put(&orders(PoliceMode::Drop, hook));
        let mut runner = TestRunner::new(Config::with_cases(2000));
        let run = runner.run(&dress(), |dress| {
            let frame = dress.frame();
            let done = police.rehearse(&frame, 1).unwrap();
            prop_assert_eq!(done.is_dropped, shows_mark(&dress), "{:?}", hook);
            prop_assert_eq!(done.frame, frame, "untouched");
            Ok(())
        });
        run.unwrap();
        station.take_away(police);
    }
}

#[test]
fn what_is_cut_is_never_taken_for_marked() {
    let Some(station) = Station::make("cut") else {
        return;
    };
    for hook in [Hook::Xdp, Hook::Tc] {
        let police = station.put(&orders(PoliceMode::Drop, hook));
        for is_v6 in [false, true] {
            let whole = Dress {
                is_v6,
                flags: 0xfff,
                tcp_words: 8,
                payload: 0,
                tags: vec![QINQ, VLAN],
                ..Dress::default()
            };
            let frame = whole.frame();
            for bytes in 14..frame.len() {
                let done = police.rehearse(&frame[..bytes], 1).unwrap();
                assert!(!done.is_dropped, "{bytes} bytes of {}", frame.len());
            }
            assert!(police.rehearse(&frame, 1).unwrap().is_dropped);
        }
        let tallies = police.status().unwrap().tallies;
        assert!(
            tallies.malformed.pkts > 0 && tallies.marked.pkts == 2,
            "{tallies:?}"
        );
        station.take_away(police);
    }
}

/// Frames in every dress, cut at every byte: the mark is found where another parser finds it.
#[test]
fn cut_anywhere_a_frame_is_read_as_another_parser_reads_it() {
    let Some(station) = Station::make("cutall") else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let dresses: Vec<Dress> = (0..24)
        .map(|_| dress().new_tree(&mut runner).unwrap().current())
        .collect();
    for hook in [Hook::Xdp, Hook::Tc] {
        let police = station.put(&orders(PoliceMode::Drop, hook));
        for dress in &dresses {
            let frame = dress.frame();
            // At tc the kernel runs nothing on less than the IP header that Ethernet announces.
            let least = if hook == Hook::Xdp { 14 } else { 14 + 40 };
            for bytes in least..=frame.len() {
                agrees(&police, &frame[..bytes]);
            }
        }
        station.take_away(police);
    }
}

/// Answers the verdict.
fn agrees(police: &Police, frame: &[u8]) -> bool {
    let done = police.rehearse(frame, 1).unwrap();
    assert_eq!(done.frame, frame, "untouched");
    match Parsed::of(frame) {
        Parsed::Tcp(flags) => assert_eq!(done.is_dropped, flags & BIT != 0, "{frame:02x?}"),
        Parsed::NoTcp => assert!(!done.is_dropped, "{frame:02x?}"),
        Parsed::Open => {}
    }
    done.is_dropped
}

/// Bytes of chance, and frames with bytes of chance in them: a length that lies, a version of 5.
fn chance() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((0usize..120, any::<u8>()), 1..6);
    let without_length = dress().prop_map(|dress| {
        let mut frame = dress.frame();
        let ip = 14 + 4 * dress.tags.len();
        let at = if dress.is_v6 { ip + 4 } else { ip + 2 };
        frame[at..at + 2].fill(0);
        frame
    });
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 14..200),
        1 => without_length,
        3 => (dress(), changes).prop_map(|(dress, changes)| {
            let mut frame = dress.frame();
            for (at, byte) in changes {
                let at = 12 + at % (frame.len() - 12);
                frame[at] = byte;
            }
            frame
        }),
    ]
}

#[test]
fn chance_crashes_nothing_and_matches_only_what_another_parser_finds() {
    let Some(station) = Station::make("chance") else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let frames: Vec<Vec<u8>> = (0..3000)
        .map(|_| chance().new_tree(&mut runner).unwrap().current())
        .collect();
    let verdicts = [Hook::Xdp, Hook::Tc].map(|hook| {
        let police = station.put(&orders(PoliceMode::Drop, hook));
        let verdicts: Vec<bool> = frames.iter().map(|frame| agrees(&police, frame)).collect();
        station.take_away(police);
        verdicts
    });
    assert_eq!(verdicts[0], verdicts[1]);
    assert!(verdicts[0].iter().filter(|is_dropped| **is_dropped).count() > 100);
    // With RSTs, and with other marks, nothing crashes either.
    for (mode, mark) in [
        (PoliceMode::Reset, PoliceMark::Bits(0x100)),
        (PoliceMode::Reset, PoliceMark::Dscp(7)),
        (PoliceMode::Limit(1), PoliceMark::Dscp(1)),
    ] {
        let other = station.put(&Orders {
            mark,
            watches: true,
            ..orders(mode, Hook::Tc)
        });
        for frame in &frames {
            station
                .wire
                .b
                .run(|| other.rehearse(frame, 1).unwrap())
                .unwrap();
        }
        station.take_away(other);
    }
}

#[test]
fn a_dscp_is_the_whole_of_it_whatever_ecn_says() {
    let Some(station) = Station::make("dscp") else {
        return;
    };
    let police = station.put(&Orders {
        mark: PoliceMark::Dscp(44),
        ..orders(PoliceMode::Drop, Hook::Xdp)
    });
    for is_v6 in [false, true] {
        for traffic_class in 0..=255 {
            for fragment_at in [0, 3] {
                let dress = Dress {
                    is_v6,
                    traffic_class,
                    fragment_at,
                    ..Dress::default()
                };
                let done = police.rehearse(&dress.frame(), 1).unwrap();
                assert_eq!(done.is_dropped, traffic_class >> 2 == 44, "{dress:?}");
            }
        }
    }
}

/// Flows of UDP without congestion control carry the DSCP, too; there is no RST for them.
#[test]
fn datagrams_with_the_dscp_are_treated_as_segments_are() {
    let Some(station) = Station::make("udp") else {
        return;
    };
    let modes = [
        (PoliceMode::Drop, Hook::Xdp),
        (PoliceMode::Drop, Hook::Tc),
        (PoliceMode::Reset, Hook::Tc),
    ];
    for (mode, hook) in modes {
        let police = station.put(&Orders {
            mark: PoliceMark::Dscp(44),
            ..orders(mode, hook)
        });
        for (protocol, is_v6, fragment_at) in protocols_and_fragments() {
            for traffic_class in [44 << 2, 44 << 2 | 3, 43 << 2, 0] {
                let dress = Dress {
                    protocol,
                    is_v6,
                    fragment_at,
                    traffic_class,
                    ..Dress::default()
                };
                let frame = dress.frame();
                let done = police.rehearse(&frame, 1).unwrap();
                let is_marked = protocol == UDP && traffic_class >> 2 == 44;
                assert_eq!(done.is_dropped, is_marked, "{hook:?}: {dress:?}");
                assert_eq!(done.frame, frame, "untouched");
            }
        }
        let tallies = police.status().unwrap().tallies;
        assert_eq!(tallies.marked, tallies.dropped);
        assert_eq!(tallies.marked.pkts, 2 * 2 * 2);
        station.take_away(police);
    }
}

fn protocols_and_fragments() -> impl Iterator<Item = (u8, bool, u16)> {
    const ICMP: u8 = 1;
    let all = |protocol| [(protocol, false), (protocol, true)];
    let all = [UDP, ICMP].into_iter().flat_map(all);
    all.flat_map(|(protocol, is_v6)| [0, 3].map(|at| (protocol, is_v6, at)))
}

#[test]
fn exceptions_pass_and_are_counted_by_prefix() {
    let Some(station) = Station::make("except") else {
        return;
    };
    let police = station.put(&Orders {
        exceptions: vec![
            "198.51.100.0/24".parse().unwrap(),
            "2001::/16".parse().unwrap(),
        ],
        ..orders(PoliceMode::Drop, Hook::Xdp)
    });
    for is_v6 in [false, true] {
        let dress = Dress {
            is_v6,
            flags: BIT,
            ..Dress::default()
        };
        let mut frame = dress.frame();
        assert!(!police.rehearse(&frame, 1).unwrap().is_dropped);
        // Neither 2001::… nor 198.51.100.2 any more.
        let at = if is_v6 { 14 + 8 } else { 14 + 16 };
        frame[at] ^= 1;
        assert!(police.rehearse(&frame, 1).unwrap().is_dropped);
    }
    let status = police.status().unwrap();
    assert_eq!(status.tallies.excepted.pkts, 2);
    assert_eq!(status.tallies.dropped.pkts, 2);
    let mut exceptions = status.exceptions;
    exceptions.sort();
    let counted = [
        ("198.51.100.0/24".to_owned(), 1),
        ("2001::/16".to_owned(), 1),
    ];
    assert_eq!(exceptions, counted);
}

#[test]
fn an_exception_of_all_of_one_family_is_not_the_others() {
    let Some(station) = Station::make("family") else {
        return;
    };
    for (prefix, is_v6_excepted) in [("::/0", true), ("0.0.0.0/0", false)] {
        let police = station.put(&Orders {
            exceptions: vec![prefix.parse().unwrap()],
            ..orders(PoliceMode::Drop, Hook::Xdp)
        });
        for is_v6 in [false, true] {
            let marked = Dress {
                is_v6,
                flags: BIT,
                ..Dress::default()
            };
            let done = police.rehearse(&marked.frame(), 1).unwrap();
            assert_eq!(done.is_dropped, is_v6 != is_v6_excepted, "{prefix}");
        }
        let counted = police.status().unwrap().exceptions;
        assert_eq!(counted, [(prefix.to_owned(), 1)]);
        station.take_away(police);
    }
}

#[test]
fn a_segment_becomes_a_rst_with_its_own_sequence_number() {
    let Some(station) = Station::make("rst") else {
        return;
    };
    let police = station.put(&orders(PoliceMode::Reset, Hook::Tc));
    for is_v6 in [false, true] {
        let marked = Dress {
            is_v6,
            flags: BIT | 0x18,
            tcp_words: 8,
            payload: 333,
            traffic_class: 44 << 2 | 1,
            ..Dress::default()
        };
        let rehearse = |dress: &Dress| {
            let run = || police.rehearse(&dress.frame(), 1).unwrap();
            station.wire.b.run(run).unwrap()
        };
        let frame = marked.frame();
        let done = rehearse(&marked);
        assert!(!done.is_dropped);
        assert_eq!(done.frame[..14], frame[..14], "the same way");
        let (was, is) = (segment(&frame).unwrap(), segment(&done.frame).unwrap());
        assert_eq!((is.from, is.to), (was.from, was.to));
        assert_eq!(
            (is.sequence, is.acknowledgement),
            (SEQUENCE, ACKNOWLEDGEMENT)
        );
        assert_eq!(is.flags, 5 << 12 | RST | 0x10, "no mark");
        assert_eq!((is.payload_bytes, is.dscp), (0, 44));
        let class = u16::from_be_bytes([done.frame[14], done.frame[15]]);
        let ecn = if is_v6 { class >> 4 & 3 } else { class & 3 };
        assert_eq!(ecn, 0, "a RST is not ECN-capable");
        assert!(is.tcp_checksum_is_good && is.ip_checksum_is_good, "{is:?}");
        // A RST is not answered, a fragment and what has options cannot be: dropped.
        let rst = Dress {
            flags: BIT | RST,
            ..marked.clone()
        };
        assert_eq!(rehearse(&rst).frame, rst.frame());
        let fragment = Dress {
            more_fragments: true,
            ..marked.clone()
        };
        assert!(rehearse(&fragment).is_dropped);
        let dressed = Dress {
            options: 1,
            extensions: vec![60],
            ..marked
        };
        assert!(rehearse(&dressed).is_dropped);
    }
}

#[test]
fn a_flood_is_not_answered_but_dropped() {
    let Some(station) = Station::make("flood") else {
        return;
    };
    let police = station.put(&orders(PoliceMode::Reset, Hook::Tc));
    let marked = Dress {
        flags: BIT,
        ..Dress::default()
    }
    .frame();
    let begin = Instant::now();
    let flood = || (0..5000).for_each(|_| drop(police.rehearse(&marked, 1).unwrap()));
    station.wire.b.run(flood).unwrap();
    let most = 1000.0 * (begin.elapsed().as_secs_f64() + 0.01) + 1.0;
    let tallies = police.status().unwrap().tallies;
    assert_eq!(tallies.reset.pkts + tallies.dropped.pkts, 5000);
    assert!(
        tallies.reset.pkts > 0 && tallies.reset.pkts as f64 <= most,
        "{tallies:?}"
    );
}

#[test]
fn all_marked_together_get_the_rate_and_a_burst() {
    let Some(station) = Station::make("limit") else {
        return;
    };
    // A frame of 1514 bytes takes 121 s at 100 b/s: the second one is early by more than the burst.
    let police = station.put(&orders(PoliceMode::Limit(100), Hook::Xdp));
    let marked = Dress {
        flags: BIT,
        payload: 1460,
        ..Dress::default()
    }
    .frame();
    let polite = Dress {
        payload: 1460,
        ..Dress::default()
    }
    .frame();
    assert!(!police.rehearse(&marked, 1).unwrap().is_dropped);
    assert!(police.rehearse(&marked, 1).unwrap().is_dropped);
    for _ in 0..10 {
        assert!(!police.rehearse(&polite, 1).unwrap().is_dropped);
    }
    let tallies = police.status().unwrap().tallies;
    let frames = |pkts| Tally {
        pkts,
        bytes: pkts * marked.len() as u64,
    };
    assert_eq!((tallies.passed, tallies.dropped), (frames(1), frames(1)));
    assert_eq!(tallies.marked, frames(2));
    // Frames of the kernel's own come too, such as MLD reports of 90 bytes.
    let Tally { pkts, bytes } = tallies.unmarked;
    let own_bytes = (pkts - 10)..=(pkts - 10) * 200;
    assert!(
        own_bytes.contains(&(bytes - frames(10).bytes)),
        "{:?}",
        tallies.unmarked
    );
}
