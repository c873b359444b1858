// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of the kernel half, in the order in which they happened.

use crate::KernelError;
use crate::abi;
use crate::handle::Kernel;
use crate::maps::Table;
use crate::pod::value_of;
use crate::tune::flow;
use fatpath_api::TunedFlow;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// One event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A tuned flow has ended.
    FlowEnd(Box<TunedFlow>),
    /// The number of flows on a divided rule has changed.
    ShareChanged,
}

/// A reader of the pinned ring buffer. Only one may read at a time: the daemon.
pub struct Events<'k> {
    kernel: &'k Kernel,
    ring: Table,
    names: HashMap<u32, String>,
}

impl Kernel {
    /// The reader.
    ///
    /// # Errors
    /// When the ring buffer's pin is gone.
    pub fn events(&self) -> Result<Events<'_>, KernelError> {
        let ring = self.table("fp_events")?;
        Ok(Events {
            kernel: self,
            ring,
            names: HashMap::new(),
        })
    }
}

impl Events<'_> {
    /// Waits for events by `wait`, until it answers false: it waits until the file can be read, for so long at most.
    ///
    /// # Errors
    /// When the ring buffer cannot be read, and those of `wait`.
    pub fn follow(
        &mut self,
        wait: impl FnMut(BorrowedFd, Duration) -> io::Result<bool>,
        mut on_event: impl FnMut(Event),
    ) -> Result<(), KernelError> {
        let (kernel, names) = (self.kernel, &mut self.names);
        follow_ring(&self.ring, wait, |bytes| {
            if let Some(event) = decode(bytes, kernel, names) {
                on_event(event);
            }
        })
    }
}

/// What a ring buffer holds at the highest rates; a reader that looked again at once would find one or two records,
/// and its position would leave the cache of the processor that writes.
const PAUSE: Duration = Duration::from_millis(20);

/// The kernel half seldom wakes its reader (wake_flag() of maps.h), which looks so soon after a record, and less and less
/// often while none comes: each look is a wake-up of the processor.
const SOON: Duration = Duration::from_millis(80);
const LATE: Duration = Duration::from_millis(500);

/// Reads a ring buffer until `wait` answers false.
pub(crate) fn follow_ring(
    ring: &Table,
    mut wait: impl FnMut(BorrowedFd, Duration) -> io::Result<bool>,
    mut on_record: impl FnMut(&[u8]),
) -> Result<(), KernelError> {
    let fd = ring.handle().as_fd();
    let mut builder = RingBufferBuilder::new();
    builder
        .add(ring.handle(), |bytes| {
            on_record(bytes);
            0
        })
        .map_err(KernelError::bpf("read a ring buffer"))?;
    let ring = builder
        .build()
        .map_err(KernelError::bpf("map a ring buffer"))?;
    let mut at_most = SOON;
    while wait(fd, at_most).map_err(KernelError::io("wait for a ring buffer"))? {
        at_most = match consumed(&ring)? {
            0 => LATE.min(at_most * 2),
            _ => {
                std::thread::sleep(PAUSE);
                SOON
            }
        };
    }
    Ok(())
}

/// How many records were there.
fn consumed(ring: &RingBuffer) -> Result<i32, KernelError> {
    match ring.consume_raw() {
        negative @ ..0 => {
            let error = libbpf_rs::Error::from_raw_os_error(-negative);
            Err(KernelError::bpf("read a ring buffer")(error))
        }
        records => Ok(records),
    }
}

fn decode(bytes: &[u8], kernel: &Kernel, names: &mut HashMap<u32, String>) -> Option<Event> {
    match value_of::<u32>(bytes)? {
        abi::FP_EVENT_FLOW_END => {
            let record: abi::fp_flow_record = value_of(bytes)?;
            let id = record.flow.rule_id;
            if id != abi::FP_NO_RULE && !names.contains_key(&id) {
                *names = kernel.rule_names().unwrap_or_default();
            }
            Some(Event::FlowEnd(Box::new(flow::decode(&record, names))))
        }
        abi::FP_EVENT_SHARE_CHANGED => Some(Event::ShareChanged),
        _ => None,
    }
}
