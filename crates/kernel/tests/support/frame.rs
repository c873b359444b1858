// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames made by hand, in whatever dress TCP can come.

use super::wire::{folded, sum};
use proptest::prelude::*;

/// What stands between Ethernet and TCP, and what TCP says.
#[derive(Clone, Debug)]
pub struct Dress {
    /// Ethertypes of the VLAN tags, outer first.
    pub tags: Vec<u16>,
    pub is_v6: bool,
    /// Words of IPv4 options, 0 to 10.
    pub options: u8,
    /// IPv6 extension headers: their protocol numbers.
    pub extensions: Vec<u8>,
    /// In units of 8 bytes.
    pub fragment_at: u16,
    pub more_fragments: bool,
    pub protocol: u8,
    pub traffic_class: u8,
    /// The two bytes after the acknowledgement number, without the header's length.
    pub flags: u16,
    /// Words of the TCP header, 5 to 15.
    pub tcp_words: u8,
    pub payload: usize,
    pub padding: usize,
}

impl Default for Dress {
    fn default() -> Dress {
        Dress {
            tags: Vec::new(),
            is_v6: false,
            options: 0,
            extensions: Vec::new(),
            fragment_at: 0,
            more_fragments: false,
            protocol: 6,
            traffic_class: 0,
            flags: 0x10,
            tcp_words: 5,
            payload: 100,
            padding: 0,
        }
    }
}

/// Any dress, also of what is no TCP.
pub fn dress() -> impl Strategy<Value = Dress> {
    let tag = prop_oneof![Just(VLAN), Just(QINQ)];
    let extension = prop_oneof![Just(0u8), Just(43), Just(60), Just(51)];
    let outer = (prop::collection::vec(tag, 0..4), any::<bool>(), 0u8..=10);
    let fragment = (
        prop_oneof![4 => Just(0u16), 1 => 1u16..0x1000],
        any::<bool>(),
    );
    let inner = (
        prop_oneof![6 => Just(6u8), 1 => Just(17), 1 => Just(1), 1 => Just(59)],
        any::<u8>(),
        0u16..0x1000,
        5u8..=15,
        0usize..120,
        0usize..20,
    );
    let extensions = prop::collection::vec(extension, 0..8);
    (outer, extensions, fragment, inner).prop_map(|(outer, extensions, fragment, inner)| Dress {
        tags: outer.0,
        is_v6: outer.1,
        options: outer.2,
        extensions,
        fragment_at: fragment.0,
        more_fragments: fragment.1,
        protocol: inner.0,
        traffic_class: inner.1,
        flags: inner.2,
        tcp_words: inner.3,
        payload: inner.4,
        padding: inner.5,
    })
}

pub const SEQUENCE: u32 = 0x8000_0001;
pub const ACKNOWLEDGEMENT: u32 = 0xffff_fff0;
/// 802.1Q and 802.1ad.
pub const VLAN: u16 = 0x8100;
pub const QINQ: u16 = 0x88a8;

impl Dress {
    /// How many IPv6 extension headers it has.
    pub fn chain(&self) -> usize {
        self.extensions.len() + usize::from(self.fragment_at > 0 || self.more_fragments)
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        for tag in &self.tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame.extend(if self.is_v6 { [0x86, 0xdd] } else { [8, 0] });
        let ip = if self.is_v6 { self.v6() } else { self.v4() };
        frame.extend(ip);
        frame.resize(frame.len() + self.padding, 0xff);
        frame
    }

    fn v4(&self) -> Vec<u8> {
        let header = 20 + usize::from(self.options) * 4;
        let tcp = self.tcp();
        let mut ip = vec![0; 20];
        ip[0] = 0x40 | (header / 4) as u8;
        ip[1] = self.traffic_class;
        ip[2..4].copy_from_slice(&((header + tcp.len()) as u16).to_be_bytes());
        let more = u16::from(self.more_fragments) << 13;
        ip[6..8].copy_from_slice(&(self.fragment_at | more).to_be_bytes());
        (ip[8], ip[9]) = (9, self.protocol);
        ip[12..20].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 2]);
        ip.resize(header, 1);
        let checksum = !folded(sum(&ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.extend(tcp);
        ip
    }

    fn v6(&self) -> Vec<u8> {
        let is_fragment = self.fragment_at > 0 || self.more_fragments;
        let mut chain = self.extensions.clone();
        if is_fragment {
            chain.push(44);
        }
        let mut body = Vec::new();
        for (n, kind) in chain.iter().enumerate() {
            let next = *chain.get(n + 1).unwrap_or(&self.protocol);
            let offset = self.fragment_at << 3 | u16::from(self.more_fragments);
            match kind {
                44 => body.extend([next, 0, (offset >> 8) as u8, offset as u8, 0, 0, 0, 9]),
                // AH's length: words less two; it has 24 bytes here.
                51 => body.extend([&[next, 4][..], &[0; 22]].concat()),
                _ => body.extend([&[next, 1, 1, 12][..], &[0; 12]].concat()),
            }
        }
        body.extend(self.tcp());
        let mut ip = vec![0; 40];
        ip[0] = 0x60 | self.traffic_class >> 4;
        ip[1] = self.traffic_class << 4;
        ip[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        (ip[6], ip[7]) = (*chain.first().unwrap_or(&self.protocol), 9);
        ip[8..10].copy_from_slice(&[0x20, 1]);
        ip[24..26].copy_from_slice(&[0xfd, 7]);
        ip.extend(body);
        ip
    }

    fn tcp(&self) -> Vec<u8> {
        let mut tcp = vec![0x30, 0x39, 0x00, 0x50];
        tcp.extend(SEQUENCE.to_be_bytes());
        tcp.extend(ACKNOWLEDGEMENT.to_be_bytes());
        tcp.extend((u16::from(self.tcp_words) << 12 | self.flags).to_be_bytes());
        tcp.extend([0x10, 0, 0, 0, 0, 0]);
        tcp.resize(usize::from(self.tcp_words) * 4, 1);
        tcp.resize(tcp.len() + self.payload, 0x5a);
        tcp
    }
}
