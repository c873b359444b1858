// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold for every law of the table, with any parameters, under any order of events.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{
    Control, Idle, KnownPath, Law, LawSpec, Memory, PathNow, RttSample, Start, Window, window_laws,
};
use proptest::prelude::*;
use support::avoiding;

#[derive(Clone, Debug)]
enum Event {
    Acked(u32),
    /// Each with so many in flight, or a window if that is less.
    Loss(u32),
    Timeout(u32),
    Undo,
    Pause {
        rtos: u32,
    },
    Rtt(RttSample),
    TransmissionStarts(PathNow),
    AckArrived(u32),
    Parameters(Law),
    /// The host lowers the window by itself, as Linux does when the program has no data.
    HostLowers(u32),
    /// The policy of a live flow changes.
    Clamp(u32),
    /// Time passes, and the path has another round-trip time.
    Clock {
        passed_us: u64,
        srtt_us: u32,
    },
}

/// A law of the table with values anywhere in their ranges, near their ends more often than evenly.
fn any_law() -> impl Strategy<Value = Law> {
    let specs: Vec<&'static LawSpec> = window_laws().collect();
    prop::sample::select(specs).prop_flat_map(parameters_of)
}

/// Growth is a matter of the window alone; CUBIC's is one of time too: tests/cubic.rs.
fn is_of_the_window(spec: &LawSpec) -> bool {
    spec.name != "cubic"
}

fn any_law_of_the_window() -> impl Strategy<Value = Law> {
    any_law().prop_filter("of the window", |law| is_of_the_window(law.spec()))
}

fn parameters_of(spec: &'static LawSpec) -> impl Strategy<Value = Law> {
    let values: Vec<_> = spec
        .parameters
        .iter()
        .map(|p| {
            let bits = f64::from(p.max - p.min + 1).log2();
            let from_min = (0.0..=bits).prop_map(move |e| p.min + (e.exp2() as u32 - 1));
            prop_oneof![from_min, p.min..=p.max, Just(p.initial)]
        })
        .collect();
    values.prop_filter_map("the law accepts them", |values| {
        Law::from_values(spec.name, &values)
    })
}

fn any_start() -> impl Strategy<Value = Start> {
    (
        prop_oneof![Just(0), 1u32..300, any::<u32>()],
        prop_oneof![Just(0), 1u32..300, any::<u32>()],
        prop_oneof![Just(0), any::<u64>()],
        prop::sample::select(vec![Idle::Restart, Idle::Keep, Idle::Pace]),
        any::<bool>(),
        (prop_oneof![Just(0), any::<u32>()], 0u32..1_000_000),
    )
        .prop_map(
            |(
                max_ssthresh_pkts,
                initial_ssthresh_pkts,
                initial_rate_bps,
                idle,
                hystart,
                (bdp_pkts, base_rtt_us),
            )| Start {
                max_ssthresh_pkts,
                initial_ssthresh_pkts,
                initial_rate_bps,
                idle,
                hystart,
                known: KnownPath {
                    bdp_pkts,
                    base_rtt_us,
                },
            },
        )
}

fn in_flight() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..100, any::<u32>()]
}

fn any_event(law: Law) -> impl Strategy<Value = Event> {
    let sample = (any::<u32>(), any::<u32>(), any::<u32>());
    let sample = sample.prop_map(|(rtt_us, acked_seq, next_seq)| RttSample {
        rtt_us: rtt_us >> (acked_seq % 32),
        acked_seq,
        next_seq,
    });
    let path = (any::<u32>(), 0u32..70_000);
    let path = path.prop_map(|(srtt_us, mss_bytes)| PathNow { srtt_us, mss_bytes });
    prop_oneof![
        8 => (0u32..70_000).prop_map(Event::Acked),
        2 => any::<u32>().prop_map(Event::Acked),
        1 => in_flight().prop_map(Event::Loss),
        1 => in_flight().prop_map(Event::Timeout),
        1 => Just(Event::Undo),
        1 => (0u32..100).prop_map(|rtos| Event::Pause { rtos }),
        2 => sample.prop_map(Event::Rtt),
        1 => path.prop_map(Event::TransmissionStarts),
        1 => any::<u32>().prop_map(Event::AckArrived),
        1 => parameters_of(law.spec()).prop_map(Event::Parameters),
        1 => any::<u32>().prop_map(Event::HostLowers),
        1 => prop_oneof![2u32..1000, 2u32..=u32::MAX].prop_map(Event::Clamp),
        4 => (any::<u64>(), 0u32..64, any::<u32>(), 0u32..32).prop_map(|(us, by, srtt_us, of)| Event::Clock {
            passed_us: us >> by,
            srtt_us: srtt_us >> of,
        }),
    ]
}

