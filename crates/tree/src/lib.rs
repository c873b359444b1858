// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as `fatpath send` and `fatpath recv` see them: which names may come from another host, what is read below a folder
//! that nothing may leave, what shows that a file is still the same, and which of its bytes are there.
//!
//! It knows no protocol and moves nothing. Start reading at [`Tree`].

pub mod attributes;
mod case;
pub mod delete;
pub mod holes;
mod identity;
pub mod journal;
pub mod links;
mod names;
pub mod own;
mod patterns;
mod ranges;
pub mod system;
mod tree;

pub use identity::Identity;
pub use names::{BadName, OURS, checked, is_ours, shown};
pub use patterns::{BadPattern, Patterns};
pub use ranges::Ranges;
pub use tree::Tree;
