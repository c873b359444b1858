// SPDX-License-Identifier: MIT OR Apache-2.0
//! RFC 3649's formulas in floating point, and the table of its Appendix B that follows from them: what
//! the integers of bpf/cc/highspeed.h are held against, and what static HighSpeed is read from.

use std::sync::OnceLock;

/// A row of Appendix B: from this window on, `a_pkts` segments are added in a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// w, segments.
    pub window_pkts: u32,
    /// a(w), whole segments a round trip.
    pub a_pkts: u32,
    /// b(w), the fraction given up at a congestion event, in hundredths.
    pub b_percent: u32,
}

/// The four numbers of section 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Response {
    /// Low_Window, segments.
    pub low_window_pkts: f64,
    /// High_Window, segments.
    pub high_window_pkts: f64,
    /// High_P.
    pub high_p: f64,
    /// High_Decrease.
    pub high_decrease: f64,
}

impl Response {
    /// The RFC's own.
    pub const RFC: Response = Response {
        low_window_pkts: 38.0,
        high_window_pkts: 83_000.0,
        high_p: 1e-7,
        high_decrease: 0.1,
    };

    /// b(w), the fraction of the window given up at a congestion event.
    pub fn b(&self, window_pkts: f64) -> f64 {
        let line = 0.5 + (self.high_decrease - 0.5) * self.place(window_pkts);
        line.max(self.high_decrease / 2.0)
    }

    /// p(w), the loss rate at which the mean window is w. With the RFC's own numbers its own rounding
    /// of the line, 1 / (12.8 w^1.2).
    pub fn p(&self, window_pkts: f64) -> f64 {
        if *self == Response::RFC {
            return 1.0 / (12.8 * window_pkts.powf(1.2));
        }
        let low_p = 1.44 / self.low_window_pkts.powi(2);
        low_p * (self.high_p / low_p).powf(self.place(window_pkts))
    }

    /// a(w), segments a round trip: at least Reno's 1.
    pub fn a(&self, window_pkts: f64) -> f64 {
        self.a_of_formula(window_pkts).max(1.0)
    }

    fn a_of_formula(&self, window_pkts: f64) -> f64 {
        let b = self.b(window_pkts);
        window_pkts.powi(2) * self.p(window_pkts) * 2.0 * b / (2.0 - b)
    }

    /// 0 at Low_Window, 1 at High_Window.
    fn place(&self, window_pkts: f64) -> f64 {
        (window_pkts / self.low_window_pkts).ln()
            / (self.high_window_pkts / self.low_window_pkts).ln()
    }
}

/// Appendix B up to windows of 100,000 segments, as the RFC's program makes it: a row whenever a(w) has
/// grown by more than 1 since the row before.
pub fn appendix_b() -> &'static [Row] {
    static TABLE: OnceLock<Vec<Row>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut rows = vec![row(38, 1.0)];
        let mut last_a = 1.0;
        for window_pkts in 39..100_000 {
            let a = Response::RFC.a_of_formula(f64::from(window_pkts));
            if a > last_a + 1.0 {
                rows.push(row(window_pkts, a));
                last_a = a;
            }
        }
        rows
    })
}

fn row(window_pkts: u32, a: f64) -> Row {
    Row {
        window_pkts,
        a_pkts: a as u32,
        b_percent: (Response::RFC.b(f64::from(window_pkts)) * 100.0).round() as u32,
    }
}
