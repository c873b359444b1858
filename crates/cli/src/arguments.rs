// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line, as clap sees it and as `--help` and the man pages print it.

use crate::interval::interval;
use crate::observed::Observed;
use crate::{
    archive, capture, completions, doctor, man, measure, paths, police, send, top, trace, try_path,
    tune, why,
};
use clap::{Args, Parser, Subcommand};
use fatpath_api::RudeMark;
use fatpath_daemon::{DaemonOptions, InstanceOptions};
use fatpath_experiment::simulate::cli::Simulate;
use fatpath_gap::cli::GapCommand;
use fatpath_testbed::cli::LabCommand;
use std::path::PathBuf;

/// Makes TCP fast on long fat paths, for programs that know nothing about it
#[derive(Parser)]
#[command(name = "fatpath", version = env!("FATPATH_VERSION"), propagate_version = true, max_term_width = 80)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  fatpath doctor
  fatpath try far.example --rate 1gbit
  fatpath policy check /etc/fatpath/policy.toml
  fatpath policy explain 10.5.128.74:443
  fatpath daemon
  fatpath flows --watch
  fatpath why
  fatpath lab run experiments/demo.toml
  fatpath sim experiments/agreement.toml
  fatpath unload

Exit status: 0 success, 1 failure, 2 wrong usage, 3 no daemon runs (status).";

#[derive(Subcommand)]
pub enum Command {
    /// Check whether this host is fit for fatpath: what is missing, what is in the way, and the remedy
    #[command(after_help = doctor::HELP)]
    Doctor(doctor::Arguments),
    /// Tell what a path from here is like, and what TCP makes of it by default and with fatpath
    #[command(after_help = try_path::HELP)]
    Try(try_path::Arguments),
    /// Run the tuning daemon
    #[command(after_help = DAEMON_HELP)]
    Daemon(DaemonOptions),
    /// Check a policy file, explain which settings a flow would get, apply the file
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Turn a WAD configuration file into a policy file
    ImportWad(ImportWadArguments),
    /// List the flows that are tuned now
    #[command(visible_alias = "list", alias = "ls", after_help = FLOWS_HELP)]
    Flows(FlowsArguments),
    /// Report why flows are slow: the cause, its evidence, and the cure
    #[command(after_help = why::HELP)]
    Why(why::Arguments),
    /// Give one live flow other settings, for a time or until it ends
    #[command(after_help = tune::HELP)]
    Tune(tune::Arguments),
    /// Show the live table of flows in the terminal
    #[command(after_help = top::HELP)]
    Top(top::Arguments),
    /// Allow flows without congestion control, forbid them, list them, run a program with them
    #[command(subcommand, after_help = RUDE_HELP)]
    Rude(RudeCommand),
    /// Record samples of flows to Parquet files, and draw them
    #[command(after_help = trace::HELP)]
    Trace(trace::TraceArguments),
    /// Query what the daemon archived: ends of flows, findings, decisions, the history of a path
    #[command(subcommand, after_help = archive::HELP)]
    Archive(archive::Command),
    /// Show what was learned of each path, and the settings that its flows get
    #[command(after_help = paths::HELP)]
    Paths(paths::Arguments),
    /// Show which programs are followed from phase to phase (MPI), and what that costs
    #[command(after_help = PHASES_HELP)]
    Phases(PhasesArguments),
    /// Check, list and run tests, and print when each is due
    #[command(subcommand, after_help = measure::HELP)]
    Measure(measure::Command),
    /// Analyse a packet capture: each TCP connection, its losses, round-trip times and windows
    #[command(after_help = fatpath_analyse::HELP)]
    Analyse(fatpath_analyse::Arguments),
    /// Capture the packets of one live connection, headers only, for a bounded time
    #[command(after_help = capture::HELP)]
    Capture(capture::Arguments),
    /// Send files to another host, fast over long lossy paths
    #[command(after_help = fatpath_mover::cli::SEND_HELP)]
    Send(send::Arguments),
    /// Receive files from another host
    #[command(visible_alias = "receive", after_help = fatpath_mover::cli::RECV_HELP)]
    Recv(fatpath_mover::RecvArguments),
    /// Measure a path by a flow of zeros over UDP, with every knob of its TCP
    #[command(subcommand, after_help = fatpath_flow::cli::HELP)]
    Flow(fatpath_flow::cli::Command),
    /// Make, show and trust the keys by which hosts know each other without ssh
    #[command(subcommand, after_help = fatpath_peer::cli::HELP)]
    Keys(fatpath_peer::cli::Command),
    /// Print whether fatpath runs, its policy, gate, counters and errors, and what it changed
    #[command(after_help = STATUS_HELP)]
    Status(StatusArguments),
    /// Print the address of the page, or how to reach it
    #[command(after_help = PAGE_HELP)]
    Page(PageArguments),
    /// Remove every program, map, pin, law, route metric and sysctl change
    #[command(after_help = UNLOAD_HELP)]
    Unload(UnloadArguments),
    /// Install, list or remove a policer for the segments of rude flows, on a router
    #[command(after_help = police::HELP)]
    Police(police::PoliceArguments),
    /// Bring up emulated networks, and run experiments in them
    #[command(subcommand)]
    Lab(LabCommand),
    /// Measure how near learned paths come to an expert's settings
    #[command(subcommand)]
    Gap(GapCommand),
    /// Run every case of a scenario in the simulator, and compare; needs no root
    #[command(alias = "simulate")]
    Sim(Simulate),
    /// Print what theory expects of TCP on a path: rates, windows, times, buffers
    #[command(subcommand, after_help = fatpath_theory::HELP)]
    Model(fatpath_theory::Command),
    /// Print completions of this command line for bash, zsh or fish
    #[command(alias = "completion", after_help = completions::HELP)]
    Completions(completions::Arguments),
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man(man::Arguments),
}

