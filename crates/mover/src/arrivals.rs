// SPDX-License-Identifier: MIT OR Apache-2.0
//! What arrives: a thread reads the carrier and acknowledges, whatever the disk does, and what it read waits in memory for
//! the thread that writes. What waits counts against the sender's window, so that memory is bounded (`--window` by UDP; by
//! TCP `fatpath_driver::tcp` says how much), and a disk that does not keep up holds the sender back as a slow reader does.

use fatpath_driver::{RecvFlows, Sink, Spent, StepError, ThreadClock, tcp};
use fatpath_transport::frame::Write;
use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long the thread waits for the carrier before it looks whether it is still wanted.
const WAIT: Duration = Duration::from_millis(5);
/// Written between two looks at the control channel, and what one call of the carrier gave beyond that.
const AT_ONCE_BYTES: u64 = 4 << 20;
/// The disk is behind where so much of what may wait for it does: a sixteenth, half of what the sender takes for much.
const MUCH_HELD: u64 = 16;
/// A thread that waits for less than a twentieth of its time hardly keeps up.
const MOST_OVERRUN: u64 = 20;
/// Buffers that are kept to be filled again: 2 MiB each at most, as one call gives no more.
const MOST_SPARE: usize = 8;

/// What the data come by.
pub enum Ends {
    Udp(RecvFlows),
    Tcp(tcp::RecvEnd),
}

/// The end that takes the data.
pub struct RecvEnd {
    chunks: mpsc::Receiver<Result<Chunk, StepError>>,
    spare: mpsc::SyncSender<Chunk>,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
    /// What waits to be written, at most.
    most_held_bytes: u64,
    waited: Duration,
    held_much: bool,
}

/// What both threads know.
struct Shared {
    /// What waits to be written, by flow.
    held_bytes: Vec<AtomicU64>,
    begun: Instant,
    /// When the other end was heard last, from `begun` on.
    heard_us: AtomicU64,
    /// For how long the thread that reads the network hardly waited.
    overrun_us: AtomicU64,
    is_over: AtomicBool,
}

/// What arrived together.
#[derive(Default)]
struct Chunk {
    flow: usize,
    places: Vec<Place>,
    bytes: Vec<u8>,
}

/// Where the next of a chunk's bytes belong.
struct Place {
    object: u32,
    offset: u64,
    bytes: usize,
}

