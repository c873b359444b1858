// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file to standard output: in order, so that what arrives ahead of a hole waits in memory, no more than the window. What
//! has gone out cannot be taken back, and is compared with what the sender read at the end.

use super::TIMES_EVERY;
use crate::arrivals::RecvEnd;
use crate::control::Control;
use crate::protocol::{Answer, Entry, Kind, Message, Outcome};
use crate::report::{Progress, Report};
use crate::session::Session;
use anyhow::{Result, bail, ensure};
use fatpath_bottleneck::receiver::{Account, Behind, Finishing, Into};
use fatpath_transport::frame::Write as Arrived;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long a step waits when nothing happens; control messages wait as long.
const WAIT: Duration = Duration::from_millis(5);
/// Written at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// What a stretch that waits takes beside its bytes: short ones without number are not held.
const STRETCH_BYTES: u64 = 128;

/// Receives the file of this name over `session`, and writes it to `output`.
///
/// # Errors
/// The session cannot go on. That the file fails is in the report.
pub fn run(
    session: Session,
    name: &[u8],
    output: impl Write + AsFd,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<()> {
    let most_held = session.window_bytes();
    report.note_session(&session);
    let (mut control, end) = session.into_receiver()?;
    control.nothing_is_kept();
    let mut receiving = Receiving {
        control,
        end,
        stream: Stream::new(output, most_held),
        is_answered: false,
        checksum: None,
        account: Account::start(Into::Output),
        told: Instant::now(),
    };
    let ended = receiving.all(name, report, progress);
    let last = ended.as_ref().err();
    let last = last.map(|error| Message::Failure(format!("{error:#}")));
    receiving.control.end(last);
    ended
}

struct Receiving<W: Write> {
    control: Control,
    end: RecvEnd,
    stream: Stream<W>,
    is_answered: bool,
    /// What the sender read, or why it could not.
    checksum: Option<Result<[u8; 32], String>>,
    account: Account,
    told: Instant,
}

impl<W: Write + AsFd> Receiving<W> {
    fn all(&mut self, name: &[u8], report: &mut Report, progress: &mut Progress) -> Result<()> {
        loop {
            self.control.heard(self.end.heard());
            while let Some(message) = self.control.poll()? {
                match message {
                    Message::Entries(entries) => entries
                        .into_iter()
                        .try_for_each(|entry| self.take(entry, name))?,
                    Message::Problems(problems) => problems
                        .iter()
                        .for_each(|problem| report.note_problem(problem)),
                    Message::Checksums(checksums) => {
                        let of_it = |object| Some(object) == self.stream.object;
                        let mut checksums = checksums.into_iter();
                        if let Some(checksum) = checksums.find(|one| of_it(one.object)) {
                            self.checksum = Some(checksum.blake3);
                        }
                    }
                    Message::Figures(figures) => report.note_figures(&figures),
                    Message::Disk(figures) => report.note_sender_disk(figures),
                    Message::Busy => {}
                    Message::Finished => {
                        ensure!(
                            self.is_answered || self.stream.object.is_none(),
                            "the other end ends before the file has an answer"
                        );
                        note_nothing(self.stream.object, name, report);
                        self.tell_times(report);
                        self.control.say(Message::Finished);
                        return Ok(());
                    }
                    _ => bail!("the other end says what a sender does not say"),
                }
            }
            let stream = &mut self.stream;
            let stepped = self.end.step(WAIT, |writes| stream.take(writes));
            stepped.map_err(|error| self.control.cause_of(error))?;
            self.judge(name, report);
            self.keep_account();
            if self.told.elapsed() >= TIMES_EVERY && self.control.has_room() {
                self.tell_times(report);
            }
            report.moved_bytes = self.stream.next;
            progress.show(self.stream.next, self.stream.size, report);
        }
    }

    fn keep_account(&mut self) {
        let behind = Behind {
            holds_much: self.end.take_held_much(),
            has_backlog: self.stream.object.is_some() && self.stream.next == self.stream.size,
        };
        let waited_ns = self.end.take_waited_ns();
        self.account.stepped(behind, Finishing::Nothing, waited_ns);
    }

    fn tell_times(&mut self, report: &mut Report) {
        self.told = Instant::now();
        report.receiver_times = self.account.times(self.end.overrun_us());
        self.control.say(Message::Times(report.receiver_times));
    }

    fn take(&mut self, entry: Entry, name: &[u8]) -> Result<()> {
        let Kind::File { size, .. } = entry.kind else {
            bail!("the other end offers what is no file");
        };
        ensure!(
            entry.path == name && self.stream.object.is_none(),
            "the other end offers what was not asked for"
        );
        (self.stream.object, self.stream.size) = (Some(entry.object), size);
        let wanted = if size > 0 { vec![(0, size)] } else { vec![] };
        self.say(Outcome::Wanted(wanted));
        Ok(())
    }

    /// Says what became of it, once that is known.
    fn judge(&mut self, name: &[u8], report: &mut Report) {
        if self.is_answered || self.stream.object.is_none() {
            return;
        }
        let is_whole = self.stream.next == self.stream.size;
        let outcome = match (self.stream.failed.take(), &self.checksum) {
            (Some(error), _) => Outcome::Failed(format!("standard output: {error}")),
            (None, Some(Err(why))) => Outcome::Failed(why.clone()),
            (None, Some(Ok(_))) if !is_whole => return,
            (None, None) => return,
            (None, Some(Ok(checksum))) if *checksum == self.stream.checksum() => {
                match sync(self.stream.output.get_ref()) {
                    Ok(()) => Outcome::Stored,
                    Err(error) => Outcome::Failed(format!("standard output: {error}")),
                }
            }
            (None, Some(Ok(_))) => Outcome::Failed(
                "what went to standard output is not what was read there: do not use it".to_owned(),
            ),
        };
        self.is_answered = true;
        self.stream.is_over = true;
        report.note(name, self.stream.size, &outcome);
        self.say(outcome);
    }

    fn say(&self, outcome: Outcome) {
        if let Some(object) = self.stream.object {
            let answer = Answer { object, outcome };
            self.control.say(Message::Answers(vec![answer]));
        }
    }
}

/// What went out is on the disk, where it goes to one; a pipe, a terminal or a device has none.
fn sync(output: impl AsFd) -> io::Result<()> {
    match fatpath_tree::system::sync(output) {
        Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) => Ok(()),
        done => Ok(done?),
    }
}

