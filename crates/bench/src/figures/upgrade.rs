// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long flows are without their tuning while one build of the kernel half replaces another, up and down by turns.
//!
//! The builds have the same objects and differ in the version of their ABI. All flows carry data meanwhile; one that is
//! reset ends the measurement.

use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::instance::PIN_DIR;
use crate::run::Run;
use anyhow::{Context, Result, anyhow, ensure};
use fatpath_kernel::{Build, Kernel, Places, Takeover};
use fatpath_policy::{Classifier, Policy, parse};
use rustix::net::sockopt::tcp_congestion;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REPLACEMENTS: u32 = 50;
const FLOWS: usize = 200;
const LAW: &str = "fp_aimd";
const HOST: &str = "127.0.23.1:0";
const POLICY: &str = "[[rule]]\nname = 'upgrade'\ndestination = ['127.0.23.0/24']\n\
    congestion_control = { law = 'fp_aimd', a = 2, b = 0.5 }\n";

/// No build of the sources has these versions.
const VERSIONS: [u32; 2] = [1001, 1002];

/// The worst of fifty.
pub const FIGURE: Figure = Figure {
    name: "upgrade.gap_s_max",
    what: "longest time without its tuning of 200 flows that carry data, in 50 upgrades and downgrades",
    unit: "s",
    better: Better::Lower,
    goal: Some(1.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    alone.wait_until_unloaded(run)?;
    let policy = parse(POLICY, None).map_err(|problems| anyhow!("{problems:?}"))?;
    let pinned = Pinned::new(policy)?;
    ensure!(pinned.load(0)? == Takeover::Fresh, "something was pinned");
    let flows = open_flows()?;
    let gap = |n| {
        run.check()?;
        let gap = longest_gap(&flows, || pinned.load(n))?;
        run.say(format!("  sample {n} of {REPLACEMENTS}: {gap:?}"));
        Ok(gap.as_secs_f64())
    };
    (1..=REPLACEMENTS).map(gap).collect()
}

/// The builds' pins, removed when this is dropped.
struct Pinned {
    places: Places,
    policy: Policy,
}

impl Pinned {
    fn new(policy: Policy) -> Result<Pinned> {
        let places = Places::new(Some(PIN_DIR.into()), None)?;
        Ok(Pinned { places, policy })
    }

    fn load(&self, n: u32) -> Result<Takeover> {
        let build = Build::of_version(VERSIONS[n as usize % 2]);
        let (kernel, takeover, missing) =
            Kernel::load_build(self.places.clone(), &self.policy, &build)?;
        let missing = [missing.laws, missing.instruments, missing.release];
        if let Some(error) = missing.into_iter().flatten().next() {
            return Err(error.into());
        }
        kernel.publish(&self.policy, &Classifier::build(&self.policy))?;
        Ok(takeover)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let kernel = Kernel::open_to_change(self.places.clone());
        if let Err(error) = kernel.and_then(|kernel| kernel.unload()) {
            eprintln!("{error}");
        }
    }
}

fn open_flows() -> Result<Vec<(TcpStream, TcpStream)>> {
    let listener = TcpListener::bind(HOST)?;
    let flow = |_| {
        let here = TcpStream::connect(listener.local_addr()?)?;
        Ok((here, listener.accept()?.0))
    };
    (0..FLOWS).map(flow).collect()
}

/// While `replace` replaces a build.
fn longest_gap(
    flows: &[(TcpStream, TcpStream)],
    replace: impl FnOnce() -> Result<Takeover>,
) -> Result<Duration> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(flows, &is_over));
        let takeover = replace();
        is_over.store(true, Ordering::Relaxed);
        let gap = watcher
            .join()
            .map_err(|_| anyhow!("the watcher panicked"))?;
        ensure!(takeover? == Takeover::Replaced, "no build was replaced");
        gap
    })
}

fn watch(flows: &[(TcpStream, TcpStream)], is_over: &AtomicBool) -> Result<Duration> {
    let mut tuned = vec![Instant::now(); flows.len()];
    let mut longest = Duration::ZERO;
    loop {
        // What is untuned after the replacement stays so, and counts.
        let is_last = is_over.load(Ordering::Relaxed);
        for ((here, there), tuned) in flows.iter().zip(&mut tuned) {
            carry(here, there).context("a flow was reset")?;
            let is_tuned = tcp_congestion(here)? == LAW;
            longest = longest.max(tuned.elapsed());
            if is_tuned {
                *tuned = Instant::now();
            }
            ensure!(is_tuned || !is_last, "a flow lost its tuning");
        }
        if is_last {
            return Ok(longest);
        }
    }
}

fn carry(mut here: &TcpStream, mut there: &TcpStream) -> std::io::Result<()> {
    here.write_all(b"x")?;
    there.read_exact(&mut [0])
}
