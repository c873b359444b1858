// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between hosts of fatpath: `fatpath measure respond`, `echo`, `one-way` and `status`.

use super::{DEFAULT_FILE, new_outcome, print};
use crate::archive::time::{now_us, shown};
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_api::TestOutcome;
use fatpath_clock::clock_error;
use fatpath_daemon::measure::{parse_plan, read_plan_file};
use fatpath_measure::echo::round_trips;
use fatpath_measure::{Clock, Echo, Kind, Ledger, Peer, Plan, Used, Values, one_way};
use fatpath_peer::{HOSTS, KEY, Key, or_configured, read_trusted};
use fatpath_responder::{Made, Options, TestError, UsedFile, Wanted, Whom, echo, respond};
use fatpath_table::write_table;
use fatpath_units::{show_bytes, show_rate, show_time, time_us};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub const ECHO_HELP: &str = "\
The responder's file has to name this host as a peer. docs/measure.md says how
two hosts are set up for tests.

Examples:
  fatpath measure echo dtn2 --duration 5s
  fatpath measure echo dtn2 --interval 20ms --size 1400 --json";

pub const ONE_WAY_HELP: &str = "\
The responder's file has to name this host as a peer. Both clocks must be
synchronised, or --clock-error here and clock_error in the responder's file say
how wrong they may be.

Examples:
  fatpath measure one-way dtn2 --json
  fatpath measure one-way dtn2 --duration 5s --clock-error 20us";

pub const RESPOND_HELP: &str = "\
Listens where [responder] of the file says; each [[peer]] says who may test, what,
and how much. SIGHUP reads the file again. With systemd:
systemctl enable --now fatpath-responder

Examples:
  fatpath measure respond --user nobody
  fatpath measure respond --file ./measure.toml --used ./used.json --json";

const DEFAULT_USED: &str = "/var/lib/fatpath-responder/used.json";

#[derive(Args)]
pub struct RespondArguments {
    /// File that says where to listen, and whose tests are answered
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// This host's key [default: key in ~/.config/fatpath, for root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// File that keeps what peers have used of their limits
    #[arg(long, value_name = "FILE", default_value = DEFAULT_USED)]
    used: PathBuf,
    /// User to become when started by root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Print events as JSON, one a line
    #[arg(long)]
    json: bool,
}

/// Whom to ask, and as whom.
#[derive(Args)]
pub struct WhomArguments {
    /// Host with a responder, by the name under which its key is trusted (`fatpath keys trust host`)
    pub host: String,
    /// Port of the responder
    #[arg(long, default_value_t = Echo::PORT)]
    port: u16,
    /// This host's key [default: key in ~/.config/fatpath, for root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// File of trusted keys [default: known_hosts in ~/.config/fatpath, for root in /etc/fatpath]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct EchoArguments {
    #[command(flatten)]
    whom: WhomArguments,
    /// How long datagrams are sent
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
    /// Time from one datagram to the next
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    interval: Duration,
    /// UDP payload of each datagram
    #[arg(long, value_name = "BYTES", default_value_t = Echo::SIZE_BYTES as u16, value_parser = clap::value_parser!(u16).range(56..=8952))]
    size: u16,
}

#[derive(Args)]
pub struct OneWayArguments {
    #[command(flatten)]
    echo: EchoArguments,
    /// Bound of the error of this host's clock, where the kernel does not know one (PTP, chrony without rtcsync)
    #[arg(long, value_name = "TIME", value_parser = time)]
    clock_error: Option<Duration>,
}

