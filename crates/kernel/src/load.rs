// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loading, or taking over what an earlier daemon pinned.
//!
//! Everything is pinned: maps by libbpf (maps.h asks for it), links, programs and the
//! laws by this file. The build is noted last, so a load that was cut short is told from
//! a whole one. Pins of the same build are taken over untouched; pins of another are
//! unloaded first, which moves live flows off the old laws, and loaded anew.

use crate::KernelError;
use crate::abi;
use crate::handle::Kernel;
use crate::instruments::ESTATS;
use crate::law::{self, OthersLaw};
use crate::libbpf_log::quieten_libbpf;
use crate::object::program;
use crate::pins::{LAW_PREFIX, LINK_LIST_FLOWS, LINK_TUNE, LINK_WALK, pins};
use crate::places::Places;
use libbpf_rs::{MapCore, MapMut, MapType, Object, ObjectBuilder};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TUNE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tune.bpf.o"));
const OVERRIDE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/override.bpf.o"));
const FLOWS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/flows.bpf.o"));
const MARK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mark.bpf.o"));
const LAWS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/laws.bpf.o"));
const RUDE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rude.bpf.o"));
const RUDE_OPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rude_option.bpf.o"));

/// Objects whose struct_ops maps are registered.
const LAW_OBJECTS: [(&str, &[u8]); 2] = [("laws", LAWS), ("rude", RUDE)];

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
    /// Not every law could be registered.
    pub laws: Option<KernelError>,
    /// No flow is sampled.
    pub instruments: Option<KernelError>,
}

impl Kernel {
    /// Loads the kernel half, or takes over what is pinned.
    ///
    /// [`Missing`] tells what the kernel refused: all else works without it.
    ///
    /// # Errors
    /// No BTF, no BPF file system, no permission, or a program that the kernel refuses.
    pub fn load(places: Places) -> Result<(Kernel, Takeover, Missing), KernelError> {
        quieten_libbpf();
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(KernelError::NoBtf);
        }
        let build = this_build(&places);
        let mut kernel = Kernel::owning(places)?;
        let takeover = match kernel.pinned_build()? {
            Some(pinned) if pinned == build => {
                let missing = Missing {
                    laws: kernel.register_laws().err(),
                    instruments: kernel.load_instruments().err(),
                };
                return Ok((kernel, Takeover::Kept, missing));
            }
            Some(_) => Takeover::Replaced,
            None => Takeover::Fresh,
        };
        if takeover == Takeover::Replaced {
            kernel.unload()?;
            kernel = Kernel::owning(kernel.places)?;
        }
        let missing = kernel.load_all(&build)?;
        Ok((kernel, takeover, missing))
    }

    /// `None`: nothing is pinned. A load that was cut short left a build that equals no other.
    fn pinned_build(&self) -> Result<Option<abi::fp_build>, KernelError> {
        if pins(&self.places.pin_dir)?.is_empty() {
            return Ok(None);
        }
        let table = self.table("fp_build");
        Ok(Some(table.and_then(|t| t.get(0)).unwrap_or_default()))
    }

    fn load_all(&self, build: &abi::fp_build) -> Result<Missing, KernelError> {
        let loaded = self.load_objects();
        match loaded {
            Ok(_) => self.table("fp_build")?.set(0, build)?,
            Err(_) => drop(self.unload()),
        }
        loaded
    }

    fn load_objects(&self) -> Result<Missing, KernelError> {
        let tune = self.load_object("tune", TUNE)?;
        let overrides = self.load_object("override", OVERRIDE)?;
        let flows = self.load_object("flows", FLOWS)?;
        let mark = self.load_object("mark", MARK)?;
        let option = self.load_object("rude_option", RUDE_OPTION)?;
        let unattached = [&overrides, &mark, &option];
        for mut program in unattached.iter().flat_map(|object| object.progs_mut()) {
            self.pin_program(&mut program)?;
        }
        self.attach_walk(&tune)?;
        self.attach_list(&flows)?;
        let laws = self.register_laws().err();
        self.attach_to_cgroup(&tune, "tune", LINK_TUNE)?;
        let instruments = self.load_instruments().err();
        Ok(Missing { laws, instruments })
    }

    fn attach_walk(&self, object: &Object) -> Result<(), KernelError> {
        let link = program(object, "walk")?
            .attach()
            .map_err(KernelError::bpf("attach the walk over sockets"))?;
        self.pin_link(link, LINK_WALK)
    }

    fn attach_list(&self, object: &Object) -> Result<(), KernelError> {
        let flows = self.table("fp_flows")?;
        let link = program(object, "list_flows")?
            .attach_iter(flows.handle().as_fd())
            .map_err(KernelError::bpf("attach the list of flows"))?;
        self.pin_link(link, LINK_LIST_FLOWS)
    }

    /// Those that are not pinned yet. One that cannot be registered does not keep the others away.
    fn register_laws(&self) -> Result<(), KernelError> {
        let mut missing = Vec::new();
        for (name, image) in LAW_OBJECTS {
            let laws = brought_laws(name, image)?;
            if !laws.iter().all(|law| self.law_pin(law).exists()) {
                missing.push((name, image));
            }
        }
        if !missing.is_empty() {
            law::take_orphans_away();
        }
        let register = |(name, image)| self.register_laws_of(name, image);
        missing.into_iter().map(register).fold(Ok(()), Result::and)
    }

    fn register_laws_of(&self, name: &str, image: &[u8]) -> Result<(), KernelError> {
        let others = law::laws_of_others(&self.places.pin_dir);
        let mut object = self.load_object(name, image)?;
        let missing = object.maps_mut().filter(|map| self.is_missing_law(map));
        let registered = missing.map(|mut map| {
            free_of_others(&map.name().to_string_lossy(), &others)?;
            self.register_law(&mut map)
        });
        registered.fold(Ok(()), Result::and)
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
        let pin = self.law_pin(&name);
        map.pin(&pin)
            .map_err(KernelError::bpf(format!("pin the law {name}")))?;
        let mut tried = 0;
        let mut link = loop {
            match map.attach_struct_ops() {
                Ok(link) => break link,
                Err(_) if tried < REGISTER_TRIES => std::thread::sleep(REGISTER_PAUSE),
                Err(source) => {
                    let _ = std::fs::remove_file(&pin);
                    return Err(KernelError::bpf(format!("register {name}"))(source));
                }
            }
            tried += 1;
        };
        link.disconnect();
        Ok(())
    }
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

/// Names the objects that are embedded here, and the cgroup whose flows they tune.
fn this_build(places: &Places) -> abi::fp_build {
    let images = [TUNE, OVERRIDE, FLOWS, ESTATS, MARK, LAWS, RUDE, RUDE_OPTION];
    let hash = images
        .into_iter()
        .flatten()
        .fold(0xcbf2_9ce4_8422_2325, fnv1a);
    abi::fp_build {
        hash,
        cgroup_id: places.cgroup_id(),
        abi_version: abi::FP_ABI_VERSION,
        pad: 0,
    }
}

/// One step of FNV-1a (RFC 9923), 64 bits.
fn fnv1a(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_names_these_objects() {
        let places = |cgroup: &str| Places {
            pin_dir: "/x".into(),
            cgroup: cgroup.into(),
        };
        let build = this_build(&places("/"));
        assert_eq!(build, this_build(&places("/")));
        assert_ne!(build, this_build(&places("/proc")));
    }
}
