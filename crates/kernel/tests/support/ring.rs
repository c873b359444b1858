// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program of a test writes into a ring buffer.
#![allow(unsafe_code)] // a record is the bytes of a struct

use libbpf_rs::{MapCore, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How a test waits for records: until `stop` answers true, asking it at least every `tick`.
pub fn until(
    tick: Duration,
    stop: impl Fn() -> bool,
) -> impl FnMut(BorrowedFd, Duration) -> io::Result<bool> {
    move |fd, at_most| {
        let at_most = Timespec::try_from(at_most.min(tick)).unwrap();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&at_most))?;
        Ok(!stop())
    }
}

/// The records that come while `work` is done; `T` is the twin of the program's struct, of integers alone.
pub fn records_of<T: Copy, R>(ring: &dyn MapCore, work: impl FnOnce() -> R) -> (Vec<T>, R) {
    let all = RefCell::new(Vec::new());
    let mut builder = RingBufferBuilder::new();
    builder
        .add(ring, |bytes| {
            assert!(bytes.len() >= size_of::<T>());
            // SAFETY: a struct of integers, written by its twin.
            all.borrow_mut()
                .push(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() });
            0
        })
        .unwrap();
    let reader = builder.build().unwrap();
    let done = work();
    reader.consume().unwrap();
    drop(reader);
    (all.into_inner(), done)
}
