// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading, or taking over what an earlier daemon pinned.
//!
//! Everything is pinned: maps by libbpf (maps.h asks for it), links, programs and the
//! laws by this file. The build is noted last, so a load that was cut short is told from
//! a whole one. Pins of the same build are taken over untouched; those of another are replaced (upgrade.rs).

use crate::KernelError;
use crate::abi;
use crate::build::{Build, LAW_OBJECTS};
use crate::handle::Kernel;
use crate::law::{self, OthersLaw};
use crate::libbpf_log::quieten_libbpf;
use crate::object::program;
use crate::pins::{LAW_PREFIX, LINK_TUNE, LINK_WALK, pins};
use crate::places::Places;
use fatpath_policy::Policy;
use libbpf_rs::{MapCore, MapMut, MapType, Object, ObjectBuilder};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A law's name is free again only after a grace period of the kernel.
const REGISTER_TRIES: u32 = 40;
const REGISTER_PAUSE: Duration = Duration::from_millis(50);

/// What [`Kernel::load`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takeover {
    /// Nothing: all was loaded.
    Fresh,
    /// The same build: all was kept as it is.
    Kept,
    /// Another build, or a load that was cut short: replaced.
    Replaced,
}

/// What the kernel refused, and why. All else works without it.
#[derive(Debug, Default)]
pub struct Missing {
    /// Not every law could be registered. What the kernel refused counts before a name that another instance has.
    pub laws: Option<KernelError>,
    /// No flow is sampled.
    pub instruments: Option<KernelError>,
    /// Some flows keep the settings and the law of the build that was replaced.
    pub release: Option<KernelError>,
}

impl Kernel {
    /// Loads the kernel half, or takes over what is pinned. Where another build is pinned, flows follow `policy`
    /// from the moment in which this one replaces it.
    ///
    /// [`Missing`] tells what the kernel refused: all else works without it.
    ///
    /// # Errors
    /// No BTF, no BPF file system, no permission, or a program that the kernel refuses: another build that is pinned
    /// goes on then.
    pub fn load(
        places: Places,
        policy: &Policy,
    ) -> Result<(Kernel, Takeover, Missing), KernelError> {
        Kernel::load_build(places, policy, &Build::this())
    }

