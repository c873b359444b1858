// SPDX-License-Identifier: MIT OR Apache-2.0
//! The supervisor process of a lab: it makes everything, forwards the packets, and takes everything down
//! on request, or when the process that started it is gone.
//!
//! It outlives a kill of `lab run` by design: that is what leaves nothing behind. If it is killed
//! itself, the journal tells the next lab command what to undo. It runs no programs on hosts. Start
//! with [`supervise`]; the order of things is in [`bring_up`].

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fatpath_emulator::Network;
use fatpath_scenario::Host;
use fatpath_scenario::plan::{
    DaemonPlan, MAINLINE_LAW, MAINLINE_OF_A_HOST, MAINLINE_OF_THE_MACHINE, Plan,
};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::child;
use crate::error::{SupervisorError, system};
use crate::forwarding::Forwarding;
use crate::hosts;
use crate::journal::{Change, Journal, claim};
use crate::lab_directory::{self, LabDirectory};
use crate::machine::{self, ALLOWED_LAWS};
use crate::undo;

/// How long the daemon may take until it is ready: it loads BPF programs and waits for maps.
const DAEMON_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Settings of hosts that a daemon which learns paths reads of the machine, where it runs: what flows get follows from
/// them.
const READ_BY_A_DAEMON: [&str; 3] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// What the supervisor tells the process that started it, one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// All is up; these settings of the machine were changed.
    Ready(Vec<Setting>),
    /// It did not come up; what had been made is being taken down again.
    Failed(String),
}

/// A machine-wide setting that a lab has changed for its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The sysctl.
    pub name: String,
    /// Its value when no lab is up.
    pub old: String,
    /// Its value now.
    pub ours: String,
}

/// Brings the lab up from the plan in its directory, tells standard output, and keeps it up until a
/// signal, or the end of standard input without a byte from there, then takes all down.
///
/// # Errors
/// What kept it from coming up, which standard output was told too, or what could not be undone.
pub fn supervise(lab: &str) -> Result<(), SupervisorError> {
    machine::put_own_session_first();
    let directory = LabDirectory::of(lab);
    // Locked until this function returns: whoever sees it free may undo what is noted in it.
    let mut journal = Journal::new(
        directory
            .lock_journal()
            .map_err(system("opening the journal"))?,
    );
    let signals = signals().map_err(system("catching signals"))?;
    // Lives until all is undone: the hosts go after the programs on them.
    let mut network = None;
    let kept = up_until_told(&directory, &mut journal, &signals, &mut network);
    let down = lab_directory::lock_all().map_err(system("locking /run/fatpath/lab"));
    let undone = down.and_then(|all| Ok(undo::take_down(&directory, &all)?));
    kept.and(undone)
}

fn up_until_told(
    directory: &LabDirectory,
    journal: &mut Journal,
    signals: &UnixStream,
    up: &mut Option<Network>,
) -> Result<(), SupervisorError> {
    let raised = directory
        .set_supervisor(std::process::id())
        .map_err(system("writing the supervisor's id"))
        .and_then(|()| raise(directory, journal, up));
    match raised {
        Ok((network, settings, forwarding)) => {
            answer(&Answer::Ready(settings));
            forwarding.forward(network, signals)
        }
        Err(error) => {
            answer(&Answer::Failed(error.to_string()));
            Err(error)
        }
    }
}

/// Makes everything, and all that carrying needs.
fn raise<'u>(
    directory: &LabDirectory,
    journal: &mut Journal,
    up: &'u mut Option<Network>,
) -> Result<(&'u Network, Vec<Setting>, Forwarding), SupervisorError> {
    let plan = directory.plan().map_err(system("reading the plan"))?;
    let records = directory
        .records()
        .map_err(system("reading what to record"))?;
    // First, so that nothing was made yet when a file of it cannot be.
    let forwarding = Forwarding::new(directory, &plan, records)?;
    let (network, settings) = bring_up(&plan, directory, journal)?;
    Ok((up.insert(network), settings, forwarding))
}

