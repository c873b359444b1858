// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes IP packets of one interface as pcapng (draft-ietf-opsawg-pcapng), to anything that is written to.

use std::io::{self, Write};

/// Block types.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// `LINKTYPE_RAW`: IPv4 or IPv6, told by the version.
const RAW_IP: u16 = 101;

/// Option codes of the blocks where they stand.
mod option {
    pub const COMMENT: u16 = 1;
    pub const USER_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const TIME_RESOLUTION: u16 = 9;
    pub const DROPPED_BY_SYSTEM: u16 = 7;
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Written<'t> {
    /// The program that captures.
    pub application: &'t str,
    /// What the file holds.
    pub comment: &'t str,
    /// Where packets were seen.
    pub interface: &'t str,
    /// Most bytes of a packet that are kept; 0 = all.
    pub snaplen: u32,
}

/// Writes packets.
pub struct Writer<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Writes what the file says of itself.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, written: &Written<'_>) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, bytes: 0 };
        // Byte order, version 1.0, length unknown.
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        add(&mut section, option::COMMENT, written.comment.as_bytes());
        let application = written.application.as_bytes();
        add(&mut section, option::USER_APPLICATION, application);
        writer.block(SECTION, &mut section)?;
        let mut interface = [RAW_IP.to_le_bytes(), [0; 2]].concat();
        interface.extend(written.snaplen.to_le_bytes());
        let name = written.interface.as_bytes();
        add(&mut interface, option::INTERFACE_NAME, name);
        // 10^-9 s.
        add(&mut interface, option::TIME_RESOLUTION, &[9]);
        writer.block(INTERFACE, &mut interface)?;
        Ok(writer)
    }

    /// Writes a packet: what was kept of it, and how long it was.
    ///
    /// # Errors
    /// Those of the output.
    pub fn packet(&mut self, time_ns: i64, wire_bytes: u32, data: &[u8]) -> io::Result<()> {
        let ticks = time_ns.max(0) as u64;
        let fields = [0, (ticks >> 32) as u32, ticks as u32, data.len() as u32];
        let mut body = Vec::with_capacity(64 + data.len());
        body.extend(fields.map(u32::to_le_bytes).concat());
        body.extend(wire_bytes.max(data.len() as u32).to_le_bytes());
        body.extend(data);
        pad(&mut body);
        self.write(PACKET, &body)
    }

    /// How many packets the system lost, and the end of the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, time_ns: i64, dropped: u64) -> io::Result<W> {
        let ticks = time_ns.max(0) as u64;
        let fields = [0, (ticks >> 32) as u32, ticks as u32];
        let mut body = fields.map(u32::to_le_bytes).concat();
        add(&mut body, option::DROPPED_BY_SYSTEM, &dropped.to_le_bytes());
        self.block(STATISTICS, &mut body)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Length of the file so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A block that ends with options.
    fn block(&mut self, kind: u32, body: &mut Vec<u8>) -> io::Result<()> {
        body.extend([0; 4]);
        self.write(kind, body)
    }

    fn write(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (12 + body.len()) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(body)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.bytes += u64::from(length);
        Ok(())
    }
}

fn add(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Its length has two bytes.
    let value = &value[..value.len().min(60_000)];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// To a multiple of four bytes.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
