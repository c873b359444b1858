// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath paths`: what was learned of paths.

use crate::forecast::{forecast_of, host};
use crate::not_running::not_running;
use crate::observed::Observed;
use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use fatpath_api::endpoint::{ForgetPaths, GetPaths};
use fatpath_api::{
    ForgetPathsQuery, LearnedPath, LearnedPaths, PathEvidence, PathState, PathsQuery,
};
use fatpath_daemon::{Instance, InstanceOptions, client};
use fatpath_doctor::path::Forecast;
use fatpath_table::write_table;
use fatpath_units::show_count;
use ipnet::IpNet;
use std::io::{Write, stdout};
use std::net::IpAddr;

pub const HELP: &str = "\
The daemon learns paths while the policy has a section [auto]; docs/auto.md
explains it.

Examples:
  fatpath paths
  fatpath paths --json --limit 65536
  fatpath paths --lab gap-bulk
  fatpath paths show 192.0.2.0/24
  fatpath paths pin 192.0.2.0/24 >> /etc/fatpath/policy.toml
  fatpath paths forget 192.0.2.0/24";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Subcommand)]
enum Command {
    /// Show everything that is known of the paths to a prefix or an address, with the reasons of its settings
    Show(OfPrefix),
    /// Print rules of the policy file that give what was learned, to keep it
    Pin(OfPrefix),
    /// Forget what was learned of the paths to a prefix or an address, until the daemon starts again and reads the archive; root
    Forget(OfPrefix),
}

#[derive(Args)]
struct List {
    /// Number of paths at most, those seen last
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=65536))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: Observed,
}

#[derive(Args)]
struct OfPrefix {
    /// Prefix or address of the peers
    #[arg(value_parser = crate::archive::path::prefix)]
    prefix: IpNet,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: Observed,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        None => list(&arguments.list),
        Some(Command::Show(of)) => show(of),
        Some(Command::Pin(of)) => pin(of),
        Some(Command::Forget(of)) => forget(of),
    }
}

fn ask(instance: &Instance, query: &PathsQuery) -> Result<LearnedPaths> {
    let learned = client::ask::<GetPaths>(&instance.socket(), query)?;
    learned.with_context(|| not_running(instance))
}

/// What the daemon learned of the paths to a peer, from `source` where that is given.
pub fn learned_of(
    instance: &InstanceOptions,
    peer: IpAddr,
    source: Option<IpAddr>,
) -> Result<Vec<LearnedPath>> {
    let query = PathsQuery {
        prefix: Some(peer.to_string()),
        ..PathsQuery::default()
    };
    let mut paths = ask(&Instance::new(instance, None)?, &query)?.paths;
    paths.retain(|path| source.is_none_or(|source| path.local == source));
    Ok(paths)
}

fn list(arguments: &List) -> Result<()> {
    let query = PathsQuery {
        limit: Some(arguments.limit as usize),
        ..PathsQuery::default()
    };
    let learned = ask(&arguments.of.instance()?, &query)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&learned)?);
        return Ok(());
    }
    if learned.mode == "off" {
        println!("paths are not learned; add a section [auto] to the policy");
        return Ok(());
    }
    if learned.paths.is_empty() {
        println!("No paths learned yet.");
        return Ok(());
    }
    write_table(
        &mut stdout().lock(),
        header(),
        learned.paths.iter().map(row),
    )?;
    let small = learned
        .paths
        .iter()
        .filter(|path| is_of_small_buffers(path));
    let small = small.count();
    if small > 0 {
        let paths = show_count(small, "path");
        println!("{paths} held back by buffers that programs set: {SMALL_BUFFERS_CURE}");
    }
    if learned.known > learned.paths.len() {
        let (shown, known) = (learned.paths.len(), learned.known);
        eprintln!("{shown} of {known} paths, those seen last; --limit shows more");
    }
    Ok(())
}

