// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filter: a program of classic BPF (linux/filter.h) that accepts the TCP packets of one connection, both ways, and
//! says how much of them is kept. It sees packets from the IP header on. Pure.
//!
//! It passes over fragments but the first, which have no ports, and over IPv6 packets with extension headers.

use std::net::{IpAddr, SocketAddr};

/// How much of a packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// IP and TCP headers, no payload.
    Headers,
    /// So many bytes, payload among them.
    Bytes(u32),
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub code: u16,
    pub if_true: u8,
    pub if_false: u8,
    pub operand: u32,
}

/// Codes of linux/filter.h, bpf_common.h.
mod code {
    pub const LOAD_WORD: u16 = 0x20;
    pub const LOAD_HALF: u16 = 0x28;
    pub const LOAD_BYTE: u16 = 0x30;
    pub const LOAD_HALF_BEHIND_X: u16 = 0x48;
    pub const LOAD_BYTE_BEHIND_X: u16 = 0x50;
    /// X = 4 * (byte & 15).
    pub const X_HEADER_LENGTH: u16 = 0xb1;
    pub const X_CONSTANT: u16 = 0x01;
    pub const IF_EQUAL: u16 = 0x15;
    pub const IF_SET: u16 = 0x45;
    pub const AND: u16 = 0x54;
    pub const SHIFT_RIGHT: u16 = 0x74;
    pub const ADD_X: u16 = 0x0c;
    pub const ACCEPT_CONSTANT: u16 = 0x06;
    pub const ACCEPT_A: u16 = 0x16;
}

const TCP: u32 = 6;
const FRAGMENT_OFFSET: u32 = 0x1fff;

/// Something that must hold, as instructions that fall through when it does.
enum Test {
    /// Loads with the code at the offset; must be equal.
    Equal(u16, u32, u32),
    /// A byte's upper half.
    Version(u32),
    NotFragment,
    /// X = where the TCP header begins.
    HeaderBehind(u16, u32),
}

/// None when one end is of IPv4 and the other of IPv6.
pub(crate) fn program(ends: [SocketAddr; 2], keep: Keep) -> Option<Vec<Instruction>> {
    let [a, b] = ends;
    let ways = [way(a, b)?, way(b, a)?];
    let mut program = Vec::new();
    for tests in ways {
        let accept = accept(keep);
        let lengths = tests.iter().map(|test| instructions(test, 0).len());
        let mut left = lengths.sum::<usize>() + accept.len();
        for test in &tests {
            left -= instructions(test, 0).len();
            program.extend(instructions(test, left as u8));
        }
        program.extend(accept);
    }
    program.push(jump(code::ACCEPT_CONSTANT, 0, 0, 0));
    Some(program)
}

fn way(from: SocketAddr, to: SocketAddr) -> Option<Vec<Test>> {
    let ports = [from, to].map(|end| u32::from(end.port()));
    let mut tests = match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => vec![
            Test::Version(4),
            Test::Equal(code::LOAD_BYTE, 9, TCP),
            Test::NotFragment,
            Test::Equal(code::LOAD_WORD, 12, from.to_bits()),
            Test::Equal(code::LOAD_WORD, 16, to.to_bits()),
            Test::HeaderBehind(code::X_HEADER_LENGTH, 0),
        ],
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut tests = vec![Test::Version(6), Test::Equal(code::LOAD_BYTE, 6, TCP)];
            for (address, at) in [(from, 8), (to, 24)] {
                let bits = address.to_bits();
                let words = (0..4).map(|n| (bits >> (96 - 32 * n)) as u32);
                let words = words.zip((at..).step_by(4));
                tests.extend(words.map(|(word, at)| Test::Equal(code::LOAD_WORD, at, word)));
            }
            tests.push(Test::HeaderBehind(code::X_CONSTANT, 40));
            tests
        }
        _ => return None,
    };
    let ports = ports.into_iter().zip([0, 2]);
    tests.extend(ports.map(|(port, at)| Test::Equal(code::LOAD_HALF_BEHIND_X, at, port)));
    Some(tests)
}

/// `behind` instructions lie between this test and the next way.
fn instructions(test: &Test, behind: u8) -> Vec<Instruction> {
    match *test {
        Test::Equal(load, at, value) => {
            vec![jump(load, 0, 0, at), jump(code::IF_EQUAL, 0, behind, value)]
        }
        Test::Version(version) => vec![
            jump(code::LOAD_BYTE, 0, 0, 0),
            jump(code::AND, 0, 0, 0xf0),
            jump(code::IF_EQUAL, 0, behind, version << 4),
        ],
        Test::NotFragment => vec![
            jump(code::LOAD_HALF, 0, 0, 6),
            jump(code::IF_SET, behind, 0, FRAGMENT_OFFSET),
        ],
        Test::HeaderBehind(load, at) => vec![jump(load, 0, 0, at)],
    }
}

