// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both ends of a connection are set to, which they have to agree on.

use fatpath_tcp::{Buffer, MAX_BLOCKS, OutOfRange, TcpSpec};
use std::ops::RangeInclusive;

use super::keys::Cipher;
use super::packet::{HEADER_BYTES, TAG_BYTES};

/// A segment's number.
const SEGMENT_BYTES: u32 = 8;
/// A sender holds no data, so nothing bounds what is written but this.
const SEND_BUFFER_BYTES: u64 = 1 << 50;

/// A connection.
#[derive(Clone, Debug)]
pub struct Spec {
    /// TCP's part: the law, how losses are found, whether ECN is tried. Its segment size and buffers follow from the rest. Its
    /// pacing rate is that of UDP payload, headers of the transport among it.
    pub tcp: TcpSpec,
    /// What seals.
    pub cipher: Cipher,
    /// UDP payload of a full datagram.
    pub datagram_bytes: u16,
    /// The most that may be on its way beyond what has arrived in order.
    pub window_bytes: u64,
    /// An end that waits for the other this long, and hears nothing that verifies, gives up; more than 0.
    pub silence_ns: u64,
}

/// A [`Spec`] that no connection can be made of.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// TCP's part.
    #[error(transparent)]
    Tcp(#[from] OutOfRange),
    /// The size of datagrams.
    #[error("datagrams: give 512 to 65507 bytes")]
    Datagram,
    /// The window.
    #[error("window: give two datagrams at least, and 2^40 bytes at most")]
    Window,
    /// Rude flows need the permission of the host's gate, which this crate cannot ask.
    #[error("the transport has no flows without congestion control")]
    Rude,
}

impl Default for Spec {
    /// Over Ethernet and IPv6, with more SACK blocks than a TCP header holds, and a window for 1 Gb/s by 500 ms; paced
    /// in batches of a quarter of a millisecond; with ECN, to which every law answers.
    fn default() -> Spec {
        Spec {
            tcp: TcpSpec {
                sack_blocks: MAX_BLOCKS as u8,
                pacing_quantum_ns: 250_000,
                ecn: true,
                ..TcpSpec::default()
            },
            cipher: Cipher::Aes128Gcm,
            datagram_bytes: 1452,
            window_bytes: 64 << 20,
            silence_ns: 30_000_000_000,
        }
    }
}

impl Spec {
    /// Least and most UDP payload of a datagram: what fits IPv4's least MTU with something to spare, and what UDP carries.
    pub const DATAGRAM_BYTES: RangeInclusive<u16> = 512..=65_507;

    /// Bytes of a segment for runs with their headers.
    pub(crate) fn segment_bytes(&self) -> u32 {
        let overhead = (HEADER_BYTES + TAG_BYTES) as u32 + SEGMENT_BYTES;
        u32::from(self.datagram_bytes).saturating_sub(overhead)
    }

    /// TCP's part of an end.
    pub(crate) fn tcp(&self) -> Result<TcpSpec, SpecError> {
        if !Spec::DATAGRAM_BYTES.contains(&self.datagram_bytes) {
            return Err(SpecError::Datagram);
        }
        if !(2 * u64::from(self.datagram_bytes)..=1 << 40).contains(&self.window_bytes) {
            return Err(SpecError::Window);
        }
        if self.tcp.rude.is_some() {
            return Err(SpecError::Rude);
        }
        let of_segments = |rate_bps: u64| {
            let bits = u128::from(rate_bps) * u128::from(self.segment_bytes());
            bits.div_ceil(self.datagram_bytes.into()) as u64
        };
        let tcp = TcpSpec {
            pacing_rate_bps: self.tcp.pacing_rate_bps.map(of_segments),
            mss_bytes: self.segment_bytes(),
            send_buffer: Buffer::Fixed(SEND_BUFFER_BYTES),
            receive_buffer: Buffer::Fixed(self.window_bytes),
            drops: vec![], // the transport's own: it has to know of each segment
            ..self.tcp.clone()
        };
        tcp.check()?;
        Ok(tcp)
    }
}
