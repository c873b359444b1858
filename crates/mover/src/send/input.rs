// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard input as an object. It can be read once, so what has not arrived is kept here, to be sent again if it is lost:
//! as much as is on its way, which the window bounds, and what was read ahead.

use super::walk::Walked;
use crate::protocol::{Entry, Kind};
use fatpath_transport::{Extent, Run};
use fatpath_tree::Identity;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

/// Read at a time, and how many of these wait for the transport.
const CHUNK_BYTES: usize = 128 << 10;
const MOST_CHUNKS: usize = 8;

/// What everybody may read and write, but for the umask there.
const MODE: u32 = 0o666;

/// The bytes of an input.
pub struct Input {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The bytes from `from` on to the last that was read.
    kept: VecDeque<u8>,
    from: u64,
    /// No more than this is kept, and what was read with the last of it.
    most_kept: u64,
    hasher: blake3::Hasher,
    /// It has ended, which is to be told; and that was told.
    end: Option<Result<[u8; 32], String>>,
    has_ended: bool,
    /// Its number, once it is wanted.
    object: Option<u32>,
}

/// How an input ended.
pub struct Ended {
    pub object: u32,
    pub size: u64,
    /// Of all of it, or why it cannot be read.
    pub blake3: Result<[u8; 32], String>,
}

impl Input {
    /// Reads it in a thread of its own, as far ahead as it is wanted soon. `most_kept`: bytes that may be sent again.
    pub fn start(mut input: impl Read + Send + 'static, most_kept: u64) -> Input {
        let (read, chunks) = mpsc::sync_channel(MOST_CHUNKS);
        thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let chunk = match input.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    count => count.map(|count| {
                        chunk.truncate(count);
                        chunk
                    }),
                };
                let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
                if read.send(chunk).is_err() || is_last {
                    break;
                }
            }
        });
        Input {
            chunks,
            kept: VecDeque::new(),
            from: 0,
            most_kept,
            hasher: blake3::Hasher::new(),
            end: None,
            has_ended: false,
            object: None,
        }
    }

    /// The other end wants it.
    pub fn is_wanted(&mut self, object: u32) {
        self.object = Some(object);
    }

    /// What is to be sent next, some more than `most` bytes at most; or how it ended, once. Nothing while enough is kept.
    pub fn next(&mut self, most: u64) -> Option<Result<Extent, Ended>> {
        let object = self.object?;
        let room = self.most_kept.saturating_sub(self.kept.len() as u64);
        let most = most.min(room);
        let (offset, mut bytes) = (self.from + self.kept.len() as u64, 0);
        while bytes < most && self.end.is_none() && !self.has_ended {
            match self.chunks.try_recv() {
                Ok(Ok(chunk)) if !chunk.is_empty() => {
                    self.hasher.update(&chunk);
                    self.kept.extend(&chunk);
                    bytes += chunk.len() as u64;
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Ok(Err(error)) => self.end = Some(Err(format!("standard input: {error}"))),
                Ok(Ok(_)) => self.end = Some(Ok(*self.hasher.finalize().as_bytes())),
                // The end of the input is a chunk of nothing.
                Err(mpsc::TryRecvError::Disconnected) => {
                    self.end = Some(Err("standard input: its reader ended".to_owned()));
                }
            }
        }
        if bytes > 0 || room == 0 {
            let extent = Extent {
                object,
                offset,
                bytes,
            };
            return (bytes > 0).then_some(Ok(extent));
        }
        let blake3 = self.end.take()?;
        self.has_ended = true;
        Some(Err(Ended {
            object,
            size: offset,
            blake3,
        }))
    }

    /// More of it is wanted, and is not read.
    pub fn is_late(&self) -> bool {
        let has_room = (self.kept.len() as u64) < self.most_kept;
        self.object.is_some() && !self.has_ended && has_room
    }

    /// All before this byte has arrived.
    pub fn forget(&mut self, before: u64) {
        let count = before.saturating_sub(self.from) as usize;
        self.kept.drain(..count.min(self.kept.len()));
        self.from = self.from.max(before);
    }

    /// Says whether it is of this input.
    pub fn copy(&self, run: &Run, into: &mut [u8]) -> bool {
        if self.object != Some(run.object) {
            return false;
        }
        let place = run.offset.saturating_sub(self.from) as usize;
        let (first, second) = self.kept.as_slices();
        let split = place.min(first.len());
        let front = first[split..].len().min(into.len());
        into[..front].copy_from_slice(&first[split..split + front]);
        let place = (place + front).saturating_sub(first.len());
        let rest = into.len() - front;
        // A run that is sent is kept until it has arrived.
        if let Some(bytes) = second.get(place..place + rest) {
            into[front..].copy_from_slice(bytes);
        }
        true
    }
}

