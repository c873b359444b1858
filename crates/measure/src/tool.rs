// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tools: each is a command line, and a reader of what it prints.
//!
//! A new tool is a variant of [`Tool`] with a name, what it is started as, and its reader; its keys are read in
//! `read.rs`.

mod echo;
mod iperf3;
mod netlogger;
mod path_mtu;
mod ping;
mod program;
mod rate;
mod single_ended;
mod traceroute;

pub use echo::Echo;
pub use iperf3::{AskedServer, Iperf3, Protocol, bytes_served};
pub use ping::Ping;
pub use program::{Format, Mapping, Program};
pub use rate::Rate;
pub use single_ended::SingleEnded;
pub use traceroute::Traceroute;

use fatpath_api::TestFlow;
use serde::Serialize;
use std::collections::BTreeMap;

/// Values by name, each with its unit.
pub type Values = BTreeMap<String, (f64, Unit)>;

/// A unit, as the archive keeps it: `ms`, `b/s`, `1` for a number or a share.
pub type Unit = String;

/// How long a responder may wait until no other test loads its path, unless it is told otherwise.
pub(crate) const PATIENCE_US: u64 = 10_000_000;

/// A client of iperf3 has so long to connect to its server, and until what is queued has arrived.
pub const SERVED_WITHIN_US: u64 = 20_000_000;

/// What a tool measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// By name.
    pub values: Values,
    /// Its flows of TCP, where it says which they were.
    pub flows: Vec<TestFlow>,
}

impl From<Values> for Measured {
    fn from(values: Values) -> Measured {
        Measured {
            values,
            ..Measured::default()
        }
    }
}

/// Of a run with more flows so many are told of: each brings some 130 values into the archive.
const MOST_FLOWS: usize = 16;

