// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few facts of this machine that the lab reads from /proc, and the sysctls that it sets.
//!
//! No decisions: see [`crate::journal`] for what is noted and put back.

use fatpath_mounts::first_mount_of;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The laws that an unprivileged program, or a new default of a namespace other than the first, may
/// be set to. The kernel lists them in the order in which they were registered.
pub const ALLOWED_LAWS: &str = "net.ipv4.tcp_allowed_congestion_control";

/// The value of a sysctl of the calling process's network namespace, words separated by one space;
/// those of [`ALLOWED_LAWS`], whose order means nothing, in alphabetical order.
///
/// # Errors
/// If the kernel does not have it.
pub fn sysctl(name: &str) -> io::Result<String> {
    let text = fs::read_to_string(sysctl_file(name))?;
    let mut words: Vec<&str> = text.split_whitespace().collect();
    if name == ALLOWED_LAWS {
        words.sort_unstable();
    }
    Ok(words.join(" "))
}

/// Sets a sysctl.
///
/// # Errors
/// If the kernel does not have it, refuses the value, or this process may not.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    fs::write(sysctl_file(name), value)
}

fn sysctl_file(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// Where cgroup 2 is mounted (on hybrid systems, not at /sys/fs/cgroup).
///
/// # Errors
/// If it is mounted nowhere.
pub fn cgroup2_root() -> io::Result<PathBuf> {
    first_mount_of("cgroup2")?.ok_or_else(|| {
        let remedy = "cgroup 2 is not mounted; mount it: \
                      mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified";
        io::Error::new(ErrorKind::NotFound, remedy)
    })
}

/// When a process began, in clock ticks since boot; `None` if it is gone or a zombie. With the id
/// it names a process for good. Source: proc_pid_stat(5), fields 3 and 22.
pub fn start_ticks(pid: u32) -> Option<u64> {
    parse_start_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_start_ticks(stat: &str) -> Option<u64> {
    // The name in parentheses may hold blanks and parentheses; the fields begin after the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        None
    } else {
        fields.nth(18)?.parse().ok()
    }
}

/// A process among others.
#[derive(Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Its program's name, 15 bytes at most.
    pub name: String,
    /// The process that started it, or took it over.
    pub parent: u32,
    /// The leader of its session.
    pub session: u32,
}

/// `None` if the process is gone. Source: proc_pid_stat(5), fields 2, 4 and 6.
pub fn lineage(pid: u32) -> Option<Lineage> {
    parse_lineage(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_lineage(stat: &str) -> Option<Lineage> {
    let (head, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    Some(Lineage {
        name: head.split_once('(')?.1.to_owned(),
        parent: fields.next()?.parse().ok()?,
        session: fields.nth(1)?.parse().ok()?,
    })
}

/// Whether somebody listens on a TCP port, IPv4 or IPv6, in the network namespace of a process.
/// Asking the kernel makes no connection that a server might take for its client.
pub fn is_listening(pid: u32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        fs::read_to_string(format!("/proc/{pid}/net/{table}"))
            .is_ok_and(|text| listens(&text, port))
    })
}

fn listens(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let local = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        fields
            .next()
            .is_some_and(|address| address.ends_with(&local))
            && fields.nth(1) == Some(LISTEN)
    })
}

/// Where sessions share the processors (autogroups), a thread's niceness counts within its own only. A lab that
/// is late shows nothing, so its session goes before others, where that is permitted and there are autogroups.
pub fn put_own_session_first() {
    /// Ten times the weight of a session at 0, and not all there is, for the programs at both ends are in others.
    const NICENESS: &str = "-10";
    let _ = fs::write("/proc/self/autogroup", NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1000 10";
        assert_eq!(parse_start_ticks(stat), Some(4242));
        assert_eq!(parse_start_ticks(&stat.replace(" S ", " Z ")), None);
        assert!(start_ticks(std::process::id()).is_some());
        let lineage = Lineage {
            name: "a) b (c".to_owned(),
            parent: 1,
            session: 6,
        };
        assert_eq!(
            parse_lineage(&stat.replace("1 7 7", "1 7 6")),
            Some(lineage)
        );
    }

    #[test]
    fn a_listening_port_is_seen_and_only_while_it_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(std::process::id(), port));
        drop(listener);
        assert!(!is_listening(std::process::id(), port));
    }
}
