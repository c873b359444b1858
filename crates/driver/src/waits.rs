// SPDX-License-Identifier: MIT OR Apache-2.0
//! For how long a sender waited, and for what. It reads no clock.

use fatpath_transport::Limit;

/// For how long the thread of a sender waited for what, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// All that was given had left.
    pub data_ns: u64,
    /// Congestion control, or the device, let no more leave.
    pub path_ns: u64,
    /// The rate that was given.
    pub rate_ns: u64,
    /// The window that was given; by TCP, the kernel's send buffer.
    pub window_ns: u64,
    /// The receiver offered less, as it held what it had not written. By TCP, it offered no more, whatever the reason.
    pub receiver_ns: u64,
}

impl Waits {
    /// All of them.
    pub fn total_ns(&self) -> u64 {
        self.data_ns + self.path_ns + self.rate_ns + self.window_ns + self.receiver_ns
    }

    /// Flows that were kept by these waited together for `waited_ns`: it counts in equal parts for those that had something to
    /// send.
    pub(crate) fn add(&mut self, limits: impl Iterator<Item = Limit> + Clone, waited_ns: u64) {
        let kept = limits.filter(|limit| *limit != Limit::Data);
        let count = kept.clone().count() as u64;
        let mut left_ns = waited_ns;
        for (place, limit) in (0..count).zip(kept) {
            let part_ns = left_ns / (count - place);
            left_ns -= part_ns;
            *self.of(limit) += part_ns;
        }
        self.data_ns += left_ns;
    }

    /// A wait of connections that had something to send is divided as the kernel divided its own time meanwhile.
    pub(crate) fn divide(&mut self, waited_ns: u64, kernel: Chronograph, is_at_limit: bool) {
        let part = |of_us: u64| {
            let part = u128::from(waited_ns) * u128::from(of_us.min(kernel.busy_us));
            (part / u128::from(kernel.busy_us.max(1))) as u64
        };
        let receiver_ns = part(kernel.rwnd_limited_us);
        let window_ns = part(kernel.sndbuf_limited_us).min(waited_ns - receiver_ns);
        let rest_ns = waited_ns - receiver_ns - window_ns;
        self.receiver_ns += receiver_ns;
        self.window_ns += window_ns;
        match is_at_limit {
            true => self.rate_ns += rest_ns,
            false => self.path_ns += rest_ns,
        }
    }

    fn of(&mut self, limit: Limit) -> &mut u64 {
        match limit {
            Limit::Data => &mut self.data_ns,
            Limit::Path => &mut self.path_ns,
            Limit::Rate => &mut self.rate_ns,
            Limit::Window => &mut self.window_ns,
            Limit::Receiver => &mut self.receiver_ns,
        }
    }
}

/// Where the kernel's TCP says that its time went (`tcp_chrono` of Linux): of all connections, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chronograph {
    /// Something was on its way, or to be sent.
    pub busy_us: u64,
    /// Of that, the receiver's window let no more leave.
    pub rwnd_limited_us: u64,
    /// Of that, the send buffer held no more.
    pub sndbuf_limited_us: u64,
}

impl Chronograph {
    /// Of both.
    pub(crate) fn with(self, other: Chronograph) -> Chronograph {
        Chronograph {
            busy_us: self.busy_us + other.busy_us,
            rwnd_limited_us: self.rwnd_limited_us + other.rwnd_limited_us,
            sndbuf_limited_us: self.sndbuf_limited_us + other.sndbuf_limited_us,
        }
    }

    /// What has passed since `before`; a connection that was given up takes its part along.
    pub(crate) fn since(self, before: Chronograph) -> Chronograph {
        Chronograph {
            busy_us: self.busy_us.saturating_sub(before.busy_us),
            rwnd_limited_us: self.rwnd_limited_us.saturating_sub(before.rwnd_limited_us),
            sndbuf_limited_us: (self.sndbuf_limited_us).saturating_sub(before.sndbuf_limited_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit() -> impl Strategy<Value = Limit> {
        prop::sample::select(vec![
            Limit::Data,
            Limit::Path,
            Limit::Rate,
            Limit::Window,
            Limit::Receiver,
        ])
    }

    proptest! {
        /// No nanosecond is lost or counted twice.
        #[test]
        fn all_of_a_wait_is_counted(
            limits in prop::collection::vec(limit(), 0..40),
            waited_ns in 0..1u64 << 40,
            (busy_us, rwnd_limited_us, sndbuf_limited_us) in any::<(u64, u64, u64)>(),
            is_at_limit in any::<bool>(),
        ) {
            let mut waits = Waits::default();
            waits.add(limits.iter().copied(), waited_ns);
            prop_assert_eq!(waits.total_ns(), waited_ns);
            let has_data = limits.iter().any(|limit| *limit != Limit::Data);
            prop_assert!(!has_data || waits.data_ns == 0);
            let kernel = Chronograph { busy_us, rwnd_limited_us, sndbuf_limited_us };
            waits.divide(waited_ns, kernel, is_at_limit);
            prop_assert_eq!(waits.total_ns(), 2 * waited_ns);
        }
    }

    #[test]
    fn a_wait_is_divided_as_the_kernels_time_was() {
        let kernel = Chronograph {
            busy_us: 1000,
            rwnd_limited_us: 500,
            sndbuf_limited_us: 250,
        };
        let mut waits = Waits::default();
        waits.divide(4000, kernel, false);
        waits.divide(4000, kernel.since(kernel), true);
        let expected = Waits {
            receiver_ns: 2000,
            window_ns: 1000,
            path_ns: 1000,
            rate_ns: 4000,
            data_ns: 0,
        };
        assert_eq!(waits, expected);
    }
}
