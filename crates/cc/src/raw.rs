// SPDX-License-Identifier: MIT OR Apache-2.0
//! The twin of host.c: the C functions and the structs that they share.
#![allow(unsafe_code)] // declarations of the laws' C

use crate::{RttSample, RudeNow, Window};
use std::ffi::{c_char, c_int};

/// `CC_PARAMS`.
pub const PARAMS: usize = 6;

/// `struct cc_start`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawStart {
    pub initial_rate_bps: u64,
    pub max_ssthresh_pkts: u32,
    pub initial_ssthresh_pkts: u32,
    pub idle: u32,
    pub hystart: u32,
}

/// `struct cc_hystart`, `struct cc_memo` and `struct cc_memory`, of which Rust reads nothing by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawMemory {
    credit: u64,
    prior_credit: u64,
    memo: [u32; PARAMS + 2],
    hystart: [u32; 5],
    slow_start_credit: u32,
    resume_pkts: u32,
    paced_from_pkts: u32,
    undo_limit_pkts: u32,
    flags: u32,
    pad: u32,
}

/// `struct cc_path`, of which Rust reads nothing by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RawPath {
    rates_and_times: [u64; 6],
    rtts_losses_and_counts: [u32; 6],
    phase: [u8; 4],
}

/// `struct cc_rude`: what is remembered of a flow that is rude, or going polite.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRude {
    pub(crate) fair: Window,
    path: RawPath,
    recovers_until_us: u64,
    round_until_us: u64,
    credits: [u32; 2],
    prior: [u32; 2],
    counted: [u32; 2],
    round_pkts: u32,
    pad: u32,
}

impl RawRude {
    /// Before `cc_rude_begin`: all 0.
    pub fn none() -> RawRude {
        RawRude {
            fair: Window::new(0),
            path: RawPath::default(),
            recovers_until_us: 0,
            round_until_us: 0,
            credits: [0; 2],
            prior: [0; 2],
            counted: [0; 2],
            round_pkts: 0,
            pad: 0,
        }
    }
}

/// `struct cc_param`.
#[repr(C)]
pub struct RawParam {
    pub name: *const c_char,
    pub meaning: *const c_char,
    pub least: u32,
    pub most: u32,
    pub initial: u32,
}

/// `struct fatpath_law`.
#[repr(C)]
pub struct RawLaw {
    pub name: *const c_char,
    pub params: *const RawParam,
}

unsafe extern "C" {
    pub static fatpath_laws: [RawLaw; 0];
    #[cfg(test)]
    pub static fatpath_sizes: [u32; 6];
    pub fn fatpath_accepts(law: u32, values: *const u32) -> c_int;
    pub fn fatpath_begin(w: *mut Window, s: *const RawStart);
    pub fn fatpath_acked(law: u32, values: *const u32, s: *const RawStart, w: *mut Window, n: u32);
    pub fn fatpath_ssthresh(law: u32, values: *const u32, w: *mut Window, in_flight: u32) -> u32;
    pub fn fatpath_undo_cwnd(w: *mut Window, prior_cwnd_pkts: u32) -> u32;
    pub fn fatpath_rtt_sample(
        w: *mut Window,
        s: *const RawStart,
        rtt_us: u32,
        acked_seq: u32,
        next_seq: u32,
    );
    pub fn fatpath_idle_restart(
        w: *mut Window,
        s: *const RawStart,
        idle_us: u64,
        rto_us: u32,
        initial_window_pkts: u32,
    );
    pub fn fatpath_transmission_starts(
        w: *mut Window,
        s: *const RawStart,
        srtt_us: u32,
        mss_bytes: u32,
    ) -> u64;
    pub fn fatpath_ack_arrived(w: *mut Window, in_flight_pkts: u32) -> c_int;
    pub fn fatpath_rude_begin(r: *mut RawRude, polite: *const Window, now: *const RudeNow);
    pub fn fatpath_rude_resume(r: *mut RawRude, now: *const RudeNow);
    pub fn fatpath_rude_acked(
        law: u32,
        values: *const u32,
        s: *const RawStart,
        r: *mut RawRude,
        now: *const RudeNow,
        rtt: *const RttSample,
    );
    pub fn fatpath_rude_congested(
        law: u32,
        values: *const u32,
        r: *mut RawRude,
        now: *const RudeNow,
    );
    pub fn fatpath_rude_timed_out(
        law: u32,
        values: *const u32,
        r: *mut RawRude,
        now: *const RudeNow,
    );
    pub fn fatpath_rude_recovery_begins(r: *mut RawRude);
    pub fn fatpath_rude_undone(r: *mut RawRude);
    pub fn fatpath_rude_cwnd_pkts(now: *const RudeNow) -> u32;
    pub fn fatpath_rude_pacing_bytes_per_s(
        r: *const RawRude,
        now: *const RudeNow,
        share_bytes_per_s: u64,
    ) -> u64;
    pub fn fatpath_rude_off_now(r: *mut RawRude, in_flight_pkts: u32);
    pub fn fatpath_rude_off_nicely(r: *mut RawRude, in_flight_pkts: u32) -> u32;
    pub fn fatpath_rude_has_converged(used_pkts: u32, fair_pkts: u32, milli: u32) -> c_int;
    pub fn fatpath_rude_shadow_acked(
        law: u32,
        values: *const u32,
        s: *const RawStart,
        r: *mut RawRude,
        rtt: *const RttSample,
        r_pkts: u32,
        used_pkts: u32,
        acked_pkts: u32,
    ) -> u32;
    pub fn fatpath_rude_shadow_ssthresh(
        law: u32,
        values: *const u32,
        r: *mut RawRude,
        r_pkts: u32,
    ) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structs_are_as_large_as_their_twins() {
        let twins = [
            size_of::<Window>(),
            size_of::<RawMemory>(),
            size_of::<RawStart>(),
            size_of::<RawRude>(),
            size_of::<RudeNow>(),
            size_of::<RttSample>(),
        ];
        // SAFETY: a constant.
        let sizes = unsafe { fatpath_sizes }.map(|size| size as usize);
        assert_eq!(twins, sizes);
        let private_bytes_of_a_socket = 104; // ICSK_CA_PRIV_SIZE
        assert!(size_of::<RawMemory>() <= private_bytes_of_a_socket);
    }
}
