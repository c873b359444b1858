// SPDX-License-Identifier: MIT OR Apache-2.0
//! Both ends under a clock that the test moves, over the cells of `fatpath-link`.

mod attacks;
mod delivery;
mod ecn;
mod ends;
mod path_mtu;
mod renewal;
mod rude;
mod transfer;
