// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lists of flows: loaded, and read in all network namespaces.
//!
//! An iterator over the socket storage lists the flows of all namespaces at once. A kernel may refuse iterators over maps
//! (docs/kernel.md): there an iterator over sockets lists those of each namespace that can be found.

use crate::KernelError;
use crate::build::Build;
use crate::handle::Kernel;
use crate::namespaces::{namespaces, within};
use crate::object::program;
use crate::pins::{LINK_KEEP_NEW, LINK_LIST_DIVIDED, LINK_LIST_FLOWS};
use libbpf_rs::{ErrorKind, Object};
use std::os::fd::AsFd;

/// Each program, and its pin.
const LISTS: [(&str, &str); 2] = [
    ("list_flows", LINK_LIST_FLOWS),
    ("list_divided", LINK_LIST_DIVIDED),
];

/// Ends the name, and that of the pin, of what lists a namespace at a time.
const HERE: &str = "_here";

impl Kernel {
    pub(crate) fn load_lists(&self, build: &Build) -> Result<(), KernelError> {
        let over_storage = build.iterates_over_maps;
        let flows = match over_storage.then(|| self.load_lists_over_storage(build)) {
            Some(Err(error)) if is_refused(&error) => self.load_lists_here(build),
            Some(loaded) => loaded,
            None => self.load_lists_here(build),
        }?;
        self.attach_iterator(&flows, "keep_new", LINK_KEEP_NEW)
    }

    fn load_lists_over_storage(&self, build: &Build) -> Result<Object, KernelError> {
        let is_wanted = |name: &str| !name.ends_with(HERE);
        let object = self.load_some("flows", build.image("flows"), is_wanted)?;
        for (name, pin) in LISTS {
            self.attach_to_storage(&object, name, pin)?;
        }
        Ok(object)
    }

    fn load_lists_here(&self, build: &Build) -> Result<Object, KernelError> {
        let is_wanted = |name: &str| LISTS.iter().all(|(over_storage, _)| name != *over_storage);
        let object = self.load_some("flows", build.image("flows"), is_wanted)?;
        for (name, pin) in LISTS {
            self.attach_iterator(&object, &here(name), &here(pin))?;
        }
        Ok(object)
    }

    fn attach_to_storage(&self, object: &Object, name: &str, pin: &str) -> Result<(), KernelError> {
        let flows = self.table("fp_flows")?;
        let link = program(object, name)?
            .attach_iter(flows.handle().as_fd())
            .map_err(KernelError::bpf("attach the list of flows"))?;
        self.pin_link(link, pin)
    }

    /// What a list writes of all network namespaces. One that vanishes is passed over.
    pub(crate) fn list(&self, pin: &str) -> Result<Vec<u8>, KernelError> {
        match self.is_by_namespace(pin) {
            true => self.iterate_everywhere(&here(pin)),
            false => self.iterate(pin),
        }
    }

    pub(crate) fn lists_by_namespace(&self) -> bool {
        self.is_by_namespace(LINK_LIST_FLOWS)
    }

    fn is_by_namespace(&self, pin: &str) -> bool {
        self.places.pin(&here(pin)).exists()
    }

    /// Runs an iterator over sockets in each network namespace that can be found. One that cannot be walked does not keep
    /// the others from it.
    pub(crate) fn iterate_everywhere(&self, link: &str) -> Result<Vec<u8>, KernelError> {
        let walk = |namespace| within(&namespace, || self.iterate(link))?.transpose();
        let walked: Vec<_> = namespaces().into_iter().map(walk).collect();
        let written: Result<Vec<Option<Vec<u8>>>, KernelError> = walked.into_iter().collect();
        Ok(written?.into_iter().flatten().flatten().collect())
    }
}

fn is_refused(error: &KernelError) -> bool {
    match error {
        KernelError::NotPermitted => true,
        KernelError::Bpf { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        _ => false,
    }
}

fn here(name: &str) -> String {
    format!("{name}{HERE}")
}
