// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws are the host's: whose they are, and what becomes of those that nobody owns any more.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{OthersLaw, laws_of_others, registered_laws, unregister_unseen_laws};
use libbpf_rs::MapType;
use libbpf_rs::query::MapInfoIter;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use support::{Loaded, alone};

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
    assert!(
        owned
            .iter()
            .all(|other| other.pin_dir.as_ref() == Some(&next.pin_dir))
    );
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
        pin_dir: Some(first.pin_dir.clone()),
    };
    assert!(laws_of_others(&second.pin_dir).contains(&aimd));
    drop(second);
    assert!(
        laws_of_others(Path::new("/")).contains(&aimd),
        "still the first one's"
    );
}

/// Runs `work` as in a container: in a mount namespace with a BPF file system of its own.
#[allow(unsafe_code)]
fn in_a_container<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            // SAFETY: the thread's file system context becomes its own; no descriptor is closed.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.unwrap();
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).unwrap();
            mount("bpf", "/sys/fs/bpf", "bpf", MountFlags::empty(), None).unwrap();
            work()
        });
        entered.join().unwrap()
    })
}

fn is_unseen(law: &OthersLaw) -> bool {
    law.law == "fp_aimd" && law.pin_dir.is_none()
}

/// Each sees only its own pins, and the laws are the host's.
#[test]
fn an_instance_that_is_not_seen_keeps_its_laws() {
    let Some(_alone) = alone() else { return };
    let earlier = law_ids();
    let first = Loaded::at("host");
    assert!(first.laws_missing.is_none(), "{:?}", first.laws_missing);
    let laws = law_ids_besides(&earlier);
    assert!(!laws.is_empty());
    in_a_container(|| {
        assert!(laws_of_others(Path::new("/")).iter().any(is_unseen));
        let second = Loaded::at("container");
        let said = second.laws_missing.as_ref().unwrap().to_string();
        assert!(said.contains("fatpath unload --orphans"), "{said}");
        let now = law_ids_besides(&earlier);
        assert_eq!(now, laws, "the first one's are still registered");
        // On request they go.
        let gone = unregister_unseen_laws();
        assert!(gone.contains(&"fp_aimd".to_owned()), "{gone:?}");
    });
    assert!(!registered_laws().unwrap().contains(&"fp_aimd".to_owned()));
}

#[test]
fn the_host_does_not_take_the_laws_of_a_container() {
    let Some(_alone) = alone() else { return };
    let earlier = law_ids();
    in_a_container(|| {
        let first = Loaded::at("container");
        assert!(first.laws_missing.is_none(), "{:?}", first.laws_missing);
        let laws = law_ids_besides(&earlier);
        assert!(!laws.is_empty());
        let on_the_host = std::thread::scope(|scope| {
            let load = || {
                Loaded::at("host")
                    .laws_missing
                    .as_ref()
                    .map(ToString::to_string)
            };
            scope.spawn(move || in_the_host(load)).join().unwrap()
        });
        let said = on_the_host.unwrap();
        assert!(said.contains("container"), "{said}");
        assert_eq!(law_ids_besides(&earlier), laws);
    });
}

/// Back from a mount namespace to that of the process.
#[allow(unsafe_code)]
fn in_the_host<T>(work: impl FnOnce() -> T) -> T {
    let host = File::open("/proc/self/ns/mnt").unwrap();
    // SAFETY: as in in_a_container().
    unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
    move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::Mount)).unwrap();
    work()
}

/// Those that came since. An earlier law that is no longer registered lives until the last flow with it has ended,
/// at any moment.
fn law_ids_besides(earlier: &[u32]) -> Vec<u32> {
    let mut laws = law_ids();
    laws.retain(|id| !earlier.contains(id));
    laws
}

/// The struct_ops maps that there are.
fn law_ids() -> Vec<u32> {
    let laws = MapInfoIter::default().filter(|map| map.ty == MapType::StructOps);
    laws.map(|map| map.id).collect()
}
