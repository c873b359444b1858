// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of a connection, whatever carries it: the transport over UDP, or the kernel's TCP.

use std::time::Duration;

use anyhow::Result;
use fatpath_driver::{PlainRecvEnd, PlainSendEnd, RecvEnd, SendEnd, Sink, Source};
use fatpath_tcp::SenderFigures;
use fatpath_transport::frame::Write;
use fatpath_transport::{Extent, Run, Spec};

/// The end that has the data.
pub(crate) trait Sending: Send {
    /// This is to be sent, after what was given before.
    fn send(&mut self, extent: Extent);
    /// All that was given has arrived.
    fn is_done(&self) -> bool;
    fn figures(&self) -> SenderFigures;
    /// Does what is to do, and waits for at most `wait` when nothing was.
    fn step(&mut self, wait: Duration) -> Result<()>;
}

/// The end that data go to.
pub(crate) trait Receiving: Send {
    /// What arrived in order, bytes of what was given to the sender.
    fn delivered_bytes(&self) -> u64;
    /// Takes what has come, and waits for at most `wait` when nothing had.
    fn step(&mut self, wait: Duration) -> Result<()>;
}

struct Zeros;

impl Source for Zeros {
    fn read(&mut self, _: &Run, into: &mut [u8]) {
        into.fill(0);
    }
}

/// What arrives is gone.
struct Nothing;

impl Sink for Nothing {
    fn write(&mut self, _: usize, _: &[Write<'_>]) {}
}

impl Sending for SendEnd {
    fn send(&mut self, extent: Extent) {
        SendEnd::send(self, extent);
    }

    fn is_done(&self) -> bool {
        SendEnd::is_done(self)
    }

    fn figures(&self) -> SenderFigures {
        SendEnd::figures(self)
    }

    fn step(&mut self, wait: Duration) -> Result<()> {
        Ok(SendEnd::step(self, &mut Zeros, wait)?)
    }
}

impl Sending for PlainSendEnd {
    fn send(&mut self, extent: Extent) {
        PlainSendEnd::send(self, extent.bytes);
    }

    fn is_done(&self) -> bool {
        PlainSendEnd::is_done(self)
    }

    fn figures(&self) -> SenderFigures {
        PlainSendEnd::figures(self)
    }

    fn step(&mut self, wait: Duration) -> Result<()> {
        Ok(PlainSendEnd::step(self, wait)?)
    }
}

/// The receiving end of the transport, whose segments carry so many bytes of data.
pub(crate) struct Datagrams {
    pub(crate) end: RecvEnd,
    pub(crate) mss_bytes: u32,
}

impl Receiving for Datagrams {
    /// TCP counts what is in its segments; a run's header is in each.
    fn delivered_bytes(&self) -> u64 {
        let header = u64::from(Spec::RUN_HEADER_BYTES);
        let data = u64::from(self.mss_bytes);
        let bytes = self.end.figures().delivered_bytes;
        let rest = (bytes % (data + header)).saturating_sub(header);
        bytes / (data + header) * data + rest
    }

    fn step(&mut self, wait: Duration) -> Result<()> {
        Ok(self.end.step(&mut Nothing, wait)?)
    }
}

impl Receiving for PlainRecvEnd {
    fn delivered_bytes(&self) -> u64 {
        PlainRecvEnd::delivered_bytes(self)
    }

    fn step(&mut self, wait: Duration) -> Result<()> {
        Ok(PlainRecvEnd::step(self, wait)?)
    }
}
