// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::{BEGIN, SECOND, flow, sample};
use fatpath_api::EventKind;

/// A flow that sends a megabyte a second.
fn sending(cookie: u64, tenth: u64) -> Sample {
    Sample {
        bytes_sent: 100_000 * tenth,
        bytes_acked: 100_000 * tenth,
        busy_us: 100_000 * tenth,
        ..sample(cookie, SampleKind::Interval, tenth * SECOND / 10)
    }
}

fn ended(cookie: u64, tenth: u64) -> Sample {
    Sample {
        kind: SampleKind::End,
        ..sending(cookie, tenth)
    }
}

fn filled(bounds: Bounds, samples: impl IntoIterator<Item = Sample>) -> FlowTable {
    let mut table = FlowTable::new(bounds);
    samples.into_iter().for_each(|sample| table.take(sample));
    table
}

fn bounds(flows: usize, ended: usize) -> Bounds {
    Bounds {
        flows,
        ended,
        points: 1000,
        events: 50,
    }
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let table = filled(Bounds::default(), (0..50).map(|tenth| sending(1, tenth)));
    let rates = table.detail(1).unwrap().view.rates;
    assert!((rates.goodput_bps - 8e6).abs() < 1e4, "{rates:?}");
    assert!((rates.average_bps - 8e6).abs() < 1e4, "{rates:?}");
    let then_idle = [60, 70, 80].map(|tenth| Sample {
        now_ns: BEGIN + tenth * SECOND / 10,
        ..sending(1, 49)
    });
    let mut table = table;
    then_idle.into_iter().for_each(|sample| table.take(sample));
    let rates = table.detail(1).unwrap().view.rates;
    assert_eq!(rates.goodput_bps, 0.0);
    assert!((rates.average_bps - 4.9e6).abs() < 1e4, "{rates:?}");
}

#[test]
fn a_flow_whose_begin_was_lost_is_still_right() {
    let table = filled(Bounds::default(), [sending(1, 40)]);
    let rates = table.detail(1).unwrap().view.rates;
    assert!((rates.average_bps - 8e6).abs() < 1e4, "{rates:?}");
}

#[test]
fn bytes_from_before_fatpath_are_nobodys_rate() {
    let adopted = |tenth| Sample {
        flow: fatpath_api::Flow {
            is_adopted: true,
            ..flow(1)
        },
        bytes_acked: 1 << 40,
        ..sending(1, tenth)
    };
    let table = filled(Bounds::default(), [adopted(10), adopted(20)]);
    assert_eq!(table.detail(1).unwrap().view.rates.average_bps, 0.0);
}

#[test]
fn a_restarted_daemon_judges_what_it_sees() {
    let hours = 36_000 * 10;
    let table = filled(
        Bounds::default(),
        [sending(1, hours), sending(1, hours + 20)],
    );
    let why = table.why(1).unwrap();
    assert!((why.span_s - 2.0).abs() < 1e-6, "{why:?}");
    assert!((why.rates.average_bps - 8e6).abs() < 1e4, "{why:?}");
}

#[test]
fn a_sample_that_an_event_overtook_changes_nothing() {
    let table = filled(
        Bounds::default(),
        [sending(1, 20), ended(1, 30), sending(1, 25)],
    );
    let view = table.detail(1).unwrap().view;
    assert!(view.has_ended);
    assert_eq!(view.sample.bytes_acked, 3_000_000);
}

#[test]
fn what_ended_first_makes_room_first() {
    let flows = (1..=5).flat_map(|cookie| [sending(cookie, 1), ended(cookie, 2)]);
    let table = filled(bounds(10, 2), flows);
    let mut left: Vec<u64> = table.views().map(|view| view.flow.cookie).collect();
    left.sort();
    assert_eq!(left, [4, 5]);
    assert_eq!(table.changes(1).gone, [1, 2, 3]);
}

#[test]
fn a_full_table_counts_what_it_does_not_keep() {
    let table = filled(bounds(3, 1), (1..=5).map(|cookie| sending(cookie, 1)));
    assert_eq!((table.len(), table.refused()), (3, 2));
}

#[test]
fn memory_stays_bounded_however_much_comes() {
    let samples = (0..20_000).map(|n| Sample {
        segs_retrans: n,
        ..sending(n % 7, n)
    });
    let table = filled(bounds(10, 5), samples);
    let details = (0..7).filter_map(|cookie| table.detail(cookie));
    for detail in details {
        assert!(detail.points.len() <= MAX_POINTS.min(1000 / 7 + 1));
        assert!(detail.events.len() <= MIN_EVENTS);
    }
}

#[test]
fn changes_are_read_by_mark() {
    let mut table = filled(Bounds::default(), [sending(1, 1), sending(2, 1)]);
    let first = table.changes(0);
    assert_eq!(first.flows.len(), 2);
    assert!(table.changes(first.mark).flows.is_empty());
    table.take(sending(2, 2));
    let second = table.changes(first.mark);
    assert_eq!(second.flows.len(), 1);
    assert_eq!(second.flows[0].flow.cookie, 2);
    assert!(!second.is_broken);
}

