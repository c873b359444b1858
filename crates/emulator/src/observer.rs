// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes records from the forwarder to a file, on a thread of its own. Never makes the forwarder
//! wait: when the file does not take what it gets, the observation ends, and says so.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use fatpath_observation::{DirectionName, Header, Record, Recorder};

use crate::clock::{Clock, unix_ns};
use crate::topology::LinkSpec;

/// The interval of every observation.
const INTERVAL_NS: u64 = 1_000_000;

/// Blocks that may wait for the file: 8 MiB and more, many seconds of the busiest network here.
const WAITING_BLOCKS: usize = 512;

/// What came together is handed to the file after so many intervals, though it be little.
const LONGEST_INTERVALS: u64 = 1_000;

/// What to observe, and where to write it.
#[derive(Debug)]
pub struct ObservationOptions {
    /// The file, open for writing, empty. When the forwarder stops, it waits until what was handed
    /// over is written.
    pub file: File,
    /// Whether to tell flows apart, for which the headers of every packet are read twice.
    pub per_flow: bool,
}

/// An observation that runs.
pub(crate) struct Observer {
    header: Header,
    recorder: Recorder,
    /// `None` once it has failed.
    blocks: Option<SyncSender<Vec<u8>>>,
    writer: JoinHandle<io::Result<()>>,
    /// Records in the block in the making, and the interval of its first one.
    pending: u64,
    pending_since: u64,
    lost: u64,
}

impl Observer {
    /// Begins an observation of `directions` in the time of `clock`.
    pub(crate) fn begin(
        directions: Vec<DirectionName>,
        clock: &Clock,
        options: ObservationOptions,
    ) -> io::Result<Observer> {
        let header = Header {
            interval_ns: INTERVAL_NS,
            begun_unix_ns: unix_ns() - clock.now_ns(),
            directions,
            per_flow: options.per_flow,
        };
        let (recorder, first_bytes) = Recorder::new(&header);
        let (blocks, written) = sync_channel(WAITING_BLOCKS);
        let write = move || write_all(options.file, &first_bytes, &written);
        let writer = thread::Builder::new().name("observation".into());
        Ok(Observer {
            header,
            recorder,
            blocks: Some(blocks),
            writer: writer.spawn(write)?,
            pending: 0,
            pending_since: 0,
            lost: 0,
        })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Takes a record; those of one direction in order of time.
    pub(crate) fn record(&mut self, record: &Record) {
        if self.blocks.is_none() {
            self.lost += 1;
            return;
        }
        if self.pending == 0 {
            self.pending_since = record.interval;
        }
        self.recorder.record(record);
        self.pending += 1;
        let block = match record.interval >= self.pending_since + LONGEST_INTERVALS {
            true => self.recorder.take_block(),
            false => self.recorder.take_full_block(),
        };
        self.hand_over(block);
    }

    fn hand_over(&mut self, block: Option<Vec<u8>>) {
        let (Some(block), Some(blocks)) = (block, &self.blocks) else {
            return;
        };
        let records = std::mem::take(&mut self.pending);
        if blocks.try_send(block).is_err() {
            // What the file has so far stays readable; a gap in it would not be seen.
            self.blocks = None;
            self.lost += records;
        }
    }

    /// Writes the rest. Returns why the file is not whole.
    pub(crate) fn finish(mut self) -> Option<String> {
        let rest = self.recorder.take_block();
        self.hand_over(rest);
        self.blocks = None;
        let lost = self.lost;
        match self.writer.join() {
            Ok(Ok(())) if lost == 0 => None,
            Ok(Ok(())) => Some(format!(
                "the file is too slow; its last {lost} records are missing"
            )),
            Ok(Err(error)) => Some(format!("writing the file: {error}")),
            Err(_) => Some("a bug: the writer panicked".into()),
        }
    }
}

/// Both directions of a link, the one from `ends[0]` first.
pub(crate) fn direction_names(link: &LinkSpec) -> [DirectionName; 2] {
    let [one, other] = link.ends.each_ref().map(|end| &end.host);
    let name = |from: &String, to: &String| DirectionName {
        link: link.name.clone(),
        from: from.clone(),
        to: to.clone(),
    };
    [name(one, other), name(other, one)]
}

fn write_all(mut file: File, first: &[u8], blocks: &Receiver<Vec<u8>>) -> io::Result<()> {
    let mut write = || {
        file.write_all(first)?;
        blocks.iter().try_for_each(|block| file.write_all(&block))
    };
    let written = write();
    if let Err(error) = &written {
        eprintln!(
            "fatpath: error: cannot write the observation file: {error}; the observation ends, the links go on"
        );
    }
    written
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use fatpath_observation::read;

    use super::*;

    fn begin(file: File) -> Observer {
        let name = DirectionName {
            link: "wan".into(),
            from: "client".into(),
            to: "server".into(),
        };
        let options = ObservationOptions {
            file,
            per_flow: false,
        };
        Observer::begin(vec![name], &Clock::start(), options).unwrap()
    }

    fn record(interval: u64) -> Record {
        Record {
            interval,
            peak_queue_bytes: 1,
            ..Record::default()
        }
    }

    /// A pipe that nobody reads takes 64 KiB; the channel takes some more.
    #[test]
    fn a_file_that_is_too_slow_ends_the_observation_and_makes_nobody_wait() {
        const RECORDS: u64 = 4_000_000;
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut observer = begin(std::os::fd::OwnedFd::from(writer).into());
        (0..RECORDS).for_each(|interval| observer.record(&record(interval)));
        let reading = thread::spawn(move || {
            let mut bytes = vec![];
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        let error = observer.finish().unwrap();
        let bytes = reading.join().unwrap().unwrap();
        let (_, records) = read(&bytes[..]).unwrap();
        let written = records.zip(0..).map(|(found, interval)| {
            assert_eq!(found.unwrap(), record(interval));
        });
        let missing = RECORDS - written.count() as u64;
        assert!(missing > 0);
        assert!(
            error.contains(&format!("last {missing} records")),
            "{error}, in truth {missing}"
        );
    }

    #[test]
    fn a_full_disk_ends_the_observation_with_its_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut observer = begin(full);
        (0..100_000).for_each(|interval| observer.record(&record(interval)));
        let error = observer.finish().unwrap();
        assert!(error.contains("No space left"), "{error}");
    }
}
