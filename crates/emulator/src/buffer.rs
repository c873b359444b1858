// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers for packets, in a few sizes, used again and again. Belongs to one thread.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Sizes of buffers. Most packets are an acknowledgement, up to one MTU, or a super-packet of almost
/// 64 KiB; a bandwidth-delay product of short packets must not take 64 KiB each.
const CLASS_BYTES: [usize; 3] = [2 << 10, 16 << 10, Pool::LARGEST_BYTES];

/// Where buffers come from and return to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Rc<RefCell<Spares>>);

/// Unused buffers of each size.
type Spares = [Vec<Box<[u8]>>; CLASS_BYTES.len()];

/// A buffer that returns to its pool when dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    pool: Pool,
}

impl Pool {
    /// The largest buffer: 64 KiB of packet and the headers before it.
    pub(crate) const LARGEST_BYTES: usize = (64 << 10) + 512;

    /// A buffer of at least `len_bytes`, up to [`Pool::LARGEST_BYTES`]. Its content is arbitrary.
    pub(crate) fn take(&self, len_bytes: usize) -> Buffer {
        let class = class_of(len_bytes);
        let spare = self.0.borrow_mut()[class].pop();
        let bytes = spare.unwrap_or_else(|| vec![0; CLASS_BYTES[class]].into());
        Buffer {
            bytes,
            pool: self.clone(),
        }
    }
}

impl Buffer {
    /// The same `len_bytes` in the smallest buffer that holds them: moved when that is smaller.
    pub(crate) fn shrunk_to(self, len_bytes: usize) -> Buffer {
        if CLASS_BYTES[class_of(len_bytes)] == self.bytes.len() {
            return self;
        }
        let mut smaller = self.pool.take(len_bytes);
        smaller[..len_bytes].copy_from_slice(&self[..len_bytes]);
        smaller
    }

    /// The pool that this came from.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = mem::take(&mut self.bytes);
        self.pool.0.borrow_mut()[class_of(bytes.len())].push(bytes);
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

fn class_of(len_bytes: usize) -> usize {
    let class = CLASS_BYTES
        .iter()
        .position(|class_bytes| len_bytes <= *class_bytes);
    class.expect("no packet is longer than the largest buffer, which every read is bound by")
}
