// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel: standard input and output of a program that was started, or of this one; or a connection. A thread
//! reads and a thread writes, so that neither end waits for the other while it moves data.

use crate::protocol::{self, Message, ReadError};
use anyhow::{Context, Result, anyhow, bail, ensure};
use fatpath_driver::StepError;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Messages that were read and not yet looked at, at most.
const MOST_WAITING: usize = 16;
/// With so many that are not written, no more is to be said.
const MOST_UNWRITTEN: u64 = 64;
/// An end that looks at nothing for so long says that it lives: its disk stands still, and the path is not dead.
const BUSY_EVERY: Duration = Duration::from_millis(100);
/// An end that has nothing to say says so, so many times in what the other one may be silent for, and as often at least.
const ALIVE_IN_SILENCE: u32 = 4;
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// An end that did not look for so long could not listen meanwhile.
const LATE: Duration = Duration::from_millis(500);
/// How long an end has to answer once it was asked, logging in of a person not counted.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long the other end has to say why a connection ended.
const CAUSE_WITHIN: Duration = Duration::from_secs(2);
/// How long the other program has to end once all is said.
const END_WITHIN: Duration = Duration::from_secs(10);

/// One end of the channel.
pub struct Control {
    incoming: mpsc::Receiver<Result<Message, ReadError>>,
    counts: Arc<Counts>,
    outgoing: Option<mpsc::Sender<Message>>,
    writer: Option<thread::JoinHandle<()>>,
    child: Option<(Child, String)>,
    /// Carries what is said over a connection.
    relay: Option<thread::JoinHandle<io::Result<()>>>,
    /// How long the other end may be silent; `None`: that is not agreed on yet.
    silence: Option<Duration>,
    looked: Instant,
    is_given_up: bool,
    /// What to do when it ends before its time.
    remedy: &'static str,
}

const GOES_ON: &str = "the same command goes on where this ended";
const BEGINS_ANEW: &str = "nothing is kept of a stream: it has to begin again";

/// What the threads of an end count.
struct Counts {
    begun: Instant,
    /// Looks at what came.
    looks: AtomicU64,
    /// Messages that were said and not written.
    unwritten: AtomicU64,
    /// When the other end was heard last, milliseconds from `begun`.
    heard_ms: AtomicU64,
    /// How often it is to hear something, milliseconds; 0: it does not wait for that yet.
    alive_every_ms: AtomicU64,
}

impl Counts {
    fn heard(&self, at: Instant) {
        let at_ms = at.saturating_duration_since(self.begun).as_millis() as u64;
        self.heard_ms.fetch_max(at_ms, Ordering::Relaxed);
    }

    fn silent_for(&self) -> Duration {
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(heard)
    }
}

