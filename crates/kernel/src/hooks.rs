// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that are attached only while something needs them: every getsockopt and setsockopt of the
//! host passes those on socket options, every event of every connection and all data that is read those that sample.
#![allow(unsafe_code)] // links to programs known only by their pins: libbpf-rs has no call for that

use crate::KernelError;
use crate::handle::Kernel;
use libbpf_rs::{Program, libbpf_sys as sys};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Programs that come and go together: their names and hooks.
type Hooks = &'static [(&'static str, sys::bpf_attach_type)];

/// Some rule overrides the program's own buffers.
pub(crate) const OVERRIDES: Hooks = &[
    ("keep_asked", sys::BPF_CGROUP_SETSOCKOPT),
    ("tell_asked", sys::BPF_CGROUP_GETSOCKOPT),
];

/// TCP_RUDE.
pub(crate) const RUDE_OPTION: Hooks = &[
    ("set_rude", sys::BPF_CGROUP_SETSOCKOPT),
    ("get_rude", sys::BPF_CGROUP_GETSOCKOPT),
];

/// Some flow is sampled, or one that begins would be.
pub(crate) const SAMPLING: Hooks = &[
    ("sample_flow", sys::BPF_CGROUP_SOCK_OPS),
    ("sample_received", sys::BPF_TRACE_RAW_TP), // no program of a cgroup: the link takes none
];

impl Kernel {
    /// Attaches the programs unless they are attached.
    pub(crate) fn attach_hooks(&self, hooks: Hooks) -> Result<(), KernelError> {
        for (name, kind) in hooks {
            let pin = self.places.pin(&format!("link_{name}"));
            if !pin.exists() {
                self.attach_hook(name, *kind, &pin)?;
            }
        }
        Ok(())
    }

    /// Detaches them: a link whose last pin goes is gone.
    pub(crate) fn detach_hooks(&self, hooks: Hooks) -> Result<(), KernelError> {
        for (name, _) in hooks {
            let pin = self.places.pin(&format!("link_{name}"));
            if pin.exists() {
                std::fs::remove_file(&pin)
                    .map_err(KernelError::io(format!("remove {}", pin.display())))?;
            }
        }
        Ok(())
    }

    fn attach_hook(
        &self,
        name: &str,
        kind: sys::bpf_attach_type,
        pin: &Path,
    ) -> Result<(), KernelError> {
        let program = Program::fd_from_pinned_path(self.places.pin(&format!("prog_{name}")))
            .map_err(KernelError::bpf(format!("open the program {name}")))?;
        let cgroup = std::fs::File::open(&self.places.cgroup).map_err(KernelError::io(format!(
            "open {}",
            self.places.cgroup.display()
        )))?;
        let link = create_link(program.as_raw_fd(), cgroup.as_raw_fd(), kind)
            .map_err(KernelError::io(format!("attach {name}")))?;
        pin_fd(&link, pin).map_err(KernelError::io(format!("pin {}", pin.display())))
    }
}

fn create_link(
    program: RawFd,
    cgroup: RawFd,
    kind: sys::bpf_attach_type,
) -> std::io::Result<OwnedFd> {
    // SAFETY: two open descriptors, no options.
    let fd = unsafe { sys::bpf_link_create(program, cgroup, kind, std::ptr::null()) };
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: a descriptor that the kernel has just given us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn pin_fd(fd: &OwnedFd, path: &Path) -> std::io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an open descriptor and a NUL-terminated path.
    match unsafe { sys::bpf_obj_pin(fd.as_raw_fd(), path.as_ptr()) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(-error)),
    }
}
