// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of the daemon, and where an instance of it lives.

use crate::collector::Collector;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where an instance of fatpath lives. The defaults are those of the one system-wide instance.
#[derive(Clone, Debug, Args)]
pub struct InstanceOptions {
    /// Directory of the socket, the lock and the journal of changes
    #[arg(long, value_name = "DIR", default_value = "/run/fatpath")]
    pub run_dir: PathBuf,
    /// Directory of the pins, on a BPF file system [default: /sys/fs/bpf/fatpath]
    #[arg(long, value_name = "DIR")]
    pub pin_dir: Option<PathBuf>,
}

/// Arguments of `fatpath daemon`.
#[derive(Clone, Debug, Args)]
pub struct DaemonOptions {
    /// Policy file
    #[arg(long, value_name = "FILE", default_value = "/etc/fatpath/policy.toml")]
    pub policy: PathBuf,
    /// Tune only the flows of this cgroup (version 2) and those below it [default: all]
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// File to which a JSON line is written when a flow ends
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/log/fatpath/flows.jsonl"
    )]
    pub flow_log: PathBuf,
    /// File to which a JSON line is written for each event of a flow: begin, congestion, timeout, finding, end, ...
    #[arg(long, value_name = "FILE")]
    pub event_log: Option<PathBuf>,
    /// Directory of the archive, which is kept while the policy has a section [archive]
    #[arg(long, value_name = "DIR", default_value = "/var/lib/fatpath/archive")]
    pub archive: PathBuf,
    /// File that lists the tests to run on a schedule; without it none is run
    #[arg(long, value_name = "FILE", default_value = "/etc/fatpath/measure.toml")]
    pub measure: PathBuf,
    /// OpenTelemetry collector to which the metrics are sent, over HTTP: http://HOST[:4318]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp: Option<Collector>,
    /// Seconds between two exports to the collector
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = interval)]
    pub otlp_interval: f64,
    /// Serve the page and the API over TCP too, read-only: a loopback address and a port, 0 for any free one.
    /// Requests need the token that `fatpath page` prints
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = loopback)]
    pub listen: Option<SocketAddr>,
    /// End where the kernel refuses one of fatpath's laws or the instruments; for a lab, which unloads the rest
    #[arg(long, hide = true)]
    pub whole: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub instance: InstanceOptions,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "give a number of seconds, such as 60")?;
    match (1.0..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("give 1 to 3600 seconds".to_owned()),
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "give a loopback address (127.0.0.1 or [::1]); `fatpath page` prints how to reach the page from another machine"
                .to_owned(),
        ),
    }
}
