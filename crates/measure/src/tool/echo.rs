// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round-trip time, loss and one-way delay of UDP datagrams between two hosts of fatpath, by `fatpath measure echo` and
//! `one-way`.

use super::{MOST_FLOWS, Measured, ReadError, seconds};
use fatpath_api::TestOutcome;
use serde::Serialize;

/// `tool = "echo"` or `"one_way"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Echo {
    /// Of the responder.
    pub port: u16,
    /// From one datagram to the next.
    pub interval_us: u64,
    /// UDP payload of each.
    pub size_bytes: u64,
    /// Of one-way delay: this host's clock differs from the true time by no more; none: what the kernel says of it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_error_us: Option<u64>,
    /// File of this host's key; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// File of the keys that it trusts; none: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

/// No more values are taken.
const MOST_VALUES: usize = 32;

impl Echo {
    /// Where a responder listens, unless it is told otherwise.
    pub const PORT: u16 = 4748;
    /// See [`Echo::interval_us`].
    pub const INTERVAL_US: u64 = 100_000;
    /// See [`Echo::size_bytes`].
    pub const SIZE_BYTES: u64 = 64;

    pub(super) fn command(&self, command: &str, to: &str, duration_us: u64) -> Vec<String> {
        let time = |us| format!("{}s", seconds(us));
        let mut words = super::words(&[
            "fatpath",
            "measure",
            command,
            "--json",
            "--port",
            &self.port.to_string(),
            "--interval",
            &time(self.interval_us),
            "--size",
            &self.size_bytes.to_string(),
            "--duration",
            &time(duration_us),
        ]);
        let clock_error = self.clock_error_us.map(time);
        words.extend(given([
            ("--clock-error", &clock_error),
            ("--key", &self.key),
            ("--trust", &self.trust),
        ]));
        words.extend(["--".to_owned(), to.to_owned()]);
        words
    }
}

/// Options that have a value.
pub(super) fn given<const N: usize>(options: [(&str, &Option<String>); N]) -> Vec<String> {
    let words = options
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value.clone()?]));
    words.flatten().collect()
}

/// Reads what any of them prints with `--json`.
pub(super) fn read(output: &str) -> Result<Measured, ReadError> {
    let outcome: TestOutcome =
        serde_json::from_str(output).map_err(|_| ReadError::Missing("outcome".into()))?;
    match outcome.note {
        Some(note) if outcome.values.is_empty() => Err(ReadError::Tool(note.message)),
        _ => Ok(Measured {
            values: outcome.values.into_iter().take(MOST_VALUES).collect(),
            flows: outcome.flows.into_iter().take(MOST_FLOWS).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_this_program_that_is_run() {
        let echo = Echo {
            port: 9,
            interval_us: 20_000,
            size_bytes: 64,
            clock_error_us: Some(100),
            key: Some("/k".into()),
            trust: None,
        };
        assert_eq!(
            echo.command("one-way", "h", 2_000_000).join(" "),
            "fatpath measure one-way --json --port 9 --interval 0.02s --size 64 --duration 2s --clock-error 0.0001s --key /k -- h"
        );
    }

    #[test]
    fn values_are_read_and_a_failure_is_said() {
        let printed = |rest: &str| {
            format!(
                r#"{{"test":"h","tool":"echo","start_us":1,"duration_s":1.0,"values":{{{rest}}}"#
            )
        };
        let good = read(&format!("{}}}", printed(r#""rtt_avg":[2.5,"ms"]"#))).unwrap();
        assert_eq!(good.values["rtt_avg"], (2.5, "ms".to_owned()));
        let note = r#","note":{"level":"error","message":"no answer"}}"#;
        let failed = read(&format!("{}{note}", printed("")));
        assert_eq!(failed, Err(ReadError::Tool("no answer".into())));
        assert!(read("").is_err());
    }
}
