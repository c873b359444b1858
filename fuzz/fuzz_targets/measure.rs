// SPDX-License-Identifier: MIT OR Apache-2.0
//! measure.toml must parse or be refused, whatever it says; what it lists has a schedule.

#![no_main]

use fatpath_measure::{Schedule, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(mut plan) = parse(text) else { return };
    plan.join_meshes("a");
    let now_us = 1_795_392_000_000_000;
    let schedule = Schedule::new(&plan.tests, 1, now_us);
    for index in 0..plan.tests.len() {
        assert!(schedule.due_us(index).is_some_and(|due_us| due_us > now_us));
    }
});
