// SPDX-License-Identifier: MIT OR Apache-2.0
//! What headers take of a packet, and of a rate.
//!
//! Pure. IP without options; every TCP segment has timestamps.

/// IPv4 (RFC 791).
pub const IPV4_BYTES: u32 = 20;
/// IPv4 and TCP (RFC 791, RFC 9293).
pub const IPV4_TCP_BYTES: u32 = 40;
/// IPv6 and TCP (RFC 8200, RFC 9293).
pub const IPV6_TCP_BYTES: u32 = 60;
/// TCP timestamps with their padding (RFC 7323, appendix A); TCP_MAXSEG counts them as payload.
pub const TIMESTAMP_BYTES: u32 = 12;
/// IPv4 and UDP (RFC 768).
pub const UDP_BYTES: u32 = 28;
/// Payload of a TCP segment over Ethernet.
pub const ETHERNET_MSS_BYTES: u32 = 1500 - IPV4_TCP_BYTES - TIMESTAMP_BYTES;

/// The rate from the IP header on of datagrams whose payloads have this one, as iperf3 gives it.
pub fn udp_rate_bps(payload_rate_bps: u64, payload_bytes: u32) -> u64 {
    let [payload, packet] = [payload_bytes, payload_bytes + UDP_BYTES].map(u128::from);
    (u128::from(payload_rate_bps) * packet / payload) as u64
}

/// The other way round.
pub fn udp_payload_rate_bps(rate_bps: u64, payload_bytes: u32) -> u64 {
    let [payload, packet] = [payload_bytes, payload_bytes + UDP_BYTES].map(u128::from);
    (u128::from(rate_bps) * payload / packet) as u64
}
