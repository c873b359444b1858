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
