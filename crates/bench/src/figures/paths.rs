// SPDX-License-Identifier: MIT OR Apache-2.0
//! Learned paths: what 65,536 of them cost connections that are on none, and what it costs the daemon to learn from
//! 1,000 new flows a second.

use crate::alone::Alone;
use crate::connect_loop::connect_for_a_slice_to;
use crate::cpu_time;
use crate::figure::{Better, Figure, Summary};
use crate::figures::connect_rate::{SETTINGS, paired_by, prelude};
use crate::group::Group;
use crate::instance::{fatpath, place};
use crate::loaded::Loaded;
use crate::memory::peak_kib;
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_api::{LearnedPaths, Status};
use fatpath_emulator::{Namespace, remove_namespace};
use fatpath_kernel::{PathAddresses, PathChange, PathRule};
use fatpath_policy::{Prefix, parse};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PATHS: u32 = 65_536;

/// Median of thirty samples.
pub const CONNECT_RATE: Figure = Figure {
    name: "paths.connect_rate_ratio",
    what: "connections a second over loopback, each to another address, beside 65,536 learned paths over unloaded",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.90),
    summary: Summary::Median,
    measure: connect_rate,
};

/// One sample.
pub const CORE_SHARE: Figure = Figure {
    name: "paths.core_share",
    what: "daemon that learns from 1,000 new flows a second of 100 kB over 10,000 paths",
    unit: "core",
    better: Better::Lower,
    goal: Some(0.15),
    summary: Summary::Worst,
    measure: |run| Ok(vec![learning(run)?.core_share]),
};

/// One sample.
pub const MEMORY: Figure = Figure {
    name: "paths.memory_mb",
    what: "memory of the daemon in that run, at most",
    unit: "MB",
    better: Better::Lower,
    goal: Some(300.0),
    summary: Summary::Worst,
    measure: |run| Ok(vec![learning(run)?.memory_mb]),
};

fn connect_rate(run: &Run) -> Result<Vec<f64>> {
    let to_another = || connect_for_a_slice_to(|n| beside(n.wrapping_mul(40_503) as u32 % PATHS));
    paired_by(
        run,
        &prelude(),
        to_another,
        know_paths,
        |loaded, connections| {
            let counts = loaded.status()?.counts;
            ensure!(counts.flows_met == 0, "{counts:?}: loopback is on a path");
            ensure!(
                counts.flows_passed >= 2 * connections.count,
                "{counts:?}: fatpath did not see the loop"
            );
            Ok(())
        },
    )
}

/// An address in the same /24 as the n-th path, so that the search for it goes as deep as that for one on the path.
fn beside(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 1).to_bits() + (n << 8))
}

fn know_paths(loaded: &Loaded) -> Result<()> {
    let rule = parse(&format!("[[rule]]\nname = 'auto'\n{SETTINGS}"), None);
    let rule = rule.map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let path = |n: u32| {
        let path = PathAddresses {
            local: Ipv4Addr::LOCALHOST.into(),
            peers: Prefix::holding((beside(n) | Ipv4Addr::from_bits(128)).into(), 25)?,
        };
        let rule = PathRule {
            rule: "auto",
            known: None,
        };
        Some((path, Some(rule)))
    };
    let paths: Vec<PathChange<'_>> = (0..PATHS).filter_map(path).collect();
    Ok(loaded.kernel()?.set_paths(&rule.rules, &paths)?)
}

const NETWORK: &str = "fatpath-bench-paths";
const LEARNED_PATHS: u64 = 10_000;
const FLOWS_PER_S: u64 = 1_000;
const FLOW_BYTES: usize = 100_000;
const WARM_UP: Duration = Duration::from_secs(20);
const LASTS: Duration = Duration::from_secs(60);
/// Flows that are due are begun together so often.
const BATCH: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
struct Learning {
    core_share: f64,
    memory_mb: f64,
}

/// Measures once for both figures.
fn learning(run: &Run) -> Result<Learning> {
    static LEARNING: Mutex<Option<Learning>> = Mutex::new(None);
    let mut measured = LEARNING.lock().expect("one thread measures");
    let learning = match *measured {
        Some(learning) => learning,
        None => *measured.insert(learn(run)?),
    };
    Ok(learning)
}

