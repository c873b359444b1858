// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows as a bulk transfer over 100 ms gives them.

use fatpath_api::SampleKind;
use fatpath_estats::testing;
use fatpath_record::Row;

/// 2026-11-22T00:00:00Z.
pub const BEGIN_US: i64 = 1_795_305_600_000_000;

/// The nth row of a flow, each 100 ms; its counters follow from `n` alone.
pub fn row(cookie: u64, n: u64) -> Row {
    let kind = match n {
        0 => SampleKind::Begin,
        _ => SampleKind::Interval,
    };
    let mut sample = testing::sample(cookie, kind, n * 100_000_000);
    sample.flow.remote = format!("[2001:db8::{cookie}]:5201")
        .parse()
        .expect("an address");
    sample.law = "fp_scalable".into();
    sample.bytes_acked = n * 125_000;
    sample.bytes_received = 0;
    (sample.segs_retrans, sample.cong_signals) = (n / 10, (n / 10) as u32);
    sample.rtt_us = n.is_multiple_of(2).then_some(100_000 + n as u32);
    sample.srtt_us = 100_500;
    sample.cwnd_pkts = 100 + n as u32 % 7;
    sample.ssthresh_pkts = (n >= 10).then_some(50);
    (sample.packets_out, sample.sacked_out) = (90, 4);
    (sample.lost_out, sample.retrans_out) = (1, 1);
    sample.is_cwnd_limited = true;
    Row {
        time_us: BEGIN_US + n as i64 * 100_000,
        sample,
    }
}
