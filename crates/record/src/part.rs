// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file while it grows, and what a crash left of one.
//!
//! Parquet keeps its table of contents at the end, so a file is none until it is finished. Until then it is
//! `NAME.part`; beside it, `NAME.footer` holds how many bytes of it are whole, and the end that would
//! finish it there. Each is written before the other says more than is so: a crash costs one row group.

use crate::RecordError;
use crate::column::Table;
use crate::encode::Encoder;
use parquet::errors::ParquetError;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// One file that grows.
pub(crate) struct Part<R: Table> {
    /// Name of the finished file.
    path: PathBuf,
    file: File,
    encoder: Encoder<R>,
    /// Bytes on disk that whole row groups fill.
    whole_bytes: u64,
    /// Of the end that is on disk.
    end_bytes: u64,
    /// Encoded, but not on disk yet: the disk was full.
    pending: Vec<u8>,
    /// The end on disk leaves out the last whole group: the disk was full.
    is_end_due: bool,
}

impl<R: Table> Part<R> {
    /// Begins `path`, as `path.part`, and locks that until it is dropped: [`recover`] leaves it alone.
    pub(crate) fn begin(path: PathBuf) -> Result<Part<R>, RecordError> {
        let part = with_ending(&path, "part");
        let open = || {
            let file = create(&part)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        };
        let file = open().map_err(|error| of_file(&part, error))?;
        let encoder = Encoder::new().map_err(|error| of_parquet(&part, error))?;
        Ok(Part {
            path,
            file,
            encoder,
            whole_bytes: 0,
            end_bytes: 0,
            pending: Vec::new(),
            is_end_due: false,
        })
    }

    /// Adds the rows as a row group, and writes what there is to write.
    pub(crate) fn add(&mut self, rows: &[R]) -> Result<(), RecordError> {
        let bytes = self.encoder.group(rows);
        let bytes = bytes.map_err(|error| of_parquet(&self.path, error))?;
        self.pending.extend(bytes);
        self.write_pending()
    }

    /// Tries again after a full disk.
    pub(crate) fn write_pending(&mut self) -> Result<(), RecordError> {
        if !self.pending.is_empty() {
            self.append().map_err(|error| of_file(&self.path, error))?;
            self.is_end_due = true;
        }
        match self.is_end_due {
            true => self.write_footer(),
            false => Ok(()),
        }
    }

    /// Name of the finished file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets a group read the file, now and when it is finished.
    pub(crate) fn share_with(&self, group: u32) -> Result<(), RecordError> {
        let shared = fchown(&self.file, None, Some(group))
            .and_then(|()| self.file.set_permissions(Permissions::from_mode(0o640)));
        shared.map_err(|error| of_file(&self.path, error))
    }

    /// What it takes of the disk: its groups, and the end twice, once more while that is renewed.
    pub(crate) fn bytes(&self) -> u64 {
        self.whole_bytes + 2 * self.end_bytes
    }

    pub(crate) fn groups(&self) -> usize {
        self.encoder.groups()
    }

    /// All of what is pending, or nothing of it.
    fn append(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.whole_bytes))?;
        if let Err(error) = self.file.write_all(&self.pending) {
            // Room that a torn group takes helps nobody.
            let _ = self.file.set_len(self.whole_bytes);
            return Err(error);
        }
        self.whole_bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn write_footer(&mut self) -> Result<(), RecordError> {
        let footer = self.encoder.footer();
        let footer = footer.map_err(|error| of_parquet(&self.path, error))?;
        let path = with_ending(&self.path, "footer");
        let write = || {
            // What the footer speaks of is on disk before it is.
            self.file.sync_data()?;
            let new = with_ending(&self.path, "footer.new");
            let _ = std::fs::remove_file(&new);
            let mut file = create(&new)?;
            file.write_all(&self.whole_bytes.to_le_bytes())?;
            file.write_all(&footer)?;
            file.sync_data()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| of_file(&path, error))?;
        self.end_bytes = footer.len() as u64;
        self.is_end_due = false;
        Ok(())
    }

    /// Finishes the file; the bytes of it, 0 when there was no row to keep.
    pub(crate) fn finish(self) -> Result<u64, RecordError> {
        let (written, finished) = self.end();
        written.and(finished)
    }

    /// The same; whether the disk took what was pending, and, apart from that, what became of the file.
    pub(crate) fn end(mut self) -> (Result<(), RecordError>, Result<u64, RecordError>) {
        let written = self.write_pending();
        // The lock goes only after the part has become the file.
        let finished = finish(&self.path);
        drop(self);
        (written, finished)
    }
}

/// A file that a crash had left unfinished.
#[derive(Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It has its end now; what came after its last row group is lost.
    Finished(PathBuf),
    /// No row group of it was whole: it is gone.
    Removed(PathBuf),
    /// It could not be finished, for this reason; it stays.
    Failed(PathBuf, String),
}