/// An end that has offered nothing, and did not say why, is no success: who reads the output would take it for an empty file.
fn note_nothing(object: Option<u32>, name: &[u8], report: &mut Report) {
    if object.is_none() && report.is_success() {
        let why = "the other end offers no file of that name";
        report.note(name, 0, &Outcome::Failed(why.to_owned()));
    }
}

/// Puts what arrives in order.
struct Stream<W: Write> {
    output: BufWriter<W>,
    object: Option<u32>,
    size: u64,
    /// The byte that goes out next.
    next: u64,
    /// What arrived ahead of it, by its first byte.
    held: BTreeMap<u64, Vec<u8>>,
    /// Memory that this takes, and may take.
    held_bytes: u64,
    most_held: u64,
    hasher: blake3::Hasher,
    failed: Option<io::Error>,
    /// Nothing more goes out.
    is_over: bool,
}

impl<W: Write> Stream<W> {
    fn new(output: W, window_bytes: u64) -> Stream<W> {
        Stream {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            object: None,
            size: 0,
            next: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            // A sender of files has no shorter stretches than datagrams, 512 bytes at least, but the last of each.
            most_held: window_bytes + window_bytes / 2,
            hasher: blake3::Hasher::new(),
            failed: None,
            is_over: false,
        }
    }

