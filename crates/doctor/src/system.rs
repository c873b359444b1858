// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel, what is mounted, memory and clock.

use crate::{Check, System};
use fatpath_units::show_bytes;

/// The oldest kernel on which fatpath is tested (README.md, `make test-kernels`).
const OLDEST: (u32, u32) = (6, 1);

/// From here on a program may switch a socket's callbacks outside sockops (docs/kernel.md).
const ALL_ENDS_RECORDED: (u32, u32) = (6, 12);

/// The daemon took 498 MB beside 100,000 flows and 10,000 new connections a second (docs/performance.md, `load.memory_mb`).
const ENOUGH_MEMORY_BYTES: u64 = 512 << 20;

pub(crate) fn checks(system: &System) -> Vec<Check> {
    vec![
        kernel(&system.kernel_release),
        btf(system.has_btf),
        cgroup2(system),
        bpffs(system.has_bpffs),
        memory(system),
        clock(system),
    ]
}

fn kernel(release: &str) -> Check {
    const NAME: &str = "kernel";
    match version(release) {
        None => Check::unseen(NAME, &format!("{release}: no version that can be read")),
        Some(version) if version < OLDEST => Check::bad(
            NAME,
            format!("{release}: fatpath is not tested before 6.1, and its programs may be refused"),
            "Install Linux 6.1 or later",
        ),
        Some(version) if version < ALL_ENDS_RECORDED => Check::warn(
            NAME,
            format!(
                "{release}: before 6.12, flows that began before fatpath have no record of their end"
            ),
            "None needed; Linux 6.12 or later records these too",
        ),
        Some(_) => Check::ok(NAME, release),
    }
}

/// `6.1.0-18-amd64` is 6.1.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn btf(is_there: bool) -> Check {
    const NAME: &str = "BTF";
    match is_there {
        true => Check::ok(NAME, "/sys/kernel/btf/vmlinux"),
        false => Check::bad(
            NAME,
            "/sys/kernel/btf/vmlinux is missing: no eBPF program of fatpath can be loaded",
            "Boot a kernel with CONFIG_DEBUG_INFO_BTF=y (those of Debian, Ubuntu, Fedora and RHEL have it)",
        ),
    }
}

fn cgroup2(system: &System) -> Check {
    const NAME: &str = "cgroup 2";
    match &system.cgroup2 {
        Some(at) => Check::ok(NAME, format!("mounted at {}", at.display())),
        None => Check::bad(
            NAME,
            "not mounted: new flows cannot be tuned",
            "mkdir -p /sys/fs/cgroup/unified; mount -t cgroup2 none /sys/fs/cgroup/unified",
        ),
    }
}

fn bpffs(is_there: bool) -> Check {
    const NAME: &str = "BPF file system";
    match is_there {
        true => Check::ok(NAME, "mounted at /sys/fs/bpf"),
        false => Check::warn(
            NAME,
            "not mounted at /sys/fs/bpf: the daemon mounts it when it starts",
            "mount -t bpf -o mode=700 bpf /sys/fs/bpf",
        ),
    }
}

/// RLIMIT_MEMLOCK does not count: since Linux 5.11 BPF memory is charged to the cgroup.
fn memory(system: &System) -> Check {
    const NAME: &str = "daemon's memory";
    match &system.daemon_memory_max_bytes {
        Err(why) => Check::unseen(NAME, why),
        Ok(None) => Check::ok(NAME, "no limit by its cgroup"),
        Ok(Some(bytes)) if *bytes >= ENOUGH_MEMORY_BYTES => {
            Check::ok(NAME, format!("limited to {}", show_bytes(*bytes)))
        }
        Ok(Some(bytes)) => Check::warn(
            NAME,
            format!(
                "memory.max of its cgroup is {}: with many flows the kernel would kill it (tuning goes on)",
                show_bytes(*bytes)
            ),
            "systemctl set-property fatpath.service MemoryMax=512M",
        ),
    }
}

fn clock(system: &System) -> Check {
    const NAME: &str = "clock";
    match &system.has_synchronised_clock {
        Err(why) => Check::unseen(NAME, why),
        Ok(true) => Check::ok(NAME, "synchronised"),
        Ok(false) => Check::warn(
            NAME,
            "not synchronised: times in logs and in the archive do not compare between hosts",
            "Run an NTP client: apt install chrony, or systemctl enable --now systemd-timesyncd",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn the_version_is_what_uname_begins_with() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.5"), Some((6, 18)));
        assert_eq!(version("7.0-rc1+"), Some((7, 0)));
        assert_eq!(version("weird"), None);
    }

    #[test]
    fn each_age_of_kernel_has_its_level() {
        let level = |release| kernel(release).level;
        assert_eq!(level("5.10.0-28-amd64"), Level::Bad);
        assert_eq!(level("6.1.0-18-amd64"), Level::Warn);
        assert_eq!(level("6.12.9"), Level::Ok);
        assert_eq!(level("x"), Level::Unseen);
    }
}
