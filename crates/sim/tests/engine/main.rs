// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole simulations: what they give is what the formulas say, and nothing is lost uncounted.

mod bbr;
mod flows;
mod kernel_cubic;
mod known_path;
mod mixed;
mod networks;
mod refused;
mod repeats;
mod rude;
mod shared_rate;
mod sources;
mod support;
mod theory;
