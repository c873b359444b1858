// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rate that the flows of a rule share, on real flows: each of those that send has its part of it, and idle ones have none.
#![allow(unsafe_code)] // a socket option that std does not know: raw system calls

use crate::support::turn;
use fatpath_api::{SettingReport, SettingValue};
use fatpath_kernel::Kernel;
use fatpath_policy::{Classifier, Policy, parse};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// In an emulated machine all is slow.
const PATIENCE: Duration = Duration::from_secs(60);
const WHOLE_BPS: u64 = 800_000_000;
const UNBOUNDED: u64 = u64::MAX;

fn publish(kernel: &Kernel, rate: &str) {
    let text = format!(
        "[[rule]]\nname = 'shared'\ndestination = ['127.0.24.0/24']\ncongestion_control = 'fp_reno'\n\
         pacing_rate = '{rate}'\n"
    );
    let policy = parse(&text, None).unwrap();
    kernel
        .publish(&policy, &Classifier::build(&policy))
        .unwrap();
}

struct Flow {
    sender: TcpStream,
    receiver: TcpStream,
}

impl Flow {
    fn new(address: &str) -> Flow {
        let server = TcpListener::bind((address, 0)).unwrap();
        let sender = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        sender.set_nodelay(true).unwrap();
        let receiver = server.accept().unwrap().0;
        Flow { sender, receiver }
    }

    /// A segment, and its acknowledgement.
    fn send(&self) {
        (&self.sender).write_all(b"x").unwrap();
        (&self.receiver).read_exact(&mut [0]).unwrap();
    }

    /// SO_MAX_PACING_RATE in bits a second.
    fn rate_bps(&self) -> u64 {
        let (mut rate, mut length) = (0u64, size_of::<u64>() as u32);
        // SAFETY: an open socket, and room for as many bytes as `length` says.
        let answer = unsafe {
            libc::getsockopt(
                self.sender.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw mut rate).cast(),
                &raw mut length,
            )
        };
        assert_eq!((answer, length), (0, 8));
        rate.saturating_mul(8)
    }

    fn set_rate_bps(&self, bps: u64) {
        let rate = bps / 8;
        // SAFETY: an open socket, and a value of that length.
        let answer = unsafe {
            libc::setsockopt(
                self.sender.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw const rate).cast(),
                size_of::<u64>() as u32,
            )
        };
        assert_eq!(answer, 0);
    }

    fn report(&self, kernel: &Kernel) -> SettingReport {
        let local = self.sender.local_addr().unwrap();
        let flows = kernel.flows().unwrap();
        let own = flows.iter().find(|flow| flow.flow.local == local).unwrap();
        let mut settings = own.settings.iter();
        let rate = settings.find(|one| one.setting == "pacing_rate_bps");
        rate.unwrap().clone()
    }
}

/// These flows send until each of them has this rate. Answers how long that took.
fn send_until(flows: &[&Flow], bps: u64) -> Duration {
    let begin = Instant::now();
    loop {
        flows.iter().for_each(|flow| flow.send());
        let rates: Vec<u64> = flows.iter().map(|flow| flow.rate_bps()).collect();
        if rates.iter().all(|rate| *rate == bps) {
            return begin.elapsed();
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "{bps} b/s each is wanted: {rates:?}"
        );
    }
}

#[test]
fn those_that_send_share_it_and_idle_ones_do_not() {
    let Some(turn) = turn() else { return };
    publish(&turn.kernel, "800mbit/n");
    let all: Vec<Flow> = (0..4).map(|_| Flow::new("127.0.24.1")).collect();
    let [first, second, ..] = &all[..] else {
        unreachable!()
    };
    send_until(&[first], WHOLE_BPS);
    first.send();
    assert_eq!(first.rate_bps(), WHOLE_BPS, "three have never sent");
    let of_all: Vec<&Flow> = all.iter().collect();
    send_until(&of_all, WHOLE_BPS / 4);
    let report = first.report(&turn.kernel);
    assert_eq!(report.asked, SettingValue::Name("800mbit/n".into()));
    assert_eq!(report.has, SettingValue::Number(WHOLE_BPS / 4));
    assert_eq!(report.note.as_deref(), Some("4 flows that send share it"));
    let took = send_until(&[first], WHOLE_BPS);
    assert!(
        took > Duration::from_millis(50),
        "not at one idle moment: {took:?}"
    );
    // After a pause at the first segment, whatever it had before.
    std::thread::sleep(Duration::from_millis(500));
    second.send();
    assert_eq!(second.rate_bps(), WHOLE_BPS);
    send_until(&[first, second], WHOLE_BPS / 2);
    // Flows that end are none that send.
    send_until(&of_all, WHOLE_BPS / 4);
    drop(all);
    let next = Flow::new("127.0.24.1");
    send_until(&[&next], WHOLE_BPS);
}

#[test]
fn another_rules_flows_are_none_and_what_was_before_returns() {
    let Some(turn) = turn() else { return };
    publish(&turn.kernel, "800mbit/n");
    let (one, other) = (Flow::new("127.0.24.2"), Flow::new("127.0.24.2"));
    let foreign = Flow::new("127.0.25.2");
    foreign.send();
    send_until(&[&one, &other], WHOLE_BPS / 2);
    assert_eq!(foreign.rate_bps(), UNBOUNDED);
    // A program's own that is smaller than the part holds, and a larger one does not.
    one.set_rate_bps(WHOLE_BPS / 8);
    send_until(&[&other], WHOLE_BPS);
    while other.rate_bps() != WHOLE_BPS / 2 {
        one.send();
        other.send();
    }
    assert_eq!(one.rate_bps(), WHOLE_BPS / 8);
    // Live flows follow the policy: to a rate for each, and back to a shared one.
    publish(&turn.kernel, "80mbit");
    assert_eq!(other.rate_bps(), 80_000_000);
    publish(&turn.kernel, "80mbit/n");
    send_until(&[&other, &one], 40_000_000);
    // No flow is stopped by many others.
    publish(&turn.kernel, "120kbit/n");
    send_until(&[&other, &one], 100_000);
    let none = Policy::default();
    turn.kernel
        .publish(&none, &Classifier::build(&none))
        .unwrap();
    assert_eq!(one.rate_bps(), WHOLE_BPS / 8);
    assert_eq!(other.rate_bps(), UNBOUNDED);
}