/// The paths to a prefix; an error where there are none.
fn of_prefix(of: &OfPrefix) -> Result<Vec<LearnedPath>> {
    let query = PathsQuery {
        prefix: Some(of.prefix.to_string()),
        evidence: true,
        ..PathsQuery::default()
    };
    let learned = ask(&of.of.instance()?, &query)?;
    ensure!(
        !learned.paths.is_empty(),
        "{}: nothing was learned of a path to it (mode = \"{}\")",
        of.prefix,
        learned.mode
    );
    Ok(learned.paths)
}

fn show(of: &OfPrefix) -> Result<()> {
    let paths = of_prefix(of)?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&paths)?);
        return Ok(());
    }
    let host = host(&of.of.instance()?.run_dir);
    let mut out = stdout().lock();
    for path in &paths {
        writeln!(out, "{}", as_text(path, &forecast_of(path, &host)))?;
    }
    Ok(())
}

fn pin(of: &OfPrefix) -> Result<()> {
    let paths = of_prefix(of)?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&paths)?);
        return Ok(());
    }
    for path in &paths {
        match path.settings.is_empty() {
            true => println!(
                "# {} gets nothing: {}",
                path.prefix,
                path.reasons.join("; ")
            ),
            false => print!("{}", as_rule(path)),
        }
    }
    Ok(())
}

fn forget(of: &OfPrefix) -> Result<()> {
    let query = ForgetPathsQuery {
        prefix: of.prefix.to_string(),
    };
    let instance = of.of.instance()?;
    let forgotten = client::ask::<ForgetPaths>(&instance.socket(), &query)?;
    let forgotten = forgotten.with_context(|| not_running(&instance))?;
    match of.json {
        true => println!("{}", serde_json::to_string_pretty(&forgotten)?),
        false => println!("forgot {}", show_count(forgotten.paths, "path")),
    }
    Ok(())
}

/// Where programs' own buffers are replaced, what holds flows back is not theirs.
const SMALL_BUFFERS_CURE: &str =
    "override_application = true under [auto], or in a rule with buffers, replaces them";

fn is_of_small_buffers(path: &LearnedPath) -> bool {
    path.rate_limit.as_deref() == Some("program_buffer")
        && !path.settings.contains("override_application")
}

const COLUMNS: [&str; 10] = [
    "path",
    "from",
    "flows",
    "rtt ms",
    "rate mb/s",
    "loss",
    "retrans %",
    "state",
    "gain",
    "settings",
];

fn header() -> [String; COLUMNS.len()] {
    COLUMNS.map(str::to_uppercase)
}

fn row(path: &LearnedPath) -> [String; COLUMNS.len()] {
    [
        path.prefix.clone(),
        path.local.to_string(),
        path.flows.to_string(),
        format!("{:.1}", path.base_rtt_us / 1e3),
        rate(path),
        in_words(path.loss.as_deref().unwrap_or("?")),
        format!("{:.2}", path.retransmitted_share * 100.0),
        state(path.state).to_owned(),
        path.gain
            .map_or("?".to_owned(), |gain| format!("x{gain:.1}")),
        settings(path),
    ]
}

/// With what says that the path may carry more.
fn rate(path: &LearnedPath) -> String {
    let least = if path.rate_limit.is_some() { ">" } else { "" };
    let rate = path.rate_bps.map(|bps| format!("{least}{:.1}", bps / 1e6));
    rate.unwrap_or("?".to_owned())
}

fn state(state: PathState) -> &'static str {
    match state {
        PathState::AsHost => "as host",
        PathState::Observed => "observed",
        PathState::Tuned => "tuned",
        PathState::Quarantined => "quarantined",
    }
}

fn settings(path: &LearnedPath) -> String {
    let settings: Vec<&str> = path.settings.lines().collect();
    settings.join(", ").replace(" = ", "=")
}

