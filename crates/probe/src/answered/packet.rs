// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that any host answers, and what of its answers is taken. No I/O.
//!
//! An echo request has the header of a train's datagrams behind its own, which the answer repeats: its proof shows that the
//! request came there. A segment of TCP that belongs to no connection is answered by a reset whose sequence number is the
//! segment's acknowledgement number (RFC 9293, 3.10.7.1 and 3.10.7.2); those of a train are numbered on from a secret one.

use crate::Secret;
use crate::packet::Header;
use std::net::IpAddr;

/// Of ICMP and ICMPv6.
const ECHO_BYTES: usize = 8;
const ECHO_REQUEST: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
/// "fp". A socket of ping(8)'s kind has one of the kernel's.
const IDENTIFIER: [u8; 2] = *b"fp";
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP: u8 = 6;
/// Without options.
const TCP_BYTES: usize = 20;
const ACK: u8 = 0x10;
const RST: u8 = 0x04;

/// Both ends of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// This one's address.
    pub local: IpAddr,
    /// The other's, of the same family.
    pub peer: IpAddr,
    /// This one's and the other's port of TCP; `None`: by ICMP.
    pub ports: Option<[u16; 2]>,
    /// Whether what is received begins with a header of IPv4, as raw(7) gives it.
    pub has_ipv4_header: bool,
}

/// The packets of a test.
pub struct Packets {
    ends: Ends,
    secret: Secret,
}

impl Packets {
    /// Of the test that has this secret.
    pub fn new(ends: Ends, secret: Secret) -> Packets {
        Packets { ends, secret }
    }

    /// What the kernel puts before what is written.
    pub fn header_bytes(&self) -> usize {
        match self.ends.peer {
            IpAddr::V4(_) => IPV4_BYTES,
            IpAddr::V6(_) => IPV6_BYTES,
        }
    }

    /// Length of what is written.
    pub fn written_bytes(&self) -> usize {
        match self.ends.ports {
            Some(_) => TCP_BYTES,
            None => ECHO_BYTES + Header::BYTES,
        }
    }

    /// The beginning of each of a train's packets, from behind its IP header; zeros follow, up to `bytes`.
    pub fn written(&self, train: u32, packets: u32, bytes: usize) -> Vec<u8> {
        let mut all = vec![0; packets as usize * self.written_bytes()];
        let first = self.first(train);
        for (sequence, written) in (0..).zip(all.chunks_exact_mut(self.written_bytes())) {
            match self.ends.ports {
                Some(ports) => self.write_segment(ports, [first, sequence], bytes, written),
                None => self.write_echo(Header { train, sequence }, written),
            }
        }
        all
    }

    fn write_echo(&self, header: Header, packet: &mut [u8]) {
        let kind = ECHO_REQUEST[usize::from(self.ends.peer.is_ipv6())];
        let sequence = (header.sequence as u16).to_be_bytes();
        packet[..4].copy_from_slice(&[kind, 0, 0, 0]);
        packet[4..6].copy_from_slice(&IDENTIFIER);
        packet[6..8].copy_from_slice(&sequence);
        packet[ECHO_BYTES..].copy_from_slice(&header.sealed(&self.secret));
        // Of ICMPv6 the kernel writes it.
        if self.ends.peer.is_ipv4() {
            let sum = checksum([&*packet]);
            packet[2..4].copy_from_slice(&sum);
        }
    }

    fn write_segment(
        &self,
        ports: [u16; 2],
        [first, sequence]: [u32; 2],
        bytes: usize,
        header: &mut [u8],
    ) {
        let pseudo = self.pseudo_header(bytes);
        header[..2].copy_from_slice(&ports[0].to_be_bytes());
        header[2..4].copy_from_slice(&ports[1].to_be_bytes());
        header[4..8].copy_from_slice(&first.to_be_bytes());
        header[8..12].copy_from_slice(&first.wrapping_add(sequence).to_be_bytes());
        header[12..].copy_from_slice(&[(TCP_BYTES as u8 / 4) << 4, ACK, 0xff, 0xff, 0, 0, 0, 0]);
        let sum = checksum([&pseudo[..], &*header]);
        header[16..18].copy_from_slice(&sum);
    }

    /// RFC 9293, 3.1; RFC 8200, 8.1.
    fn pseudo_header(&self, bytes: usize) -> Vec<u8> {
        let bytes = (bytes as u32).to_be_bytes();
        let addresses = match (self.ends.local, self.ends.peer) {
            (IpAddr::V4(local), IpAddr::V4(peer)) => [local.octets(), peer.octets()].concat(),
            (local, peer) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                [octets(local), octets(peer)].concat()
            }
        };
        [&addresses[..], &bytes, &[0, 0, 0, TCP]].concat()
    }

    /// The acknowledgement number of a train's first segment: who has not seen one has to guess it.
    fn first(&self, train: u32) -> u32 {
        let tag = self.secret.tag([b"TCP", &train.to_be_bytes()]);
        u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]])
    }

    /// Which packet of that train a packet answers; `None`: none, or not provably.
    pub fn answered(&self, packet: &[u8], train: u32) -> Option<u32> {
        let packet = match self.ends.has_ipv4_header {
            true => packet.get(usize::from(packet.first()? & 15) * 4..)?,
            false => packet,
        };
        match self.ends.ports {
            Some(ports) => self.reset(ports, packet, train),
            None => self.echoed(packet, train),
        }
    }

    fn echoed(&self, packet: &[u8], train: u32) -> Option<u32> {
        let kind = ECHO_REPLY[usize::from(self.ends.peer.is_ipv6())];
        let datagram = packet.get(ECHO_BYTES..)?;
        let header = || Header::opened(datagram, train, &self.secret);
        let header = packet.starts_with(&[kind, 0]).then(header)??;
        Some(header.sequence)
    }

    fn reset(&self, [local, peer]: [u16; 2], packet: &[u8], train: u32) -> Option<u32> {
        let packet: &[u8; TCP_BYTES] = packet.first_chunk()?;
        let ends = [peer.to_be_bytes(), local.to_be_bytes()];
        let is_ours = packet[..4] == *ends.as_flattened() && packet[13] & RST != 0;
        let sequence = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        is_ours.then(|| sequence.wrapping_sub(self.first(train)))
    }
}

