// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end: opens what the sender names, says what it lacks, writes what arrives, and says what became of it.

mod finish;
mod folders;
mod output;
mod part;
mod store;
mod target;

use crate::arrivals::RecvEnd;
use crate::control::Control;
use crate::limits::{MOST_ATTRIBUTE_BYTES, MOST_UNANSWERED, open_files};
use crate::protocol::{
    Answer, Checksum, Entry, Kind, MOST_ITEMS, Message, Outcome, Problem, Receives,
};
use crate::report::{MOST_LISTED, Progress, Report};
use crate::session::Session;
use anyhow::{Result, bail, ensure};
use fatpath_bottleneck::disk::{LARGE_BYTES, Measuring};
use fatpath_bottleneck::receiver::{Account, Behind, Into};
use fatpath_transport::frame::Write;
use fatpath_tree::attributes::weight_bytes;
use fatpath_tree::delete::Deleted;
use finish::{Ask, Threads};
pub use output::run as run_to_output;
use part::{ENDLESS, Part, Parts};
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use store::Finished;
use target::{Prepared, Target};

/// How long a step waits when nothing happens; control messages wait as long.
const WAIT: Duration = Duration::from_millis(5);
/// Entries that are prepared between two looks at the socket.
const PREPARE_AT_ONCE: usize = 32;
/// A file's beginning is hashed while the rest arrives, so much at a time.
const HASH_BYTES: u64 = 4 << 20;
/// How often journals are noted, and how often data are synced so that their records hold after a reboot.
const NOTE_EVERY: Duration = Duration::from_millis(100);
const SYNC_EVERY: Duration = Duration::from_secs(2);
/// What the attributes of one message's entries take in memory, at most.
const MOST_BEYOND: usize = 2 << 20;
/// How often the other end is told what keeps this one.
const TIMES_EVERY: Duration = Duration::from_millis(500);
/// A message with more stretches than this is told alone.
const MANY_RANGES: usize = 100;

