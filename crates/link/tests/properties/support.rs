// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet of these tests, traffic of it, and specs of any cell.

use std::net::SocketAddr;

use fatpath_link::{
    Cell, CellSpec, Chain, ChainSpec, CorruptSpec, Count, DelaySpec, Departure, Discipline,
    Distribution, DuplicateSpec, Ecn, Exceed, Flow, JitterSpec, LossSpec, LossWindow, MtuSpec,
    Packet, PolicerSpec, QueueSpec, RateSpec, RateStep, ReorderSpec, Service, Wire,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Segments `first`, `first + 1`, ….
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub first: u64,
    pub wire: Wire,
    pub ecn: Ecn,
    pub dscp: u8,
    /// Its flow is that of this port.
    pub port: u16,
    pub has_data: bool,
    /// The bits that a cell damaged it by.
    pub damage: Option<u64>,
    /// A reply to another.
    pub is_reply: bool,
    pub may_be_fragmented: bool,
}

impl Run {
    pub fn new(first: u64, wire: Wire) -> Run {
        Run {
            first,
            wire,
            ecn: Ecn::Capable,
            dscp: 0,
            port: 1,
            has_data: true,
            damage: None,
            is_reply: false,
            may_be_fragmented: false,
        }
    }

    pub fn single(first: u64, len_bytes: u32) -> Run {
        Run::new(first, Wire::single(len_bytes))
    }

    /// `segments` full segments of 1500 bytes.
    pub fn full(first: u64, segments: u32) -> Run {
        let wire = Wire {
            segments,
            segment_bytes: 1500,
            last_bytes: 1500,
        };
        Run::new(first, wire)
    }

    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + u64::from(self.wire.segments)
    }

    /// The same segments as packets of one each.
    pub fn singles(mut self) -> Vec<Run> {
        let mut singles = vec![];
        while self.wire.segments > 1 {
            singles.push(self.split_front(1));
        }
        singles.push(self);
        singles
    }
}

impl Packet for Run {
    fn wire(&self) -> Wire {
        self.wire
    }

    fn split_front(&mut self, count: u32) -> Run {
        let wire = self.wire;
        assert!(0 < count && count < wire.segments, "{count} of {wire:?}");
        let front = Wire {
            segments: count,
            last_bytes: wire.segment_bytes,
            ..wire
        };
        let front = Run {
            wire: front,
            ..*self
        };
        self.first += u64::from(count);
        self.wire.segments -= count;
        if self.wire.segments == 1 {
            self.wire.segment_bytes = wire.last_bytes;
        }
        front
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        assert_eq!(self.ecn, Ecn::Capable);
        self.ecn = Ecn::Marked;
    }

    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }

    fn flow(&self) -> Option<Flow> {
        Some(Flow {
            source: SocketAddr::from(([10, 0, 0, 1], self.port)),
            destination: SocketAddr::from(([10, 0, 0, 2], 5201)),
            protocol: 6,
        })
    }

    fn has_data(&self) -> bool {
        self.has_data
    }

    fn duplicate(&self) -> Run {
        *self
    }

    fn corrupt(&mut self, random: u64) {
        assert_eq!(self.wire.segments, 1);
        self.damage = Some(random);
    }

    fn too_big(&self, mtu_bytes: u32) -> Option<Run> {
        let mut reply = Run::single(self.first, mtu_bytes);
        reply.is_reply = true;
        Some(reply)
    }

    fn may_be_fragmented(&self) -> bool {
        self.may_be_fragmented
    }

    /// Each has a header of 20 bytes.
    fn fragments(self, mtu_bytes: u32) -> Vec<Run> {
        let (data_bytes, most_bytes) = (self.wire.last_bytes - 20, mtu_bytes - 20);
        let part = |begin: u32| Run {
            wire: Wire::single(20 + most_bytes.min(data_bytes - begin)),
            ..self
        };
        (0..data_bytes)
            .step_by(most_bytes as usize)
            .map(part)
            .collect()
    }
}

/// Packets, each with the time since the one before.
pub type Traffic = Vec<(u64, Run)>;

