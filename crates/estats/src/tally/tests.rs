// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::testing;

const S: u64 = 1_000_000_000;

/// A sample of a flow that began at 10 s, in which nothing was counted yet.
fn sample(cookie: u64, remote: &str, now_s: u64) -> Sample {
    let mut sample = testing::sample(cookie, SampleKind::Interval, 0);
    (sample.flow.remote, sample.flow.rule_id) = (remote.parse().unwrap(), None);
    (sample.begin_ns, sample.now_ns) = (10 * S, now_s * S);
    sample
}

fn moved(cookie: u64, remote: &str, now_s: u64, bytes: u64) -> Sample {
    let mut sample = sample(cookie, remote, now_s);
    (sample.bytes_sent, sample.bytes_acked, sample.srtt_us) = (bytes, bytes, 100_000);
    sample
}

fn value(group: &Group, name: &str) -> u64 {
    let place = SUMS.iter().position(|sum| sum.name == name).unwrap();
    group.sums[place]
}

fn by(group: &Group, by: &str) -> u64 {
    let place = SUMS.iter().position(|sum| sum.by == Some(by)).unwrap();
    group.sums[place]
}

/// The one rule's group.
fn only(tally: &Tally) -> Group {
    tally.series().rules[0].group.clone()
}

#[test]
fn a_flow_is_counted_once_and_only_what_is_new() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    tally.take(&moved(1, "192.0.2.77:80", 11, 1000));
    tally.take(&moved(1, "192.0.2.77:80", 12, 5000));
    // It came late, from another processor.
    tally.take(&moved(1, "192.0.2.77:80", 11, 3000));
    tally.take(&moved(1, "192.0.2.77:80", 13, 6000));
    assert_eq!(value(&only(&tally), "acked_bytes"), 6000);
    assert_eq!((only(&tally).flows_begun, only(&tally).flows_ended), (1, 0));
}

#[test]
fn a_flow_that_ran_before_is_counted_from_here() {
    let mut tally = Tally::new(TallyBounds::default(), 100 * S);
    tally.take(&moved(1, "192.0.2.77:80", 110, 1_000_000));
    tally.take(&moved(1, "192.0.2.77:80", 111, 1_000_500));
    assert_eq!(value(&only(&tally), "acked_bytes"), 500);
}

#[test]
fn time_is_split_by_what_held_the_sender_back() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    let mut sample = moved(1, "192.0.2.77:80", 20, 1);
    sample.busy_us = 7_000_000;
    (sample.rwnd_limited_us, sample.sndbuf_limited_us) = (1_000_000, 2_000_000);
    tally.take(&sample);
    let split = ["application", "receiver", "send_buffer", "network"];
    let split = split.map(|name| by(&only(&tally), name));
    assert_eq!(split, [3_000_000, 1_000_000, 2_000_000, 4_000_000]);
}

#[test]
fn flows_are_observed_each_ten_seconds_and_at_the_end() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    for now_s in 11..=25 {
        tally.take(&moved(1, "192.0.2.77:80", now_s, (now_s - 10) * 12_500_000));
    }
    let mut last = moved(1, "192.0.2.77:80", 25, 15 * 12_500_000);
    (last.kind, last.bytes_retrans) = (SampleKind::End, 6_250_000);
    tally.take(&last);
    let [rtt, goodput, retransmitted] = only(&tally).histograms;
    assert_eq!(
        (rtt.count(), goodput.count(), retransmitted.count()),
        (2, 2, 2)
    );
    // 100 Mb/s each time: the bucket up to 12.5 MB/s.
    assert_eq!(goodput.buckets[5], 2);
    assert_eq!(rtt.buckets[7], 2);
    // None of the first ten seconds' bytes, then a tenth of the last five's.
    assert_eq!((retransmitted.buckets[0], retransmitted.buckets[7]), (1, 1));
    assert_eq!(only(&tally).flows_ended, 1);
    assert_eq!(tally.series().rules[0].live, 0);
}

