// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of this very program: its flow gets what the rule gives in a collective phase while a function is called.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(unsafe_code)] // a name that the probes can find

mod support;

use fatpath_api::{SettingValue, TunedFlow};
use fatpath_kernel::Phases;
use fatpath_policy::{Classifier, parse};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::{Loaded, alone};

const PATIENCE: Duration = Duration::from_secs(60);

#[unsafe(no_mangle)]
#[inline(never)]
fn fatpath_test_collective(work: &mut dyn FnMut()) {
    work();
    black_box(());
}

type Flow = (TcpStream, TcpStream);

fn connected() -> Flow {
    let server = TcpListener::bind("127.0.23.1:0").unwrap();
    accepted(&server)
}

/// The listening socket's TCP_MAXSEG holds for what its peers send.
fn connected_with_segments_of(bytes: usize) -> Flow {
    let server = TcpListener::bind("127.0.23.1:0").unwrap();
    let bytes = bytes as i32;
    // SAFETY: an open socket, and a value of that length.
    let answer = unsafe {
        let (level, option, length) =
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG, size_of::<i32>() as u32);
        libc::setsockopt(
            server.as_raw_fd(),
            level,
            option,
            (&raw const bytes).cast(),
            length,
        )
    };
    assert_eq!(answer, 0);
    accepted(&server)
}

fn accepted(server: &TcpListener) -> Flow {
    let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    (client, server.accept().unwrap().0)
}

fn rate(flow: &Flow, known: &[TunedFlow]) -> Option<u64> {
    let local = flow.0.local_addr().unwrap();
    let known = known.iter().find(|known| known.flow.local == local)?;
    let mut settings = known.settings.iter();
    match settings.find(|one| one.setting == "pacing_rate_bps")?.has {
        SettingValue::Number(has) => Some(has),
        SettingValue::Name(_) => None,
    }
}

