// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a case: its lab comes up, programs run, links change in time, all goes down, and what
//! was written is collected.
//!
//! Every run has hosts of its own, new namespaces, so no run teaches the next one: routes, cached
//! TCP metrics and sockets begin empty. Start with [`OneRun::run`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fatpath_api::Change;
use fatpath_experiment::results::{Row, Run};
use fatpath_experiment::run::{Planned, Turn, Watch as WatchRun};
use fatpath_scenario::plan::{DaemonPlan, MAINLINE_OF_THE_MACHINE, Plan};
use fatpath_scenario::{Case, Scenario, TimedChange};

use super::CaseError;
use super::collect::{self, Written};
use super::flows;
use super::launch::{self, Launch};
use crate::lab::{Lab, Lifetime};
use crate::machine;
use crate::observe::Window;
use crate::processors::Processors;
use crate::program::{self, Job, Watch};
use crate::records::Records;
use crate::settings::settings_line;

/// One run.
pub(super) struct OneRun<'r> {
    pub(super) scenario: &'r Scenario,
    pub(super) planned: Planned<'r>,
    /// The folder of what it writes.
    pub(super) raw: &'r Path,
    pub(super) watch: &'r mut dyn WatchRun,
    /// It tells what it sets on the machine.
    pub(super) tells_settings: bool,
}

impl OneRun<'_> {
    /// Makes it. A failure is an error here, and a row elsewhere.
    pub(super) fn run(&mut self) -> Result<Run, CaseError> {
        let records = self.records();
        let plan = self.plan();
        self.clear(&records, &plan).map_err(CaseError::Clear)?;
        let launches = launches(self.planned.case, &plan)?;
        let jobs = self.jobs(&launches);
        let processors = Processors::begin(self.scenario.experiment.emulator_apart);
        let mut lab = Lab::up(plan, &records, Lifetime::OfThisProcess)?;
        processors.others();
        lab.cleared.iter().for_each(|line| self.watch.say(line));
        if self.tells_settings {
            self.watch.say(&settings_line(&lab.settings));
        }
        let plan = lab.plan.clone();
        let set = set_on_the_machine(&plan);
        let mut watching = Watching {
            changes: plan.changes(&self.planned.case.changes),
            lab: &mut lab,
            watch: self.watch,
            window: [None; 2],
        };
        let ran = program::run_all(&plan, &jobs, &mut watching);
        let window = watching.window();
        let by_daemon = lab.changes_of_daemon()?;
        let disturbed = disturbed(&set, &machine_settings(), &by_daemon);
        // The emulator ends its files only now.
        if let Some(said) = lab.down()? {
            return Err(CaseError::SupervisorFailed(said));
        }
        if let Err(program::RunError::Interrupted) = ran {
            return Err(match self.watch.go_on() {
                true => CaseError::Gone,
                false => program::RunError::Interrupted.into(),
            });
        }
        let written = Written {
            case: self.planned.case,
            plan: &plan,
            launches: &launches,
            jobs: &jobs,
            records: &records,
            window,
            disturbed,
            lateness_limit_us: self.scenario.experiment.lateness_limit.us(&plan.links),
        };
        collect::run(&written, ran, row_of(&self.planned, &plan))
    }

    fn plan(&self) -> Plan {
        plan(self.scenario, &self.planned, self.file("flows.jsonl"))
    }

    fn records(&self) -> Records {
        let observe = self.scenario.experiment.observe;
        Records {
            observation: observe.map(|_| self.file("observation")),
            per_flow: observe.is_some_and(|observe| observe.per_flow),
            stats: Some(self.file("emulator.json")),
        }
    }

    /// Absolute, for the supervisor has another folder.
    fn file(&self, ending: &str) -> PathBuf {
        let file = self.raw.join(format!("{}.{ending}", self.planned.name()));
        std::path::absolute(&file).unwrap_or(file)
    }

    /// Removes what an attempt that was interrupted has left: the daemon appends.
    fn clear(&self, records: &Records, plan: &Plan) -> io::Result<()> {
        let daemon = plan.daemon.iter().map(|daemon| &daemon.flow_log);
        let mut files = daemon.chain(&records.observation).chain(&records.stats);
        files.try_for_each(|file| unless_missing(fs::remove_file(file)))?;
        let archive = plan.daemon.as_ref().map(DaemonPlan::archive);
        archive.map_or(Ok(()), |archive| {
            unless_missing(fs::remove_dir_all(archive))
        })
    }

    fn jobs(&self, launches: &[Launch]) -> Vec<Job> {
        let launches = launches.iter().enumerate();
        launches
            .map(|(index, launch)| self.job(index, launch))
            .collect()
    }

    fn job(&self, index: usize, launch: &Launch) -> Job {
        let file = Path::new(&launch.words[0]).file_name().unwrap_or_default();
        let label = format!("{}-{}-{}", index + 1, launch.host, file.to_string_lossy());
        let (output, errors) = program::output_files(self.raw, &self.planned.name(), &label);
        Job {
            label,
            host: launch.host.clone(),
            words: launch.words.clone(),
            ready: launch.ready.clone(),
            time_limit: launch.time_limit,
            stop_after: launch.stop.as_ref().map(|stop| stop.after),
            output,
            errors,
        }
    }
}

fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// All that a run of a case starts, in order.
fn launches(case: &Case, plan: &Plan) -> Result<Vec<Launch>, CaseError> {
    let mut launches = launch::programs(case, plan)?;
    launches.extend(flows::launches(&case.flows, plan));
    Ok(launches)
}

/// Repeats draw other random numbers, so that they are independent.
fn plan(scenario: &Scenario, planned: &Planned, flow_log: PathBuf) -> Plan {
    let (Turn::WarmUp(turn) | Turn::Repeat(turn)) = planned.turn;
    Plan::of(scenario, planned.case, flow_log).of_run(turn.saturating_sub(1))
}

/// The row of a run of which nothing else is known.
pub(super) fn row(scenario: &Scenario, planned: &Planned) -> Row {
    row_of(planned, &plan(scenario, planned, PathBuf::new()))
}

/// What is known of a run beforehand.
fn row_of(planned: &Planned, plan: &Plan) -> Row {
    let case = planned.case;
    // A command that cannot be used is the run's error, not the row's.
    let launches = launches(case, plan).unwrap_or_default();
    Row {
        path: case.path.clone(),
        variant: case.variant.clone(),
        bottleneck_mbps: collect::bottleneck_mbps(case, plan, &launches, false, Duration::MAX),
        vary: case.vary.iter().cloned().collect(),
        repeat: match planned.turn {
            Turn::WarmUp(_) => 0,
            Turn::Repeat(repeat) => repeat,
        },
        ..Row::default()
    }
}

/// The name and the value of a setting that is one for all labs of the machine.
type MachineSetting = (&'static str, String);

/// What the lab has set: the mainline values, or those of its daemon.
fn set_on_the_machine(plan: &Plan) -> Vec<MachineSetting> {
    match plan.daemon {
        Some(_) => machine_settings(),
        None => MAINLINE_OF_THE_MACHINE
            .map(|(name, value)| (name, value.to_owned()))
            .into(),
    }
}

fn machine_settings() -> Vec<MachineSetting> {
    let names = MAINLINE_OF_THE_MACHINE.into_iter().map(|(name, _)| name);
    // What cannot be read now could not be set before.
    names
        .map(|name| (name, machine::sysctl(name).unwrap_or_default()))
        .collect()
}

/// Another lab's daemon, or an administrator, may set them too. The lab's own daemon raises them while it learns paths.
fn disturbed(
    set: &[MachineSetting],
    now: &[MachineSetting],
    by_daemon: &[Change],
) -> Option<String> {
    let is_daemons = |(of, value): &MachineSetting| {
        by_daemon.iter().any(|change| {
            matches!(change, Change::Sysctl { name, after, .. } if name == of && after == value)
        })
    };
    let changed: Vec<String> = set
        .iter()
        .zip(now)
        .filter(|(set, now)| set != now && !is_daemons(now))
        .map(|((name, set), (_, now))| format!("{name} was {set} and became {now}"))
        .collect();
    let changed = (!changed.is_empty()).then(|| changed.join(", "))?;
    Some(format!(
        "settings of the machine changed during the run, not by fatpath: {changed}"
    ))
}

/// What goes on while programs run.
struct Watching<'w> {
    lab: &'w mut Lab,
    changes: Vec<TimedChange>,
    watch: &'w mut dyn WatchRun,
    /// When the programs that are no servers began and ended.
    window: [Option<SystemTime>; 2],
}

impl Watching<'_> {
    fn window(&self) -> Option<Window> {
        let [from, until] = self.window.map(|at| {
            let since = at?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_nanos()).ok()
        });
        Some(Window {
            from_unix_ns: from?,
            until_unix_ns: until?,
        })
    }
}

impl Watch for Watching<'_> {
    fn go_on(&mut self) -> bool {
        self.watch.go_on() && self.lab.is_supervised()
    }

    fn begin(&mut self) -> Result<(), String> {
        self.window[0] = Some(SystemTime::now());
        match std::mem::take(&mut self.changes) {
            changes if changes.is_empty() => Ok(()),
            changes => self.lab.schedule(changes),
        }
    }

    fn end(&mut self) {
        self.window[1] = Some(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_not_what_was_set_is_told() {
        let set = [("a", "1".to_owned()), ("b", "2".to_owned())];
        let mut now = set.clone();
        assert_eq!(disturbed(&set, &now, &[]), None);
        now[1].1 = "3".to_owned();
        let told = disturbed(&set, &now, &[]).unwrap();
        assert!(told.ends_with(": b was 2 and became 3"), "{told}");
        let raised = |after: &str| Change::Sysctl {
            name: "b".to_owned(),
            before: "2".to_owned(),
            after: after.to_owned(),
        };
        assert_eq!(disturbed(&set, &now, &[raised("3")]), None);
        assert!(disturbed(&set, &now, &[raised("4")]).is_some());
    }
}
