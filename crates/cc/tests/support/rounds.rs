// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slow start, whose round-trip times a law is told.

use fatpath_cc::{Control, Law, RttSample, Start, Window};

pub fn begun(law: Law, start: Start) -> (Control, Window) {
    let mut control = Control::new(law, start);
    let mut window = Window::new(10);
    control.begin(&mut window);
    (control, window)
}

/// Rounds of `samples` round-trip times each, with the window acknowledged in each.
pub struct Rounds {
    pub control: Control,
    pub window: Window,
    acked_seq: u32,
}

impl Rounds {
    pub fn of(law: Law) -> Rounds {
        let start = Start {
            hystart: true,
            ..Start::default()
        };
        Rounds::starting(law, start)
    }

    pub fn starting(law: Law, start: Start) -> Rounds {
        let (control, window) = begun(law, start);
        Rounds {
            control,
            window,
            // Sequence numbers wrap in the first rounds.
            acked_seq: u32::MAX - 5,
        }
    }

    pub fn round(&mut self, rtt_us: u32) {
        let sent = self.window.cwnd_pkts;
        for _ in 0..sent {
            self.control.acked(&mut self.window, 1);
            self.sample(rtt_us);
        }
    }

    /// The program has less to send than the window, which does not grow.
    pub fn round_of_less(&mut self, rtt_us: u32) {
        for _ in 0..self.window.cwnd_pkts {
            self.sample(rtt_us);
        }
    }

    pub fn sample(&mut self, rtt_us: u32) {
        self.acked_seq = self.acked_seq.wrapping_add(1);
        let next_seq = self.acked_seq.wrapping_add(self.window.cwnd_pkts);
        let sample = RttSample {
            rtt_us,
            acked_seq: self.acked_seq,
            next_seq,
        };
        self.control.rtt_sample(&mut self.window, &sample);
    }

    /// Samples 100 us apart.
    pub fn samples_for(&mut self, time_us: u64, rtt_us: u32) {
        for _ in 0..time_us / 100 {
            self.window.now_us += 100;
            self.sample(rtt_us);
        }
    }
}