fn as_text(path: &LearnedPath, expected: &Forecast) -> String {
    let doubt = |share: f64| format!("{:.0} %", share * 100.0);
    let mut lines = vec![
        format!("path          {} from {}", path.prefix, path.local),
        format!(
            "seen          {}, {}; the numbers rest on {}; it became another path {}",
            path.seen,
            show_count(path.flows, "flow"),
            path.evidence,
            show_count(path.epochs, "time")
        ),
        format!(
            "base RTT      {:.1} ms, doubt {}",
            path.base_rtt_us / 1e3,
            doubt(path.base_rtt_doubt)
        ),
        format!("RTT with queue {:.1} ms", path.high_rtt_us / 1e3),
        format!(
            "rate          {} Mb/s{}",
            rate(path),
            path.rate_doubt
                .map_or(String::new(), |share| format!(", doubt {}", doubt(share)))
        ),
    ];
    if let Some(limit) = &path.rate_limit {
        let limit = in_words(limit);
        lines.push(format!("limited by    {limit}: the path may carry more"));
    }
    let loss = in_words(path.loss.as_deref().unwrap_or("cannot be told yet"));
    lines.push(format!(
        "loss          {loss}, {:.3} % of the segments sent again",
        path.retransmitted_share * 100.0
    ));
    lines.extend(what_flows_get(path));
    lines.push(format!("expected      {}", expected.defaults));
    if let Some(tuned) = expected
        .tuned
        .as_ref()
        .filter(|_| !path.settings.is_empty())
    {
        lines.push(format!("  tuned       {tuned}"));
    }
    if let Some(gain) = path.gain {
        lines.push(format!(
            "gain          x{gain:.1}: the rate of flows with learned settings, over that of those without"
        ));
    }
    let flows = path.told_by.iter();
    lines.extend(flows.map(|flow| format!("from a flow   {}", told(flow))));
    lines.join("\n") + "\n"
}

/// A name of the API.
pub(crate) fn in_words(name: &str) -> String {
    name.replace('_', " ")
}

