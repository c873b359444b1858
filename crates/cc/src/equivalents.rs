// SPDX-License-Identifier: MIT OR Apache-2.0
//! AIMD(a, b) as administrators ask for it (Dunigan, Mathis, Tierney, "A TCP Tuning Daemon", 4.3), and what of
//! Scalable TCP's parameters follows from the others.

use crate::{Law, ParameterError, rfc3649};

/// `a` × legacy window / `b` of Scalable TCP: "fixing lwnd fixes the ratio a/b" (Kelly, "Implementation issues
/// for high-speed TCPs", 2003), here as its recommended values 0.01, 16 and 1/8 have it.
const SCALABLE_RATIO: f64 = 0.01 * 16.0 / 0.125;

/// Of the mean window under a loss rate p, sqrt(a (2 - b) / (2 b p)), Reno's part: (1, 0.5).
const RENO: f64 = 1.5;

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

    /// The law with the parameters given, and which other one follows from them: of Scalable TCP, `a` or `b` where
    /// only one of them, or only the legacy window, is given; the nearest in its range.
    ///
    /// # Errors
    /// See [`Law::with_all`].
    pub fn with_given(
        self,
        given: &[(&str, f64)],
    ) -> Result<(Law, Option<&'static str>), ParameterError> {
        let law = self.with_all(given)?;
        let is_given = |key| given.iter().any(|(other, _)| *other == key);
        let derived = match (is_given("a"), is_given("b")) {
            _ if law.spec().name != "scalable" || given.is_empty() => return Ok((law, None)),
            (true, true) => return Ok((law, None)),
            (true, false) => "b",
            (false, _) => "a",
        };
        let ratio = SCALABLE_RATIO / law.number("legacy_window");
        let value = match derived {
            "b" => law.number("a") / ratio,
            _ => law.number("b") * ratio,
        };
        let (_, spec) = law.parameter(derived)?;
        let value = value.clamp(spec.to_number(spec.min), spec.to_number(spec.max));
        Ok((law.with(derived, value)?, Some(derived)))
    }

    /// The legacy window that belongs to Scalable TCP's `a` and `b`; `None` for another law.
    pub fn legacy_window_of_ratio(&self) -> Option<f64> {
        let is_scalable = self.spec().name == "scalable";
        is_scalable.then(|| SCALABLE_RATIO * self.number("b") / self.number("a"))
    }

    /// As many flows of Reno have the mean window of one of AIMD(a, b), at the same loss rate; `None` for another
    /// law.
    pub fn reno_flows(&self) -> Option<f64> {
        let is_aimd = self.spec().name == "aimd";
        let square = |a: f64, b: f64| a * (2.0 - b) / (2.0 * b) / RENO;
        is_aimd.then(|| square(self.number("a"), self.number("b")).sqrt())
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
