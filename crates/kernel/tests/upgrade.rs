// SPDX-License-Identifier: MIT OR Apache-2.0
//! One build replaces another while flows go on, in both directions; one that the kernel refuses replaces nothing.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_kernel::{Build, Kernel, KernelError, Missing, Places, Takeover};
use fatpath_policy::{Classifier, Policy, parse};
use libbpf_rs::{MapCore, MapHandle};
use socket2::SockRef;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::alone;

const REFUSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/refused.bpf.o"));

/// Versions of the ABI: no build of the sources has them.
const FIRST: u32 = 1001;
const SECOND: u32 = 1002;

/// The longest that a flow may be without its tuning.
const GAP: Duration = Duration::from_secs(1);

/// The longest that a new flow may wait for it: two emulated kernels at once took 1.15 s.
const GAP_OF_NEW: Duration = Duration::from_millis(1500);

/// Between two exchanges: traffic without a pause takes four fifths of an emulated processor from what is loaded meanwhile.
const PAUSE: Duration = Duration::from_millis(10);

const HOST: &str = "127.0.21.1:0";

fn policy() -> Policy {
    let text = "[[rule]]\nname = 'r'\ndestination = ['127.0.21.0/24']\n\
        congestion_control = { law = 'fp_aimd', a = 2, b = 0.5 }\nnotsent_lowat = 70000\n";
    parse(text, None).unwrap()
}

/// Pins of a build, taken away when they are dropped.
struct Pinned {
    places: Places,
}

impl Pinned {
    fn new() -> Pinned {
        let pin_dir = format!("/sys/fs/bpf/fatpath-upgrade-{}", std::process::id());
        let places = Places::new(Some(pin_dir.into()), None).unwrap();
        Pinned { places }
    }

    fn load(&self, build: &Build) -> Result<(Kernel, Takeover), KernelError> {
        let policy = policy();
        let (kernel, takeover, missing) = Kernel::load_build(self.places.clone(), &policy, build)?;
        let Missing {
            laws,
            instruments,
            release,
        } = missing;
        assert!(
            laws.is_none() && instruments.is_none() && release.is_none(),
            "{laws:?} {instruments:?} {release:?}"
        );
        kernel.publish(&policy, &Classifier::build(&policy))?;
        Ok((kernel, takeover))
    }

    fn load_version(&self, version: u32) -> Takeover {
        self.load(&Build::of_version(version)).unwrap().1
    }

    fn staging(&self) -> PathBuf {
        format!("{}-next", self.places.pin_dir.display()).into()
    }

    /// Names of the pins, and ids of the laws' maps.
    fn pins(&self) -> BTreeSet<(String, u32)> {
        let entries = std::fs::read_dir(&self.places.pin_dir).unwrap();
        let named = entries.map(|entry| {
            let pin = entry.unwrap().path();
            let name = pin.file_name().unwrap().to_str().unwrap().to_owned();
            let law = name.starts_with("law_").then(|| id_of(&pin));
            (name, law.unwrap_or(0))
        });
        named.collect()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Ok(kernel) = Kernel::open_to_change(self.places.clone()) {
            let _ = kernel.unload();
        }
    }
}

fn id_of(pin: &Path) -> u32 {
    let map = MapHandle::from_pinned_path(pin).unwrap();
    map.info().unwrap().info.id
}

fn is_tuned(flow: &TcpStream) -> bool {
    let law = SockRef::from(flow).tcp_congestion().unwrap_or_default();
    law.starts_with(b"fp_aimd\0")
}

/// Flows to a server on the loopback device, until this is dropped.
struct Traffic {
    stop: AtomicBool,
    /// All clients have ended.
    is_over: AtomicBool,
    resets: AtomicU32,
    connections: AtomicU32,
}

