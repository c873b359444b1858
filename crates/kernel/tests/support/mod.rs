// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests on the real kernel share: a kernel half of their own, two hosts on a wire, and what
//! passes there.
#![allow(dead_code, clippy::unwrap_used)] // each test uses its part, and ends where it cannot go on

pub mod frame;
pub mod option;
pub mod parsed;
pub mod path;
pub mod replay;
pub mod ring;
pub mod wire;

use fatpath_api::{SettingValue, TunedFlow};
use fatpath_kernel::{Build, Kernel, KernelError, Missing, Places, Takeover, bpffs_is_mounted};
use fatpath_policy::{Classifier, Policy};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::net::TcpStream;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// As the tests of the whole program: one test at a time on this machine.
pub fn alone() -> Option<File> {
    if !rustix::process::geteuid().is_root() || !bpffs_is_mounted() {
        println!("skipped: not root, or no BPF file system");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("fatpath-tests.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    Some(lock)
}

/// A kernel half with pins of its own, taken away when it is dropped.
pub struct Loaded {
    pub kernel: Kernel,
    pub pin_dir: PathBuf,
    pub laws_missing: Option<KernelError>,
}

/// enum fp_rude_mode of abi.h.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    Polite = 0,
    Rude = 1,
    GoingPolite = 2,
}

impl Loaded {
    pub fn at(name: &str) -> Loaded {
        Loaded::for_cgroup(name, None)
    }

    /// As on a kernel that refuses iterators over maps.
    pub fn without_iterators_over_maps(name: &str) -> Loaded {
        Loaded::new(name, None, |places| {
            let build = Build::of_version(1001).without_iterators_over_maps();
            Kernel::load_build(places, &Policy::default(), &build)
        })
    }

    /// For the flows of one cgroup; by default of all.
    pub fn for_cgroup(name: &str, cgroup: Option<PathBuf>) -> Loaded {
        let load = |places| Kernel::load(places, &Policy::default());
        Loaded::new(name, cgroup, load)
    }

    fn new(
        name: &str,
        cgroup: Option<PathBuf>,
        load: impl Fn(Places) -> Result<(Kernel, Takeover, Missing), KernelError>,
    ) -> Loaded {
        let pin_dir = PathBuf::from(format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()));
        let places = Places::new(Some(pin_dir.clone()), cgroup).unwrap();
        let (kernel, _, missing) = load(places).unwrap();
        Loaded {
            kernel,
            pin_dir,
            laws_missing: missing.laws,
        }
    }

    /// The kernel may refuse that, and lists of flows are loaded otherwise then.
    pub fn iterates_over_maps(&self) -> bool {
        self.pin_dir.join("link_list_flows").exists()
    }

    pub fn map(&self, name: &str) -> MapHandle {
        MapHandle::from_pinned_path(self.pin_dir.join(name)).unwrap()
    }

    /// The send buffer of a tuned flow as the kernel has it, whatever a program is told; setsockopt's, which the kernel
    /// doubles.
    pub fn send_buffer_bytes(&self, is_it: impl Fn(&TunedFlow) -> bool) -> Option<u64> {
        let flows = self.kernel.flows().unwrap();
        let flow = flows.iter().find(|flow| is_it(flow))?;
        let mut settings = flow.settings.iter();
        match settings.find(|it| it.setting == "send_buffer_bytes")?.has {
            SettingValue::Number(bytes) => Some(bytes),
            SettingValue::Name(_) => None,
        }
    }

    /// struct fp_rude_gate: open, bits, DSCP, padding.
    pub fn mark_with(&self, bits: u32, dscp: u32) {
        let gate = words(&[1, bits, dscp, 0]);
        let zero = 0u32.to_ne_bytes();
        self.map("fp_rude_gate")
            .update(&zero, &gate, MapFlags::ANY)
            .unwrap();
    }

    /// struct fp_rude_flow: mode, marked segments, what the law keeps. Socket storage takes a descriptor as key.
    pub fn set_mode(&self, flow: &TcpStream, mode: Mode) {
        let map = self.map("fp_rudes");
        let mut value = words(&[mode as u32]);
        value.resize(map.value_size() as usize, 0);
        let key = flow.as_raw_fd().to_ne_bytes();
        map.update(&key, &value, MapFlags::ANY).unwrap();
    }

    pub fn marked_pkts(&self, flow: &TcpStream) -> u32 {
        let key = flow.as_raw_fd().to_ne_bytes();
        let value = self.map("fp_rudes").lookup(&key, MapFlags::ANY).unwrap();
        u32::from_ne_bytes(value.unwrap()[4..8].try_into().unwrap())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.kernel.unload();
    }
}

/// The kernel half that tests of a program use in turn, and the machine's lock.
struct Kept {
    loaded: Option<Loaded>,
    _alone: File,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test's turn with it. Verifying the programs anew for each test would cost an emulated machine ten seconds.
pub struct Turn(MutexGuard<'static, Option<Kept>>);

/// A turn begins without rules and without learned paths. `None`, and a line that says so, when the test cannot run here.
/// A program whose tests take turns keeps the machine's lock until it ends: its other tests call [`machine`], not
/// [`alone`].
pub fn turn() -> Option<Turn> {
    let mut kept = locked()?;
    let own = kept.as_mut()?;
    let loaded = own.loaded.get_or_insert_with(|| Loaded::at("turns"));
    let policy = Policy::default();
    let published = loaded.kernel.publish(&policy, &Classifier::build(&policy));
    published.unwrap();
    Some(Turn(kept))
}

/// A test's turn without a kernel half, which it loads itself.
pub struct Machine(MutexGuard<'static, Option<Kept>>);

/// The machine for a test that loads a kernel half of its own, where others take turns.
pub fn machine() -> Option<Machine> {
    let mut kept = locked()?;
    kept.as_mut()?.loaded = None;
    Some(Machine(kept))
}

fn locked() -> Option<MutexGuard<'static, Option<Kept>>> {
    let mut kept = kept();
    if kept.is_none() {
        let alone = alone()?;
        unload_at_exit();
        *kept = Some(Kept {
            loaded: None,
            _alone: alone,
        });
    }
    Some(kept)
}

impl Deref for Turn {
    type Target = Loaded;

    fn deref(&self) -> &Loaded {
        let own = self.0.as_ref().and_then(|kept| kept.loaded.as_ref());
        own.unwrap() // until the turn is dropped
    }
}

/// What failed may be the kernel half's fault, and a test may have unloaded it: the next test has another.
impl Drop for Turn {
    fn drop(&mut self) {
        let is_whole = !std::thread::panicking() && self.pin_dir.exists();
        if !is_whole || self.kernel.unmark().is_err() || self.kernel.forget_paths().is_err() {
            *self.0 = None;
        }
    }
}

/// The harness ends the process, and drops nothing that is static.
#[allow(unsafe_code)]
fn unload_at_exit() {
    extern "C" fn unload() {
        let last = kept().take();
        drop(last);
    }
    static ONCE: Once = Once::new();
    // SAFETY: a function that does not unwind: dropping the kernel half panics nowhere.
    ONCE.call_once(|| assert_eq!(unsafe { libc::atexit(unload) }, 0));
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
