// SPDX-License-Identifier: MIT OR Apache-2.0
//! A handle on what is pinned, and the right to change it. Everything else of the kernel half is methods of
//! [`Kernel`], each in the module of its matter.

use crate::KernelError;
use crate::libbpf_log::quieten_libbpf;
use crate::maps::Table;
use crate::places::Places;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle on the pinned kernel half.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) places: Places,
    /// Held by the one process that may change what is pinned, until it unloads.
    owner: Mutex<Option<File>>,
    /// Ids of the rules of the policy published last that divide their buffers.
    pub(crate) divided: Mutex<HashSet<u32>>,
    /// Held while it changes whether flows are sampled at all. Whether the last look found nothing sampled.
    sampling: Mutex<bool>,
}

impl Kernel {
    /// A handle to read what is pinned, loading nothing.
    ///
    /// # Errors
    /// [`KernelError::NotLoaded`] when nothing is.
    pub fn open(places: Places) -> Result<Kernel, KernelError> {
        quieten_libbpf();
        if !places.pin_dir.exists() {
            return Err(KernelError::NotLoaded(places.pin_dir));
        }
        refuse_others(&places.pin_dir)?;
        Ok(Kernel {
            places,
            owner: Mutex::new(None),
            divided: Mutex::default(),
            sampling: Mutex::default(),
        })
    }

    /// A handle to change what is pinned, loading nothing.
    ///
    /// # Errors
    /// [`KernelError::NotLoaded`] when nothing is, [`KernelError::InUse`] when another process may
    /// change it.
    pub fn open_to_change(places: Places) -> Result<Kernel, KernelError> {
        let kernel = Kernel::open(places)?;
        Kernel::owning(kernel.places)
    }

    /// The lock is on the directory of the pins: two daemons may not share it, wherever else they live.
    pub(crate) fn owning(places: Places) -> Result<Kernel, KernelError> {
        let pins = &places.pin_dir;
        let failed = || KernelError::io(format!("make {}", pins.display()));
        std::fs::create_dir_all(pins).map_err(failed())?;
        refuse_others(pins)?;
        std::fs::set_permissions(pins, Permissions::from_mode(0o700)).map_err(failed())?;
        let owner =
            File::open(pins).map_err(KernelError::io(format!("open {}", pins.display())))?;
        if flock(&owner, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(KernelError::InUse(places.pin_dir));
        }
        Ok(Kernel {
            places,
            owner: Mutex::new(Some(owner)),
            divided: Mutex::default(),
            sampling: Mutex::default(),
        })
    }

    /// The directory of its pins has been moved.
    pub(crate) fn moved_to(self, places: Places) -> Kernel {
        Kernel { places, ..self }
    }

    pub(crate) fn table(&self, name: &str) -> Result<Table, KernelError> {
        Table::open(&self.places, name)
    }

    pub(crate) fn lock_sampling(&self) -> MutexGuard<'_, bool> {
        self.sampling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another process may change what is pinned from now on. An open directory would also keep the file system
    /// from being unmounted.
    pub(crate) fn disown(&self) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        drop(owner.take());
    }
}

/// In a BPF file system of mode 1777 anybody may have made the directory, or a link in its place, and
/// would own what is pinned there: the gate, and who may be rude.
fn refuse_others(pins: &Path) -> Result<(), KernelError> {
    let meta = std::fs::symlink_metadata(pins);
    let meta = meta.map_err(KernelError::io(format!("look at {}", pins.display())))?;
    let may_own = [0, rustix::process::geteuid().as_raw()];
    match meta.is_dir() && may_own.contains(&meta.uid()) {
        true => Ok(()),
        false => Err(KernelError::NotOurs(pins.to_path_buf())),
    }
}
