// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruments on real flows over emulated paths: each event comes when its cause is there, counters
//! are those of TCP_INFO, bounds hold, and what is lost is counted.
#![allow(unsafe_code)] // getsockopt(TCP_INFO)
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod budget;
mod events;
mod extremes;
mod received;
mod tcp_info;
mod walk;

use fatpath_api::Sample;
use fatpath_kernel::Kernel;
use fatpath_policy::{Classifier, Policy, parse};
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::ring::until;
use support::{Loaded, Turn, turn};

const TICK: Duration = Duration::from_millis(10);

/// In an emulated machine all is slow.
const LONG: Duration = Duration::from_secs(60);

/// A rule that takes nobody: `[instruments]` alone counts here.
fn policy(instruments: &str) -> Policy {
    parse(&format!("[instruments]\n{instruments}\n"), None).unwrap()
}

/// A kernel half that samples as this section says.
fn sampling(name: &str, instruments: &str) -> Loaded {
    let loaded = Loaded::at(name);
    assert!(loaded.kernel.has_instruments());
    order(&loaded.kernel, instruments);
    loaded
}

/// The same by the kernel half that tests take in turn, with nothing left to read of the tests before: for what does not
/// ask how much was counted.
fn sampling_in_turn(instruments: &str) -> Option<Turn> {
    let loaded = turn()?;
    order(&loaded.kernel, instruments);
    let mut looks = 0..1;
    let once = |_: BorrowedFd, _| Ok(looks.next().is_some());
    let mut samples = loaded.kernel.samples().unwrap();
    samples.follow(once, drop).unwrap();
    Some(loaded)
}

fn order(kernel: &Kernel, instruments: &str) {
    publish(kernel, &policy(instruments));
}

fn publish(kernel: &Kernel, policy: &Policy) {
    kernel.publish(policy, &Classifier::build(policy)).unwrap();
    kernel.set_instruments(&policy.instruments).unwrap();
}

/// Reads samples while `work` runs; `work` may look at those that came so far.
fn reading<T>(kernel: &Kernel, work: impl FnOnce(&Read) -> T) -> T {
    let read = Read::default();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let stop = || read.ended.load(Ordering::Relaxed);
            let keep = |sample| read.samples.lock().unwrap().push(sample);
            let mut samples = kernel.samples().unwrap();
            samples.follow(until(TICK, stop), keep).unwrap();
        });
        let _end = End(&read);
        let done = work(&read);
        drop(_end);
        reader.join().unwrap();
        done
    })
}

/// A failed `work` ends the reader too.
struct End<'r>(&'r Read);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}

/// What came so far.
#[derive(Default)]
struct Read {
    samples: Arc<Mutex<Vec<Sample>>>,
    ended: AtomicBool,
}

impl Read {
    /// The samples of the flow with this local end.
    fn of(&self, flow: &TcpStream) -> Vec<Sample> {
        let local = flow.local_addr().unwrap();
        let mut samples = self.samples.lock().unwrap().clone();
        samples.retain(|sample| sample.flow.local == local);
        samples
    }

    /// Waits until one of them is like this.
    fn until(&self, flow: &TcpStream, what: &str, is: impl Fn(&Sample) -> bool) -> Sample {
        let end = Instant::now() + LONG;
        loop {
            let found = self.of(flow).into_iter().find(&is);
            if let Some(sample) = found {
                return sample;
            }
            assert!(Instant::now() < end, "waited for {what}");
            std::thread::sleep(TICK);
        }
    }
}

/// The sample of one flow by a walk over all.
fn walked(kernel: &Kernel, flow: &TcpStream) -> Sample {
    try_walked(kernel, flow).unwrap()
}

/// Before Linux 6.17 a walk may miss a connection while others begin or end.
fn try_walked(kernel: &Kernel, flow: &TcpStream) -> Option<Sample> {
    let local = flow.local_addr().unwrap();
    let mut found = None;
    kernel
        .walk_samples(|sample| {
            if sample.flow.local == local {
                found = Some(sample);
            }
        })
        .unwrap();
    found
}
