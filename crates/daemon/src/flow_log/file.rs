// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a log. It is bounded: a full file becomes `.1`, and the one before it goes.

use fatpath_host::fatpath_group;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) struct LogFile {
    path: PathBuf,
    file: Option<File>,
    max_bytes: u64,
}

impl LogFile {
    pub(super) fn new(path: &Path, max_bytes: u64) -> LogFile {
        LogFile {
            path: path.into(),
            file: None,
            max_bytes,
        }
    }

    /// The next lines open it anew.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    /// All of the lines or none of them.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let appended = self.append_to_open(lines);
        if appended.is_err() {
            self.close();
        }
        appended
    }

    fn append_to_open(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut length = self.open()?.metadata()?.len();
        if length > 0 && length + lines.len() as u64 > self.max_bytes {
            self.rotate()?;
            length = 0;
        }
        let file = self.open()?;
        let written = file.write_all(lines);
        if written.is_err() {
            // A device has no length; the error that counts is the first.
            let _ = file.set_len(length);
        }
        written
    }

    /// 0640 root:fatpath, as the API: who may ask the daemon may read its log.
    fn open(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            if let Some(directory) = self.path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .mode(0o640)
                .open(&self.path)?;
            if let Some(group) = fatpath_group() {
                let _ = std::os::unix::fs::fchown(&file, None, Some(group));
            }
            self.file = Some(file);
        }
        Ok(self.file.as_mut().expect("it was opened above"))
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)
    }
}
