// SPDX-License-Identifier: MIT OR Apache-2.0
//! The police on real flows between two namespaces, marked by mark.bpf.c.

use crate::support::frame::Dress;
use crate::support::wire::{B4, B6, Capture, RST, Wire, run, transfer};
use crate::support::{Mode, Turn, turn};
use fatpath_kernel::{Hook, Orders, Police, PoliceMark, PoliceMode, Tally, Watch};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const BIT: u16 = 0x200;

struct Beat {
    loaded: Turn,
    wire: Wire,
    root: PathBuf,
}

impl Beat {
    fn make(name: &str) -> Option<Beat> {
        let (loaded, wire) = (turn()?, Wire::lay(name));
        loaded.mark_with(BIT.into(), 0);
        loaded.kernel.mark_in(&Wire::file(&wire.a)).unwrap();
        Some(Beat {
            loaded,
            wire,
            root: format!("/sys/fs/bpf/fatpath-{name}-{}-p", std::process::id()).into(),
        })
    }

    fn put(&self, mode: PoliceMode, hook: Option<Hook>) -> Police {
        let orders = Orders {
            mode,
            mark: PoliceMark::Bits(BIT),
            exceptions: Vec::new(),
            watches: true,
            hook,
        };
        let put = || Police::put(&self.root, "wb", &orders).unwrap();
        self.wire.b.run(put).unwrap()
    }

    fn rude(&self, to: &str) -> (TcpStream, TcpStream) {
        let ends = self.wire.connection(to);
        self.loaded.set_mode(&ends.0, Mode::Rude);
        ends
    }

