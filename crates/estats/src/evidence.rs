// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow says of its path so far.

use crate::diagnosis::loss::{answers_to_loss, hold_back};
use crate::record::Record;
use crate::span::Span;
use fatpath_path::{Evidence, Law, Limit, Loss, PathKey, Under};

/// Fewer reductions of the window are chance.
const LEAST_SIGNALS: u64 = 3;

/// Losses of a law that does not answer to them met a queue where the mean queueing delay before so many of them was this
/// share of the base round-trip time.
const MANY_SIGNALS: u64 = 10;
const FULL_QUEUE: f64 = 0.5;

/// And more than this share of its bytes was sent again.
const OVERFILLS: f64 = 0.005;

/// Losses of a law that answers to them met a queue where the mean queueing delay before them was this share of the base
/// round-trip time, and more than noise.
const FILLED_QUEUE: f64 = 0.25;

/// From this share of the signals on, what they met decides.
const MOSTLY: f64 = 0.5;

/// A short queue fills before a loss, and is empty after it: there it is so many times what it is on average.
const AT_LOSSES: f64 = 2.0;

/// So many segments without a reduction are a path without losses.
const CLEAN_PKTS: u64 = 10_000;

impl Record {
    /// Which path the flow takes, and what it says of it so far. `unix_minus_monotonic_us` dates it.
    pub(crate) fn evidence(&self, unix_minus_monotonic_us: i64) -> (PathKey, Evidence) {
        let last = &self.last;
        let unix_us = |ns: u64| ((ns / 1000) as i64).saturating_add(unix_minus_monotonic_us);
        let life = self.life();
        let answers = answers_to_loss(&last.law);
        let settled = self.settled_span().filter(|_| !answers);
        let loss = match answers {
            true if self.paced_bps().is_some() => self.alone_span().as_ref().and_then(paced_loss),
            true => self.loss(&self.span_of_law()),
            // That it lost nothing does not mean that a law which answers to losses would not.
            false => settled
                .as_ref()
                .filter(|span| met_queue(span))
                .map(|_| Loss::Queue),
        };
        // The diagnosis says so of laws alone that answer to losses.
        let by_loss = loss.filter(|loss| loss.holds_back()).map(|_| Limit::Loss);
        let evidence = Evidence {
            flow: last.flow.cookie,
            begin_us: unix_us(last.begin_ns),
            seen_us: unix_us(last.now_ns),
            bytes: life.passed.bytes_acked.max(life.passed.bytes_received),
            sent_pkts: life.passed.data_segs_out,
            retransmitted_pkts: life.passed.segs_retrans,
            min_rtt_us: life.base_rtt_us(),
            // A mean over the life does not know a path that became shorter.
            mean_rtt_us: life.mean_rtt_us().max(life.base_rtt_us()),
            rate_bps: self.best_window.map(|window| window.bps),
            limit: self.best_window.and_then(|window| window.limit).or(by_loss),
            loss,
            mss_bytes: last.mss_bytes,
            excess_share: settled
                .filter(|_| self.has_shown_rate())
                .map(|span| span.retransmitted_share()),
            paced_bps: self.paced_bps(),
            paced_run_pkts: self.paced_run_pkts(),
            law: Law::named(&last.law),
            is_given: self.rule.as_ref().is_some_and(|rule| rule.is_learned),
            under: Under::default(),
        };
        let (local, remote) = (last.flow.local.ip(), last.flow.remote.ip());
        (PathKey::new(local, remote), evidence)
    }

    pub(crate) fn paced_bps(&self) -> Option<u64> {
        self.rule.as_ref()?.pacing_rate_bps
    }

    fn paced_run_pkts(&self) -> Option<u64> {
        let alone = self.alone_span().filter(|_| self.paced_bps().is_some())?;
        Some(alone.passed.data_segs_out / (1 + alone.passed.cong_signals))
    }