#[derive(Args)]
pub struct StatusArguments {
    /// File that says whose tests are answered
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// File that keeps what peers have used of their limits
    #[arg(long, value_name = "FILE", default_value = DEFAULT_USED)]
    used: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn time(text: &str) -> Result<Duration, String> {
    let us = time_us(text).and_then(|us| u64::try_from(us).ok());
    let us = us.filter(|us| *us > 0);
    us.map(Duration::from_micros)
        .ok_or_else(|| "give a time with its unit: 10s, 100ms".to_owned())
}

/// At most an hour; 0s: not at all.
pub fn patience(text: &str) -> Result<Duration, String> {
    let us = time_us(text).and_then(|us| u64::try_from(us).ok());
    let patience = us.map(Duration::from_micros);
    patience
        .filter(|patience| *patience <= Duration::from_secs(3600))
        .ok_or_else(|| "give a time of at most 1h: 30s, 0s".to_owned())
}

pub fn run_respond(arguments: &RespondArguments) -> Result<ExitCode> {
    let read = || trusted_plan(&arguments.file).map_err(|error| format!("{error:#}"));
    respond(&Options {
        read: &read,
        key: &or_configured(arguments.key.as_deref(), KEY)?,
        used: &arguments.used,
        user: arguments.user.as_deref(),
        clock: kernel_clock,
        is_json: arguments.json,
    })
    .with_context(|| arguments.file.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// What says who is trusted is nobody else's to write.
fn trusted_plan(file: &Path) -> Result<Plan> {
    let text = read_trusted(file)?.context("it is not there")?;
    parse_plan(file, &text)
}

pub fn run_echo(arguments: &EchoArguments) -> Result<ExitCode> {
    let (made, mut outcome) = made(arguments, Kind::Echo)?;
    outcome.values = round_trips(arguments.packets()?, &made.trips)?;
    print(outcome, arguments.whom.json)
}

pub fn run_one_way(arguments: &OneWayArguments) -> Result<ExitCode> {
    arguments.clock()?; // before anything is sent
    let (made, mut outcome) = made(&arguments.echo, Kind::OneWay)?;
    outcome.values = values(arguments, &made)?;
    print(outcome, arguments.echo.whom.json)
}

fn values(arguments: &OneWayArguments, made: &Made) -> Result<Values> {
    let ours = arguments.clock()?;
    let theirs = made
        .clock
        .context("the responder's clock is no longer synchronised")?;
    let packets = arguments.echo.packets()?;
    let mut values = round_trips(packets, &made.trips)?;
    values.extend(one_way(&made.trips, &ours, &theirs)?);
    Ok(values)
}

fn made(arguments: &EchoArguments, kind: Kind) -> Result<(Made, TestOutcome)> {
    if stderr().is_terminal() {
        let duration_us = arguments.duration.as_micros() as u64;
        let host = &arguments.whom.host;
        eprintln!("{host}: takes about {}", show_time(duration_us));
    }
    let packets = arguments.packets()?;
    arguments.whom.ask(kind, |whom| {
        echo(&Wanted {
            whom,
            with_times: kind == Kind::OneWay,
            packets,
            packet_bytes: arguments.size,
            interval: arguments.interval,
        })
    })
}

impl WhomArguments {
    /// What a test gives, and its outcome but for the values.
    pub fn ask<T>(
        &self,
        kind: Kind,
        test: impl FnOnce(&Whom<'_>) -> Result<T, TestError>,
    ) -> Result<(T, TestOutcome)> {
        let option = self.trust.as_ref();
        let option = option.map_or(String::new(), |path| format!(" --trust {}", path.display()));
        let whom = Whom {
            host: &self.host,
            port: self.port,
            key: &Key::read(&or_configured(self.key.as_deref(), KEY)?)?,
            trust: &or_configured(self.trust.as_deref(), HOSTS)?,
            trust_option: &option,
        };
        let (begun, mut outcome) = (Instant::now(), new_outcome(&kind.to_string(), &self.host));
        let made = test(&whom)?;
        outcome.duration_s = begun.elapsed().as_secs_f64();
        Ok((made, outcome))
    }
}

impl EchoArguments {
    fn packets(&self) -> Result<u32> {
        let packets = self.duration.as_micros() / self.interval.as_micros();
        ensure!(
            packets <= 1_000_000,
            "a test has 1,000,000 datagrams at most: give a longer --interval"
        );
        Ok(packets.max(1) as u32)
    }
}

impl OneWayArguments {
    fn clock(&self) -> Result<Clock> {
        let said = self
            .clock_error
            .map(|error| Clock::within(error.as_micros() as u64));
        said.or_else(kernel_clock).context(
            "the kernel does not know this host's clock to be synchronised (adjtimex): start NTP, or say by how much it may be \
             wrong, --clock-error TIME",
        )
    }
}

fn kernel_clock() -> Option<Clock> {
    let error = clock_error().ok().flatten()?;
    Some(Clock {
        most_us: error.most_us,
        estimated_us: error.estimated_us,
    })
}

pub fn run_status(arguments: &StatusArguments) -> Result<ExitCode> {
    let plan = read_plan_file(&arguments.file)?;
    let ledger = UsedFile::seen(&arguments.used)?;
    let is_running = UsedFile::is_used(&arguments.used);
    let mut out = stdout().lock();
    if arguments.json {
        let status = status(&plan, ledger.as_ref(), is_running);
        writeln!(out, "{}", serde_json::to_string_pretty(&status)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(responder) = &plan.responder else {
        let file = arguments.file.display();
        writeln!(
            out,
            "{file} has no section [responder]: no tests are answered."
        )?;
        return Ok(ExitCode::SUCCESS);
    };
    let runs = match is_running {
        Some(true) => "runs",
        Some(false) => "does not run: fatpath measure respond",
        None => "may run, which root and its user can see",
    };
    writeln!(out, "The responder at {} {runs}.", responder.listen)?;
    let header = [
        "PEER", "PREFIX", "KEY", "KINDS", "LONGEST", "RATE", "TODAY", "OF", "TESTS", "REFUSED",
        "LAST",
    ];
    let rows = plan.peers.iter().map(|peer| row(peer, ledger.as_ref()));
    write_table(&mut out, header.map(str::to_owned), rows)?;
    Ok(ExitCode::SUCCESS)
}

fn row(peer: &Peer, ledger: Option<&Ledger>) -> [String; 11] {
    let used = ledger.map(|ledger| ledger.of(&peer.name, now_us()));
    let said = |of: fn(Used) -> String| used.map_or_else(|| "?".to_owned(), of);
    let joined = |words: Vec<String>| words.join(", ");
    [
        peer.name.clone(),
        joined(peer.prefixes.iter().map(ToString::to_string).collect()),
        peer.key.clone(),
        joined(peer.kinds.iter().map(ToString::to_string).collect()),
        show_time(peer.longest_us),
        show_rate(peer.rate_bps),
        said(|used| show_bytes(used.bytes)),
        show_bytes(peer.bytes_a_day),
        said(|used| used.tests.to_string()),
        said(|used| used.refused.to_string()),
        said(|used| match used.last_us {
            0 => "never".to_owned(),
            last_us => shown(last_us),
        }),
    ]
}

fn status(plan: &Plan, ledger: Option<&Ledger>, is_running: Option<bool>) -> Value {
    let today = |peer: &Peer| ledger.map(|ledger| ledger.of(&peer.name, now_us()));
    let peers = plan.peers.iter();
    let peers = peers.map(|peer| json!({ "peer": peer, "today": today(peer) }));
    json!({
        "responder": plan.responder,
        "is_running": is_running,
        "peers": peers.collect::<Vec<_>>(),
    })
}
