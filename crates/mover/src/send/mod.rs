// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending end: names what there is, sends what is wanted of it, says what was read, and takes the answers.

mod input;
mod source;
mod walk;

use crate::carrier::SendEnd;
use crate::control::Control;
use crate::limits::{MOST_ATTRIBUTE_BYTES, MOST_UNANSWERED, open_files};
use crate::protocol::{
    Answer, Entry, Figures, Hole, Kind, MOST_ITEMS, Message, Outcome, Problem, Sends,
};
use crate::report::{Progress, Report};
use crate::session::Session;
use anyhow::{Context, Result, bail, ensure};
use fatpath_bottleneck::disk::{LARGE_BYTES, MOST_FILES, Measuring};
use fatpath_bottleneck::sender::{Account, Idle};
use fatpath_flow::rude::Permission;
use fatpath_transport::Extent;
use fatpath_tree::Tree;
use fatpath_tree::attributes::weight_bytes;
use source::{Files, Found, READING};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use walk::Walked;

pub use walk::own_name;

/// The transport has this much to send where there is as much: what it was given cannot be taken back.
const AHEAD_BYTES: u64 = 4 << 20;
/// Extents that wait, at most.
const MOST_QUEUED: usize = 1 << 20;
/// How long a step waits when nothing happens; control messages wait as long.
const WAIT: Duration = Duration::from_millis(5);
/// How often the other end is told how the transport stands.
const FIGURES_EVERY: Duration = Duration::from_millis(500);
/// A message's entries: with the longest paths and links it stays below the longest message.
const MOST_ENTRIES: usize = MOST_ITEMS / 2;
/// And so many bytes of their attributes, or those of one entry more.
const MOST_MESSAGE_ATTRIBUTES: usize = 1 << 20;

/// What is to be sent.
pub enum Given<'a> {
    /// Files and folders of a tree.
    Paths(&'a Sends, Arc<Tree>),
    /// Standard input, to be a file of this name.
    Input(Vec<u8>),
}

