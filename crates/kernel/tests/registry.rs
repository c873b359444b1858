// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws are the host's: whose they are, and what becomes of those that nobody owns any more.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{Kernel, KernelError, OthersLaw, Places, laws_of_others, registered_laws};
use std::path::{Path, PathBuf};
use support::alone;

/// A kernel half with pins of its own, taken away when it is dropped.
struct Loaded {
    kernel: Kernel,
    pin_dir: PathBuf,
    laws_missing: Option<KernelError>,
}

impl Loaded {
    fn at(name: &str) -> Loaded {
        let pin_dir = PathBuf::from(format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()));
        let places = Places::new(Some(pin_dir.clone()), None).unwrap();
        let (kernel, _, laws_missing) = Kernel::load(places).unwrap();
        Loaded {
            kernel,
            pin_dir,
            laws_missing,
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.kernel.unload();
    }
}

fn remove_pins(directory: &Path) {
    for pin in std::fs::read_dir(directory).unwrap() {
        std::fs::remove_file(pin.unwrap().path()).unwrap();
    }
}

#[test]
fn laws_whose_pins_are_gone_are_registered_anew() {
    let Some(_alone) = alone() else { return };
    let gone = Loaded::at("gone");
    assert!(gone.laws_missing.is_none(), "{:?}", gone.laws_missing);
    remove_pins(&gone.pin_dir);
    assert!(registered_laws().unwrap().contains(&"fp_aimd".to_owned()));
    assert_eq!(laws_of_others(Path::new("/")), [], "nobody owns an orphan");
    let next = Loaded::at("next");
    assert!(next.laws_missing.is_none(), "{:?}", next.laws_missing);
    let owned = laws_of_others(Path::new("/"));
    assert!(owned.iter().any(|other| other.law == "fp_aimd"));
    assert!(owned.iter().all(|other| other.pin_dir == next.pin_dir));
}

#[test]
fn laws_of_a_living_instance_stay_its_own() {
    let Some(_alone) = alone() else { return };
    let first = Loaded::at("first");
    assert!(first.laws_missing.is_none(), "{:?}", first.laws_missing);
    assert_eq!(laws_of_others(&first.pin_dir), []);
    let second = Loaded::at("second");
    let said = second.laws_missing.as_ref().unwrap().to_string();
    assert!(said.contains(first.pin_dir.to_str().unwrap()), "{said}");
    let aimd = OthersLaw {
        law: "fp_aimd".to_owned(),
        pin_dir: first.pin_dir.clone(),
    };
    assert!(laws_of_others(&second.pin_dir).contains(&aimd));
    drop(second);
    assert!(
        laws_of_others(Path::new("/")).contains(&aimd),
        "still the first one's"
    );
}
