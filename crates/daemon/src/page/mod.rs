// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in the browser, and which requests are let in.
//!
//! The page is files of web/dist, embedded; it asks the API as every other client. It only reads: no request
//! over TCP or the view socket changes anything. Start at [`guard`]; [`assets`] are the page's files,
//! [`listen`] is the way in over TCP, [`connections`] how long who came in may stay, [`live`] what a page follows.

pub(crate) mod assets;
pub(crate) mod connections;
pub(crate) mod guard;
pub(crate) mod listen;
pub(crate) mod live;
mod row;
mod token;

pub(crate) use guard::Peer;
pub(crate) use listen::{PageState, TcpAccess, TcpEntrance};
pub(crate) use token::Token;
pub use token::token_file;