impl RecvEnd {
    /// Starts the thread; `flows`: how many flows of UDP there are; `most_held_bytes`: what waits to be written, at most.
    pub fn start(ends: Ends, flows: usize, most_held_bytes: u64) -> RecvEnd {
        let shared = Arc::new(Shared {
            held_bytes: (0..flows.max(1)).map(|_| AtomicU64::new(0)).collect(),
            begun: Instant::now(),
            heard_us: AtomicU64::new(0),
            overrun_us: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let (give, chunks) = mpsc::channel();
        let (spare, emptied) = mpsc::sync_channel(MOST_SPARE);
        let queue = Queue {
            chunks: give,
            emptied,
            shared: shared.clone(),
        };
        let thread = Some(thread::spawn(move || queue.run(ends)));
        RecvEnd {
            chunks,
            spare,
            shared,
            thread,
            most_held_bytes,
            waited: Duration::ZERO,
            held_much: false,
        }
    }

    /// Much of what may wait to be written did, before some of it was written, since this was asked last.
    pub fn take_held_much(&mut self) -> bool {
        std::mem::take(&mut self.held_much)
    }

    fn holds_much(&self) -> bool {
        let held_bytes = self.shared.held_bytes.iter();
        let held_bytes: u64 = held_bytes.map(|held| held.load(Ordering::Relaxed)).sum();
        held_bytes > self.most_held_bytes / MUCH_HELD
    }

    /// For how long steps waited for something to arrive, since this was asked last, nanoseconds.
    pub fn take_waited_ns(&mut self) -> u64 {
        std::mem::take(&mut self.waited).as_nanos() as u64
    }

    /// For how long the thread that reads the network hardly had to wait, so far, microseconds.
    pub fn overrun_us(&self) -> u64 {
        self.shared.overrun_us.load(Ordering::Relaxed)
    }

    /// When the other end was heard last.
    pub fn heard(&self) -> Instant {
        let heard_us = self.shared.heard_us.load(Ordering::Relaxed);
        self.shared.begun + Duration::from_micros(heard_us)
    }

    /// Has some of what arrived written, and waits for at most `wait` when nothing is there.
    ///
    /// # Errors
    /// The carrier cannot go on.
    pub fn step(
        &mut self,
        wait: Duration,
        mut write: impl FnMut(&[Write<'_>]),
    ) -> Result<(), StepError> {
        let mut bytes = 0;
        let begun = Instant::now();
        let received = self.chunks.recv_timeout(wait);
        self.waited += begun.elapsed();
        let mut next = match received {
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(
                    io::Error::other("the thread that reads the network has failed").into(),
                );
            }
            next => next.ok(),
        };
        while let Some(chunk) = next {
            let chunk = chunk?;
            self.held_much |= self.holds_much();
            write(&chunk.writes());
            bytes += chunk.held_bytes();
            self.is_written(chunk);
            next = match bytes < AT_ONCE_BYTES {
                true => self.chunks.try_recv().ok(),
                false => None,
            };
        }
        Ok(())
    }

    fn is_written(&self, chunk: Chunk) {
        let held_bytes = &self.shared.held_bytes[chunk.flow];
        held_bytes.fetch_sub(chunk.held_bytes(), Ordering::Relaxed);
        let _ = self.spare.try_send(chunk); // enough are kept
    }

    /// Nothing more is to arrive, and all that has is written.
    pub fn finish(mut self, mut write: impl FnMut(&[Write<'_>])) {
        self.stop();
        let chunks = self.chunks.try_iter().filter_map(Result::ok);
        chunks.for_each(|chunk| write(&chunk.writes()));
    }

    fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RecvEnd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's side.
struct Queue {
    chunks: mpsc::Sender<Result<Chunk, StepError>>,
    emptied: mpsc::Receiver<Chunk>,
    shared: Arc<Shared>,
}

impl Queue {
    fn run(mut self, mut ends: Ends) {
        let (mut clock, mut waited_ns) = (ThreadClock::start(), 0);
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let (stepped, heard) = match &mut ends {
                Ends::Udp(end) => (end.step(&mut self, WAIT), end.heard()),
                Ends::Tcp(end) => (end.step(&mut self, WAIT), end.heard()),
            };
            waited_ns += match &mut ends {
                Ends::Udp(end) => end.take_waited_ns(),
                Ends::Tcp(end) => end.take_waited_ns(),
            };
            if clock.is_due() {
                let overrun_us = overrun_us(&clock.take(std::mem::take(&mut waited_ns)));
                let so_far_us = &self.shared.overrun_us;
                so_far_us.fetch_add(overrun_us, Ordering::Relaxed);
            }
            let heard = heard.saturating_duration_since(self.shared.begun);
            let heard_us = &self.shared.heard_us;
            heard_us.store(heard.as_micros() as u64, Ordering::Relaxed);
            if let Err(error) = stepped {
                let _ = self.chunks.send(Err(error)); // or nobody asks any more
                return;
            }
        }
    }
}

/// Of what was spent, if there was hardly any wait, all.
fn overrun_us(spent: &Spent) -> u64 {
    let all_ns = spent.waited_ns + spent.worked_ns + spent.stood_ns;
    match spent.waited_ns < all_ns / MOST_OVERRUN {
        true => all_ns / 1000,
        false => 0,
    }
}

impl Sink for Queue {
    fn write(&mut self, flow: usize, writes: &[Write<'_>]) {
        let mut chunk = self.emptied.try_recv().unwrap_or_default();
        chunk.fill(flow, writes);
        self.shared.held_bytes[flow].fetch_add(chunk.held_bytes(), Ordering::Relaxed);
        let _ = self.chunks.send(Ok(chunk)); // or nobody asks any more
    }

    fn held_bytes(&self, flow: usize) -> u64 {
        self.shared.held_bytes[flow].load(Ordering::Relaxed)
    }
}

impl Chunk {
    /// What follows one another in an object becomes one place.
    fn fill(&mut self, flow: usize, writes: &[Write<'_>]) {
        self.flow = flow;
        self.places.clear();
        self.bytes.clear();
        let bytes = writes.iter().map(|write| write.bytes.len()).sum();
        // Memory goes by what is held, not by what was once.
        self.places.shrink_to(2 * writes.len());
        self.bytes.shrink_to(2 * bytes);
        self.bytes.reserve(bytes);
        for write in writes {
            self.bytes.extend_from_slice(write.bytes);
            match self.places.last_mut() {
                Some(last) if last.is_followed_by(write) => last.bytes += write.bytes.len(),
                _ => self.places.push(Place {
                    object: write.object,
                    offset: write.offset,
                    bytes: write.bytes.len(),
                }),
            }
        }
    }

    fn writes(&self) -> Vec<Write<'_>> {
        let mut rest = &self.bytes[..];
        let writes = self.places.iter().map(|place| {
            let (bytes, after) = rest.split_at(place.bytes);
            rest = after;
            Write {
                object: place.object,
                offset: place.offset,
                bytes,
            }
        });
        writes.collect()
    }

    /// The memory that it takes.
    fn held_bytes(&self) -> u64 {
        (size_of::<Chunk>() + self.places.len() * size_of::<Place>() + self.bytes.len()) as u64
    }
}

impl Place {
    fn is_followed_by(&self, write: &Write<'_>) -> bool {
        self.object == write.object
            && self.offset.checked_add(self.bytes as u64) == Some(write.offset)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests;
