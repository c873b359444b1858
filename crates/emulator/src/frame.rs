// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet of the emulator: bytes in a pooled buffer, as read from a device and ready to write.

use fatpath_link::{Ecn, Flow, Packet, Wire};

use crate::buffer::Buffer;
use crate::gso::Layout;
use crate::tun::Tun;

/// A virtio-net header and one IP packet, in place.
#[derive(Debug)]
pub(crate) struct Frame {
    buffer: Buffer,
    start: usize,
    end: usize,
    /// `None` for a packet of one segment.
    layout: Option<Layout>,
}

impl Frame {
    /// Takes the first `len_bytes` of `buffer`, which are a virtio-net header and a packet.
    pub(crate) fn new(buffer: Buffer, len_bytes: usize) -> Frame {
        let layout = Layout::of(&buffer[..len_bytes]);
        Frame {
            buffer: buffer.shrunk_to(len_bytes),
            start: 0,
            end: len_bytes,
            layout,
        }
    }

    /// What to write to a device.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn len_bytes(&self) -> usize {
        self.end - self.start
    }
}

impl Packet for Frame {
    fn wire(&self) -> Wire {
        match self.layout {
            Some(layout) => layout.wire(self.len_bytes()),
            None => Wire::single((self.len_bytes() - Tun::VNET_BYTES) as u32),
        }
    }

    /// Copies the front into a buffer of its own; the rest stays where it is, with its headers
    /// written anew over the end of what was taken.
    fn split_front(&mut self, count: u32) -> Frame {
        let layout = self
            .layout
            .expect("only a packet of several segments is split");
        let front_bytes = layout.front_bytes(count);
        let mut front = self.buffer.pool().take(front_bytes);
        let frame = &mut self.buffer[self.start..self.end];
        self.start += layout.split(frame, count, &mut front[..front_bytes]);
        self.layout = Layout::of(self.bytes());
        Frame::new(front, front_bytes)
    }

    fn ecn(&self) -> Ecn {
        unimplemented!()
    }

    fn mark(&mut self) {
        unimplemented!()
    }

    fn flow(&self) -> Option<Flow> {
        unimplemented!()
    }

    fn has_data(&self) -> bool {
        unimplemented!()
    }

    fn duplicate(&self) -> Frame {
        unimplemented!()
    }

    fn corrupt(&mut self, _random: u64) {
        unimplemented!()
    }

    fn too_big(&self, _mtu_bytes: u32) -> Option<Frame> {
        unimplemented!()
    }
}

#[cfg(test)]
mod tests;
