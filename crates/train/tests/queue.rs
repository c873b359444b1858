// SPDX-License-Identifier: MIT OR Apache-2.0
//! The estimate against the truth of an emulated bottleneck: the cells of `fatpath-link`, packet by packet.

use fatpath_link::{Cell, CellSpec, Chain, ChainSpec, Ecn, Flow, Packet, Wire};
use fatpath_train::{Arrival, Departure, Estimate, Limits, Response, Search, Train};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PACKET_BYTES: u32 = 1500;

/// A packet of the train, by its number, or of cross traffic.
struct Probe(Option<u32>);

impl Packet for Probe {
    fn wire(&self) -> Wire {
        Wire::single(PACKET_BYTES)
    }
    fn split_front(&mut self, _: u32) -> Self {
        unreachable!("a packet of one segment")
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    fn mark(&mut self) {}
    fn set_dscp(&mut self, _: u8) {}
    fn flow(&self) -> Option<Flow> {
        None
    }
    fn has_data(&self) -> bool {
        true
    }
    fn duplicate(&self) -> Self {
        Probe(self.0)
    }
    fn corrupt(&mut self, _: u64) {}
    fn too_big(&self, _: u32) -> Option<Self> {
        None
    }
}

/// A path, and the hosts at its ends.
#[derive(Clone, Copy, Debug)]
struct Path {
    rate_bps: u64,
    rtt_ms: u64,
    /// Of rate times round-trip time.
    queue_bdp: f64,
    loss: f64,
    /// Share of the rate that Poisson traffic takes.
    cross: f64,
    /// The receiver's interrupts come at most so often.
    coalescing_ns: u64,
    seed: u64,
}

impl Path {
    fn chain(&self) -> Chain<Probe> {
        let bdp_bytes = self.rate_bps as f64 / 8.0 * self.rtt_ms as f64 / 1e3;
        // What holds no five packets is no queue of a router.
        let limit_bytes = (bdp_bytes * self.queue_bdp).max(7500.0) as u64;
        let cells = [
            CellSpec::rate(self.rate_bps, Some(limit_bytes)),
            CellSpec::loss(self.loss),
            CellSpec::delay(self.rtt_ms * 500_000),
        ];
        let spec = ChainSpec {
            cells: cells.into(),
            seed: self.seed,
        };
        spec.build().expect("it is in range")
    }

    /// Whether the queue holds less than a batch of a fast train.
    fn is_tiny_queue(&self) -> bool {
        self.rate_bps >= 1_000_000_000 && self.rtt_ms as f64 * self.queue_bdp < 0.2
    }

    fn measured(&self) -> Estimate {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut search = Search::new(Limits::default());
        while let Some(train) = search.next() {
            let (sent, arrived) = self.sent_through(&train, &mut random);
            search.answer(&train, Response::of(&train, &sent, &arrived).ok());
        }
        search.estimate().expect("trains were sent")
    }

    /// The train among cross traffic that began a while before.
    fn sent_through(
        &self,
        train: &Train,
        random: &mut Xoshiro256PlusPlus,
    ) -> (Vec<Departure>, Vec<Arrival>) {
        const BEFORE_NS: u64 = 20_000_000;
        let end_ns = BEFORE_NS + train.duration_ns() + 20_000_000;
        let mut sent = vec![];
        let mut offered: Vec<(u64, Option<u32>)> = self.cross(end_ns, random);
        let mut first = 0;
        while first < train.packets {
            let packets = train.batch_packets().min(train.packets - first);
            // A host is late by some microseconds, and sometimes by a hundred.
            let is_held_up = random.next_u64().is_multiple_of(50);
            let late_ns = random.next_u64() % if is_held_up { 100_000 } else { 10_000 };
            let at_ns = BEFORE_NS + train.offset_ns(first) + late_ns;
            let at_ns = at_ns.max(sent.last().map_or(0, |last: &Departure| last.at_ns));
            sent.push(Departure {
                at_ns,
                first,
                packets,
            });
            offered.extend((first..first + packets).map(|sequence| (at_ns, Some(sequence))));
            first += packets;
        }
        offered.sort_by_key(|packet| packet.0);
        let mut chain = self.chain();
        for (at_ns, packet) in offered {
            chain.push(at_ns, Probe(packet));
        }
        let mut arrived: Vec<Arrival> = vec![];
        while let Some(departure) = chain.pop(u64::MAX / 2) {
            let Some(first) = departure.packet.0 else {
                continue;
            };
            let at_ns = departure.at_ns.div_ceil(self.coalescing_ns) * self.coalescing_ns;
            match arrived.last_mut() {
                Some(run) if run.at_ns == at_ns && run.first + run.packets == first => {
                    run.packets += 1
                }
                _ => arrived.push(Arrival {
                    at_ns,
                    first,
                    packets: 1,
                }),
            }
        }
        (sent, arrived)
    }

