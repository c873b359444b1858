// SPDX-License-Identifier: MIT OR Apache-2.0
//! A police's program run on a frame that nobody sent (BPF_PROG_TEST_RUN): for tests, and to measure it.
#![allow(unsafe_code)] // libbpf-rs runs only programs that it loaded

use crate::error::KernelError;
use crate::police::Police;
use crate::police::orders::{Hook, hook_of};
use libbpf_rs::libbpf_sys as sys;
use std::io;
use std::os::fd::AsRawFd;

/// XDP_DROP and TC_ACT_SHOT.
const DROP: [u32; 2] = [1, 2];
/// XDP_PASS and TC_ACT_UNSPEC.
const PASS: [u32; 2] = [2, u32::MAX];

/// A frame may grow by this much.
const HEADROOM_BYTES: usize = 256;

/// What came of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Whether it is dropped.
    pub is_dropped: bool,
    /// As it goes on.
    pub frame: Vec<u8>,
    /// Nanoseconds a run, the kernel's own mean.
    pub run_ns: u32,
}

impl Police {
    /// Runs the program so many times on a frame, which counts in the tallies.
    ///
    /// # Errors
    /// A frame shorter than an Ethernet header, or longer than the kernel takes; an unknown verdict.
    pub fn rehearse(&self, frame: &[u8], times: u32) -> Result<Rehearsal, KernelError> {
        let failed = || KernelError::io("run the policer on a frame");
        let program = self.program()?;
        let mut out = vec![0; frame.len() + HEADROOM_BYTES];
        let mut run = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as u64,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            data_out: out.as_mut_ptr().cast(),
            data_size_out: out.len() as u32,
            repeat: times as i32,
            ..Default::default()
        };
        // SAFETY: an open descriptor; both buffers are as long as said, and outlive the call.
        let error = unsafe { sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut run) };
        if error != 0 {
            return Err(failed()(io::Error::from_raw_os_error(-error)));
        }
        out.truncate(run.data_size_out as usize);
        let hook = usize::from(hook_of(&self.facts) == Hook::Tc);
        let is_dropped = run.retval == DROP[hook];
        if !is_dropped && run.retval != PASS[hook] {
            let verdict = format!("an unknown verdict: {}", run.retval);
            return Err(failed()(io::Error::other(verdict)));
        }
        Ok(Rehearsal {
            is_dropped,
            frame: out,
            run_ns: run.duration,
        })
    }
}