/// Standard input, named as the only thing that there is to send.
///
/// # Errors
/// It is closed.
pub fn named(name: &[u8], most_kept: u64) -> io::Result<(mpsc::Receiver<Walked>, Input)> {
    use std::os::fd::AsFd;
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let entry = Entry {
        object: 0,
        path: name.to_vec(),
        kind: Kind::Stream,
        mode: MODE,
        modified: (0, 0),
        accessed: (0, 0),
        attributes: vec![],
    };
    let (named, walked) = mpsc::sync_channel(2);
    let identity = Identity::of(&file.metadata()?);
    // There is room for both.
    let _ = named.send(Walked::Entry {
        entry,
        path: PathBuf::new(),
        identity,
    });
    let _ = named.send(Walked::End);
    Ok((walked, Input::start(file, most_kept)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Gives its bytes some at a time, then an error.
    struct Broken(u8);

    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            into[..3].fill(self.0);
            match self.0 {
                3 => Err(io::Error::other("gone")),
                _ => Ok(3),
            }
        }
    }

    fn all(input: &mut Input) -> (Vec<Extent>, Ended) {
        let mut extents = vec![];
        loop {
            match input.next(1 << 20) {
                Some(Ok(extent)) => extents.push(extent),
                Some(Err(ended)) => return (extents, ended),
                None => thread::yield_now(),
            }
        }
    }

    #[test]
    fn what_has_not_arrived_is_there_to_be_sent_again() {
        let bytes: Vec<u8> = (0..1_000_000).map(|place| (place % 251) as u8).collect();
        let mut input = Input::start(io::Cursor::new(bytes.clone()), u64::MAX);
        assert!(input.next(1 << 20).is_none(), "nobody wants it");
        input.is_wanted(5);
        let (extents, ended) = all(&mut input);
        let end = extents.iter().fold(0, |end, extent| {
            assert_eq!((extent.object, extent.offset), (5, end));
            end + extent.bytes
        });
        assert_eq!((end, ended.object, ended.size), (1_000_000, 5, 1_000_000));
        assert_eq!(ended.blake3.unwrap(), *blake3::hash(&bytes).as_bytes());
        assert!(input.next(1 << 20).is_none());
        for forgotten in [0, 1, 700_000, 999_000] {
            input.forget(forgotten);
            let object = 5;
            for offset in (forgotten..999_000).step_by(9_973).chain([999_000]) {
                let (mut into, bytes_of) = ([0; 1000], offset as usize..offset as usize + 1000);
                let run = Run {
                    object,
                    offset,
                    bytes: 1000,
                };
                assert!(input.copy(&run, &mut into));
                assert_eq!(into, bytes[bytes_of]);
            }
        }
        assert!(input.kept.len() == 1000);
        assert!(!input.copy(
            &Run {
                object: 6,
                offset: 0,
                bytes: 1
            },
            &mut [0]
        ));
    }

    /// Of an input without end, while nothing arrives: what is kept is bounded, and what arrives makes room for as much.
    #[test]
    fn no_more_is_kept_than_may_be() {
        const MOST: u64 = 1 << 20;
        let mut input = Input::start(io::repeat(7), MOST);
        input.is_wanted(0);
        let mut arrived = 0;
        for _ in 0..3 {
            let begun = Instant::now();
            while (input.kept.len() as u64) < MOST {
                assert!(begun.elapsed() < Duration::from_secs(30));
                input.next(u64::MAX);
            }
            for _ in 0..100 {
                assert!(input.next(u64::MAX).is_none());
                thread::sleep(Duration::from_millis(1));
            }
            assert!((input.kept.len() as u64) < MOST + CHUNK_BYTES as u64);
            arrived += 300_000;
            input.forget(arrived);
        }
    }

    #[test]
    fn an_input_that_fails_says_why_after_what_it_gave() {
        let mut input = Input::start(Broken(0), u64::MAX);
        input.is_wanted(0);
        let (extents, ended) = all(&mut input);
        assert_eq!(extents.iter().map(|extent| extent.bytes).sum::<u64>(), 6);
        assert_eq!(
            (ended.size, ended.blake3),
            (6, Err("standard input: gone".to_owned()))
        );
    }

    #[test]
    fn a_reader_that_ends_is_not_the_end_of_the_input() {
        let mut input = Input::start(io::empty(), u64::MAX);
        input.chunks = mpsc::sync_channel(1).1;
        input.is_wanted(0);
        let (_, ended) = all(&mut input);
        let why = "standard input: its reader ended".to_owned();
        assert_eq!((ended.size, ended.blake3), (0, Err(why)));
    }
}
