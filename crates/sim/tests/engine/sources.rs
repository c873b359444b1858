// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs send.

use fatpath_link::{CellSpec, DelaySpec, Distribution, JitterSpec};
use fatpath_sim::{Outcome, Source, Spec};

use crate::support::*;

fn datagrams() -> Source {
    // A thousand bytes of IP a millisecond.
    Source::ConstantRate {
        rate_bps: 8_000_000,
        payload_bytes: 972,
    }
}

#[test]
fn datagrams_leave_at_their_rate_and_their_loss_is_counted() {
    let mut spec = path(20 * MS_NS, [CellSpec::loss(0.1)], 10 * S_NS);
    spec.flows = vec![flow(datagrams())];
    let outcome = outcome(&spec);
    let seen = outcome.flows[0].datagrams.unwrap();
    let link = &outcome.links[0][0];
    // One at 0 and one at the end too.
    assert_eq!(seen.sent, 10_001);
    let gone = link.counters.dropped_total().packets;
    assert_eq!(seen.received + gone + link.held.packets, seen.sent);
    assert_eq!(seen.lost, gone);
    assert!((gone as f64 / 10_000.0 - 0.1).abs() < 0.01, "{gone}");
    assert_eq!((seen.jitter_ns, seen.mean_delay_ns), (0, 10 * MS_NS));
    assert_eq!(outcome.flows[0].delivered_bytes, seen.received * 972);
}

/// Of 8,192 bytes, each in six fragments that come at once: a queue takes all, or not the last, and with it the datagram.
#[test]
fn datagrams_arrive_with_all_fragments_or_not_at_all() {
    let of = |queue_bytes| {
        let queue = CellSpec::rate(10_000_000, Some(queue_bytes));
        let mut spec = path(20 * MS_NS, [queue], S_NS);
        spec.flows = vec![flow(Source::ConstantRate {
            rate_bps: 8_000_000,
            payload_bytes: 8_192,
        })];
        let outcome = outcome(&spec);
        let seen = outcome.flows[0].datagrams.unwrap();
        let left = outcome.links[0][0].counters.left.packets;
        (seen.sent, seen.lost, seen.received, left)
    };
    let (sent, lost, received, _) = of(10_000);
    assert!(sent > 100 && lost == 0 && received + 3 > sent);
    let (sent, lost, received, left) = of(4_500);
    assert!(lost + 3 > sent && received == 0 && left > 2 * sent);
}

/// Twice what the link carries, for two seconds, beside a flow that goes on: the queue empties after it.
#[test]
fn datagrams_count_until_their_program_stops() {
    let queue = CellSpec::rate(10_000_000, Some(3_000_000));
    let mut spec = path(20 * MS_NS, [queue], 5 * S_NS);
    let rate_bps = 20_000_000;
    let payload_bytes = 1_222;
    spec.flows = vec![flow(Source::ConstantRate {
        rate_bps,
        payload_bytes,
    })];
    spec.flows[0].stop_ns = Some(2 * S_NS);
    let alone = outcome(&spec);
    assert_eq!(alone.ended_ns, 2 * S_NS);
    let flow = &alone.flows[0];
    let seen = flow.datagrams.unwrap();
    assert_eq!((seen.sent, seen.lost), (4_000, 0));
    assert!((9.7e6..10e6).contains(&flow.goodput_bps()), "{flow:?}");
    spec.flows.push(bulk(None));
    spec.flows[1].start_ns = 2 * S_NS;
    assert_eq!(&outcome(&spec).flows[0], flow);
}

#[test]
fn jitter_is_what_the_link_does() {
    let jitter = JitterSpec {
        distribution: Distribution::Uniform {
            half_width_ns: 3 * MS_NS,
        },
        reorders: true,
    };
    let cell = CellSpec::Delay(DelaySpec {
        delay_ns: 5 * MS_NS,
        jitter: Some(jitter),
    });
    let mut spec = path(20 * MS_NS, [cell], 10 * S_NS);
    spec.flows = vec![flow(datagrams())];
    let seen = outcome(&spec).flows[0].datagrams.unwrap();
    // Two uniform times of a width of 6 ms differ by 2 ms in the mean.
    assert!((1_000_000..3_000_000).contains(&seen.jitter_ns), "{seen:?}");
    assert!(seen.out_of_order > 1_000 && seen.lost == 0, "{seen:?}");
}

