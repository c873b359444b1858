// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR over paths: what it reaches, what it leaves to others, what it keeps in queues (docs/bbr.md).

use fatpath_cc::{KnownPath, Law};
use fatpath_link::{CellSpec, Distribution, Exceed, JitterSpec, PolicerSpec, RateStep, Service};
use fatpath_sim::{Buffer, FlowOutcome, FlowSpec, Outcome, Source, Spec};

use crate::support::*;

/// Data of 1448 bytes in packets of 1500.
const DATA_OF_RATE: f64 = 1448.0 / 1500.0;

fn under(law: &str) -> FlowSpec {
    let mut flow = bulk(None);
    flow.tcp.law = Law::named(law).expect("it is a law");
    flow.tcp.start.hystart = flow.tcp.law.spec().hystart;
    flow.tcp.send_buffer = Buffer::Fixed(1 << 28);
    flow.tcp.receive_buffer = Buffer::Fixed(1 << 28);
    flow
}

/// The same on a path that was learned.
fn on_learned_path(rate_bps: u64, rtt_ns: u64) -> FlowSpec {
    let mut flow = under("bbr");
    flow.tcp.start.known = KnownPath {
        bdp_pkts: (rate_bytes(rate_bps, rtt_ns) / 1500) as u32,
        base_rtt_us: (rtt_ns / 1000) as u32,
    };
    flow
}

fn rate_bytes(rate_bps: u64, rtt_ns: u64) -> u64 {
    rate_bps / 8 * rtt_ns / S_NS
}

/// A drop-tail queue of so many bandwidth-delay products.
fn queue(rate_bps: u64, rtt_ns: u64, bdp: f64) -> CellSpec {
    let bytes = bdp * rate_bytes(rate_bps, rtt_ns) as f64;
    CellSpec::rate(rate_bps, Some(bytes as u64))
}

/// Flows that start 300 ms apart.
fn beside(flows: Vec<FlowSpec>, cells: impl Into<Vec<CellSpec>>, rtt_ns: u64, end_ns: u64) -> Spec {
    let mut spec = path(rtt_ns, cells, end_ns);
    spec.flows = flows;
    for (index, flow) in spec.flows.iter_mut().enumerate() {
        flow.start_ns = index as u64 * 300 * MS_NS;
    }
    spec.sample_every_ns = Some(100 * MS_NS);
    spec
}

/// Bytes that a flow delivered from then on.
fn delivered_after(flow: &FlowOutcome, at_ns: u64) -> f64 {
    let before = flow.samples.iter().rfind(|sample| sample.at_ns <= at_ns);
    (flow.delivered_bytes - before.map_or(0, |sample| sample.delivered_bytes)) as f64
}

/// Of the whole time, handshake and Startup too.
fn share_of_gigabit(loss: f64) -> f64 {
    let (rate_bps, rtt_ns) = (1_000_000_000, 100 * MS_NS);
    let mut spec = path(
        rtt_ns,
        [queue(rate_bps, rtt_ns, 1.0), CellSpec::loss(loss)],
        15 * S_NS,
    );
    spec.flows = vec![under("bbr")];
    outcome(&spec).flows[0].goodput_bps() / (rate_bps as f64 * DATA_OF_RATE)
}

#[test]
fn random_loss_costs_little() {
    for (loss, least) in [(0.0, 0.85), (0.0001, 0.85), (0.001, 0.85), (0.01, 0.75)] {
        let share = share_of_gigabit(loss);
        assert!(share >= least, "{loss}: {share}");
    }
}

/// CUBIC's share of the half that is fair, beside a flow that starts so much later.
fn share_of_cubic(bdp: f64, later_ns: u64) -> f64 {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let flows = vec![under("cubic"), under("bbr")];
    let mut spec = beside(flows, [queue(rate_bps, rtt_ns, bdp)], rtt_ns, 60 * S_NS);
    spec.flows[1].start_ns = later_ns;
    let outcome = outcome(&spec);
    let fair_bytes = rate_bps as f64 * DATA_OF_RATE / 8.0 * 60.0 / 2.0;
    outcome.flows[0].delivered_bytes as f64 / fair_bytes
}