    /// Of a law that answers to losses. The diagnosis tells losses of a bad line and of a policer apart; what is left met a
    /// queue.
    fn loss(&self, span: &Span) -> Option<Loss> {
        let has = |id: &str| self.findings.iter().any(|finding| finding.id == id);
        let (signals, sent) = (span.passed.cong_signals, span.passed.data_segs_out);
        let met_no_queue = span
            .queue_before_loss_us()
            .is_some_and(|queue_us| queue_us < filled_queue_us(span));
        if has("FP-POLICED") {
            Some(Loss::Policed)
        } else if has("FP-LOSS-RANDOM") || met_no_queue && hold_back(span) {
            Some(short_queue_or_random(span))
        } else if signals == 0 && span.passed.segs_retrans == 0 && sent >= CLEAN_PKTS {
            Some(Loss::None)
        } else if met_queue(span) {
            Some(Loss::Queue)
        } else {
            None
        }
    }
}

/// A paced flow makes no queue of its own: where its losses met one, others kept it, and it tells nothing.
fn paced_loss(span: &Span) -> Option<Loss> {
    let is_random = hold_back(span) && span.share_without_queue() >= Some(MOSTLY);
    is_random.then_some(Loss::Random)
}

/// The kind of losses that met no queue which is long enough for the law.
fn short_queue_or_random(span: &Span) -> Loss {
    let met_queue = span
        .share_without_queue()
        .is_some_and(|share| share < MOSTLY);
    // Where round trips vary by themselves, they are as long at other times.
    let is_at_losses = span.queue_before_loss_us() >= Some(AT_LOSSES * span.path_queue_us());
    match met_queue && is_at_losses {
        true => Loss::ShortQueue,
        false => Loss::Random,
    }
}

/// A queue that was full before a loss, and was shorter, leaves CUBIC with less than the path's rate: with three tenths of its
/// window given up, 0.43 of a round trip are needed.
fn filled_queue_us(span: &Span) -> f64 {
    span.queue_threshold_us()
        .max(FILLED_QUEUE * span.base_rtt_us())
}