/// Receives over `session` what the other end sends.
///
/// # Errors
/// The session cannot go on. What fails of single entries is in the report.
pub fn run(
    session: Session,
    receives: Receives,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<()> {
    let most_open = open_files();
    report.note_session(&session);
    let (control, end) = session.into_receiver()?;
    let takes_holes = receives.sparse;
    let target = match Target::open(receives) {
        Ok(target) => target,
        Err(error) => {
            control.end(Some(Message::Failure(format!("{error:#}"))));
            return Err(error);
        }
    };
    let (threads, finished) = Threads::start();
    let mut receiving = Receiving {
        control,
        end,
        target,
        takes_holes,
        most_open,
        backlog: VecDeque::new(),
        named: HashMap::new(),
        attribute_bytes: 0,
        parts: Parts::default(),
        open: 0,
        threads,
        finished,
        answers: vec![],
        untold: 0,
        noted: Instant::now(),
        synced: Instant::now(),
        named_bytes: 0,
        there_bytes: 0,
        account: Account::start(Into::Files),
        told: Instant::now(),
        wanted_bytes: 0,
        measuring: None,
    };
    let ended = receiving.all(report, progress);
    let Receiving {
        control,
        end,
        threads,
        mut parts,
        ..
    } = receiving;
    // After an error, what has arrived need not come again.
    end.finish(|writes| writes.iter().for_each(|write| parts.write(write)));
    drop(parts); // journals are noted
    threads.end(ended.is_err());
    match ended {
        Ok(()) => {
            control.end(None);
            Ok(())
        }
        Err(error) => {
            control.end(Some(Message::Failure(format!("{error:#}"))));
            Err(error)
        }
    }
}

/// What the other end has named.
struct Named {
    path: Vec<u8>,
    size: u64,
    attribute_bytes: usize,
}

struct Receiving {
    control: Control,
    end: RecvEnd,
    target: Target,
    takes_holes: bool,
    most_open: usize,
    /// Named, and not looked at.
    backlog: VecDeque<Entry>,
    /// Without a final answer.
    named: HashMap<u32, Named>,
    /// Of the attributes of those.
    attribute_bytes: usize,
    parts: Parts,
    /// Parts and folders that are open, those that the threads have among them.
    open: usize,
    threads: Threads,
    finished: mpsc::Receiver<Finished>,
    answers: Vec<Answer>,
    /// Final ones among them: the other end does not read.
    untold: usize,
    noted: Instant,
    synced: Instant,
    /// Bytes of all files that were named, and of these what was there before.
    named_bytes: u64,
    there_bytes: u64,
    account: Account,
    /// When the other end was told what keeps this one.
    told: Instant,
    /// Of files, so far.
    wanted_bytes: u64,
    measuring: Option<Measuring>,
}

impl Receiving {
    fn all(&mut self, report: &mut Report, progress: &mut Progress) -> Result<()> {
        loop {
            self.control.heard(self.end.heard());
            while let Some(message) = self.control.poll()? {
                if self.take(message, report)? {
                    return Ok(());
                }
            }
            self.prepare(report);
            let parts = &mut self.parts;
            let write = |writes: &[Write<'_>]| writes.iter().for_each(|write| parts.write(write));
            let stepped = self.end.step(WAIT, write);
            stepped.map_err(|error| self.control.cause_of(error))?;
            self.keep_account();
            self.pass_on(report);
            self.keep_journals();
            self.tell_problems(report);
            self.tell();
            self.tell_disk(report);
            if self.told.elapsed() >= TIMES_EVERY && self.control.has_room() {
                self.tell_times(report);
            }
            report.moved_bytes = self.parts.bytes;
            progress.show(
                self.there_bytes + self.parts.bytes,
                self.named_bytes,
                report,
            );
        }
    }

    fn keep_account(&mut self) {
        let behind = Behind {
            holds_much: self.end.take_held_much(),
            has_backlog: !self.backlog.is_empty(),
        };
        let waited_ns = self.end.take_waited_ns();
        self.account
            .stepped(behind, self.threads.finishing(), waited_ns);
    }

    fn tell_times(&mut self, report: &mut Report) {
        self.told = Instant::now();
        report.receiver_times = self.account.times(self.end.overrun_us());
        self.control.say(Message::Times(report.receiver_times));
    }

    /// Says whether it was the last.
    fn take(&mut self, message: Message, report: &mut Report) -> Result<bool> {
        match message {
            Message::Entries(entries) => {
                for entry in entries {
                    let size = match entry.kind {
                        Kind::File { size, .. } => size,
                        _ => 0,
                    };
                    let named = Named {
                        path: entry.path.clone(),
                        size,
                        attribute_bytes: weight_bytes(&entry.attributes),
                    };
                    self.attribute_bytes += named.attribute_bytes;
                    let before = self.named.insert(entry.object, named);
                    ensure!(before.is_none(), "the other end gives a number twice");
                    ensure!(
                        self.named.len() + self.untold <= MOST_UNANSWERED
                            && self.attribute_bytes <= MOST_ATTRIBUTE_BYTES + MOST_BEYOND,
                        "the other end names too much at once"
                    );
                    self.named_bytes = self.named_bytes.saturating_add(size);
                    self.backlog.push_back(entry);
                }
            }
            Message::Problems(problems) => problems
                .iter()
                .for_each(|problem| report.note_problem(problem)),
            Message::Holes(holes) => {
                ensure!(
                    self.takes_holes,
                    "the other end tells of holes, which were not asked for"
                );
                for hole in holes {
                    let bytes = self.parts.hole(&hole);
                    self.there_bytes = self.there_bytes.saturating_add(bytes);
                }
            }
            Message::Ended { object, size } => {
                if let Some(named) = self.named.get_mut(&object) {
                    named.size = size;
                }
                self.named_bytes = self.named_bytes.saturating_add(size);
                self.parts.end(object, size);
            }
            Message::Checksums(checksums) => checksums
                .into_iter()
                .for_each(|checksum| self.check(checksum, report)),
            Message::Figures(figures) => report.note_figures(&figures),
            Message::Disk(figures) => report.note_sender_disk(figures),
            Message::Finished => {
                ensure!(
                    self.named.is_empty(),
                    "the other end ends before everything has an answer"
                );
                self.finish(report);
                return Ok(true);
            }
            Message::Busy => {}
            _ => bail!("the other end says what a sender does not say"),
        }
        Ok(false)
    }

    /// What fails after the last file is told too.
    fn finish(&mut self, report: &mut Report) {
        self.tell_times(report);
        self.delete(report);
        self.target.finish();
        self.tell_problems(report);
        self.control.say(Message::Finished);
    }

    fn delete(&mut self, report: &mut Report) {
        let (mut paths, mut stays, mut count) = (vec![], vec![], 0);
        self.target
            .delete(report.failed == 0, &mut |deleted| match deleted {
                Deleted::Gone(path) => {
                    count += 1;
                    if paths.len() < MOST_LISTED {
                        paths.push(path);
                    }
                }
                Deleted::Stays(path, why) if stays.len() < MOST_LISTED => {
                    stays.push(Problem { path, why });
                }
                Deleted::Stays(..) => {} // those that are listed show that it failed
            });
        report.note_deleted(count, &paths);
        stays
            .into_iter()
            .for_each(|problem| self.target.note(problem));
        // What is not listed is counted with the first.
        let unlisted = count - paths.len() as u64;
        for (number, some) in paths.chunks(MOST_ITEMS).enumerate() {
            let more = if number == 0 { unlisted } else { 0 };
            self.control.say(Message::Deleted {
                count: some.len() as u64 + more,
                paths: some.to_vec(),
            });
        }
    }

    fn tell_problems(&mut self, report: &mut Report) {
        let problems = self.target.take_problems();
        problems
            .iter()
            .for_each(|problem| report.note_problem(problem));
        for some in problems.chunks(MOST_ITEMS / 2) {
            self.control.say(Message::Problems(some.to_vec()));
        }
    }

    fn check(&mut self, checksum: Checksum, report: &mut Report) {
        let Checksum { object, blake3 } = checksum;
        match blake3 {
            _ if !self.named.contains_key(&object) => {} // it failed here meanwhile
            Ok(blake3) => self.threads.ask(Ask::Checksum(object, blake3)),
            Err(why) => match self.parts.parts.remove(&object) {
                Some(mut part) => {
                    part.discard();
                    drop(part);
                    self.threads.ask(Ask::Forget(object, None));
                    self.ended(object, Outcome::Failed(why), report);
                }
                None => self.threads.ask(Ask::Forget(object, Some(why))),
            },
        }
    }

    /// Looks at some of what was named, as long as files may be opened.
    fn prepare(&mut self, report: &mut Report) {
        for _ in 0..PREPARE_AT_ONCE {
            let has_room = self.control.has_room() && self.target.has_room();
            if self.open >= self.most_open || !has_room {
                return;
            }
            let Some(entry) = self.backlog.pop_front() else {
                return;
            };
            let prepared = self.target.prepare(&entry);
            self.go_on(entry.object, prepared, report);
        }
    }

    fn go_on(&mut self, object: u32, prepared: Prepared, report: &mut Report) {
        match prepared {
            Prepared::Done(outcome) => self.answer(object, outcome, report),
            Prepared::Waits => {}
            Prepared::Named(folder) => {
                self.open += 1;
                self.threads.ask(Ask::Named { object, folder });
            }
            Prepared::Part(part, wanted) => {
                self.there_bytes = self.there_bytes.saturating_add(part.bytes());
                self.open += 1;
                if part.is_whole() {
                    self.parts.ready.push(object);
                }
                self.measure_disk(&part, &wanted);
                self.parts.parts.insert(object, part);
                self.answer(object, Outcome::Wanted(wanted), report);
            }
        }
    }

    /// While the other end reads that much is wanted, this one writes something to where it goes.
    fn measure_disk(&mut self, part: &Part, wanted: &[(u64, u64)]) {
        let bytes = wanted.iter().map(|(from, until)| until - from);
        let is_stream = part.spec.size == ENDLESS;
        self.wanted_bytes += if is_stream { 0 } else { bytes.sum() };
        if self.measuring.is_none() && self.wanted_bytes >= LARGE_BYTES {
            self.measuring = Some(Measuring::writes(part.spec.folder.clone()));
        }
    }

    fn tell_disk(&mut self, report: &mut Report) {
        if let Some(figures) = self.measuring.as_ref().and_then(Measuring::take) {
            report.note_receiver_disk(figures);
            self.control.say(Message::Disk(figures));
        }
    }

    /// A part is a file now, or is given up and gone; or another name is on the disk, or is not.
    fn ended(&mut self, object: u32, outcome: Outcome, report: &mut Report) {
        self.open -= 1;
        if let Some(named) = self.named.get(&object) {
            let others = self.target.ended(&named.path, outcome == Outcome::Stored);
            self.answer(object, outcome, report);
            for (object, prepared) in others {
                self.go_on(object, prepared, report);
            }
        }
    }

    fn answer(&mut self, object: u32, outcome: Outcome, report: &mut Report) {
        if let Outcome::Wanted(ranges) = &outcome {
            let is_long = ranges.len() > MANY_RANGES;
            self.answers.push(Answer { object, outcome });
            if is_long {
                self.tell();
            }
            return;
        }
        if let Some(named) = self.named.remove(&object) {
            self.attribute_bytes -= named.attribute_bytes;
            report.note(&named.path, named.size, &outcome);
            self.untold += 1;
            self.answers.push(Answer { object, outcome });
        }
    }

    /// Answers wait here where the other end does not read.
    fn tell(&mut self) {
        if !self.control.has_room() {
            return;
        }
        self.untold = 0;
        for answers in std::mem::take(&mut self.answers).chunks(MOST_ITEMS) {
            self.control.say(Message::Answers(answers.to_vec()));
        }
    }

    /// What is whole goes to the threads, what they finished becomes answers.
    fn pass_on(&mut self, report: &mut Report) {
        for object in std::mem::take(&mut self.parts.ready) {
            let Some(mut part) = self.parts.parts.remove(&object) else {
                continue;
            };
            part.note();
            match part.take_failure() {
                None => self.threads.ask(Ask::Whole(part)),
                Some(error) => {
                    drop(part);
                    self.threads.ask(Ask::Forget(object, None));
                    self.ended(object, Outcome::Failed(error.to_string()), report);
                }
            }
        }
        while let Ok(finished) = self.finished.try_recv() {
            match finished {
                Finished::Stored(object) => self.ended(object, Outcome::Stored, report),
                Finished::Failed(object, why) => self.ended(object, Outcome::Failed(why), report),
                Finished::Synced(object, stretches) => self.mark(object, stretches),
                Finished::Lacks(problem) => self.target.note(problem),
            }
        }
    }

    fn mark(&mut self, object: u32, stretches: Option<u64>) {
        let Some(part) = self.parts.parts.get_mut(&object) else {
            return;
        };
        part.is_syncing = false;
        if let Some(stretches) = stretches
            && let Some(journal) = &mut part.spec.journal
        {
            let _ = journal.mark(stretches); // then a reboot costs more
        }
    }

    fn keep_journals(&mut self) {
        if self.noted.elapsed() < NOTE_EVERY {
            return;
        }
        self.noted = Instant::now();
        let syncs = self.synced.elapsed() >= SYNC_EVERY;
        if syncs {
            self.synced = Instant::now();
        }
        let long = self
            .parts
            .parts
            .values_mut()
            .filter(|part| part.spec.journal.is_some() || part.spec.size == ENDLESS);
        for part in long {
            part.note();
            let (object, file, prefix) = (part.spec.object, part.spec.file.clone(), part.prefix());
            if prefix >= part.hashed_until + HASH_BYTES && self.threads.hash_early() {
                part.hashed_until = prefix;
                let file = file.clone();
                self.threads.ask(Ask::Hash {
                    object,
                    file,
                    until: prefix,
                });
            }
            // One at a time: a disk that is slow, or stands, is asked for no more meanwhile.
            let due = syncs && !part.is_syncing;
            let Some(journal) = part.spec.journal.as_ref().filter(|_| due) else {
                continue;
            };
            let stretches = journal.stretches();
            if stretches > part.synced_stretches {
                (part.synced_stretches, part.is_syncing) = (stretches, true);
                let journal = journal.file();
                self.threads.ask(Ask::Sync {
                    object,
                    file,
                    journal,
                    stretches,
                });
            }
        }
    }
}
