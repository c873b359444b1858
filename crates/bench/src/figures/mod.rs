// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures: each is one file here and one entry in [`FIGURES`].

mod aimd_window;
mod connect_rate;
mod connect_rate_tuned;
mod unshaped;

use crate::figure::Figure;

/// All of them, in the order in which they are measured.
pub const FIGURES: [&Figure; 4] = [
    &connect_rate::FIGURE,
    &connect_rate_tuned::FIGURE,
    &unshaped::FIGURE,
    &aimd_window::FIGURE,
];
