// SPDX-License-Identifier: MIT OR Apache-2.0
//! Releasing a build that may be another one than this: only what bpf/include/release.h promises is used of it.

use crate::handle::Kernel;
use crate::hooks::{OVERRIDES, RUDE_OPTION};
use crate::pins::{LAW_PREFIX, LINK_SAMPLE, LINK_TUNE, LINK_WALK, name_of, pins, remove};
use crate::tune::walk::Mode;
use crate::{KernelError, Walked};
use libbpf_rs::{MapCore, MapHandle};
use std::path::{Path, PathBuf};
use zerocopy::IntoBytes;

impl Kernel {
    /// No policy is live from now on. Answers what was, for [`Kernel::resume`].
    pub(crate) fn stop(&self) -> Result<Vec<u8>, KernelError> {
        let control = self.table("fp_control")?;
        let before = control.get_bytes(0)?;
        control.set_bytes(0, &vec![0; before.len()])?;
        Ok(before)
    }

    pub(crate) fn resume(&self, control: &[u8]) -> Result<(), KernelError> {
        self.table("fp_control")?.set_bytes(0, control)
    }

    /// Flows that begin are no longer tuned nor sampled.
    pub(crate) fn detach(&self, removed: &mut Vec<String>) -> Result<(), KernelError> {
        let options = self.detach_hooks(OVERRIDES);
        let rude = self.detach_hooks(RUDE_OPTION);
        let tune = remove(&self.places.pin(LINK_TUNE), removed);
        let sample = remove(&self.places.pin(LINK_SAMPLE), removed);
        options.and(rude).and(tune).and(sample)
    }

    /// Live flows lose the build's laws, and get what their programs asked for. Where the walk is not whole, nothing
    /// was tuned yet, or all flows were released before.
    pub(crate) fn release_flows(&self) -> Result<Walked, KernelError> {
        match self.can_release() {
            true => self.walk(Mode::Release),
            false => Ok(Walked::default()),
        }
    }

    pub(crate) fn can_release(&self) -> bool {
        let needed = [LINK_WALK, "fp_walk", "fp_build"];
        needed.iter().all(|pin| self.places.pin(pin).exists())
    }

    /// The laws first, then the walk, without which the rest is known to be released.
    pub(crate) fn remove_pins(&self, removed: &mut Vec<String>) -> Result<(), KernelError> {
        let mut failed = self.unregister_laws(removed).err();
        failed = failed.or(remove(&self.places.pin(LINK_WALK), removed).err());
        for pin in pins(&self.places.pin_dir)? {
            failed = failed.or(remove(&pin, removed).err());
        }
        let directory = std::fs::remove_dir(&self.places.pin_dir);
        self.disown();
        let step = format!("remove {}", self.places.pin_dir.display());
        let failed = failed.or(directory.map_err(KernelError::io(step)).err());
        failed.map_or(Ok(()), Err)
    }

    /// Their names are free at once; flows that have them keep their code.
    pub(crate) fn unregister_laws(&self, removed: &mut Vec<String>) -> Result<(), KernelError> {
        let mut laws = pins(&self.places.pin_dir)?;
        laws.retain(|pin| name_of(pin).starts_with(LAW_PREFIX));
        let gone = laws.iter().zip(unregister_all(&laws));
        let gone = gone.map(|(pin, gone)| gone.and_then(|()| remove(pin, removed)));
        gone.fold(Ok(()), Result::and)
    }
}

/// At once: the kernel waits for a grace period for each, and new flows wait for all.
fn unregister_all(laws: &[PathBuf]) -> Vec<Result<(), KernelError>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = laws
            .iter()
            .map(|pin| scope.spawn(|| unregister(pin)))
            .collect();
        let gone = threads.into_iter().map(|thread| thread.join());
        gone.map(|gone| gone.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Deleting a struct_ops map's one value unregisters the law. A law that was pinned but
/// never registered has none: that is no error.
fn unregister(pin: &Path) -> Result<(), KernelError> {
    let map = MapHandle::from_pinned_path(pin)
        .map_err(KernelError::bpf(format!("open {}", pin.display())))?;
    let _ = map.delete(0u32.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::abi::*;
    use crate::pins::*;
    use std::mem::offset_of;

    /// Builds that were released before this test was written would be released wrongly, and this one by them: what
    /// stands here does not change with the ABI's version.
    #[test]
    fn what_other_builds_use_stays_as_it_is() {
        assert_eq!(FP_WALK_RELEASE, 3);
        let walk = [
            offset_of!(fp_walk, cgroup_id),
            offset_of!(fp_walk, mode),
            offset_of!(fp_walk, seen),
            offset_of!(fp_walk, changed),
            offset_of!(fp_walk, law),
            size_of::<fp_walk>(),
        ];
        assert_eq!(walk, [0, 8, 12, 16, 24, 40]);
        let build = [
            offset_of!(fp_build, hash),
            offset_of!(fp_build, cgroup_id),
            offset_of!(fp_build, abi_version),
            size_of::<fp_build>(),
        ];
        assert_eq!(build, [0, 8, 16, 24]);
        let marks = [
            offset_of!(fp_interface, netns),
            offset_of!(fp_interface, ifindex),
            size_of::<fp_interface>(),
            offset_of!(fp_mark, made_clsact),
            offset_of!(fp_mark, is_whole),
            size_of::<fp_mark>(),
        ];
        assert_eq!(marks, [0, 4, 8, 0, 4, 8]);
        let pins = [LINK_TUNE, LINK_SAMPLE, LINK_WALK, LAW_PREFIX];
        assert_eq!(pins, ["link_tune", "link_sample_flow", "link_walk", "law_"]);
    }

    /// A walk of this build is never taken for a release by another.
    #[test]
    fn no_walk_of_a_build_has_the_number_of_the_release() {
        let own = [FP_WALK_MEET, FP_WALK_SHARE, FP_WALK_RUDE];
        assert!(!own.contains(&FP_WALK_RELEASE));
    }
}
