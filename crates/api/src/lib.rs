// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of the daemon's HTTP API, each once and in both directions: the daemon fills and serializes
//! them, the command line deserializes them, the OpenAPI document and the page's TypeScript are made of them.
//!
//! An [`Endpoint`] names the address of a question and the types of its query and its answer. The crate is
//! pure data: it measures nothing and decides nothing. Start at [`endpoint`].

mod archive;
mod bbr;
mod changes;
#[cfg(feature = "document")]
pub mod document;
pub mod endpoint;
mod extremes;
mod finding;
mod flow;
mod listing;
mod live;
mod mesh;
mod paths;
mod phases;
mod query;
mod rude;
mod sample;
mod status;
mod test_outcome;
mod tuned_flow;
mod view;

/// The OpenAPI document as `cargo xtask openapi` wrote it.
pub const OPENAPI: &str = include_str!("../openapi.json");

pub use archive::*;
pub use bbr::*;
pub use changes::*;
pub use endpoint::Endpoint;
pub use extremes::*;
pub use finding::*;
pub use flow::*;
pub use listing::*;
pub use live::*;
pub use mesh::*;
pub use paths::*;
pub use phases::*;
pub use query::*;
pub use rude::*;
pub use sample::*;
pub use status::*;
pub use test_outcome::*;
pub use tuned_flow::*;
pub use view::*;