#[test]
fn a_reader_that_slept_too_long_is_told() {
    let mut table = filled(bounds(10, 0), [sending(1, 1)]);
    let mark = table.changes(0).mark;
    for cookie in 10..10 + MAX_GONE as u64 + 10 {
        table.take(ended(cookie, 1));
    }
    assert!(table.changes(mark).is_broken);
    assert!(!table.changes(table.changes(mark).mark).is_broken);
}

#[test]
fn a_lost_end_is_noticed_by_a_walk_and_taken_back_by_a_sample() {
    let mut table = filled(Bounds::default(), [sending(1, 1), sending(2, 30)]);
    table.end_unheard(BEGIN + 2 * SECOND);
    let has_ended = |table: &FlowTable, cookie| table.detail(cookie).unwrap().view.has_ended;
    assert!(has_ended(&table, 1) && !has_ended(&table, 2));
    table.take(sending(1, 40));
    assert!(!has_ended(&table, 1));
}

#[test]
fn tuning_is_an_event_and_outlives_frequent_ones() {
    let mut table = FlowTable::new(bounds(10, 1));
    let bob = Rule {
        name: "bob".to_owned(),
        ..Rule::default()
    };
    table.set_policy([(7, bob)], Derived::default());
    let tuned = |tenth: u64| Sample {
        law: "fp_scalable".into(),
        flow: fatpath_api::Flow {
            rule_id: Some(7),
            ..flow(1)
        },
        segs_retrans: tenth,
        ..sending(1, tenth)
    };
    table.take(sending(1, 0));
    (1..200).for_each(|tenth| table.take(tuned(tenth)));
    let detail = table.detail(1).unwrap();
    let of_kind = |kind| detail.events.iter().filter(move |event| event.kind == kind);
    let texts: Vec<&str> = of_kind(EventKind::Tuned)
        .map(|event| event.text.as_str())
        .collect();
    assert_eq!(texts, ["matched rule bob", "fp_scalable instead of cubic"]);
    assert!(of_kind(EventKind::Retransmission).count() > 0);
    assert_eq!(detail.view.rule.as_deref(), Some("bob"));
}

#[test]
fn derived_events_are_in_the_view() {
    let mut table = FlowTable::new(Bounds::default());
    let text = "DataBytesOut * 8 / (now - StartTime)";
    table.set_policy([], Derived::parse([("AveBW", text)]).unwrap());
    table.take(sending(1, 20));
    let view = table.detail(1).unwrap().view;
    assert!((view.derived["AveBW"] - 8e6).abs() < 1.0);
}

#[test]
fn the_end_of_a_flow_without_data_has_the_rule_of_its_begin_until_another_policy() {
    let mut table = FlowTable::new(Bounds::default());
    let policy = || [(3, Rule::default())];
    table.set_policy(policy(), Derived::default());
    let mut begin = sample(1, SampleKind::Begin, 0);
    begin.flow.rule_id = Some(3);
    table.take(begin);
    let completed = |table: &FlowTable, segments: u64| {
        let mut end = Sample {
            data_segs_out: segments,
            ..sample(1, SampleKind::End, SECOND)
        };
        end.flow.rule_id = None;
        table.complete(&mut end);
        end.flow.rule_id
    };
    assert_eq!(completed(&table, 0), Some(3));
    assert_eq!(completed(&table, 1), None, "it has storage of its own");
    table.set_policy(policy(), Derived::default());
    assert_eq!(completed(&table, 0), None, "it may have left it");
}

/// Under TCP's losses, with a queue that the others keep from before its begin.
fn beginning_at_a_queue(cookie: u64, tenth: u64) -> Sample {
    let signals = tenth / 2;
    Sample {
        data_segs_out: 100 * tenth,
        segs_retrans: 2 * tenth,
        bytes_retrans: 2_000 * tenth,
        cong_signals: signals as u32,
        pre_cong_sum_rtt_us: signals * 3_500,
        min_rtt_us: Some(1_800),
        srtt_us: 3_400,
        sum_rtt_us: 3_400 * tenth,
        count_rtt: tenth as u32,
        // At a loss one or the other.
        delivery_rate_bytes_per_s: Some(if signals.is_multiple_of(2) {
            600_000
        } else {
            1_250_000
        }),
        ..sending(cookie, tenth)
    }
}

#[test]
fn a_flow_that_never_had_an_empty_queue_goes_by_what_others_had() {
    let alone = filled(
        Bounds::default(),
        (0..100).map(|tenth| beginning_at_a_queue(1, tenth)),
    );
    assert_eq!(alone.why(1).unwrap().findings[0].id, "FP-LOSS-RANDOM");
    let first = Sample {
        min_rtt_us: Some(200),
        ..sending(2, 0)
    };
    let samples = (0..100).map(|tenth| beginning_at_a_queue(1, tenth));
    let beside = filled(Bounds::default(), std::iter::once(first).chain(samples));
    assert_eq!(beside.why(1).unwrap().findings[0].id, "FP-LOSS-CONGESTION");
}
