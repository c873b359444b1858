// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a transfer went, as each end tells the other.

use serde::{Deserialize, Serialize};

/// What the sending end did, and waited for, since it gave the first data to the carrier, microseconds: all of its time, each
/// moment once (RFC 4898, `SndLimTime*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderTimes {
    /// All that it had was sent: more was not read from standard input, or not found.
    pub source_us: u64,
    /// It stood in calls of the kernel: files were read.
    pub disk_us: u64,
    /// It worked, or waited for a processor.
    pub processor_us: u64,
    /// The rate that was given.
    pub rate_us: u64,
    /// Congestion control, or the device; and the last data were on their way.
    pub path_us: u64,
    /// The window that was given; by TCP the send buffer.
    pub window_us: u64,
    /// The receiver's window: by UDP as it held what it had not written, by TCP for whatever reason.
    pub receiver_us: u64,
    /// All that was asked for had arrived, and an answer had not: what else is wanted, or what became of it.
    pub answers_us: u64,
}

/// What kept the receiving end, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverTimes {
    /// While much waited to be written: it stood in calls of the kernel that write files.
    pub disk_us: u64,
    /// The same: it worked, or waited for a processor.
    pub processor_us: u64,
    /// The same: whoever reads its standard output did not.
    pub output_us: u64,
    /// While nothing was to be written: files were opened, read again, synced or renamed.
    pub finish_disk_us: u64,
    /// The same: it worked on them, or hashed.
    pub finish_processor_us: u64,
    /// The thread that reads the network never had to wait.
    pub overrun_us: u64,
}

/// What was measured of a disk at the beginning of a large transfer: read where the files are, or written and synced where they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// Bytes.
    pub bytes: u64,
    /// Of these, what was read and was in memory already.
    pub from_memory_bytes: u64,
    /// How long that took, microseconds.
    pub took_us: u64,
}

impl DiskFigures {
    /// Bits a second; `None`: most of it was in memory, and tells nothing of the disk.
    pub fn rate_bps(&self) -> Option<u64> {
        let tells = self.bytes > 0 && self.from_memory_bytes <= self.bytes / 2;
        let bits = 8_000_000 * u128::from(self.bytes);
        let rate_bps = bits / u128::from(self.took_us.max(1));
        tells.then(|| u64::try_from(rate_bps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_rate_unless_memory_answered() {
        let rate_bps = |bytes, from_memory_bytes, took_us| {
            let figures = DiskFigures {
                bytes,
                from_memory_bytes,
                took_us,
            };
            figures.rate_bps()
        };
        assert_eq!(rate_bps(1_000_000, 0, 100_000), Some(80_000_000));
        assert_eq!(rate_bps(1_000_000, 500_001, 100_000), None);
        assert_eq!(rate_bps(0, 0, 0), None);
        assert_eq!(rate_bps(u64::MAX, 0, 0), Some(u64::MAX));
    }
}
