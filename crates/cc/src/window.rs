// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window of one flow.

use crate::raw::{Memory, Window};

impl Window {
    /// The threshold of a flow that has not met congestion, `TCP_INFINITE_SSTHRESH` of Linux.
    pub const NO_SSTHRESH: u32 = 0x7fff_ffff;

    /// A window in slow start with no bound.
    pub fn new(cwnd_pkts: u32) -> Window {
        Window {
            cwnd_pkts,
            ssthresh_pkts: Window::NO_SSTHRESH,
            clamp_pkts: u32::MAX,
            srtt_us: 0,
            now_us: 0,
            memory: Memory::default(),
        }
    }

    /// Slow start or its limited form, not congestion avoidance.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd_pkts < self.ssthresh_pkts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_a_flow_fits_into_the_kernels_socket() {
        let private_bytes_of_a_socket = 104; // ICSK_CA_PRIV_SIZE
        assert!(size_of::<Memory>() <= private_bytes_of_a_socket);
    }
}
