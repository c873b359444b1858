// SPDX-License-Identifier: MIT OR Apache-2.0
//! bpf/cc/rude.h in the kernel and on the host: one series of events goes to both, and after every event
//! both must remember the same, to the last bit, and have answered the same. Start at [`Pair::event`].
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_cc::{Law, RttSample, Rude, RudeNow, RudeState, Start, Window, window_laws};
use libbpf_rs::ProgramMut;
use support::replay::{Random, StartTwin, loaded, number_of, run, values_of};

const REPLAY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rude_replay.bpf.o"));

const SERIES_OF_A_LAW: u64 = 25;
const EVENTS_OF_A_SERIES: u64 = 400;

/// `struct rude_replay` of bpf/rude_replay.bpf.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct Replay {
    rude: RudeState,
    polite: Window,
    now: RudeNow,
    start: StartTwin,
    given: [u64; 3],
    result: u64,
    event: u32,
    law: u32,
    values: [u32; 6],
    rtt: RttSample,
    pad: u32,
}

/// `enum rude_event`, with what is given.
#[derive(Clone, Copy, Debug)]
enum Event {
    Begin(Window),
    Acked,
    Congested,
    TimedOut,
    RecoveryBegins,
    Undone,
    Cwnd,
    Pacing { share_bytes_per_s: u64 },
    OffNow(u32),
    OffNicely(u32),
    ShadowAcked { pkts: [u32; 3] },
    ShadowSsthresh { r_pkts: u32 },
    Converged { used_pkts: u32, milli: u32 },
    Resumes,
}

/// One flow, in the kernel and on the host.
struct Pair<'obj> {
    program: &'obj ProgramMut<'obj>,
    kernel: Replay,
    law: Law,
    start: Start,
    host: Rude,
    now: RudeNow,
    rtt: RttSample,
}

impl Pair<'_> {
    /// The event happens to both; they remember the same and gave the same answer.
    fn event(&mut self, event: Event) {
        let answer = self.on_host(event);
        self.in_kernel(event);
        let (now, law) = (self.now, self.law);
        assert_eq!(self.kernel.result, answer, "{event:?} by {law:?}, {now:?}");
        let state = self.host.state();
        assert_eq!(self.kernel.rude, state, "{event:?} by {law:?}, {now:?}");
    }

    fn on_host(&mut self, event: Event) -> u64 {
        let (host, now, rtt) = (&mut self.host, &self.now, &self.rtt);
        match event {
            Event::Begin(polite) => *host = Rude::new(self.law, self.start, &polite, now),
            Event::Acked => host.acked(now, rtt),
            Event::Congested => host.congested(now),
            Event::TimedOut => host.timed_out(now),
            Event::RecoveryBegins => host.recovery_begins(),
            Event::Undone => host.undone(),
            Event::Resumes => host.resume(now),
            Event::Cwnd => return Rude::cwnd_pkts(now).into(),
            Event::Pacing { share_bytes_per_s } => {
                let share = (share_bytes_per_s > 0).then_some(share_bytes_per_s);
                return host.pacing_bytes_per_s(now, share);
            }
            Event::OffNow(in_flight_pkts) => host.off_now(in_flight_pkts),
            Event::OffNicely(in_flight_pkts) => return host.off_nicely(in_flight_pkts).into(),
            Event::ShadowAcked { pkts } => {
                let [r_pkts, used_pkts, acked_pkts] = pkts;
                return host.shadow_acked(rtt, r_pkts, used_pkts, acked_pkts).into();
            }
            Event::ShadowSsthresh { r_pkts } => return host.shadow_ssthresh(r_pkts).into(),
            Event::Converged { used_pkts, milli } => {
                return host.has_converged(used_pkts, milli).into();
            }
        }
        0
    }

    fn in_kernel(&mut self, event: Event) {
        let one = |number: u32| [number.into(), 0, 0];
        let kernel = &mut self.kernel;
        (kernel.event, kernel.given) = match event {
            Event::Begin(polite) => {
                kernel.polite = polite;
                (0, [0; 3])
            }
            Event::Acked => (1, [0; 3]),
            Event::Congested => (2, [0; 3]),
            Event::TimedOut => (3, [0; 3]),
            Event::RecoveryBegins => (4, [0; 3]),
            Event::Undone => (5, [0; 3]),
            Event::Cwnd => (6, [0; 3]),
            Event::Pacing { share_bytes_per_s } => (7, [share_bytes_per_s, 0, 0]),
            Event::OffNow(in_flight_pkts) => (8, one(in_flight_pkts)),
            Event::OffNicely(in_flight_pkts) => (9, one(in_flight_pkts)),
            Event::ShadowAcked { pkts } => (10, pkts.map(u64::from)),
            Event::ShadowSsthresh { r_pkts } => (11, one(r_pkts)),
            Event::Converged { used_pkts, milli } => (12, [used_pkts.into(), milli.into(), 0]),
            Event::Resumes => (13, [0; 3]),
        };
        (kernel.now, kernel.rtt) = (self.now, self.rtt);
        run(self.program, kernel);
    }
}

