// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which specs are refused, and how.

use fatpath_link::{
    CellSpec, ChainSpec, CorruptSpec, DelaySpec, Discipline, Distribution, DuplicateSpec,
    JitterSpec, LossSpec, LossWindow, MtuSpec, QueueSpec, RateSpec, RateStep, ReorderSpec, Service,
};
use proptest::prelude::*;

use crate::support::*;

fn rate(service: Service, discipline: Discipline, overhead_bytes: u32) -> CellSpec {
    CellSpec::Rate(RateSpec {
        service,
        queue: QueueSpec {
            discipline,
            ..QueueSpec::default()
        },
        overhead_bytes,
    })
}

fn service(service: Service) -> CellSpec {
    rate(service, Discipline::DropTail, 0)
}

fn steps(steps: &[(u64, u64)], repeat_after_ns: Option<u64>) -> CellSpec {
    let step = |&(at_ns, rate_bps)| RateStep { at_ns, rate_bps };
    service(Service::Steps {
        steps: steps.iter().map(step).collect(),
        repeat_after_ns,
    })
}

fn opportunities(at_ms: &[u64]) -> CellSpec {
    service(Service::Opportunities {
        at_ms: at_ms.to_vec(),
    })
}

fn discipline(discipline: Discipline) -> CellSpec {
    rate(Service::Unlimited, discipline, 0)
}

fn codel(target_ns: u64, interval_ns: u64) -> CellSpec {
    discipline(Discipline::Codel {
        target_ns,
        interval_ns,
        ecn: false,
    })
}

fn red(min_bytes: u64, max_bytes: u64, max_probability: f64, weight: f64) -> CellSpec {
    discipline(Discipline::Red {
        min_bytes,
        max_bytes,
        max_probability,
        weight,
        ecn: false,
    })
}

fn jitter(distribution: Distribution) -> CellSpec {
    CellSpec::Delay(DelaySpec {
        delay_ns: 0,
        jitter: Some(JitterSpec {
            distribution,
            reorders: true,
        }),
    })
}

fn pareto(shape: f64) -> CellSpec {
    jitter(Distribution::Pareto { mean_ns: 1, shape })
}

fn bursts(probabilities: [f64; 4]) -> CellSpec {
    let [to_bad, to_good, loss_in_good, loss_in_bad] = probabilities;
    CellSpec::Loss(LossSpec::GilbertElliott {
        to_bad,
        to_good,
        loss_in_good,
        loss_in_bad,
    })
}

fn listed(flow: Option<u32>, packets: &[u64]) -> CellSpec {
    CellSpec::Loss(LossSpec::Packets {
        flow,
        packets: packets.to_vec(),
    })
}

fn periodic(every: u64, first: u64) -> CellSpec {
    CellSpec::Loss(LossSpec::Periodic { every, first })
}

fn windows(windows: &[(u64, u64, f64)]) -> CellSpec {
    let window = |&(from_ns, until_ns, probability)| LossWindow {
        from_ns,
        until_ns,
        probability,
    };
    CellSpec::Loss(LossSpec::Windows {
        windows: windows.iter().map(window).collect(),
    })
}

fn reordering(probability: f64, displacement_packets: u32, hold_limit_ns: u64) -> CellSpec {
    CellSpec::Reorder(ReorderSpec {
        probability,
        displacement_packets,
        hold_limit_ns,
    })
}

#[test]
fn a_spec_out_of_range_is_refused_and_its_limits_are_not() {
    let hour_ns = ChainSpec::MAX_DELAY_NS;
    let refused = [
        CellSpec::rate(999, None),
        CellSpec::rate(1_000_000_000_001, None),
        CellSpec::loss(1.01),
        CellSpec::loss(f64::NAN),
        CellSpec::loss(-0.1),
        CellSpec::delay(hour_ns + 1),
        rate(Service::Unlimited, Discipline::DropTail, 65_537),
        steps(&[], None),
        steps(&[(1, 1_000)], None),
        steps(&[(0, 1_000), (5, 2_000), (5, 3_000)], None),
        steps(&[(0, 1_000), (5, 999)], None),
        steps(&[(0, 1_000), (5, 2_000)], Some(5)),
        opportunities(&[]),
        opportunities(&[0]),
        opportunities(&[2, 1]),
        opportunities(&[Service::MAX_TRACE_MS + 1]),
        codel(0, 1),
        codel(1, 0),
        codel(1, hour_ns + 1),
        red(5, 5, 0.1, 0.002),
        red(1, 5, 1.1, 0.002),
        red(1, 5, 0.1, 0.0),
        red(1, 5, 0.1, f64::NAN),
        jitter(Distribution::Uniform {
            half_width_ns: hour_ns + 1,
        }),
        jitter(Distribution::Normal {
            std_dev_ns: hour_ns + 1,
        }),
        jitter(Distribution::Exponential {
            mean_ns: hour_ns + 1,
        }),
        pareto(1.0),
        pareto(f64::INFINITY),
        pareto(f64::NAN),
        bursts([1.1, 0.5, 0.5, 0.5]),
        bursts([0.5, f64::NAN, 0.5, 0.5]),
        bursts([0.5, 0.5, -0.5, 0.5]),
        bursts([0.5, 0.5, 0.5, 2.0]),
        listed(Some(0), &[1]),
        listed(None, &[0]),
        listed(None, &[2, 2]),
        periodic(0, 1),
        periodic(5, 0),
        periodic(5, 6),
        windows(&[(5, 5, 0.5)]),
        windows(&[(0, 5, 0.5), (4, 8, 0.5)]),
        windows(&[(0, 5, 1.5)]),
        reordering(1.1, 1, 1),
        reordering(0.5, 0, 1),
        reordering(0.5, 1, hour_ns + 1),
        CellSpec::Duplicate(DuplicateSpec { probability: 1.1 }),
        CellSpec::Corrupt(CorruptSpec { probability: -1.0 }),
        CellSpec::Mtu(MtuSpec { mtu_bytes: 67 }),
        CellSpec::Mtu(MtuSpec { mtu_bytes: 65_536 }),
    ];
    for cell in refused {
        let spec = ChainSpec::of([cell]);
        let error = spec.build::<Run>().err();
        assert!(error.is_some(), "{spec:?}");
        assert!(error.is_some_and(|error| error.to_string().contains("give ")));
    }
    let allowed = [
        CellSpec::rate(1_000, Some(0)),
        CellSpec::rate(1_000_000_000_000, None),
        CellSpec::delay(hour_ns),
        rate(Service::Unlimited, Discipline::DropHead, 65_536),
        steps(&[(0, 0), (1, 1_000)], Some(2)),
        opportunities(&[0, 0, 1]),
        codel(1, hour_ns),
        red(0, 1, 1.0, 1.0),
        listed(None, &[]),
        periodic(1, 1),
        windows(&[(0, 5, 0.5), (5, 8, 0.5)]),
        reordering(1.0, u32::MAX, 0),
        CellSpec::Mtu(MtuSpec { mtu_bytes: 68 }),
        CellSpec::Mtu(MtuSpec { mtu_bytes: 65_535 }),
    ];
    let spec = ChainSpec::of(allowed);
    assert_eq!(spec.check(), Ok(()));
}

proptest! {
    #[test]
    fn every_spec_that_these_tests_make_is_in_range(spec in any_spec()) {
        prop_assert_eq!(spec.check(), Ok(()));
    }
}
