// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath flow`, as clap sees it.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::control::{Asked, Control};
use crate::receive::random;
use crate::send::{Chunks, Load};
use crate::{receive, send};

/// What `fatpath flow --help` ends with.
pub const HELP: &str = "\
A flow goes by UDP, encrypted, with TCP's machinery in user space, as those of
`fatpath send`, from memory to memory: nothing is read or written. `receive`
takes one flow and ends. It asks nobody who he is: whoever reaches its port may
send one flow of zeros to it. docs/transport.md has the keys of --tcp.

Examples:
  fatpath flow receive
  fatpath flow send dtn2
  fatpath flow send dtn2 --lasts 30s --tcp law=fp_cubic,pacing=true
  fatpath flow send dtn2 --bytes 1GB --streams 4 --json
  fatpath flow send dtn2 --tcp initial_window=2 --log traces
  fatpath trace plot traces/flow-….parquet --out cwnd.svg
  fatpath flow send dtn2 --tcp 'detection=fack,drop=[20,25],delayed_acks=on'";

/// Room of a datagram over Ethernet, also of IPv6.
const ETHERNET_DATAGRAM_BYTES: u16 = 1452;
/// How long a receiver that starts at the same time may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Whatever clocks say of loopback.
const LEAST_RTT: Duration = Duration::from_micros(10);

/// When the programs of a lab began, in its environment: nanoseconds of [`monotonic_ns`].
pub const BEGAN: &str = "FATPATH_LAB_BEGAN_NS";

/// `fatpath flow`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send zeros to a host where `fatpath flow receive` waits, and tell what became of them
    #[command(after_help = HELP)]
    Send(SendArguments),
    /// Wait for one flow, and take it
    #[command(visible_alias = "recv", after_help = HELP)]
    Receive(ReceiveArguments),
}

/// `fatpath flow send`.
#[derive(Debug, Args)]
pub struct SendArguments {
    /// Where the receiver waits
    host: String,
    /// The receiver's TCP port for control
    #[arg(long, default_value_t = 4748)]
    port: u16,
    /// For how long; without it, and without --bytes or --count, 10s
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    lasts: Option<u64>,
    /// How much by each connection
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// So much by each connection, again and again, with a pause in between
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "bytes", requires = "every")]
    chunk: Option<u64>,
    /// So much as the first chunk, in the place of --chunk
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "chunk")]
    first_chunk: Option<u64>,
    /// From the beginning of a chunk to that of the next one, if all of it has arrived by then
    #[arg(long, value_name = "TIME", value_parser = time_ns, requires = "chunk")]
    every: Option<u64>,
    /// How many chunks
    #[arg(long, value_name = "N", requires = "chunk")]
    count: Option<u64>,
    /// Connections at a time, 1 to 128
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: u32,
    /// What is asked of TCP, with the keys of a [[flow]]: initial_window, law, detection, delayed_acks, drop, …; may be given several times
    #[arg(long, value_name = "KEY=VALUE,...")]
    tcp: Vec<String>,
    /// UDP payload of a full datagram
    #[arg(long, value_name = "BYTES", default_value_t = ETHERNET_DATAGRAM_BYTES)]
    datagram_bytes: u16,
    /// Length of the intervals that are reported
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_ns)]
    interval: u64,
    /// Write what happens to each connection into this directory, as `fatpath trace` does; `fatpath trace plot` draws it
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// A socket in the place of the TCP connection, of a receiver on this machine
    #[arg(long, value_name = "FILE", hide = true, requires = "rtt")]
    control: Option<PathBuf>,
    /// The round-trip time of the path, which that does not tell
    #[arg(long, value_name = "TIME", hide = true, value_parser = time_ns)]
    rtt: Option<u64>,
    /// The kernel's TCP carries the data, to this port of the receiver
    #[arg(long, value_name = "PORT", hide = true, requires = "control")]
    kernel: Option<u16>,
    /// Begin so long after the programs of a lab have
    #[arg(long, value_name = "TIME", hide = true, value_parser = time_ns)]
    start: Option<u64>,
}

/// `fatpath flow receive`.
#[derive(Debug, Args)]
pub struct ReceiveArguments {
    /// TCP port for control; the data come to a UDP port of 50000 to 51000
    #[arg(long, default_value_t = 4748)]
    port: u16,
    /// Wait on this address alone
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// A socket in the place of the TCP port, for a sender on this machine
    #[arg(long, value_name = "FILE", hide = true)]
    control: Option<PathBuf>,
}

