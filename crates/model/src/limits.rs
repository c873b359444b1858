// SPDX-License-Identifier: MIT OR Apache-2.0
//! What TCP's header allows, RFC 7323: the largest window, and how soon sequence numbers and timestamps wrap.

use crate::{Losses, Model};

/// Window scale and PAWS.
pub const MODEL: Model = Model {
    name: "limits",
    formula: "65535 × 2^14 bytes; 2^31 / rate; 2^31 ticks",
    source: "RFC 7323, sections 1.1, 2.2, 2.3, 5.2 to 5.5",
    losses: Losses::None,
    range: &[],
    sim_error: None,
};

/// The window field without scaling, bytes (RFC 9293, 3.1).
pub const UNSCALED_WINDOW_BYTES: u64 = 65_535;
/// The largest shift, RFC 7323, 2.3.
pub const MAX_SCALE: u32 = 14;
/// Half of the sequence space: older and newer bytes are told apart within it (RFC 7323, 2.2 and 5.2).
const HALF_SEQUENCE_BYTES: f64 = 2_147_483_648.0;
/// Half of the timestamps' space, ticks (RFC 7323, 5.2).
const HALF_TIMESTAMPS: f64 = 2_147_483_648.0;

/// The largest window with a scale of 0 to 14, bytes.
pub fn largest_window_bytes(scale: u32) -> u64 {
    UNSCALED_WINDOW_BYTES << scale.min(MAX_SCALE)
}

/// The least scale with which the window field holds this many bytes; `None`: none does.
pub fn scale_needed(window_bytes: f64) -> Option<u32> {
    (0..=MAX_SCALE).find(|scale| largest_window_bytes(*scale) as f64 >= window_bytes)
}

/// The rate at which a window of this scale is all that limits, bits of data a second.
pub fn window_limit_bps(scale: u32, rtt_s: f64) -> f64 {
    largest_window_bytes(scale) as f64 * 8.0 / rtt_s
}

/// The time in which half of the sequence space is sent, seconds (RFC 7323's T_wrap): an old duplicate that is later than
/// this is taken for new data, but for PAWS.
pub fn sequence_wrap_s(data_bps: f64) -> f64 {
    HALF_SEQUENCE_BYTES * 8.0 / data_bps
}

/// The time in which half of the timestamps pass, seconds: an idle connection's last timestamp says nothing after it
/// (RFC 7323, 5.5). 24.8 days at 1 ms.
pub fn timestamp_wrap_s(tick_s: f64) -> f64 {
    HALF_TIMESTAMPS * tick_s
}

/// The rate up to which PAWS protects, bits of data a second: timestamps must change within half of the sequence space.
pub fn paws_limit_bps(tick_s: f64) -> f64 {
    HALF_SEQUENCE_BYTES * 8.0 / tick_s
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7323, 1.1: bits a second, seconds.
    #[test]
    fn the_rfc_s_table_of_wrap_times() {
        let rows = [
            (56e3, 3e5),
            (1.5e6, 1e4),
            (10e6, 1_700.0),
            (45e6, 380.0),
            (100e6, 170.0),
            (1e9, 17.0),
            (10e9, 1.7),
        ];
        for (bps, seconds) in rows {
            assert!((sequence_wrap_s(bps) / seconds - 1.0).abs() < 0.15, "{bps}");
        }
    }

    #[test]
    fn the_largest_window_is_below_a_gibibyte() {
        assert_eq!(largest_window_bytes(14), 1_073_725_440);
        assert_eq!(largest_window_bytes(20), largest_window_bytes(14));
        // 86 Gb/s at 100 ms.
        assert!((window_limit_bps(14, 0.1) / 85.9e9 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_scale_is_the_least_that_holds_the_window() {
        assert_eq!(scale_needed(65_535.0), Some(0));
        assert_eq!(scale_needed(65_536.0), Some(1));
        assert_eq!(scale_needed(12.5e6), Some(8));
        assert_eq!(scale_needed(2e9), None);
    }

    #[test]
    fn a_millisecond_protects_up_to_17_terabits() {
        assert!((timestamp_wrap_s(1e-3) / 86_400.0 - 24.86).abs() < 0.01);
        assert!((paws_limit_bps(1e-3) / 17.2e12 - 1.0).abs() < 1e-2);
    }
}