const DAEMON_HELP: &str = "\
On SIGHUP the daemon reads the policy file again; an invalid file changes
nothing. When the daemon ends, tuning continues: programs, maps and laws are
pinned, and the next daemon takes them over. `fatpath unload` removes them.

Examples:
  fatpath daemon
  fatpath daemon --policy ./policy.toml --flow-log ./flows.jsonl
  systemctl enable --now fatpath";

const FLOWS_HELP: &str = "\
Examples:
  fatpath flows
  fatpath flows --watch
  fatpath flows --json | jq '.[] | {remote, rule, goodput_mbps}'";

const PAGE_HELP: &str = "\
The page shows all flows live: their windows, times and rates, and why they are
slow. It only reads. The address contains a secret token: whoever has the
address and can reach this host sees the flows.

Examples:
  fatpath daemon --listen 127.0.0.1:7070
  xdg-open \"$(sudo fatpath page)\"";

const PHASES_HELP: &str = "\
A process is in a collective phase while one of its threads is in a function
that a table [phases.NAME] of the policy names. Rules say what differs then:
phase.collective = { ... }. fatpath-policy(5) and docs/mpi.md say how.

Examples:
  fatpath phases
  fatpath phases --json | jq '.processes[] | {pid, collective_share}'";

const STATUS_HELP: &str = "\
Exit status: 0 a daemon runs; 3 none runs (tuning that is pinned goes on without
it, and is shown); 1 it failed.";

const UNLOAD_HELP: &str = "\
Live flows keep the buffers and timers they have; those on a law of fatpath's go
to the law of their network namespace. A value that somebody else has changed
since is left alone, and reported.

A second fatpath, such as one in a container, may have registered fatpath's laws
and have its pins where this host does not see them; its laws are never taken
from it, but by --orphans. Flows keep a law that was unregistered until they
end.";

#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Check a policy file; if it has errors, print file:line:column of each, and exit with status 1
    Check(CheckArguments),
    /// Print which rule a flow would match, and every setting with its reason; changes nothing
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArguments),
    /// Print a rule for the path to a destination, as `fatpath try` finds it
    #[command(after_help = try_path::HELP)]
    Suggest(try_path::Probe),
    /// Apply a policy file; an invalid file changes nothing
    Apply(ApplyArguments),
}

const EXPLAIN_HELP: &str = "\
Also says what the kernel of this host makes of buffers: net.core.wmem_max and
rmem_max bound them, unless [host.sysctl] of the policy raises these; tcp_wmem
and tcp_rmem bound those that no rule sets. Where no rule of the file matches
and the policy has a section [auto], the daemon is asked what it learned of the
path.

Examples:
  fatpath policy explain 10.5.128.74:443
  fatpath policy explain '[2001:db8::1]:443' --source '[2001:db8:1::2]:40000'
  fatpath policy explain 10.5.128.74 --cgroup /system.slice/gridftp.service";

