// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person sees while runs last: a bar with the time left on a terminal, lines elsewhere.
//!
//! Writes to standard error only, so that standard output stays for results.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::results::Row;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// The display of a number of runs.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    runs: usize,
    expected: Duration,
    begun: usize,
    run_started: Instant,
    last_tick: Instant,
}

impl Progress {
    /// A display of `runs` runs that take about `expected` each.
    pub fn new(runs: usize, expected: Duration, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = terminal.then(|| bar(expected * runs as u32));
        let now = Instant::now();
        let lines = !quiet && !terminal;
        Progress {
            bar,
            lines,
            runs,
            expected,
            begun: 0,
            run_started: now,
            last_tick: now,
        }
    }

    /// A run begins.
    pub fn begin(&mut self, path: &str, variant: &str) {
        self.begun += 1;
        self.run_started = Instant::now();
        let what = format!("run {} of {}: {path}, {variant}", self.begun, self.runs);
        if self.lines {
            eprintln!("{what} (about {} s left)", self.left().as_secs());
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what);
        }
        self.show();
    }

    /// Time passes; to be called often.
    pub fn tick(&mut self) {
        if self.last_tick.elapsed() >= TICK {
            self.show();
        }
    }

    /// A run has ended.
    pub fn end(&mut self, row: &Row) {
        let result = match (&row.error, row.goodput_mbps) {
            (Some(error), _) => format!("failed: {error}"),
            (None, Some(mbps)) => format!("{mbps:.1} Mb/s"),
            (None, None) => "no result".to_owned(),
        };
        self.say(&format!("{}, {}: {result}", row.path, row.variant));
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
        let left = self.left();
        let Some(bar) = &self.bar else { return };
        let total = self.expected * self.runs as u32;
        bar.set_position(total.saturating_sub(left).as_millis() as u64);
        bar.set_prefix(format!(
            "{}:{:02} left",
            left.as_secs() / 60,
            left.as_secs() % 60
        ));
    }

    fn left(&self) -> Duration {
        let of_this_run = self.expected.saturating_sub(self.run_started.elapsed());
        self.expected * self.runs.saturating_sub(self.begun) as u32 + of_this_run
    }
}

fn bar(total: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30.cyan/blue} {prefix}  {msg}")
        .expect("the template is a constant and well formed");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(Some(total.as_millis() as u64), target).with_style(style)
}