/// Makes everything, noting each change before it is made. The reverse of this order takes it down:
/// the daemon goes before the cgroup that it tunes, the programs before their hosts.
fn bring_up(
    plan: &Plan,
    directory: &LabDirectory,
    journal: &mut Journal,
) -> Result<(Network, Vec<Setting>), SupervisorError> {
    let settings = set_machine(plan, journal)?;
    let network = make_hosts(plan, journal)?;
    let cgroup = make_cgroup(&plan.lab, journal)?;
    if let Some(daemon) = &plan.daemon {
        start_daemon(daemon, directory, &cgroup, journal)?;
        follow_daemon(plan, &network, &directory.daemon())?;
        open_rude_gate(plan, daemon, directory)?;
    }
    Ok((network, settings))
}

fn set_machine(plan: &Plan, journal: &mut Journal) -> Result<Vec<Setting>, SupervisorError> {
    let others = lab_directory::changes_of_others(&plan.lab)
        .map_err(system("reading other labs' journals"))?;
    let allowed = machine::sysctl(ALLOWED_LAWS).map_err(system(ALLOWED_LAWS))?;
    let with_mainline_law = with_word(&allowed, MAINLINE_LAW);
    let read_by_daemon = MAINLINE_OF_A_HOST.into_iter();
    let read_by_daemon =
        read_by_daemon.filter(|(name, _)| plan.daemon.is_some() && READ_BY_A_DAEMON.contains(name));
    let of_the_machine = MAINLINE_OF_THE_MACHINE.into_iter().chain(read_by_daemon);
    // First, so that it is put back last: the kernel allows a law by itself when it becomes the host's default.
    let wanted = [(ALLOWED_LAWS, with_mainline_law.as_str())].into_iter();
    let wanted = wanted.chain(of_the_machine);
    let set = wanted.map(|(name, wanted)| set_one(name, wanted, &others, journal));
    set.filter_map(Result::transpose).collect()
}

fn set_one(
    name: &str,
    wanted: &str,
    others: &[Change],
    journal: &mut Journal,
) -> Result<Option<Setting>, SupervisorError> {
    let current = machine::sysctl(name).map_err(system(name))?;
    let Some(change) = claim(name, &current, wanted, others)? else {
        return Ok(None);
    };
    note(journal, &change)?;
    machine::set_sysctl(name, wanted).map_err(system(name))?;
    let Change::Sysctl { name, old, ours } = change else {
        return Ok(None);
    };
    Ok(Some(Setting { name, old, ours }))
}

/// A list of words in alphabetical order, with one more if it is not there.
fn with_word(list: &str, word: &str) -> String {
    let words: BTreeSet<&str> = list.split(' ').chain([word]).collect();
    words.into_iter().collect::<Vec<_>>().join(" ")
}

fn make_hosts(plan: &Plan, journal: &mut Journal) -> Result<Network, SupervisorError> {
    for host in &plan.hosts {
        let name = plan.namespace(&host.name);
        if hosts::is_taken(&name) {
            return Err(SupervisorError::NamespaceTaken(name));
        }
        note(journal, &Change::Namespace { name })?;
    }
    let network = Network::up(&hosts::topology(plan))?;
    for host in &plan.hosts {
        let Some(namespace) = network.host(&host.name) else {
            continue;
        };
        for (name, value) in plan.sysctls(host) {
            namespace.set_sysctl(&name, &value)?;
        }
    }
    Ok(network)
}

fn make_cgroup(lab: &str, journal: &mut Journal) -> Result<std::path::PathBuf, SupervisorError> {
    let path = hosts::cgroup(lab).map_err(system("finding cgroup 2"))?;
    note(journal, &Change::Cgroup { path: path.clone() })?;
    fs::create_dir(&path).map_err(system(path.display()))?;
    Ok(path)
}