/// What a test runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Tool {
    /// Round-trip time and loss, by ICMP.
    Ping(Ping),
    /// Round-trip time and loss, by UDP between hosts of fatpath.
    Echo(Echo),
    /// One-way delay as well, by the clocks of both.
    OneWay(Echo),
    /// The bottleneck's rate, by packet trains between hosts of fatpath.
    Rate(Rate),
    /// The same, by what a host without fatpath answers.
    SingleEnded(SingleEnded),
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
            Tool::Echo(_) => "echo",
            Tool::OneWay(_) => "one_way",
            Tool::Rate(_) => "rate",
            Tool::SingleEnded(_) => "single_ended",
            Tool::Iperf3(_) => "iperf3",
            Tool::Traceroute(_) => "traceroute",
            Tool::PathMtu => "path_mtu",
            Tool::Program(_) => "program",
        }
    }

    /// It measures a rate by filling the path.
    pub fn is_of_rate(&self) -> bool {
        self.rate_port().is_some() || matches!(self, Tool::SingleEnded(_))
    }

    /// The peer's port of its flows, where it measures a rate by any, as far as it is known before the test.
    pub fn rate_port(&self) -> Option<u16> {
        match self {
            Tool::Iperf3(iperf3) => Some(iperf3.port),
            Tool::Rate(rate) => Some(rate.port),
            _ => None,
        }
    }

    /// Besides its duration: how long a responder may wait before the test, and its server of iperf3 after it.
    pub fn waits_us(&self) -> u64 {
        match self {
            Tool::Rate(rate) => rate.patience_us,
            Tool::Iperf3(iperf3) => iperf3
                .asked
                .as_ref()
                .map_or(0, |asked| asked.patience_us + SERVED_WITHIN_US),
            _ => 0,
        }
    }

    /// It is run by fatpath itself.
    pub fn is_own(&self) -> bool {
        match self {
            Tool::Echo(_) | Tool::OneWay(_) | Tool::Rate(_) | Tool::SingleEnded(_) => true,
            Tool::Iperf3(iperf3) => iperf3.asked.is_some(),
            _ => false,
        }
    }

    /// The program and its arguments, to measure the peer `to` for so long; `None` for a tool that is no program.
    pub fn command(&self, to: Option<&str>, duration_us: u64) -> Option<Vec<String>> {
        let to = to.unwrap_or_default();
        Some(match self {
            Tool::Ping(ping) => ping.command(to, duration_us),
            Tool::Echo(echo) => echo.command("echo", to, duration_us),
            Tool::OneWay(echo) => echo.command("one-way", to, duration_us),
            Tool::Rate(rate) => rate.command(to, duration_us),
            Tool::SingleEnded(single_ended) => single_ended.command(to, duration_us),
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
    pub fn read(&self, output: &str) -> Result<Measured, ReadError> {
        let measured = match self {
            Tool::Ping(_) => ping::read(output)?.into(),
            Tool::Echo(_) | Tool::OneWay(_) | Tool::Rate(_) | Tool::SingleEnded(_) => {
                echo::read(output)?
            }
            Tool::Iperf3(iperf3) if iperf3.asked.is_some() => echo::read(output)?,
            Tool::Iperf3(iperf3) => iperf3.read(output)?,
            Tool::Traceroute(_) => traceroute::read(output)?.into(),
            Tool::PathMtu => path_mtu::read(output)?.into(),
            Tool::Program(program) => program.read(output)?.into(),
        };
        finite(&measured.values)?;
        Ok(measured)
    }
}

/// A tool prints what its peer makes it print: neither NaN nor an infinite number is a measurement.
fn finite(values: &Values) -> Result<(), ReadError> {
    let other = values.iter().find(|(_, (value, _))| !value.is_finite());
    match other {
        Some((name, (value, _))) => Err(ReadError::Tool(format!("{name} is {value}"))),
        None => Ok(()),
    }
}

/// `1.5`: seconds, as the tools take them.
fn seconds(us: u64) -> String {
    (us as f64 / 1e6).to_string()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

pub(crate) fn values<const N: usize>(values: [(&str, f64, &str); N]) -> Values {
    let value =
        |(name, value, unit): (&str, f64, &str)| (name.to_owned(), (value, unit.to_owned()));
    values.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAN: &str = "
[[test]]
name = 'ping'
tool = 'ping'
to = 'h'
every = '1min'
[[test]]
name = 'traceroute'
tool = 'traceroute'
to = 'h'
every = '1min'
[[test]]
name = 'path_mtu'
tool = 'path_mtu'
to = 'h'
every = '1min'
[[test]]
name = 'netlogger'
tool = 'program'
every = '1min'
run = ['p']
format = 'netlogger'
values.x = { field = 'e:x', unit = 'ms' }
";

    /// As each of them prints it, with a number's place.
    const OUTPUTS: [&str; 4] = [
        "9 packets transmitted, 9 received, 0% packet loss\nrtt min/avg/max/mdev = 1/N/3/4 ms\n",
        " 1  10.0.0.1  N ms\n",
        "     Resume: pmtu N hops 3 back 3\n",
        "ts=1 event=e x=N\n",
    ];

    fn read(output: &str, number: &str) -> Vec<Result<Values, ReadError>> {
        let plan = crate::parse(PLAN).unwrap();
        let output = output.replace('N', number);
        let tools = plan.tests.iter();
        let read = tools.map(|test| test.tool.read(&output));
        read.map(|read| Ok(read?.values)).collect()
    }

    #[test]
    fn a_number_is_read_and_no_number_is_an_error() {
        for (index, output) in OUTPUTS.into_iter().enumerate() {
            assert!(read(output, "1500")[index].is_ok(), "{output}");
            for number in ["nan", "inf", "-inf", "1e999", "x", ""] {
                let read = read(output, number).swap_remove(index);
                let values = read.unwrap_or_default();
                assert!(
                    values.values().all(|(value, _)| value.is_finite()),
                    "{output} {number}: {values:?}"
                );
            }
        }
    }

    #[test]
    fn a_peer_that_invents_routers_fills_no_archive() {
        let output: String = (0..10_000)
            .map(|n| format!("{n} 10.0.0.1 1 ms\n"))
            .collect();
        let plan = crate::parse(PLAN).unwrap();
        let values = plan.tests[1].tool.read(&output).unwrap().values;
        assert!(values.len() <= 258, "{}", values.len());
    }

    proptest! {
        #[test]
        fn whatever_is_printed_gives_finite_values_or_an_error(
            lines in prop::collection::vec("[ -~]{0,60}|[0-9]{1,3} [0-9.]{1,9} (nan|inf|[0-9.e]{1,6}) ms", 0..20),
        ) {
            for read in read(&lines.join("\n"), "N") {
                let values = read.unwrap_or_default();
                prop_assert!(values.values().all(|(value, _)| value.is_finite()), "{:?}", values);
            }
        }
    }
}