fn any_window(random: &mut Random) -> Window {
    let mut window = Window::new(random.number().max(2));
    if random.below(2) == 0 {
        window.clamp_pkts = random.number().max(2);
    }
    if random.below(2) == 0 {
        window.ssthresh_pkts = random.number().max(2);
    }
    window
}

/// Any numbers at all, or the next acknowledgement of a flow that goes on.
fn any_now(random: &mut Random, before: &RudeNow) -> RudeNow {
    if random.below(10) > 0 {
        let (delivered, lost) = (random.below(100) as u32, random.below(4) as u32 / 3);
        return RudeNow {
            now_us: before.now_us.wrapping_add(random.below(20_000)),
            delivered_pkts: before.delivered_pkts.wrapping_add(delivered),
            lost_pkts: before.lost_pkts.wrapping_add(lost),
            srtt_us: 50_000 + random.below(30_000) as u32,
            rate_bytes_per_s: random.below(100_000_000),
            ..*before
        };
    }
    RudeNow {
        now_us: random.next() >> random.below(64),
        rate_bytes_per_s: random.next() >> random.below(64),
        rate_is_app_limited: random.below(2) as u32,
        delivered_pkts: random.number(),
        lost_pkts: random.number(),
        in_flight_pkts: random.number(),
        peer_window_pkts: random.number(),
        max_window_pkts: random.number().max(2),
        srtt_us: random.number(),
        min_rtt_us: random.number(),
        mss_bytes: random.number() >> 16,
        wire_bytes: random.number() >> 16,
    }
}

/// Of one path, where the time rises and falls; sequence numbers wrap.
fn any_rtt(random: &mut Random, before: &RttSample) -> RttSample {
    let acked_seq = before.acked_seq.wrapping_add(random.below(20) as u32);
    RttSample {
        rtt_us: match random.below(8) {
            0 => random.number(),
            _ => 50_000 + random.below(30_000) as u32,
        },
        acked_seq,
        next_seq: acked_seq.wrapping_add(random.below(200) as u32),
    }
}

fn any_event(random: &mut Random) -> Event {
    match random.below(25) {
        0..10 => Event::Acked,
        10 => Event::Congested,
        11 => Event::TimedOut,
        12 => Event::RecoveryBegins,
        13 => Event::Undone,
        14 => Event::Cwnd,
        15..18 => Event::Pacing {
            share_bytes_per_s: (random.next() >> random.below(64)) * random.below(2),
        },
        18 => Event::OffNow(random.number()),
        19 => Event::OffNicely(random.number()),
        20 => Event::ShadowAcked {
            pkts: [random.number(), random.number(), random.number()],
        },
        21 => Event::ShadowSsthresh {
            r_pkts: random.number(),
        },
        22 => Event::Converged {
            used_pkts: random.number(),
            milli: random.number(),
        },
        23 => Event::Resumes,
        _ => Event::Begin(any_window(random)),
    }
}

fn one_series(program: &ProgramMut, name: &str, seed: u64) {
    let mut random = Random(seed);
    let (law, start, polite) = (random.law(name), random.start(), any_window(&mut random));
    let now = RudeNow::default();
    let host = Rude::new(law, start, &polite, &now);
    let mut pair = Pair {
        program,
        kernel: Replay {
            rude: RudeState::default(),
            polite,
            now,
            start: start.into(),
            given: [0; 3],
            result: 0,
            event: 0,
            law: number_of(law),
            values: values_of(law),
            rtt: RttSample::default(),
            pad: 0,
        },
        law,
        start,
        host,
        now,
        rtt: RttSample::default(),
    };
    pair.event(Event::Begin(polite));
    for _ in 0..EVENTS_OF_A_SERIES {
        pair.now = any_now(&mut random, &pair.now);
        pair.rtt = any_rtt(&mut random, &pair.rtt);
        pair.event(any_event(&mut random));
    }
}

#[test]
fn the_fair_window_in_the_kernel_is_that_on_the_host() {
    let Some(object) = loaded(REPLAY) else { return };
    let program = object.progs_mut().next().unwrap();
    for spec in window_laws() {
        for seed in 0..SERIES_OF_A_LAW {
            one_series(&program, spec.name, seed);
        }
    }
}
