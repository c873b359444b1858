// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a transfer, and how it goes meanwhile: for people, and as JSON.

use crate::protocol::{
    Carrier, DiskFigures, Figures, Outcome, Problem, ReceiverTimes, SenderTimes,
};
use crate::session::Session;
use fatpath_bottleneck::{Limit, LimitTimes, disk};
use fatpath_tree::shown;
use fatpath_units::{show_bytes, show_count, show_rate, show_time};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Failures, and deletions, that are listed; more are counted.
pub const MOST_LISTED: usize = 10_000;
/// What is listed of a path or a reason, characters.
const MOST_SHOWN: usize = 4096;
/// What held back a transfer of less is not told to people, seconds.
const LEAST_TOLD_S: f64 = 1.0;
/// How often the line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// What became of a transfer.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Entries that are at their place now.
    pub stored: u64,
    /// Entries that were there already.
    pub skipped: u64,
    /// Entries that are not.
    pub failed: u64,
    /// Entries of folders that were not sent, and were deleted.
    pub deleted: u64,
    /// Bytes of the files that are at their place now.
    pub bytes: u64,
    /// Bytes of files that went over the network; what an earlier transfer had brought is not among them.
    pub moved_bytes: u64,
    /// From the first message to the last.
    pub seconds: f64,
    /// `bytes` over `seconds`.
    pub rate_bps: f64,
    /// What carried the data: udp, or tcp.
    pub carrier: Option<Carrier>,
    /// By how many flows or connections.
    pub flows: usize,
    /// Of these, given up: nothing came back from them any more, and the others did their work.
    pub silent_flows: u16,
    /// Round-trip time.
    pub rtt_us: u32,
    /// Rate at which the path let a short train of datagrams pass before the data, in their direction, bits a second; nothing
    /// where it could not be told.
    pub train_bps: Option<u64>,
    /// UDP payload of a full datagram, as the path was found to carry it, at last; nothing by TCP.
    pub datagram_bytes: Option<u16>,
    /// Datagrams of data, or segments of TCP, that were sent.
    pub sent_pkts: u64,
    /// Of these, sent again.
    pub retransmits: u64,
    /// Of these, marked by a queue that would have dropped others (ECN).
    pub marked_pkts: u64,
    /// It was sent without congestion control (`--rate`), at the beginning at least.
    pub is_rude: bool,
    /// When and why congestion control came back; nothing if it did not.
    pub became_polite: Option<BecamePolite>,
    /// How fast files were read at the sender at the beginning of a transfer of 1 GiB and more, bits a second; nothing where it was not
    /// measured, or most of what was read was in memory.
    pub sender_disk_bps: Option<u64>,
    /// How fast the receiver wrote and synced then.
    pub receiver_disk_bps: Option<u64>,
    /// What held the transfer back for longest; nothing where no data went.
    pub limited_by: Option<Limit>,
    /// For how long it and others did, from the first data to the last answer, seconds.
    pub limit_times_s: Option<LimitTimes>,
    /// Nothing was written: it is what would be.
    pub is_dry: bool,
    /// This end has given the files, and the other one stored them.
    pub is_given: bool,
    /// Why entries failed, the first 10000.
    pub failures: Vec<Failure>,
    /// What was deleted, the first 10000.
    pub deletions: Vec<String>,
    /// Why the session ended before its time; nothing if it did not.
    pub errors: Vec<SessionError>,
    /// What both ends told of their times.
    #[serde(skip)]
    pub sender_times: SenderTimes,
    #[serde(skip)]
    pub receiver_times: ReceiverTimes,
    #[serde(skip)]
    limit_bps: Option<u64>,
    /// What is known at the beginning is told to people.
    #[serde(skip)]
    tells: bool,
    #[serde(skip)]
    knows_sender_disk: bool,
    #[serde(skip)]
    knows_receiver_disk: bool,
    #[serde(skip)]
    begun: Instant,
    #[serde(skip)]
    most_listed: usize,
}

/// The host's permission to send without congestion control ended.
#[derive(Debug, Serialize)]
pub struct BecamePolite {
    /// Seconds since the first message.
    pub after_s: f64,
    /// Why.
    pub why: String,
}

/// Why a session failed, in the form that every command gives its errors.
#[derive(Debug, Serialize)]
pub struct SessionError {
    /// The error and its causes.
    pub message: String,
}

/// Why an entry failed.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Its path; what is no UTF-8 is replaced, control characters are escaped.
    pub path: String,
    /// Why.
    pub why: String,
}

