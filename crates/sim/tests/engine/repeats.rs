// SPDX-License-Identifier: MIT OR Apache-2.0
//! What seeds decide, and where they decide nothing.

use fatpath_link::{
    CellSpec, CorruptSpec, DelaySpec, Discipline, Distribution, DuplicateSpec, JitterSpec,
    LossSpec, LossWindow, QueueSpec, RateSpec, ReorderSpec, Service,
};
use fatpath_sim::{Source, Spec};

use crate::support::*;

/// The same with other random numbers.
fn reseeded(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    spec.seed += 1;
    for chain in spec.links.iter_mut().flat_map(|link| &mut link.directions) {
        chain.seed += 1;
    }
    spec
}

fn of(cell: CellSpec) -> Spec {
    let mut spec = path(
        20 * MS_NS,
        [CellSpec::rate(20_000_000, Some(60_000)), cell],
        S_NS,
    );
    spec.flows = vec![bulk(None)];
    spec
}

fn red() -> CellSpec {
    CellSpec::Rate(RateSpec {
        service: Service::Constant {
            rate_bps: 10_000_000,
        },
        queue: QueueSpec {
            limit_bytes: Some(60_000),
            discipline: Discipline::Red {
                min_bytes: 5_000,
                max_bytes: 30_000,
                max_probability: 0.1,
                weight: 0.02,
                ecn: false,
            },
            ..QueueSpec::default()
        },
        overhead_bytes: 0,
    })
}

fn windows(probability: f64) -> CellSpec {
    let (from_ns, until_ns) = (300 * MS_NS, 400 * MS_NS);
    let windows = vec![LossWindow {
        from_ns,
        until_ns,
        probability,
    }];
    CellSpec::Loss(LossSpec::Windows { windows })
}

#[test]
fn where_nothing_is_drawn_seeds_decide_nothing() {
    let (every, first) = (200, 7);
    let (flow, packets) = (None, vec![40, 50]);
    let gilbert = LossSpec::GilbertElliott {
        to_bad: 0.0,
        to_good: 1.0,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    };
    let cells = [
        CellSpec::delay(MS_NS),
        CellSpec::loss(0.0),
        CellSpec::Loss(LossSpec::Periodic { every, first }),
        CellSpec::Loss(LossSpec::Packets { flow, packets }),
        CellSpec::Loss(gilbert),
        windows(1.0),
        CellSpec::Duplicate(DuplicateSpec { probability: 1.0 }),
    ];
    for cell in cells {
        let spec = of(cell.clone());
        assert!(!spec.is_random(), "{cell:?}");
        assert_eq!(outcome(&spec), outcome(&reseeded(&spec)), "{cell:?}");
    }
}

#[test]
fn where_something_is_drawn_seeds_decide_it() {
    let jitter = JitterSpec {
        distribution: Distribution::Uniform {
            half_width_ns: MS_NS,
        },
        reorders: false,
    };
    let gilbert = LossSpec::GilbertElliott {
        to_bad: 0.01,
        to_good: 1.0,
        loss_in_good: 0.0,
        loss_in_bad: 1.0,
    };
    let cells = [
        CellSpec::loss(0.01),
        CellSpec::Loss(gilbert),
        windows(0.5),
        red(),
        CellSpec::Delay(DelaySpec {
            delay_ns: 5 * MS_NS,
            jitter: Some(jitter),
        }),
        CellSpec::Corrupt(CorruptSpec { probability: 0.01 }),
        CellSpec::Duplicate(DuplicateSpec { probability: 0.01 }),
        CellSpec::Reorder(ReorderSpec {
            probability: 0.01,
            displacement_packets: 3,
            hold_limit_ns: 10 * MS_NS,
        }),
    ];
    for cell in cells {
        let spec = of(cell.clone());
        assert!(spec.is_random(), "{cell:?}");
        assert_ne!(outcome(&spec), outcome(&reseeded(&spec)), "{cell:?}");
    }
    let mut users = of(CellSpec::delay(0));
    users.flows = vec![flow(Source::Web {
        users: 5,
        mean_object_bytes: 10_000.0,
        shape: 1.2,
        objects_per_page: 2,
        mean_think_ns: 50 * MS_NS,
    })];
    assert!(users.is_random());
    assert_ne!(outcome(&users), outcome(&reseeded(&users)));
}
