// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers for packets, in a few sizes, used again and again. Belongs to one thread.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut, Range};
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
    /// Whether `len_bytes` would fit into a smaller buffer.
    pub(crate) fn is_large_for(&self, len_bytes: usize) -> bool {
        CLASS_BYTES[class_of(len_bytes)] < self.bytes.len()
    }

    /// A copy of `bytes` in the smallest buffer of the same pool that holds them.
    pub(crate) fn copy_of(&self, bytes: Range<usize>) -> Buffer {
        let mut copy = self.pool.take(bytes.len());
        copy[..bytes.len()].copy_from_slice(&self[bytes]);
        copy
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
