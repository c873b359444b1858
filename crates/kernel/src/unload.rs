// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking the kernel half away again.
//!
//! Live flows keep the buffers and the clamp that they have, which cannot be unset; pacing and timers
//! go back to the kernel's own, and flows on one of our laws to their namespace's, since its code goes.

use crate::handle::Kernel;
use crate::pins::staging;
use crate::{KernelError, Walked};

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
    /// When the live flows cannot be released: the pins stay, for without them nothing could release the flows later.
    /// Else the first thing that could not be removed; what could be removed is.
    pub fn unload(&self) -> Result<Unloaded, KernelError> {
        self.remove_staged()?;
        let _ = self.stop();
        // Nothing new comes in: then the walk undoes what did.
        let mut removed = Vec::new();
        let detached = self.detach(&mut removed);
        let _ = self.tidy_rude_runs();
        let walked = self.release_flows()?;
        // After the walk: no flow is rude any more.
        let unmarked = self.unmark();
        let gone = self.remove_pins(&mut removed);
        detached.and(unmarked).and(gone)?;
        Ok(Unloaded { removed, walked })
    }

    /// What an upgrade left that was cut short: the build that was to come, or the one that was to go.
    pub(crate) fn remove_staged(&self) -> Result<(), KernelError> {
        let pin_dir = staging(&self.places.pin_dir);
        if !pin_dir.exists() {
            return Ok(());
        }
        let staged = Kernel::owning(self.places.at(pin_dir))?;
        staged.unload().map(drop)
    }
}
