// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the window of a flow that closed last says of its path.

use crate::record::Record;
use crate::window::window_ns;
use fatpath_path::{Limit, PathKey};

impl Record {
    /// Which path the flow takes, and what the window that closed last shows of it; none before the first.
    pub(crate) fn latest_window(
        &self,
        unix_minus_monotonic_us: i64,
    ) -> Option<(PathKey, fatpath_path::Window)> {
        let closed = self.latest.closed?;
        let (key, evidence) = self.evidence(unix_minus_monotonic_us);
        let by_loss = evidence.loss.filter(|loss| loss.holds_back());
        let at_us = ((closed.at_ns / 1000) as i64).saturating_add(unix_minus_monotonic_us);
        let window = fatpath_path::Window {
            flow: self.last.flow.cookie,
            at_us,
            length_us: ((closed.length_ns.max(window_ns(&self.last))) / 1000) as i64,
            rtt_us: f64::from(closed.rtt_us),
            mean_rtt_us: closed.mean_rtt_us.max(f64::from(closed.rtt_us)),
            bps: closed.window.bps,
            limit: closed.window.limit.or(by_loss.map(|_| Limit::Loss)),
            lost: closed.lost,
            receives: closed.receives,
        };
        Some((key, window))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{SECOND, sample};
    use crate::{Bounds, FlowTable};
    use fatpath_api::{Sample, SampleKind};
    use fatpath_path::{Limit, Window};

    /// The latest window of a flow that is sampled ten times a second; `with` says what each tenth is like.
    fn latest(tenths: u64, with: impl Fn(u64, Sample) -> Sample) -> Option<Window> {
        let mut table = FlowTable::new(Bounds::default());
        for tenth in 0..=tenths {
            let moved = 1_000_000 * tenth;
            let sending = Sample {
                bytes_sent: moved,
                bytes_acked: moved,
                data_segs_out: moved / 1448,
                delivered_pkts: moved / 1000,
                busy_us: 100_000 * tenth,
                ..sample(1, SampleKind::Interval, tenth * SECOND / 10)
            };
            table.take(with(tenth, sending));
        }
        let told = table.windows(&[1], 1_000_000).pop();
        told.map(|(_, window)| window)
    }

    #[test]
    fn a_path_that_changes_under_a_flow_shows_in_its_latest_window() {
        let changed = |tenth: u64, sample: Sample| {
            let moved = 1_000_000 * tenth.min(50) + 250_000 * tenth.saturating_sub(50);
            Sample {
                rtt_us: Some(if tenth > 50 { 80_000 } else { 20_000 }),
                bytes_acked: moved,
                ..sample
            }
        };
        let before = latest(50, changed).unwrap();
        assert_eq!((before.rtt_us, before.limit), (20e3, None));
        assert!((before.bps - 8e7).abs() < 1e6, "{before:?}");
        let after = latest(90, changed).unwrap();
        assert_eq!(after.rtt_us, 80e3);
        assert!((after.bps - 2e7).abs() < 1e6, "{after:?}");
        assert!(after.at_us > before.at_us);
    }

    #[test]
    fn what_held_it_back_is_told() {
        let held = latest(50, |tenth, sample| Sample {
            sndbuf_limited_us: 90_000 * tenth,
            ..sample
        });
        assert_eq!(held.unwrap().limit, Some(Limit::OwnBuffer));
        let receiving = latest(50, |_, sample| Sample {
            bytes_received: sample.bytes_acked,
            bytes_acked: 1,
            rcv_rtt_us: 30_000,
            receive_window_bytes: 100_000_000,
            ..sample
        });
        let receiving = receiving.unwrap();
        assert!(
            receiving.receives && receiving.rtt_us == 30e3,
            "{receiving:?}"
        );
    }

    #[test]
    fn a_flow_has_none_before_one_has_closed() {
        assert_eq!(latest(5, |_, sample| sample), None);
    }
}
