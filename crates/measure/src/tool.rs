// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tools: each is a command line, and a reader of what it prints.
//!
//! A new tool is a variant of [`Tool`] with a name, what it is started as, and its reader; its keys are read in
//! `read.rs`. One that is no program, such as packet trains between two fatpath hosts, answers `None` in
//! [`Tool::command`], and whoever runs tests performs it in place of a program.

mod iperf3;
mod netlogger;
mod path_mtu;
mod ping;
mod program;
mod traceroute;

pub use iperf3::{Iperf3, Protocol};
pub use ping::Ping;
pub use program::{Format, Mapping, Program};
pub use traceroute::Traceroute;

use serde::Serialize;
use std::collections::BTreeMap;

/// Values by name, each with its unit.
pub type Values = BTreeMap<String, (f64, Unit)>;

/// A unit, as the archive keeps it: `ms`, `b/s`, `1` for a number or a share.
pub type Unit = String;

/// What a test runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Tool {
    /// Round-trip time and loss, by ICMP.
    Ping(Ping),
    /// Throughput.
    Iperf3(Iperf3),
    /// The routers of the path.
    Traceroute(Traceroute),
    /// The largest packet that passes.
    PathMtu,
    /// Any program.
    Program(Program),
}

/// Why an output gives no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The tool itself says what failed.
    #[error("{0}")]
    Tool(String),
    /// The output is not what the tool prints.
    #[error("its output has no {0}")]
    Missing(String),
}

impl Tool {
    /// Its name in the file.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Ping(_) => "ping",
            Tool::Iperf3(_) => "iperf3",
            Tool::Traceroute(_) => "traceroute",
            Tool::PathMtu => "path_mtu",
            Tool::Program(_) => "program",
        }
    }

    /// It measures a rate by filling the path.
    pub fn measures_rate(&self) -> bool {
        matches!(self, Tool::Iperf3(_))
    }

    /// The program and its arguments, to measure the peer `to` for so long; `None` for a tool that is no program.
    pub fn command(&self, to: Option<&str>, duration_us: u64) -> Option<Vec<String>> {
        let to = to.unwrap_or_default();
        Some(match self {
            Tool::Ping(ping) => ping.command(to, duration_us),
            Tool::Iperf3(iperf3) => iperf3.command(to, duration_us),
            Tool::Traceroute(traceroute) => traceroute.command(to),
            Tool::PathMtu => path_mtu::command(to),
            Tool::Program(program) => program.run.clone(),
        })
    }

    /// Reads what the program printed to its standard output.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&self, output: &str) -> Result<Values, ReadError> {
        match self {
            Tool::Ping(_) => ping::read(output),
            Tool::Iperf3(_) => iperf3::read(output),
            Tool::Traceroute(_) => traceroute::read(output),
            Tool::PathMtu => path_mtu::read(output),
            Tool::Program(program) => program.read(output),
        }
    }
}

/// `1.5`: seconds, as the tools take them.
fn seconds(us: u64) -> String {
    (us as f64 / 1e6).to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn values<const N: usize>(values: [(&str, f64, &str); N]) -> Values {
    let value =
        |(name, value, unit): (&str, f64, &str)| (name.to_owned(), (value, unit.to_owned()));
    values.into_iter().map(value).collect()
}