/// The mean over nine starts, of which one may be half of another. A probe that does not end at its own queue goes on until
/// 2 % of a round trip are lost, and CUBIC gives up 30 % at each of these losses.
#[test]
fn cubic_keeps_its_share() {
    for (bdp, least) in [(0.25, 0.5), (1.0, 0.7), (4.0, 0.7)] {
        let shares = (0..9).map(|start| share_of_cubic(bdp, start * 137 * MS_NS));
        let share = shares.sum::<f64>() / 9.0;
        assert!(share >= least, "{bdp} bdp: {share}");
    }
}

/// BBR of a sender that tells it of losses that come without a queue only where they are many, as the transport does.
fn apart(is_apart: bool) -> FlowSpec {
    let mut flow = under("bbr");
    (flow.tcp.knows_sending, flow.tcp.tells_losses_apart) = (true, is_apart);
    flow
}

/// A line that loses at random behind a queue of one bdp, for 8 s.
fn bad_line(loss: f64) -> Spec {
    let (rate_bps, rtt_ns) = (1_000_000_000, 20 * MS_NS);
    let cells = [queue(rate_bps, rtt_ns, 1.0), CellSpec::loss(loss)];
    path(rtt_ns, cells, 8 * S_NS)
}

/// It has more of a line that loses at random, where losses are below what BBR takes for congestion.
#[test]
fn losses_told_apart_help_on_a_bad_line() {
    let of_line = |is_apart: bool, loss: f64| {
        let mut spec = bad_line(loss);
        spec.flows = vec![apart(is_apart)];
        outcome(&spec).flows[0].goodput_bps() / (1e9 * DATA_OF_RATE * (1.0 - loss))
    };
    let shares = [false, true].map(|is_apart| of_line(is_apart, 0.01));
    assert!(shares[1] > shares[0] + 0.05, "{shares:?}");
    let too_lossy = of_line(true, 0.03);
    assert!(too_lossy < 0.5, "{too_lossy}");
}

/// What CUBIC delivers beside such a flow, over nine starts of that.
fn of_cubic_beside(is_apart: bool, bdp: f64) -> u64 {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let delivered = (0..9).map(|start| {
        let flows = vec![under("cubic"), apart(is_apart)];
        let mut spec = beside(flows, [queue(rate_bps, rtt_ns, bdp)], rtt_ns, 30 * S_NS);
        spec.flows[1].start_ns += start * 137 * MS_NS;
        outcome(&spec).flows[0].delivered_bytes
    });
    delivered.sum()
}

/// The shortest queue, of 2 ms, is as long as what is taken for none.
#[test]
fn losses_told_apart_take_nothing_from_cubic() {
    for bdp in [0.05, 0.1, 0.25, 1.0] {
        let of_cubic = [false, true].map(|is_apart| of_cubic_beside(is_apart, bdp));
        let ratio = of_cubic[1] as f64 / of_cubic[0] as f64;
        assert!(ratio >= 0.95, "{bdp} bdp: {of_cubic:?}");
    }
}

/// One flow's share of a gigabit, from 10 s on.
fn steady_share(rtt_ns: u64, loss: f64) -> f64 {
    let rate_bps = 1_000_000_000;
    let cells = [queue(rate_bps, rtt_ns, 1.0), CellSpec::loss(loss)];
    let spec = beside(vec![under("bbr")], cells, rtt_ns, 40 * S_NS);
    let bytes = delivered_after(&outcome(&spec).flows[0], 10 * S_NS);
    bytes * 8.0 / 30.0 / (rate_bps as f64 * DATA_OF_RATE * (1.0 - loss))
}

/// A round trip with a loss lowers the rate to what arrived in it, but not to what left on purpose more slowly than the
/// path carries: after a probe, and while the least round trip is measured.
#[test]
fn what_leaves_slowly_is_no_measure_of_the_path() {
    for (loss, least) in [(0.0001, 0.945), (0.001, 0.93), (0.01, 0.89)] {
        let share = steady_share(100 * MS_NS, loss);
        assert!(share >= least, "{loss}: {share}");
    }
}