fn time_ns(text: &str) -> Result<u64, String> {
    let time_ns = fatpath_units::time_ns(text).and_then(|ns| u64::try_from(ns).ok());
    let most_ns = 86_400_000_000_000;
    let time_ns = time_ns.filter(|ns| (1_000..=most_ns).contains(ns));
    time_ns.ok_or_else(|| "give a time such as 500ms or 30s, up to 24h".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = fatpath_units::bytes(text).and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| (1..=1 << 60).contains(bytes));
    bytes.ok_or_else(|| "give a size such as 100MB or 1GiB".to_owned())
}

/// Does it.
///
/// # Errors
/// The flow cannot begin, or does not end.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Send(arguments) => send(arguments),
        Command::Receive(arguments) => receive(arguments),
    }
}

fn send(arguments: &SendArguments) -> Result<()> {
    let to = resolved(&arguments.host, arguments.port)?;
    let ends_itself = arguments.bytes.is_some() || arguments.count.is_some();
    let default_ns = (!ends_itself).then_some(10_000_000_000);
    let mut asked = Asked {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        random: random()?,
        address: to.ip(),
        streams: arguments.streams,
        tcp: arguments.tcp.clone(),
        kernel_port: arguments.kernel,
        datagram_bytes: arguments.datagram_bytes,
        lasts_ns: arguments.lasts.or(default_ns),
        interval_ns: arguments.interval,
        rtt_ns: 0,
    };
    // What cannot be is told before anybody is asked.
    receive::spec(&asked)?;
    let (control, rtt) = match &arguments.control {
        Some(file) => {
            let stream = UnixStream::connect(file).with_context(|| shown(file))?;
            let rtt = Duration::from_nanos(arguments.rtt.unwrap_or(0));
            (Control::of_unix(stream)?, rtt)
        }
        None => connect(to)?,
    };
    asked.rtt_ns = rtt.max(LEAST_RTT).as_nanos() as u64;
    let log = arguments.log.as_deref();
    let begin = || wait_for_start(arguments.start);
    let report = send::one(control, asked, load(arguments), log, begin)?;
    let mut out = io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        false => writeln!(out, "{report}")?,
    }
    Ok(())
}

/// Programs of a lab that are to begin together have [`BEGAN`]; any other begins so long after now.
fn wait_for_start(start_ns: Option<u64>) {
    let now_ns = monotonic_ns();
    let began_ns = std::env::var(BEGAN).ok().and_then(|ns| ns.parse().ok());
    let at_ns = began_ns.unwrap_or(now_ns) + start_ns.unwrap_or(0);
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(now_ns)));
}

/// The clock of [`BEGAN`].
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn load(arguments: &SendArguments) -> Load {
    match (arguments.chunk, arguments.bytes) {
        (Some(bytes), _) => Load::Chunks(Chunks {
            bytes,
            first_bytes: arguments.first_chunk.unwrap_or(bytes),
            every: Duration::from_nanos(arguments.every.unwrap_or(0)),
            count: arguments.count,
        }),
        (None, Some(bytes)) => Load::Bytes(bytes),
        (None, None) => Load::Endless,
    }
}

fn resolved(host: &str, port: u16) -> Result<SocketAddr> {
    let mut found = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("{host} has no address"))?;
    found
        .next()
        .with_context(|| format!("{host} has no address"))
}

/// The handshake of the control connection shows the round-trip time.
fn connect(to: SocketAddr) -> Result<(Control, Duration)> {
    let begun = Instant::now();
    let stream = TcpStream::connect_timeout(&to, CONNECT_WITHIN).with_context(|| {
        format!("no receiver at {to}: start `fatpath flow receive` there, and open the port")
    })?;
    Ok((Control::of_tcp(stream)?, begun.elapsed()))
}

fn receive(arguments: &ReceiveArguments) -> Result<()> {
    let control = match &arguments.control {
        Some(file) => accept_at(file)?,
        None => accept(arguments)?,
    };
    receive::one(control)
}

fn accept(arguments: &ReceiveArguments) -> Result<Control> {
    let on = |address: IpAddr| TcpListener::bind((address, arguments.port));
    let listener = match arguments.address {
        Some(address) => on(address),
        // Without IPv6 on the host, on IPv4 alone.
        None => on(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| on([0, 0, 0, 0].into())),
    };
    let listener = listener.with_context(|| format!("TCP port {}", arguments.port))?;
    Ok(Control::of_tcp(listener.accept()?.0)?)
}

/// The file is there when it listens, and is not needed any more when somebody has come.
fn accept_at(file: &Path) -> Result<Control> {
    let unready = file.with_extension("unready");
    let listener = UnixListener::bind(&unready).with_context(|| shown(&unready))?;
    fs::rename(&unready, file).with_context(|| shown(file))?;
    let stream = listener.accept()?.0;
    fs::remove_file(file).with_context(|| shown(file))?;
    Ok(Control::of_unix(stream)?)
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}
