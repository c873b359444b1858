// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a test, from its command line to its outcome.

use fatpath_api::{TestNote, TestOutcome};
use fatpath_clock::now_us;
use fatpath_launch::{End, Ended, HandedFile};
use fatpath_measure::outcome::{error, outcome};
use fatpath_measure::{Iperf3, Measured, Protocol, SERVED_WITHIN_US, Served, Test, Tool, pem};
use std::net::{IpAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A peer whose round-trip time is not known yet is taken to be as far as this.
pub const UNKNOWN_RTT_US: u64 = 1_000_000;

/// A write of iperf3 is no longer than what its stream sends in this part of a second: the server takes averages over some
/// seconds, and ends a test whose writes are a large part of that.
const WRITES_A_SECOND: u64 = 50;
/// iperf3's own.
const WRITE_BYTES: u64 = 128 << 10;
const LEAST_WRITE_BYTES: u64 = 4 << 10;
/// A firewall that drops what comes is said before the test's time is over.
const CONNECT_WITHIN_MS: &str = "10000";

/// Runs a test until it ends, until its time is over, or until `goes_on` says no. `rtt_us` is what is known of its
/// peer.
pub fn perform(test: &Test, rtt_us: Option<u64>, goes_on: impl Fn() -> bool) -> TestOutcome {
    let (start_us, begun) = (now_us(), Instant::now());
    let timeout = Duration::from_micros(test.timeout_us(rtt_us.unwrap_or(UNKNOWN_RTT_US)));
    let read = match command(test) {
        Some(command) => fatpath_launch::run(&command, timeout, goes_on)
            .map_err(|failed| error(with_causes(&failed)))
            .and_then(|ended| read(&test.tool, &ended)),
        None => Err(error("this build has no such tool")),
    };
    outcome(test, start_us, begun.elapsed().as_secs_f64(), read)
}

/// Sends to, or with `reverse` receives from, a server of iperf3 that waits for this host at `to`.
///
/// # Errors
/// What failed.
pub fn perform_served(
    iperf3: &Iperf3,
    to: IpAddr,
    duration_us: u64,
    served: &Served,
) -> Result<Measured, TestNote> {
    let key = HandedFile::new(&pem("PUBLIC KEY", &served.public_key));
    let key = key.map_err(|failed| error(failed.to_string()))?;
    let within = within(iperf3, served);
    let length = write_bytes(&within).map(|bytes| bytes.to_string());
    let (tool, to) = (Tool::Iperf3(within), to.to_string());
    let mut command = tool
        .command(Some(&to), duration_us)
        .ok_or_else(|| error("this build has no such tool"))?;
    let path = key.path();
    let of_user = ["--username", &served.user, "--rsa-public-key-path", &path];
    command.extend(of_user.map(str::to_owned));
    // What it would print each second is not read, and of hours is more than is kept.
    let short = ["--interval", "0", "--connect-timeout", CONNECT_WITHIN_MS];
    command.extend(short.map(str::to_owned));
    command.extend(
        length
            .into_iter()
            .flat_map(|bytes| ["--length".to_owned(), bytes]),
    );
    let environment = [("IPERF3_PASSWORD", &*served.password)];
    let timeout = Duration::from_micros(duration_us + SERVED_WITHIN_US);
    fatpath_launch::run_with(&command, &environment, timeout, || true)
        .map_err(|failed| error(with_causes(&failed)))
        .and_then(|ended| read(&tool, &ended))
}

/// No faster than the server lets it be.
fn within(iperf3: &Iperf3, served: &Served) -> Iperf3 {
    let most_bps = served.rate_bps / iperf3.streams.max(1);
    let wanted_bps = iperf3.each_bps().unwrap_or(most_bps);
    Iperf3 {
        port: served.port,
        asked: None,
        rate_bps: Some(wanted_bps.min(most_bps)),
        ..iperf3.clone()
    }
}

/// `None`: iperf3 knows better.
fn write_bytes(iperf3: &Iperf3) -> Option<u64> {
    let rate_bps = iperf3.rate_bps?;
    let bytes = (rate_bps / 8 / WRITES_A_SECOND).max(LEAST_WRITE_BYTES);
    (iperf3.protocol == Protocol::Tcp && bytes < WRITE_BYTES).then_some(bytes)
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

fn read(tool: &Tool, ended: &Ended) -> Result<Measured, TestNote> {
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
    if !status.success() && matches!(tool, Tool::Program(_)) {
        return Err(with_said(status.to_string()));
    }
    let read = tool.read(&ended.output);
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
    fn a_test_is_no_faster_than_its_server_lets_it_be() {
        let iperf3 = Iperf3 {
            port: 9,
            asked: None,
            protocol: Protocol::Tcp,
            streams: 4,
            congestion_control: None,
            rate_bps: None,
            window_bytes: None,
            reverse: false,
        };
        let served = Served {
            port: 5201,
            rate_bps: 8_000_000,
            user: String::new(),
            password: String::new(),
            public_key: String::new(),
        };
        let rate = |rate_bps, protocol| {
            let wanted = Iperf3 {
                rate_bps,
                protocol,
                ..iperf3.clone()
            };
            let within = within(&wanted, &served);
            assert_eq!(within.port, 5201);
            within.rate_bps.unwrap()
        };
        assert_eq!(rate(None, Protocol::Tcp), 2_000_000);
        assert_eq!(rate(None, Protocol::Udp), 1_000_000);
        assert_eq!(rate(Some(500), Protocol::Tcp), 500);
        assert_eq!(rate(Some(9_000_000), Protocol::Udp), 2_000_000);
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