/// It lasts round trips, and comes as rarely as that takes where these are long.
#[test]
fn measuring_a_long_round_trip_costs_no_more() {
    let shares = [100, 268, 500].map(|rtt_ms| steady_share(rtt_ms * MS_NS, 0.0));
    assert!(
        shares[1..].iter().all(|share| *share >= 0.955),
        "{shares:?}"
    );
}

/// What the flows of `spec` deliver, told of all losses and not of those that are told apart.
fn delivered_apart(spec: &Spec) -> [Vec<u64>; 2] {
    [false, true].map(|is_apart| {
        let mut spec = spec.clone();
        for flow in &mut spec.flows {
            flow.tcp.tells_losses_apart = is_apart;
        }
        let flows = outcome(&spec).flows;
        flows.iter().map(|flow| flow.delivered_bytes).collect()
    })
}

/// Every loss is told where no round trip was longer than the least one, so that this may be that of a full queue, and where
/// the law takes fewer losses for congestion.
#[test]
fn losses_that_may_be_those_of_a_queue_are_told() {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let short = queue(rate_bps, rtt_ns, 0.02);
    let of_queue = beside(vec![apart(true); 4], [short], rtt_ns, 10 * S_NS);
    let mut usual = bad_line(0.01);
    usual.flows = vec![apart(true)];
    let mut strict = usual.clone();
    let law = Law::named("bbr").unwrap().with("loss_thresh", 0.001);
    strict.flows[0].tcp.law = law.unwrap();
    for spec in [of_queue, strict] {
        let [all, apart] = delivered_apart(&spec);
        assert_eq!(all, apart);
    }
    let [all, apart] = delivered_apart(&usual);
    assert_ne!(all, apart);
}

/// The mean over seven starts: which flow finds the queue full at its start decides on much.
fn jain_of_four(mut flow: FlowSpec, knows_sending: bool) -> f64 {
    flow.tcp.knows_sending = knows_sending;
    let indices = (0..7).map(|start| jain_of(&flow, (300 + start * 37) * MS_NS));
    indices.sum::<f64>() / 7.0
}

/// Jain's index of four such flows on 1 bdp that start one after the other, from 20 s to 60 s.
fn jain_of(flow: &FlowSpec, apart_ns: u64) -> f64 {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let flows = vec![flow.clone(); 4];
    let mut spec = beside(flows, [queue(rate_bps, rtt_ns, 1.0)], rtt_ns, 60 * S_NS);
    for (index, flow) in spec.flows.iter_mut().enumerate() {
        flow.start_ns = index as u64 * apart_ns;
    }
    let outcome = outcome(&spec);
    let rates: Vec<f64> = outcome
        .flows
        .iter()
        .map(|flow| delivered_after(flow, 20 * S_NS))
        .collect();
    let (sum, squares) = rates
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (4.0 * squares)
}

/// What was in flight and lost when a segment left is remembered for some points of a round trip alone, in place of
/// what the draft keeps with each segment: flows come together more slowly.
#[test]
fn four_flows_share_alike() {
    let [remembered, known] = [false, true].map(|knows| jain_of_four(under("bbr"), knows));
    assert!(remembered >= 0.82, "{remembered}");
    assert!(known >= 0.86, "{known}");
    let learned = on_learned_path(100_000_000, 40 * MS_NS);
    let [remembered, known] = [false, true].map(|knows| jain_of_four(learned.clone(), knows));
    assert!(remembered >= 0.82, "learned: {remembered}");
    assert!(known >= 0.86, "learned: {known}");
}

/// The queue that 95 % of the 100 ms do not exceed, in bandwidth-delay products.
fn queue_p95_bdp(outcome: &Outcome, bdp_bytes: u64) -> f64 {
    let samples = outcome.links[0][0].samples.iter();
    let mut peaks: Vec<u64> = samples.map(|sample| sample.peak_queue_bytes).collect();
    peaks.sort_unstable();
    peaks[peaks.len() * 95 / 100] as f64 / bdp_bytes as f64
}

