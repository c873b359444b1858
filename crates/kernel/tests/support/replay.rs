// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is replayed in the kernel and on the host alike: a program run on the bytes of a struct, and
//! series of events that are the same in every run.
#![allow(unsafe_code)] // the program's context is the bytes of a struct

use fatpath_cc::{Idle, KnownPath, Law, ParameterSpec, Start, laws};
use libbpf_rs::{Object, ObjectBuilder, ProgramInput, ProgramMut};

/// The object with one program, if this user may load it.
pub fn loaded(object: &[u8]) -> Option<Object> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root");
        return None;
    }
    let open = ObjectBuilder::default().open_memory(object).unwrap();
    Some(open.load().unwrap())
}

/// The program reads `context`, a struct of integers without padding, and writes it.
pub fn run<C: Copy>(program: &ProgramMut, context: &mut C) {
    // SAFETY: such a struct may be read as bytes, and written by its twin.
    let bytes = unsafe {
        std::slice::from_raw_parts_mut(std::ptr::from_mut(context).cast::<u8>(), size_of::<C>())
    };
    let input = ProgramInput {
        context_in: Some(bytes),
        ..ProgramInput::default()
    };
    let output = program.test_run(input).unwrap();
    assert_eq!(output.return_value, 0);
}

/// `struct cc_start`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StartTwin {
    initial_rate_bps: u64,
    max_ssthresh_pkts: u32,
    initial_ssthresh_pkts: u32,
    idle: u32,
    hystart: u32,
    path_pkts: u32,
    base_rtt_us: u32,
}

impl From<Start> for StartTwin {
    fn from(start: Start) -> StartTwin {
        StartTwin {
            initial_rate_bps: start.initial_rate_bps,
            max_ssthresh_pkts: start.max_ssthresh_pkts,
            initial_ssthresh_pkts: start.initial_ssthresh_pkts,
            idle: start.idle as u32,
            hystart: u32::from(start.hystart),
            path_pkts: start.known.bdp_pkts,
            base_rtt_us: start.known.base_rtt_us,
        }
    }
}

/// As `enum cc_law` counts.
pub fn number_of(law: Law) -> u32 {
    laws().iter().position(|spec| spec == law.spec()).unwrap() as u32
}

pub fn values_of(law: Law) -> [u32; 6] {
    let mut values = [0; 6];
    values[..law.values().len()].copy_from_slice(law.values());
    values
}

/// SplitMix64: the same series in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// As many small numbers as large ones.
    pub fn number(&mut self) -> u32 {
        (self.next() as u32) >> self.below(32)
    }

    pub fn law(&mut self, name: &str) -> Law {
        loop {
            let spec = Law::named(name).unwrap().spec();
            let value = |p: &ParameterSpec| match self.below(3) {
                0 => p.initial,
                _ => p.min + (u64::from(self.number()) % u64::from(p.max - p.min + 1)) as u32,
            };
            let values: Vec<u32> = spec.parameters.iter().map(value).collect();
            if let Some(law) = Law::from_values(name, &values) {
                return law;
            }
        }
    }

    pub fn start(&mut self) -> Start {
        let idles = [Idle::Restart, Idle::Keep, Idle::Pace];
        Start {
            max_ssthresh_pkts: self.number() * self.below(2) as u32,
            initial_ssthresh_pkts: self.number() * self.below(2) as u32,
            initial_rate_bps: (self.next() >> self.below(64)) * self.below(2),
            idle: idles[self.below(3) as usize],
            hystart: self.below(2) == 1,
            known: KnownPath {
                bdp_pkts: self.number() * self.below(2) as u32,
                base_rtt_us: self.number() >> 16,
            },
        }
    }
}
