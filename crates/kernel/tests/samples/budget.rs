// SPDX-License-Identifier: MIT OR Apache-2.0
//! The budget of samples: many active flows together make no more than it allows, and each has its part.

use crate::support::machine;
use crate::{LONG, reading, sampling};
use fatpath_api::{Sample, SampleCounts, SampleKind};
use fatpath_kernel::Kernel;
use std::collections::HashMap;
use std::io::{Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Both ends of each are sampled.
const CONNECTIONS: usize = 100;
/// Far less than the 2,000 that 200 flows make at 100 ms.
const BUDGET_PER_S: u32 = 100;
/// From one message to the next of a connection.
const ROUND: Duration = Duration::from_millis(20);
/// In it each flow has its turn several times.
const WATCHED: Duration = Duration::from_secs(10);

fn connections() -> Vec<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let connect = |_| {
        (
            TcpStream::connect(at).unwrap(),
            listener.accept().unwrap().0,
        )
    };
    let flows: Vec<(TcpStream, TcpStream)> = (0..CONNECTIONS).map(connect).collect();
    for (opener, acceptor) in &flows {
        opener.set_nodelay(true).unwrap();
        acceptor.set_nodelay(true).unwrap();
    }
    flows
}

/// Both ends of all send and receive in turn. Answers how often.
fn talk(flows: &mut [(TcpStream, TcpStream)], mut is_done: impl FnMut() -> bool) -> u32 {
    let end = Instant::now() + LONG;
    let mut rounds = 0;
    while !is_done() {
        assert!(Instant::now() < end, "waited in vain");
        let round = Instant::now();
        for (opener, acceptor) in flows.iter_mut() {
            opener.write_all(&[7]).unwrap();
            acceptor.read_exact(&mut [0]).unwrap();
            acceptor.write_all(&[7]).unwrap();
            opener.read_exact(&mut [0]).unwrap();
        }
        std::thread::sleep(ROUND.saturating_sub(round.elapsed()));
        rounds += 1;
    }
    rounds
}

fn talk_for(flows: &mut [(TcpStream, TcpStream)], lasts: Duration) -> u32 {
    let end = Instant::now() + lasts;
    talk(flows, || Instant::now() >= end)
}

fn counts(kernel: &Kernel) -> SampleCounts {
    kernel.sample_counts().unwrap()
}

/// Samples at round trips that came between two moments, by flow.
fn by_flow(samples: &[Sample], flows: &[(TcpStream, TcpStream)]) -> HashMap<u16, usize> {
    let ports = flows.iter().flat_map(|(opener, acceptor)| {
        let port = |end: &TcpStream| end.local_addr().unwrap().port();
        // An acceptor is told by its peer's.
        [
            (port(opener), true),
            (acceptor.peer_addr().unwrap().port(), false),
        ]
    });
    let mut found: HashMap<u16, usize> = HashMap::new();
    for (port, is_opener) in ports {
        let is_its = |s: &&Sample| match is_opener {
            true => s.flow.local.port() == port,
            false => s.flow.remote.port() == port,
        };
        let of = samples.iter().filter(is_its).count();
        let least = found.entry(port).or_insert(of);
        *least = of.min(*least);
    }
    found
}

#[test]
fn active_flows_share_the_budget_fairly_and_status_tells_it() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("budget", "interval = '100ms'");
    let kernel = &loaded.kernel;
    kernel.set_sample_budget(BUDGET_PER_S).unwrap();
    let mut flows = connections();
    reading(kernel, |read| {
        talk(&mut flows, || counts(kernel).interval_us > 100_000);
        // The first seconds: it learns how many flows there are.
        talk_for(&mut flows, Duration::from_secs(3));
        let told = counts(kernel);
        assert_eq!(told.samples_per_s_max, BUDGET_PER_S);
        let fair_us = 2_000_000 * CONNECTIONS as u64 / u64::from(BUDGET_PER_S);
        assert!(told.interval_us >= fair_us * 9 / 10, "{told:?}");
        assert!(told.interval_us <= fair_us * 3 / 2, "{told:?}");
        let first = read.samples.lock().unwrap().len();
        let start = Instant::now();
        talk_for(&mut flows, WATCHED);
        let took_s = start.elapsed().as_secs_f64();
        let made = counts(kernel).samples - told.samples;
        // A second of the kernel half begins within each end of the time.
        let allowed = f64::from(BUDGET_PER_S) * (took_s + 1.0);
        assert!((made as f64) <= allowed, "{made} in {took_s} s");
        assert!(made as f64 >= allowed / 2.0, "{made} in {took_s} s");
        let mut samples = read.samples.lock().unwrap()[first..].to_vec();
        samples.retain(|s| s.kind == SampleKind::Interval);
        let each = by_flow(&samples, &flows);
        let mean = samples.len() as f64 / (2 * CONNECTIONS) as f64;
        let least = each.values().copied().min().unwrap();
        assert!(
            least as f64 >= mean / 2.0 - 1.0 && least > 0,
            "{least} of {mean}"
        );
    });
}

#[test]
fn within_the_budget_nothing_changes() {
    let Some(_machine) = machine() else { return };
    let loaded = sampling("within", "interval = '100ms'");
    let kernel = &loaded.kernel;
    kernel.set_sample_budget(100_000).unwrap();
    let mut flows = connections();
    talk_for(&mut flows, Duration::from_secs(2));
    let (before, start) = (counts(kernel), Instant::now());
    let rounds = talk_for(&mut flows, Duration::from_secs(4));
    let took_s = start.elapsed().as_secs_f64();
    let after = counts(kernel);
    assert_eq!(after.interval_us, 100_000);
    assert_eq!(after.events_unsampled, 0);
    // Each at its first round trip after 100 ms: at each of them, if an emulated machine is that slow.
    let made = (after.samples - before.samples) as f64;
    let turns = (took_s / 0.2).min(0.8 * f64::from(rounds));
    let least = (2 * CONNECTIONS) as f64 * turns;
    assert!(made >= least, "{made} of {least} in {rounds} rounds");
}
