// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruments know of a rule of the policy.

/// A rule of the live policy, as far as flows are judged by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// The send buffer that it sets, which locks that as a program would, bytes.
    pub send_buffer_bytes: Option<u64>,
    /// The same of the receive buffer.
    pub receive_buffer_bytes: Option<u64>,
    /// It is not of the policy's file: what was learned of a path gave it.
    pub is_learned: bool,
    /// Its flows are left alone, or tuned by hand: nothing is learned of them.
    pub teaches_nothing: bool,
    /// The most that its flows send, bits a second.
    pub pacing_rate_bps: Option<u64>,
    /// What the administrator says that its path carries, bits a second.
    pub path_rate_bps: Option<u64>,
}