/// What one flow told, in a line.
fn told(flow: &PathEvidence) -> String {
    let rate = flow.rate_bps.map(|bps| format!("{:.1} Mb/s", bps / 1e6));
    let limit = flow.limit.as_deref().map(in_words);
    let parts = [
        Some(format!(
            "{}: {:.1} MB, {:.1} ms",
            flow.began,
            flow.bytes as f64 / 1e6,
            flow.min_rtt_us / 1e3
        )),
        rate,
        limit.map(|limit| format!("held back by {limit}")),
        flow.loss
            .as_deref()
            .map(|loss| format!("loss {}", in_words(loss))),
        Some(format!(
            "{} of {} segments sent again",
            flow.retransmitted_pkts, flow.sent_pkts
        )),
        flow.is_tuned.then(|| "under learned settings".to_owned()),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    said.join(", ")
}

/// Whether its flows are tuned, with which settings, and why, a line each.
pub fn what_flows_get(path: &LearnedPath) -> Vec<String> {
    let mut lines = vec![format!("state         {}", state(path.state))];
    if let Some(until) = &path.quarantined_until {
        lines.push(format!("left alone until {until}"));
    }
    lines.extend(path.settings.lines().map(|line| format!("  {line}")));
    let reasons = path.reasons.iter();
    lines.extend(reasons.map(|reason| format!("because       {reason}")));
    lines
}

fn as_rule(path: &LearnedPath) -> String {
    let name = path.prefix.replace([':', '/'], "-");
    let mut rule = format!(
        "\n# Learned of {} until {}.\n",
        show_count(path.flows, "flow"),
        path.seen
    );
    for reason in &path.reasons {
        rule.push_str(&format!("# {}\n", reason.replace(char::is_control, "?")));
    }
    rule.push_str(&format!(
        "[[rule]]\nname = \"path-{name}\"\nsource = [\"{}\"]\ndestination = [\"{}\"]\n{}",
        path.local,
        path.prefix,
        lasting(&path.settings)
    ));
    rule
}

/// Without the rate of starts, which is right for an hour: a rule of the file has no guards.
fn lasting(settings: &str) -> String {
    let lines = settings.lines();
    let lasting = lines.filter(|line| !line.starts_with("initial_rate"));
    lasting.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_path::Host;

    fn path() -> LearnedPath {
        LearnedPath {
            local: "2001:db8::1".parse().unwrap(),
            prefix: "2001:db8:9::/48".to_owned(),
            flows: 12,
            epochs: 0,
            evidence: 12,
            seen: "2026-11-24T10:00:00.000Z".to_owned(),
            base_rtt_us: 100e3,
            base_rtt_doubt: 0.02,
            high_rtt_us: 120e3,
            rate_bps: Some(1e8),
            rate_doubt: Some(0.5),
            rate_limit: Some("own_buffer".to_owned()),
            loss: None,
            retransmitted_share: 0.001,
            settings: "send_buffer = 16777216\ncongestion_control = \"fp_bbr\"\n".to_owned(),
            reasons: vec!["a reason".to_owned()],
            state: PathState::Observed,
            quarantined_until: None,
            gain: Some(2.5),
            told_by: vec![PathEvidence {
                began: "2026-11-24T09:59:50.000Z".to_owned(),
                seen: "2026-11-24T10:00:00.000Z".to_owned(),
                bytes: 12_000_000,
                min_rtt_us: 100e3,
                mean_rtt_us: 110e3,
                rate_bps: Some(1e8),
                limit: Some("own_buffer".to_owned()),
                loss: None,
                sent_pkts: 9_000,
                retransmitted_pkts: 9,
                is_tuned: false,
            }],
        }
    }

    #[test]
    fn what_is_pinned_is_a_rule_that_the_policy_takes() {
        let policy = fatpath_policy::parse(&as_rule(&path()), None).unwrap();
        assert_eq!(policy.rules[0].name, "path-2001-db8-9---48");
        assert!(
            policy.rules[0]
                .settings
                .gives(fatpath_policy::Setting::SendBuffer)
        );
    }

    fn text(path: &LearnedPath) -> String {
        let host = Host {
            law: "cubic".to_owned(),
            send_autotuned_bytes: 4 << 20,
            receive_autotuned_bytes: 6 << 20,
            most_buffer_bytes: 1 << 30,
            overrides: false,
            private: Vec::new(),
        };
        as_text(path, &forecast_of(path, &host))
    }

    #[test]
    fn what_the_models_expect_stands_beside_what_was_learned() {
        let lossy = LearnedPath {
            rate_limit: None,
            loss: Some("random".to_owned()),
            retransmitted_share: 0.01,
            ..path()
        };
        let shown = text(&lossy);
        let line = |name| shown.lines().find(|line| line.starts_with(name)).unwrap();
        let [expected, tuned] = ["expected", "  tuned"].map(line);
        assert!(
            expected.contains("limited by its answer to losses"),
            "{shown}"
        );
        assert!(tuned.contains("limited by the path's rate"), "{shown}");
        assert!(!text(&path()).contains("  tuned"), "the rate is a bound");
    }

    #[test]
    fn a_rate_that_is_a_bound_says_so() {
        assert_eq!(row(&path())[4], ">100.0");
        assert_eq!(row(&path())[8], "x2.5");
        let unknown = LearnedPath {
            rate_bps: None,
            rate_limit: None,
            ..path()
        };
        assert_eq!(row(&unknown)[4], "?");
        let text = text(&path());
        assert!(text.contains("own buffer: the path may carry more"));
        let flow =
            "12.0 MB, 100.0 ms, 100.0 Mb/s, held back by own buffer, 9 of 9000 segments sent again";
        assert!(text.contains(flow), "{text}");
        let mut small = path();
        assert!(!is_of_small_buffers(&small));
        small.rate_limit = Some("program_buffer".to_owned());
        assert!(is_of_small_buffers(&small));
        small.settings.push_str("override_application = true\n");
        assert!(!is_of_small_buffers(&small));
    }
}