#[test]
fn chunks_begin_at_their_intervals() {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(100_000_000, None)], 20 * S_NS);
    spec.flows = vec![flow(Source::Chunks {
        chunk_bytes: 100_000,
        first_chunk_bytes: Some(300_000),
        every_ns: S_NS,
        count: Some(5),
    })];
    let outcome = outcome(&spec);
    let flow = &outcome.flows[0];
    assert_eq!((flow.completions.count, flow.connections), (5, 1));
    assert_eq!(flow.delivered_bytes, 700_000);
    let begins = |one: &fatpath_sim::Completion| one.at_ns - one.took_ns;
    let begins: Vec<_> = flow.completions.first.iter().map(begins).collect();
    assert!(
        begins.is_sorted_by(|one, next| next - one == S_NS),
        "{begins:?}"
    );
    assert!((4 * S_NS..5 * S_NS).contains(&flow.duration_ns));
}

#[test]
fn a_late_chunk_is_followed_at_once() {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(10_000_000, None)], 60 * S_NS);
    spec.flows = vec![flow(Source::Chunks {
        chunk_bytes: 1_000_000,
        first_chunk_bytes: None,
        every_ns: MS_NS,
        count: Some(5),
    })];
    let outcome = outcome(&spec);
    let took_ns: u64 = outcome.flows[0]
        .completions
        .first
        .iter()
        .map(|one| one.took_ns)
        .sum();
    // All but the handshake.
    assert_eq!(outcome.flows[0].duration_ns - took_ns, handshake_ns(&spec));
}

/// There and back, with the time that 52 bytes take at 10 Mb/s.
fn handshake_ns(spec: &Spec) -> u64 {
    20 * MS_NS + 8 * 1_000_000_000 * u64::from(spec.flows[0].tcp.header_bytes) / 10_000_000
}

#[test]
fn again_is_a_new_connection_each_time() {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(100_000_000, None)], 10 * S_NS);
    spec.flows = vec![flow(Source::Bulk {
        bytes: Some(10_000),
        again: true,
    })];
    let outcome = outcome(&spec);
    let flow = &outcome.flows[0];
    // 10 kB are 7 segments, less than the initial window: a round trip for them and one for the
    // handshake, and 5 µs for each of the longer packets.
    let took_ns = flow.completions.first[0].took_ns;
    assert!((40 * MS_NS..42 * MS_NS).contains(&took_ns), "{took_ns}");
    assert!(
        flow.completions
            .first
            .iter()
            .all(|one| one.took_ns == took_ns)
    );
    assert_eq!(flow.completions.count, 10 * S_NS / took_ns);
    assert_eq!(flow.connections, flow.completions.count + 1);
    assert_eq!(flow.delivered_bytes % 10_000 * 10, 0);
}

fn web(users: u32, mean_think_ns: u64) -> Source {
    Source::Web {
        users,
        mean_object_bytes: 12_000.0,
        shape: 1.5,
        objects_per_page: 4,
        mean_think_ns,
    }
}

fn browsed(users: u32, flows: usize) -> Outcome {
    let mut spec = path(20 * MS_NS, [CellSpec::rate(1_000_000_000, None)], 30 * S_NS);
    spec.flows = vec![flow(web(users, 2 * S_NS)); flows];
    outcome(&spec)
}

#[test]
fn users_fetch_as_many_objects_as_their_pauses_allow() {
    let outcome = browsed(100, 1);
    let web = &outcome.flows[0].completions;
    // An object takes a handshake, the request and the object, two round trips at least.
    let took_ns = web.took_mean_ns().unwrap();
    assert!((40e6..60e6).contains(&took_ns), "{took_ns}");
    let page_ns = 2e9 + 4.0 * took_ns;
    let pages = 100.0 * 30e9 / page_ns;
    let error = web.count as f64 / (4.0 * pages) - 1.0;
    assert!(error.abs() < 0.1, "{} of {}", web.count, 4.0 * pages);
    assert_eq!(web.first.len(), 1_000);
    assert!(web.took_quantile_ns(0.5) >= Some(40 * MS_NS));
    assert!(web.took_quantile_ns(0.5) < web.took_quantile_ns(0.99));
    assert!(outcome.flows[0].delivered_bytes >= web.bytes);
    assert!(outcome.flows[0].connections - web.count <= 100);
}

#[test]
fn one_flow_more_changes_no_other_ones_randomness() {
    let sizes = |outcome: &Outcome| {
        let objects = outcome.flows[0].completions.first.iter();
        objects.map(|object| object.bytes).collect::<Vec<_>>()
    };
    // Its user alone, so that objects end in the same order however long they take.
    let [alone, beside] = [browsed(1, 1), browsed(1, 2)];
    let count = sizes(&alone).len().min(sizes(&beside).len());
    assert!(count > 20);
    assert_eq!(sizes(&alone)[..count], sizes(&beside)[..count]);
    let other: Vec<_> = beside.flows[1]
        .completions
        .first
        .iter()
        .map(|one| one.bytes)
        .collect();
    assert_ne!(sizes(&alone)[..10], other[..10]);
}
