// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pins: what they are called, and which there are. Each map is pinned under its own name (maps.h).

use crate::KernelError;
use std::path::{Path, PathBuf};

/// Pins of links, programs and laws, in addition to the maps'.
pub(crate) const LINK_TUNE: &str = "link_tune";
pub(crate) const LINK_WALK: &str = "link_walk";
pub(crate) const LINK_LIST_FLOWS: &str = "link_list_flows";
pub(crate) const LINK_KEEP_NEW: &str = "link_keep_new";
pub(crate) const LINK_LIST_DIVIDED: &str = "link_list_divided";
pub(crate) const LAW_PREFIX: &str = "law_";
/// While flows are sampled.
pub(crate) const LINK_SAMPLE: &str = "link_sample_flow";
/// Pinned last of the instruments, so its presence means that all of them are there.
pub(crate) const LINK_STATE_SET: &str = "link_state_set";
pub(crate) const LINK_WALK_SAMPLES: &str = "link_walk_samples";
pub(crate) const LINK_WALK_MOVED: &str = "link_walk_moved";

/// Where the build is loaded that is to replace the one pinned in `pin_dir`; while that one goes, its pins are here.
pub(crate) fn staging(pin_dir: &Path) -> PathBuf {
    let mut staging = pin_dir.as_os_str().to_owned();
    staging.push("-next");
    staging.into()
}

/// A pin that is not there is no error.
pub(crate) fn remove(pin: &Path, removed: &mut Vec<String>) -> Result<(), KernelError> {
    match std::fs::remove_file(pin) {
        Ok(()) => removed.push(name_of(pin)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(KernelError::io(format!("remove {}", pin.display()))(error)),
    }
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