/// Up to `packets` packets, numbered on.
pub fn traffic_of(packets: usize) -> impl Strategy<Value = Traffic> {
    let gap_ns = prop_oneof![Just(0u64), 0..20_000u64, 0..1_000_000u64, 0..100_000_000u64];
    let ecn = prop_oneof![
        Just(Ecn::NotCapable),
        Just(Ecn::Capable),
        Just(Ecn::Capable),
        Just(Ecn::Marked)
    ];
    let run = (wire(), ecn, 1..4u16, any::<bool>()).prop_map(|(wire, ecn, port, has_data)| Run {
        ecn,
        port,
        has_data,
        ..Run::new(0, wire)
    });
    vec((gap_ns, run), 1..packets).prop_map(|mut traffic| {
        number(&mut traffic);
        traffic
    })
}

pub fn traffic() -> impl Strategy<Value = Traffic> {
    traffic_of(60)
}

fn wire() -> impl Strategy<Value = Wire> {
    let shape = (prop_oneof![Just(1u32), 1..46u32], 40..1501u32);
    shape.prop_flat_map(|(segments, bytes)| {
        (40..=bytes).prop_map(move |last| match segments {
            1 => Wire::single(last),
            _ => Wire {
                segments,
                segment_bytes: bytes,
                last_bytes: last,
            },
        })
    })
}

/// Numbers the segments on from 0.
pub fn number(traffic: &mut Traffic) {
    let mut next = 0;
    for (_, run) in traffic {
        run.first = next;
        next += u64::from(run.wire.segments);
    }
}

/// The same segments singly, at the same moments.
pub fn singles(traffic: &Traffic) -> Traffic {
    let spread = |(gap_ns, run): &(u64, Run)| {
        let mut gap_ns = Some(*gap_ns);
        run.singles()
            .into_iter()
            .map(move |single| (gap_ns.take().unwrap_or(0), single))
    };
    traffic.iter().flat_map(spread).collect()
}

/// Single segments of 1500 bytes, so far apart.
pub fn steady(packets: u64, gap_ns: u64) -> Traffic {
    (0..packets)
        .map(|number| (gap_ns, Run::single(number, 1500)))
        .collect()
}

pub fn chain(cells: impl Into<Vec<CellSpec>>, seed: u64) -> Chain<Run> {
    let cells = cells.into();
    ChainSpec { cells, seed }.build().unwrap()
}

/// Pushes all traffic, each packet at its moment, and pops whatever is due; then drains.
pub fn pass(cell: &mut dyn Cell<Run>, traffic: &Traffic) -> Vec<Departure<Run>> {
    let mut departures = vec![];
    let mut now_ns = 0;
    for (gap_ns, run) in traffic {
        now_ns += gap_ns;
        pop_due(cell, now_ns, &mut departures);
        cell.push(now_ns, *run);
    }
    drain(cell, &mut departures);
    departures
}

pub fn drain(cell: &mut dyn Cell<Run>, departures: &mut Vec<Departure<Run>>) {
    while let Some(due_ns) = cell.next_due_ns() {
        pop_due(cell, due_ns, departures);
    }
}

pub fn pop_due(cell: &mut dyn Cell<Run>, now_ns: u64, departures: &mut Vec<Departure<Run>>) {
    departures.extend(std::iter::from_fn(|| cell.pop(now_ns)));
}

pub fn numbers(departures: &[Departure<Run>]) -> Vec<u64> {
    let numbers = |departure: &Departure<Run>| departure.packet.numbers();
    departures.iter().flat_map(numbers).collect()
}

/// When each segment left.
pub fn times(departures: &[Departure<Run>]) -> Vec<(u64, u64)> {
    let timed = |departure: &Departure<Run>| {
        let at_ns = departure.at_ns;
        let numbers = departure.packet.numbers();
        numbers.map(move |number| (number, at_ns))
    };
    departures.iter().flat_map(timed).collect()
}

/// What became of each segment that left, in order: its number, mark, DSCP and damage.
pub fn fates(departures: &[Departure<Run>]) -> Vec<(u64, Ecn, u8, Option<u64>)> {
    let fate = |departure: &Departure<Run>| {
        let Run {
            ecn, dscp, damage, ..
        } = departure.packet;
        let numbers = departure.packet.numbers();
        numbers.map(move |number| (number, ecn, dscp, damage))
    };
    departures.iter().flat_map(fate).collect()
}

pub fn sum(counts: impl IntoIterator<Item = Count>) -> Count {
    let mut sum = Count::default();
    counts.into_iter().for_each(|count| sum += count);
    sum
}

