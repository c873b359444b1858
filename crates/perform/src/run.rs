// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a test, from its command line to its outcome.

use fatpath_api::{TestNote, TestOutcome};
use fatpath_clock::now_us;
use fatpath_launch::{End, Ended};
use fatpath_measure::outcome::{error, outcome};
use fatpath_measure::{Test, Tool, Values};
use std::net::{IpAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A peer whose round-trip time is not known yet is taken to be as far as this.
pub const UNKNOWN_RTT_US: u64 = 1_000_000;

/// Runs a test until it ends, until its time is over, or until `goes_on` says no. `rtt_us` is what is known of its
/// peer.
pub fn perform(test: &Test, rtt_us: Option<u64>, goes_on: impl Fn() -> bool) -> TestOutcome {
    let (start_us, begun) = (now_us(), Instant::now());
    let timeout = Duration::from_micros(test.timeout_us(rtt_us.unwrap_or(UNKNOWN_RTT_US)));
    let read = match command(test) {
        Some(command) => fatpath_launch::run(&command, timeout, goes_on)
            .map_err(|failed| error(with_causes(&failed)))
            .and_then(|ended| read(test, &ended)),
        None => Err(error("this build has no such tool")),
    };
    outcome(test, start_us, begun.elapsed().as_secs_f64(), read)
}

fn command(test: &Test) -> Option<Vec<String>> {
    let mut command = test.tool.command(test.to.as_deref(), test.duration_us)?;
    if let Some(program) = command.first_mut().filter(|_| test.tool.is_own()) {
        *program = own_program();
    }
    Some(command)
}

/// The file of this program, or the one that has replaced it since it was started.
fn own_program() -> String {
    let file = std::env::current_exe().unwrap_or_default();
    let file = file.to_string_lossy();
    // What Linux adds to the name of a file that is gone (proc_pid_exe(5)).
    file.strip_suffix(" (deleted)").unwrap_or(&file).to_owned()
}

/// The address of a test's peer. May wait for a name server.
pub fn peer_address(test: &Test) -> Option<IpAddr> {
    let to = test.to.as_deref()?;
    let literal = to.split('%').next().unwrap_or(to).parse().ok();
    literal.or_else(|| Some((to, 0).to_socket_addrs().ok()?.next()?.ip()))
}

fn read(test: &Test, ended: &Ended) -> Result<Values, TestNote> {
    let status = match ended.end {
        End::Exited(status) => status,
        End::TimedOut => return Err(error("it lasted too long, and was killed")),
        End::Cancelled => return Err(error("it was ended before it was done")),
    };
    // The tools with a reader of their own say in their output what failed; a program says it by its status.
    let said = ended.errors.lines().find(|line| !line.trim().is_empty());
    let with_said = |message: String| match said {
        Some(said) => error(format!("{message}: {}", shortened(said))),
        None => error(message),
    };
    if !status.success() && matches!(test.tool, Tool::Program(_)) {
        return Err(with_said(status.to_string()));
    }
    let read = test.tool.read(&ended.output);
    read.map_err(|unread| with_said(unread.to_string()))
}

fn shortened(line: &str) -> String {
    line.chars().take(300).filter(|c| !c.is_control()).collect()
}

fn with_causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_measure::outcome::{is_failure, main_value};

    fn outcome_of(run: &str) -> TestOutcome {
        let text = format!(
            "[[test]]\nname = 'a'\ntool = 'program'\nevery = '1min'\nrun = {run}\nvalues.v = {{ field = 'x', unit = 'ms' }}\n"
        );
        let plan = fatpath_measure::parse(&text).unwrap();
        perform(&plan.tests[0], None, || true)
    }

    fn message(run: &str) -> String {
        let note = outcome_of(run).note.unwrap();
        note.message
    }

    #[test]
    fn a_program_gives_values() {
        let outcome = outcome_of(r#"['echo', '{"x": 2.5}']"#);
        assert_eq!(outcome.values["v"], (2.5, "ms".to_owned()));
        assert_eq!(
            (main_value(&outcome), is_failure(&outcome)),
            (Some(2.5), false)
        );
    }

    #[test]
    fn what_failed_is_said() {
        let failed = message("['sh', '-c', 'echo no disk >&2; exit 3']");
        assert_eq!(failed, "exit status: 3: no disk");
        assert_eq!(
            message("['no-such-program']"),
            "cannot start no-such-program: no-such-program is not installed"
        );
        assert!(message("['echo', '{}']").contains("no number `x`"));
    }
}
