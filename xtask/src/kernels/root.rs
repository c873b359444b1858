// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's file system: programs of the host with the libraries they need, modules of
//! its kernel, and an `/init`, packed into one initramfs.

use super::debian::Kernel;
use crate::shell::{output, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules that the kernel may ask for; their folders below `kernel/`.
const MODULES: [&str; 10] = [
    "crypto",
    "drivers/net",
    "lib",
    "net/core",
    "net/ipv4",
    "net/ipv6",
    "net/netlink",
    "net/packet",
    "net/sched",
    "net/unix",
];

/// A tree of files on the host that becomes the guest's root.
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// Folders, busybox under all its names, and who is who.
    pub fn new(folder: &Path) -> Result<Root> {
        let _ = std::fs::remove_dir_all(folder);
        let root = Root::at(folder);
        for name in ["dev", "proc", "sys", "run", "tmp", "root", "usr/bin", "etc"] {
            root.make(name)?;
        }
        // As Debian has it, so that the paths of the host's programs hold in the guest.
        for (link, target) in [
            ("bin", "usr/bin"),
            ("sbin", "usr/bin"),
            ("usr/sbin", "bin"),
            ("lib", "usr/lib"),
            ("lib64", "usr/lib64"),
        ] {
            std::os::unix::fs::symlink(target, root.folder.join(link))?;
        }
        root.make("usr/lib")?;
        root.make("usr/lib64")?;
        root.write(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
        )?;
        root.write("etc/group", "root:x:0:\nnogroup:x:65534:\n")?;
        root.add_busybox()?;
        Ok(root)
    }

    /// A tree that is there.
    pub fn at(folder: &Path) -> Root {
        Root {
            folder: folder.to_path_buf(),
        }
    }

    fn add_busybox(&self) -> Result<()> {
        let path = find("busybox")?;
        let names = output(Command::new(&path).arg("--list"))?;
        let folder = self.folder.join("usr/bin");
        std::fs::copy(&path, folder.join("busybox")).context("busybox")?;
        for name in names.lines().filter(|name| *name != "busybox") {
            std::os::unix::fs::symlink("busybox", folder.join(name))?;
        }
        Ok(())
    }

    /// A program of the host, by its name, instead of busybox's.
    pub fn add_tool(&self, name: &str) -> Result<()> {
        let path = find(name)?;
        self.add_with_libraries(&path, &Path::new("/usr/bin").join(name))
    }

    /// A program that was built here, at the same path in the guest, without its debug information and its symbols, but
    /// for those by which a test's probes find functions of the test.
    pub fn add_built(&self, path: &Path) -> Result<()> {
        self.add_with_libraries(path, path)?;
        let strip = ["--wildcard", "--keep-symbol=fatpath_test_*"];
        run(Command::new("strip").args(strip).arg(self.inside(path)))
    }

    fn add_with_libraries(&self, from: &Path, to: &Path) -> Result<()> {
        self.copy(from, to)?;
        // Lines: `name => /path (address)` and `/path (address)`.
        let libraries = output(Command::new("ldd").arg(from)).unwrap_or_default();
        let paths = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
            .map(Path::new);
        for library in paths {
            if !self.inside(library).exists() {
                self.copy(library, library)?;
            }
        }
        Ok(())
    }

    /// The modules that tests may need, for `modprobe`, which the kernel itself calls.
    pub fn add_modules(&self, kernel: &Kernel) -> Result<()> {
        let to = self.make(&format!("lib/modules/{}", kernel.release))?;
        for name in [
            "modules.builtin",
            "modules.builtin.modinfo",
            "modules.order",
        ] {
            std::fs::copy(kernel.modules.join(name), to.join(name)).context(name)?;
        }
        for folder in MODULES.map(|folder| Path::new("kernel").join(folder)) {
            copy_files(&kernel.modules.join(&folder), &to.join(&folder))?;
        }
        let decompress = "find \"$0\" -name '*.xz' -exec busybox unxz {} +";
        run(Command::new("sh").args(["-c", decompress]).arg(&to))?;
        let depmod = ["depmod", "-b"];
        run(Command::new("busybox")
            .args(depmod)
            .arg(&self.folder)
            .arg(&kernel.release))
    }

    /// An executable text.
    pub fn add_script(&self, name: &str, text: &str) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(name, text)?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.folder.join(name), mode).context("a script's mode")
    }

    /// A text.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.folder.join(name), text).with_context(|| name.to_owned())
    }

    /// A folder, with those above it.
    pub fn make(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(&path).with_context(|| name.to_owned())?;
        Ok(path)
    }

    /// Writes the initramfs.
    pub fn pack(&self, archive: &Path) -> Result<()> {
        let pack = "find . | busybox cpio -o -H newc -R 0:0 2>/dev/null";
        let file = std::fs::File::create(archive).context("the initramfs")?;
        let mut command = Command::new("sh");
        run(command
            .args(["-c", pack])
            .current_dir(&self.folder)
            .stdout(file))
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let to = self.inside(to);
        std::fs::create_dir_all(to.parent().context("a path in the guest")?)?;
        let _ = std::fs::remove_file(&to);
        std::fs::copy(from, &to).with_context(|| from.display().to_string())?;
        Ok(())
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.folder.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// The files of one folder, not of those below.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn find(name: &str) -> Result<PathBuf> {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = places.map(|place| Path::new(place).join(name));
    match found.into_iter().find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!("{name} is not installed: packaging/setup.sh kernels"),
    }
}