#[test]
fn the_groups_that_move_most_have_a_series() {
    let bounds = TallyBounds {
        prefixes: 2,
        ..TallyBounds::default()
    };
    let mut tally = Tally::new(bounds, 0);
    let destinations = [
        "192.0.2.1:80",
        "192.0.3.1:80",
        "[2001:db8::1]:80",
        "[::ffff:198.51.100.9]:80",
    ];
    let bytes = [1000, 10, 500_000, 5];
    for (n, (remote, bytes)) in destinations.iter().zip(bytes).enumerate() {
        tally.take(&moved(n as u64, remote, 11, bytes));
    }
    let top = |tally: &Tally| -> [String; 2] {
        let [one, two, _] = &tally.series().prefixes[..] else {
            panic!("two series and the rest")
        };
        [one.label.clone(), two.label.clone()]
    };
    let others = |tally: &Tally, live: u64| {
        let rest = tally.series().prefixes.pop().unwrap();
        assert_eq!((rest.label.as_str(), rest.live), ("(other)", live));
        value(&rest.group, "acked_bytes")
    };
    assert_eq!(top(&tally), ["192.0.2.0/24", "192.0.3.0/24"]);
    assert_eq!(others(&tally, 2), 500_005);
    // A minute later the large one replaces the least.
    tally.take(&moved(0, "192.0.2.1:80", 71, 2000));
    assert_eq!(top(&tally), ["192.0.2.0/24", "2001:db8::/64"]);
    tally.take(&moved(2, "[2001:db8::1]:80", 72, 500_700));
    // What the rest has counted stays there; the new series begins at 0.
    assert_eq!(others(&tally, 2), 500_005);
    let new = tally.series().prefixes[1].clone();
    assert_eq!((new.live, value(&new.group, "acked_bytes")), (1, 700));
}

/// Read before the end, handed over after it.
#[test]
fn a_walk_that_an_end_overtook_counts_nothing() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    let last = Sample {
        kind: SampleKind::End,
        ..moved(1, "192.0.2.77:80", 13, 6000)
    };
    let walked = Sample {
        kind: SampleKind::Walk,
        ..moved(1, "192.0.2.77:80", 12, 5000)
    };
    tally.take(&last);
    tally.take(&walked);
    let only = tally.series().rules[0].clone();
    assert_eq!((only.group.flows_begun, only.live), (1, 0));
    assert_eq!(value(&only.group, "acked_bytes"), 6000);
}

#[test]
fn a_lost_end_is_counted_after_a_walk_and_taken_back_by_a_sample() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    tally.take(&moved(1, "192.0.2.77:80", 11, 1000));
    tally.take(&moved(2, "192.0.2.77:80", 20, 1000));
    let flows = |tally: &Tally| {
        let only = tally.series().rules[0].clone();
        (only.group.flows_begun, only.group.flows_ended, only.live)
    };
    tally.end_unheard(15 * S);
    tally.end_unheard(16 * S);
    assert_eq!(flows(&tally), (2, 1, 1));
    // The walk had passed it by.
    tally.take(&moved(1, "192.0.2.77:80", 21, 3000));
    assert_eq!(flows(&tally), (3, 1, 2));
    assert_eq!(value(&only(&tally), "acked_bytes"), 4000);
    tally.end_unheard(22 * S);
    let last = Sample {
        kind: SampleKind::End,
        ..moved(1, "192.0.2.77:80", 23, 3000)
    };
    tally.take(&last);
    assert_eq!(flows(&tally), (3, 3, 0));
}

#[test]
fn an_adopted_flow_waits_from_its_adoption_on() {
    let mut tally = Tally::new(TallyBounds::default(), 0);
    let idle = |now_s| {
        let mut sample = sample(1, "192.0.2.77:80", now_s);
        // An hour of work before fatpath came.
        (sample.flow.is_adopted, sample.busy_us) = (true, 3_600_000_000);
        sample
    };
    tally.take(&idle(11));
    tally.take(&idle(15));
    assert_eq!(by(&only(&tally), "application"), 4_000_000);
}

#[test]
fn a_flow_that_lost_its_place_is_not_counted_again() {
    let bounds = TallyBounds {
        flows: 10,
        ..TallyBounds::default()
    };
    let mut tally = Tally::new(bounds, 0);
    let beginning = |cookie, now_s, bytes| Sample {
        begin_ns: (10 + cookie) * S,
        ..moved(cookie, "192.0.2.1:80", now_s, bytes)
    };
    (0..11).for_each(|cookie| tally.take(&beginning(cookie, 11 + cookie, 1000)));
    tally.take(&beginning(0, 40, 1500));
    tally.take(&beginning(0, 41, 1700));
    assert_eq!(value(&only(&tally), "acked_bytes"), 11_200);
}

#[test]
fn rules_have_their_names_and_memory_its_bound() {
    let bounds = TallyBounds {
        flows: 10,
        ..TallyBounds::default()
    };
    let mut tally = Tally::new(bounds, 0);
    tally.set_rules([(3, "far".to_owned())]);
    for cookie in 0..1000 {
        let mut sample = moved(cookie, "192.0.2.1:80", 11 + cookie, 10);
        (sample.flow.rule_id, sample.begin_ns) = (Some(3), (10 + cookie) * S);
        tally.take(&sample);
    }
    let far = tally.series().rules[0].clone();
    assert_eq!(far.label, "far");
    assert!((1..=10).contains(&far.live), "{}", far.live);
    assert_eq!(value(&far.group, "acked_bytes"), 10_000);
}
