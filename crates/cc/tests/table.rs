// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of laws, and what it refuses.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_cc::{Law, Unit, laws};

#[test]
fn reno_is_the_first_law_and_has_no_parameters() {
    assert_eq!(Law::named("reno"), Some(Law::RENO));
    assert_eq!(laws()[0].name, "reno");
    assert!(laws()[0].parameters.is_empty());
}

#[test]
fn a_law_is_found_by_the_kernels_name_too() {
    for spec in laws() {
        assert_eq!(
            Law::named(spec.name),
            Law::named(&format!("fp_{}", spec.name))
        );
    }
    assert_eq!(Law::named("vegas"), None);
}

#[test]
fn what_people_write_becomes_the_laws_integers() {
    let law = Law::named("aimd").unwrap().with("a", 6.0).unwrap();
    let law = law.with("b", 0.3).unwrap();
    assert_eq!(law.values(), [6000, 300]);
    assert_eq!(law.spec().parameters[0].unit, Unit::Milli);
    assert_eq!(law.to_string(), "aimd(a = 6, b = 0.3)");
    assert_eq!(Law::from_values("fp_aimd", &[6000, 300, 7, 8]), Some(law));
}
