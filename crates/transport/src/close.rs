// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a connection. Either end may close; it says so once, and again to whatever the other sends after that,
//! for that shows that it was not heard.

/// Why an end closed: 0 is that all has arrived, 65535 that its key is used up and was not renewed; others are the programs'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The key of the end that closes is used up.
    pub const KEY_EXHAUSTED: CloseCode = CloseCode(u16::MAX);
}

/// What an end knows of the connection's end.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    own: Option<CloseCode>,
    peers: Option<CloseCode>,
    /// It is to be said.
    is_due: bool,
}

impl Closing {
    /// This end closes; the first code counts.
    pub(crate) fn close(&mut self, code: CloseCode) {
        self.own.get_or_insert(code);
        self.is_due = true;
    }

    /// The other end has closed.
    pub(crate) fn closed_by_peer(&mut self, code: CloseCode) {
        self.peers.get_or_insert(code);
        self.is_due = false;
    }

    /// The other end has sent something else.
    pub(crate) fn heard(&mut self) {
        self.is_due |= self.own.is_some();
    }

    pub(crate) fn peers(&self) -> Option<CloseCode> {
        self.peers
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.own.is_some() || self.peers.is_some()
    }

    /// What is to be said now.
    pub(crate) fn take_due(&mut self) -> Option<CloseCode> {
        std::mem::take(&mut self.is_due)
            .then_some(self.own)
            .flatten()
    }
}
