// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a bottleneck serves.

use fatpath_link::{Cell, CellSpec, QueueSpec, RateSpec, RateStep, Service};
use proptest::prelude::*;

use crate::support::*;

const MS_NS: u64 = 1_000_000;

fn unbounded(service: Service, overhead_bytes: u32) -> CellSpec {
    CellSpec::Rate(RateSpec {
        service,
        queue: QueueSpec::default(),
        overhead_bytes,
    })
}

/// Bits times 10⁹ that may be sent from one moment to another.
fn allowance(service: &Service, from_ns: u64, until_ns: u64) -> u128 {
    match service {
        Service::Constant { rate_bps } => u128::from(until_ns - from_ns) * u128::from(*rate_bps),
        Service::Steps {
            steps,
            repeat_after_ns,
        } => {
            let period_ns = repeat_after_ns.unwrap_or(u64::MAX);
            let mut sum = 0;
            let mut at_ns = from_ns;
            while at_ns < until_ns {
                let in_period_ns = at_ns % period_ns;
                let begun = steps.partition_point(|step| step.at_ns <= in_period_ns);
                let next_ns = steps.get(begun).map_or(period_ns, |step| step.at_ns);
                let end_ns = (at_ns - in_period_ns).saturating_add(next_ns).min(until_ns);
                sum += u128::from(end_ns - at_ns) * u128::from(steps[begun - 1].rate_bps);
                at_ns = end_ns;
            }
            sum
        }
        _ => unreachable!("{service:?}"),
    }
}

fn constant_or_steps() -> impl Strategy<Value = Service> {
    prop_oneof![
        rate_bps().prop_map(|rate_bps| Service::Constant { rate_bps }),
        steps()
    ]
}

/// mahimahi's `LinkQueue`, millisecond by millisecond: when each packet left, of so many bytes of IP.
/// `came_ms` rises. Its packets come with the header of a TUN device.
fn mahimahi(at_ms: &[u64], packets: &[(u64, u32)]) -> Vec<u64> {
    let repeat_ms = *at_ms.last().unwrap();
    let mut left_ms = vec![];
    let size_bytes = |index: usize| packets.get(index).map_or(0, |packet| packet.1 + 4);
    let mut first_left_bytes = size_bytes(0);
    let opportunities =
        (0..).flat_map(|round| at_ms.iter().map(move |at_ms| at_ms + round * repeat_ms));
    for now_ms in opportunities {
        let mut budget_bytes = 1504;
        while let Some((came_ms, _)) = packets.get(left_ms.len()) {
            // What comes at the moment of an opportunity comes after it.
            if *came_ms >= now_ms || budget_bytes == 0 {
                break;
            }
            let sent_bytes = budget_bytes.min(first_left_bytes);
            budget_bytes -= sent_bytes;
            first_left_bytes -= sent_bytes;
            if first_left_bytes == 0 {
                left_ms.push(now_ms);
                first_left_bytes = size_bytes(left_ms.len());
            }
        }
        if left_ms.len() == packets.len() {
            break;
        }
    }
    left_ms
}