fn law_and_events() -> impl Strategy<Value = (Law, Vec<Event>)> {
    any_law().prop_flat_map(|law| (Just(law), prop::collection::vec(any_event(law), 1..200)))
}

/// A host stack that does what the laws may expect of one.
struct Host {
    control: Control,
    window: Window,
    prior: Window,
    /// The window before the paced start under way.
    paced_from_pkts: Option<u32>,
    /// What was tried of the window before the last congestion event.
    tried_pkts: u32,
    /// Between a congestion event and the first acknowledgement of new data behind it.
    in_recovery: bool,
    /// Whatever was earned before has been forgotten: a congestion event, or a pause.
    is_fresh: bool,
    start: Start,
}

impl Host {
    fn event(&mut self, event: &Event) {
        let Host {
            control, window, ..
        } = self;
        match *event {
            Event::Acked(acked_pkts) => {
                control.acked(window, acked_pkts);
                (self.in_recovery, self.is_fresh) = (false, false);
            }
            Event::Loss(in_flight_pkts) => self.lose(in_flight_pkts, |ssthresh_pkts| ssthresh_pkts),
            Event::Timeout(in_flight_pkts) => self.lose(in_flight_pkts, |_| 1),
            Event::Undo => {
                window.cwnd_pkts = control.undo_cwnd(window, self.prior.cwnd_pkts);
                window.ssthresh_pkts = window.ssthresh_pkts.max(self.prior.ssthresh_pkts);
                (self.in_recovery, self.is_fresh) = (false, false);
            }
            Event::Pause { rtos } => {
                control.idle_restart(window, u64::from(rtos) * 200_000 + 1, 200_000, 10);
                self.is_fresh |= rtos > 0 && self.start.idle != Idle::Keep;
            }
            Event::Rtt(sample) => control.rtt_sample(window, &sample),
            // A host in recovery does not ask.
            Event::TransmissionStarts(_) if self.in_recovery => (),
            Event::TransmissionStarts(path) => {
                let before_pkts = window.cwnd_pkts;
                if control.transmission_starts(window, &path).is_some() {
                    self.paced_from_pkts = Some(before_pkts);
                }
            }
            Event::AckArrived(in_flight_pkts) => {
                let before = *window;
                let is_end = control.ack_arrived(window, in_flight_pkts);
                match self.paced_from_pkts.take() {
                    Some(from_pkts) if !is_end => {
                        // It goes on to a higher threshold, and what is in flight meanwhile was tried.
                        assert!(self.start.initial_rate_bps > 0);
                        assert!(self.start.initial_ssthresh_pkts > 0);
                        assert!(in_flight_pkts < before.cwnd_pkts);
                        assert_eq!(window.cwnd_pkts, before.cwnd_pkts);
                        let tried_pkts = from_pkts.max(in_flight_pkts).min(before.cwnd_pkts);
                        self.paced_from_pkts = Some(tried_pkts);
                    }
                    paced => assert_eq!(is_end, paced.is_some()),
                }
            }
            Event::Parameters(law) => control.set_law(law),
            Event::HostLowers(cwnd_pkts) => {
                window.cwnd_pkts = window.cwnd_pkts.min(cwnd_pkts.max(1));
            }
            Event::Clamp(clamp_pkts) => window.clamp_pkts = clamp_pkts,
            Event::Clock { passed_us, srtt_us } => {
                window.now_us = window.now_us.wrapping_add(passed_us);
                window.srtt_us = srtt_us;
            }
        }
    }