/// Sends what is `given` over `session`.
///
/// # Errors
/// The session cannot go on. What fails of single entries is in the report.
pub fn run(
    session: Session,
    given: &Given,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<()> {
    let most_open = open_files();
    // While one flow of several stands, what the others bring is kept, too.
    let most_kept = session.window_bytes() + AHEAD_BYTES;
    let (walked, tree, input) = match given {
        Given::Paths(sends, tree) => (walk::start(sends, tree.clone())?, tree.clone(), None),
        Given::Input(name) => {
            let (walked, input) = input::named(name, most_kept).context("standard input")?;
            (walked, Arc::new(Tree::Everywhere), Some(input))
        }
    };
    report.note_session(&session);
    report.is_given = true;
    let (mut control, end, permission) = session.into_sender()?;
    report.is_rude = permission.is_some();
    if input.is_some() {
        control.nothing_is_kept();
    }
    let mut files = Files::new(tree, report.flows);
    files.input = input;
    files.tells_holes = matches!(given, Given::Paths(sends, _) if sends.sparse);
    let mut sending = Sending {
        control,
        end,
        permission,
        walked: Some(walked),
        next_object: 0,
        found: HashMap::new(),
        files,
        most_open,
        queue: VecDeque::new(),
        holes: vec![],
        told: Instant::now(),
        attribute_bytes: 0,
        named_bytes: 0,
        settled_bytes: 0,
        account: Account::default(),
        wanted_bytes: 0,
        beginnings: vec![],
        measuring: None,
    };
    let done = sending
        .all(report, progress)
        .and_then(|()| sending.finish(report));
    match done {
        Ok(()) => {
            sending.control.end(None);
            Ok(())
        }
        Err(error) => {
            sending
                .control
                .end(Some(Message::Failure(format!("{error:#}"))));
            Err(error)
        }
    }
}

struct Sending {
    control: Control,
    end: SendEnd,
    /// `None`: it has congestion control.
    permission: Option<Permission>,
    /// `None`: all was found.
    walked: Option<mpsc::Receiver<Walked>>,
    next_object: u32,
    /// What has no final answer.
    found: HashMap<u32, Found>,
    files: Files,
    /// Files that are open at once.
    most_open: usize,
    /// What is wanted and not yet given to the transport.
    queue: VecDeque<Extent>,
    /// What is wanted and need not be sent, to be told.
    holes: Vec<Hole>,
    told: Instant,
    /// Of the attributes of what has no final answer.
    attribute_bytes: usize,
    /// Bytes of all files that were named, and of those that have a final answer.
    named_bytes: u64,
    settled_bytes: u64,
    account: Account,
    /// Bytes that the other end asked for.
    wanted_bytes: u64,
    /// The first files of which it wants something, to measure the disk by.
    beginnings: Vec<PathBuf>,
    measuring: Option<Measuring>,
}

impl Sending {
    fn all(&mut self, report: &mut Report, progress: &mut Progress) -> Result<()> {
        while self.walked.is_some() || !self.found.is_empty() {
            self.name_entries(report)?;
            self.control.heard(self.end.heard());
            while let Some(message) = self.control.poll()? {
                match message {
                    Message::Answers(answers) => answers
                        .into_iter()
                        .try_for_each(|answer| self.take(answer, report))?,
                    Message::Problems(problems) => problems
                        .iter()
                        .for_each(|problem| report.note_problem(problem)),
                    Message::Times(times) => report.receiver_times = times,
                    Message::Disk(figures) => report.note_receiver_disk(figures),
                    Message::Busy => self.end.peer_is_alive(),
                    _ => bail!("the other end says what a receiver does not say"),
                }
            }
            self.follow_permission(report);
            self.top_up(report);
            self.take_input(report);
            if report.moved_bytes > 0 && self.account.begin() {
                self.end.take_waits(); // for nothing that was to be sent
            }
            let stepped = self.end.step(&mut self.files, WAIT);
            stepped.map_err(|error| self.control.cause_of(error))?;
            self.keep_account();
            self.tell_checksums();
            if self.told.elapsed() >= FIGURES_EVERY && self.control.has_room() {
                self.figures(report);
            }
            let waiting = self.end.unsent_bytes()
                + self
                    .queue
                    .iter()
                    .take(64)
                    .map(|extent| extent.bytes)
                    .sum::<u64>();
            progress.show(
                report.moved_bytes.saturating_sub(waiting) + self.settled_bytes,
                self.named_bytes,
                report,
            );
        }
        Ok(())
    }

    fn keep_account(&mut self) {
        let idle_ns = self.end.take_data_ns();
        if idle_ns > 0 {
            self.account.idled(self.idle(), idle_ns);
        }
        if self.account.is_due() {
            self.account.settle(&self.end.take_waits());
        }
    }

    /// Why there is nothing to send.
    fn idle(&self) -> Idle {
        let mut found = self.found.values();
        let is_asked =
            !self.queue.is_empty() || found.any(|found| found.is_file && !found.is_wanted);
        let hashing = &self.files.hashing;
        match &self.files.input {
            Some(input) if input.is_late() => Idle::Source,
            // What is queued has no file that may be opened.
            _ if is_asked => Idle::Answers,
            _ if self.walked.is_some() && self.may_name() => Idle::Source,
            _ if !self.end.is_done() => Idle::Path,
            _ if hashing.waits_for_disk() => Idle::Disk,
            _ if hashing.is_busy() => Idle::Processor,
            _ => Idle::Answers,
        }
    }

    /// A sender that this host does not permit any more to go without congestion control goes on with it.
    fn follow_permission(&mut self, report: &mut Report) {
        if let Some(why) = self.permission.as_ref().and_then(Permission::ended) {
            self.permission = None;
            self.end.be_polite_now();
            report.note_polite(why);
        }
    }

    /// Tells of what was found, as far as answers keep up.
    fn name_entries(&mut self, report: &mut Report) -> Result<()> {
        let (mut entries, mut problems, mut attribute_bytes) = (vec![], vec![], 0);
        while self.may_name()
            && let Some(walked) = &self.walked
            && entries.len().max(problems.len()) < MOST_ENTRIES
            && attribute_bytes < MOST_MESSAGE_ATTRIBUTES
        {
            match walk::next(walked)? {
                Some(Walked::Entry {
                    entry,
                    path,
                    identity,
                }) => {
                    let object = self.next_object;
                    self.next_object = object
                        .checked_add(1)
                        .context("there are more than 2^32 entries")?;
                    let size = match entry.kind {
                        Kind::File { size, .. } => size,
                        _ => 0,
                    };
                    self.named_bytes += size;
                    let weight_bytes = weight_bytes(&entry.attributes);
                    attribute_bytes += weight_bytes;
                    self.attribute_bytes += weight_bytes;
                    let found = Found {
                        name: entry.path.clone(),
                        path,
                        identity,
                        size,
                        attribute_bytes: weight_bytes,
                        is_file: matches!(entry.kind, Kind::File { .. } | Kind::Stream),
                        is_wanted: false,
                        is_wanted_whole: false,
                        is_opened: false,
                    };
                    self.found.insert(object, found);
                    entries.push(Entry { object, ..entry });
                }
                Some(Walked::Problem(problem)) => problems.push(problem),
                Some(Walked::End) => self.walked = None,
                None => break,
            }
        }
        problems
            .iter()
            .for_each(|problem: &Problem| report.note_problem(problem));
        if !problems.is_empty() {
            self.control.say(Message::Problems(problems));
        }
        if !entries.is_empty() {
            self.control.say(Message::Entries(entries));
        }
        self.measure_disk(report);
        Ok(())
    }

    /// Once much is wanted, the beginning of that is read.
    fn measure_disk(&mut self, report: &mut Report) {
        if self.measuring.is_none() && self.wanted_bytes >= LARGE_BYTES && self.is_of_files() {
            let mut paths = std::mem::take(&mut self.beginnings).into_iter();
            let tree = self.files.tree.clone();
            let open = move || paths.next().map(|path| tree.open(&path, READING));
            self.measuring = Some(Measuring::reads(open));
        }
        if let Some(figures) = self.measuring.as_ref().and_then(Measuring::take) {
            report.note_sender_disk(figures);
            self.control.say(Message::Disk(figures));
        }
    }

    /// Answers keep up with what was named.
    fn may_name(&self) -> bool {
        self.control.has_room()
            && self.found.len() < MOST_UNANSWERED
            && self.attribute_bytes < MOST_ATTRIBUTE_BYTES
    }

    fn is_of_files(&self) -> bool {
        self.files.input.is_none()
    }

    fn take(&mut self, answer: Answer, report: &mut Report) -> Result<()> {
        let Answer { object, outcome } = answer;
        let found = self
            .found
            .get_mut(&object)
            .context("the other end answers what was not asked")?;
        if let Outcome::Wanted(ranges) = outcome {
            ensure!(
                found.is_file && !std::mem::replace(&mut found.is_wanted, true),
                "the other end wants what was not offered"
            );
            if let Some(input) = &mut self.files.input {
                input.is_wanted(object);
                return Ok(());
            }
            return self.want(object, &ranges);
        }
        report.note(&found.name, found.size, &outcome);
        self.settled_bytes += if found.is_wanted { 0 } else { found.size };
        self.attribute_bytes -= found.attribute_bytes;
        self.found.remove(&object);
        self.files.close(object);
        Ok(())
    }

    fn want(&mut self, object: u32, ranges: &[(u64, u64)]) -> Result<()> {
        let Some(found) = self.found.get_mut(&object) else {
            return Ok(());
        };
        let mut last = 0;
        for (from, until) in ranges {
            let is_sound = last <= *from && from < until && *until <= found.size;
            ensure!(is_sound, "the other end wants what is not in a file");
            last = *until;
        }
        ensure!(
            self.queue.len() + ranges.len() <= MOST_QUEUED,
            "the other end wants too many stretches"
        );
        found.is_wanted_whole = ranges == [(0, found.size)] || found.size == 0;
        let wanted: u64 = ranges.iter().map(|(from, until)| until - from).sum();
        self.settled_bytes += found.size - wanted;
        self.wanted_bytes += wanted;
        if wanted > 0 && self.beginnings.len() < MOST_FILES {
            self.beginnings.push(found.path.clone());
        }
        // A file of which nothing is wanted is opened too, for its checksum.
        let nothing = [(0, 0)];
        let ranges = if ranges.is_empty() { &nothing } else { ranges };
        let extents = ranges.iter().map(|(from, until)| Extent {
            object,
            offset: *from,
            bytes: until - from,
        });
        self.queue.extend(extents);
        Ok(())
    }

    /// Gives the transport what it can soon send, of files that can be read.
    fn top_up(&mut self, report: &mut Report) {
        while self.end.unsent_bytes() < AHEAD_BYTES
            && self.files.count() < self.most_open
            && self.holes.len() < MOST_ITEMS
            && let Some(extent) = self.queue.pop_front()
        {
            if self.is_readable(extent.object)
                && let Some(data) = self.first_data(extent)
            {
                report.moved_bytes += data.bytes;
                self.end.send(data);
            }
        }
        if !self.holes.is_empty() && self.control.has_room() {
            let holes = std::mem::take(&mut self.holes);
            self.control.say(Message::Holes(holes));
        }
    }

    /// What is to be sent of it next: the hole before that is noted, and what follows waits.
    fn first_data(&mut self, extent: Extent) -> Option<Extent> {
        let Extent { object, offset, .. } = extent;
        let end = offset + extent.bytes;
        let (from, until) = self.files.data(object, offset, end, AHEAD_BYTES);
        if offset < from {
            self.settled_bytes += from - offset;
            let (from, until) = (offset, from);
            self.holes.push(Hole {
                object,
                from,
                until,
            });
        }
        let part = |from, until| Extent {
            object,
            offset: from,
            bytes: until - from,
        };
        if until < end {
            self.queue.push_front(part(until, end));
        }
        (from < until).then(|| part(from, until))
    }

    /// Gives the transport what has come, and says when that was all.
    fn take_input(&mut self, report: &mut Report) {
        let Some(input) = &mut self.files.input else {
            return;
        };
        let read = report.moved_bytes;
        input.forget(self.end.lowest().map_or(read, |(_, offset)| offset));
        while self.end.unsent_bytes() < AHEAD_BYTES {
            match input.next(AHEAD_BYTES) {
                None => return,
                Some(Ok(extent)) => {
                    report.moved_bytes += extent.bytes;
                    self.named_bytes += extent.bytes;
                    self.end.send(extent);
                }
                Some(Err(ended)) => {
                    let (object, size) = (ended.object, ended.size);
                    if let Some(found) = self.found.get_mut(&object) {
                        found.size = size;
                    }
                    self.control.say(Message::Ended { object, size });
                    self.files.ended(ended);
                    return;
                }
            }
        }
    }

    /// Opens the file when its turn comes.
    fn is_readable(&mut self, object: u32) -> bool {
        if let Some(found) = self.found.get_mut(&object)
            && !std::mem::replace(&mut found.is_opened, true)
        {
            self.files.open(object, found);
        }
        self.files.is_open(object)
    }

    fn tell_checksums(&mut self) {
        let checksums = self.files.take_checksums();
        for some in checksums.chunks(MOST_ITEMS) {
            self.control.say(Message::Checksums(some.to_vec()));
        }
    }

    fn figures(&mut self, report: &mut Report) {
        self.told = Instant::now();
        self.account.settle(&self.end.take_waits());
        let figures = self.end.figures();
        let figures = Figures {
            rtt_us: figures.srtt_us,
            sent_pkts: figures.sent_pkts,
            retransmits: figures.retransmits,
            marked_pkts: figures.marked_pkts,
            silent_flows: self.end.given_up() as u16,
            datagram_bytes: self.end.datagram_bytes(),
            times: self.account.times(),
        };
        report.note_figures(&figures);
        self.control.say(Message::Figures(figures));
    }

    /// The receiver has all; a close that is lost is no loss. It may still tell of folders.
    fn finish(&mut self, report: &mut Report) -> Result<()> {
        self.figures(report);
        self.end.close(&mut self.files);
        self.control.say(Message::Finished);
        loop {
            match self.control.answer()? {
                Message::Problems(problems) => problems
                    .iter()
                    .for_each(|problem| report.note_problem(problem)),
                Message::Deleted { count, paths } => report.note_deleted(count, &paths),
                Message::Times(times) => report.receiver_times = times,
                Message::Disk(figures) => report.note_receiver_disk(figures),
                Message::Busy => {}
                Message::Finished => return Ok(()),
                _ => bail!("the other end says what a receiver does not say"),
            }
        }
    }
}
