// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng): which interface a packet came from, and what its time means.

use crate::about::About;
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapNGOption,
    parse_block_be, parse_block_le,
};
use std::ops::Range;

/// More than any host has; what a hostile file lists beyond them is refused.
const MAX_INTERFACES: usize = 65_536;

/// What is known of the section that is being read.
#[derive(Default)]
pub(crate) struct Section {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: i32,
    snaplen: u32,
    ticks_per_s: u64,
    offset_s: i64,
}

/// Where in its block a packet lies.
pub(crate) struct Place {
    pub time_ns: i64,
    pub link_type: i32,
    pub wire_bytes: u32,
    pub data: Range<usize>,
}

impl Section {
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Takes one whole block; answers its packet, if it has one.
    pub fn take(&mut self, block: &[u8], about: &mut About) -> Result<Option<Place>, &'static str> {
        let parsed = match self.is_big_endian {
            true => parse_block_be(block),
            false => parse_block_le(block),
        };
        let (_, parsed) = parsed.map_err(|_| "a block that is not well-formed")?;
        match parsed {
            Block::SectionHeader(header) => {
                self.is_big_endian = header.big_endian();
                self.interfaces.clear();
                tell(&header.options, &mut about.captured_by, about_section);
                tell(&header.options, &mut about.comments, is_comment);
                Ok(None)
            }
            Block::InterfaceDescription(interface) => {
                self.take_interface(&interface, about)?;
                Ok(None)
            }
            Block::EnhancedPacket(packet) => self.take_packet(block, &packet, about).map(Some),
            Block::SimplePacket(packet) => self.take_simple(block, packet.origlen).map(Some),
            Block::InterfaceStatistics(statistics) => {
                for code in [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop] {
                    if let Some(dropped) = self.u64_option(&statistics.options, code) {
                        let sum = about.dropped_packets.unwrap_or_default();
                        about.dropped_packets = Some(sum.saturating_add(dropped));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn take_interface(
        &mut self,
        interface: &InterfaceDescriptionBlock<'_>,
        about: &mut About,
    ) -> Result<(), &'static str> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err("more than 65,536 interfaces");
        }
        let ticks_per_s = ticks_per_s(interface.if_tsresol).ok_or("times finer than 2^-63 s")?;
        let offset_s = self.u64_option(&interface.options, OptionCode::IfTsoffset);
        self.interfaces.push(Interface {
            link_type: interface.linktype.0,
            snaplen: interface.snaplen,
            ticks_per_s,
            offset_s: offset_s.unwrap_or_default() as i64,
        });
        let is_name = |code| code == OptionCode::IfName;
        tell(&interface.options, &mut about.interfaces, is_name);
        tell(&interface.options, &mut about.comments, is_comment);
        Ok(())
    }

    /// In the byte order of the section; the parser reads such options as little-endian always.
    fn u64_option(&self, options: &[PcapNGOption<'_>], code: OptionCode) -> Option<u64> {
        let option = options.iter().find(|option| option.code == code)?;
        let bytes: [u8; 8] = option.as_bytes().ok()?.try_into().ok()?;
        Some(match self.is_big_endian {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        })
    }

    fn take_packet(
        &self,
        block: &[u8],
        packet: &EnhancedPacketBlock<'_>,
        about: &mut About,
    ) -> Result<Place, &'static str> {
        let interface = self.interface(packet.if_id)?;
        if !packet.options.is_empty() {
            tell(&packet.options, &mut about.comments, is_comment);
        }
        // The packet's bytes begin behind type, length and five fields of the block.
        let data = 28..28 + packet.caplen as usize;
        if block.len() < data.end {
            return Err("a packet that is longer than its block");
        }
        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        Ok(Place {
            time_ns: interface.time_ns(ticks),
            link_type: interface.link_type,
            wire_bytes: packet.origlen,
            data,
        })
    }

    /// A packet without a time, of the first interface.
    fn take_simple(&self, block: &[u8], wire_bytes: u32) -> Result<Place, &'static str> {
        let interface = self.interface(0)?;
        let most = match interface.snaplen {
            0 => u32::MAX,
            snaplen => snaplen,
        };
        let data = 12..12 + wire_bytes.min(most) as usize;
        if block.len() < data.end {
            return Err("a packet that is longer than its block");
        }
        Ok(Place {
            time_ns: 0,
            link_type: interface.link_type,
            wire_bytes,
            data,
        })
    }

    fn interface(&self, id: u32) -> Result<Interface, &'static str> {
        let found = self.interfaces.get(id as usize).copied();
        found.ok_or("a packet of an interface that was not described")
    }
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> i64 {
        let ns = match self.ticks_per_s {
            1_000_000_000 => i128::from(ticks),
            1_000_000 => i128::from(ticks) * 1000,
            other => i128::from(ticks) * 1_000_000_000 / i128::from(other),
        };
        let all = ns + i128::from(self.offset_s) * 1_000_000_000;
        // 292 years around 1970; hostile values stop there.
        all.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// `if_tsresol`: a negative power of ten, or of two when the highest bit is set.
fn ticks_per_s(if_tsresol: u8) -> Option<u64> {
    let exponent = u32::from(if_tsresol & 0x7f);
    match if_tsresol & 0x80 {
        0 => 10_u64.checked_pow(exponent),
        _ => 2_u64.checked_pow(exponent),
    }
}

fn is_comment(code: OptionCode) -> bool {
    code == OptionCode::Comment
}

/// `shb_hardware`, `shb_os` and `shb_userappl`.
fn about_section(code: OptionCode) -> bool {
    matches!(code.0, 2..=4)
}

fn tell(options: &[PcapNGOption<'_>], into: &mut Vec<String>, is_one: fn(OptionCode) -> bool) {
    for option in options.iter().filter(|option| is_one(option.code)) {
        if let Ok(bytes) = option.as_bytes() {
            About::keep(into, &String::from_utf8_lossy(bytes));
        }
    }
}
