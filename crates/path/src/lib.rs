// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flows say of a path, and which settings follow from it.
//!
//! [`Evidence`] is what one flow showed. [`Paths`] keeps the latest of it for each path, and answers with an
//! [`Estimate`]: round-trip time, rate, kind of losses, each with its doubt. [`Path::choice`] makes a [`Choice`] of it:
//! settings, each with its reason. The crate is pure: `now` is an argument. Start at [`Paths`].

mod assigned;
mod choose;
mod estimate;
mod evidence;
mod following;
mod gain;
mod guard;
mod key;
mod measures;
mod moment;
mod path;
mod paths;
mod profile;

pub use choose::{Choice, Host, Trust, choose};
pub use estimate::{Estimate, Rate, Value};
pub use evidence::{Evidence, Limit, Loss, Under};
pub use following::{FollowedRate, Following};
pub use guard::{Guard, Quarantine, TakenBack};
pub use key::{PathKey, path_of};
pub use measures::{Asked, By, Found, Measures, Reading};
pub use moment::{Moment, Window};
pub use path::Path;
pub use paths::{Bounds, Known, Paths};
pub use profile::{Law, Profile};