    fn lose(&mut self, in_flight_pkts: u32, cwnd_pkts: fn(u32) -> u32) {
        self.prior = self.window;
        let all_pkts = self.window.cwnd_pkts;
        let in_flight_pkts = in_flight_pkts.min(all_pkts);
        let tried_pkts = |from: u32| from.max(in_flight_pkts).min(all_pkts);
        self.tried_pkts = self.paced_from_pkts.map_or(all_pkts, tried_pkts);
        self.window.ssthresh_pkts = self.control.ssthresh(&mut self.window, in_flight_pkts);
        assert_eq!(self.window.cwnd_pkts, all_pkts);
        self.window.cwnd_pkts = cwnd_pkts(self.window.ssthresh_pkts);
        (self.in_recovery, self.is_fresh) = (true, true);
    }

    /// What `acked_pkts` add to this window for a flow that remembers nothing.
    fn growth_without_memory(&self, before: &Window, acked_pkts: u32) -> u32 {
        let mut window = Window {
            memory: Memory::default(),
            ..*before
        };
        let mut control = self.control.clone();
        control.acked(&mut window, acked_pkts);
        window.cwnd_pkts - before.cwnd_pkts
    }
}

/// Of credit, less than a segment is kept in slow start and less than one in congestion avoidance.
fn check_growth(
    acked_pkts: u32,
    before: &Window,
    host: &Host,
    was_fresh: bool,
) -> Result<(), TestCaseError> {
    let grown = host.window.cwnd_pkts - before.cwnd_pkts;
    if !is_of_the_window(host.control.law().spec()) {
        let most = 5 * u64::from(acked_pkts) / 2 + 2; // Reno's part with the least beta, 0.1
        prop_assert!(u64::from(grown) <= most, "{grown} for {acked_pkts}");
        return Ok(());
    }
    let without = host.growth_without_memory(before, acked_pkts);
    prop_assert!(
        grown <= without.saturating_add(2),
        "{grown} instead of {without}"
    );
    // HyStart++ may slow the growth by a quarter: then there is no lower bound here.
    if !host.start.hystart {
        prop_assert!(grown >= without, "{grown} instead of {without}");
        prop_assert!(!was_fresh || grown == without, "credit of before was used");
    }
    Ok(())
}