impl Traffic {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends what comes back where it came from.
    fn serve(&self, listener: &TcpListener) {
        listener.set_nonblocking(true).unwrap();
        std::thread::scope(|scope| {
            while !self.is_over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((flow, _)) => drop(scope.spawn(move || self.echo(flow))),
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
    }

    fn echo(&self, mut flow: TcpStream) {
        let mut bytes = [0; 16384];
        flow.set_nonblocking(false).unwrap();
        while let Ok(read @ 1..) = flow.read(&mut bytes) {
            self.done(flow.write_all(&bytes[..read]));
        }
    }

    fn done(&self, result: std::io::Result<()>) {
        match result.map_err(|error| error.kind()) {
            Err(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) if !self.stops() => {
                self.resets.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn exchange(&self, flow: &mut TcpStream) {
        let mut bytes = [7; 16384];
        let sent = flow.write_all(&bytes);
        self.done(sent.and_then(|()| flow.read_exact(&mut bytes)));
    }

    /// The longest time in which a flow that lives all the while was not tuned.
    fn longest_gap_of_one(&self, to: &TcpListener) -> Duration {
        let mut flow = TcpStream::connect(to.local_addr().unwrap()).unwrap();
        let (mut tuned, mut longest) = (Instant::now(), Duration::ZERO);
        while !self.stops() {
            self.exchange(&mut flow);
            if is_tuned(&flow) {
                tuned = Instant::now();
            }
            longest = longest.max(tuned.elapsed());
            std::thread::sleep(PAUSE);
        }
        longest
    }

    /// The longest time after which a new flow was tuned.
    fn longest_gap_of_new(&self, to: &TcpListener) -> Duration {
        let mut longest = Duration::ZERO;
        while !self.stops() {
            let mut flow = TcpStream::connect(to.local_addr().unwrap()).unwrap();
            let begun = Instant::now();
            while !is_tuned(&flow) && !self.stops() {
                longest = longest.max(begun.elapsed());
            }
            self.exchange(&mut flow);
            self.connections.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
        }
        longest
    }
}

/// Does `work` while one flow lives and others come and go; the longest gap of that one, and of those.
fn under_traffic(work: impl FnOnce()) -> [Duration; 2] {
    let listener = TcpListener::bind(HOST).unwrap();
    let traffic = Traffic {
        stop: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        resets: AtomicU32::new(0),
        connections: AtomicU32::new(0),
    };
    let gaps = std::thread::scope(|scope| {
        scope.spawn(|| traffic.serve(&listener));
        let one = scope.spawn(|| traffic.longest_gap_of_one(&listener));
        let new = scope.spawn(|| traffic.longest_gap_of_new(&listener));
        while traffic.connections.load(Ordering::Relaxed) < 10 && !one.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        traffic.stop.store(true, Ordering::Relaxed);
        let gaps = [one.join(), new.join()];
        traffic.is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = worked {
            std::panic::resume_unwind(panic);
        }
        gaps.map(Result::unwrap)
    });
    assert_eq!(traffic.resets.into_inner(), 0, "flows were reset");
    gaps
}

#[test]
fn flows_go_on_through_upgrades_and_downgrades() {
    let Some(_alone) = alone() else { return };
    let pinned = Pinned::new();
    assert_eq!(pinned.load_version(FIRST), Takeover::Fresh);
    let gaps = under_traffic(|| {
        for version in [SECOND, FIRST, SECOND] {
            let before = pinned.pins();
            assert_eq!(pinned.load_version(version), Takeover::Replaced);
            let after = pinned.pins();
            let law = |(name, _): &&(String, u32)| name == "law_fp_aimd";
            assert_ne!(before.iter().find(law), after.iter().find(law));
            assert_eq!(pinned.load_version(version), Takeover::Kept);
            assert_eq!(pinned.pins(), after);
            assert!(!pinned.staging().exists());
        }
    });
    println!("without tuning for at most {gaps:?}");
    assert!(gaps[0] < GAP && gaps[1] < GAP_OF_NEW, "{gaps:?}");
}

#[test]
fn a_build_that_the_kernel_refuses_replaces_nothing() {
    let Some(_alone) = alone() else { return };
    let pinned = Pinned::new();
    pinned.load_version(FIRST);
    let before = pinned.pins();
    let gaps = under_traffic(|| {
        for object in ["tune", "laws", "rude", "estats", "rude_option"] {
            let refused = Build::of_version(SECOND).with_object(object, REFUSED.to_vec());
            let said = pinned.load(&refused).unwrap_err().to_string();
            assert!(said.contains("goes on"), "{object}: {said}");
            assert_eq!(pinned.pins(), before, "{object}");
            assert!(!pinned.staging().exists(), "{object}");
        }
    });
    assert!(gaps[0] < GAP / 4 && gaps[1] < GAP / 2, "{gaps:?}");
    assert_eq!(pinned.load_version(FIRST), Takeover::Kept);
}

#[test]
fn what_an_upgrade_left_that_was_cut_short_is_taken_away() {
    let Some(_alone) = alone() else { return };
    let pinned = Pinned::new();
    let staged = Places::new(Some(pinned.staging()), None).unwrap();
    drop(Kernel::load(staged, &Policy::default()).unwrap());
    assert_eq!(pinned.load_version(FIRST), Takeover::Fresh);
    assert!(!pinned.staging().exists());
    assert!(pinned.pins().iter().any(|(name, _)| name == "law_fp_aimd"));
}

/// Without its walk nothing could release the flows later.
#[test]
fn pins_stay_where_the_flows_cannot_be_released() {
    let Some(_alone) = alone() else { return };
    let pinned = Pinned::new();
    let (kernel, _) = pinned.load(&Build::of_version(FIRST)).unwrap();
    let listener = TcpListener::bind(HOST).unwrap();
    let flow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert!(is_tuned(&flow));
    let walk = pinned.places.pin_dir.join("link_walk");
    let aside = pinned.places.pin_dir.join("aside");
    std::fs::rename(&walk, &aside).unwrap();
    // No link, but there.
    let mut map = MapHandle::from_pinned_path(pinned.places.pin_dir.join("fp_names")).unwrap();
    map.pin(&walk).unwrap();
    kernel.unload().unwrap_err();
    assert!(pinned.places.pin_dir.join("law_fp_aimd").exists());
    std::fs::rename(&aside, &walk).unwrap();
    let unloaded = kernel.unload().unwrap();
    assert_eq!(unloaded.walked.changed, 1);
    assert!(!is_tuned(&flow) && !pinned.places.pin_dir.exists());
}