impl Recovered {
    /// Its file needs somebody.
    pub fn is_failure(&self) -> bool {
        matches!(self, Recovered::Failed(..))
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, what) = match self {
            Recovered::Finished(path) => (path, "it is finished now"),
            Recovered::Removed(path) => (path, "it had no row, and was deleted"),
            Recovered::Failed(_, why) => {
                return write!(
                    f,
                    "cannot finish a file that an earlier trace left unfinished: {why}"
                );
            }
        };
        write!(
            f,
            "{}: an earlier trace left this file unfinished; {what}",
            path.display()
        )
    }
}

/// Finishes what earlier recorders left in the folder; of one that runs still, nothing is touched.
///
/// # Errors
/// When the folder cannot be read.
pub fn recover(folder: &Path) -> Result<Vec<Recovered>, RecordError> {
    let mut recovered = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| of_file(folder, error))?;
    for entry in entries {
        let part = entry.map_err(|error| of_file(folder, error))?.path();
        if part.extension().is_none_or(|ending| ending != "part") {
            continue;
        }
        let Ok(file) = own(&part) else {
            // Not a file of ours: nothing of it is touched, and nothing of what it may point to.
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // Its recorder may have finished it since the folder was listed.
        if !part.exists() {
            continue;
        }
        let path = part.with_extension("");
        recovered.push(match finish(&path) {
            Ok(0) => Recovered::Removed(path),
            Ok(_) => Recovered::Finished(path),
            Err(error) => Recovered::Failed(path, error.with_source()),
        });
    }
    Ok(recovered)
}

/// Removes what an earlier program left of this unfinished file; of one that writes it still, nothing is touched.
pub(crate) fn discard(path: &Path) {
    let part = with_ending(path, "part");
    let is_left = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if own(&part).is_ok_and(|file| is_left(&file)) {
        // What stays is reported when the new one cannot be made.
        let _ = std::fs::remove_file(with_ending(path, "footer"));
        let _ = std::fs::remove_file(part);
    }
}

/// Puts the end behind the whole groups of `path.part`, and gives it its name.
fn finish(path: &Path) -> Result<u64, RecordError> {
    let (part, footer) = (with_ending(path, "part"), with_ending(path, "footer"));
    let _ = std::fs::remove_file(with_ending(path, "footer.new"));
    let end = || -> io::Result<u64> {
        let Some((whole_bytes, end)) = read_footer(&footer)? else {
            std::fs::remove_file(&part)?;
            return Ok(0);
        };
        let mut file = own(&part)?;
        if file.metadata()?.len() < whole_bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        file.set_len(whole_bytes)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&end)?;
        file.sync_data()?;
        std::fs::rename(&part, path)?;
        std::fs::remove_file(&footer)?;
        Ok(whole_bytes + end.len() as u64)
    };
    end().map_err(|error| of_file(path, error))
}

fn read_footer(path: &Path) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut bytes = Vec::new();
    match own(path) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (length, end) = bytes
        .split_first_chunk()
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((u64::from_le_bytes(*length), end.to_vec())))
}

/// A new file that only its owner may read: it tells who talks with whom.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// A file that is there and the caller's. The folder may be open to others: what they leave in it, a link above
/// all, is not written to.
fn own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options
        .read(true)
        .write(true)
        .custom_flags(flags.bits() as i32);
    let file = options.open(path)?;
    let meta = file.metadata()?;
    match meta.is_file() && meta.uid() == geteuid().as_raw() {
        true => Ok(file),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// The caller's finished files in the folder whose names begin so, with their sizes, the oldest first.
pub(crate) fn finished(folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, u64)>, RecordError> {
    let is_one = |name: &str| name.starts_with(prefix) && name.ends_with(".parquet");
    let list = || -> io::Result<Vec<(PathBuf, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            let is_own = meta.is_file() && meta.uid() == geteuid().as_raw();
            if is_own && entry.file_name().to_str().is_some_and(is_one) {
                files.push((entry.path(), meta.len()));
            }
        }
        files.sort_by_cached_key(|(path, _)| time_and_number(path));
        Ok(files)
    };
    list().map_err(|error| of_file(folder, error))
}

/// Of `NAME-TIME-NUMBER.parquet`. A number of five digits comes after those of four.
fn time_and_number(path: &Path) -> (String, u32) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match stem.rsplit_once('-') {
        Some((time, number)) => (time.to_owned(), number.parse().unwrap_or(0)),
        None => (stem.into_owned(), 0),
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

pub(crate) fn of_file(path: &Path, error: io::Error) -> RecordError {
    RecordError::File(path.display().to_string(), error)
}

pub(crate) fn of_parquet(path: &Path, error: ParquetError) -> RecordError {
    RecordError::Parquet(path.display().to_string(), error)
}
