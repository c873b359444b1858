// SPDX-License-Identifier: MIT OR Apache-2.0
//! fatpath as a service: a Debian with its systemd on a disk, in QEMU, in which `make install` was made.
//!
//! The guest boots twice with the same disk: the first boot (systemd.sh) does what an administrator does, and ends with a
//! reboot; the second looks at what that brought up.

use super::debian::{Kernel, SOURCES};
use super::machine::{Machine, Medium};
use super::root::Root;
use super::{LIMIT, divided, fetched, lock};
use crate::shell::run;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// kmod: `ss` shows a law only where the kernel can load tcp_diag.
const PACKAGES: &str = "systemd,systemd-sysv,iproute2,iperf3,libelf1,kmod";

const CHECKS: &str = include_str!("systemd.sh");

/// Runs the checks once in each boot; what they print goes to the second serial line.
const UNIT: &str = "\
[Unit]
Description=Checks of fatpath.service
After=basic.target

[Service]
Type=oneshot
ExecStart=/usr/local/bin/checks
StandardInput=null
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
TimeoutStartSec=infinity
";

/// A service that starts when the network does, and connects at once.
const EARLY_UNIT: &str = "\
[Unit]
DefaultDependencies=no
Wants=network.target
After=network.target

[Service]
Type=oneshot
ExecStart=/usr/local/bin/checks early
";

/// Blocks of 4 KiB: the system and as much again.
const DISK_BLOCKS: &str = "150000";

/// `systemd [VERSION…]`: the checks under each version, one after the other.
pub fn systemd(root: &Path, words: &[String]) -> Result<()> {
    let (versions, _) = divided(words);
    let kernels = fetched(root, versions)?;
    let debian = debian(&root.join("target/kernels"))?;
    let installed = root.join("target/kernels/installed");
    install(root, &installed)?;
    for kernel in &kernels {
        check(kernel, &debian, &installed).with_context(|| kernel.release.clone())?;
    }
    Ok(())
}

/// A minimal Debian 12, fetched once.
fn debian(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("debian-12");
    if folder.exists() {
        return Ok(folder);
    }
    println!("fetching Debian 12");
    let (sources, new) = (cache.join("debian-12.list"), cache.join("debian-12.new"));
    std::fs::write(&sources, SOURCES)?;
    let _ = std::fs::remove_dir_all(&new);
    let include = format!("--include={PACKAGES}");
    let options = [
        "--quiet",
        "--variant=essential",
        "--format=directory",
        &include,
    ];
    run(Command::new("mmdebstrap")
        .args(options)
        .arg("bookworm")
        .arg(&new)
        .arg(&sources))?;
    std::fs::rename(&new, &folder).context("the new Debian")?;
    Ok(folder)
}

fn install(root: &Path, to: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(to);
    let to = format!("DESTDIR={}", to.display());
    let mut make = Command::new("make");
    run(make
        .current_dir(root)
        .args(["--quiet", "install", "PROFILE=dev", &to]))
}

fn check(kernel: &Kernel, debian: &Path, installed: &Path) -> Result<()> {
    let _alone = lock(kernel)?;
    let disk = disk(kernel, debian, installed)?;
    let first = boot(kernel, &disk, "console.log")?;
    ensure!(first > 0, "nothing was checked");
    let second = boot(kernel, &disk, "console2.log")?;
    ensure!(second > 0, "nothing was checked after the reboot");
    println!("{}: {} checks", kernel.release, first + second);
    Ok(())
}

/// The number of checks, all of which were good.
fn boot(kernel: &Kernel, disk: &Path, console: &str) -> Result<usize> {
    let (mut good, mut failed) = (0, 0);
    let machine = Machine {
        image: &kernel.image,
        medium: Medium::Disk(disk),
        console: &kernel.folder.join(console),
        limit: LIMIT,
    };
    let ended = machine.run(|line| {
        good += usize::from(line.starts_with("ok "));
        failed += usize::from(line.starts_with("FAILED "));
        println!("{}: {line}", kernel.release);
    });
    ensure!(failed == 0, "{failed} checks failed");
    ended?;
    Ok(good)
}

/// A disk with Debian, what was installed and the checks.
fn disk(kernel: &Kernel, debian: &Path, installed: &Path) -> Result<PathBuf> {
    let tree = kernel.folder.join("systemd");
    let _ = std::fs::remove_dir_all(&tree);
    copy(debian, &tree)?;
    copy(&installed.join("."), &tree)?;
    run(Command::new("strip").arg(tree.join("usr/local/bin/fatpath")))?;
    let root = Root::at(&tree);
    let wanted = root.make("etc/systemd/system/multi-user.target.wants")?;
    for (name, text) in [("checks.service", UNIT), ("early.service", EARLY_UNIT)] {
        root.write(&format!("etc/systemd/system/{name}"), text)?;
        std::os::unix::fs::symlink(format!("../{name}"), wanted.join(name))?;
    }
    // Else systemd asks for what an administrator sets up at the first boot.
    root.write("etc/machine-id", "f0000000000000000000000000000001\n")?;
    root.add_script("usr/local/bin/checks", CHECKS)?;
    root.add_modules(kernel)?;
    // The modprobe of kmod reads none of the indexes that busybox makes.
    let mut index = Command::new("chroot");
    run(index.arg(&tree).args(["depmod", "-a", &kernel.release]))?;
    let disk = kernel.folder.join("systemd.ext4");
    let _ = std::fs::remove_file(&disk);
    let mut make = Command::new("mkfs.ext4");
    run(make
        .args(["-q", "-b", "4096", "-d"])
        .arg(&tree)
        .arg(&disk)
        .arg(DISK_BLOCKS))?;
    Ok(disk)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp").arg("-a").arg(from).arg(to))
}