proptest! {
    #[test]
    fn the_rate_is_never_exceeded_over_any_interval(
        service in constant_or_steps(),
        overhead in 0..100u32,
        traffic in traffic_of(40),
    ) {
        let departures = pass(&mut chain([unbounded(service.clone(), overhead)], 1), &traffic);
        for (index, first) in departures.iter().enumerate() {
            let mut bits = 0u128;
            for later in &departures[index + 1..] {
                bits += 8 * u128::from(later.packet.wire.len_bytes(overhead));
                // 1 ns, since departures are rounded to it.
                let from_ns = first.at_ns.saturating_sub(1);
                prop_assert!(bits * 1_000_000_000 <= allowance(&service, from_ns, later.at_ns));
            }
        }
    }

    #[test]
    fn a_busy_bottleneck_wastes_no_time(
        service in constant_or_steps(),
        traffic in traffic_of(40),
    ) {
        let burst = traffic.iter().map(|(_, run)| (0, *run)).collect();
        let departures = pass(&mut chain([unbounded(service.clone(), 0)], 1), &burst);
        let last_ns = departures.last().unwrap().at_ns;
        let work = 8_000_000_000 * u128::from(pushed(&burst).bytes);
        prop_assert!(allowance(&service, 0, last_ns) >= work);
        prop_assert!(allowance(&service, 0, last_ns - 1) < work);
    }

    #[test]
    fn opportunities_are_used_as_mahimahi_uses_them(
        gaps_ms in proptest::collection::vec((0..10u64, 40..3_000u32), 1..60),
        service in opportunities(),
    ) {
        let Service::Opportunities { at_ms } = &service else { unreachable!() };
        let (mut traffic, mut packets, mut now_ms) = (vec![], vec![], 0);
        for (number, (gap_ms, bytes)) in (0..).zip(gaps_ms) {
            now_ms += gap_ms;
            traffic.push((gap_ms * MS_NS, Run::single(number, bytes)));
            packets.push((now_ms, bytes));
        }
        let departures = pass(&mut chain([unbounded(service.clone(), 0)], 1), &traffic);
        let left_ms: Vec<_> = departures.iter().map(|left| left.at_ns / MS_NS).collect();
        prop_assert_eq!(left_ms, mahimahi(at_ms, &packets));
        prop_assert!(departures.iter().all(|left| left.at_ns % MS_NS == 0));
    }

    #[test]
    fn without_a_limit_all_leaves_at_once(queue in queue(), traffic in traffic()) {
        let spec = RateSpec { service: Service::Unlimited, queue, overhead_bytes: 9 };
        let departures = pass(&mut chain([CellSpec::Rate(spec)], 1), &traffic);
        let mut now_ns = 0;
        prop_assert_eq!(departures.len(), traffic.len());
        for ((gap_ns, run), departure) in traffic.iter().zip(&departures) {
            now_ns += gap_ns;
            prop_assert_eq!((departure.at_ns, departure.packet), (now_ns, *run));
        }
    }
}

/// 1,500 bytes at 12 Mb/s take 1 ms; an outage from 0.5 ms to 2 ms makes it 2.5 ms.
#[test]
fn an_outage_holds_up_what_is_on_the_way() {
    let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
    let service = Service::Steps {
        steps: vec![
            step(0, 12_000_000),
            step(MS_NS / 2, 0),
            step(2 * MS_NS, 12_000_000),
        ],
        repeat_after_ns: None,
    };
    let left = pass(
        &mut chain([unbounded(service, 0)], 1),
        &vec![(0, Run::single(0, 1500))],
    );
    assert_eq!(left[0].at_ns, 5 * MS_NS / 2);
}

#[test]
fn what_an_outage_without_end_holds_is_never_due() {
    let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
    let service = Service::Steps {
        steps: vec![step(0, 12_000_000), step(MS_NS / 2, 0)],
        repeat_after_ns: None,
    };
    let mut chain = chain([unbounded(service, 0)], 1);
    chain.push(0, Run::single(0, 1500));
    assert_eq!(chain.next_due_ns(), None);
    assert!(chain.pop(u64::MAX / 2).is_none());
    assert_eq!(chain.held().packets, 1);
}

/// In mahimahi one packet of 1500 bytes uses an opportunity up, and two of 748.
#[test]
fn a_full_packet_fills_an_opportunity() {
    for (bytes, packets) in [(1500, 1), (748, 2)] {
        let service = Service::Opportunities { at_ms: vec![1] };
        let burst: Traffic = (0..1_000).map(|n| (0, Run::single(n, bytes))).collect();
        let left = pass(&mut chain([unbounded(service, 0)], 1), &burst);
        assert_eq!(left.last().unwrap().at_ns, 1_000 / packets * MS_NS);
    }
}