/// RFC 1071; every part but the last has an even length.
fn checksum<const PARTS: usize>(parts: [&[u8]; PARTS]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |bytes: &[u8]| u32::from(bytes[0]) << 8 | bytes.get(1).map_or(0, |&b| u32::from(b));
    let mut sum: u32 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ADDRESSES: [[&str; 2]; 2] = [["10.0.0.1", "10.0.0.2"], ["2001:db8::1", "2001:db8::2"]];

    fn packets(family: usize, ports: Option<[u16; 2]>, secret: u8) -> Packets {
        let [local, peer] = ADDRESSES[family].map(|address| address.parse().unwrap());
        let ends = Ends {
            local,
            peer,
            ports,
            has_ipv4_header: family == 0,
        };
        Packets::new(ends, Secret::new(&[secret; 32]))
    }

    fn all(secret: u8) -> [Packets; 4] {
        let ports = Some([40_000, 9]);
        [
            packets(0, None, secret),
            packets(1, None, secret),
            packets(0, ports, secret),
            packets(1, ports, secret),
        ]
    }

    /// A whole packet.
    fn written(packets: &Packets, train: u32, sequence: u32) -> Vec<u8> {
        let all = packets.written(train, sequence + 1, 200);
        let mut packet = all[all.len() - packets.written_bytes()..].to_vec();
        packet.resize(200, 0);
        packet
    }

    /// What a host answers.
    fn answer(packets: &Packets, asked: &[u8]) -> Vec<u8> {
        let mut answer = asked.to_vec();
        match packets.ends.ports {
            Some(_) => {
                answer.truncate(TCP_BYTES);
                answer[..4].rotate_left(2);
                answer.copy_within(8..12, 4);
                answer[13] = RST;
            }
            None => answer[0] = if answer[0] == 8 { 0 } else { 129 },
        }
        let header: &[u8] = if packets.ends.has_ipv4_header {
            &[0x45; IPV4_BYTES]
        } else {
            &[]
        };
        [header, &answer].concat()
    }

    #[test]
    fn an_answer_is_that_of_its_packet_and_train() {
        for packets in all(1) {
            for sequence in [0, 1, 16_383] {
                let answer = answer(&packets, &written(&packets, 7, sequence));
                assert_eq!(packets.answered(&answer, 7), Some(sequence));
                // Numbers that no train has are left out by whoever counts.
                let other = packets.answered(&answer, 8);
                assert!(other.is_none_or(|number| number > 1 << 20), "{other:?}");
            }
        }
    }

    #[test]
    fn what_nobody_asked_for_is_no_answer() {
        for (packets, of_others) in all(1).into_iter().zip(all(2)) {
            let other = answer(&of_others, &written(&of_others, 7, 3));
            let taken = packets.answered(&other, 7);
            assert!(taken.is_none_or(|number| number > 1 << 20), "{taken:?}");
            let asked = written(&packets, 7, 3);
            // What was sent, as loopback gives it back.
            let header = vec![0x45; if packets.ends.has_ipv4_header { 20 } else { 0 }];
            assert_eq!(packets.answered(&[&header, &asked[..]].concat(), 7), None);
            let mut from_other_port = answer(&packets, &asked);
            let at = from_other_port.len() - TCP_BYTES;
            from_other_port[at + 1] ^= 1;
            if packets.ends.ports.is_some() {
                assert_eq!(packets.answered(&from_other_port, 7), None);
            }
        }
    }

    #[test]
    fn checksums_are_those_that_the_receiver_computes() {
        let sums = |bytes: &[u8]| checksum([bytes]) == [0, 0];
        let [echo, _, segment, segment6] = all(3);
        assert!(sums(&written(&echo, 1, 70_000)));
        for packets in [segment, segment6] {
            let packet = written(&packets, 1, 70_000);
            assert!(sums(
                &[&packets.pseudo_header(packet.len())[..], &packet].concat()
            ));
        }
        // RFC 1071, 3.
        assert_eq!(
            checksum([&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]),
            [0x22, 0x0d]
        );
        assert_eq!(checksum([&[1]]), [0xfe, 0xff]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_proved_by_chance(bytes: Vec<u8>, train: u32) {
            for packets in all(1) {
                let taken = packets.answered(&bytes, train);
                prop_assert!(taken.is_none() || packets.ends.ports.is_some());
            }
        }

        #[test]
        fn a_cut_answer_is_none_or_the_same(sequence in 0_u32..16_384, kept in 0_usize..200) {
            for packets in all(1) {
                let mut answer = answer(&packets, &written(&packets, 7, sequence));
                answer.truncate(kept);
                let taken = packets.answered(&answer, 7);
                prop_assert!(taken.is_none_or(|number| number == sequence));
            }
        }
    }
}