    /// The same with the objects of `build`.
    #[doc(hidden)]
    pub fn load_build(
        places: Places,
        policy: &Policy,
        build: &Build,
    ) -> Result<(Kernel, Takeover, Missing), KernelError> {
        quieten_libbpf();
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(KernelError::NoBtf);
        }
        let kernel = Kernel::owning(places)?;
        kernel.remove_staged()?;
        match kernel.pinned_build()? {
            None => {
                let missing = kernel.load_all(build)?;
                Ok((kernel, Takeover::Fresh, missing))
            }
            Some(pinned) if pinned == build.identity(&kernel.places) => {
                let missing = Missing {
                    laws: kernel.register_missing_laws(build).err(),
                    instruments: kernel.load_instruments(build).err(),
                    release: None,
                };
                Ok((kernel, Takeover::Kept, missing))
            }
            Some(_) => {
                let (kernel, missing) = kernel.replace(policy, build)?;
                Ok((kernel, Takeover::Replaced, missing))
            }
        }
    }

    /// `None`: nothing is pinned. A load that was cut short left a build that equals no other.
    fn pinned_build(&self) -> Result<Option<abi::fp_build>, KernelError> {
        if pins(&self.places.pin_dir)?.is_empty() {
            return Ok(None);
        }
        let table = self.table("fp_build");
        Ok(Some(table.and_then(|t| t.get(0)).unwrap_or_default()))
    }

    fn load_all(&self, build: &Build) -> Result<Missing, KernelError> {
        let loaded = self.load_objects(build);
        match loaded {
            Ok(_) => self.note_build(build)?,
            Err(_) => drop(self.unload()),
        }
        loaded
    }

    /// Last of all.
    pub(crate) fn note_build(&self, build: &Build) -> Result<(), KernelError> {
        let identity = build.identity(&self.places);
        self.table("fp_build")?.set(0, &identity)
    }

    fn load_objects(&self, build: &Build) -> Result<Missing, KernelError> {
        let tune = self.load_programs(build)?;
        let laws = self.register_missing_laws(build).err();
        self.attach_tune(&tune)?;
        let instruments = self.load_instruments(build).err();
        Ok(Missing {
            laws,
            instruments,
            release: None,
        })
    }

    /// All but the laws and the instruments. Answers the object that tunes, which is not attached yet.
    pub(crate) fn load_programs(&self, build: &Build) -> Result<Object, KernelError> {
        let load = |name| self.load_object(name, build.image(name));
        let tune = load("tune")?;
        let overrides = load("override")?;
        let mark = load("mark")?;
        let option = load("rude_option")?;
        let unattached = [&overrides, &mark, &option];
        for mut program in unattached.iter().flat_map(|object| object.progs_mut()) {
            self.pin_program(&mut program)?;
        }
        self.attach_iterator(&tune, "walk", LINK_WALK)?;
        self.load_lists(build)?;
        Ok(tune)
    }

    pub(crate) fn attach_tune(&self, object: &Object) -> Result<(), KernelError> {
        self.attach_to_cgroup(object, "tune", LINK_TUNE)
    }

    /// Over the sockets of a network namespace.
    pub(crate) fn attach_iterator(
        &self,
        object: &Object,
        name: &str,
        pin: &str,
    ) -> Result<(), KernelError> {
        let link = program(object, name)?
            .attach()
            .map_err(KernelError::bpf(format!("attach {name}")))?;
        self.pin_link(link, pin)
    }

    /// Those that are not pinned yet. One that cannot be registered does not keep the others away.
    fn register_missing_laws(&self, build: &Build) -> Result<(), KernelError> {
        let mut missing = Vec::new();
        for name in LAW_OBJECTS {
            let laws = brought_laws(name, build.image(name))?;
            if !laws.iter().all(|law| self.law_pin(law).exists()) {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            law::take_orphans_away();
        }
        let others = law::laws_of_others(&self.places.pin_dir);
        let register = |name| {
            let mut object = self.load_object(name, build.image(name))?;
            self.register_laws_of(&mut object, &others)
        };
        first_refused(missing.into_iter().map(register))
    }

    /// Those of an object that are not pinned yet.
    pub(crate) fn register_laws_of(
        &self,
        object: &mut Object,
        others: &[OthersLaw],
    ) -> Result<(), KernelError> {
        let missing = object.maps_mut().filter(|map| self.is_missing_law(map));
        let registered = missing.map(|mut map| {
            free_of_others(&map.name().to_string_lossy(), others)?;
            self.register_law(&mut map)
        });
        first_refused(registered)
    }

    fn is_missing_law(&self, map: &MapMut<'_>) -> bool {
        map.map_type() == MapType::StructOps
            && !self.law_pin(&map.name().to_string_lossy()).exists()
    }

    fn law_pin(&self, law: &str) -> PathBuf {
        self.places.pin(&format!("{LAW_PREFIX}{law}"))
    }

    /// The kernel keeps a registered law until it is deleted from its map. Pinned before it is
    /// registered: a law without a pin could be found by nobody, and would keep its name.
    fn register_law(&self, map: &mut MapMut<'_>) -> Result<(), KernelError> {
        let name = map.name().to_string_lossy().into_owned();
        let mut tried = 0;
        loop {
            match self.try_to_register(map) {
                Ok(()) => return Ok(()),
                Err(_) if tried < REGISTER_TRIES => std::thread::sleep(REGISTER_PAUSE),
                Err(source) => return Err(KernelError::bpf(format!("register {name}"))(source)),
            }
            tried += 1;
        }
    }

    pub(crate) fn try_to_register(&self, map: &mut MapMut<'_>) -> Result<(), libbpf_rs::Error> {
        let pin = self.law_pin(&map.name().to_string_lossy());
        map.pin(&pin)?;
        let link = map.attach_struct_ops();
        link.map(|mut link| link.disconnect()).inspect_err(|_| {
            let _ = map.unpin(&pin);
        })
    }
}

/// All are tried. What the kernel refused counts before a name that another instance has.
fn first_refused(
    registered: impl Iterator<Item = Result<(), KernelError>>,
) -> Result<(), KernelError> {
    let errors = registered.filter_map(Result::err);
    let first = errors.min_by_key(KernelError::is_anothers_law);
    first.map_or(Ok(()), Err)
}

fn free_of_others(name: &str, others: &[OthersLaw]) -> Result<(), KernelError> {
    match others.iter().find(|other| other.law == name) {
        None => Ok(()),
        Some(other) => Err(other.clone().into()),
    }
}

/// The laws of an object by name: its struct_ops maps.
fn brought_laws(object: &str, image: &[u8]) -> Result<Vec<String>, KernelError> {
    let open = ObjectBuilder::default()
        .open_memory(image)
        .map_err(KernelError::bpf(format!("open {object}.bpf.o")))?;
    let laws = open
        .maps()
        .filter(|map| map.map_type() == MapType::StructOps);
    Ok(laws
        .map(|map| map.name().to_string_lossy().into_owned())
        .collect())
}
