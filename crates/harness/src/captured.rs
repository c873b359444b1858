// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures to measure with: bulk transfers as tcpdump writes them with `-s 128`, many connections mixed.

use anyhow::Result;
use std::io::Write;

/// As `tcpdump -s 128` keeps of a packet: the headers, which is what captures of fast transfers have.
const SNAPLEN: usize = 128;
/// Linux's, over Ethernet, with timestamps.
const MSS_BYTES: u32 = 1448;
/// Ethernet, IPv4, TCP with timestamps.
const HEADER_BYTES: usize = 14 + 20 + 32;
/// One segment in so many is lost behind the capture, and sent again.
const LOST_EVERY: u64 = 500;
/// Segments that are sent before the ACK of the first.
const WINDOW: u64 = 16;

const PSH_ACK: u8 = 0x18;
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

/// Writes a capture of so many connections that it has at least `bytes`; answers its number of packets.
pub fn write(out: &mut impl Write, connections: u32, bytes: u64) -> Result<u64> {
    let header = [0xa1b2_c3d4_u32, (4 << 16) | 2, 0, 0, SNAPLEN as u32, 1];
    out.write_all(&header.map(u32::to_le_bytes).concat())?;
    let mut file = File {
        out,
        time_us: 0,
        packets: 0,
        bytes: 24,
    };
    let mut all: Vec<Transfer> = (0..connections).map(Transfer::new).collect();
    for transfer in &mut all {
        transfer.open(&mut file)?;
    }
    // Four packets of each in turn: what an interface with many connections sees.
    while file.bytes < bytes {
        for transfer in &mut all {
            transfer.go_on(&mut file)?;
        }
    }
    Ok(file.packets)
}

struct File<'o, W> {
    out: &'o mut W,
    time_us: u64,
    packets: u64,
    bytes: u64,
}

/// One bulk transfer from a client.
struct Transfer {
    number: u32,
    sent: u64,
    acked: u64,
    ids: u16,
}

/// What differs between the packets of a transfer.
struct Packet<'p> {
    is_from_client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload_bytes: u32,
    options: &'p [u8],
}

impl Transfer {
    fn new(number: u32) -> Transfer {
        Transfer {
            number,
            sent: 0,
            acked: 0,
            ids: 0,
        }
    }

    fn open(&mut self, file: &mut File<'_, impl Write>) -> Result<()> {
        // MSS 1460, SACK permitted, timestamps, shift 7.
        let options = [
            2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 1, 3, 3, 7,
        ];
        for (is_from_client, flags, seq, ack) in [(true, SYN, 0, 0), (false, SYN | ACK, 0, 1)] {
            let options = &options;
            let payload_bytes = 0;
            self.write(
                file,
                &Packet {
                    is_from_client,
                    flags,
                    seq,
                    ack,
                    payload_bytes,
                    options,
                },
            )?;
        }
        self.ack(file, true, 1, 1, &[])
    }

    /// Two segments and an ACK; where one was lost, three duplicates with SACK, and the segment again.
    fn go_on(&mut self, file: &mut File<'_, impl Write>) -> Result<()> {
        for _ in 0..2 {
            self.data(file, self.sent)?;
            self.sent += 1;
        }
        if self.sent < self.acked + WINDOW {
            return Ok(());
        }
        if self.acked % LOST_EVERY >= LOST_EVERY - 2 {
            let (lost, top) = (seq_of(self.acked), self.acked + 2);
            for above in 0..3 {
                let block = [seq_of(self.acked + 1), seq_of(top + above)];
                let sack = [&[1, 1, 5, 10][..], &block.map(u32::to_be_bytes).concat()].concat();
                self.ack(file, false, 1, lost, &sack)?;
            }
            self.data(file, self.acked)?;
            self.acked += 2;
        }
        self.acked += 2;
        self.ack(file, false, 1, seq_of(self.acked), &[])
    }

    fn data(&mut self, file: &mut File<'_, impl Write>, number: u64) -> Result<()> {
        let packet = Packet {
            is_from_client: true,
            flags: PSH_ACK,
            seq: seq_of(number),
            ack: 1,
            payload_bytes: MSS_BYTES,
            options: &timestamps(file.time_us),
        };
        self.write(file, &packet)
    }

    fn ack(
        &mut self,
        file: &mut File<'_, impl Write>,
        is_from_client: bool,
        seq: u32,
        ack: u32,
        more: &[u8],
    ) -> Result<()> {
        let options = [&timestamps(file.time_us)[..], more].concat();
        let packet = Packet {
            is_from_client,
            flags: ACK,
            seq,
            ack,
            payload_bytes: 0,
            options: &options,
        };
        self.write(file, &packet)
    }

    fn write(&mut self, file: &mut File<'_, impl Write>, packet: &Packet<'_>) -> Result<()> {
        self.ids = self.ids.wrapping_add(1);
        file.time_us += 1;
        file.packets += 1;
        let tcp_bytes = 20 + packet.options.len();
        let ip_bytes = 20 + tcp_bytes + packet.payload_bytes as usize;
        let kept = SNAPLEN.min(14 + ip_bytes);
        let mut record = Vec::with_capacity(16 + SNAPLEN + HEADER_BYTES);
        let (s, us) = (file.time_us / 1_000_000, file.time_us % 1_000_000);
        for field in [s as u32, us as u32, kept as u32, 14 + ip_bytes as u32] {
            record.extend(field.to_le_bytes());
        }
        record.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        record.extend((ip_bytes as u16).to_be_bytes());
        record.extend(self.ids.to_be_bytes());
        record.extend([0x40, 0, 64, 6, 0, 0]);
        let client = (
            0x0a00_0000 + self.number / 20_000,
            10_000 + (self.number % 20_000) as u16,
        );
        let ends = match packet.is_from_client {
            true => [client, (0x0a01_0001, 443)],
            false => [(0x0a01_0001, 443), client],
        };
        record.extend(ends.map(|(address, _)| address.to_be_bytes()).concat());
        record.extend(ends.map(|(_, port)| port.to_be_bytes()).concat());
        record.extend([packet.seq, packet.ack].map(u32::to_be_bytes).concat());
        record.extend([((tcp_bytes / 4) << 4) as u8, packet.flags, 2, 0, 0, 0, 0, 0]);
        record.extend(packet.options);
        record.resize(16 + kept, 0);
        file.bytes += record.len() as u64;
        file.out.write_all(&record)?;
        Ok(())
    }
}

/// Of a segment by its number, after the SYN.
fn seq_of(number: u64) -> u32 {
    (1 + number * u64::from(MSS_BYTES)) as u32
}

fn timestamps(time_us: u64) -> [u8; 12] {
    let ms = (time_us / 1000) as u32;
    let mut option = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[4..8].copy_from_slice(&ms.to_be_bytes());
    option[8..].copy_from_slice(&ms.to_be_bytes());
    option
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_the_length_that_was_asked_for() {
        let mut file = Vec::new();
        let packets = write(&mut file, 3, 100_000).unwrap();
        assert!((100_000..110_000).contains(&file.len()));
        assert!(packets > 800, "{packets}");
    }
}
