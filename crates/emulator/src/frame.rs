// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet of the emulator: bytes in a pooled buffer, as read from a device and ready to write.
//! Ties buffers to headers; what the headers mean is in `gso`, `ip`, `corrupt` and `icmp`.

use fatpath_link::{Ecn, Flow, Packet, Wire};

use crate::buffer::{Buffer, Pool};
use crate::gso::Layout;
use crate::ip::{self, Parts};
use crate::{corrupt, fragment, icmp, vnet};

/// A virtio-net header and one IP packet, in place.
#[derive(Debug)]
pub(crate) struct Frame {
    buffer: Buffer,
    /// Where in the buffer it lies; buffers are shorter than 4 GiB.
    start: u32,
    end: u32,
    wire: Wire,
    /// `None` for a packet of one segment.
    layout: Option<Layout>,
}

impl Frame {
    /// Takes the first `len_bytes` of `buffer`, which are a virtio-net header and a packet.
    pub(crate) fn new(buffer: Buffer, len_bytes: usize) -> Frame {
        let layout = Layout::of(&buffer[..len_bytes]);
        let wire = match layout {
            Some(layout) => layout.wire(len_bytes),
            None => Wire::single((len_bytes - vnet::BYTES) as u32),
        };
        let mut frame = Frame {
            buffer,
            start: 0,
            end: len_bytes as u32,
            wire,
            layout,
        };
        frame.shrink();
        frame
    }

    /// An IP packet of one segment with complete checksums.
    fn of_packet(pool: &Pool, packet: &[u8]) -> Frame {
        let len_bytes = vnet::BYTES + packet.len();
        let mut buffer = pool.take(len_bytes);
        buffer[..vnet::BYTES].fill(0);
        buffer[vnet::BYTES..len_bytes].copy_from_slice(packet);
        Frame::new(buffer, len_bytes)
    }

    /// What to write to a device.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start as usize..self.end as usize]
    }

    /// From the IP header on.
    fn packet(&self) -> &[u8] {
        &self.bytes()[vnet::BYTES..]
    }

    fn parts(&self) -> Option<Parts> {
        Parts::of(self.packet())
    }

    /// Moves to the smallest buffer that holds this.
    fn shrink(&mut self) {
        let len_bytes = self.end - self.start;
        if self.buffer.is_large_for(len_bytes as usize) {
            self.buffer = self.buffer.copy_of(self.start as usize..self.end as usize);
            (self.start, self.end) = (0, len_bytes);
        }
    }

    /// The first `count` segments, of which there are more, as a frame of their own.
    fn front(&self, layout: Layout, count: u32) -> Frame {
        let front_bytes = layout.front_bytes(count);
        let mut buffer = self.buffer.pool().take(front_bytes);
        layout.copy_front(self.bytes(), &mut buffer[..front_bytes]);
        Frame {
            buffer,
            start: 0,
            end: front_bytes as u32,
            wire: Wire {
                segments: count,
                last_bytes: self.wire.segment_bytes,
                ..self.wire
            },
            layout: (count > 1).then_some(layout),
        }
    }

    /// The first segment as it lies on the wire, with complete checksums.
    fn first_segment(&self) -> Frame {
        let mut first = match self.layout {
            Some(layout) => self.front(layout, 1),
            None => self.duplicate(),
        };
        vnet::complete_checksum(first.bytes_mut());
        first
    }
}

impl Packet for Frame {
    fn wire(&self) -> Wire {
        self.wire
    }

    /// Copies the front into a buffer of its own; the rest stays where it is, with its headers
    /// written anew over the end of what was taken. Only when one segment is left it moves too, so
    /// that it does not keep 64 KiB.
    fn split_front(&mut self, count: u32) -> Frame {
        let layout = self
            .layout
            .expect("only a packet of several segments is split");
        let front = self.front(layout, count);
        self.start += layout.drop_front(self.bytes_mut(), count) as u32;
        self.wire.segments -= count;
        if self.wire.segments == 1 {
            self.wire = Wire::single(self.wire.last_bytes);
            self.layout = None;
            self.shrink();
        }
        front
    }

    fn ecn(&self) -> Ecn {
        ip::ecn(self.packet())
    }

    fn mark(&mut self) {
        ip::mark(&mut self.bytes_mut()[vnet::BYTES..]);
    }

    fn set_dscp(&mut self, dscp: u8) {
        ip::set_dscp(&mut self.bytes_mut()[vnet::BYTES..], dscp);
    }

    fn flow(&self) -> Option<Flow> {
        self.parts()?.flow(self.packet())
    }

    fn has_data(&self) -> bool {
        self.parts()
            .is_some_and(|parts| parts.has_data(self.packet()))
    }

    fn duplicate(&self) -> Frame {
        Frame {
            buffer: self.buffer.copy_of(self.start as usize..self.end as usize),
            start: 0,
            end: self.end - self.start,
            ..*self
        }
    }

    /// Where the checksum was left to the receiving device, it is completed first: such a packet
    /// would not be verified.
    fn corrupt(&mut self, random: u64) {
        let frame = self.bytes_mut();
        vnet::complete_checksum(frame);
        corrupt::flip_bit(&mut frame[vnet::BYTES..], random);
    }

    /// One message for a super-packet, about its first segment.
    fn too_big(&self, mtu_bytes: u32) -> Option<Frame> {
        let message = icmp::too_big(self.first_segment().packet(), mtu_bytes)?;
        Some(Frame::of_packet(self.buffer.pool(), &message))
    }

    fn may_be_fragmented(&self) -> bool {
        fragment::is_allowed(self.packet())
    }

    fn fragments(mut self, mtu_bytes: u32) -> Vec<Frame> {
        vnet::complete_checksum(self.bytes_mut());
        let fragments = fragment::fragments(self.packet(), mtu_bytes as usize);
        let pool = self.buffer.pool();
        (fragments
            .iter()
            .map(|packet| Frame::of_packet(pool, packet)))
        .collect()
    }
}

#[cfg(test)]
mod tests;
