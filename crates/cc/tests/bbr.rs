// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR: what holds under any acknowledgements, losses, round trips and clocks; and over a path that is one queue.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_cc::{BbrPhase, KnownPath, Law, LawSpec, RateControl, RateSample, laws};
use proptest::prelude::*;
use std::collections::VecDeque;

const MSS_BYTES: u32 = 1448;

fn bbr() -> Law {
    Law::named("bbr").unwrap()
}

fn spec() -> &'static LawSpec {
    laws().iter().find(|law| law.name == "bbr").unwrap()
}

fn any_parameters() -> impl Strategy<Value = Law> {
    let values: Vec<_> = spec().parameters.iter().map(|p| p.min..=p.max).collect();
    values.prop_map(|values| Law::from_values("bbr", &values).unwrap())
}

/// Numbers of every size, the ends of their range too.
fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1u32..100, 1u32..10_000_000, any::<u32>()]
}

#[derive(Clone, Debug)]
enum Event {
    Acked(RateSample),
    RecoveryBegins,
    Timeout,
    Undone,
    Starts(RateSample),
}

fn any_sample() -> impl Strategy<Value = RateSample> {
    let counts = prop::collection::vec(any_count(), 14);
    let clock = prop_oneof![Just(0), 1u64..1_000_000, 1u64..1_000_000_000_000];
    let mss = prop_oneof![Just(1u32), 88u32..9000, 1u32..65_536];
    (counts, clock, mss, 0u32..32).prop_map(|(n, now_us, mss_bytes, flags)| RateSample {
        now_us,
        delivered_pkts: n[0],
        lost_pkts: n[1],
        ce_pkts: n[2],
        prior_delivered_pkts: n[3],
        interval_us: n[4],
        sampled_pkts: n[5],
        acked_pkts: n[6],
        newly_lost_pkts: n[7],
        rtt_us: n[8],
        srtt_us: n[9],
        mss_bytes,
        in_flight_pkts: n[10],
        prior_in_flight_pkts: n[11],
        tx_in_flight_pkts: n[12],
        lost_since_sent_pkts: n[13],
        flags,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => any_sample().prop_map(Event::Acked),
        1 => Just(Event::RecoveryBegins),
        1 => Just(Event::Timeout),
        1 => Just(Event::Undone),
        1 => any_sample().prop_map(Event::Starts),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Clocks stand still and leap, counters wrap, the segment size changes.
    #[test]
    fn the_window_and_the_rate_stay_within_bounds(
        law in any_parameters(),
        events in prop::collection::vec(any_event(), 1..60),
        first in any_sample(),
        cwnd_pkts in 1u32..1000,
        clamp_pkts in prop_oneof![4u32..100, 4u32..2_000_000, Just(u32::MAX)],
        start_bps in prop_oneof![Just(0), 8000u64..1_000_000_000_000, any::<u64>()],
    ) {
        let mut flow = RateControl::new(law, cwnd_pkts.min(clamp_pkts), clamp_pkts, &first);
        flow.start_at(start_bps, &first);
        prop_assert!(flow.cwnd_pkts() <= clamp_pkts);
        let mut now_us = first.now_us;
        for event in events {
            let was_acked = matches!(event, Event::Acked(_));
            match event {
                Event::Acked(sample) => {
                    now_us = now_us.saturating_add(sample.now_us);
                    flow.acked(&RateSample { now_us, ..sample });
                }
                Event::RecoveryBegins => flow.recovery_begins(),
                Event::Timeout => {
                    flow.recovery_begins();
                    flow.set_cwnd_pkts(1);
                }
                Event::Undone => flow.undone(),
                Event::Starts(sample) => flow.transmission_starts(&RateSample { now_us, ..sample }),
            }
            prop_assert!(flow.pacing_bytes_per_s() > 0);
            if was_acked {
                prop_assert!((4..=clamp_pkts).contains(&flow.cwnd_pkts()), "{}", flow.cwnd_pkts());
            }
        }
    }

    /// The rate is what was delivered, times a gain of at most 2.773, at 400 Gb/s and a second too.
    #[test]
    fn nothing_overflows_on_the_fattest_path(rtt_us in 1u32..1_000_000, mss_bytes in 536u32..9000) {
        let pkts_per_us = 50_000.0 / f64::from(mss_bytes);
        let mut path = Path::new(pkts_per_us, rtt_us, mss_bytes);
        path.run(40);
        let rate = path.flow.pacing_bytes_per_s() as f64;
        prop_assert!(rate > 0.3 * 50e9 && rate < 3.0 * 50e9, "{rate:e} bytes a second");
    }
}

/// A path, an eighth of a round trip at a time: it delivers what it can, and the rest is not sent, or waits.
struct Path {
    flow: RateControl,
    pkts_per_us: f64,
    rtt_us: u32,
    /// What is more than the path delivers waits in a queue.
    queues: bool,
    queued_pkts: f64,
    /// What a sample says, of what was delivered: acknowledgements that come together say more.
    measured: f64,
    mss_bytes: u32,
    now_us: u64,
    delivered_pkts: u32,
    lost_pkts: u32,
    /// Of every step of the last round trip: what had been delivered when it began.
    sent: VecDeque<u32>,
    phases: Vec<BbrPhase>,
}

const STEPS: u32 = 8;

impl Path {
    fn new(pkts_per_us: f64, rtt_us: u32, mss_bytes: u32) -> Path {
        let first = RateSample {
            now_us: 1,
            srtt_us: rtt_us,
            mss_bytes,
            ..RateSample::default()
        };
        Path {
            flow: RateControl::new(bbr(), 10, u32::MAX, &first),
            pkts_per_us,
            rtt_us,
            queues: false,
            queued_pkts: 0.0,
            measured: 1.0,
            mss_bytes,
            now_us: 1,
            delivered_pkts: 0,
            lost_pkts: 0,
            sent: VecDeque::from(vec![0; STEPS as usize]),
            phases: vec![BbrPhase::Startup],
        }
    }

    fn run(&mut self, rounds: u32) {
        for _ in 0..rounds * STEPS {
            self.step(0.0);
        }
    }

    /// An eighth of a round trip; of what arrives, a part is lost.
    fn step(&mut self, loss: f64) {
        let step_us = (self.rtt_us / STEPS).max(1);
        let fits = self.pkts_per_us * f64::from(step_us);
        let paced = self.flow.pacing_bytes_per_s() as f64 / f64::from(self.mss_bytes) / 1e6;
        let by_window = f64::from(self.flow.cwnd_pkts()) / f64::from(STEPS);
        let sent = by_window.min(paced * f64::from(step_us));
        if self.queues {
            self.queued_pkts = (self.queued_pkts + sent - fits).max(0.0);
        }
        let arrived = fits.min(sent + self.queued_pkts).max(1.0);
        let rtt_us = self.rtt_us + (self.queued_pkts / self.pkts_per_us) as u32;
        let lost = (arrived * loss) as u32;
        let acked_pkts = arrived as u32 - lost;
        self.now_us += u64::from(step_us);
        self.delivered_pkts += acked_pkts;
        self.lost_pkts += lost;
        let prior_delivered_pkts = self.sent.pop_front().unwrap();
        self.sent.push_back(self.delivered_pkts);
        let in_flight_pkts =
            (by_window * f64::from(STEPS)).min(paced * f64::from(self.rtt_us)) as u32;
        self.flow.acked(&RateSample {
            now_us: self.now_us,
            delivered_pkts: self.delivered_pkts,
            lost_pkts: self.lost_pkts,
            prior_delivered_pkts,
            interval_us: self.rtt_us,
            sampled_pkts: ((self.delivered_pkts - prior_delivered_pkts) as f64 * self.measured)
                as u32,
            acked_pkts,
            newly_lost_pkts: lost,
            rtt_us,
            srtt_us: rtt_us,
            mss_bytes: self.mss_bytes,
            in_flight_pkts,
            prior_in_flight_pkts: in_flight_pkts,
            flags: RateSample::CWND_LIMITED | if lost > 0 { RateSample::RECOVERS } else { 0 },
            ..RateSample::default()
        });
        let phase = self.flow.bbr().unwrap().phase;
        if self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
    }

    fn phase(&self) -> BbrPhase {
        *self.phases.last().unwrap()
    }

    fn max_bw(&self) -> f64 {
        self.flow.bbr().unwrap().max_bw_pkts_per_s
    }
}

/// 1 Gb/s × 100 ms: 8,600 segments in flight.
fn gigabit() -> Path {
    Path::new(125.0 / f64::from(MSS_BYTES), 100_000, MSS_BYTES)
}

/// A.1: three rounds without growth end Startup, and the bandwidth is known.
#[test]
fn startup_ends_on_a_plateau_with_the_bandwidth_known() {
    let mut path = gigabit();
    path.run(20);
    assert_eq!(path.phases[..2], [BbrPhase::Startup, BbrPhase::Drain]);
    let bbr = path.flow.bbr().unwrap();
    assert!(bbr.full_bw_reached);
    let share = bbr.max_bw_pkts_per_s / (path.pkts_per_us * 1e6);
    assert!((0.98..1.02).contains(&share), "{share}");
    assert_eq!(bbr.inflight_longterm_pkts, None);
}

/// In which of the eight steps of a round a sample that says `measured` of what was delivered is taken whole.
fn steps_that_count(measured: f64) -> usize {
    let taken_after = |steps: u32| {
        let mut path = gigabit();
        path.run(20);
        (0..steps).for_each(|_| path.step(0.0));
        let before = path.max_bw();
        path.measured = measured;
        path.step(0.0);
        assert_eq!(path.phase(), BbrPhase::ProbeBwCruise);
        // It sends a percent less than the bandwidth.
        path.max_bw() / before > measured - 0.015
    };
    (0..STEPS).filter(|steps| taken_after(*steps)).count()
}

/// Once the pipe was full, a sample that is a little more counts at the end of a round alone.
#[test]
fn a_little_more_counts_once_a_round_and_much_more_at_once() {
    assert_eq!(steps_that_count(1.03), 1);
    assert_eq!(steps_that_count(1.05), 1);
    assert_eq!(steps_that_count(1.08), STEPS as usize);
}

/// 5.3.3: the phases follow each other, and two to three seconds pass between probes.
#[test]
fn bandwidth_is_probed_in_turns() {
    let mut path = gigabit();
    path.run(200);
    let cycle: Vec<_> = path.phases[3..]
        .iter()
        .filter(|phase| **phase != BbrPhase::ProbeRtt)
        .collect();
    let turns = cycle
        .iter()
        .filter(|phase| ***phase == BbrPhase::ProbeBwUp)
        .count();
    assert!((3..=8).contains(&turns), "{turns} probes in 20 s");
    for pair in path.phases.windows(2) {
        let follows = match pair[0] {
            BbrPhase::ProbeBwRefill => matches!(pair[1], BbrPhase::ProbeBwUp | BbrPhase::ProbeRtt),
            BbrPhase::ProbeBwUp => matches!(pair[1], BbrPhase::ProbeBwDown | BbrPhase::ProbeRtt),
            BbrPhase::ProbeRtt => pair[1] == BbrPhase::ProbeBwCruise,
            _ => true,
        };
        assert!(follows, "{pair:?}");
    }
}

/// Round trips that the next probe takes, at a rate of the path that is `growth` of what it was.
fn rounds_of_a_probe(queues: bool, growth: f64) -> u64 {
    let mut path = gigabit();
    path.queues = queues;
    path.run(20);
    while path.phase() != BbrPhase::ProbeBwUp {
        path.step(0.0);
    }
    path.pkts_per_us *= growth;
    let began_us = path.now_us;
    while path.phase() == BbrPhase::ProbeBwUp {
        path.step(0.0);
    }
    (path.now_us - began_us) / u64::from(path.rtt_us)
}

/// A probe ends within two round trips of sending where it adds to a queue alone, and goes on where it finds bandwidth.
#[test]
fn a_probe_ends_at_the_queue_that_it_makes() {
    let [of_queue, unseen, of_bandwidth] = [(true, 1.0), (false, 1.0), (true, 2.0)]
        .map(|(queues, growth)| rounds_of_a_probe(queues, growth));
    assert!(of_queue <= 2, "{of_queue} round trips");
    assert!(unseen >= 3, "{unseen} round trips");
    assert!(of_bandwidth >= 3, "{of_bandwidth} round trips");
}

/// A.10: five seconds without a shorter round trip; half of what the path holds for 200 ms.
#[test]
fn the_round_trip_is_measured_with_little_in_flight() {
    let mut path = gigabit();
    while path.phase() != BbrPhase::ProbeRtt {
        path.step(0.0);
        assert!(path.now_us < 7_000_000, "{:?}", path.phases);
    }
    let (began_us, bdp) = (path.now_us, path.pkts_per_us * 100_000.0);
    assert!(began_us > 5_000_000);
    path.step(0.0);
    assert!(f64::from(path.flow.cwnd_pkts()) < 0.52 * bdp);
    while path.phase() == BbrPhase::ProbeRtt {
        path.step(0.0);
    }
    let lasted_us = path.now_us - began_us;
    assert!((200_000..600_000).contains(&lasted_us), "{lasted_us}");
    assert!(
        f64::from(path.flow.cwnd_pkts()) > bdp,
        "the window of before"
    );
}

/// 5.3.1.3, 5.5.10.2: losses above the threshold end Startup and leave a bound; at 1 % they do not.
#[test]
fn losses_above_the_threshold_bound_what_is_in_flight() {
    let ends = |loss: f64| {
        let mut path = gigabit();
        for _ in 0..30 * STEPS {
            path.step(loss);
        }
        path.flow.bbr().unwrap().inflight_longterm_pkts
    };
    assert_eq!(ends(0.01), None);
    assert!(ends(0.10).is_some());
}

/// 5.3.3.8.3: a round that lost a thousandth lowers the rate by that, not by the pacing margin of 1 % too.
#[test]
fn rounds_with_few_losses_cost_what_they_lost() {
    let mut path = gigabit();
    while path.phase() != BbrPhase::ProbeBwCruise {
        path.step(0.0);
    }
    let full = path.flow.bbr().unwrap().bw_pkts_per_s;
    for _ in 0..15 * STEPS {
        path.step(0.001);
    }
    assert_eq!(path.phase(), BbrPhase::ProbeBwCruise);
    let kept = path.flow.bbr().unwrap().bw_pkts_per_s / full;
    assert!((0.97..1.0).contains(&kept), "{kept}");
}

/// 5.5.11.2: a loss that was none gives back the bounds, and Startup.
#[test]
fn a_spurious_loss_is_undone() {
    let mut path = gigabit();
    path.run(4);
    path.flow.recovery_begins();
    for _ in 0..3 * STEPS {
        path.step(0.2);
    }
    assert!(path.flow.bbr().unwrap().full_bw_reached);
    path.flow.undone();
    let bbr = path.flow.bbr().unwrap();
    assert_eq!((bbr.phase, bbr.full_bw_reached), (BbrPhase::Startup, false));
    assert_eq!(bbr.inflight_shortterm_pkts, None);
}

/// 5.4.1: after a pause it paces at the bandwidth it knows, without ProbeRTT.
#[test]
fn a_pause_leaves_the_model_as_it_is() {
    let mut path = gigabit();
    path.run(30);
    let cwnd_pkts = path.flow.cwnd_pkts();
    path.now_us += 20_000_000;
    path.flow.transmission_starts(&RateSample {
        now_us: path.now_us,
        srtt_us: path.rtt_us,
        mss_bytes: MSS_BYTES,
        flags: RateSample::APP_LIMITED,
        ..RateSample::default()
    });
    assert_eq!(path.flow.cwnd_pkts(), cwnd_pkts);
    let rate = path.flow.pacing_bytes_per_s() as f64;
    assert!((0.97..=0.995).contains(&(rate / 125e6)), "{rate}");
    path.step(0.0);
    assert_ne!(path.phase(), BbrPhase::ProbeRtt);
}

/// What the host does not know of a segment's sending is found within an eighth of a round trip.
#[test]
fn what_was_lost_since_a_segment_left_is_remembered() {
    let told = |is_told: bool| {
        let mut path = gigabit();
        path.run(30);
        path.step(0.03);
        let mut flow = path.flow.clone();
        let sample = RateSample {
            now_us: path.now_us + 1000,
            delivered_pkts: path.delivered_pkts + 100,
            lost_pkts: path.lost_pkts,
            prior_delivered_pkts: path.delivered_pkts - 8000,
            interval_us: path.rtt_us,
            sampled_pkts: 8000,
            acked_pkts: 100,
            rtt_us: path.rtt_us,
            srtt_us: path.rtt_us,
            mss_bytes: MSS_BYTES,
            in_flight_pkts: 8600,
            prior_in_flight_pkts: 8600,
            tx_in_flight_pkts: if is_told { 8600 } else { 0 },
            lost_since_sent_pkts: if is_told { path.lost_pkts } else { 0 },
            ..RateSample::default()
        };
        flow.acked(&sample);
        (flow.cwnd_pkts(), flow.pacing_bytes_per_s(), flow.bbr())
    };
    assert_eq!(told(true), told(false));
}

/// 500 Mb/s over 100 ms: 4,316 segments.
fn started_at_a_rate() -> (RateControl, RateSample) {
    let now = RateSample {
        now_us: 1_000_000,
        srtt_us: 100_000,
        mss_bytes: MSS_BYTES,
        ..RateSample::default()
    };
    let mut flow = RateControl::new(bbr(), 10, u32::MAX, &now);
    flow.start_at(500_000_000, &now);
    (flow, now)
}

fn acked(at: &RateSample, rounds: u64, in_flight_pkts: u32) -> RateSample {
    let now_us = at.now_us + rounds * 100_000;
    RateSample {
        now_us,
        delivered_pkts: in_flight_pkts,
        interval_us: 100_000,
        sampled_pkts: in_flight_pkts,
        acked_pkts: 1,
        rtt_us: 100_000,
        in_flight_pkts: in_flight_pkts - 1,
        prior_in_flight_pkts: in_flight_pkts,
        ..*at
    }
}

#[test]
fn a_start_at_a_rate_lasts_only_as_far_as_it_is_used() {
    let window = |flow: &RateControl| (flow.cwnd_pkts(), flow.pacing_bytes_per_s());
    let (flow, at) = started_at_a_rate();
    assert_eq!(window(&flow), (4316, 62_500_000));
    // Most of the window was in flight: it stays, and what is measured raises the rate.
    let (mut used, _) = started_at_a_rate();
    used.acked(&acked(&at, 1, 3300));
    used.acked(&acked(&at, 9, 3300));
    assert!(used.cwnd_pkts() >= 4316 && used.pacing_bytes_per_s() > 62_500_000);
    // 45 segments were; then a pause, a loss, time, or another law.
    let tried = || {
        let (mut flow, _) = started_at_a_rate();
        flow.acked(&acked(&at, 1, 45));
        assert_eq!(window(&flow), (4316, 62_500_000));
        flow
    };
    let mut ended: Vec<_> = (0..4).map(|_| tried()).collect();
    ended[0].transmission_starts(&acked(&at, 3, 45));
    ended[1].recovery_begins();
    ended[2].acked(&acked(&at, 6, 45));
    ended[3].end_start();
    for flow in &ended {
        assert!((45..60).contains(&flow.cwnd_pkts()), "{:?}", window(flow));
        assert!(flow.pacing_bytes_per_s() < 3_000_000, "{:?}", window(flow));
    }
    // Nothing came back at all.
    let (mut lost, _) = started_at_a_rate();
    lost.recovery_begins();
    assert_eq!(lost.cwnd_pkts(), 10);
}

#[test]
fn a_start_below_the_laws_own_changes_nothing() {
    let (_, at) = started_at_a_rate();
    let mut flow = RateControl::new(bbr(), 10, u32::MAX, &at);
    let before = (flow.cwnd_pkts(), flow.pacing_bytes_per_s());
    flow.start_at(1_000_000, &at);
    assert_eq!((flow.cwnd_pkts(), flow.pacing_bytes_per_s()), before);
}

/// On a learned path of 1,000 segments and 100 ms, with this round-trip time and window.
fn on_known_path(srtt_us: u32, cwnd_pkts: u32, flags: u32) -> (RateControl, bool) {
    let now = RateSample {
        now_us: 1_000_000,
        srtt_us,
        mss_bytes: MSS_BYTES,
        flags,
        ..RateSample::default()
    };
    let known = KnownPath {
        bdp_pkts: 1000,
        base_rtt_us: 100_000,
    };
    let mut flow = RateControl::new(bbr(), cwnd_pkts, u32::MAX, &now);
    let makes_way = flow.makes_way(&known, &now);
    (flow, makes_way)
}

fn is_starting(flow: &RateControl) -> bool {
    flow.bbr().unwrap().phase == BbrPhase::Startup
}

/// An eighth above the base RTT is a queue, as where HyStart++ meets a rise.
#[test]
fn where_the_handshake_met_a_queue_a_flow_starts_at_a_quarter_without_startup() {
    let (flow, makes_way) = on_known_path(112_499, 10, 0);
    assert!(!makes_way && is_starting(&flow));
    // Twice what is in flight at that rate without a queue, however long theirs is.
    for srtt_us in [112_500, 500_000] {
        let (flow, makes_way) = on_known_path(srtt_us, 10, 0);
        assert!(makes_way && !is_starting(&flow));
        assert_eq!(flow.pacing_bytes_per_s(), 2_500 * u64::from(MSS_BYTES));
        let window = flow.cwnd_pkts();
        assert!((498..=502).contains(&window), "{window}");
    }
}

/// Also with little, and where it meets no queue: ten such flows would have the path's rate two and a half times.
#[test]
fn after_another_law_a_flow_on_a_known_path_goes_on_from_its_window() {
    for cwnd_pkts in [100, 400] {
        let (flow, makes_way) = on_known_path(100_000, cwnd_pkts, RateSample::HAD_LAW);
        assert!(makes_way && !is_starting(&flow));
        let pkts_per_s = u64::from(cwnd_pkts) * 10;
        assert_eq!(flow.pacing_bytes_per_s(), pkts_per_s * u64::from(MSS_BYTES));
        assert!((2 * cwnd_pkts).abs_diff(flow.cwnd_pkts()) <= 2);
    }
}
