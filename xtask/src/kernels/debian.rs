// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's cloud kernels, fetched once by apt, which checks their signatures.
//!
//! apt is given a list of sources of its own, so a host's release does not matter.
//! `rm -r target/kernels` fetches the newest again.

use crate::shell::{output, run};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian 12 is.
pub const SOURCES: &str = "\
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian-security bookworm-security main
";

/// A kernel as its package has it.
pub struct Kernel {
    /// What `uname -r` says there.
    pub release: String,
    /// The bootable image.
    pub image: PathBuf,
    /// The folder of modules: `lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Where this and the runs of this kernel are kept.
    pub folder: PathBuf,
}

/// The kernel of a version ("6.1", "6.12"), unpacked below `cache`.
pub fn kernel(cache: &Path, version: &str) -> Result<Kernel> {
    let folder = cache.join(version);
    if !folder.join("root").exists() {
        fetch(cache, version, &folder)?;
    }
    let modules = only_entry(&folder.join("root/lib/modules"))?;
    let release = modules
        .file_name()
        .and_then(|name| name.to_str())
        .context("the package names its release")?
        .to_owned();
    let image = folder.join(format!("root/boot/vmlinuz-{release}"));
    ensure!(image.exists(), "{} is missing", image.display());
    Ok(Kernel {
        release,
        image,
        modules,
        folder,
    })
}

fn fetch(cache: &Path, version: &str, folder: &Path) -> Result<()> {
    let apt = Apt::new(cache)?;
    let package = apt.image_package(version)?;
    println!("fetching {package}");
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    run(apt.get().args(["download", &package]).current_dir(folder))?;
    let archive = only_entry(folder)?;
    let unpacked = folder.join("unpacked");
    run(Command::new("dpkg").arg("-x").arg(&archive).arg(&unpacked))?;
    std::fs::remove_file(archive)?;
    std::fs::rename(unpacked, folder.join("root")).context("the unpacked kernel")
}

/// apt with sources, lists and cache below one folder.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(cache: &Path) -> Result<Apt> {
        let folder = std::path::absolute(cache.join("apt"))?;
        std::fs::create_dir_all(folder.join("lists/partial"))?;
        let sources = folder.join("sources.list");
        std::fs::write(&sources, SOURCES)?;
        let settings = [
            ("Dir::Etc::sourcelist", sources),
            ("Dir::Etc::sourceparts", PathBuf::from("-")),
            ("Dir::State::lists", folder.join("lists")),
            ("Dir::Cache", folder.join("cache")),
            ("APT::Architecture", PathBuf::from("amd64")),
            ("APT::Sandbox::User", PathBuf::from("root")),
        ];
        let options = settings
            .iter()
            .flat_map(|(key, value)| ["-o".to_owned(), format!("{key}={}", value.display())])
            .collect();
        let apt = Apt { options };
        run(apt.get().arg("update"))?;
        Ok(apt)
    }

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.arg("-qq").args(&self.options);
        command
    }

    /// The package that the newest metapackage of the version stands for.
    fn image_package(&self, version: &str) -> Result<String> {
        // Bookworm's own kernel is 6.1, and its metapackage has no version in its name.
        let meta = match version {
            "6.1" => "linux-image-cloud-amd64".to_owned(),
            _ => format!("linux-image-{version}-cloud-amd64"),
        };
        let shown = output(Command::new("apt-cache").args(&self.options).args([
            "show",
            "--no-all-versions",
            &meta,
        ]))
        .with_context(|| format!("Debian 12 has no cloud kernel {version}"))?;
        let depends = shown
            .lines()
            .find_map(|line| line.strip_prefix("Depends: "))
            .with_context(|| format!("{meta} depends on no image"))?;
        let package = depends.split([' ', ',']).next().unwrap_or_default();
        Ok(package.to_owned())
    }
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let first = entries.next().context("an empty folder")??;
    ensure!(
        entries.next().is_none(),
        "{} holds more than one thing: remove it",
        folder.display()
    );
    Ok(first.path())
}
