// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of this very program: its flow gets what the rule gives in a collective phase while a function is called.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(unsafe_code)] // a name that the probes can find

mod support;

use fatpath_api::SettingValue;
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

/// Until the flow has this pacing rate in the kernel. A flow changes with what it sends.
fn wait_for_rate(loaded: &Loaded, flow: &(TcpStream, TcpStream), rate_bps: u64) {
    let local = flow.0.local_addr().unwrap().to_string();
    let end = Instant::now() + PATIENCE;
    loop {
        (&flow.0).write_all(b"x").unwrap();
        (&flow.1).read_exact(&mut [0]).unwrap();
        let flows = loaded.kernel.flows().unwrap();
        let known = flows
            .iter()
            .find(|known| known.flow.local.to_string() == local);
        let settings = known.map(|known| &known.settings[..]).unwrap_or_default();
        let rate = settings.iter().find(|one| one.setting == "pacing_rate_bps");
        let has = rate.map(|rate| &rate.has);
        if matches!(has, Some(SettingValue::Number(has)) if *has == rate_bps) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{rate_bps} b/s are wanted: {settings:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_flow_follows_its_process() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::at("phases");
    let own = std::env::current_exe().unwrap();
    let text = format!(
        "[phases.own]\nlibrary = '{}'\ncollective = ['fatpath_test_collective']\n\
         [[rule]]\nname = 'r'\ndestination = ['127.0.23.0/24']\ncongestion_control = 'fp_reno'\n\
         pacing_rate = '800mbit'\nphase.collective = {{ pacing_rate = '80mbit' }}\n",
        own.display()
    );
    let policy = parse(&text, None).unwrap();
    let published = loaded
        .kernel
        .publish(&policy, &Classifier::build(&policy))
        .unwrap();
    assert_eq!(published.problems, Vec::<String>::new());
    let mut phases = Phases::begin(&loaded.kernel, &policy.phases).unwrap();
    assert_eq!(phases.pass(&loaded.kernel).unwrap(), Vec::<String>::new());
    assert!(phases.probe_us().unwrap() > 0.0);
    let server = TcpListener::bind("127.0.23.1:0").unwrap();
    let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let flow = (client, server.accept().unwrap().0);
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
