// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of a transfer went, as each end tells the other: `bottleneck.rs` puts both together.

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