impl Report {
    /// Of a transfer that begins now.
    pub fn new(is_dry: bool) -> Report {
        Report {
            stored: 0,
            skipped: 0,
            failed: 0,
            deleted: 0,
            bytes: 0,
            moved_bytes: 0,
            seconds: 0.0,
            rate_bps: 0.0,
            carrier: None,
            flows: 0,
            silent_flows: 0,
            rtt_us: 0,
            train_bps: None,
            datagram_bytes: None,
            sent_pkts: 0,
            retransmits: 0,
            marked_pkts: 0,
            is_rude: false,
            became_polite: None,
            sender_disk_bps: None,
            receiver_disk_bps: None,
            limited_by: None,
            limit_times_s: None,
            is_dry,
            is_given: false,
            failures: vec![],
            deletions: vec![],
            errors: vec![],
            sender_times: SenderTimes::default(),
            receiver_times: ReceiverTimes::default(),
            limit_bps: None,
            tells: false,
            knows_sender_disk: false,
            knows_receiver_disk: false,
            begun: Instant::now(),
            most_listed: MOST_LISTED,
        }
    }

    /// What is known at the beginning is told on standard error, or not.
    pub fn telling(mut self, is_wanted: bool) -> Report {
        self.tells = is_wanted;
        self
    }

    /// No more failures than this are listed.
    pub fn listing(mut self, most: usize) -> Report {
        self.most_listed = most;
        self
    }

    /// The final outcome of an entry.
    pub fn note(&mut self, path: &[u8], bytes: u64, outcome: &Outcome) {
        match outcome {
            Outcome::Wanted(_) => {}
            Outcome::Skipped => self.skipped += 1,
            Outcome::Stored | Outcome::WouldStore => {
                self.stored += 1;
                self.bytes += bytes;
            }
            Outcome::Failed(why) => self.fail(path, why),
        }
    }

    /// An entry that could not even be named to the other end.
    pub fn note_problem(&mut self, problem: &Problem) {
        self.fail(&problem.path, &problem.why);
    }

    /// So many entries were deleted, these among them.
    pub fn note_deleted(&mut self, count: u64, paths: &[Vec<u8>]) {
        self.deleted = self.deleted.saturating_add(count);
        let room = self.most_listed.saturating_sub(self.deletions.len());
        let paths = paths.iter().take(room).map(|path| listed(path));
        self.deletions.extend(paths);
    }

    fn fail(&mut self, path: &[u8], why: &str) {
        self.failed += 1;
        if self.failures.len() < self.most_listed {
            self.failures.push(Failure {
                path: listed(path),
                why: listed(why.as_bytes()),
            });
        }
    }

    /// What carries the data, and how fast it may.
    pub fn note_session(&mut self, session: &Session) {
        let way = session.way();
        self.limit_bps = session.limit_bps();
        (self.carrier, self.flows) = (Some(way.carrier()), way.flows());
        self.train_bps = way.train_bps();
    }

    /// The transport's figures.
    pub fn note_figures(&mut self, figures: &Figures) {
        self.rtt_us = figures.rtt_us;
        self.sent_pkts = figures.sent_pkts;
        self.retransmits = figures.retransmits;
        self.marked_pkts = figures.marked_pkts;
        self.silent_flows = figures.silent_flows;
        self.sender_times = figures.times;
        self.datagram_bytes = (figures.datagram_bytes > 0).then_some(figures.datagram_bytes);
    }

    /// How fast the sender reads, told once.
    pub fn note_sender_disk(&mut self, figures: DiskFigures) {
        if std::mem::replace(&mut self.knows_sender_disk, true) {
            return;
        }
        self.sender_disk_bps = figures.rate_bps();
        self.tell_disk("files are read at the sender", self.sender_disk_bps);
    }

    /// How fast the receiver writes, told once.
    pub fn note_receiver_disk(&mut self, figures: DiskFigures) {
        if std::mem::replace(&mut self.knows_receiver_disk, true) {
            return;
        }
        self.receiver_disk_bps = figures.rate_bps();
        self.tell_disk("the receiver's disk writes", self.receiver_disk_bps);
    }

    fn tell_disk(&self, what: &str, disk_bps: Option<u64>) {
        let slow = disk::slower(what, disk_bps, self.train_bps, self.limit_bps);
        if let Some(slow) = slow.filter(|_| self.tells) {
            eprintln!("fatpath: warning: {slow}");
        }
    }

    /// From now on it has congestion control, which is said once.
    pub fn note_polite(&mut self, why: String) {
        eprintln!("fatpath: --rate: the data go on with congestion control: {why}");
        let after_s = self.begun.elapsed().as_secs_f64();
        self.became_polite = Some(BecamePolite { after_s, why });
    }

    /// What went well, and could go better.
    pub fn warning(&self) -> Option<String> {
        (self.silent_flows > 0).then(|| {
            let (what, remedy) = match self.carrier {
                Some(Carrier::Tcp) => (
                    "connections",
                    "does something between both ends forget connections, or close them?",
                ),
                _ => (
                    "flows",
                    "are all UDP ports of --ports open in firewalls at both ends?",
                ),
            };
            format!(
                "nothing came back from {} of {} {what}, and the others did their work: {remedy}",
                self.silent_flows, self.flows
            )
        })
    }