pub fn pushed(traffic: &Traffic) -> Count {
    Count::of(traffic.iter().map(|(_, run)| run))
}

/// A share that is often an extreme one.
pub fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64, 0.0..0.05f64]
}

pub fn discipline() -> impl Strategy<Value = Discipline> {
    let codel = (1..20_000_000u64, 1..100_000_000u64, any::<bool>()).prop_map(
        |(target_ns, interval_ns, ecn)| Discipline::Codel {
            target_ns,
            interval_ns,
            ecn,
        },
    );
    let thresholds = (0..100_000u64, 1..100_000u64);
    let red = (thresholds, probability(), 0.0001..=1.0f64, any::<bool>()).prop_map(
        |((min_bytes, more_bytes), max_probability, weight, ecn)| Discipline::Red {
            min_bytes,
            max_bytes: min_bytes + more_bytes,
            max_probability,
            weight,
            ecn,
        },
    );
    prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::DropHead),
        codel,
        red
    ]
}

pub fn queue() -> impl Strategy<Value = QueueSpec> {
    let bytes = || prop_oneof![Just(None), (0u64..300_000).prop_map(Some)];
    let packets = prop_oneof![Just(None), (0u64..200).prop_map(Some)];
    (bytes(), packets, discipline(), bytes()).prop_map(
        |(limit_bytes, limit_packets, discipline, mark_above_bytes)| QueueSpec {
            limit_bytes,
            limit_packets,
            discipline,
            mark_above_bytes,
        },
    )
}

pub fn rate_bps() -> impl Strategy<Value = u64> {
    prop_oneof![
        *Service::RANGE_BPS.start()..=*Service::RANGE_BPS.end(),
        1_000_000..=10_000_000_000u64
    ]
}

/// Rates by steps, some of them outages, which always serve again.
pub fn steps() -> impl Strategy<Value = Service> {
    let rate = prop_oneof![Just(0u64), rate_bps()];
    let step = (1..50_000_000u64, rate);
    (vec(step, 0..6), rate_bps(), any::<Option<u32>>()).prop_map(|(gaps, rate_bps, repeat)| {
        let mut at_ns = 0;
        let mut steps: Vec<RateStep> = gaps
            .into_iter()
            .map(|(gap_ns, rate_bps)| {
                let step = RateStep { at_ns, rate_bps };
                at_ns += gap_ns;
                step
            })
            .collect();
        steps.push(RateStep { at_ns, rate_bps });
        let repeat_after_ns = repeat.map(|after_ns| at_ns + 1_000_000 + u64::from(after_ns) / 100);
        Service::Steps {
            steps,
            repeat_after_ns,
        }
    })
}

pub fn opportunities() -> impl Strategy<Value = Service> {
    vec(0..20u64, 1..20).prop_map(|mut gaps_ms| {
        gaps_ms.push(1);
        let at_ms = gaps_ms.iter().scan(0, |at_ms, gap_ms| {
            *at_ms += gap_ms;
            Some(*at_ms)
        });
        Service::Opportunities {
            at_ms: at_ms.collect(),
        }
    })
}

pub fn service() -> impl Strategy<Value = Service> {
    prop_oneof![
        1 => Just(Service::Unlimited),
        4 => rate_bps().prop_map(|rate_bps| Service::Constant { rate_bps }),
        2 => steps(),
        2 => opportunities(),
    ]
}

pub fn rate() -> impl Strategy<Value = RateSpec> {
    (service(), queue(), 0..100u32).prop_map(|(service, queue, overhead_bytes)| RateSpec {
        service,
        queue,
        overhead_bytes,
    })
}

pub fn loss() -> impl Strategy<Value = LossSpec> {
    let independent = probability().prop_map(|probability| LossSpec::Independent { probability });
    let bursts = (probability(), probability(), probability(), probability()).prop_map(
        |(to_bad, to_good, loss_in_good, loss_in_bad)| LossSpec::GilbertElliott {
            to_bad,
            to_good,
            loss_in_good,
            loss_in_bad,
        },
    );
    let listed = (
        proptest::option::of(1..4u32),
        proptest::collection::btree_set(1..500u64, 0..60),
    )
        .prop_map(|(flow, packets)| LossSpec::Packets {
            flow,
            packets: packets.into_iter().collect(),
        });
    let periodic = (1..50u64)
        .prop_flat_map(|every| (Just(every), 1..=every))
        .prop_map(|(every, first)| LossSpec::Periodic { every, first });
    let window = (0..20_000_000u64, 1..20_000_000u64, probability());
    let windows = vec(window, 0..5).prop_map(|gaps| {
        let mut end_ns = 0;
        let windows = gaps.into_iter().map(|(gap_ns, length_ns, probability)| {
            let from_ns = end_ns + gap_ns;
            end_ns = from_ns + length_ns;
            LossWindow {
                from_ns,
                until_ns: end_ns,
                probability,
            }
        });
        LossSpec::Windows {
            windows: windows.collect(),
        }
    });
    prop_oneof![independent, bursts, listed, periodic, windows]
}