/// One flow on a queue of 4 bdp, its acknowledgements late by up to twice so much: the queue, and its share.
fn alone_on_a_deep_queue(flow: FlowSpec, half_width_ns: u64) -> (f64, f64) {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let deep = queue(rate_bps, rtt_ns, 4.0);
    let spec = beside(vec![flow], [deep], rtt_ns, 60 * S_NS);
    let mut spec = varied(spec, half_width_ns);
    spec.sample_every_ns = Some(10 * MS_NS);
    let outcome = outcome(&spec);
    let p95_bdp = queue_p95_bdp(&outcome, rate_bytes(rate_bps, rtt_ns));
    let share = outcome.flows[0].goodput_bps() / (rate_bps as f64 * DATA_OF_RATE);
    (p95_bdp, share)
}

/// ProbeBW_UP ends at the queue that it makes: for the three round trips of the draft (5.3.1.2, 5.3.3.9), at 1.25 of the
/// bandwidth, this would be 0.9 bdp, which ProbeBW_DOWN takes eight to empty, of some 60 between two probes.
#[test]
fn alone_it_keeps_a_deep_queue_short() {
    let (p95_bdp, share) = alone_on_a_deep_queue(under("bbr"), 0);
    assert!(p95_bdp <= 0.3, "{p95_bdp} bdp");
    assert!(share >= 0.9, "{share}");
}

/// Of acknowledgements that come together some show more than the path carries.
#[test]
fn late_acknowledgements_make_no_queue() {
    for half_width_ns in [MS_NS / 2, MS_NS, 2 * MS_NS] {
        for flow in [under("bbr"), on_learned_path(100_000_000, 40 * MS_NS)] {
            let (p95_bdp, share) = alone_on_a_deep_queue(flow, half_width_ns);
            assert!(p95_bdp <= 0.3, "{half_width_ns} ns: {p95_bdp} bdp");
            assert!(share >= 0.9, "{share}");
        }
    }
}

/// Acknowledgements leave together, at the end of each `every_ns`, as over radio and cable.
fn released_together(mut spec: Spec, every_ns: u64) -> Spec {
    let step = |at_ns, rate_bps| RateStep { at_ns, rate_bps };
    let mut gate = CellSpec::rate(10_000_000_000, None);
    if let CellSpec::Rate(rate) = &mut gate {
        rate.service = Service::Steps {
            steps: vec![step(0, 0), step(every_ns - MS_NS / 10, 10_000_000_000)],
            repeat_after_ns: Some(every_ns),
        };
    }
    spec.links[0].directions[1].cells.push(gate);
    spec
}

/// Over such paths the sample at the end of a round is often too small, and most others do not count.
#[test]
fn acknowledgements_that_come_together_hide_no_bandwidth() {
    let rate_bps = 100_000_000;
    let mut shares = Vec::new();
    for rtt_ms in [20, 25, 40, 100] {
        for every_ms in [2, 5, 10, 20] {
            let rtt_ns = rtt_ms * MS_NS;
            let deep = queue(rate_bps, rtt_ns, 4.0);
            let spec = beside(vec![under("bbr")], [deep], rtt_ns, 30 * S_NS);
            let outcome = outcome(&released_together(spec, every_ms * MS_NS));
            let share = outcome.flows[0].goodput_bps() / (rate_bps as f64 * DATA_OF_RATE);
            shares.push((rtt_ms, every_ms, share));
        }
    }
    assert!(
        shares.iter().all(|(_, _, share)| *share >= 0.9),
        "{shares:?}"
    );
}

/// Delays that vary by more than the eighth of a round trip that ends a probe, so that one sample says little of the queue.
fn varied(mut spec: Spec, half_width_ns: u64) -> Spec {
    let varies = JitterSpec {
        distribution: Distribution::Uniform { half_width_ns },
        reorders: false,
    };
    let cells = &mut spec.links[0].directions[1].cells;
    let delay = cells.iter_mut().find_map(|cell| match cell {
        CellSpec::Delay(delay) => Some(delay),
        _ => None,
    });
    delay.expect("there is one").jitter = Some(varies);
    spec
}

