// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends together over a channel that the test rules.

mod acks;
mod channel;
mod classic;
mod ecn;
mod offload;
mod oracle;
mod random;
mod theory;
mod traces;
mod windows;