fn start_daemon(
    plan: &DaemonPlan,
    directory: &LabDirectory,
    cgroup: &Path,
    journal: &mut Journal,
) -> Result<(), SupervisorError> {
    let program = std::env::current_exe().map_err(system("finding fatpath itself"))?;
    let run_dir = directory.daemon();
    let pin_dir = directory.pins();
    let log = directory.path("daemon.log");
    let mut command = child::this_program();
    command
        .arg("daemon")
        .arg("--policy")
        .arg(&plan.policy)
        .arg("--cgroup")
        .arg(cgroup);
    command
        .arg("--run-dir")
        .arg(&run_dir)
        .arg("--pin-dir")
        .arg(&pin_dir);
    command
        .arg("--flow-log")
        .arg(&plan.flow_log)
        .arg("--whole")
        .stdin(Stdio::null());
    // Those of the machine are none of the lab.
    let no_tests = directory.path("no-tests.toml");
    command
        .arg("--archive")
        .arg(plan.archive())
        .arg("--measure")
        .arg(plan.measure.as_ref().unwrap_or(&no_tests));
    child::dies_with_parent(&mut command, Signal::TERM);
    log_to(&mut command, &log).map_err(system(log.display()))?;
    note(
        journal,
        &Change::Daemon {
            program,
            run_dir: run_dir.clone(),
            pin_dir,
        },
    )?;
    fs::create_dir(&run_dir).map_err(system(run_dir.display()))?;
    let mut daemon = command.spawn().map_err(system("starting fatpath daemon"))?;
    let pid = daemon.id();
    if let Some(start_ticks) = machine::start_ticks(pid) {
        note(journal, &Change::Process { pid, start_ticks })?;
    }
    wait_ready(&mut daemon, &run_dir.join("ready")).map_err(|reason| SupervisorError::Daemon {
        reason,
        log: crate::tail::of_file(&log),
    })
}

/// The lab's daemon stands for one on each host: what it raised of sysctls that each network namespace has for itself holds
/// for the hosts, too, where they have what it found.
fn follow_daemon(plan: &Plan, network: &Network, run_dir: &Path) -> Result<(), SupervisorError> {
    let daemon = fatpath_host::Host::open(run_dir)?;
    for change in daemon.changes() {
        let fatpath_api::Change::Sysctl {
            name,
            before,
            after,
        } = change
        else {
            continue;
        };
        let has_it = |host: &&Host| {
            let sysctls = plan.sysctls(host);
            let value = sysctls.iter().rev().find(|(set, _)| set == name);
            value.is_some_and(|(_, value)| value == before)
        };
        let hosts = plan.hosts.iter().filter(has_it);
        for namespace in hosts.filter_map(|host| network.host(&host.name)) {
            namespace.set_sysctl(name, after)?;
        }
    }
    Ok(())
}

/// A lab's policy is its administrator's word: where it lets flows be rude, the hosts of the lab mark them.
fn open_rude_gate(
    plan: &Plan,
    daemon: &DaemonPlan,
    directory: &LabDirectory,
) -> Result<(), SupervisorError> {
    let policy = fs::read(&daemon.policy).map_err(system(daemon.policy.display()))?;
    let policy = fatpath_policy::parse_bytes(&policy, None).unwrap_or_default();
    if !policy.rules.iter().any(|rule| rule.settings.may_be_rude()) {
        return Ok(());
    }
    let mut command = child::this_program();
    command.args(["rude", "on", "--run-dir"]);
    command.arg(directory.daemon());
    for host in &plan.hosts {
        command.arg("--netns").arg(plan.namespace(&host.name));
    }
    let output = command
        .output()
        .map_err(system("opening the gate of Rude TCP"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(SupervisorError::Daemon {
            reason: "cannot open the gate of Rude TCP".to_owned(),
            log: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
    }
}

fn log_to(command: &mut Command, file: &Path) -> io::Result<()> {
    let log = File::create(file)?;
    command.stdout(log.try_clone()?).stderr(log);
    Ok(())
}

fn wait_ready(daemon: &mut std::process::Child, ready: &Path) -> Result<(), String> {
    let deadline = Instant::now() + DAEMON_LIMIT;
    while !ready.exists() {
        match daemon.try_wait() {
            Ok(Some(status)) => return Err(format!("ended before it was ready ({status})")),
            Err(error) => return Err(error.to_string()),
            Ok(None) if Instant::now() > deadline => {
                return Err(format!("was not ready after {} s", DAEMON_LIMIT.as_secs()));
            }
            Ok(None) => thread::sleep(POLL_INTERVAL),
        }
    }
    Ok(())
}

/// A socket that becomes readable when the process is asked to end.
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}

/// The process that asked may be gone; then it is not missed.
fn answer(answer: &Answer) {
    let line = serde_json::to_string(answer).expect("plain strings are JSON");
    let _ = writeln!(io::stdout(), "{line}");
}

fn note(journal: &mut Journal, change: &Change) -> Result<(), SupervisorError> {
    journal.note(change).map_err(system("writing the journal"))
}
