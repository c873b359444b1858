// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each check on flows whose numbers a test made up: what it finds, and where it keeps silent.

use super::*;
use crate::record::{HistoryBounds, Record};
use crate::rule::Rule;
use crate::testing::{SECOND, sample};
use fatpath_api::{Sample, SampleKind};
use std::sync::Arc;

/// Ten seconds at ten samples a second; `shape` says what the flow is like after so many tenths.
fn life(shape: impl Fn(u64, &mut Sample)) -> Vec<Finding> {
    life_under(None, shape)
}

const BOUNDS: HistoryBounds = HistoryBounds {
    points: 1000,
    events: 100,
};

fn life_under(rule: Option<Rule>, shape: impl Fn(u64, &mut Sample)) -> Vec<Finding> {
    let rule = rule.map(Arc::new);
    let mut record = Record::new(sample(1, SampleKind::Begin, 0), rule.clone(), BOUNDS);
    for tenth in 1..=100 {
        let mut s = bulk(tenth);
        shape(tenth, &mut s);
        record.take(s, rule.clone(), BOUNDS);
    }
    record.findings
}

/// A healthy transfer at 40 Mb/s over 20 ms: the window fills the path and half of a queue of its size.
fn bulk(tenth: u64) -> Sample {
    let bytes = 500_000 * tenth;
    let acks = 10 * tenth;
    Sample {
        bytes_sent: bytes,
        bytes_acked: bytes,
        data_segs_out: bytes / 1000,
        delivered_pkts: bytes / 1000,
        busy_us: 100_000 * tenth,
        cwnd_pkts: 150,
        ssthresh_pkts: Some(120),
        packets_out: 150,
        is_cwnd_limited: true,
        unsent_bytes: 200_000,
        srtt_us: 30_000,
        sum_rtt_us: 30_000 * acks,
        count_rtt: acks as u32,
        delivery_rate_bytes_per_s: Some(5_000_000),
        ..sample(1, SampleKind::Interval, tenth * SECOND / 10)
    }
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// What is found in a bulk transfer that differs by `shape`.
fn found(shape: impl Fn(u64, &mut Sample)) -> Finding {
    let mut findings = life(shape);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

fn share(tenth: u64, percent: u64) -> u64 {
    tenth * 1000 * percent
}

#[test]
fn a_transfer_that_fills_its_path_has_no_finding() {
    assert_eq!(ids(&life(|_, _| {})), Vec::<&str>::new());
    let with_few_losses = life(|tenth, s| {
        s.cong_signals = tenth as u32 / 20;
        s.segs_retrans = tenth / 20 * 5;
        s.bytes_retrans = s.segs_retrans * 1000;
        s.pre_cong_sum_rtt_us = u64::from(s.cong_signals) * 40_000;
    });
    assert_eq!(ids(&with_few_losses), Vec::<&str>::new());
}

#[test]
fn a_program_that_gives_little_is_said_to() {
    let silent = found(|tenth, s| s.busy_us = share(tenth, 20));
    assert_eq!(silent.id, "FP-APP-LIMITED");
    let trickling = found(|_, s| {
        s.is_app_limited = true;
        s.is_cwnd_limited = false;
        s.unsent_bytes = 0;
    });
    assert_eq!(
        (trickling.id.as_str(), trickling.severity),
        ("FP-APP-LIMITED", Severity::Info)
    );
    let idle = life(|_, s| (s.busy_us, s.bytes_sent) = (0, 1000));
    assert_eq!(ids(&idle), Vec::<&str>::new());
}

fn sender_limited(tenth: u64, s: &mut Sample) {
    s.sndbuf_limited_us = share(tenth, 80);
    (s.packets_out, s.is_cwnd_limited) = (30, false);
    (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
}

#[test]
fn a_small_send_buffer_is_the_kernels_or_the_programs() {
    let tuned = found(sender_limited);
    assert_eq!(
        (tuned.id.as_str(), tuned.severity),
        ("FP-SNDBUF", Severity::Problem)
    );
    // 150 segments of window over 20 ms carry 60 Mb/s, and 40 are carried.
    assert!((tuned.gain.unwrap() - 1.5).abs() < 0.01, "{tuned:#?}");
    assert_eq!(tuned.cure.as_deref(), Some("send_buffer = \"192KiB\""));
    let locked = found(|tenth, s| {
        sender_limited(tenth, s);
        s.send_buffer_is_locked = true;
    });
    assert_eq!(locked.id, "FP-BUFFER-LOCKED");
    assert!(locked.cure.unwrap().contains("override_application"));
    let by_rule = found(|tenth, s| {
        sender_limited(tenth, s);
        (s.send_buffer_is_locked, s.flow.rule_id) = (true, Some(3));
    });
    assert_eq!(by_rule.id, "FP-SNDBUF");
}

#[test]
fn a_buffer_that_was_withheld_is_not_called_too_small() {
    let limited = found(|tenth, s| {
        sender_limited(tenth, s);
        s.buffer_is_withheld = true;
    });
    let problem = ("FP-TCP-MEMORY", Severity::Problem);
    assert_eq!((limited.id.as_str(), limited.severity), problem);
    let other = found(|_, s| s.buffer_is_withheld = true);
    assert_eq!(other.severity, Severity::Info, "it lacks nothing");
}

/// 150 segments over 20 ms are 60 Mb/s, and 40 are carried.
#[test]
fn no_more_is_expected_than_what_is_known_to_be_possible() {
    let paced = found(|tenth, s| {
        sender_limited(tenth, s);
        s.pacing_rate_bytes_per_s = 6_250_000;
    });
    assert_eq!(paced.gain, Some(1.25));
    let rule = Rule {
        path_rate_bps: Some(48_000_000),
        ..Rule::default()
    };
    let on_known_path = life_under(Some(rule), sender_limited).remove(0);
    assert_eq!(on_known_path.gain, Some(1.2));
    let rude = found(|tenth, s| {
        sender_limited(tenth, s);
        (s.law, s.cwnd_pkts) = ("fp_rude".into(), 4_000);
        s.delivery_rate_bytes_per_s = Some(5_000_000);
    });
    assert_eq!((rude.gain, rude.id.as_str()), (None, "FP-SNDBUF"));
    assert_eq!(rude.cure.as_deref(), Some("send_buffer = \"128KiB\""));
}

/// Above 1 % of loss BBR takes losses for congestion too.
#[test]
fn no_law_is_offered_where_it_takes_no_more() {
    let often = found(|tenth, s| {
        losing_without_queue(tenth, s);
        s.cong_signals = 10 * tenth as u32;
        s.pre_cong_sum_rtt_us = u64::from(s.cong_signals) * 20_000;
        let is_slow = (tenth / 2).is_multiple_of(2);
        s.delivery_rate_bytes_per_s = Some(if is_slow { 3_000_000 } else { 6_250_000 });
    });
    assert_eq!(
        (often.id.as_str(), often.gain, often.cure),
        ("FP-LOSS-RANDOM", None, None)
    );
}

#[test]
fn a_locked_buffer_is_the_rules_only_where_the_rule_sets_it() {
    let locked = |tenth: u64, s: &mut Sample| {
        sender_limited(tenth, s);
        (s.send_buffer_is_locked, s.flow.rule_id) = (true, Some(3));
    };
    let found_under = |send_buffer_bytes, is_learned| {
        let rule = Rule {
            send_buffer_bytes,
            is_learned,
            ..Rule::default()
        };
        life_under(Some(rule), locked)
    };
    let has_bytes = u64::from(sample(1, SampleKind::Begin, 0).send_buffer_bytes);
    assert_eq!(ids(&found_under(Some(has_bytes), false)), ["FP-SNDBUF"]);
    assert_eq!(ids(&found_under(None, false)), ["FP-BUFFER-LOCKED"]);
    // What is learned leaves a program its own, smaller one.
    assert_eq!(ids(&found_under(Some(has_bytes / 2), true)), ["FP-SNDBUF"]);
    let kept = found_under(Some(has_bytes), true).remove(0);
    assert_eq!(kept.id, "FP-BUFFER-LOCKED");
    assert!(kept.cure.unwrap().contains("under [auto]"));
}

fn receiver_limited(tenth: u64, s: &mut Sample) {
    s.rwnd_limited_us = share(tenth, 90);
    (s.packets_out, s.is_cwnd_limited) = (30, false);
    (s.peer_window_bytes, s.max_peer_window_bytes) = (30_000, 32_000);
    (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
}

/// What the kernel's own chronometer does not see.
#[test]
fn a_program_that_waits_under_open_windows_is_held_by_its_buffer() {
    let waiting = |_: u64, s: &mut Sample| {
        (s.waits_for_send_buffer, s.unsent_bytes, s.packets_out) = (true, 5_000, 30);
        (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
    };
    assert_eq!(found(waiting).id, "FP-SNDBUF");
    let full_window = life(|_, s| (s.waits_for_send_buffer, s.unsent_bytes) = (true, 200_000));
    assert_eq!(ids(&full_window), Vec::<&str>::new());
}

#[test]
fn a_small_window_is_the_buffers_the_scales_or_the_readers() {
    assert_eq!(found(receiver_limited).id, "FP-RWND");
    let unscaled = found(|tenth, s| {
        receiver_limited(tenth, s);
        (s.send_wscale, s.peer_window_bytes, s.max_peer_window_bytes) = (0, 64_000, 65_160);
    });
    assert_eq!(unscaled.id, "FP-RWND-SCALE");
    let slow = found(|tenth, s| {
        receiver_limited(tenth, s);
        s.max_peer_window_bytes = 400_000;
    });
    assert_eq!((slow.id.as_str(), slow.gain), ("FP-READER", None));
}

#[test]
fn a_full_window_on_an_empty_path_is_a_finding() {
    let empty = |s: &mut Sample| {
        (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
    };
    let clamped = found(|_, s| {
        empty(s);
        (s.cwnd_clamp_pkts, s.cwnd_pkts) = (100, 100);
    });
    assert_eq!(clamped.id, "FP-CWND");
    assert_eq!(clamped.cure.as_deref(), Some("cwnd_clamp = 200"));
    let slow = found(|_, s| {
        empty(s);
        s.delivery_rate_bytes_per_s = Some(20_000_000);
    });
    assert_eq!((slow.id.as_str(), slow.gain), ("FP-CWND", Some(4.0)));
    let in_slow_start = life(|_, s| {
        empty(s);
        s.ssthresh_pkts = None;
    });
    assert_eq!(ids(&in_slow_start), Vec::<&str>::new());
}

#[test]
fn a_long_queue_is_bufferbloat() {
    let bloated = found(|_, s| {
        s.sum_rtt_us = 200_000 * u64::from(s.count_rtt);
        (s.packets_out, s.cwnd_pkts) = (1000, 1000);
    });
    assert_eq!(bloated.id, "FP-BUFFERBLOAT");
    let of_others = life(|_, s| {
        s.sum_rtt_us = 200_000 * u64::from(s.count_rtt);
        (s.packets_out, s.is_cwnd_limited) = (2, false);
    });
    assert_eq!(ids(&of_others), Vec::<&str>::new());
    let after_silences = found(|tenth, s| {
        timing_out(tenth, s, 5, 100);
        s.sum_rtt_us = 200_000 * u64::from(s.count_rtt);
    });
    assert_eq!(after_silences.id, "FP-RTO");
}

fn losing(tenth: u64, s: &mut Sample, before_loss_us: u64) {
    s.cong_signals = tenth as u32 / 2;
    s.segs_retrans = tenth * 20;
    s.bytes_retrans = tenth * 20_000;
    s.pre_cong_sum_rtt_us = u64::from(s.cong_signals) * before_loss_us;
}

/// On a path without a queue, and before the losses none.
fn losing_without_queue(tenth: u64, s: &mut Sample) {
    losing(tenth, s, 20_000);
    (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
}

#[test]
fn loss_is_by_congestion_or_without_it() {
    let congested = found(|tenth, s| losing(tenth, s, 40_000));
    assert_eq!(congested.id, "FP-LOSS-CONGESTION");
    let random = found(|tenth, s| {
        losing_without_queue(tenth, s);
        s.bytes_retrans /= 10;
        // At a loss one or the other.
        let is_slow = (tenth / 2).is_multiple_of(2);
        s.delivery_rate_bytes_per_s = Some(if is_slow { 3_000_000 } else { 6_250_000 });
    });
    assert_eq!(
        (random.id.as_str(), random.gain),
        ("FP-LOSS-RANDOM", Some(1.25))
    );
    let cure = random.cure.unwrap();
    assert_eq!(cure, "congestion_control = \"fp_bbr\"");
}

/// A program that waited for an answer has its whole window leave at once, and no round-trip time shows the queue until then.
#[test]
fn losses_of_a_window_that_leaves_at_once_are_its_own_queues() {
    let bursts = |window_pkts: u64| {
        life(|tenth, s| {
            losing_without_queue(tenth, s);
            s.bytes_retrans /= 10;
            s.pre_cong_sum_cwnd_pkts = u64::from(s.cong_signals) * window_pkts;
        })
    };
    assert_eq!(ids(&bursts(200)), Vec::<&str>::new());
    assert_eq!(ids(&bursts(110)), ["FP-POLICED"]);
}

#[test]
fn what_a_law_loses_at_its_start_is_no_congestion() {
    let found = life(|tenth, s| {
        losing(tenth, s, 40_000);
        s.bytes_retrans =
            1_000_000 * u64::from(s.cong_signals.min(1)) + 1_000 * u64::from(s.cong_signals);
    });
    assert_eq!(ids(&found), Vec::<&str>::new());
}

#[test]
fn losses_at_one_rate_are_a_policers() {
    let policed = found(|tenth, s| {
        losing_without_queue(tenth, s);
        s.delivery_rate_bytes_per_s = Some(5_000_000 + 100_000 * (tenth % 4));
    });
    assert_eq!(policed.id, "FP-POLICED");
    assert_eq!(policed.cure.as_deref(), Some("pacing_rate = \"40000kbit\""));
}

#[test]
fn a_law_that_does_not_answer_to_losses_is_not_held_back_by_them() {
    let bbr = life(|tenth, s| {
        losing_without_queue(tenth, s);
        s.law = "bbr".into();
    });
    assert_eq!(ids(&bbr), Vec::<&str>::new());
}

/// Many senders fill a switch's buffer of 100 µs at once.
#[test]
fn on_a_short_path_a_queue_of_a_round_trip_is_congestion() {
    let incast = found(|tenth, s| {
        losing(tenth, s, 400);
        (s.min_rtt_us, s.srtt_us) = (Some(200), 300);
        s.sum_rtt_us = 300 * u64::from(s.count_rtt);
    });
    assert_eq!(incast.id, "FP-LOSS-CONGESTION");
    let short = found(|tenth, s| {
        losing(tenth, s, 210);
        let is_slow = (tenth / 2).is_multiple_of(2);
        s.delivery_rate_bytes_per_s = Some(if is_slow { 3_000_000 } else { 6_250_000 });
        (s.min_rtt_us, s.srtt_us) = (Some(200), 210);
        s.sum_rtt_us = 210 * u64::from(s.count_rtt);
    });
    assert_eq!((short.id.as_str(), short.cure), ("FP-LOSS-RANDOM", None));
}

#[test]
fn a_rate_is_fixed_only_where_the_path_has_one() {
    let cure = |best_bytes_per_s| {
        let bloated = found(|_, s| {
            s.sum_rtt_us = 200_000 * u64::from(s.count_rtt);
            (s.packets_out, s.cwnd_pkts) = (1000, 1000);
            s.delivery_rate_bytes_per_s = Some(best_bytes_per_s);
        });
        (bloated.id, bloated.cure)
    };
    let bloat = || "FP-BUFFERBLOAT".to_owned();
    let paced = Some("pacing_rate = \"38000kbit\"".to_owned());
    assert_eq!(cure(5_000_000), (bloat(), paced));
    assert_eq!(cure(10_000_000), (bloat(), None));
}

/// Ordinary web traffic: a few requests on a connection over a long path, its window just past slow start.
#[test]
fn a_few_objects_over_a_long_path_are_no_problem() {
    let far = |tenth: u64, s: &mut Sample| {
        (s.min_rtt_us, s.srtt_us) = (Some(250_000), 250_000);
        s.sum_rtt_us = 250_000 * u64::from(s.count_rtt);
        s.ssthresh_pkts = Some(36);
        s.bytes_acked = 50_000 * tenth;
    };
    let young = life(far);
    assert_eq!(ids(&young), Vec::<&str>::new(), "FP-CWND at 40 round trips");
    let requests = life(|tenth, s| {
        far(tenth, s);
        window_of_its_own(tenth, s);
        (s.min_rtt_us, s.srtt_us) = (Some(250_000), 250_000);
        s.sum_rtt_us = 250_000 * u64::from(s.count_rtt);
        (s.data_segs_in, s.bytes_received) = (tenth / 20, 400 * tenth / 20);
    });
    assert_eq!(ids(&requests), ["FP-APP-LIMITED"]);
}

/// 64 segments over 20 ms, and the peer says each time that it took them.
fn window_of_its_own(tenth: u64, s: &mut Sample) {
    (s.packets_out, s.cwnd_pkts, s.is_cwnd_limited) = (64, 200, false);
    (s.is_app_limited, s.unsent_bytes) = (true, 0);
    (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
    (s.data_segs_in, s.bytes_received) = (5 * tenth, 5 * 48 * tenth);
}

#[test]
fn an_application_that_waits_for_its_peer_has_a_window_of_its_own() {
    let found = found(window_of_its_own);
    assert_eq!(found.id, "FP-APP-WINDOW");
    let allows = found
        .evidence
        .iter()
        .find(|one| one.name.starts_with("rate that this"));
    assert_eq!(allows.unwrap().value, 25.6);
    // Video at its own rate: nobody answers.
    let one_way = life(|tenth, s| {
        window_of_its_own(tenth, s);
        (s.data_segs_in, s.bytes_received) = (0, 0);
    });
    assert_eq!(ids(&one_way), ["FP-APP-LIMITED"]);
    let in_bursts = life(|tenth, s| {
        window_of_its_own(tenth, s);
        s.packets_out = if tenth.is_multiple_of(4) { 128 } else { 10 };
    });
    assert_eq!(ids(&in_bursts), ["FP-APP-LIMITED"]);
}

#[test]
fn what_came_late_was_not_lost() {
    let late = found(|tenth, s| {
        losing(tenth, s, 20_000);
        s.dsack_dups = tenth as u32 * 19;
        s.reord_seen = tenth as u32;
        (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
    });
    assert_eq!(late.id, "FP-REORDERING");
}

/// A timeout in so many tenths of a second, one of which is waited for.
fn timing_out(tenth: u64, s: &mut Sample, every: u64, left_pkts: u32) {
    s.timeouts = (tenth / every) as u32;
    s.cong_signals = s.timeouts;
    s.rto_us = 200_000;
    s.pre_cong_sum_rtt_us = u64::from(s.cong_signals) * 20_000;
    if tenth.is_multiple_of(every) {
        (s.kind, s.packets_out) = (SampleKind::Timeout, left_pkts);
    }
    (s.sum_rtt_us, s.srtt_us) = (20_000 * u64::from(s.count_rtt), 20_000);
}

#[test]
fn the_timer_ends_for_a_window_or_for_a_tail() {
    assert_eq!(found(|tenth, s| timing_out(tenth, s, 10, 100)).id, "FP-RTO");
    assert_eq!(
        found(|tenth, s| timing_out(tenth, s, 10, 2)).id,
        "FP-TAIL-LOSS"
    );
}

/// A shorter timer ends the wait for one lost segment sooner. It does not bring a path back that was gone for longer.
#[test]
fn a_shorter_timer_is_offered_where_one_timeout_is_enough() {
    let one = found(|tenth, s| timing_out(tenth, s, 5, 100));
    // 70 ms in place of 200, in a fifth of the time.
    assert!((one.gain.unwrap() - 1.15).abs() < 0.01, "{one:?}");
    assert_eq!(one.cure.as_deref(), Some("rto_min = \"50ms\""));
    let gone = found(|tenth, s| {
        timing_out(tenth, s, 5, 100);
        s.subsequent_timeouts = 2 * s.timeouts;
    });
    assert_eq!(
        (gone.id.as_str(), gone.gain, gone.cure),
        ("FP-RTO", None, None)
    );
}

/// One timeout, then the timer again and again, twice as long each time, with nothing heard in between.
#[test]
fn the_timers_that_follow_the_first_are_waited_for_too() {
    let mut record = Record::new(sample(1, SampleKind::Begin, 0), None, BOUNDS);
    (1..=20).for_each(|tenth| record.take(bulk(tenth), None, BOUNDS));
    for (again, tenth) in [22, 26, 34, 50].into_iter().enumerate() {
        let waiting = Sample {
            kind: SampleKind::Timeout,
            now_ns: bulk(tenth).now_ns,
            busy_us: bulk(tenth).busy_us,
            timeouts: 1,
            subsequent_timeouts: again as u32,
            ..bulk(20)
        };
        record.take(waiting, None, BOUNDS);
    }
    assert_eq!(ids(&record.findings), ["FP-RTO"]);
    let shares = record.judged_span().shares();
    assert!((shares.timeout - 0.6).abs() < 0.01, "{shares:?}");
}

#[test]
fn nagle_and_a_delayed_acknowledgement_are_found_together() {
    let stalled = |tenth: u64, s: &mut Sample| {
        (s.bytes_sent, s.bytes_acked) = (400 * tenth, 400 * tenth);
        (s.data_segs_out, s.rttvar_us) = (4 * tenth, 20_000);
        (s.packets_out, s.unsent_bytes, s.is_cwnd_limited) = (1, 0, false);
        s.sum_rtt_us = 60_000 * u64::from(s.count_rtt);
    };
    let delayed = found(stalled);
    assert_eq!(delayed.id, "FP-DELACK");
    // 40 ms above the path's 20, of which the kernel's least leaves 10.
    assert!(
        (delayed.gain.unwrap() - 60.0 / 30.0).abs() < 0.01,
        "{delayed:?}"
    );
}

#[test]
fn full_segments_that_never_arrive_are_a_black_hole() {
    let stuck = |tenth: u64, s: &mut Sample| {
        (s.bytes_acked, s.delivered_pkts, s.mss_bytes) = (500, 1, 1448);
        (s.bytes_sent, s.packets_out, s.cwnd_pkts) = (14_480, 10, 1);
        (s.timeouts, s.cong_signals, s.backoff) = (3, 1, 3);
        (s.rto_us, s.count_rtt, s.sum_rtt_us) = (1_600_000, 1, 20_000);
        s.busy_us = 100_000 * tenth;
        s.delivery_rate_bytes_per_s = None;
    };
    // Such as a client's repeated request.
    let heard = |tenth: u64, s: &mut Sample| {
        stuck(tenth, s);
        s.segs_in = 1 + tenth / 10;
    };
    assert_eq!(found(heard).id, "FP-PMTU-BLACKHOLE");
    let a_later_one_arrived = |tenth: u64, s: &mut Sample| {
        stuck(tenth, s);
        s.sacked_out = 1;
    };
    assert_eq!(found(a_later_one_arrived).id, "FP-PMTU-BLACKHOLE");
    // A phone that left its network.
    assert!(!ids(&life(stuck)).contains(&"FP-PMTU-BLACKHOLE"));
}

#[test]
fn a_receiver_whose_buffer_is_locked_is_told() {
    let receiving = |tenth: u64, s: &mut Sample| {
        (s.bytes_sent, s.bytes_acked, s.busy_us, s.data_segs_out) = (0, 1, 0, 0);
        (s.packets_out, s.unsent_bytes, s.is_cwnd_limited) = (0, 0, false);
        // 32 KB in each 20 ms.
        s.bytes_received = 160_000 * tenth;
        (s.receive_window_bytes, s.receive_buffer_is_locked) = (32_768, true);
    };
    assert_eq!(found(receiving).id, "FP-BUFFER-LOCKED");
    let roomy = life(|tenth, s| {
        receiving(tenth, s);
        s.receive_window_bytes = 1 << 20;
    });
    assert_eq!(ids(&roomy), Vec::<&str>::new());
}

#[test]
fn a_first_second_says_nothing() {
    let mut record = Record::new(sample(1, SampleKind::Begin, 0), None, BOUNDS);
    let mut s = bulk(9);
    sender_limited(9, &mut s);
    record.take(
        Sample {
            kind: SampleKind::End,
            ..s
        },
        None,
        BOUNDS,
    );
    assert_eq!(ids(&record.findings), Vec::<&str>::new());
}
