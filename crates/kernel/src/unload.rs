// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking the kernel half away again.
//!
//! Live flows keep the buffers, windows and timers they have, which the kernel cannot
//! unset; flows on one of our laws go to their namespace's own, since the law's code goes.

use crate::abi;
use crate::load::{Kernel, LAW_PREFIX};
use crate::places::Places;
use crate::pod::bytes_of;
use crate::walk::Mode;
use crate::{KernelError, Walked};
use libbpf_rs::{MapCore, MapHandle};
use std::path::{Path, PathBuf};

/// What an unload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unloaded {
    /// The pins that were removed, by name.
    pub removed: Vec<String>,
    /// The live flows that went back to their namespace's law.
    pub walked: Walked,
}

impl Kernel {
    /// Removes every program, link, map, law and pin.
    ///
    /// # Errors
    /// When a pin cannot be removed; what could be removed is.
    pub fn unload(&self) -> Result<Unloaded, KernelError> {
        remove(&self.places)
    }
}

/// Works on whatever is there, also after a load that was cut short.
pub(crate) fn remove(places: &Places) -> Result<Unloaded, KernelError> {
    let kernel = Kernel {
        places: places.clone(),
    };
    let stop = abi::fp_control::default();
    let _ = kernel
        .table("fp_control")
        .and_then(|control| control.set(0, &stop));
    let walked = kernel.walk(Mode::Release).unwrap_or_default();
    let pins = pins(&places.pin_dir)?;
    for law in pins
        .iter()
        .filter(|pin| name_of(pin).starts_with(LAW_PREFIX))
    {
        unregister(law)?;
    }
    for pin in &pins {
        std::fs::remove_file(pin).map_err(KernelError::io(format!("remove {}", pin.display())))?;
    }
    std::fs::remove_dir(&places.pin_dir).map_err(KernelError::io(format!(
        "remove {}",
        places.pin_dir.display()
    )))?;
    Ok(Unloaded {
        removed: pins.iter().map(|pin| name_of(pin)).collect(),
        walked,
    })
}

/// Deleting a struct_ops map's one value unregisters the law. A law that was pinned but
/// never registered has none: that is no error.
fn unregister(pin: &Path) -> Result<(), KernelError> {
    let map = MapHandle::from_pinned_path(pin)
        .map_err(KernelError::bpf(format!("open {}", pin.display())))?;
    let _ = map.delete(bytes_of(&0u32));
    Ok(())
}

pub(crate) fn pins(directory: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let entries = std::fs::read_dir(directory)
        .map_err(KernelError::io(format!("list {}", directory.display())))?;
    let mut pins: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    pins.sort();
    Ok(pins)
}

pub(crate) fn name_of(pin: &Path) -> String {
    pin.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
