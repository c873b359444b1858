// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy is, once read: rules in file order, each with what it matches and what it sets.
//!
//! Plain values. [`parse`](crate::parse) is what makes them, and it holds every range and limit named
//! here; nothing in this file checks again. Start at [`Policy`].

use crate::{Archive, HostSettings, Instruments, Problem, Rule};
use serde::Serialize;

/// The most rules that a policy may have: the kernel keeps one bit for each.
pub const MAX_RULES: usize = 1024;
/// The most prefixes that all rules together may name as destination, and as source.
pub const MAX_PREFIXES_PER_SIDE: usize = 65_536;
/// The longest policy file, in bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// A policy file's meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Policy {
    /// What the host must allow so that the rules can take effect.
    pub host: HostSettings,
    /// The rules in file order; the first that matches a flow is the flow's rule. At most [`MAX_RULES`].
    pub rules: Vec<Rule>,
    /// Which flows are sampled.
    pub instruments: Instruments,
    /// What is archived; none: nothing.
    pub archive: Option<Archive>,
    /// What is allowed but cannot be what was meant, in file order.
    pub warnings: Vec<Problem>,
}
