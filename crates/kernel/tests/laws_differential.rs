// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws in the kernel and on the host: one series of events goes to both, and after every event both
//! must have the same window, to the last bit of memory. Start at [`Pair::event`].
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Control, Law, PathNow, RttSample, Start, Window, window_laws};
use libbpf_rs::ProgramMut;
use support::replay::{Random, StartTwin, loaded, number_of, run, values_of};

const REPLAY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/replay.bpf.o"));

const SERIES_OF_A_LAW: u64 = 25;
const EVENTS_OF_A_SERIES: u64 = 400;

/// `struct replay` of bpf/replay.bpf.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct Replay {
    window: Window,
    start: StartTwin,
    given: [u64; 3],
    result: u64,
    event: u32,
    law: u32,
    values: [u32; 6],
}

/// `enum replay_event`, with what is given.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begin,
    Acked(u32),
    Ssthresh { in_flight_pkts: u32 },
    Undo { prior_cwnd_pkts: u32 },
    RttSample(RttSample),
    IdleRestart { idle_us: u64, rto_us: u32 },
    TransmissionStarts(PathNow),
    AckArrived { in_flight_pkts: u32 },
}

const ACCEPTS: u32 = 8;
const INITIAL_WINDOW_PKTS: u32 = 10;

/// One flow, in the kernel and on the host.
struct Pair<'obj> {
    program: &'obj ProgramMut<'obj>,
    kernel: Replay,
    control: Control,
    window: Window,
    /// Before the last congestion event.
    prior: Window,
}

impl Pair<'_> {
    /// The event happens to both; they have the same window and gave the same answer.
    fn event(&mut self, event: Event) -> u64 {
        let answer = self.on_host(event);
        self.in_kernel(event);
        assert_eq!(
            self.kernel.result,
            answer,
            "{event:?} by {:?}",
            self.control.law()
        );
        assert_eq!(
            self.kernel.window,
            self.window,
            "{event:?} by {:?}",
            self.control.law()
        );
        answer
    }

    fn on_host(&mut self, event: Event) -> u64 {
        let Pair {
            control, window, ..
        } = self;
        match event {
            Event::Begin => control.begin(window),
            Event::Acked(acked_pkts) => control.acked(window, acked_pkts),
            Event::Ssthresh { in_flight_pkts } => {
                return u64::from(control.ssthresh(window, in_flight_pkts));
            }
            Event::Undo { prior_cwnd_pkts } => {
                return u64::from(control.undo_cwnd(window, prior_cwnd_pkts));
            }
            Event::RttSample(sample) => control.rtt_sample(window, &sample),
            Event::IdleRestart { idle_us, rto_us } => {
                control.idle_restart(window, idle_us, rto_us, INITIAL_WINDOW_PKTS);
            }
            Event::TransmissionStarts(path) => {
                return control.transmission_starts(window, &path).unwrap_or(0);
            }
            Event::AckArrived { in_flight_pkts } => {
                return u64::from(control.ack_arrived(window, in_flight_pkts));
            }
        }
        0
    }

    fn in_kernel(&mut self, event: Event) {
        let small = u64::from;
        (self.kernel.event, self.kernel.given) = match event {
            Event::Begin => (0, [0; 3]),
            Event::Acked(acked_pkts) => (1, [small(acked_pkts), 0, 0]),
            Event::Ssthresh { in_flight_pkts } => (2, [small(in_flight_pkts), 0, 0]),
            Event::Undo { prior_cwnd_pkts } => (3, [small(prior_cwnd_pkts), 0, 0]),
            Event::RttSample(s) => (4, [small(s.rtt_us), small(s.acked_seq), small(s.next_seq)]),
            Event::IdleRestart { idle_us, rto_us } => {
                (5, [idle_us, small(rto_us), small(INITIAL_WINDOW_PKTS)])
            }
            Event::TransmissionStarts(path) => (6, [small(path.srtt_us), small(path.mss_bytes), 0]),
            Event::AckArrived { in_flight_pkts } => (7, [small(in_flight_pkts), 0, 0]),
        };
        run(self.program, &mut self.kernel);
    }

    /// What the host stack does to the window by itself.
    fn set(&mut self, change: impl Fn(&mut Window)) {
        change(&mut self.window);
        change(&mut self.kernel.window);
    }

    fn change_parameters(&mut self, law: Law) {
        self.control.set_law(law);
        self.kernel.values = values_of(law);
    }

    fn lose(&mut self, is_timeout: bool, in_flight_pkts: u32) {
        self.prior = self.window;
        let ssthresh_pkts = self.event(Event::Ssthresh { in_flight_pkts }) as u32;
        self.set(|window| {
            window.ssthresh_pkts = ssthresh_pkts;
            window.cwnd_pkts = if is_timeout { 1 } else { ssthresh_pkts };
        });
    }

    fn undo(&mut self) {
        let prior = self.prior;
        let cwnd_pkts = self.event(Event::Undo {
            prior_cwnd_pkts: prior.cwnd_pkts,
        }) as u32;
        self.set(|window| {
            window.cwnd_pkts = cwnd_pkts;
            window.ssthresh_pkts = window.ssthresh_pkts.max(prior.ssthresh_pkts);
        });
    }
}