/// What a flow has of the line in the 10 s after another has left it.
fn share_after_another_left(half_width_ns: u64) -> f64 {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let line = queue(rate_bps, rtt_ns, 1.0);
    let mut spec = beside(vec![under("bbr"), under("bbr")], [line], rtt_ns, 30 * S_NS);
    spec.flows[1].stop_ns = Some(20 * S_NS);
    let outcome = outcome(&varied(spec, half_width_ns));
    delivered_after(&outcome.flows[0], 20 * S_NS) / (10.0 * rate_bps as f64 * DATA_OF_RATE / 8.0)
}

#[test]
fn jitter_ends_no_probe() {
    for half_width_ns in [0, 3, 6].map(|ms| ms * MS_NS) {
        let share = share_after_another_left(half_width_ns);
        assert!(share >= 0.8, "{half_width_ns}: {share}");
    }
}

#[test]
fn behind_a_policer_it_finds_the_rate() {
    let (rate_bps, rtt_ns) = (1_000_000_000, 40 * MS_NS);
    let policer = CellSpec::Policer(PolicerSpec {
        rate_bps: 300_000_000,
        burst_bytes: Some(30 * 1500),
        exceed: Exceed::Drop,
    });
    let mut spec = path(rtt_ns, [policer, queue(rate_bps, rtt_ns, 1.0)], 30 * S_NS);
    spec.flows = vec![under("bbr")];
    let flow = &outcome(&spec).flows[0];
    let share = flow.goodput_bps() / (300e6 * DATA_OF_RATE);
    let sent_pkts = flow.delivered_bytes as f64 / 1448.0 + flow.retransmits as f64;
    let resent = flow.retransmits as f64 / sent_pkts;
    assert!(share >= 0.8, "{share}");
    assert!(resent <= 0.03, "{resent}");
}

/// A queue that marks above 0.1 bdp: nothing is dropped, and the queue stays near that.
#[test]
fn where_a_queue_marks_nothing_is_lost() {
    let (rate_bps, rtt_ns) = (100_000_000, 40 * MS_NS);
    let mut marking = queue(rate_bps, rtt_ns, 2.0);
    if let CellSpec::Rate(rate) = &mut marking {
        rate.queue.mark_above_bytes = Some(rate_bytes(rate_bps, rtt_ns) / 10);
    }
    let mut spec = beside(vec![under("bbr")], [marking], rtt_ns, 30 * S_NS);
    spec.sample_every_ns = Some(10 * MS_NS);
    spec.flows[0].tcp.ecn = true;
    let outcome = outcome(&spec);
    let flow = &outcome.flows[0];
    let share = flow.goodput_bps() / (rate_bps as f64 * DATA_OF_RATE);
    let p95 = queue_p95_bdp(&outcome, rate_bytes(rate_bps, rtt_ns));
    assert_eq!(flow.retransmits, 0);
    assert!(share > 0.75, "{share}");
    assert!(p95 < 0.4, "{p95}");
}

/// An object of 2 MB over 1 Gb/s and 100 ms, from a peer whose window opens as Linux's does: a start at half of the rate saves
/// the round trips in which BBR would double, with little more in flight than the path holds.
#[test]
fn a_start_at_half_of_the_known_rate_takes_half_of_the_time() {
    let seconds = |initial_rate_bps| {
        let mut flow = under("bbr");
        flow.source = Source::Bulk {
            bytes: Some(2_000_000),
            again: false,
        };
        flow.tcp.receive_buffer = Buffer::Auto(65_536, 1 << 26);
        flow.tcp.start.initial_rate_bps = initial_rate_bps;
        let cells = [queue(1_000_000_000, 100 * MS_NS, 1.0), CellSpec::loss(1e-4)];
        let mut spec = path(100 * MS_NS, cells, 5 * S_NS);
        spec.flows = vec![flow];
        let outcome = outcome(&spec);
        assert!(outcome.links[0][0].peak_queue_bytes < 300_000);
        outcome.flows[0].duration_ns as f64 / 1e9
    };
    let (by_the_law, at_the_rate) = (seconds(0), seconds(500_000_000));
    assert!(
        at_the_rate < 0.7 * by_the_law,
        "{at_the_rate} of {by_the_law}"
    );
}
