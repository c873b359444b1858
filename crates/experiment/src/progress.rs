// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees while runs last: a bar with the time left on a terminal, lines elsewhere.
//!
//! The time left follows what scenarios say of their programs, corrected by the runs so far. Writes
//! to standard error only, so that standard output stays for results.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);
/// What bringing a lab up and taking it down adds to a run, until a run has shown it.
const AROUND_A_RUN_S: f64 = 1.5;
const BAR_STEPS: u64 = 1000;

/// A run that is to come.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Runs of the same kind last about as long.
    pub kind: String,
    /// For people.
    pub name: String,
    /// How long its programs last, as far as the scenario says.
    pub lasts: Duration,
}

/// The display of a number of runs.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    time: TimeLeft,
    last_tick: Instant,
}

impl Progress {
    /// A display of these runs, in order.
    pub fn new(runs: Vec<Expected>, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        Progress {
            bar: (terminal && !runs.is_empty()).then(bar),
            lines: !quiet && !terminal,
            time: TimeLeft::new(runs),
            last_tick: Instant::now(),
        }
    }

    /// The next run begins.
    pub fn begin(&mut self) {
        self.time.begin();
        let what = self.time.title();
        if self.lines {
            eprintln!("{what} (about {} left)", clock(self.time.left_s()));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
        self.show();
    }

    /// The run that has ended is made again.
    pub fn begin_again(&mut self) {
        self.time.run_started = Instant::now();
        self.show();
    }

    /// Time passes; to be called often.
    pub fn tick(&mut self) {
        if self.last_tick.elapsed() >= TICK {
            self.show();
        }
    }

    /// The run has ended; `result` is its result.
    pub fn end(&mut self, result: &str) {
        self.time.end();
        self.say(result);
    }

    /// A line above the bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if self.lines => eprintln!("{line}"),
            None => {}
        }
    }

    /// All runs have ended; the bar goes.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn show(&mut self) {
        self.last_tick = Instant::now();
        let Some(bar) = &self.bar else { return };
        bar.set_position((self.time.share_done() * BAR_STEPS as f64) as u64);
        bar.set_prefix(format!("{} left", clock(self.time.left_s())));
    }
}

/// The display of runs that are made several at a time.
#[derive(Debug)]
pub struct Together {
    bar: Option<ProgressBar>,
    lines: bool,
    all: usize,
    ended: usize,
    started: Instant,
}

impl Together {
    /// A display of so many runs.
    pub fn new(all: usize, quiet: bool) -> Together {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        Together {
            bar: (terminal && all > 0).then(bar),
            lines: !quiet && !terminal,
            all,
            ended: 0,
            started: Instant::now(),
        }
    }

    /// Time passes; `in_work` is what is done of the runs that are being made.
    pub fn tick(&mut self, in_work: f64) {
        let Some(bar) = &self.bar else { return };
        let share = (self.ended as f64 + in_work) / self.all.max(1) as f64;
        bar.set_position((share * BAR_STEPS as f64) as u64);
        bar.set_message(format!("{} of {} runs", self.ended, self.all));
        // The first moments say nothing.
        if share > 0.01 {
            let left_s = self.started.elapsed().as_secs_f64() * (1.0 / share - 1.0);
            bar.set_prefix(format!("{} left", clock(left_s)));
        }
    }

    /// A run has ended; `result` is its result.
    pub fn end(&mut self, result: &str) {
        self.ended += 1;
        match &self.bar {
            Some(bar) => bar.println(result),
            None if self.lines => eprintln!("run {} of {}: {result}", self.ended, self.all),
            None => {}
        }
        self.tick(0.0);
    }

    /// All runs have ended; the bar goes.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How long the runs that are left will take.
#[derive(Debug)]
struct TimeLeft {
    runs: Vec<Expected>,
    begun: usize,
    started: Instant,
    run_started: Instant,
    /// How long the last run of each kind took.
    took_s: HashMap<String, f64>,
    /// How much longer runs took than their programs, and how many showed it.
    around_s: f64,
    shown: f64,
    /// Of the runs after the current one.
    later_s: f64,
}

impl TimeLeft {
    fn new(runs: Vec<Expected>) -> TimeLeft {
        let mut time = TimeLeft {
            runs,
            begun: 0,
            started: Instant::now(),
            run_started: Instant::now(),
            took_s: HashMap::new(),
            around_s: AROUND_A_RUN_S,
            shown: 0.0,
            later_s: 0.0,
        };
        time.look_ahead();
        time
    }

    fn begin(&mut self) {
        self.begun += 1;
        self.run_started = Instant::now();
        self.look_ahead();
    }

    fn end(&mut self) {
        self.learn(self.run_started.elapsed().as_secs_f64());
    }

    /// From how long the current run took.
    fn learn(&mut self, took_s: f64) {
        let Some(run) = self.current() else { return };
        let (kind, around_s) = (run.kind.clone(), took_s - run.lasts.as_secs_f64());
        self.took_s.insert(kind, took_s);
        self.shown += 1.0;
        self.around_s += (around_s - self.around_s) / self.shown;
    }

    fn current(&self) -> Option<&Expected> {
        self.runs.get(self.begun.checked_sub(1)?)
    }

    fn title(&self) -> String {
        let name = self.current().map_or("", |run| &run.name);
        format!("run {} of {}: {name}", self.begun, self.runs.len())
    }

    fn expected_s(&self, run: &Expected) -> f64 {
        let by_scenario = (run.lasts.as_secs_f64() + self.around_s).max(0.0);
        self.took_s.get(&run.kind).copied().unwrap_or(by_scenario)
    }

    fn look_ahead(&mut self) {
        let later = self.runs[self.begun.min(self.runs.len())..].iter();
        self.later_s = later.map(|run| self.expected_s(run)).sum();
    }

    fn left_s(&self) -> f64 {
        let elapsed_s = self.run_started.elapsed().as_secs_f64();
        let of_this = self.current().map_or(0.0, |run| self.expected_s(run));
        self.later_s + (of_this - elapsed_s).max(0.0)
    }

    fn share_done(&self) -> f64 {
        let done_s = self.started.elapsed().as_secs_f64();
        done_s / (done_s + self.left_s()).max(1e-9)
    }
}

/// `1:05`, `2:03:04`.
fn clock(s: f64) -> String {
    let s = s.round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30.cyan/blue} {prefix}  {msg}")
        .expect("the template is a constant and well formed");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(Some(BAR_STEPS), target).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_learns_from_the_runs_so_far() {
        let run = |kind: &str| Expected {
            kind: kind.into(),
            name: kind.into(),
            lasts: Duration::from_secs(10),
        };
        let runs = ["a", "b", "a", "c"].map(run);
        let mut time = TimeLeft::new(runs.into());
        assert_eq!(time.later_s, 4.0 * 11.5);
        time.begin();
        time.learn(30.0);
        time.begin();
        // One more of 30 s, and one of which is known that a run adds 20 s.
        assert_eq!(time.later_s, 60.0);
        time.learn(14.0);
        time.begin();
        assert_eq!(time.later_s, 10.0 + (20.0 + 4.0) / 2.0);
        assert!(time.left_s() <= 22.0 + 30.0);
        time.begin();
        time.begin();
        assert_eq!(time.later_s, 0.0);
    }

    #[test]
    fn times_are_told_as_clocks_do() {
        assert_eq!(clock(65.4), "1:05");
        assert_eq!(clock(7384.0), "2:03:04");
    }
}
