// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of the kernel half, in the order in which they happened.

use crate::KernelError;
use crate::abi;
use crate::handle::Kernel;
use crate::maps::Table;
use crate::pod::value_of;
use crate::tune::flow;
use fatpath_api::TunedFlow;
use libbpf_rs::RingBufferBuilder;
use std::collections::HashMap;
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
    /// Waits for events until `stop` answers true, asking it at least every `tick`.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn follow(
        &mut self,
        tick: Duration,
        stop: impl FnMut() -> bool,
        mut on_event: impl FnMut(Event),
    ) -> Result<(), KernelError> {
        let (kernel, names) = (self.kernel, &mut self.names);
        follow_ring(&self.ring, tick, stop, |bytes| {
            if let Some(event) = decode(bytes, kernel, names) {
                on_event(event);
            }
        })
    }
}

/// What a ring buffer holds at the highest rates; a reader that looked again at once would find one or two records,
/// and its position would leave the cache of the processor that writes.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads a ring buffer until `stop` answers true, asking it at least every `tick`.
pub(crate) fn follow_ring(
    ring: &Table,
    tick: Duration,
    mut stop: impl FnMut() -> bool,
    mut on_record: impl FnMut(&[u8]),
) -> Result<(), KernelError> {
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
    while !stop() {
        std::thread::sleep(PAUSE);
        match ring.poll(tick) {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            polled => polled.map_err(KernelError::bpf("wait for a ring buffer"))?,
        }
        // The kernel half seldom wakes us (wake_flag() of maps.h).
        ring.consume()
            .map_err(KernelError::bpf("read a ring buffer"))?;
    }
    Ok(())
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
