// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parser of scenario files against arbitrary text: a scenario or a problem, never a panic.
#![no_main]

use fatpath_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(problem) = Scenario::parse("fuzz.toml", text) {
        problem.to_string();
    }
});
