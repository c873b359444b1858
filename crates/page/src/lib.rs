// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in the browser, and which requests the daemon's sockets let in.
//!
//! The page is files of web/dist, embedded; it asks the API as every other client. It only reads: no request
//! over TCP or the view socket changes anything. Start at [`guard`]; [`asset`] answers the page's files, `listen.rs`
//! is the way in over TCP, `connections.rs` how long who came in may stay, `live.rs` what a page follows. Of the
//! daemon it knows nothing: what it serves is a router, and what a page follows is a [`Source`].

mod assets;
mod connections;
mod error;
mod guard;
mod listen;
mod live;
mod row;
mod token;

pub use assets::asset;
pub use connections::{UnixEntrance, serve_tcp, serve_unix};
pub use error::error_answer;
pub use guard::{Asking, Peer, guard};
pub use listen::{PageState, TcpAccess, TcpEntrance};
pub use live::{MAX_STREAMS, Source, Streams};
pub use token::{Token, token_file};