    fn cross(&self, end_ns: u64, random: &mut Xoshiro256PlusPlus) -> Vec<(u64, Option<u32>)> {
        let mut packets = vec![];
        if self.cross == 0.0 {
            return packets;
        }
        let mean_ns = f64::from(PACKET_BYTES) * 8e9 / (self.rate_bps as f64 * self.cross);
        let mut at_ns = 0.0;
        while at_ns < end_ns as f64 {
            packets.push((at_ns as u64, None));
            let uniform = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            at_ns -= mean_ns * (1.0 - uniform).ln();
        }
        packets
    }

    /// Relative error of the bottleneck's rate.
    fn error(&self) -> (f64, Estimate) {
        let estimate = self.measured();
        (
            estimate.bottleneck.bps / self.rate_bps as f64 - 1.0,
            estimate,
        )
    }
}

fn grid() -> impl Iterator<Item = Path> {
    let rates = [10_000_000, 100_000_000, 1_000_000_000, 5_000_000_000];
    let shapes = [
        (1, 0.1),
        (1, 2.0),
        (20, 0.1),
        (20, 1.0),
        (200, 0.1),
        (200, 2.0),
    ];
    let loads = [(0.0, 0.0), (0.001, 0.0), (0.0, 0.5), (0.001, 0.5)];
    rates.into_iter().flat_map(move |rate_bps| {
        shapes.into_iter().flat_map(move |(rtt_ms, queue_bdp)| {
            loads.into_iter().map(move |(loss, cross)| Path {
                rate_bps,
                rtt_ms,
                queue_bdp,
                loss,
                cross,
                coalescing_ns: 50_000,
                seed: rate_bps + rtt_ms,
            })
        })
    })
}

/// The bars of the measured figure `measure.rate_error`, without a real machine's noise. Where bursts fill a queue of
/// 0.1 ms, the estimate must say that it may be wrong.
#[test]
fn the_estimate_is_near_the_truth_over_the_whole_grid() {
    let mut errors = vec![];
    for path in grid() {
        let (of_rate, estimate) = path.error();
        let seconds = estimate.sent_bytes as f64 * 8.0 / path.rate_bps as f64;
        let doubt = estimate.bottleneck.doubt;
        assert!(seconds < 1.0, "{path:?} sent {seconds} s of its rate");
        let bound = if path.is_tiny_queue() { doubt } else { 0.2 };
        assert!(
            of_rate.abs() <= bound,
            "{path:?}: {of_rate:+.3} {estimate:?}"
        );
        errors.push(of_rate.abs());
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    assert!(median <= 0.05, "the median of the errors is {median}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_path_of_the_range_is_within_a_fifth(
        rate_log in 7.0f64..9.0, rtt_ms in 1u64..200, queue_bdp in 0.1f64..2.0,
        loss in 0.0f64..0.001, cross in prop_oneof![Just(0.0), Just(0.5)], coalescing_us in 1u64..300, seed: u64,
    ) {
        let rate_bps = 10f64.powf(rate_log) as u64;
        let path = Path { rate_bps, rtt_ms, queue_bdp, loss, cross, coalescing_ns: coalescing_us * 1000, seed };
        let (of_rate, estimate) = path.error();
        prop_assert!(of_rate.abs() <= 0.2, "{path:?}: {of_rate:+.3} {estimate:?}");
    }

    #[test]
    fn no_records_make_it_panic_or_infinite(
        packets in 0u32..40, rate_bps in 0u64..u64::MAX, packet_bytes in 0u32..u32::MAX,
        sent in prop::collection::vec((any::<u64>(), 0u32..40, 0u32..40), 0..10),
        arrived in prop::collection::vec((any::<u64>(), 0u32..40, 0u32..40), 0..10),
    ) {
        let train = Train { rate_bps, packets, packet_bytes };
        let sent: Vec<_> = sent.into_iter().map(|(at_ns, first, packets)| Departure { at_ns, first, packets }).collect();
        let arrived: Vec<_> = arrived.into_iter().map(|(at_ns, first, packets)| Arrival { at_ns, first, packets }).collect();
        if let Ok(response) = Response::of(&train, &sent, &arrived) {
            prop_assert!(response.input_bps.is_finite() && response.output_bps.is_finite());
        }
    }
}