pub fn distribution() -> impl Strategy<Value = Distribution> {
    let width_ns = || prop_oneof![Just(0u64), 0..100u64, 0..20_000_000u64];
    prop_oneof![
        width_ns().prop_map(|half_width_ns| Distribution::Uniform { half_width_ns }),
        width_ns().prop_map(|std_dev_ns| Distribution::Normal { std_dev_ns }),
        width_ns().prop_map(|mean_ns| Distribution::Exponential { mean_ns }),
        (width_ns(), 1.01..5.0f64)
            .prop_map(|(mean_ns, shape)| Distribution::Pareto { mean_ns, shape }),
    ]
}

/// With `reorders` as given, or any.
pub fn delay(reorders: Option<bool>) -> impl Strategy<Value = DelaySpec> {
    let reorders = match reorders {
        Some(reorders) => Just(reorders).boxed(),
        None => any::<bool>().boxed(),
    };
    let jitter = (distribution(), reorders).prop_map(|(distribution, reorders)| JitterSpec {
        distribution,
        reorders,
    });
    (0..50_000_000u64, proptest::option::of(jitter))
        .prop_map(|(delay_ns, jitter)| DelaySpec { delay_ns, jitter })
}

pub fn reorder() -> impl Strategy<Value = ReorderSpec> {
    let hold_limit_ns = prop_oneof![Just(0u64), 0..50_000_000u64];
    (probability(), 1..50u32, hold_limit_ns).prop_map(
        |(probability, displacement_packets, hold_limit_ns)| ReorderSpec {
            probability,
            displacement_packets,
            hold_limit_ns,
        },
    )
}

pub fn policer() -> impl Strategy<Value = PolicerSpec> {
    let exceed = prop_oneof![
        Just(Exceed::Drop),
        Just(Exceed::MarkEcn),
        (0..=PolicerSpec::MOST_DSCP).prop_map(Exceed::SetDscp)
    ];
    let burst_bytes = proptest::option::of(0..300_000u64);
    (rate_bps(), burst_bytes, exceed).prop_map(|(rate_bps, burst_bytes, exceed)| PolicerSpec {
        rate_bps,
        burst_bytes,
        exceed,
    })
}

/// A cell that keeps order and adds nothing.
pub fn orderly_cell() -> impl Strategy<Value = CellSpec> {
    prop_oneof![
        delay(Some(false)).prop_map(CellSpec::Delay),
        rate().prop_map(CellSpec::Rate),
        loss().prop_map(CellSpec::Loss),
        probability().prop_map(|probability| CellSpec::Corrupt(CorruptSpec { probability })),
        (68..1600u32).prop_map(|mtu_bytes| CellSpec::Mtu(MtuSpec { mtu_bytes })),
        policer().prop_map(CellSpec::Policer),
    ]
}

pub fn any_cell() -> impl Strategy<Value = CellSpec> {
    prop_oneof![
        5 => orderly_cell(),
        1 => delay(Some(true)).prop_map(CellSpec::Delay),
        1 => reorder().prop_map(CellSpec::Reorder),
        1 => probability().prop_map(|probability| CellSpec::Duplicate(DuplicateSpec { probability })),
    ]
}

fn spec_of(cell: impl Strategy<Value = CellSpec>) -> impl Strategy<Value = ChainSpec> {
    (vec(cell, 0..6), any::<u64>()).prop_map(|(cells, seed)| ChainSpec { cells, seed })
}

/// Any cells in any order.
pub fn any_spec() -> impl Strategy<Value = ChainSpec> {
    spec_of(any_cell())
}

pub fn orderly_spec() -> impl Strategy<Value = ChainSpec> {
    spec_of(orderly_cell())
}