fn learn(run: &Run) -> Result<Learning> {
    let alone = Alone::wait(run)?;
    let group = Group::make()?;
    let policy = "[archive]\n[auto]\nmode = 'tune'\n";
    let loaded = Loaded::start(run, &alone, policy, Some(group.path()))?;
    let peers = Peers::make()?;
    // The accepting ends are the listener's cgroup's, which is not the daemon's.
    group.enter()?;
    let used = transfers(run, &peers, WARM_UP).and_then(|_| {
        let before = cpu_time::of_process(loaded.pid())?;
        let begun = Instant::now();
        let flows = transfers(run, &peers, LASTS)?;
        let took = begun.elapsed().as_secs_f64();
        Ok((flows, took, cpu_time::of_process(loaded.pid())? - before))
    });
    group.leave()?;
    let (flows, took, used) = used?;
    let per_s = flows as f64 / took;
    let known: LearnedPaths = serde_json::from_slice(&said(run, &["paths"])?)?;
    let status: Status = serde_json::from_slice(&said(run, &["status"])?)?;
    run.say(format!(
        "  {per_s:.0} flows a second, {} paths known, {:?}",
        known.known, status.kernel.instruments
    ));
    ensure!(
        per_s > 0.95 * FLOWS_PER_S as f64,
        "{per_s:.0} flows a second"
    );
    ensure!(known.known as u64 == LEARNED_PATHS, "{} paths", known.known);
    Ok(Learning {
        core_share: used.as_secs_f64() / took,
        memory_mb: peak_kib(loaded.pid())? as f64 * 1024.0 / 1e6,
    })
}

fn said(run: &Run, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = fatpath(&run.fatpath, &[arguments, &["--json"]].concat()).output()?;
    ensure!(output.status.success(), "fatpath {arguments:?}");
    Ok(output.stdout)
}

/// A namespace all of whose addresses in 10.0.0.0/8 are its own, and whoever takes what is sent to them.
struct Peers {
    namespace: Namespace,
    port: u16,
}

impl Peers {
    fn make() -> Result<Peers> {
        // What a killed run left.
        let _ = remove_namespace(&format!("{NETWORK}-host"));
        let namespace = Namespace::create(&format!("{NETWORK}-host"))?;
        for command in [
            "link set lo up",
            "addr add 10.255.0.1/32 dev lo",
            "route add local 10.0.0.0/8 dev lo src 10.255.0.1",
        ] {
            let ip = || Command::new("ip").args(command.split(' ')).status();
            ensure!(namespace.run(ip)??.success(), "ip {command}");
        }
        let listener = namespace.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        let port = listener.local_addr()?.port();
        // Ends with the program.
        std::thread::spawn(move || listener.incoming().flatten().for_each(take));
        Ok(Peers { namespace, port })
    }

    fn address(&self, n: u64) -> SocketAddr {
        let path = (n % LEARNED_PATHS) as u32;
        (
            Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 7).to_bits() + (path << 8)),
            self.port,
        )
            .into()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = remove_namespace(self.namespace.name());
    }
}

/// What it took is told by the end of the connection; a flow that failed is missed in the number of flows.
fn take(mut connection: TcpStream) {
    let _ = std::io::copy(&mut connection, &mut std::io::sink());
}

/// Begins 1,000 flows a second, or as many as it can. Answers how many.
fn transfers(run: &Run, peers: &Peers, lasts: Duration) -> Result<u64> {
    let transfer = |n: u64| -> Result<()> {
        let mut flow = TcpStream::connect(peers.address(n))?;
        flow.write_all(&[0; FLOW_BYTES])?;
        flow.shutdown(std::net::Shutdown::Write)?;
        ensure!(flow.read(&mut [0])? == 0, "the peer sent something");
        Ok(())
    };
    let all = || {
        let start = Instant::now();
        let mut flows = 0;
        while start.elapsed() < lasts {
            run.check()?;
            let due = start.elapsed().as_micros() as u64 * FLOWS_PER_S / 1_000_000;
            (flows..due).try_for_each(transfer)?;
            flows = due;
            std::thread::sleep(BATCH);
        }
        Ok(flows)
    };
    peers
        .namespace
        .run(all)
        .context(place("").display().to_string())?
}