impl Control {
    /// Of this program, which another one started.
    ///
    /// # Errors
    /// No more files may be open.
    pub fn of_stdio() -> io::Result<Control> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Control::of(input, output))
    }

    /// Starts `words`, and talks to it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[String]) -> Result<Control> {
        let (program, arguments) = words.split_first().context("--rsh: give a command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let (input, output) = (child.stdout.take(), child.stdin.take());
        let (input, output) = input.zip(output).context("pipes were asked for")?;
        let mut control = Control::of(input, output);
        control.child = Some((child, program.clone()));
        Ok(control)
    }

    /// Over a connection whose bytes `relay` carries from and to these pipes.
    pub fn over(
        input: io::PipeReader,
        output: io::PipeWriter,
        relay: thread::JoinHandle<io::Result<()>>,
    ) -> Control {
        let mut control = Control::of(input, output);
        control.relay = Some(relay);
        control
    }

    fn of(input: impl io::Read + Send + 'static, output: impl Write + Send + 'static) -> Control {
        let (read, incoming) = mpsc::sync_channel(MOST_WAITING);
        let counts = Arc::new(Counts {
            begun: Instant::now(),
            looks: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            heard_ms: AtomicU64::new(0),
            alive_every_ms: AtomicU64::new(0),
        });
        let counted = counts.clone();
        thread::spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                let message = protocol::read(&mut input);
                let is_last = message.is_err();
                counted.heard(Instant::now());
                if matches!(message, Ok(Message::Alive)) {
                    continue;
                }
                if read.send(message).is_err() || is_last {
                    break;
                }
            }
        });
        let (outgoing, said) = mpsc::channel();
        let counted = counts.clone();
        let writer = thread::spawn(move || {
            // That the other end is gone is what the reader says.
            let _ = write_all(&mut BufWriter::new(output), &said, &counted);
            drop(said);
            counted.unwritten.store(0, Ordering::Relaxed);
        });
        Control {
            incoming,
            counts,
            outgoing: Some(outgoing),
            writer: Some(writer),
            child: None,
            relay: None,
            silence: None,
            looked: Instant::now(),
            is_given_up: false,
            remedy: GOES_ON,
        }
    }

    /// What moves is a stream: what ends before its time cannot go on later.
    pub fn nothing_is_kept(&mut self) {
        self.remedy = BEGINS_ANEW;
    }

    /// From now on the other end is given up when nothing is heard of it for so long, and hears something of this one as
    /// often as it needs for that.
    pub fn limit_silence(&mut self, silence: Duration) {
        let every_ms = (silence / ALIVE_IN_SILENCE).min(ALIVE_EVERY).as_millis() as u64;
        self.counts
            .alive_every_ms
            .store(every_ms.max(1), Ordering::Relaxed);
        self.counts.heard(Instant::now());
        self.silence = Some(silence);
    }

    /// The other end was heard by another way.
    pub fn heard(&self, at: Instant) {
        self.counts.heard(at);
    }

    /// Says something.
    pub fn say(&self, message: Message) {
        if let Some(outgoing) = &self.outgoing {
            self.counts.unwritten.fetch_add(1, Ordering::Relaxed);
            if outgoing.send(message).is_err() {
                self.counts.unwritten.store(0, Ordering::Relaxed); // a channel that ended is what `poll` says
            }
        }
    }

    /// The other end reads what is said. Where it does not, nothing more is to be said, and nothing more taken that would
    /// have to be answered: memory is bounded.
    pub fn has_room(&self) -> bool {
        self.counts.unwritten.load(Ordering::Relaxed) < MOST_UNWRITTEN
    }

    /// What the other end said, if it said something.
    ///
    /// # Errors
    /// It failed, is gone, says what is none of the protocol, or was not heard for as long as it may be silent.
    pub fn poll(&mut self) -> Result<Option<Message>> {
        self.counts.looks.fetch_add(1, Ordering::Relaxed);
        match self.incoming.try_recv() {
            Ok(message) => self.judged(message).map(Some),
            Err(mpsc::TryRecvError::Empty) => self.judge_silence().map(|()| None),
            Err(mpsc::TryRecvError::Disconnected) => Err(self.ended()),
        }
    }

    fn judge_silence(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.looked, Instant::now()).elapsed() >= LATE {
            self.counts.heard(Instant::now());
        }
        let Some(silence) = self.silence else {
            return Ok(());
        };
        self.is_given_up = self.counts.silent_for() >= silence;
        ensure!(
            !self.is_given_up,
            "the other end has said nothing for {} s, by the control channel or by the network: look after it and the network between, or give \
             a longer --timeout; {}",
            silence.as_secs(),
            self.remedy
        );
        Ok(())
    }

    /// Why the carrier ended: where a connection did, the other end did so for a reason, which it says here a little later.
    pub fn cause_of(&mut self, error: StepError) -> anyhow::Error {
        if !matches!(error, StepError::Ended(_)) {
            return error.into();
        }
        let end = Instant::now() + CAUSE_WITHIN;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return error.into();
            }
            match self.incoming.recv_timeout(rest) {
                Ok(message) => match self.judged(message) {
                    Ok(_) => {} // it was said before
                    Err(cause) => return cause,
                },
                Err(mpsc::RecvTimeoutError::Timeout) => return error.into(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.ended(),
            }
        }
    }

    /// The next that it says.
    ///
    /// # Errors
    /// As [`Control::poll`], or it says nothing.
    pub fn answer(&mut self) -> Result<Message> {
        self.answer_within(ANSWER_WITHIN)
    }

    fn answer_within(&mut self, most: Duration) -> Result<Message> {
        match self.incoming.recv_timeout(most) {
            Ok(message) => self.judged(message),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                bail!("the other end does not answer; {}", self.remedy)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// The first that it says. Where a program was started a person may have to log in before; over a connection nobody has,
    /// and the other end may be silent for no longer than `silence`.
    ///
    /// # Errors
    /// As [`Control::poll`].
    pub fn first_answer(&mut self, silence: Duration) -> Result<Message> {
        if self.relay.is_some() {
            return self.answer_within(silence);
        }
        match self.incoming.recv() {
            Ok(message) => self.judged(message),
            Err(_) => Err(self.ended()),
        }
    }

    fn judged(&mut self, message: Result<Message, ReadError>) -> Result<Message> {
        match message {
            Ok(Message::Failure(why)) => Err(anyhow!(
                "the other end: {}",
                fatpath_tree::shown(why.as_bytes())
            )),
            Ok(message) => Ok(message),
            Err(ReadError::Ended) => Err(self.ended()),
            Err(error) => Err(error.into()),
        }
    }

    fn ended(&mut self) -> anyhow::Error {
        let status = self.child.as_mut().and_then(|(child, program)| {
            let status = within(END_WITHIN, || child.try_wait().ok().flatten())?;
            let remedy = match status.code() {
                Some(127) => {
                    "; is fatpath there? Install it, or say where it is: --remote-fatpath PATH"
                }
                Some(255) => "; can you log in there?",
                _ => "",
            };
            Some(format!("{program} ended with {status}{remedy}"))
        });
        match status {
            Some(status) => anyhow!("{status}"),
            None => anyhow!(
                "the other end is gone{}; {}",
                self.broken().unwrap_or_default(),
                self.remedy
            ),
        }
    }

    /// Why the connection broke, if it did.
    fn broken(&mut self) -> Option<String> {
        let relay = self.relay.take()?;
        within(END_WITHIN, || relay.is_finished().then_some(()))?;
        let error = relay.join().ok()?.err()?;
        Some(format!(": {error}"))
    }

    /// Says `last`, if that is something, and waits until it was written and the program that was started has ended.
    pub fn end(mut self, last: Option<Message>) {
        if self.is_given_up {
            return; // nobody would hear it
        }
        last.into_iter().for_each(|message| self.say(message));
        self.outgoing = None;
        let writer = self.writer.take();
        within(END_WITHIN, || {
            writer
                .as_ref()
                .is_none_or(|writer| writer.is_finished())
                .then_some(())
        });
        if let Some(relay) = self.relay.take() {
            within(END_WITHIN, || relay.is_finished().then_some(()));
        }
        if let Some((mut child, _)) = self.child.take()
            && within(END_WITHIN, || child.try_wait().ok().flatten()).is_none()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes what is said, until nobody can say any more; where the end looks at nothing meanwhile, that it lives.
fn write_all(
    output: &mut BufWriter<impl Write>,
    said: &mpsc::Receiver<Message>,
    counts: &Counts,
) -> io::Result<()> {
    let (mut looks, mut written) = (0, Instant::now());
    loop {
        match said.recv_timeout(BUSY_EVERY) {
            Ok(message) => {
                for message in std::iter::once(message).chain(said.try_iter()) {
                    protocol::write(output, &message)?;
                    let written = |unwritten: u64| Some(unwritten.saturating_sub(1));
                    let _ = counts.unwritten.fetch_update(
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                        written,
                    );
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let before = std::mem::replace(&mut looks, counts.looks.load(Ordering::Relaxed));
                let alive_every = counts.alive_every_ms.load(Ordering::Relaxed);
                let is_due = alive_every > 0 && written.elapsed().as_millis() >= alive_every.into();
                if looks != 0 && looks == before {
                    protocol::write(output, &Message::Busy)?;
                } else if is_due {
                    protocol::write(output, &Message::Alive)?;
                } else {
                    continue;
                }
            }
        }
        output.flush()?;
        written = Instant::now();
    }
}

fn within<T>(most: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + most;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    fn is_nothing(said: Option<Message>) -> bool {
        matches!(said, None | Some(Message::Busy))
    }

    /// An end that looks says nothing of itself; one that stands says that it lives.
    #[test]
    fn an_end_that_stands_says_so() {
        let (read, write) = io::pipe().unwrap();
        let (idle, _open) = io::pipe().unwrap();
        let mut standing = Control::of(idle, write);
        let mut other = Control::of(read, io::sink());
        let end = Instant::now() + 3 * BUSY_EVERY;
        // On a busy machine this thread may stand, too.
        let (mut looked, mut stood) = (Instant::now(), Duration::ZERO);
        while Instant::now() < end {
            let before = std::mem::replace(&mut looked, Instant::now());
            assert!(standing.poll().unwrap().is_none());
            stood = stood.max(before.elapsed());
            let said = other.poll().unwrap();
            assert!(is_nothing(said.clone()), "{said:?}");
            stood = stood.max(looked.elapsed());
            assert!(said.is_none() || stood >= BUSY_EVERY, "{stood:?}");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(other.answer().unwrap(), Message::Busy);
    }

    /// Each says from time to time that it lives, however little else there is to say; one that stops doing so is given up,
    /// unless it is heard by another way.
    #[test]
    fn an_end_that_is_silent_is_given_up() {
        let silence = Duration::from_secs(2);
        let (read, write) = io::pipe().unwrap();
        let (idle, _open) = io::pipe().unwrap();
        let mut living = Control::of(idle, write);
        let mut other = Control::of(read, io::sink());
        living.limit_silence(silence);
        other.limit_silence(silence);
        let begun = Instant::now();
        while begun.elapsed() < 2 * silence {
            living.heard(Instant::now());
            assert!(living.poll().unwrap().is_none());
            assert!(is_nothing(other.poll().unwrap()));
            thread::sleep(Duration::from_millis(5));
        }
        let given_up = loop {
            match living.poll() {
                Ok(_) => thread::sleep(Duration::from_millis(5)),
                Err(error) => break error.to_string(),
            }
        };
        assert!(given_up.contains("has said nothing for 2 s"), "{given_up}");
    }

    /// Who did not look for long, for whatever reason, has to listen before it may say that nobody spoke.
    #[test]
    fn an_end_that_stood_listens_first() {
        let (idle, _open) = io::pipe().unwrap();
        let mut stood = Control::of(idle, io::sink());
        let silence = 4 * LATE;
        stood.limit_silence(silence);
        thread::sleep(silence + Duration::from_millis(50));
        assert!(stood.poll().unwrap().is_none());
    }

    /// The words of the other end may come a little later than the end of its connections, and then they are the cause;
    /// nobody waits for them where something else went wrong.
    #[test]
    fn why_a_connection_ended_is_waited_for() {
        let ended = || StepError::Ended(([127, 0, 0, 1], 9).into());
        let (read, mut write) = io::pipe().unwrap();
        let mut control = Control::of(read, io::sink());
        protocol::write(&mut write, &Message::Busy).unwrap();
        let later = thread::spawn(move || {
            thread::sleep(CAUSE_WITHIN / 4);
            protocol::write(&mut write, &Message::Failure("no room".to_owned())).unwrap();
            write
        });
        let cause = control.cause_of(ended()).to_string();
        assert_eq!(cause, "the other end: no room");
        let _open = later.join().unwrap();
        let begun = Instant::now();
        assert_eq!(control.cause_of(ended()).to_string(), ended().to_string());
        let waited = begun.elapsed();
        assert!(
            (CAUSE_WITHIN..5 * CAUSE_WITHIN).contains(&waited),
            "{waited:?}"
        );
        let begun = Instant::now();
        control.cause_of(StepError::KeyExhausted);
        assert!(begun.elapsed() < CAUSE_WITHIN);
    }

    #[test]
    fn what_nobody_reads_is_bounded() {
        let (_read, write) = io::pipe().unwrap();
        let (idle, _open) = io::pipe().unwrap();
        let control = Control::of(idle, write);
        let mut said = 0;
        let long = "x".repeat(10_000);
        while control.has_room() {
            control.say(Message::Failure(long.clone()));
            said += 1;
            assert!(said < 1000);
        }
    }
}