/// Until each flow has its pacing rate in the kernel. A flow changes with what it sends.
fn wait_for_rates(loaded: &Loaded, wanted: &[(&Flow, u64)]) {
    let end = Instant::now() + PATIENCE;
    loop {
        for (flow, _) in wanted {
            (&flow.0).write_all(b"x").unwrap();
            (&flow.1).read_exact(&mut [0]).unwrap();
        }
        let known = loaded.kernel.flows().unwrap();
        let rates: Vec<_> = wanted.iter().map(|(flow, _)| rate(flow, &known)).collect();
        if wanted
            .iter()
            .map(|(_, bps)| Some(*bps))
            .eq(rates.iter().copied())
        {
            return;
        }
        let wanted: Vec<u64> = wanted.iter().map(|(_, bps)| *bps).collect();
        assert!(Instant::now() < end, "{wanted:?} b/s are wanted: {rates:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_for_rate(loaded: &Loaded, flow: &Flow, rate_bps: u64) {
    wait_for_rates(loaded, &[(flow, rate_bps)]);
}

/// A kernel half with this rule, which follows this program.
fn followed(name: &str, rule: &str, before: impl FnOnce()) -> (Loaded, Phases) {
    let loaded = Loaded::at(name);
    let own = std::env::current_exe().unwrap();
    let text = format!(
        "[phases.own]\nlibrary = '{}'\ncollective = ['fatpath_test_collective']\n\
         [[rule]]\nname = 'r'\ndestination = ['127.0.23.0/24']\ncongestion_control = 'fp_reno'\n{rule}\n",
        own.display()
    );
    let policy = parse(&text, None).unwrap();
    let published = loaded.kernel.publish(&policy, &Classifier::build(&policy));
    assert_eq!(published.unwrap().problems, Vec::<String>::new());
    before();
    let mut phases = Phases::begin(&loaded.kernel, &policy.phases).unwrap();
    assert_eq!(phases.pass(&loaded.kernel).unwrap(), Vec::<String>::new());
    (loaded, phases)
}

#[test]
fn a_flow_follows_its_process() {
    let Some(_alone) = alone() else { return };
    let rule = "pacing_rate = '800mbit'\nphase.collective = { pacing_rate = '80mbit' }";
    let (loaded, phases) = followed("phases", rule, || ());
    assert!(phases.probe_us().unwrap() > 0.0);
    let flow = connected();
    for _ in 0..2 {
        wait_for_rate(&loaded, &flow, 800_000_000);
        fatpath_test_collective(&mut || wait_for_rate(&loaded, &flow, 80_000_000));
    }
    // Without the probes nobody is in a phase for ever: the gate shuts.
    fatpath_test_collective(&mut || {
        wait_for_rate(&loaded, &flow, 80_000_000);
        loaded.kernel.close_phase_gate().unwrap();
        wait_for_rate(&loaded, &flow, 800_000_000);
    });
    let own = std::process::id();
    let processes = loaded.kernel.phase_processes().unwrap();
    let of_this = processes.iter().find(|process| process.pid == own).unwrap();
    assert_eq!((of_this.phases, of_this.is_collective), (3, false));
}

/// Of a rate that flows share those have a part whose process is in the phase.
#[test]
fn a_phase_has_its_own_flows_that_send() {
    let Some(_alone) = alone() else { return };
    let rule = "pacing_rate = '800mbit/n'\nphase.collective = { pacing_rate = '80mbit/n' }";
    let mut nobodys = None;
    let (loaded, _phases) = followed("shares", rule, || nobodys = Some(connected()));
    // From before the sockets of processes were known: in no phase.
    let nobodys = nobodys.unwrap();
    let own = [connected(), connected()];
    let all = |own_bps, nobodys_bps| {
        [
            (&own[0], own_bps),
            (&own[1], own_bps),
            (&nobodys, nobodys_bps),
        ]
    };
    let third = 800_000_000 / 8 / 3 * 8;
    wait_for_rates(&loaded, &all(third, third));
    fatpath_test_collective(&mut || {
        wait_for_rates(&loaded, &all(40_000_000, 800_000_000));
        wait_for_rate(&loaded, &own[0], 80_000_000);
    });
    wait_for_rates(&loaded, &all(third, third));
}

/// A flow whose last segment of a phase is acknowledged when the phase is over sends no more, and has no part outside.
#[test]
fn what_a_phase_sent_is_not_counted_outside() {
    let Some(_alone) = alone() else { return };
    let rule = "pacing_rate = '800mbit/n'\nphase.collective = { pacing_rate = '80mbit/n' }";
    let (loaded, _phases) = followed("late", rule, || ());
    let (late, own) = (connected(), connected());
    wait_for_rates(&loaded, &[(&late, 400_000_000), (&own, 400_000_000)]);
    fatpath_test_collective(&mut || {
        wait_for_rates(&loaded, &[(&late, 40_000_000), (&own, 40_000_000)]);
        // Until neither is counted outside any more.
        std::thread::sleep(Duration::from_millis(500));
        delay_acknowledgements(&late);
        (&late.0).write_all(b"x").unwrap();
    });
    // The acknowledgement comes within 40 ms, and changes the flow's phase.
    let end = Instant::now() + PATIENCE;
    let is_changed = || rate(&late, &loaded.kernel.flows().unwrap()) != Some(40_000_000);
    while !is_changed() {
        assert!(Instant::now() < end, "no acknowledgement");
        std::thread::sleep(Duration::from_millis(5));
    }
    (&own.0).write_all(b"x").unwrap();
    (&own.1).read_exact(&mut [0]).unwrap();
    let known = loaded.kernel.flows().unwrap();
    assert_eq!(rate(&own, &known), Some(800_000_000));
}

/// The receiver's are delayed from now on (TCP_QUICKACK = 0).
fn delay_acknowledgements(flow: &Flow) {
    let off = 0;
    // SAFETY: an open socket, and a value of that length.
    let answer = unsafe {
        let (level, option, length) = (
            libc::IPPROTO_TCP,
            libc::TCP_QUICKACK,
            size_of::<i32>() as u32,
        );
        libc::setsockopt(
            flow.1.as_raw_fd(),
            level,
            option,
            (&raw const off).cast(),
            length,
        )
    };
    assert_eq!(answer, 0);
}

/// Bytes of data in a segment, small, so that the window bounds the flow.
const SEGMENT_BYTES: usize = 500;

/// TCP_INFO's congestion window, segments.
fn cwnd_pkts(flow: &Flow) -> u32 {
    // SAFETY: all zeros is a value of the plain struct; an open socket, and room for as many bytes as `length` says.
    unsafe {
        let (mut info, mut length) = (
            std::mem::zeroed::<libc::tcp_info>(),
            size_of::<libc::tcp_info>() as u32,
        );
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let into = (&raw mut info).cast();
        assert_eq!(
            libc::getsockopt(flow.0.as_raw_fd(), level, option, into, &raw mut length),
            0
        );
        info.tcpi_snd_cwnd
    }
}

/// The law's name, as the socket has it.
fn law_of(flow: &Flow) -> String {
    let (mut name, mut length) = ([0u8; 16], 16);
    // SAFETY: an open socket, and room for as many bytes as `length` says.
    let answer = unsafe {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        let into = (&raw mut name).cast();
        libc::getsockopt(flow.0.as_raw_fd(), level, option, into, &raw mut length)
    };
    assert_eq!(answer, 0);
    let text = name.iter().take_while(|byte| **byte != 0);
    text.map(|byte| char::from(*byte)).collect()
}

/// So many segments in one write, and all of it read.
fn send_pkts(flow: &Flow, pkts: usize) {
    let data = vec![0; pkts * SEGMENT_BYTES];
    std::thread::scope(|scope| {
        scope.spawn(|| (&flow.0).write_all(&data).unwrap());
        (&flow.1).read_exact(&mut vec![0; data.len()]).unwrap();
    });
}

/// The law of the phase grows by a thousand segments a round trip, that of the rule by one.
#[test]
fn a_phase_may_have_another_law() {
    let Some(_alone) = alone() else { return };
    let rule = "initial_ssthresh = 2\nphase.collective = { congestion_control = { law = 'fp_aimd', a = 400 } }";
    let (loaded, _phases) = followed("laws", rule, || ());
    let flow = connected_with_segments_of(SEGMENT_BYTES);
    // Reno's window is below the root of twice what was sent, and its square.
    let slow_pkts = || {
        send_pkts(&flow, 200);
        cwnd_pkts(&flow)
    };
    for _ in 0..2 {
        let before = slow_pkts();
        assert!((10..40).contains(&before), "{before}");
        fatpath_test_collective(&mut || {
            let end = Instant::now() + PATIENCE;
            while cwnd_pkts(&flow) < 200 {
                send_pkts(&flow, 2000);
                assert!(Instant::now() < end, "{}", cwnd_pkts(&flow));
            }
            assert_eq!(law_of(&flow), "fp_reno");
        });
        // Its own window is back, and it grows as before.
        let after = slow_pkts();
        assert!((before..before + 20).contains(&after), "{before}, {after}");
    }
    drop(loaded);
}