    fn take_away(&self) {
        let gone = self.wire.b.run(|| {
            Police::of(&self.root, "wb")
                .unwrap()
                .map(|police| police.take_away().unwrap())
        });
        gone.unwrap();
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// Reads until the connection is reset.
fn is_reset(mut end: &TcpStream) {
    end.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = [0; 4096];
    loop {
        match end.read(&mut bytes) {
            Ok(0) => panic!("the connection ended as though nothing had happened"),
            Ok(_) => {}
            Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

#[test]
fn marked_flows_stand_still_and_unmarked_ones_pass_and_off_ends_it() {
    let Some(beat) = Beat::make("pdrop") else {
        return;
    };
    let qdiscs = run(&beat.wire.b, "tc qdisc show");
    for hook in [Hook::Xdp, Hook::Tc] {
        let (rude, rude_end) = beat.rude(B4);
        let (polite, polite_end) = beat.wire.connection(B4);
        let police = beat.put(PoliceMode::Drop, Some(hook));
        (&rude).write_all(&[1; 5000]).unwrap();
        transfer(&polite, &polite_end, 2_000_000);
        transfer(&polite_end, &polite, 2_000_000);
        rude_end.set_nonblocking(true).unwrap();
        let read = (&rude_end).read(&mut [0; 1]);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock);
        let tallies = police.status().unwrap().tallies;
        assert!(tallies.dropped.pkts > 0 && tallies.dropped == tallies.marked);
        assert!(tallies.unmarked.bytes > 2_000_000);
        beat.take_away();
        // What was kept back is retransmitted, and nothing is lost.
        rude_end.set_nonblocking(false).unwrap();
        let mut got = [0; 5000];
        (&rude_end).read_exact(&mut got).unwrap();
        assert_eq!(got, [1; 5000]);
        assert_eq!(run(&beat.wire.b, "tc qdisc show"), qdiscs);
        assert!(!beat.root.exists());
    }
}

#[test]
fn both_ends_of_a_marked_flow_are_reset_and_only_they() {
    let Some(beat) = Beat::make("preset") else {
        return;
    };
    for has_offload in [true, false] {
        if !has_offload {
            beat.wire.without_offload();
        }
        for to in [B4, B6] {
            let (rude, rude_end) = beat.wire.connection(to);
            let (polite, polite_end) = beat.wire.connection(to);
            transfer(&rude, &rude_end, 300_000);
            beat.put(PoliceMode::Reset, None);
            let capture = Capture::start(&beat.wire.a);
            beat.loaded.set_mode(&rude, Mode::Rude);
            (&rude).write_all(&[1; 100_000]).unwrap();
            is_reset(&rude_end);
            is_reset(&rude);
            let seen = capture.stop();
            let resets: Vec<_> = seen.iter().filter(|s| s.flags & RST != 0).collect();
            assert!(!resets.is_empty());
            for reset in resets {
                assert_eq!(reset.flags & 0x0f00, 0, "no mark");
                assert!(reset.ip_checksum_is_good, "{reset:?}");
                assert!(has_offload || reset.tcp_checksum_is_good, "{reset:?}");
            }
            transfer(&polite, &polite_end, 300_000);
            beat.take_away();
        }
    }
}

#[test]
fn marked_flows_together_get_no_more_than_the_rate() {
    const LIMIT_BPS: u64 = 20_000_000;
    let Some(beat) = Beat::make("plimit") else {
        return;
    };
    for hook in [Hook::Xdp, Hook::Tc] {
        let flows = [beat.rude(B4), beat.rude(B6)];
        let begin = Instant::now();
        let police = beat.put(PoliceMode::Limit(LIMIT_BPS), Some(hook));
        std::thread::scope(|scope| {
            for (sender, receiver) in &flows {
                scope.spawn(move || {
                    let mut sender = sender;
                    sender.write_all(&[3; 1_000_000]).unwrap();
                });
                scope.spawn(move || {
                    let mut receiver = receiver;
                    receiver.read_exact(&mut vec![0; 1_000_000]).unwrap();
                });
            }
        });
        let tallies = police.status().unwrap().tallies;
        let seconds = begin.elapsed().as_secs_f64();
        // The burst, and one GRO packet above it.
        let most = LIMIT_BPS as f64 / 8.0 * (seconds + 0.01) + 65_536.0;
        assert!(tallies.passed.bytes >= 2_000_000, "{tallies:?}");
        assert!(
            (tallies.passed.bytes as f64) <= most,
            "{tallies:?} in {seconds} s"
        );
        assert!(tallies.dropped.pkts > 0, "{tallies:?}");
        beat.take_away();
    }
}

#[test]
fn segments_that_the_host_merged_count_as_they_were_on_the_wire() {
    const DATA_BYTES: usize = 3_000_000;
    let Some(beat) = Beat::make("pgro") else {
        return;
    };
    let police = beat.put(PoliceMode::Count, Some(Hook::Tc));
    let (sender, receiver) = beat.wire.connection(B4);
    transfer(&sender, &receiver, DATA_BYTES);
    let Tally { pkts, bytes } = police.status().unwrap().tallies.unmarked;
    // 1,500 bytes of MTU; Ethernet, IPv4, TCP with timestamps.
    let segments = DATA_BYTES.div_ceil(1448) as u64;
    assert!(pkts >= segments, "{pkts}");
    assert!(
        bytes >= DATA_BYTES as u64 + segments * 66,
        "{bytes} in {pkts}"
    );
    assert!(bytes <= pkts * 1514, "{bytes} in {pkts}");
}

#[test]
fn a_police_that_is_gone_says_so_and_is_taken_away_from_anywhere() {
    let Some(beat) = Beat::make("pgone") else {
        return;
    };
    for hook in [Hook::Xdp, Hook::Tc] {
        let police = beat.put(PoliceMode::Drop, Some(hook));
        assert!(police.status().unwrap().is_in_place, "asked from outside");
        match hook {
            Hook::Xdp => beat.wire.ip(&beat.wire.b, "link set wb xdp off"),
            Hook::Tc => run(&beat.wire.b, "tc qdisc del dev wb clsact"),
        };
        assert!(!police.status().unwrap().is_in_place);
        police.take_away().unwrap();
        assert!(!beat.root.exists());
    }
    // From another namespace, and of a filter that another process noted nowhere.
    let qdiscs = run(&beat.wire.b, "tc qdisc show");
    beat.put(PoliceMode::Drop, Some(Hook::Tc))
        .take_away()
        .unwrap();
    assert_eq!(run(&beat.wire.b, "tc qdisc show"), qdiscs);
    let police = beat.put(PoliceMode::Drop, None);
    beat.wire.ip(&beat.wire.b, "link del wb");
    assert!(!police.status().unwrap().is_in_place);
    police.take_away().unwrap();
}

#[test]
fn where_another_program_is_at_xdp_the_police_says_what_to_do() {
    let Some(beat) = Beat::make("pxdp") else {
        return;
    };
    let first = beat.put(PoliceMode::Count, Some(Hook::Xdp));
    let second = |hook| {
        let orders = Orders {
            mode: PoliceMode::Drop,
            mark: PoliceMark::Bits(BIT),
            exceptions: Vec::new(),
            watches: false,
            hook,
        };
        let root = PathBuf::from(format!("{}-beside", beat.root.display()));
        beat.wire
            .b
            .run(|| Police::put(&root, "wb", &orders))
            .unwrap()
    };
    let refused = second(Some(Hook::Xdp)).unwrap_err().to_string();
    assert!(refused.contains("--hook tc"), "{refused}");
    let beside = second(None).unwrap();
    assert_eq!(beside.status().unwrap().hook, Hook::Tc);
    assert!(first.status().unwrap().is_in_place);
    beside.take_away().unwrap();
}

/// A flow of frames: `fresh` new ones, then of the first ones so many again.
fn send(police: &Police, first: u32, fresh: u32, again: u32) {
    let mut frame = Dress {
        payload: 1000,
        ..Dress::default()
    }
    .frame();
    let mut pass = |number: u32| {
        let sequence = (number * 1000).to_be_bytes();
        frame[14 + 20 + 4..][..4].copy_from_slice(&sequence);
        police.rehearse(&frame, 1).unwrap();
    };
    (first..first + fresh).for_each(&mut pass);
    // Longer than two checks of 4 ms: no reordering any more.
    std::thread::sleep(Duration::from_millis(5));
    pass(first + fresh);
    std::thread::sleep(Duration::from_millis(5));
    pass(first + fresh + 1);
    (first..first + again).for_each(&mut pass);
}

#[test]
fn a_flow_that_does_not_slow_down_under_loss_is_reported_and_others_are_not() {
    let Some(beat) = Beat::make("pwatch") else {
        return;
    };
    let police = beat.put(PoliceMode::Count, Some(Hook::Xdp));
    // 1 % of 8 Mb/s retransmitted. At 1 ms Reno would reach 97 Mb/s, at 100 ms 1 Mb/s.
    for (begin, least_rtt_us, is_reported) in [(0, 1_000, false), (10, 100_000, true)] {
        let mut watch = Watch::over(&police, least_rtt_us).unwrap();
        let looks = (0..5).map(|look| {
            send(&police, (begin + look) * 2000, 1000, 10);
            watch.look(1.0).unwrap()
        });
        let looks: Vec<_> = looks.collect();
        assert!(looks[..3].iter().all(Vec::is_empty), "not yet: {looks:?}");
        assert_eq!(looks[4].len(), usize::from(is_reported), "{looks:?}");
        if let [suspect] = &looks[4][..] {
            assert_eq!(suspect.source, "192.0.2.1:12345".parse().unwrap());
            assert!((suspect.loss - 0.01).abs() < 0.001, "{suspect:?}");
            assert!(!suspect.rtt_is_measured && suspect.times_reno > 4.0);
        }
    }
    // Without anything retransmitted nothing is known; what slows down is left alone.
    let mut watch = Watch::over(&police, 100_000).unwrap();
    let slowing = [
        (1000, 0),
        (1000, 0),
        (1000, 10),
        (500, 10),
        (250, 10),
        (125, 10),
    ];
    for (look, (fresh, again)) in (20..).zip(slowing) {
        send(&police, look * 2000, fresh, again);
        assert_eq!(watch.look(1.0).unwrap(), []);
    }
}

#[test]
fn a_new_connection_is_not_judged_by_the_one_that_had_its_ports_before() {
    let Some(beat) = Beat::make("psyn") else {
        return;
    };
    let police = beat.put(PoliceMode::Count, Some(Hook::Xdp));
    let mut watch = Watch::over(&police, 100_000).unwrap();
    // From sequence number 100 million down to 0: without the SYN all would count as retransmitted.
    for begin in (0..6).rev() {
        let syn = Dress {
            flags: 2,
            payload: 0,
            ..Dress::default()
        };
        let mut syn = syn.frame();
        syn[14 + 20 + 4..][..4].copy_from_slice(&(begin * 20_000_000u32).to_be_bytes());
        police.rehearse(&syn, 1).unwrap();
        // A round trip: at less even all of it retransmitted would be within Reno's.
        std::thread::sleep(Duration::from_millis(100));
        send(&police, begin * 20_000, 1000, 0);
        assert_eq!(watch.look(1.0).unwrap(), []);
    }
}
