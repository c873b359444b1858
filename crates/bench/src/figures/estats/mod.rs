// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the instruments cost, and that what they lose is counted.

pub mod active;
pub mod bulk;
pub mod connect_rate;
pub mod idle;
pub mod lost;
pub mod walk;

/// All flows, as without a section.
const ALL: &str = "[instruments]\nflows = 'all'\n";
