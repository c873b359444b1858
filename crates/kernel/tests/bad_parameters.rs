// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters that no policy can give, written straight into the map of rules: the law goes on as
//! Reno, and each flow that meets them is counted once for each change.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_kernel::{Kernel, Places, bpffs_is_mounted};
use fatpath_policy::{Classifier, parse};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

/// The clamp keeps the window in full use, so that the law is asked.
const POLICY: &str = "[[rule]]\nname = 'loopback'\ndestination = ['127.0.11.0/24']\ncwnd_clamp = 4\n\
                      congestion_control = { law = 'fp_aimd', a = 5, b = 0.3 }\n";

/// `law_params` stand right before `law` in `struct fp_rule`: six of four bytes.
const PARAMS_BYTES: usize = 24;

/// The kernel half with pins of its own, taken away when it is dropped.
struct Loaded {
    kernel: Kernel,
    pin_dir: PathBuf,
}

impl Loaded {
    fn with_policy() -> Loaded {
        let pin_dir = PathBuf::from(format!("/sys/fs/bpf/fatpath-bad-{}", std::process::id()));
        let places = Places::new(Some(pin_dir.clone()), None).unwrap();
        let (kernel, _, laws_missing) = Kernel::load(places).unwrap();
        let loaded = Loaded { kernel, pin_dir };
        assert!(laws_missing.is_none(), "{laws_missing:?}");
        let policy = parse(POLICY, None).unwrap();
        let tables = Classifier::build(&policy);
        loaded.kernel.publish(&policy, &tables).unwrap();
        loaded
    }

    /// Writes the first parameter, thousandths, into every rule that gives the law.
    fn set_a(&self, a_milli: u32) {
        let rules = MapHandle::from_pinned_path(self.pin_dir.join("fp_rules")).unwrap();
        let mut written = 0;
        for key in rules.keys() {
            let mut rule = rules.lookup(&key, MapFlags::ANY).unwrap().unwrap();
            let Some(law) = rule.windows(8).position(|bytes| bytes == b"fp_aimd\0") else {
                continue;
            };
            let first = law - PARAMS_BYTES;
            rule[first..first + 4].copy_from_slice(&a_milli.to_ne_bytes());
            rules.update(&key, &rule, MapFlags::ANY).unwrap();
            written += 1;
        }
        assert_eq!(written, 1);
    }

    fn bad(&self) -> u64 {
        self.kernel.counts().unwrap().bad_law_parameters
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = self.kernel.unload() {
            eprintln!("unload: {error}");
        }
    }
}

/// As the tests of the whole program: laws are the host's.
fn alone() -> Option<File> {
    if !rustix::process::geteuid().is_root() || !bpffs_is_mounted() {
        println!("skipped: not root, or no BPF file system");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("fatpath-tests.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    Some(lock)
}

/// Sends enough for the window to be in full use, and waits until it is there.
fn carry(sender: &mut TcpStream, receiver: &mut TcpStream) {
    let data = vec![0; 2_000_000];
    std::thread::scope(|scope| {
        scope.spawn(|| sender.write_all(&data).unwrap());
        receiver.read_exact(&mut vec![0; data.len()]).unwrap();
    });
}

#[test]
fn a_law_with_bad_parameters_is_reno_and_is_counted_once() {
    let Some(_alone) = alone() else { return };
    let loaded = Loaded::with_policy();
    let listener = TcpListener::bind("127.0.11.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut receiver = listener.accept().unwrap().0;
    let local = sender.local_addr().unwrap();
    carry(&mut sender, &mut receiver);
    assert_eq!(loaded.bad(), 0);
    for change in 1..=2 {
        loaded.set_a(0);
        carry(&mut sender, &mut receiver);
        carry(&mut sender, &mut receiver);
        assert_eq!(loaded.bad(), change);
        loaded.set_a(5000);
        carry(&mut sender, &mut receiver);
        assert_eq!(loaded.bad(), change);
    }
    let flows = loaded.kernel.flows().unwrap();
    let flow = flows.iter().find(|flow| flow.local == local).unwrap();
    assert_eq!(flow.measures.law, "fp_aimd");
}