fn check(
    event: &Event,
    before: &Window,
    host: &Host,
    was_in_recovery: bool,
    was_fresh: bool,
) -> Result<(), TestCaseError> {
    let after = &host.window;
    let (was, is) = (before.cwnd_pkts, after.cwnd_pkts);
    match event {
        Event::Loss(_) | Event::Timeout(_) => {
            prop_assert!(after.ssthresh_pkts >= 2, "at least 2 after a loss");
            prop_assert!(
                after.ssthresh_pkts <= host.tried_pkts.max(2),
                "of what was tried"
            );
            prop_assert!(is <= was.max(2), "it does not grow by a loss");
        }
        Event::Acked(_) if was > after.clamp_pkts => prop_assert_eq!(is, after.clamp_pkts),
        Event::Acked(acked_pkts) => {
            prop_assert!(is <= after.clamp_pkts, "past the clamp");
            prop_assert!(is >= was, "it shrank on an acknowledgement");
            prop_assert_eq!(after.ssthresh_pkts, before.ssthresh_pkts);
            check_growth(*acked_pkts, before, host, was_fresh)?;
        }
        Event::Undo => prop_assert_eq!(is, was.max(host.tried_pkts)),
        Event::Pause { .. } => {
            prop_assert!(is <= was && is >= was.min(10));
            prop_assert!(after.ssthresh_pkts >= before.ssthresh_pkts);
        }
        Event::TransmissionStarts(_) => {
            prop_assert!(is >= was);
            prop_assert!(
                !was_in_recovery || is == was,
                "it grew in a round with loss"
            );
        }
        _ => prop_assert!(
            is <= was,
            "only acknowledgements and paced starts let it grow"
        ),
    }
    if !matches!(event, Event::Undo) {
        prop_assert!(is <= was.max(2).max(after.clamp_pkts), "past the clamp");
    }
    prop_assert!(is >= 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_order_of_events_keeps_the_window_sane(
        (law, events) in law_and_events(),
        start in any_start(),
        cwnd_pkts in prop_oneof![1u32..1000, 1u32..=u32::MAX],
        clamp_pkts in prop_oneof![2u32..100_000, 2u32..=u32::MAX],
    ) {
        let window = Window { clamp_pkts, ..Window::new(cwnd_pkts.min(clamp_pkts)) };
        let mut host = Host { control: Control::new(law, start), window, prior: window, paced_from_pkts: None, tried_pkts: window.cwnd_pkts, in_recovery: false, is_fresh: true, start };
        host.control.begin(&mut host.window);
        for event in &events {
            let (before, was_in_recovery, was_fresh) =
                (host.window, host.in_recovery, host.is_fresh);
            host.event(event);
            check(event, &before, &host, was_in_recovery, was_fresh)?;
        }
    }

    /// Credit is neither lost nor doubled: as long as the window stays, it does not matter how the
    /// acknowledgements came.
    #[test]
    fn growth_is_the_same_however_it_is_split(
        law in any_law_of_the_window(),
        cwnd_pkts in prop_oneof![4u32..300, 4u32..1 << 24],
        first in prop_oneof![1u32..50, 1u32..10_000],
        second in prop_oneof![1u32..50, 1u32..1_000_000],
    ) {
        let mut control = Control::new(law, Start::default());
        let mut split = avoiding(cwnd_pkts);
        control.acked(&mut split, first);
        prop_assume!(split.cwnd_pkts == cwnd_pkts);
        control.acked(&mut split, second);
        let mut whole = avoiding(cwnd_pkts);
        control.acked(&mut whole, first + second);
        prop_assert_eq!(split, whole);
    }

    /// A spurious loss leaves no trace in how the window grows.
    #[test]
    fn an_undone_loss_is_forgotten(
        law in any_law(),
        cwnd_pkts in 4u32..1 << 20,
        acked_pkts in 1u32..10_000,
        more_pkts in 1u32..10_000,
    ) {
        let mut control = Control::new(law, Start::default());
        let mut undisturbed = avoiding(cwnd_pkts);
        control.acked(&mut undisturbed, acked_pkts);
        let mut disturbed = undisturbed;
        let prior = disturbed;
        disturbed.ssthresh_pkts = control.ssthresh(&mut disturbed, cwnd_pkts);
        disturbed.cwnd_pkts = disturbed.ssthresh_pkts;
        disturbed.cwnd_pkts = control.undo_cwnd(&mut disturbed, prior.cwnd_pkts);
        disturbed.ssthresh_pkts = prior.ssthresh_pkts;
        control.acked(&mut undisturbed, more_pkts);
        control.acked(&mut disturbed, more_pkts);
        let fraction = u32::from(!is_of_the_window(law.spec())); // CUBIC's W_est comes back whole
        prop_assert!(undisturbed.cwnd_pkts - disturbed.cwnd_pkts <= fraction);
    }

    /// More acknowledged, at least as much grown; a larger window, at least as much kept (with the
    /// initial parameters: a law that takes more than half may keep less above its legacy window).
    #[test]
    fn growth_and_decrease_are_monotone(
        spec in prop::sample::select(window_laws().collect::<Vec<_>>()),
        law in any_law(),
        cwnd_pkts in prop_oneof![2u32..300, 2u32..u32::MAX],
        acked_pkts in any::<u32>(),
    ) {
        let grown = |law, acked_pkts| {
            let mut window = avoiding(cwnd_pkts);
            Control::new(law, Start::default()).acked(&mut window, acked_pkts);
            window.cwnd_pkts
        };
        prop_assert!(grown(law, acked_pkts) >= grown(law, acked_pkts - acked_pkts / 3));
        let kept = |cwnd_pkts| {
            let initial = Law::named(spec.name).unwrap();
            Control::new(initial, Start::default()).ssthresh(&mut avoiding(cwnd_pkts), cwnd_pkts)
        };
        prop_assert!(kept(cwnd_pkts + 1) >= kept(cwnd_pkts));
    }

    /// A greater `a` grows at least as much, a greater `b` keeps at most as much.
    #[test]
    fn a_and_b_are_monotone(
        name in prop::sample::select(vec!["aimd", "scalable"]),
        a in 0.01f64..0.5,
        b in 0.001f64..0.499,
        cwnd_pkts in 4u32..1 << 24,
        acked_pkts in 1u32..1 << 24,
    ) {
        let law = |a, b| Law::named(name).unwrap().with_all(&[("a", a), ("b", b)]).unwrap();
        let after = |law| {
            let mut control = Control::new(law, Start::default());
            let mut window = avoiding(cwnd_pkts);
            control.acked(&mut window, acked_pkts);
            (window.cwnd_pkts, control.ssthresh(&mut avoiding(cwnd_pkts), cwnd_pkts))
        };
        prop_assert!(after(law(2.0 * a, b)).0 >= after(law(a, b)).0);
        prop_assert!(after(law(a, 2.0 * b)).1 <= after(law(a, b)).1);
    }

    /// 2^31 segments and 2^32 acknowledged: what the window grows is what wide arithmetic says.
    #[test]
    fn nothing_overflows_at_two_to_the_31st(
        a_milli in 10u32..=10_000_000,
        a_micro in 1u32..=1_000_000,
        cwnd_pkts in (1u32 << 30)..=(1 << 31),
        acked_pkts in any::<u32>(),
    ) {
        let grown = |law| {
            let mut window = avoiding(cwnd_pkts);
            Control::new(law, Start::default()).acked(&mut window, acked_pkts);
            u128::from(window.cwnd_pkts - cwnd_pkts)
        };
        let (acked, cwnd) = (u128::from(acked_pkts), u128::from(cwnd_pkts));
        let room = u128::from(u32::MAX) - cwnd;
        let aimd = Law::from_values("aimd", &[a_milli, 500]).unwrap();
        prop_assert_eq!(grown(aimd), (acked * u128::from(a_milli) / (1000 * cwnd)).min(room));
        let scalable = Law::from_values("scalable", &[a_micro, 125, 16]).unwrap();
        prop_assert_eq!(grown(scalable), (acked * u128::from(a_micro) / 1_000_000).min(room));
        prop_assert_eq!(grown(Law::RENO), acked / cwnd);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for spec in window_laws() {
        let initial: Vec<u32> = spec.parameters.iter().map(|p| p.initial).collect();
        assert!(
            Law::from_values(spec.name, &initial).is_some(),
            "{}",
            spec.name
        );
        for (index, parameter) in spec.parameters.iter().enumerate() {
            let outside = [parameter.min.checked_sub(1), parameter.max.checked_add(1)];
            for value in outside.into_iter().flatten() {
                let mut values = initial.clone();
                values[index] = value;
                let name = format!("{}: {} = {value}", spec.name, parameter.key);
                assert_eq!(Law::from_values(spec.name, &values), None, "{name}");
                let number = parameter.to_number(value);
                let law = Law::named(spec.name).unwrap();
                let refused = law.with(parameter.key, number).unwrap_err().to_string();
                assert!(refused.contains("out of range"), "{name}: {refused}");
            }
        }
    }
}

#[test]
fn an_undo_gives_credit_back_once() {
    let mut control = Control::new(Law::RENO, Start::default());
    let mut window = avoiding(100);
    control.acked(&mut window, 60);
    window.ssthresh_pkts = control.ssthresh(&mut window, 100);
    window.cwnd_pkts = control.undo_cwnd(&mut window, 100);
    control.acked(&mut window, 60);
    assert_eq!(window.cwnd_pkts, 101, "60 of before and 60");
    window.cwnd_pkts = control.undo_cwnd(&mut window, 100);
    control.acked(&mut window, 80);
    assert_eq!(window.cwnd_pkts, 101, "20 were left, and 80");
    control.acked(&mut window, 1);
    assert_eq!(window.cwnd_pkts, 102);
}

#[test]
fn too_few_values_are_refused() {
    assert_eq!(Law::from_values("aimd", &[1000]), None);
}

#[test]
fn a_refusal_names_what_there_is() {
    let law = Law::named("aimd").unwrap();
    let refused = law.with("c", 1.0).unwrap_err().to_string();
    assert_eq!(refused, "aimd has no parameter 'c'; it has a, b");
    for value in [0.0, 1.0, f64::NAN, -0.5] {
        let refused = law.with("b", value).unwrap_err().to_string();
        assert!(refused.contains("0.001 to 0.999"), "{refused}");
    }
}