fn rtt_sample(random: &mut Random, acked_seq: u32) -> RttSample {
    RttSample {
        rtt_us: 50_000 + random.below(20_000) as u32,
        acked_seq,
        next_seq: acked_seq.wrapping_add(random.number() >> 8),
    }
}

fn one_series(program: &ProgramMut, name: &str, seed: u64) {
    let mut random = Random(seed);
    let (law, start) = (random.law(name), random.start());
    let mut window = Window::new(INITIAL_WINDOW_PKTS);
    if random.below(2) == 0 {
        window.clamp_pkts = random.number().max(2);
    }
    let mut pair = Pair {
        program,
        kernel: Replay {
            window,
            start: start.into(),
            given: [0; 3],
            result: 0,
            event: 0,
            law: number_of(law),
            values: values_of(law),
        },
        control: Control::new(law, start),
        window,
        prior: window,
    };
    pair.event(Event::Begin);
    let mut acked_seq = 0;
    for _ in 0..EVENTS_OF_A_SERIES {
        any_event(&mut pair, &mut random, name, &mut acked_seq);
    }
}

/// Mostly less than a round trip, now and then a day.
fn time_passes(pair: &mut Pair, random: &mut Random) {
    let (passed_bits, srtt_bits) = (random.below(37), random.below(24));
    let passed_us = random.below(1 << passed_bits);
    let srtt_us = random.below(1 << srtt_bits) as u32;
    pair.set(|window| {
        window.now_us += passed_us;
        window.srtt_us = srtt_us;
    });
}

fn any_event(pair: &mut Pair, random: &mut Random, name: &str, acked_seq: &mut u32) {
    time_passes(pair, random);
    match random.below(20) {
        0..8 => {
            let acked_pkts = random.below(u64::from(pair.window.cwnd_pkts) + 1) as u32;
            *acked_seq = acked_seq.wrapping_add(acked_pkts);
            pair.event(Event::Acked(acked_pkts));
        }
        8 => drop(pair.event(Event::Acked(random.number()))),
        9..13 => drop(pair.event(Event::RttSample(rtt_sample(random, *acked_seq)))),
        13 => pair.lose(false, random.number()),
        14 => pair.lose(true, random.number()),
        15 => pair.undo(),
        16 => {
            let (idle_us, rto_us) = (random.next() >> random.below(64), random.number());
            pair.event(Event::IdleRestart { idle_us, rto_us });
        }
        17 => {
            let (srtt_us, mss_bytes) = (random.number(), random.number() >> 16);
            pair.event(Event::TransmissionStarts(PathNow { srtt_us, mss_bytes }));
        }
        18 => {
            let in_flight_pkts = random.number();
            pair.event(Event::AckArrived { in_flight_pkts });
        }
        _ => pair.change_parameters(random.law(name)),
    };
}

/// The kernel accepts just the parameters that the host accepts.
fn same_parameters_are_accepted(program: &ProgramMut, name: &str) {
    let mut random = Random(7);
    for _ in 0..500 {
        let values: [u32; 6] = std::array::from_fn(|_| random.number());
        let law = Law::named(name).unwrap();
        let mut replay = Replay {
            window: Window::new(1),
            start: Start::default().into(),
            given: [0; 3],
            result: 0,
            event: ACCEPTS,
            law: number_of(law),
            values,
        };
        run(program, &mut replay);
        let on_host = Law::from_values(name, &values).is_some();
        assert_eq!(replay.result != 0, on_host, "{name} {values:?}");
    }
}

#[test]
fn the_laws_in_the_kernel_are_the_laws_on_the_host() {
    let Some(object) = loaded(REPLAY) else { return };
    let program = object.progs_mut().next().unwrap();
    for spec in window_laws() {
        for seed in 0..SERIES_OF_A_LAW {
            one_series(&program, spec.name, seed);
        }
        same_parameters_are_accepted(&program, spec.name);
    }
}
