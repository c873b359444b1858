// SPDX-License-Identifier: MIT OR Apache-2.0
//! A busy host: 100,000 established flows, 10,000 connections a second that begin and end beside them, 1,000 rules, all
//! flows tuned and sampled, and the page's live stream open. What that costs, and whether all is accounted for.
//!
//! The three figures are of one run, of ten minutes unless `--load-seconds` says otherwise.

use crate::alone::Alone;
use crate::bpf_stats::Counting;
use crate::connect_loop::{Slice, connect_at_a_rate};
use crate::cpu_time;
use crate::crowd::Crowd;
use crate::figure::{Better, Figure, Summary};
use crate::figures::connect_rate::BUFFERS;
use crate::figures::connect_rate_tuned;
use crate::group::Group;
use crate::instance::{fatpath, place};
use crate::loaded::Loaded;
use crate::memory::{peak_kib, resident_kib};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_api::Status;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

const FLOWS: usize = 100_000;
const CONNECTIONS_PER_S: u64 = 10_000;
/// Of opener and acceptor: a sample of its begin and one of its end, and a line of the flow log.
const SAMPLES_A_CONNECTION: u64 = 4;
const LINES_A_CONNECTION: u64 = 2;
/// What the daemon's memory may grow by after the first tenth of the run: once, when a table of flows doubles.
const STABLE_KIB: u64 = 64 * 1024;
/// What is on its way to the daemon arrives in it.
const SETTLE: Duration = Duration::from_secs(5);

/// One sample.
pub const CORE_SHARE: Figure = Figure {
    name: "load.core_share",
    what: "cores that daemon and programs use beside 100,000 flows and 10,000 connections a second",
    unit: "core",
    better: Better::Lower,
    goal: None,
    summary: Summary::Worst,
    measure: |run| of_one_run(run, |load| load.core_share),
};

/// One sample.
pub const MEMORY: Figure = Figure {
    name: "load.memory_mb",
    what: "memory of the daemon in that run, at most",
    unit: "MB",
    better: Better::Lower,
    goal: None,
    summary: Summary::Worst,
    measure: |run| of_one_run(run, |load| load.memory_mb),
};

/// One sample.
pub const LOST_UNCOUNTED: Figure = Figure {
    name: "load.lost_uncounted",
    what: "samples and flow log lines of that run neither handed over nor counted as lost",
    unit: "records",
    better: Better::Lower,
    goal: Some(0.0),
    summary: Summary::Worst,
    measure: |run| of_one_run(run, |load| load.lost_uncounted),
};

#[derive(Clone, Copy)]
struct Load {
    core_share: f64,
    memory_mb: f64,
    lost_uncounted: f64,
}

/// Measures once, however many of the figures are asked for.
fn of_one_run(run: &Run, figure: fn(Load) -> f64) -> Result<Vec<f64>> {
    static LOAD: Mutex<Option<Load>> = Mutex::new(None);
    let mut measured = LOAD.lock().expect("one thread measures");
    let load = match *measured {
        Some(load) => load,
        None => *measured.insert(measure(run)?),
    };
    Ok(vec![figure(load)])
}

fn measure(run: &Run) -> Result<Load> {
    let alone = Alone::wait(run)?;
    let group = Group::make()?;
    let instruments = format!("[instruments]\nflows = 'all'\nmax_flows = {}\n", 2 * FLOWS);
    let policy = connect_rate_tuned::policy(BUFFERS.to_owned() + &instruments);
    let loaded = Loaded::start(run, &alone, &policy, Some(group.path()))?;
    watch_page()?;
    group.enter()?;
    let crowd = Crowd::of(run, FLOWS);
    let load = crowd.and_then(|_crowd| beside_the_crowd(run, &loaded));
    group.leave()?;
    load
}

