// SPDX-License-Identifier: MIT OR Apache-2.0
//! One object file of the kernel half: loaded, its programs attached and pinned.

use crate::KernelError;
use crate::handle::Kernel;
use crate::libbpf_log::{forget_what_was_said, last_said};
use libbpf_rs::{Link, Object, ObjectBuilder, ProgramMut};
use std::os::fd::AsRawFd;

/// How libbpf ends what the verifier has said.
fn is_verifiers(log: &str) -> bool {
    log.contains("END PROG LOAD LOG")
}

impl Kernel {
    pub(crate) fn load_object(&self, name: &str, image: &[u8]) -> Result<Object, KernelError> {
        self.load_some(name, image, |_| true)
    }

    /// Without the programs that are not wanted.
    pub(crate) fn load_some(
        &self,
        name: &str,
        image: &[u8],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Object, KernelError> {
        forget_what_was_said();
        let loaded = ObjectBuilder::default()
            .pin_root_path(&self.places.pin_dir)
            .and_then(|builder| builder.open_memory(image))
            .and_then(|mut open| {
                let programs = open.progs_mut();
                let unwanted = programs.filter(|one| !is_wanted(&one.name().to_string_lossy()));
                unwanted.for_each(|mut program| program.set_autoload(false));
                open.load()
            });
        loaded.map_err(|source| {
            let log = last_said();
            // The verifier says EACCES, too, of a program that it refuses; it has then said why.
            let is_verdict = log.as_deref().is_some_and(is_verifiers);
            match source.kind() {
                libbpf_rs::ErrorKind::PermissionDenied if !is_verdict => KernelError::NotPermitted,
                _ => KernelError::Bpf {
                    step: format!("load {name}.bpf.o"),
                    source,
                    log,
                },
            }
        })
    }

    pub(crate) fn pin_program(&self, program: &mut ProgramMut<'_>) -> Result<(), KernelError> {
        let name = program.name().to_string_lossy().into_owned();
        program
            .pin(self.places.pin(&format!("prog_{name}")))
            .map_err(KernelError::bpf(format!("pin the program {name}")))
    }

    pub(crate) fn attach_to_cgroup(
        &self,
        object: &Object,
        name: &str,
        pin: &str,
    ) -> Result<(), KernelError> {
        let link = self.cgroup_link(object, name)?;
        self.pin_link(link, pin)
    }

    /// Attached until the link is dropped.
    pub(crate) fn cgroup_link(&self, object: &Object, name: &str) -> Result<Link, KernelError> {
        let cgroup = std::fs::File::open(&self.places.cgroup).map_err(KernelError::io(format!(
            "open {}",
            self.places.cgroup.display()
        )))?;
        program(object, name)?
            .attach_cgroup(cgroup.as_raw_fd())
            .map_err(KernelError::bpf(format!(
                "attach to {}",
                self.places.cgroup.display()
            )))
    }

    pub(crate) fn pin_link(&self, mut link: Link, name: &str) -> Result<(), KernelError> {
        link.pin(self.places.pin(name))
            .map_err(KernelError::bpf(format!("pin {name}")))
    }
}

pub(crate) fn program<'o>(object: &'o Object, name: &str) -> Result<ProgramMut<'o>, KernelError> {
    object
        .progs_mut()
        .find(|p| p.name() == name)
        .ok_or_else(|| KernelError::io(format!("find {name}"))(std::io::ErrorKind::NotFound.into()))
}
