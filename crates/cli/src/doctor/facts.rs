// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the host.

use super::rights::{NOT_ROOT, is_root};
use super::rivals;
use anyhow::Result;
use fatpath_api::Status;
use fatpath_api::endpoint::GetStatus;
use fatpath_clock::clock_is_synchronised;
use fatpath_daemon::{Instance, InstanceOptions, client, read_policy_file};
use fatpath_doctor::{Daemon, Facts, Laws, PolicyFile, SYSCTLS, Seen, System};
use fatpath_host::Sysctls;
use fatpath_kernel::{
    bpffs_is_mounted, cgroup_memory_max, has_group, laws_of_others, registered_laws,
};
use fatpath_policy::{Refused, memory_warnings, our_laws};
use std::io::ErrorKind;
use std::path::Path;

/// Where systemd puts the daemon.
const SERVICE: &str = "/system.slice/fatpath.service";

pub(super) fn read(options: &InstanceOptions, policy: &Path) -> Result<Facts> {
    let cgroup2 = fatpath_mounts::first_mount_of("cgroup2").ok().flatten();
    let instance = Instance::new(options, Some(cgroup2.clone().unwrap_or_default()))?;
    let sysctls = Sysctls::default();
    let status = client::get::<GetStatus>(&instance.socket()).map_err(|error| error.to_string());
    let pid = status.as_ref().ok().and_then(|it| Some(it.as_ref()?.pid));
    let values = SYSCTLS.iter();
    let values = values.filter_map(|name| Some(((*name).to_owned(), sysctls.text(name)?)));
    let has_cgroup2 = cgroup2.is_some();
    Ok(Facts {
        system: System {
            kernel_release: kernel_release(),
            has_btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
            has_bpffs: bpffs_is_mounted(),
            daemon_memory_max_bytes: memory_max(has_cgroup2, pid),
            has_synchronised_clock: clock_is_synchronised().map_err(|error| error.to_string()),
            cgroup2,
        },
        laws: laws(&instance),
        sysctls: values.collect(),
        tcp_pressure_bytes: sysctls.tcp_pressure_bytes(),
        tcp_used_bytes: sysctls.tcp_used_bytes(),
        rivals: rivals::read(has_cgroup2.then_some(&instance.places)),
        has_group: has_group("fatpath"),
        daemon: daemon(status, &instance.places.pin_dir),
        policy: policy_file(policy, &sysctls),
        version: env!("CARGO_PKG_VERSION"),
    })
}

fn kernel_release() -> String {
    let name = rustix::system::uname();
    name.release().to_string_lossy().into_owned()
}

fn memory_max(has_cgroup2: bool, pid: Option<u32>) -> Seen<Option<u64>> {
    if !has_cgroup2 {
        return Err("cgroup 2 is not mounted".to_owned());
    }
    let Some(pid) = pid else {
        return Ok(cgroup_memory_max(SERVICE));
    };
    let file = format!("/proc/{pid}/cgroup");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    Ok(path.and_then(cgroup_memory_max))
}

fn laws(instance: &Instance) -> Laws {
    let of_others = match is_root() {
        false => Err(NOT_ROOT.to_owned()),
        true => Ok(laws_of_others(&instance.places.pin_dir)),
    };
    let unseen = || "its pins are not seen here".to_owned();
    let owner = |pins: Option<std::path::PathBuf>| {
        pins.map_or_else(unseen, |pins| format!("pins at {}", pins.display()))
    };
    let named = of_others.map(|others| {
        let named = others.into_iter().map(|it| (it.law, owner(it.pin_dir)));
        named.collect()
    });
    Laws {
        registered: registered_laws().map_err(|error| error.to_string()),
        brought: our_laws().collect(),
        of_others: named,
    }
}

fn daemon(status: Result<Option<Status>, String>, pins: &Path) -> Seen<Daemon> {
    if let Some(status) = status? {
        return Ok(Daemon::Runs {
            pid: status.pid,
            errors: errors(&status),
            lists_by_namespace: status.kernel.lists_by_namespace,
            version: status.version,
        });
    }
    match std::fs::metadata(pins) {
        Ok(_) => Ok(Daemon::OnlyPins),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(format!("the daemon does not answer; {NOT_ROOT}"))
        }
        Err(_) => Ok(Daemon::NotLoaded),
    }
}

/// What the daemon says is wrong.
fn errors(status: &Status) -> Vec<String> {
    let archive = status.archive.as_ref();
    let named = [
        ("page", status.page_error.as_ref()),
        ("flow log", status.flow_log.error.as_ref()),
        (
            "event log",
            status.event_log.as_ref().and_then(|it| it.error.as_ref()),
        ),
        (
            "archive's spool",
            archive.and_then(|it| it.spool_error.as_ref()),
        ),
        ("archive", archive.and_then(|it| it.store_error.as_ref())),
        (
            "tests",
            status
                .measure
                .as_ref()
                .and_then(|it| it.file_error.as_ref()),
        ),
    ];
    let named = named
        .into_iter()
        .filter_map(|(what, error)| Some(format!("{what}: {}", error?)));
    named.collect()
}

fn policy_file(file: &Path, sysctls: &Sysctls) -> PolicyFile {
    let read = read_policy_file(file).map(|mut policy| {
        let pressure_bytes = sysctls.tcp_pressure_bytes();
        let of_memory = memory_warnings(&policy, pressure_bytes, cgroup_memory_max);
        policy.warnings.extend(of_memory);
        policy
    });
    PolicyFile {
        file: file.display().to_string(),
        is_there: file.try_exists().unwrap_or(true),
        policy: read.map_err(|error| match error.downcast::<Refused>() {
            Ok(refused) => refused.lines(),
            Err(error) => vec![format!("{error:#}")],
        }),
    }
}
