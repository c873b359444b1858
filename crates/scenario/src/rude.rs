// SPDX-License-Identifier: MIT OR Apache-2.0
//! The key `rude` of a `[[flow]]`: without congestion control, and for how long.

use super::flow::{RudeOff, RudeRequest};
use super::units;
use super::values::{Refusal, Value};

/// `{ rate = "950mbit", off = "nicely", at = "3s" }`, each or none of them.
pub(super) fn request(value: &Value) -> Result<RudeRequest, Refusal> {
    let mut section = value.section()?;
    let share_bps = section.optional("rate", units::rate_bps);
    let nicely = section.optional("off", is_nicely);
    let at_ns = section.optional("at", units::moment_ns);
    let off = match (nicely, at_ns) {
        (Some(nicely), Some(at_ns)) => Some(RudeOff { at_ns, nicely }),
        (None, None) => None,
        _ if section.is_noted() => None,
        _ => {
            return Err(
                section.refusal_here("off and at belong together, such as \"nicely\" and \"3s\"")
            );
        }
    };
    section.finish()?;
    Ok(RudeRequest { share_bps, off })
}

fn is_nicely(text: &str) -> Result<bool, &'static str> {
    match text {
        "nicely" => Ok(true),
        "now" => Ok(false),
        _ => Err("\"now\" or \"nicely\""),
    }
}
