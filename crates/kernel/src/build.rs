// SPDX-License-Identifier: MIT OR Apache-2.0
//! A build of the kernel half: its object files, and what they are known by once they are pinned.

use crate::abi;
use crate::places::Places;
use std::borrow::Cow;

macro_rules! object {
    ($name:literal) => {
        (
            $name,
            Cow::Borrowed(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")) as &[u8]),
        )
    };
}

/// Objects whose struct_ops maps are registered.
pub(crate) const LAW_OBJECTS: [&str; 3] = ["laws", "rate_laws", "rude"];

/// The objects of one build by name, and the version of their ABI.
#[derive(Clone)]
pub struct Build {
    objects: [(&'static str, Cow<'static, [u8]>); 10],
    abi_version: u32,
    pub(crate) iterates_over_maps: bool,
}

impl Build {
    /// The objects that are embedded here.
    pub(crate) fn this() -> Build {
        Build {
            objects: [
                object!("tune"),
                object!("override"),
                object!("flows"),
                object!("estats"),
                object!("mark"),
                object!("phases"),
                object!("laws"),
                object!("rate_laws"),
                object!("rude"),
                object!("rude_option"),
            ],
            abi_version: abi::FP_ABI_VERSION,
            iterates_over_maps: true,
        }
    }

    /// What these sources give under another version of the ABI: the version is in no object. For tests of upgrades.
    #[doc(hidden)]
    pub fn of_version(abi_version: u32) -> Build {
        Build {
            abi_version,
            ..Build::this()
        }
    }

    /// As where the kernel refuses iterators over maps. For tests on kernels that take them.
    #[doc(hidden)]
    pub fn without_iterators_over_maps(self) -> Build {
        Build {
            iterates_over_maps: false,
            ..self
        }
    }

    /// With another object in place of one of its own. For tests of upgrades.
    #[doc(hidden)]
    pub fn with_object(mut self, name: &str, image: Vec<u8>) -> Build {
        let mut objects = self.objects.iter_mut();
        if let Some((_, own)) = objects.find(|(own, _)| *own == name) {
            *own = Cow::Owned(image);
        }
        self
    }

    /// One of its objects by name; empty if there is none. For tests that change one.
    #[doc(hidden)]
    pub fn image(&self, name: &str) -> &[u8] {
        let mut objects = self.objects.iter();
        let found = objects.find(|(own, _)| *own == name);
        found.map_or(&[], |(_, image)| image)
    }

    /// Names the objects and the cgroup whose flows they tune.
    pub(crate) fn identity(&self, places: &Places) -> abi::fp_build {
        let bytes = self.objects.iter().flat_map(|(_, image)| image.iter());
        abi::fp_build {
            hash: bytes.fold(0xcbf2_9ce4_8422_2325, fnv1a),
            cgroup_id: places.cgroup_id(),
            abi_version: self.abi_version,
            pad: 0,
        }
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
    fn a_build_is_known_by_its_objects_its_version_and_its_cgroup() {
        let places = |cgroup: &str| Places {
            pin_dir: "/x".into(),
            cgroup: cgroup.into(),
        };
        let (this, here) = (Build::this(), places("/"));
        assert_eq!(this.identity(&here), Build::this().identity(&here));
        let others = [
            this.identity(&places("/proc")),
            Build::of_version(77).identity(&here),
            this.clone().with_object("laws", vec![1]).identity(&here),
        ];
        for other in others {
            assert_ne!(this.identity(&here), other);
        }
    }
}