/// Whether the losses met a queue. A law that does not answer to losses loses much where it overfills a queue, and a queue
/// that it merely keeps is not what the few losses of a bad line come of.
fn met_queue(span: &Span) -> bool {
    let answers = answers_to_loss(&span.last.law);
    let (least, queue_us) = match answers {
        true => (LEAST_SIGNALS, filled_queue_us(span)),
        false => (MANY_SIGNALS, FULL_QUEUE * span.base_rtt_us()),
    };
    span.passed.cong_signals >= least
        && span.queue_before_loss_us() >= Some(queue_us)
        && (answers || span.retransmitted_share() >= OVERFILLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SECOND, sample};
    use crate::{Bounds, Derived, FlowTable, Rule};
    use fatpath_api::{Sample, SampleKind};

    /// What a flow of 20 s says that moves 10 MB a second; `with` makes each tenth what a test wants.
    fn told(with: impl Fn(u64, Sample) -> Sample) -> (PathKey, Evidence) {
        told_under(Vec::new(), with)
    }

    fn told_under(
        rules: Vec<(u32, Rule)>,
        with: impl Fn(u64, Sample) -> Sample,
    ) -> (PathKey, Evidence) {
        let mut table = FlowTable::new(Bounds::default());
        table.set_policy(rules, Derived::default());
        for tenth in 0..=200 {
            let moved = 1_000_000 * tenth;
            let kind = match tenth {
                200 => SampleKind::End,
                _ => SampleKind::Interval,
            };
            let sending = Sample {
                bytes_sent: moved,
                bytes_acked: moved,
                data_segs_out: moved / 1448,
                delivered_pkts: moved / 1000,
                busy_us: 100_000 * tenth,
                ssthresh_pkts: Some(5),
                ..sample(1, kind, tenth * SECOND / 10)
            };
            table.take(with(tenth, sending));
        }
        table.evidence(&[1], 1_000_000).pop().unwrap()
    }

    #[test]
    fn a_flow_that_the_path_holds_back_tells_its_rate() {
        let (key, seen) = told(|_, sample| sample);
        assert_eq!(
            key,
            PathKey::new(
                sample(1, SampleKind::End, 0).flow.local.ip(),
                sample(1, SampleKind::End, 0).flow.remote.ip()
            )
        );
        assert!((seen.rate_bps.unwrap() - 8e7).abs() < 1e5, "{seen:?}");
        assert_eq!((seen.limit, seen.loss), (None, Some(Loss::None)));
        assert_eq!(seen.begin_us, 100_000_000 + 1_000_000);
        assert_eq!(seen.seen_us - seen.begin_us, 20_000_000);
        assert!(seen.is_usable());
    }

    #[test]
    fn what_held_it_back_is_told() {
        let limit = |with: fn(u64, Sample) -> Sample| told(with).1.limit;
        let receiver = limit(|tenth, sample| Sample {
            rwnd_limited_us: 90_000 * tenth,
            ..sample
        });
        assert_eq!(receiver, Some(Limit::PeerWindow));
        let buffer = limit(|tenth, sample| Sample {
            sndbuf_limited_us: 90_000 * tenth,
            ..sample
        });
        assert_eq!(buffer, Some(Limit::OwnBuffer));
        let application = limit(|tenth, sample| Sample {
            busy_us: 10_000 * tenth,
            ..sample
        });
        assert_eq!(application, Some(Limit::Application));
    }

    #[test]
    fn a_receiver_knows_its_own_window_alone() {
        let receiving = |window_bytes: u32| {
            told(move |_, sample| Sample {
                bytes_received: sample.bytes_acked,
                bytes_acked: 1,
                rcv_rtt_us: 100_000,
                receive_window_bytes: window_bytes,
                ..sample
            })
        };
        assert_eq!(receiving(1_000_000).1.limit, Some(Limit::OwnBuffer));
        assert_eq!(receiving(8_000_000).1.limit, Some(Limit::Application));
    }

    #[test]
    fn a_buffer_that_the_program_set_is_told_apart() {
        let sending = |tenth, sample| Sample {
            sndbuf_limited_us: 90_000 * tenth,
            send_buffer_is_locked: true,
            ..sample
        };
        assert_eq!(told(sending).1.limit, Some(Limit::ProgramBuffer));
        let receiving = |_, sample: Sample| Sample {
            bytes_received: sample.bytes_acked,
            bytes_acked: 1,
            rcv_rtt_us: 100_000,
            receive_window_bytes: 1_000_000,
            receive_buffer_is_locked: true,
            ..sample
        };
        assert_eq!(told(receiving).1.limit, Some(Limit::ProgramBuffer));
    }

    #[test]
    fn a_pause_does_not_lower_the_best_rate() {
        let (_, seen) = told(|tenth, sample| {
            let moved = 1_000_000 * tenth.min(100);
            Sample {
                bytes_acked: moved,
                ..sample
            }
        });
        assert!((seen.rate_bps.unwrap() - 8e7).abs() < 1e5, "{seen:?}");
    }

    #[test]
    fn what_waited_behind_a_lost_segment_does_not_make_a_window_faster() {
        let (_, seen) = told(|tenth, sample| {
            let is_lost = (tenth / 5) % 2 == 1;
            Sample {
                bytes_acked: sample.bytes_acked - u64::from(is_lost) * 900_000,
                ..sample
            }
        });
        assert!((seen.rate_bps.unwrap() - 8e7).abs() < 1e5, "{seen:?}");
    }

    #[test]
    fn losses_behind_a_queue_are_the_queues() {
        let (_, seen) = told(|tenth, sample| Sample {
            cong_signals: (tenth / 20) as u32,
            pre_cong_sum_rtt_us: tenth / 20 * 60_000,
            ..sample
        });
        assert_eq!(seen.loss, Some(Loss::Queue), "{seen:?}");
    }

    #[test]
    fn two_losses_without_a_queue_are_random() {
        let with_losses = |signals: u32, rtt_us: u64| {
            told(move |_, sample| Sample {
                cong_signals: signals,
                pre_cong_sum_rtt_us: u64::from(signals) * rtt_us,
                ..sample
            })
        };
        let (_, seen) = with_losses(2, 21_000);
        assert_eq!(
            (seen.loss, seen.limit),
            (Some(Loss::Random), Some(Limit::Loss))
        );
        assert_eq!(with_losses(2, 60_000).1.loss, None);
    }

    #[test]
    fn losses_behind_a_queue_that_is_too_short_for_the_law_are_told_apart() {
        let with_queue = |rtt_us: u64, queue_us: u64| {
            let (_, seen) = told(move |tenth, sample| Sample {
                min_rtt_us: Some(rtt_us as u32),
                cong_signals: (tenth / 20) as u32,
                pre_cong_sum_rtt_us: tenth / 20 * (rtt_us + queue_us),
                ..sample
            });
            seen.loss
        };
        assert_eq!(with_queue(100_000, 2_000), Some(Loss::Random));
        // As CoDel keeps it.
        assert_eq!(with_queue(100_000, 5_000), Some(Loss::ShortQueue));
        assert_eq!(with_queue(100_000, 14_000), Some(Loss::ShortQueue));
        assert_eq!(with_queue(100_000, 40_000), Some(Loss::Queue));
        assert_eq!(with_queue(20_000, 7_000), Some(Loss::Queue));
    }

    #[test]
    fn a_queue_before_losses_is_short_where_it_is_no_burst_of_slow_start_and_no_jitter() {
        let loss = |ssthresh_pkts: Option<u32>, mean_rtt_us: u64| {
            let (_, seen) = told(move |tenth, sample| Sample {
                ssthresh_pkts,
                min_rtt_us: Some(100_000),
                sum_rtt_us: tenth * mean_rtt_us,
                count_rtt: tenth as u32,
                cong_signals: (tenth / 20) as u32,
                pre_cong_sum_rtt_us: tenth / 20 * 114_000,
                ..sample
            });
            seen.loss
        };
        assert_eq!(loss(Some(5), 102_000), Some(Loss::ShortQueue));
        assert_eq!(loss(None, 102_000), Some(Loss::Random));
        assert_eq!(loss(Some(5), 110_000), Some(Loss::Random));
    }

    #[test]
    fn a_paced_flow_tells_how_much_it_sends_between_losses() {
        let run_pkts = |paced_from: u64, signals: u32| {
            let paced = Rule {
                pacing_rate_bps: Some(100_000_000),
                ..Rule::default()
            };
            let (_, seen) = told_under(vec![(3, paced)], move |tenth, mut sample| {
                sample.flow.rule_id = (tenth >= paced_from).then_some(3);
                Sample {
                    // After the first ten round trips.
                    cong_signals: if tenth > 100 { signals } else { 0 },
                    ..sample
                }
            });
            seen.paced_run_pkts.unwrap_or_default()
        };
        // 691 segments in each tenth of a second, ten round trips of 20 ms of which are not counted.
        let all = run_pkts(0, 0);
        assert!((130_000..138_200).contains(&all), "{all}");
        assert_eq!(run_pkts(0, 1), all / 2);
        let half = run_pkts(100, 0);
        assert!((60_000..69_100).contains(&half), "{half}");
        assert_eq!(run_pkts(300, 0), 0);
    }

    #[test]
    fn a_paced_flow_whose_losses_met_a_queue_was_not_alone() {
        let paced = Rule {
            pacing_rate_bps: Some(100_000_000),
            ..Rule::default()
        };
        let with_queue = |ssthresh_pkts: Option<u32>, queue_us: u64| {
            let (_, seen) = told_under(vec![(3, paced.clone())], move |tenth, mut sample| {
                sample.flow.rule_id = Some(3);
                // The first met what the flow had sent before it was paced.
                let (signals, first_us) = (tenth.min(4), tenth.min(1) * 80_000);
                Sample {
                    ssthresh_pkts,
                    min_rtt_us: Some(100_000),
                    cong_signals: signals as u32,
                    pre_cong_sum_rtt_us: first_us + signals * (100_000 + queue_us),
                    ..sample
                }
            });
            assert_eq!(seen.paced_bps, Some(100_000_000));
            seen.loss
        };
        // Slow start below the path's rate makes no queue either.
        for ssthresh_pkts in [None, Some(5)] {
            assert_eq!(with_queue(ssthresh_pkts, 1_000), Some(Loss::Random));
            assert_eq!(with_queue(ssthresh_pkts, 6_000), None);
        }
    }

    #[test]
    fn what_was_lost_in_a_queue_and_is_found_when_it_is_gone_tells_nothing() {
        let paced = Rule {
            pacing_rate_bps: Some(100_000_000),
            ..Rule::default()
        };
        // Of two signals each 5 s the second meets no queue, so many tenths after the first.
        let second_after = |tenths: u64| {
            let (_, seen) = told_under(vec![(3, paced.clone())], move |tenth, mut sample| {
                sample.flow.rule_id = Some(3);
                let second = (tenth + 50 - tenths) / 50;
                let (queued, empty) = (tenth.min(199) / 50, second.saturating_sub(1));
                Sample {
                    min_rtt_us: Some(100_000),
                    srtt_us: 110_000,
                    cong_signals: (queued + empty) as u32,
                    pre_cong_sum_rtt_us: queued * 120_000 + empty * 100_000,
                    ..sample
                }
            });
            seen.loss
        };
        assert_eq!(second_after(3), None);
        assert_eq!(second_after(20), Some(Loss::Random));
    }

    #[test]
    fn one_loss_without_a_queue_is_random_where_the_path_holds_the_flow_back_for_long() {
        let with_one_loss = |busy_us: u64| {
            let (_, seen) = told(move |tenth, sample| Sample {
                cong_signals: 1,
                pre_cong_sum_rtt_us: 21_000,
                busy_us: busy_us * tenth,
                ..sample
            });
            seen.loss
        };
        assert_eq!(with_one_loss(100_000), Some(Loss::Random));
        assert_eq!(with_one_loss(10_000), None);
    }

    #[test]
    fn of_a_law_that_does_not_answer_to_losses_only_a_full_queue_tells() {
        let after = |rtt_us: u64| {
            let (_, seen) = told(move |tenth, sample| Sample {
                law: "fp_bbr".into(),
                cong_signals: (tenth / 10) as u32,
                segs_retrans: tenth / 10,
                bytes_retrans: sample.bytes_sent / 100,
                pre_cong_sum_rtt_us: tenth / 10 * rtt_us,
                ..sample
            });
            seen.loss
        };
        assert_eq!(after(21_000), None);
        assert_eq!(after(28_000), None);
        assert_eq!(after(60_000), Some(Loss::Queue));
    }

    #[test]
    fn what_a_law_loses_when_it_looks_for_the_rate_says_nothing() {
        let (_, seen) = told(|tenth, sample| Sample {
            law: "fp_bbr".into(),
            cong_signals: tenth.min(40) as u32,
            bytes_retrans: 1_000_000 * tenth.min(40) / 10,
            pre_cong_sum_rtt_us: tenth.min(40) * 60_000,
            ..sample
        });
        assert_eq!(
            (seen.loss, seen.excess_share),
            (None, Some(0.0)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_program_that_holds_a_flow_back_keeps_its_law_from_finding_the_rate() {
        let excess_share = |busy_us: u64| {
            let (_, seen) = told(move |tenth, sample| Sample {
                law: "fp_bbr".into(),
                busy_us: busy_us * tenth,
                ..sample
            });
            seen.excess_share
        };
        assert_eq!(excess_share(100_000), Some(0.0));
        assert_eq!(excess_share(40_000), None);
    }

    #[test]
    fn a_short_flow_tells_no_rate() {
        let mut table = FlowTable::new(Bounds::default());
        table.take(Sample {
            bytes_acked: 1_000_000,
            ..sample(1, SampleKind::End, SECOND / 2)
        });
        let (_, seen) = table.evidence(&[1], 0).pop().unwrap();
        assert_eq!(seen.rate_bps, None);
        assert!(seen.is_usable());
    }
}
