// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a flow starts and goes on after a pause on the real kernel, over emulated paths: what its window
//! does is compared with what the policy says.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};
use support::transfer::{PORT, Transfer, cwnd, number, policy, rule, ssthresh};
use support::{Daemon, Lab, alone, shared, until};

/// Of data in an Ethernet frame with timestamps.
const MSS_BYTES: f64 = 1448.0;

/// Windows from the first data on, each with the round trips since, rounded up.
fn windows(transfer: &Transfer<'_>, rtt: Duration, round_trips: u32) -> Vec<(f64, f64)> {
    let start = Instant::now();
    transfer.send_on();
    let mut seen = Vec::new();
    while start.elapsed() < rtt * round_trips {
        let pkts = cwnd(&transfer.flow());
        seen.push((start.elapsed().as_secs_f64() / rtt.as_secs_f64(), pkts));
    }
    seen
}

/// Flows to each port start by a rule of their own. Tests of a few segments share a daemon; those that need the
/// buffers of their rule do not: `lab up` takes back what a daemon before it raised, net.core.wmem_max.
mod port {
    pub const LIMITED: u16 = 7001;
    pub const THRESHOLD: u16 = 7002;
    pub const THRESHOLD_BDP: u16 = 7003;
    pub const PACED: u16 = 7004;
    pub const LOST_SYN: u16 = 7005;
    pub const UPDATE: u16 = 7006;
    pub const TIMED: u16 = 7007;
    pub const TIMED_OTHER: u16 = 7008;
    pub const KEEP: u16 = 7009;
    pub const RESTART: u16 = 7010;
    pub const PACE: u16 = 7011;
    pub const BBR_AT_RATE: u16 = 7012;
    pub const BBR: u16 = 7013;
}

fn all_rules() -> String {
    let idle =
        |how: &str| format!("after_idle = '{how}'\ninitial_window = 5\ninitial_ssthresh = 60");
    let rules = [
        (port::LIMITED, "max_ssthresh = 20".to_owned()),
        // A clamp sets the kernel's own ssthresh, which must not win.
        (
            port::THRESHOLD,
            "initial_ssthresh = 40\ncwnd_clamp = 1000".to_owned(),
        ),
        (
            port::THRESHOLD_BDP,
            "initial_ssthresh = 'bdp'\nrtt = '50ms'\nrate = '16mbit'".to_owned(),
        ),
        (port::PACED, "initial_rate = '220kbit'".to_owned()),
        (port::LOST_SYN, "initial_rate = '2mbit'".to_owned()),
        (
            port::UPDATE,
            "after_idle = 'pace'\ninitial_window = 2\ninitial_ssthresh = 20".to_owned(),
        ),
        (
            port::TIMED,
            "after_idle = 'pace'\ninitial_window = 2\ninitial_ssthresh = 8".to_owned(),
        ),
        (port::TIMED_OTHER, String::new()),
        (port::KEEP, idle("keep")),
        (port::RESTART, idle("restart")),
        (port::PACE, idle("pace")),
    ];
    let of = |(port, keys)| rule(port, &format!("congestion_control = 'fp_reno'\n{keys}"));
    let by_rates = [
        (port::BBR_AT_RATE, "initial_rate = '1mbit'"),
        (port::BBR, ""),
    ];
    let of_rates = |(port, keys)| rule(port, &format!("congestion_control = 'fp_bbr'\n{keys}"));
    let rules = rules.map(of).into_iter().chain(by_rates.map(of_rates));
    policy(&rules.collect::<Vec<_>>())
}

/// 1 s x 1 Mb/s are 86 segments, of which the peer's window allows 45, half a second of them; by itself BBR begins with ten.
#[test]
fn a_flow_of_bbr_starts_at_the_rate_that_its_rule_knows() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("bbr-rate", "delay = '500ms'");
    let first_window = |port| {
        let transfer = Transfer::open(&lab, &shared.daemon, port);
        let before = number(&transfer.flow(), "bytes_acked");
        transfer.send_on();
        let (mut largest, mut in_flight) = (0.0_f64, BTreeSet::new());
        until("an acknowledgement", || {
            let flow = transfer.flow();
            let is_first = number(&flow, "bytes_acked") == before;
            if is_first {
                largest = largest.max(cwnd(&flow));
                in_flight.insert(number(&flow, "in_flight_pkts") as u64);
            }
            (!is_first).then_some(())
        });
        (largest, in_flight)
    };
    let (window, in_flight) = first_window(port::BBR_AT_RATE);
    assert!((70.0..105.0).contains(&window), "{window}");
    // In a burst all would have been in flight at once.
    assert!(in_flight.len() >= 5, "{in_flight:?}");
    let (window, _) = first_window(port::BBR);
    assert!((10.0..20.0).contains(&window), "{window}");
}