    /// The session failed, if it did; standard error has it too.
    pub fn note_error(&mut self, error: Option<anyhow::Error>) {
        self.set_error(error);
        for error in &self.errors {
            eprintln!("fatpath: {}", error.message);
        }
    }

    /// The session failed, if it did.
    pub fn set_error(&mut self, error: Option<anyhow::Error>) {
        let messages = error.iter().map(|error| cut(format!("{error:#}")));
        self.errors = messages.map(|message| SessionError { message }).collect();
    }

    /// Everything is at its place.
    pub fn is_success(&self) -> bool {
        self.failed == 0 && self.errors.is_empty()
    }

    /// It has ended.
    pub fn end(&mut self) {
        self.seconds = self.begun.elapsed().as_secs_f64();
        self.rate_bps = self.bytes as f64 * 8.0 / self.seconds;
        let by_tcp = self.carrier == Some(Carrier::Tcp);
        self.limit_times_s = LimitTimes::of(&self.sender_times, &self.receiver_times, by_tcp);
        self.limited_by = self.limit_times_s.map(|times| times.most());
    }

    /// What held it back, of a transfer that lasted.
    fn shown_limit(&self) -> String {
        let lasted = |times: &LimitTimes| times.total_s() >= LEAST_TOLD_S;
        let times = self.limit_times_s.filter(lasted);
        times.map_or(String::new(), |times| {
            let by_tcp = self.carrier == Some(Carrier::Tcp);
            format!("\n{}", times.sentence(by_tcp))
        })
    }

    /// Datagrams sent again, of all.
    fn loss(&self) -> f64 {
        self.retransmits as f64 / self.sent_pkts.max(1) as f64
    }

    fn shown_way(&self) -> String {
        match self.carrier {
            Some(Carrier::Tcp) => {
                format!(" by TCP ({})", show_count(self.flows as u64, "connection"))
            }
            _ => String::new(),
        }
    }

    /// The last lines for people.
    pub fn summary(&self) -> String {
        let verb = if self.is_dry {
            "would be stored"
        } else {
            "stored"
        };
        let mut lines: Vec<_> = self
            .failures
            .iter()
            .map(|failure| format!("{}: {}", failure.path, failure.why))
            .collect();
        if self.is_dry {
            let deletions = self.deletions.iter();
            lines.extend(deletions.map(|path| format!("{path}: would be deleted")));
        }
        let unlisted = self.failed - self.failures.len() as u64;
        if unlisted > 0 {
            lines.push(format!("and {unlisted} more"));
        }
        let mut parts = vec![format!(
            "{} {verb}",
            show_count(self.stored, "entry").replace("entrys", "entries")
        )];
        if self.deleted > 0 {
            let verb = verb.replace("stored", "deleted");
            parts.push(format!("{} {verb}", self.deleted));
        }
        if self.skipped > 0 {
            parts.push(format!("{} there already", self.skipped));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        let rate = show_rate(self.rate_bps as u64);
        lines.push(format!(
            "{}; {} in {:.1} s, {rate}{}; {:.2} % sent again, round trip {}{}",
            parts.join(", "),
            show_bytes(self.bytes),
            self.seconds,
            self.shown_way(),
            100.0 * self.loss(),
            show_time(self.rtt_us.into()),
            self.shown_limit(),
        ));
        lines.join("\n")
    }
}

fn listed(text: &[u8]) -> String {
    cut(shown(text))
}

/// The beginning of what is very long.
fn cut(text: String) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The line that shows how it goes.
pub struct Progress {
    bar: ProgressBar,
    drawn: Instant,
    /// At the last drawing: when, and bytes.
    last: (Instant, u64),
}

impl Progress {
    /// On standard error, where that is a terminal and `is_wanted`; without how much is left, where nobody knows the end.
    pub fn new(is_wanted: bool, has_end: bool) -> Progress {
        let target = match is_wanted {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = match has_end {
            true => "{percent:>3}% {bytes}/{total_bytes}  {msg}  {eta} left",
            false => "{bytes}  {msg}",
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.expect("the templates are well-formed"));
        Progress {
            bar,
            drawn: Instant::now(),
            last: (Instant::now(), 0),
        }
    }

    /// So many of so many bytes are there.
    pub fn show(&mut self, bytes: u64, of: u64, report: &Report) {
        if self.bar.is_hidden() || self.drawn.elapsed() < DRAW_EVERY {
            return;
        }
        self.drawn = Instant::now();
        let elapsed_s = self.last.0.elapsed().as_secs_f64().max(1e-3);
        let rate_bps = bytes.saturating_sub(self.last.1) as f64 * 8.0 / elapsed_s;
        self.last = (Instant::now(), bytes);
        self.bar.set_length(of);
        self.bar.set_position(bytes);
        self.bar.set_message(format!(
            "{}  rtt {}  {:.2} % sent again",
            show_rate(rate_bps as u64),
            show_time(report.rtt_us.into()),
            100.0 * report.loss(),
        ));
    }

    /// Takes the line away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
