// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIMD(a, b) as administrators ask for it (Dunigan, Mathis, Tierney, "A TCP Tuning Daemon", 4.3).

use crate::{Law, ParameterError, rfc3649};

impl Law {
    /// AIMD(`a`, `b`): `a` segments added in a round trip, the fraction `b` given up.
    ///
    /// # Errors
    /// When one of them is out of range.
    pub fn aimd(a: f64, b: f64) -> Result<Law, ParameterError> {
        let aimd = Law::named("aimd").expect("it is in the table");
        aimd.with_all(&[("a", a), ("b", b)])
    }

    /// A virtual MSS of `k` segments: Reno that adds `k` segments in a round trip.
    ///
    /// # Errors
    /// When `k` is not between 0.01 and 10,000.
    pub fn virtual_mss(k: f64) -> Result<Law, ParameterError> {
        Law::aimd(k, 0.5)
    }

    /// One flow that behaves as `streams` parallel ones of Reno: (N, 1/(2N)).
    ///
    /// # Errors
    /// When there are none, or more than 1,000.
    pub fn parallel_streams(streams: u32) -> Result<Law, ParameterError> {
        let n = f64::from(streams);
        Law::aimd(n, 0.5 / n)
    }

    /// Static HighSpeed: (a, b) once and for all from the window that a buffer holds, by the first row
    /// of RFC 3649's Appendix B that is not below it (the last one above all).
    ///
    /// # Errors
    /// None with the table as it is.
    pub fn static_highspeed(buffer_bytes: u64, mss_bytes: u32) -> Result<Law, ParameterError> {
        let window_pkts = buffer_bytes / u64::from(mss_bytes.max(1));
        let rows = rfc3649::appendix_b();
        let index = rows.partition_point(|row| u64::from(row.window_pkts) < window_pkts);
        let row = rows[index.min(rows.len() - 1)];
        Law::aimd(f64::from(row.a_pkts), f64::from(row.b_percent) / 100.0)
    }
}