#[test]
fn limited_slow_start_adds_half_of_max_ssthresh_a_round_trip() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("limited", "delay = '25ms'");
    let transfer = Transfer::open(&lab, &shared.daemon, port::LIMITED);
    let seen = windows(&transfer, Duration::from_millis(50), 24);
    // RFC 3742: past max_ssthresh by at most max_ssthresh / 2 a round trip; doubling would be at 2^20.
    for (round_trips, pkts) in &seen {
        assert!(
            *pkts <= 20.0 + 10.0 * round_trips + 2.0,
            "{pkts} at {round_trips}"
        );
    }
    assert!(seen.last().unwrap().1 > 60.0, "{seen:?}");
    assert_eq!(ssthresh(&transfer.flow()), None, "it is still slow start");
}

#[test]
fn slow_start_ends_at_the_initial_ssthresh() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("ssthresh", "delay = '25ms'");
    // 100,000 bytes in segments of 1448.
    for (port, threshold_pkts) in [(port::THRESHOLD, 40.0), (port::THRESHOLD_BDP, 69.0)] {
        let transfer = Transfer::open(&lab, &shared.daemon, port);
        let seen = windows(&transfer, Duration::from_millis(50), 16);
        for (round_trips, pkts) in &seen {
            assert!(
                *pkts <= threshold_pkts + round_trips + 2.0,
                "{pkts} at {round_trips}"
            );
        }
        assert!(seen.last().unwrap().1 > threshold_pkts, "{seen:?}");
        assert_eq!(ssthresh(&transfer.flow()), Some(threshold_pkts));
    }
}

#[test]
fn a_paced_start_spreads_the_first_window_over_the_round_trip() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("paced", "delay = '1s'");
    let daemon = Daemon::start(&all_rules());
    let transfer = Transfer::open(&lab, &daemon, port::PACED);
    let before = number(&transfer.flow(), "bytes_acked");
    // The threshold is the rate times the round-trip time of the handshake, and fits in the window
    // of a SYN, which is never more than 64 KiB.
    transfer.send(4_000_000);
    let mut in_flight: Vec<u64> = Vec::new();
    let first = until("an acknowledgement", || {
        let flow = transfer.flow();
        if number(&flow, "bytes_acked") > before {
            return Some(flow);
        }
        let target_pkts = ssthresh(&flow).unwrap();
        assert!((30.0..45.0).contains(&target_pkts), "{flow}");
        assert_eq!(cwnd(&flow), target_pkts);
        in_flight.push(number(&flow, "in_flight_pkts") as u64);
        None
    });
    // In a burst all of the first window would have been in flight at once.
    assert!(in_flight.is_sorted());
    in_flight.dedup();
    assert!(in_flight.len() >= 5, "{in_flight:?}");
    // Congestion avoidance follows: it sent what the path was said to hold.
    let target_pkts = ssthresh(&first).unwrap();
    assert!(
        (0.8 * target_pkts..=target_pkts + 2.0).contains(&cwnd(&first)),
        "{first}"
    );
}

/// RFC 5681, 3.1: the window is one segment after a lost SYN (Linux: after two), whatever the rule says.
#[test]
fn a_lost_syn_leaves_no_paced_start() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("syn", "delay = '300ms'\nforward = { loss = '100%' }");
    let transfer = thread::scope(|scope| {
        let opens = scope.spawn(|| Transfer::open(&lab, &shared.daemon, port::LOST_SYN));
        until("two SYNs to be sent anew", || {
            (lab.counted("a", &["TCPSynRetrans"]) >= 2).then_some(())
        });
        lab.set("forward.loss=0%");
        opens.join().unwrap()
    });
    let acked = number(&transfer.flow(), "bytes_acked");
    transfer.send(100_000);
    let flow = transfer.flow();
    assert_eq!(number(&flow, "bytes_acked"), acked, "looked too late");
    assert_eq!(cwnd(&flow), 1.0, "{flow}");
    assert_eq!(ssthresh(&flow), None, "{flow}");
}

/// The peer reads what it had, and tells its window: nothing of the paced start has arrived.
#[test]
fn a_window_update_does_not_end_a_paced_start() {
    let Some(shared) = shared(&all_rules()) else {
        return;
    };
    let lab = Lab::up("update", "delay = '800ms'");
    let (sender, mut receiver) = lab.connection(port::UPDATE);
    let flow = || shared.daemon.flow_of(&sender);
    let unread = 50_000;
    (&sender).write_all(&vec![0; unread]).unwrap();
    until("all to be acknowledged", || {
        (number(&flow(), "bytes_acked") >= unread as f64).then_some(())
    });
    thread::sleep(Duration::from_secs(6));
    let before = flow();
    (&sender).write_all(&[0; 30_000]).unwrap();
    until("a paced start", || (cwnd(&flow()) == 20.0).then_some(()));
    receiver.read_exact(&mut vec![0; unread]).unwrap();
    let after = until("a window update", || {
        let flow = flow();
        let window = |flow| number(flow, "peer_window_bytes");
        (window(&flow) > window(&before)).then_some(flow)
    });
    assert_eq!(after["bytes_acked"], before["bytes_acked"], "{after}");
    assert!(number(&after, "in_flight_pkts") < 20.0, "{after}");
    assert_eq!(cwnd(&after), 20.0, "{after}");
    sender.shutdown(Shutdown::Both).unwrap();
}

