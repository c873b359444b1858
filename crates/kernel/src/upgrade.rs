// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacing the build that is pinned, while flows go on.
//!
//! The new build is loaded and attached first, with its pins in a directory of its own, where it does nothing until a
//! policy is live in it. What the kernel refuses it refuses now: then the new build is removed, and the old one goes
//! on. After the policy has become live there is no way back, and nothing is left that the verifier could refuse:
//! the laws' names go from the old build to the new one, then the live flows, then the directory of the pins.

use crate::build::{Build, LAW_OBJECTS};
use crate::handle::Kernel;
use crate::law;
use crate::load::Missing;
use crate::pins::{LAW_PREFIX, name_of, pins, staging};
use crate::tune::publish::{Prepared, Written};
use crate::{KernelError, abi};
use fatpath_policy::{Classifier, Policy};
use libbpf_rs::{ErrorKind, MapCore, MapType, Object};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// The new build, of which the kernel has refused nothing that the old one has.
struct Ready {
    laws: Vec<Object>,
    control: abi::fp_control,
    missing: Missing,
}

impl Kernel {
    /// Replaces this build, the one that is pinned.
    pub(crate) fn replace(
        self,
        policy: &Policy,
        build: &Build,
    ) -> Result<(Kernel, Missing), KernelError> {
        let next = Kernel::owning(self.places.at(staging(&self.places.pin_dir)))?;
        let ready = next.load_beside(&self, policy, build).and_then(|ready| {
            next.go_live_after(&self, &ready.control)?;
            Ok(ready)
        });
        match ready {
            Ok(ready) => next.take_over(self, ready),
            Err(error) => {
                next.discard();
                Err(KernelError::NotReplaced(Box::new(error)))
            }
        }
    }

    fn load_beside(
        &self,
        old: &Kernel,
        policy: &Policy,
        build: &Build,
    ) -> Result<Ready, KernelError> {
        let mut missing = Missing::default();
        let tune = self.load_programs(build)?;
        let laws = self
            .load_laws(build)
            .or_else(|error| -> Result<_, KernelError> {
                missing.laws = Some(needed(error, old.has_laws()?)?);
                Ok(Vec::new())
            })?;
        if let Err(error) = self.load_instruments(build) {
            missing.instruments = Some(needed(error, old.has_instruments())?);
        }
        self.attach_tune(&tune)?;
        self.note_build(build)?;
        let tables = Classifier::build(policy);
        let Prepared { control, .. } = self.prepare(policy, &tables, &mut Written::default())?;
        Ok(Ready {
            laws,
            control,
            missing,
        })
    }

    /// Has the kernel verify the laws: a name that is in use is refused after everything else.
    fn load_laws(&self, build: &Build) -> Result<Vec<Object>, KernelError> {
        let load = |name| {
            let mut object = self.load_object(name, build.image(name))?;
            let laws = object.maps_mut();
            for mut law in laws.filter(|map| map.map_type() == MapType::StructOps) {
                let name = law.name().to_string_lossy().into_owned();
                match self.try_to_register(&mut law) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        return Err(KernelError::bpf(format!("register {name}"))(error));
                    }
                    _ => {}
                }
            }
            Ok(object)
        };
        LAW_OBJECTS.into_iter().map(load).collect()
    }

    fn has_laws(&self) -> Result<bool, KernelError> {
        let pins = pins(&self.places.pin_dir)?;
        Ok(pins.iter().any(|pin| name_of(pin).starts_with(LAW_PREFIX)))
    }

    /// Of two builds that tune at once the second would take the buffers that the first gave for the program's own.
    fn go_live_after(&self, old: &Kernel, control: &abi::fp_control) -> Result<(), KernelError> {
        // A load that was cut short may have none.
        let before = old.stop();
        let live = self.table("fp_control")?.set(0, control);
        if let (Err(_), Ok(before)) = (&live, before) {
            old.resume(&before)?;
        }
        live
    }

    fn take_over(self, old: Kernel, ready: Ready) -> Result<(Kernel, Missing), KernelError> {
        let Ready {
            mut laws,
            mut missing,
            ..
        } = ready;
        let others = law::laws_of_others(&old.places.pin_dir);
        let mut left = old.unregister_laws(&mut Vec::new()).err();
        for object in &mut laws {
            let registered = self.register_laws_of(object, &others);
            missing.laws = missing.laws.or(registered.err());
        }
        left = left.or(old.detach(&mut Vec::new()).err());
        let (unreleased, walked) = self.take_flows_over(&old);
        left = left.or(unreleased).or(walked.err());
        let (kernel, old) = self.exchange(old)?;
        left = left.or(old.unmark().err());
        missing.release = left.or(old.remove_pins(&mut Vec::new()).err());
        Ok((kernel, missing))
    }

    /// The new build's pins are where the old one's were, and the other way about, at one moment.
    fn exchange(self, old: Kernel) -> Result<(Kernel, Kernel), KernelError> {
        let (staged, pinned) = (self.places.clone(), old.places.clone());
        let (from, to) = (&staged.pin_dir, &pinned.pin_dir);
        let step = format!("exchange {} and {}", from.display(), to.display());
        renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE)
            .map_err(|error| KernelError::io(step)(error.into()))?;
        Ok((self.moved_to(pinned), old.moved_to(staged)))
    }

    /// Takes a build away that has met no flow.
    fn discard(&self) {
        let _ = self.detach(&mut Vec::new());
        let _ = self.remove_pins(&mut Vec::new());
    }
}

/// What the old build has the new one must have too.
fn needed(error: KernelError, old_has_it: bool) -> Result<KernelError, KernelError> {
    match old_has_it {
        true => Err(error),
        false => Ok(error),
    }
}
