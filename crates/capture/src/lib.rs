// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet captures: what a file of pcap or pcapng says of each TCP connection in it.
//!
//! Pure: bytes and times are arguments, a file is anything that reads. It opens no file, decompresses nothing, draws
//! nothing, and puts no payload together. A capture is hostile input: no bytes make it panic, and what it holds is
//! bounded by the number of connections ([`Limits`]), never by the number of packets.
//!
//! Start at [`Analysis`]: frames of a [`Reader`] come in, [`Connection`]s go out. `decode` makes a [`Segment`] of a frame;
//! `connection` has the two directions of a connection; `half` is one direction, where everything is judged; `loss` tells
//! why a segment was sent again; `compare` has two captures of one connection. docs/capture.md defines each field beside what tshark and tcptrace say.

mod about;
mod analysis;
mod beside;
mod compare;
mod connection;
mod decode;
mod distribution;
mod echo;
mod findings;
mod half;
mod history;
mod loss;
mod options;
mod outstanding;
mod pcapng;
mod prefetch;
mod ranges;
mod reader;
mod report;
mod segment;
#[cfg(test)]
mod tests;
mod verdict;
mod writer;

pub use about::About;
pub use analysis::{Analysis, Counts, Limits};
pub use beside::{Beside, Medians};
pub use compare::{Capture, Compared, ComparedWay, Comparison, DelaySummary, Known, Lost};
pub use decode::{NoSegment, decode, decode_in_tunnels};
pub use distribution::Summary;
pub use history::{History, KernelSaid, Mark, Point, Span, Way, goodput};
pub use options::{MAX_SACK_BLOCKS, Options};
pub use reader::{Frame, ReadError, Reader};
pub use report::{Connection, Direction, Ended, Finding, Handshake, Near, Retransmissions};
pub use segment::{Ecn, End, Segment, flag};
pub use verdict::{Retransmission, Verdict};
pub use writer::{Writer, Written};
