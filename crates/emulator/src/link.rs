// SPDX-License-Identifier: MIT OR Apache-2.0
//! A link that is up.

use crate::topology::LinkSpec;
use crate::tun::Tun;

/// A link of a network: its description, and the open devices of its two ends.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) spec: LinkSpec,
    pub(crate) tuns: [Tun; 2],
}