/// Takes what the live stream says until the daemon ends.
fn watch_page() -> Result<()> {
    let mut stream = UnixStream::connect(place("view.sock"))?;
    stream.write_all(b"GET /v1/instruments/live HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut some = [0; 12];
    stream.read_exact(&mut some)?;
    ensure!(&some == b"HTTP/1.1 200", "the live stream is refused");
    std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
    Ok(())
}

fn beside_the_crowd(run: &Run, loaded: &Loaded) -> Result<Load> {
    let _counting = Counting::start()?;
    connect_at_a_rate(run, CONNECTIONS_PER_S, run.load_lasts / 10)?;
    run.pause(SETTLE)?;
    let first_kib = resident_kib(loaded.pid())?;
    let (before, used_before) = (Accounts::of(run)?, Used::of(loaded)?);
    let opened = connect_at_a_rate(run, CONNECTIONS_PER_S, run.load_lasts)?;
    let used = Used::of(loaded)?.since(used_before);
    run.pause(SETTLE)?;
    let (last_kib, accounts) = (
        resident_kib(loaded.pid())?,
        Accounts::of(run)?.since(before),
    );
    say(run, opened, used, accounts);
    run.say(format!("  daemon {first_kib} to {last_kib} KiB"));
    let grown_kib = last_kib.saturating_sub(first_kib);
    ensure!(grown_kib < STABLE_KIB, "the daemon grew by {grown_kib} KiB");
    Ok(Load {
        core_share: (used.programs + used.daemon).as_secs_f64() / opened.took.as_secs_f64(),
        memory_mb: peak_kib(loaded.pid())? as f64 * 1024.0 / 1e6,
        lost_uncounted: accounts.missing(opened.connections) as f64,
    })
}

fn say(run: &Run, opened: Slice, used: Used, accounts: Accounts) {
    let share = |time: Duration| time.as_secs_f64() / opened.took.as_secs_f64();
    run.say(format!(
        "  {} connections, {:.0} a second; programs {:.3}, daemon {:.3}; {accounts:?}",
        opened.connections,
        opened.per_s(),
        share(used.programs),
        share(used.daemon),
    ));
}

/// Processor time.
#[derive(Clone, Copy)]
struct Used {
    programs: Duration,
    daemon: Duration,
}

impl Used {
    fn of(loaded: &Loaded) -> Result<Used> {
        Ok(Used {
            programs: loaded.kernel()?.all_programs_ran(),
            daemon: cpu_time::of_process(loaded.pid())?,
        })
    }

    fn since(self, before: Used) -> Used {
        Used {
            programs: self.programs - before.programs,
            daemon: self.daemon - before.daemon,
        }
    }
}

/// What became of samples and of lines of the flow log. An idle flow makes none.
#[derive(Clone, Copy, Debug)]
struct Accounts {
    samples: u64,
    samples_lost: u64,
    flows_unsampled: u64,
    lines: u64,
    lines_lost: u64,
    flows_untuned: u64,
}

impl Accounts {
    fn of(run: &Run) -> Result<Accounts> {
        let status = status(run)?;
        let (counts, sampled) = (status.kernel.counts, status.kernel.instruments);
        let sampled = sampled.context("no instruments")?;
        Ok(Accounts {
            samples: sampled.samples,
            samples_lost: sampled.samples_lost,
            flows_unsampled: sampled.flows_beyond_bounds + sampled.flows_without_storage,
            lines: status.flow_log.written,
            lines_lost: status.flow_log.missing + counts.events_lost,
            flows_untuned: counts.flows_without_storage,
        })
    }

    fn since(self, before: Accounts) -> Accounts {
        Accounts {
            samples: self.samples - before.samples,
            samples_lost: self.samples_lost - before.samples_lost,
            flows_unsampled: self.flows_unsampled - before.flows_unsampled,
            lines: self.lines - before.lines,
            lines_lost: self.lines_lost - before.lines_lost,
            flows_untuned: self.flows_untuned - before.flows_untuned,
        }
    }

    /// Or too many.
    fn missing(self, connections: u64) -> u64 {
        let samples = self.samples + self.samples_lost + 2 * self.flows_unsampled;
        let lines = self.lines + self.lines_lost + self.flows_untuned;
        (SAMPLES_A_CONNECTION * connections).abs_diff(samples)
            + (LINES_A_CONNECTION * connections).abs_diff(lines)
    }
}

fn status(run: &Run) -> Result<Status> {
    let output = fatpath(&run.fatpath, &["status", "--json"]).output()?;
    serde_json::from_slice(&output.stdout).context("fatpath status --json")
}
