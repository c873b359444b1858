// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that a program reads by its path, and that is in no folder.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// In memory, for the programs that this process starts while it has it. When they and this process have ended, in any way, it is gone.
#[derive(Debug)]
pub struct HandedFile(File);

impl HandedFile {
    /// With this content.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(content: &str) -> io::Result<HandedFile> {
        // Without CLOEXEC a program that is started has it under the same number.
        let mut file = File::from(memfd_create("fatpath", MemfdFlags::empty())?);
        file.write_all(content.as_bytes())?;
        Ok(HandedFile(file))
    }

    /// Under which a program opens it.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}
