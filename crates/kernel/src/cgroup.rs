// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroup ids and paths. An id is the inode of the cgroup's directory.

#![allow(unsafe_code)] // open_by_handle_at(2)

use crate::KernelError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where cgroup 2 is mounted: alone at /sys/fs/cgroup, or together with version 1.
pub(crate) fn cgroup_root() -> Result<PathBuf, KernelError> {
    let mounted = fatpath_mounts::first_mount_of("cgroup2");
    let mounted = mounted.map_err(KernelError::io("read /proc/mounts"))?;
    mounted.ok_or(KernelError::NoCgroup2)
}

/// The id of a cgroup-2 path such as `/system.slice/gridftp.service`; `None` when there is no such cgroup.
pub fn cgroup_id(path: &str) -> Option<u64> {
    let directory = cgroup_directory(path).ok()?;
    std::fs::metadata(directory).ok().map(|meta| meta.ino())
}

/// The directory of a cgroup-2 path such as `/system.slice`.
///
/// # Errors
/// When no cgroup of version 2 is mounted.
pub fn cgroup_directory(path: &str) -> Result<PathBuf, KernelError> {
    Ok(cgroup_root()?.join(path.trim_start_matches('/')))
}

/// The least `memory.max` of a cgroup-2 path and of those above it, in bytes; `None` without a limit.
pub fn cgroup_memory_max(path: &str) -> Option<u64> {
    let root = cgroup_root().ok()?;
    let directory = cgroup_directory(path).ok()?;
    let groups = directory.ancestors().take_while(|it| it.starts_with(&root));
    let limits = groups.filter_map(|it| std::fs::read_to_string(it.join("memory.max")).ok());
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// The path of a cgroup id; `None` when it is gone.
pub fn cgroup_path(id: u64) -> Option<String> {
    let root = cgroup_root().ok()?;
    let found = match opened(&root, id) {
        Ok(directory) => path_of(&directory)?,
        Err(Errno::STALE) => return None,
        Err(_) => find(&root, id)?, // without CAP_DAC_READ_SEARCH in the first user namespace
    };
    let path = found.strip_prefix(&root).ok()?;
    Some(format!("/{}", path.display()))
}

/// `struct file_handle` of kernfs, whose handle is the inode's number (FILEID_KERNFS of linux/exportfs.h).
#[repr(C)]
struct Handle {
    length_bytes: u32,
    kind: i32,
    id: u64,
}

const FILEID_KERNFS: i32 = 0xfe;

/// The directory of that id in the file system of `root`.
fn opened(root: &Path, id: u64) -> Result<OwnedFd, Errno> {
    let root = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut handle = Handle {
        length_bytes: size_of::<u64>() as u32,
        kind: FILEID_KERNFS,
        id,
    };
    let (root, flags) = (root.as_raw_fd(), libc::O_PATH | libc::O_CLOEXEC);
    // SAFETY: a handle of the length that it says, and a descriptor that is open during the call.
    let answer = unsafe { libc::open_by_handle_at(root, (&raw mut handle).cast(), flags) };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// A directory that was removed while it was open has no path.
fn path_of(directory: &OwnedFd) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    std::fs::read_link(link).ok().filter(|path| path.exists())
}

fn find(directory: &Path, id: u64) -> Option<PathBuf> {
    if std::fs::metadata(directory).ok()?.ino() == id {
        return Some(directory.to_path_buf());
    }
    std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find(&entry.path(), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_opened_without_a_walk_and_a_removed_one_has_no_path() {
        let Ok(root) = cgroup_root() else { return };
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return;
        }
        let name = format!("fatpath-test-{}", std::process::id());
        let directory = root.join(&name);
        std::fs::create_dir(&directory).expect("a cgroup");
        let id = cgroup_id(&name).expect("its id");
        let found = opened(&root, id).map(|directory| path_of(&directory));
        assert_eq!(found, Ok(Some(directory.clone())));
        assert_eq!(cgroup_path(id), Some(format!("/{name}")));
        std::fs::remove_dir(&directory).expect("it is empty");
        assert_eq!(cgroup_path(id), None);
        assert_eq!(opened(&root, id).err(), Some(Errno::STALE));
    }

    /// Set where the test below runs itself again.
    const INSIDE: &str = "FATPATH_TEST_IN_A_CGROUP_NAMESPACE";

    /// As a container sees it: the root that it mounts is its own cgroup.
    #[test]
    fn the_root_of_a_cgroup_namespace_is_not_that_of_the_host() {
        let Ok(root) = cgroup_root() else { return };
        if std::env::var_os(INSIDE).is_some() {
            let default = crate::Places::new(None, None).expect("cgroup 2 is mounted");
            assert_eq!(default.cgroup, root);
            assert!(default.cgroup_id() > 1, "{}", default.cgroup_id());
            return;
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return;
        }
        let own = root.join(format!("fatpath-namespace-{}", std::process::id()));
        std::fs::create_dir(&own).expect("a cgroup");
        let ran = inside_of(&own, &root);
        std::fs::remove_dir(&own).expect("it is empty");
        let text = String::from_utf8_lossy(&ran.stdout);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(text.contains("1 passed"), "{text} {errors}");
    }

    fn inside_of(own: &Path, root: &Path) -> std::process::Output {
        let (own, root) = (own.display(), root.display());
        let program = std::env::current_exe().expect("this test");
        let program = program.display();
        let test = "cgroup::tests::the_root_of_a_cgroup_namespace_is_not_that_of_the_host";
        let script = format!(
            "echo $$ >{own}/cgroup.procs && exec unshare --cgroup --mount sh -c \
             'umount -l {root} && mount -t cgroup2 none {root} && {INSIDE}=1 exec {program} --exact {test}'"
        );
        let shell = std::process::Command::new("sh")
            .args(["-c", &script])
            .output();
        shell.expect("a shell")
    }
}
