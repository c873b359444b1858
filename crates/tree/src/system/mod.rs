// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one system does by calls that others do not have. `linux.rs` and `other.rs` have the same functions; the other
//! systems are compiled by `make lint`, and no test runs there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code))] // a test asks for a part of it
mod other;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;
use rustix::fs::{Mode, RawMode};

/// Where what is opened below a folder may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Anywhere below it, on whatever is mounted there.
    Folder,
    /// On the folder's own file system.
    FileSystem,
}

/// Of a file's mode, but for its kind.
pub const MODE_BITS: u32 = 0o7777;

/// Of the bits that other hosts and `std` give; its kind is left out.
pub fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode((bits & MODE_BITS) as RawMode)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::fs::{CWD, FileType, OFlags, mknodat, openat};
    use rustix::io::Errno;
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::symlink;

    fn folder() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("top/deep/deeper")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("top/deep/file"), "file").unwrap();
        symlink("..", at("top/out")).unwrap();
        symlink("deep", at("top/in")).unwrap();
        symlink("file", at("top/deep/link")).unwrap();
        mknodat(CWD, at("top/deep/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, at("top"), flags, Mode::empty()).unwrap();
        (folder, top)
    }

    /// A walk from name to name refuses what the kernel refuses where it can be asked.
    #[test]
    fn both_ways_below_a_folder_lead_to_the_same() {
        let (_folder, top) = folder();
        let found = |opened: rustix::io::Result<OwnedFd>| {
            opened.map(|fd| crate::links::inode(&rustix::fs::fstat(fd).unwrap()))
        };
        for path in [
            ".",
            "deep",
            "deep/",
            "deep/deeper",
            "./deep/./file",
            "deep//file",
            "deep/file",
            "none",
            "none/file",
            "",
            "deep/file/file",
            "deep/file/..",
            "in",
            "in/file",
            "out",
            "out/secret",
            "deep/link",
            "deep/link/file",
            "/",
            "/etc",
            "..",
            "../secret",
            "deep/../../secret",
        ] {
            for flags in [OFlags::RDONLY, OFlags::RDONLY | OFlags::DIRECTORY] {
                let path = path.as_bytes();
                let asked = found(linux::open_below(&top, path, flags, Within::Folder));
                let walked = found(other::open_below(&top, path, flags, Within::Folder));
                let shown = String::from_utf8_lossy(path);
                assert_eq!(walked, asked, "{shown} {flags:?}");
            }
        }
        let back = other::open_below(&top, b"deep/..", OFlags::RDONLY, Within::Folder);
        assert_eq!(
            found(back),
            Err(Errno::XDEV),
            "no way up, though this one stays below"
        );
    }

    #[test]
    fn neither_way_enters_what_is_mounted() {
        let root = openat(CWD, "/", OFlags::DIRECTORY, Mode::empty()).unwrap();
        let ways = [linux::open_below, other::open_below];
        for open_below in ways {
            let opened = |within| open_below(&root, b"proc", OFlags::RDONLY, within).map(drop);
            assert_eq!(opened(Within::Folder), Ok(()));
            assert_eq!(opened(Within::FileSystem), Err(Errno::XDEV));
        }
    }

    /// To open a device may do something, and of a FIFO lets its writer go on.
    #[test]
    fn a_place_without_o_path_is_a_file_or_a_folder() {
        let (folder, top) = folder();
        let fifo = folder.path().join("top/deep/fifo");
        let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, &fifo, WatchFlags::OPEN).unwrap();
        let was_opened = || rustix::io::read(&watch, &mut [0; 64]).is_ok();
        let flags = other::PLACE | OFlags::NOFOLLOW;
        for (path, wanted) in [
            ("deep", Ok(())),
            ("deep/file", Ok(())),
            ("deep/none", Err(Errno::NOENT)),
            ("deep/link", Err(Errno::LOOP)),
            ("deep/fifo", Err(Errno::OPNOTSUPP)),
            ("deep/fifo/file", Err(Errno::NOTDIR)),
        ] {
            let opened = other::open_below(&top, path.as_bytes(), flags, Within::Folder);
            assert_eq!(opened.map(drop), wanted, "{path}");
        }
        assert!(!was_opened());
        openat(&top, "deep/fifo", OFlags::NONBLOCK, Mode::empty()).unwrap();
        assert!(was_opened(), "what would be seen");
    }
}
