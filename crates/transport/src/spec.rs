// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both ends of a connection are set to, which they have to agree on.

use fatpath_tcp::{Buffer, MAX_BLOCKS, OutOfRange, TcpSpec};
use std::ops::RangeInclusive;

use super::keys::Cipher;
use super::packet::{HEADER_BYTES, TAG_BYTES};
use super::queue::Run;

/// Of a datagram, what is no run: header, segment's number, tag.
pub(crate) const OVERHEAD_BYTES: u32 = (HEADER_BYTES + 8 + TAG_BYTES) as u32;
/// A sender holds no data, so nothing bounds what is written but this.
const SEND_BUFFER_BYTES: u64 = 1 << 50;

/// A connection.
#[derive(Clone, Debug)]
pub struct Spec {
    /// TCP's part: the law, how losses are found, whether ECN is tried. Its segment size and buffers follow from the rest. Its
    /// pacing rate is that of UDP payload, headers of the transport among it.
    ///
    /// A flow without congestion control (`rude`) needs the permission of its host (docs/rude.md), for which this crate cannot
    /// ask: whoever makes one has it, marks its datagrams, and calls [`Sender::be_polite_now`](crate::Sender::be_polite_now)
    /// when it ends. The pacing rate holds for it too. Its datagrams are never ECN-capable.
    pub tcp: TcpSpec,
    /// What seals.
    pub cipher: Cipher,
    /// UDP payload of a full datagram, at first where the path's MTU is searched: whoever gives it knows that it passes.
    pub datagram_bytes: u16,
    /// The path's MTU is searched (RFC 8899): UDP payload that it is fallen back to where longer datagrams vanish, and the most.
    /// `None`: the size stays as it is. The receiver takes what is no longer than the most.
    pub search: Option<RangeInclusive<u16>>,
    /// The most that may be on its way beyond what has arrived in order.
    pub window_bytes: u64,
    /// What is to be sent again leaves after all else that was given, and may arrive twice; else at once.
    pub lost_last: bool,
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
    #[error("datagrams: give 512 to 65507 bytes, and a search that holds the size at first")]
    Datagram,
    /// The window.
    #[error("window: give two datagrams at least, and 2^40 bytes at most")]
    Window,
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
            search: None,
            window_bytes: 64 << 20,
            lost_last: false,
            silence_ns: 30_000_000_000,
        }
    }
}

impl Spec {
    /// Least and most UDP payload of a datagram: what fits IPv4's least MTU with something to spare, and what UDP carries.
    pub const DATAGRAM_BYTES: RangeInclusive<u16> = 512..=65_507;

    /// Header of a run of bytes of one object.
    pub const RUN_HEADER_BYTES: u16 = Run::HEADER_BYTES as u16;

    /// Of a datagram with bytes of one object, what is not these bytes.
    pub const OVERHEAD_BYTES: u16 = OVERHEAD_BYTES as u16 + Spec::RUN_HEADER_BYTES;

    /// Says what no connection can be made of.
    ///
    /// # Errors
    /// The first such value.
    pub fn check(&self) -> Result<(), SpecError> {
        self.tcp().map(drop)
    }

    /// The same connection as TCP segments, for the simulator: each as long as a full datagram with `network_bytes` of IP and UDP
    /// headers. Headers of runs count as data.
    pub fn as_tcp(&self, network_bytes: u32) -> TcpSpec {
        TcpSpec {
            pacing_rate_bps: self.pacing_rate_bps(self.datagram_bytes),
            mss_bytes: Spec::segment_bytes(self.datagram_bytes),
            header_bytes: network_bytes + OVERHEAD_BYTES,
            send_buffer: Buffer::Fixed(SEND_BUFFER_BYTES),
            receive_buffer: Buffer::Fixed(self.window_bytes),
            ..self.tcp.clone()
        }
    }

    /// Bytes of a segment for runs with their headers, in datagrams of this size.
    pub(crate) fn segment_bytes(datagram_bytes: u16) -> u32 {
        u32::from(datagram_bytes).saturating_sub(OVERHEAD_BYTES)
    }

    /// Of the longest segment that a receiver takes.
    pub(crate) fn most_segment_bytes(&self) -> u32 {
        Spec::segment_bytes(self.most_datagram_bytes())
    }

    fn most_datagram_bytes(&self) -> u16 {
        let most = self.search.as_ref().map(|search| *search.end());
        self.datagram_bytes.max(most.unwrap_or(0))
    }

    /// What the rate of datagrams is as one of segments, in datagrams of this size.
    pub(crate) fn pacing_rate_bps(&self, datagram_bytes: u16) -> Option<u64> {
        let of_segments = |rate_bps: u64| {
            let bits = u128::from(rate_bps) * u128::from(Spec::segment_bytes(datagram_bytes));
            bits.div_ceil(datagram_bytes.into()) as u64
        };
        self.tcp.pacing_rate_bps.map(of_segments)
    }

    fn is_search_possible(&self) -> bool {
        self.search.as_ref().is_none_or(|search| {
            let is_allowed = |bytes| Spec::DATAGRAM_BYTES.contains(bytes);
            search.contains(&self.datagram_bytes)
                && is_allowed(search.start())
                && is_allowed(search.end())
        })
    }

    /// TCP's part of an end.
    pub(crate) fn tcp(&self) -> Result<TcpSpec, SpecError> {
        if !Spec::DATAGRAM_BYTES.contains(&self.datagram_bytes) || !self.is_search_possible() {
            return Err(SpecError::Datagram);
        }
        if !(2 * u64::from(self.most_datagram_bytes())..=1 << 40).contains(&self.window_bytes) {
            return Err(SpecError::Window);
        }
        let tcp = TcpSpec {
            pacing_rate_bps: self.pacing_rate_bps(self.datagram_bytes),
            mss_bytes: Spec::segment_bytes(self.datagram_bytes),
            send_buffer: Buffer::Fixed(SEND_BUFFER_BYTES),
            receive_buffer: Buffer::Fixed(self.window_bytes),
            drops: vec![], // the transport's own: it has to know of each segment
            ..self.tcp.clone()
        };
        tcp.check()?;
        Ok(tcp)
    }
}