#[derive(Args)]
pub struct CheckArguments {
    /// Policy file
    #[arg(default_value = "/etc/fatpath/policy.toml")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ExplainArguments {
    /// The peer: ADDRESS, ADDRESS:PORT or [IPV6]:PORT
    pub destination: String,
    /// This host's end, in the same form
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub source: Option<String>,
    /// Path of the flow's cgroup (version 2)
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Policy file
    #[arg(long, value_name = "FILE", default_value = "/etc/fatpath/policy.toml")]
    pub policy: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[derive(Args)]
pub struct ApplyArguments {
    /// Policy file; in force until the daemon reads its own again, on SIGHUP or at its next start
    #[arg(default_value = "/etc/fatpath/policy.toml")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[derive(Args)]
pub struct ImportWadArguments {
    /// WAD configuration file
    pub file: PathBuf,
    /// Write the policy here instead of to standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args)]
pub struct FlowsArguments {
    /// Refresh the table until Ctrl-C
    #[arg(long, short)]
    pub watch: bool,
    /// Seconds between two tables
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,
    /// Print JSON; with --watch one line for each refresh
    #[arg(long)]
    pub json: bool,
    /// Print each flow's variables of RFC 4898 and Linux's own, instead of the table
    #[arg(long, conflicts_with = "watch")]
    pub variables: bool,
    #[command(flatten)]
    pub of: Observed,
}

#[derive(Subcommand)]
pub enum RudeCommand {
    /// Open the gate: from now on flows may be rude where a rule allows it
    On(RudeOnArguments),
    /// Close the gate: from now on every flow has congestion control
    Off(RudeOffArguments),
    /// Print whether the gate is open, and the rude flows
    Status(RudeStatusArguments),
    /// Run a command whose connections are rude where rules allow it
    #[command(after_help = RUDE_RUN_HELP)]
    Run(RudeRunArguments),
}

const RUDE_HELP: &str = "\
A flow is rude only while the gate is open, its rule in the policy allows it
(rude = \"allowed\" or \"always\"), and its interface marks segments. With rude
= \"allowed\" the program must ask too, by the socket option TCP_RUDE or because
`fatpath rude run` started it. fatpath-rude(7) says when to use it.

Examples:
  fatpath rude on
  fatpath rude on --netns cluster --mark dscp=4
  fatpath rude run --user alice -- rsync -a data/ far.example:data/
  fatpath rude status --json
  fatpath rude off";

const RUDE_RUN_HELP: &str = "\
The command runs in a cgroup of its own, below the present one. Its connections
ask to be rude when they are established; where the gate is closed, or the rule
of the path or the user forbids it, they keep congestion control.

Examples:
  fatpath rude run -- iperf3 --client 10.5.128.74
  fatpath rude run --user alice -- rsync -a data/ far.example:data/";

#[derive(Args)]
pub struct RudeOnArguments {
    /// Mark of rude segments: a bit of the TCP header, 0x100, 0x200, 0x400 or 0x800, or dscp=N.
    /// 0x100 is the bit of the paper; since RFC 9768 it is AE of Accurate ECN
    #[arg(long, value_name = "MARK", default_value_t)]
    pub mark: RudeMark,
    /// Mark in this network namespace (a name that `ip netns` lists) instead of the daemon's own; may be
    /// repeated
    #[arg(long, value_name = "NAME", value_parser = netns_name)]
    pub netns: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

/// An empty name (a shell variable that is not set) must not mean the daemon's own namespace.
fn netns_name(text: &str) -> Result<String, &'static str> {
    match text.is_empty() || text.contains(['/', ',']) {
        true => Err("give a name that `ip netns` lists"),
        false => Ok(text.to_owned()),
    }
}

#[derive(Args)]
pub struct RudeOffArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[derive(Args)]
pub struct RudeRunArguments {
    /// Run as this user: a name of /etc/passwd
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    #[command(flatten)]
    pub instance: InstanceOptions,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    pub command: Vec<String>,
}

#[derive(Args)]
pub struct StatusArguments {
    /// Also print what is pinned, each rule and law, and each change of the host
    #[arg(long, short)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub of: Observed,
}

#[derive(Args)]
pub struct PhasesArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub of: Observed,
}

#[derive(Args)]
pub struct RudeStatusArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[derive(Args)]
pub struct PageArguments {
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[derive(Args)]
pub struct UnloadArguments {
    /// Only unregister the laws that are pinned in no BPF file system mounted here, whoever registered them
    #[arg(long)]
    pub orphans: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub instance: InstanceOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
