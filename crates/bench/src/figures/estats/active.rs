// SPDX-License-Identifier: MIT OR Apache-2.0
//! What 1,000 active flows cost, each sampled every 100 ms: the daemon's processor time and the run time of
//! the programs in the kernel (kernel.bpf_stats_enabled), over the time that passed.
//!
//! 500 connections over loopback, both of whose ends send 1,000 bytes in turn, some ten times in an
//! interval, so that there is a round trip for the programs to look at each time.

use crate::alone::Alone;
use crate::bpf_stats::Counting;
use crate::cpu_time;
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Result, ensure};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 500;
const SAMPLES: u32 = 5;
const SLICE: Duration = Duration::from_secs(10);
/// All connections have sent and answered once in it.
const ROUND: Duration = Duration::from_millis(10);
const MESSAGE: [u8; 1000] = [7; 1000];
/// With a budget that leaves each flow its interval.
const POLICY: &str = "[host]\nsample_cpu_share = 1\n";

/// Median of five samples.
pub const FIGURE: Figure = Figure {
    name: "estats.active_core_share",
    what: "share of a core for 1,000 active flows sampled each 100 ms, daemon and kernel programs",
    unit: "core",
    better: Better::Lower,
    goal: Some(0.1),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let loaded = Loaded::start(run, &alone, POLICY, None)?;
    let kernel = loaded.kernel()?;
    let mut flows = flows()?;
    talk(run, &mut flows, Duration::from_secs(1))?;
    let _counting = Counting::start()?;
    let sample = |n| {
        let before = kernel.sample_counts()?;
        let (programs, daemon) = (
            kernel.instruments_ran(),
            cpu_time::of_process(loaded.pid())?,
        );
        let took = talk(run, &mut flows, SLICE)?.as_secs_f64();
        let programs = (kernel.instruments_ran() - programs).as_secs_f64() / took;
        let daemon = (cpu_time::of_process(loaded.pid())? - daemon).as_secs_f64() / took;
        let after = kernel.sample_counts()?;
        let samples = (after.samples - before.samples) as f64 / took;
        ensure!(after.samples_lost == 0, "{after:?}");
        run.say(format!(
            "  sample {n} of {SAMPLES}: programs {programs:.4}, daemon {daemon:.4}, {samples:.0} samples/s"
        ));
        Ok(programs + daemon)
    };
    (1..=SAMPLES).map(sample).collect()
}

fn flows() -> Result<Vec<(TcpStream, TcpStream)>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let connection = |_| {
        let opener = TcpStream::connect(address)?;
        opener.set_nodelay(true)?;
        let acceptor = listener.accept()?.0;
        acceptor.set_nodelay(true)?;
        Ok((opener, acceptor))
    };
    (0..CONNECTIONS).map(connection).collect()
}

/// Answers how long it took.
fn talk(run: &Run, flows: &mut [(TcpStream, TcpStream)], slice: Duration) -> Result<Duration> {
    let start = Instant::now();
    while start.elapsed() < slice {
        run.check()?;
        let round = Instant::now();
        for (opener, acceptor) in flows.iter_mut() {
            exchange(opener, acceptor)?;
        }
        std::thread::sleep(ROUND.saturating_sub(round.elapsed()));
    }
    Ok(start.elapsed())
}

fn exchange(opener: &mut TcpStream, acceptor: &mut TcpStream) -> Result<()> {
    let mut read = [0; MESSAGE.len()];
    opener.write_all(&MESSAGE)?;
    acceptor.read_exact(&mut read)?;
    acceptor.write_all(&MESSAGE)?;
    Ok(opener.read_exact(&mut read)?)
}