    fn checksum(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// Whoever reads the output sets the pace: what waits for it counts against the sender's window.
    fn take(&mut self, writes: &[Arrived<'_>]) {
        if self.is_over || self.failed.is_some() {
            return;
        }
        let object = self.object;
        let mut of_it = writes.iter().filter(|write| Some(write.object) == object);
        let put = of_it.try_for_each(|write| self.put(write.offset, write.bytes));
        self.failed = put.and_then(|()| self.output.flush()).err();
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let other = || io::Error::other("the other end sends what is not in the file");
        let end = offset.checked_add(bytes.len() as u64);
        if offset < self.next || end.is_none_or(|end| end > self.size) {
            return Err(other());
        }
        if offset > self.next {
            self.held_bytes += bytes.len() as u64 + STRETCH_BYTES;
            let before = self.held.insert(offset, bytes.to_vec());
            let is_sound = before.is_none() && self.held_bytes <= self.most_held;
            return is_sound.then_some(()).ok_or_else(other);
        }
        self.write(bytes)?;
        while let Some(first) = self.held.first_entry()
            && *first.key() <= self.next
        {
            let (offset, bytes) = first.remove_entry();
            self.held_bytes -= bytes.len() as u64 + STRETCH_BYTES;
            if offset < self.next {
                return Err(other());
            }
            self.write(&bytes)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.hasher.update(bytes);
        self.next += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(size: u64, window_bytes: u64) -> Stream<Vec<u8>> {
        let mut stream = Stream::new(vec![], window_bytes);
        (stream.object, stream.size) = (Some(7), size);
        stream
    }

    proptest! {
        /// In whatever order stretches arrive, they go out in that of the file, and nothing is left in memory.
        #[test]
        fn what_arrives_in_any_order_goes_out_in_order(
            lengths in prop::collection::vec(1usize..300, 1..40),
            order in any::<u64>(),
        ) {
            let size: usize = lengths.iter().sum();
            let bytes: Vec<u8> = (0..size).map(|place| (place * 7 % 251) as u8).collect();
            let mut stretches: Vec<(usize, usize)> = lengths.iter().scan(0, |at, length| {
                *at += length;
                Some((*at - length, *at))
            }).collect();
            stretches.sort_by_key(|(from, _)| blake3::hash(&(order ^ *from as u64).to_le_bytes()).as_bytes()[0]);
            let mut stream = stream(size as u64, 1 << 20);
            for (from, until) in stretches {
                let bytes = &bytes[from..until];
                stream.take(&[Arrived { object: 7, offset: from as u64, bytes }]);
                stream.take(&[Arrived { object: 8, offset: 0, bytes }]);
            }
            prop_assert!(stream.failed.is_none());
            prop_assert_eq!((stream.held.len(), stream.held_bytes, stream.next), (0, 0, size as u64));
            prop_assert_eq!(stream.checksum(), *blake3::hash(&bytes).as_bytes());
            prop_assert_eq!(stream.output.get_ref(), &bytes);
        }
    }

    #[test]
    fn what_has_no_disk_is_not_synced_and_other_errors_count() {
        let (_read, write) = io::pipe().unwrap();
        sync(write).unwrap();
        sync(tempfile::tempfile().unwrap()).unwrap();
        let opened = |path, flags| rustix::fs::open(path, flags, rustix::fs::Mode::empty());
        sync(opened("/dev/null", rustix::fs::OFlags::WRONLY).unwrap()).unwrap();
        // A descriptor that is a place alone takes no fsync.
        let failed = sync(opened("/", rustix::fs::OFlags::PATH).unwrap()).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(Errno::BADF.raw_os_error()));
    }

    #[test]
    fn nothing_offered_is_a_failure() {
        let failures = |object: Option<u32>, report: &mut Report| {
            note_nothing(object, b"file", report);
            let whys = report.failures.iter().map(|failure| failure.why.clone());
            whys.collect::<Vec<_>>()
        };
        let mut report = Report::new(false);
        assert_eq!(failures(Some(0), &mut report), [""; 0]);
        assert_eq!(
            failures(None, &mut report),
            ["the other end offers no file of that name"]
        );
        let mut report = Report::new(false);
        report.note(b"file", 0, &Outcome::Failed("is a folder".to_owned()));
        assert_eq!(failures(None, &mut report), ["is a folder"], "it said why");
    }

    #[test]
    fn what_is_not_of_the_file_or_has_no_bounds_fails_it() {
        let failed = |writes: &[(u64, usize)]| {
            let mut stream = stream(1 << 30, 1 << 16);
            for (offset, length) in writes {
                let (object, offset, bytes) = (7, *offset, &vec![1; *length][..]);
                stream.take(&[Arrived {
                    object,
                    offset,
                    bytes,
                }]);
            }
            stream.failed.is_some()
        };
        assert!(!failed(&[(0, 10), (20, 10), (10, 10)]));
        assert!(failed(&[(0, 10), (5, 10)]));
        assert!(failed(&[(5, 10), (10, 10), (0, 5)]), "two that overlap");
        assert!(failed(&[((1 << 30) - 5, 10)]));
        assert!(failed(&[(u64::MAX, 10)]));
        assert!(failed(
            &(1..1000).map(|place| (2 * place, 1)).collect::<Vec<_>>()
        ));
        assert!(failed(
            &(1..200)
                .map(|place| (1000 * place, 1000))
                .collect::<Vec<_>>()
        ));
    }
}
