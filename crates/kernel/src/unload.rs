// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking the kernel half away again.
//!
//! Live flows keep the buffers and the clamp that they have, which cannot be unset; pacing and timers
//! go back to the kernel's own, and flows on one of our laws to their namespace's, since its code goes.

use crate::abi;
use crate::handle::Kernel;
use crate::pins::{LAW_PREFIX, LINK_SAMPLE, LINK_TUNE, name_of, pins, remove};
use crate::tune::options::{OVERRIDES, RUDE_OPTION};
use crate::tune::walk::Mode;
use crate::{KernelError, Walked};
use libbpf_rs::{MapCore, MapHandle};
use std::path::Path;
use zerocopy::IntoBytes;

/// What an unload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unloaded {
    /// The pins that were removed, by name.
    pub removed: Vec<String>,
    /// The live flows that went back to their namespace's law.
    pub walked: Walked,
}

impl Kernel {
    /// Removes every program, link, map, law and pin. Works on whatever is there, also after a load
    /// that was cut short.
    ///
    /// # Errors
    /// The first thing that could not be removed; what could be removed is.
    pub fn unload(&self) -> Result<Unloaded, KernelError> {
        let stop = abi::fp_control::default();
        let _ = self
            .table("fp_control")
            .and_then(|control| control.set(0, &stop));
        // Nothing new comes in: then the walk undoes what did.
        let mut removed = Vec::new();
        let mut failed = self.detach_options(OVERRIDES).err();
        failed = failed.or(self.detach_options(RUDE_OPTION).err());
        failed = failed.or(remove(&self.places.pin(LINK_TUNE), &mut removed).err());
        failed = failed.or(remove(&self.places.pin(LINK_SAMPLE), &mut removed).err());
        let _ = self.tidy_rude_runs();
        let walked = self.walk(Mode::Release).unwrap_or_default();
        // After the walk: no flow is rude any more.
        failed = failed.or(self.unmark().err());
        for pin in pins(&self.places.pin_dir)? {
            if name_of(&pin).starts_with(LAW_PREFIX) {
                failed = failed.or(unregister(&pin).err());
            }
            failed = failed.or(remove(&pin, &mut removed).err());
        }
        let directory = std::fs::remove_dir(&self.places.pin_dir);
        self.disown();
        let step = format!("remove {}", self.places.pin_dir.display());
        match failed.or(directory.map_err(KernelError::io(step)).err()) {
            None => Ok(Unloaded { removed, walked }),
            Some(error) => Err(error),
        }
    }
}

/// Deleting a struct_ops map's one value unregisters the law. A law that was pinned but
/// never registered has none: that is no error.
fn unregister(pin: &Path) -> Result<(), KernelError> {
    let map = MapHandle::from_pinned_path(pin)
        .map_err(KernelError::bpf(format!("open {}", pin.display())))?;
    let _ = map.delete(0u32.as_bytes());
    Ok(())
}