/// X is where the TCP header begins.
fn accept(keep: Keep) -> Vec<Instruction> {
    match keep {
        Keep::Bytes(bytes) => vec![jump(code::ACCEPT_CONSTANT, 0, 0, bytes.max(1))],
        // Four times the upper half of the header's byte 12, behind the IP header.
        Keep::Headers => vec![
            jump(code::LOAD_BYTE_BEHIND_X, 0, 0, 12),
            jump(code::SHIFT_RIGHT, 0, 0, 2),
            jump(code::AND, 0, 0, 0x3c),
            jump(code::ADD_X, 0, 0, 0),
            jump(code::ACCEPT_A, 0, 0, 0),
        ],
    }
}

fn jump(code: u16, if_true: u8, if_false: u8, operand: u32) -> Instruction {
    Instruction {
        code,
        if_true,
        if_false,
        operand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does; how much it accepts.
    fn run(program: &[Instruction], packet: &[u8]) -> u32 {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
        let load = |at: u32, length: usize| {
            let bytes = packet.get(at as usize..at as usize + length)?;
            Some(
                bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
            )
        };
        loop {
            let one = program[at];
            at += 1;
            let k = one.operand;
            let loaded = match one.code {
                code::LOAD_WORD => load(k, 4),
                code::LOAD_HALF => load(k, 2),
                code::LOAD_BYTE => load(k, 1),
                code::LOAD_HALF_BEHIND_X => load(x + k, 2),
                code::LOAD_BYTE_BEHIND_X => load(x + k, 1),
                _ => Some(a),
            };
            // A load beyond the packet ends the program.
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
            match one.code {
                code::X_HEADER_LENGTH => x = load(k, 1).map_or(0, |byte| (byte & 15) * 4),
                code::X_CONSTANT => x = k,
                code::AND => a &= k,
                code::SHIFT_RIGHT => a >>= k,
                code::ADD_X => a += x,
                code::IF_EQUAL | code::IF_SET => {
                    let holds = match one.code {
                        code::IF_EQUAL => a == k,
                        _ => a & k != 0,
                    };
                    at += usize::from(if holds { one.if_true } else { one.if_false });
                }
                code::ACCEPT_CONSTANT => return k,
                code::ACCEPT_A => return a,
                _ => {}
            }
        }
    }

    fn ends(text: [&str; 2]) -> [SocketAddr; 2] {
        text.map(|end| end.parse().unwrap())
    }

    fn packet(ends: [SocketAddr; 2], ip_options: usize, tcp_options: usize) -> Vec<u8> {
        let [from, to] = ends;
        let mut packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut header = vec![
                    0x45 + (ip_options / 4) as u8,
                    0,
                    1,
                    0,
                    0,
                    0,
                    0x40,
                    0,
                    64,
                    6,
                    0,
                    0,
                ];
                header.extend([from.octets(), to.octets()].concat());
                header.resize(20 + ip_options, 0);
                header
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut header = vec![0x60, 0, 0, 0, 1, 0, 6, 64];
                header.extend([from.octets(), to.octets()].concat());
                header
            }
            _ => panic!("mixed"),
        };
        packet.extend([from.port(), to.port()].map(u16::to_be_bytes).concat());
        packet.extend([0; 8]);
        packet.push((5 + tcp_options as u8 / 4) << 4);
        packet.resize(packet.len() + 7 + tcp_options, 0);
        packet.extend([7; 100]);
        packet
    }

    #[test]
    fn it_accepts_both_ways_of_the_connection_and_keeps_the_headers() {
        let four = ends(["10.0.0.1:4000", "10.0.0.2:443"]);
        let six = ends(["[2001:db8::1]:4000", "[2001:db8::2]:443"]);
        for (ends, ip_bytes) in [(four, 20), (six, 40)] {
            let program = program(ends, Keep::Headers).unwrap();
            let back = [ends[1], ends[0]];
            assert_eq!(run(&program, &packet(ends, 0, 0)), ip_bytes + 20);
            assert_eq!(run(&program, &packet(back, 0, 12)), ip_bytes + 32);
        }
        let program = program(four, Keep::Headers).unwrap();
        assert_eq!(run(&program, &packet(four, 8, 40)), 28 + 60);
    }

    #[test]
    fn it_refuses_all_others() {
        let four = ends(["10.0.0.1:4000", "10.0.0.2:443"]);
        let accepts = program(four, Keep::Bytes(96)).unwrap();
        assert_eq!(run(&accepts, &packet(four, 0, 0)), 96);
        for other in [
            ["10.0.0.1:4001", "10.0.0.2:443"],
            ["10.0.0.1:443", "10.0.0.2:4000"],
            ["10.0.0.3:4000", "10.0.0.2:443"],
            ["[2001:db8::1]:4000", "[2001:db8::2]:443"],
        ] {
            assert_eq!(run(&accepts, &packet(ends(other), 0, 0)), 0, "{other:?}");
        }
        let mut udp = packet(four, 0, 0);
        udp[9] = 17;
        let mut fragment = packet(four, 0, 0);
        fragment[7] = 5;
        let short = packet(four, 0, 0)[..22].to_vec();
        for refused in [udp, fragment, short, vec![]] {
            assert_eq!(run(&accepts, &refused), 0);
        }
        let mixed = ends(["10.0.0.1:1", "[::1]:2"]);
        assert_eq!(program(mixed, Keep::Headers), None);
    }
}
