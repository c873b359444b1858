// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that others must not read, or not write, and where they are.

use rustix::process::geteuid;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names of files in the configuration: this host's key, keys of those who may connect to it, and keys of those to whom it
/// connects.
pub const KEY: &str = "key";
/// See [`KEY`].
pub const CALLERS: &str = "authorized_keys";
/// See [`KEY`].
pub const HOSTS: &str = "known_hosts";

/// No file of keys is longer.
const MOST_BYTES: u64 = 1 << 20;
/// Of group and others: what must not be given.
const ANY_ACCESS: u32 = 0o077;
const WRITING: u32 = 0o022;

/// What is wrong with a file of keys.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the texts say it
pub enum FileError {
    #[error("{0} is not there: `fatpath keys new` makes a key")]
    Missing(PathBuf),
    #[error("{0} is there already: it stays as it is, because other hosts may trust it")]
    There(PathBuf),
    #[error("{0} belongs to somebody else, or is open to others: chown and chmod 600 it")]
    Open(PathBuf),
    #[error("{0} may be written by other users than root and this one: chown and chmod 644 it")]
    Writable(PathBuf),
    #[error("{0} cannot be read by this user: chmod 644 it, and chmod 755 its folder")]
    Hidden(PathBuf),
    #[error("{0} has no private key that fatpath reads: Ed25519, PKCS #8 in PEM")]
    NoPrivateKey(PathBuf),
    #[error("the kernel gives no random bytes")]
    NoRandom,
    #[error("{0} is longer than a file of keys is")]
    Long(PathBuf),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    #[error("there is no home folder to look for {0} in: say where it is")]
    Homeless(&'static str),
}

impl FileError {
    fn io(path: &Path) -> impl Fn(io::Error) -> FileError {
        move |error| FileError::Io(path.to_owned(), error)
    }
}

/// `file`, or where none is given [`in_configuration`].
///
/// # Errors
/// The environment names no home folder.
pub fn or_configured(file: Option<&Path>, name: &'static str) -> Result<PathBuf, FileError> {
    file.map_or_else(|| in_configuration(name), |file| Ok(file.to_owned()))
}

/// `name` in the folder of fatpath's configuration: /etc/fatpath for root, and for others `$XDG_CONFIG_HOME/fatpath` or
/// `~/.config/fatpath`.
///
/// # Errors
/// The environment names no home folder.
pub fn in_configuration(name: &'static str) -> Result<PathBuf, FileError> {
    if geteuid().is_root() {
        return Ok(Path::new("/etc/fatpath").join(name));
    }
    let set = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
    let folder = match (set("XDG_CONFIG_HOME"), set("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(&home).join(".config"),
        (None, None) => return Err(FileError::Homeless(name)),
    };
    Ok(folder.join("fatpath").join(name))
}

/// The text of a file that nobody else may read or write.
pub(crate) fn read_private(path: &Path) -> Result<String, FileError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing(path.to_owned()),
        _ => FileError::io(path)(error),
    })?;
    let metadata = file.metadata().map_err(FileError::io(path))?;
    if metadata.mode() & ANY_ACCESS != 0 || !is_ours(&metadata) {
        return Err(FileError::Open(path.to_owned()));
    }
    read(path, file)
}

/// The text of a file that nobody else may write; `None`: it is not there.
///
/// # Errors
/// It cannot be read, is too long, or others may write it.
pub fn read_trusted(path: &Path) -> Result<Option<String>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(FileError::Hidden(path.to_owned()));
        }
        Err(error) => return Err(FileError::io(path)(error)),
    };
    let metadata = file.metadata().map_err(FileError::io(path))?;
    if metadata.mode() & WRITING != 0 || !is_ours(&metadata) {
        return Err(FileError::Writable(path.to_owned()));
    }
    read(path, file).map(Some)
}

/// Root's, or this user's.
fn is_ours(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

fn read(path: &Path, file: File) -> Result<String, FileError> {
    let mut text = String::new();
    let mut file = file.take(MOST_BYTES + 1);
    file.read_to_string(&mut text)
        .map_err(FileError::io(path))?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(FileError::Long(path.to_owned())),
        false => Ok(text),
    }
}

/// Writes a new file that nobody else may read.
pub(crate) fn create_private(path: &Path, text: &str) -> Result<(), FileError> {
    make_folder(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => FileError::There(path.to_owned()),
        _ => FileError::io(path)(error),
    })?;
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| file.sync_all());
    written.map_err(|error| {
        let _ = std::fs::remove_file(path); // half a key would be in the way of a whole one
        FileError::io(path)(error)
    })
}

/// Adds a line to a file that everybody may read, and whose last line may lack its end, as an editor leaves it.
pub(crate) fn append(path: &Path, line: &str) -> Result<(), FileError> {
    make_folder(path)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o644);
    let mut file = options.open(path).map_err(FileError::io(path))?;
    let written = lacks_newline(&file).and_then(|lacks| {
        let end = if lacks { "\n" } else { "" };
        file.write_all(format!("{end}{line}\n").as_bytes())
    });
    written.map_err(FileError::io(path))
}

fn lacks_newline(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

fn make_folder(path: &Path) -> Result<(), FileError> {
    let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o755);
    builder.create(folder).map_err(FileError::io(folder))
}
