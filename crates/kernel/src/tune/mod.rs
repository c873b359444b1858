// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tuning: a policy becomes live, live flows meet it, and what flows were given is read back.
//!
//! Start at [`Kernel::publish`](crate::Kernel::publish); [`rule`] is a rule as the kernel half reads it, [`walk`]
//! reaches the flows that live already, [`flow`] reads what they have.

pub(crate) mod flow;
mod lists;
pub(crate) mod paths;
pub(crate) mod publish;
pub(crate) mod rule;
mod share;
pub(crate) mod walk;