#[test]
fn what_leaves_when_a_paced_start_has_ended_is_timed_from_then() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("timed", "delay = '100ms'\nrate = '10mbit'\nqueue = '4MiB'");
    let daemon = Daemon::start(&all_rules());
    let [transfer, other] =
        [port::TIMED, port::TIMED_OTHER].map(|port| Transfer::open(&lab, &daemon, port));
    // The kernel paces from the tenth segment on.
    let mut sent = 30_000;
    transfer.send(sent);
    transfer.quiet(sent);
    // Another flow's queue makes the smoothed round-trip time longer than the next round trip will be:
    // the first ACK of the paced start comes while it paces.
    let mut queued = 0;
    until("a long round trip", || {
        // Again, where it was looked at only after the queue was empty.
        if number(&other.flow(), "in_flight_pkts") == 0.0 {
            other.send(3_000_000);
            queued += 3_000_000;
        }
        transfer.send(1);
        sent += 1;
        (number(&transfer.quiet(sent), "srtt_us") > 350e3).then_some(())
    });
    other.quiet(queued);
    thread::sleep(Duration::from_secs(3));
    transfer.send(30_000);
    let flow = transfer.quiet(sent + 30_000);
    assert!(number(&flow, "min_rtt_us") >= 200e3, "{flow}");
}

#[test]
fn a_flow_whose_rule_loses_its_pacing_rate_is_no_longer_paced() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("unpaced", "delay = '500ms'");
    let keys = "congestion_control = 'fp_reno'\ninitial_window = 40\nafter_idle = 'keep'";
    let paced = format!("{keys}\npacing_rate = '10mbit'");
    let daemon = Daemon::start(&policy(&[rule(PORT, &paced)]));
    let transfer = Transfer::open(&lab, &daemon, PORT);
    // The kernel paces from the tenth segment on.
    transfer.send(30_000);
    transfer.quiet(30_000);
    let policy = policy(&[rule(PORT, keys)]);
    assert!(daemon.apply(&policy).status.success());
    transfer.send(1);
    transfer.quiet(30_001);
    // Paced, these would take half a round trip to leave: the kernel's rate is two windows a round trip.
    transfer.send((40.0 * MSS_BYTES) as usize);
    let flow = transfer.flow();
    assert_eq!(number(&flow, "in_flight_pkts"), 40.0, "{flow}");
}

/// A flow that has grown its window, and then has nothing to send for longer than its RTO. What it
/// sends then is still on its way when it is looked at.
fn after_pause(transfer: &Transfer<'_>) -> (f64, Value) {
    transfer.send(400_000);
    let before = transfer.quiet(400_000);
    thread::sleep(Duration::from_secs(4));
    transfer.send(1);
    let acked = number(&before, "bytes_acked");
    let flow = until("a segment to leave", || {
        let flow = transfer.flow();
        (number(&flow, "in_flight_pkts") > 0.0).then_some(flow)
    });
    assert_eq!(number(&flow, "bytes_acked"), acked, "looked too late");
    (cwnd(&before), flow)
}

#[test]
fn a_pause_leaves_of_the_window_what_the_rule_says_whatever_the_host_says() {
    let Some(_alone) = alone() else { return };
    let lab = Lab::up("pause", "delay = '300ms'");
    let daemon = Daemon::start(&all_rules());
    for slow_start_after_idle in ["1", "0"] {
        let sysctl = format!("net.ipv4.tcp_slow_start_after_idle={slow_start_after_idle}");
        lab.output("a", &["sysctl", "-w", &sysctl]);
        let [keep, restart, pace] =
            [port::KEEP, port::RESTART, port::PACE].map(|port| Transfer::open(&lab, &daemon, port));
        thread::scope(|scope| {
            scope.spawn(|| {
                let (before, after) = after_pause(&keep);
                assert_eq!(cwnd(&after), before, "{sysctl}");
            });
            scope.spawn(|| {
                let (before, after) = after_pause(&restart);
                // Four RTOs of some 0.9 s at least; the restart window is the rule's, not the route's.
                assert!(
                    (5.0..=before / 8.0).contains(&cwnd(&after)),
                    "{sysctl}: {before}, {after}"
                );
            });
            scope.spawn(|| {
                let (before, after) = after_pause(&pace);
                assert_eq!(ssthresh(&after), Some(cwnd(&after)), "{sysctl}");
                assert!(cwnd(&after) >= (0.74 * before).floor(), "{sysctl}: {after}");
            });
        });
    }
}
