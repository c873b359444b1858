// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sysctls: raised when lower than needed, never lowered, put back unless set by hand since.

use crate::PutBack;
use crate::journal::Journal;
use crate::{HostError, JournalError};
use fatpath_api::Change;
use fatpath_policy::{Sysctl, SysctlName};
use std::io;
use std::path::PathBuf;

/// A sysctl could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("sysctl {name}: {source}")]
pub struct SysctlError {
    name: String,
    source: io::Error,
}

/// Access to the sysctls, `/proc/sys` by default.
#[derive(Clone, Debug)]
pub struct Sysctls {
    root: PathBuf,
}

impl Default for Sysctls {
    fn default() -> Sysctls {
        Sysctls {
            root: "/proc/sys".into(),
        }
    }
}

impl Sysctls {
    /// Answers what there is to say; nothing when the sysctl is high enough.
    pub(crate) fn raise(
        &self,
        journal: &mut Journal,
        wanted: &Sysctl,
    ) -> Result<Option<String>, HostError> {
        self.raise_to(journal, wanted.name, wanted.at_least.value)
    }

    pub(crate) fn raise_to(
        &self,
        journal: &mut Journal,
        wanted: SysctlName,
        at_least: u32,
    ) -> Result<Option<String>, HostError> {
        let name = wanted.as_str();
        let now = self.read(name)?;
        let noted = noted(journal, name);
        // What is still as before was noted by a process that died before it wrote.
        if let Some(Change::Sysctl { before, after, .. }) = &noted
            && *after != now
            && *before != now
        {
            return Ok(Some(format!(
                "{name} was set to {now} by hand since: left alone"
            )));
        }
        let Some(after) = raised(&now, at_least, wanted.is_triple()) else {
            return Ok(None);
        };
        note(journal, noted, name, &now, &after)?;
        self.write(name, &after)?;
        Ok(Some(format!("{name} raised from {now} to {after}")))
    }

    /// Raises the size to which the kernel grows buffers by itself where it is the kernel's own: another one is somebody's
    /// choice. Answers what there is to say.
    pub(crate) fn raise_default(
        &self,
        journal: &mut Journal,
        name: SysctlName,
        at_least_bytes: u32,
    ) -> Result<Option<String>, HostError> {
        match self.without_us(journal, name) {
            Some(bytes) if kernels_own(name).contains(&bytes) => {
                self.raise_to(journal, name, at_least_bytes)
            }
            _ => Ok(None),
        }
    }

    /// The number that the sysctl would have without fatpath, of a triple the third.
    pub(crate) fn without_us(&self, journal: &Journal, name: SysctlName) -> Option<u64> {
        let now = self.text(name.as_str())?;
        let text = match noted(journal, name.as_str()) {
            Some(Change::Sysctl { before, after, .. }) if after == now => before,
            _ => now,
        };
        text.rsplit(' ').next()?.parse().ok()
    }

    pub(crate) fn put_back(&self, name: &str, before: &str, after: &str) -> PutBack {
        match self.read(name) {
            Ok(now) if now == before => PutBack::Restored(format!("{name} is {before}")),
            Ok(now) if now != after => {
                PutBack::LeftAlone(format!("{name} was set to {now} by hand since: left alone"))
            }
            Ok(_) => match self.write(name, before) {
                Ok(()) => PutBack::Restored(format!("{name} put back to {before}")),
                Err(error) => PutBack::Failed(error.to_string()),
            },
            Err(error) => PutBack::Failed(error.to_string()),
        }
    }

    /// Its value, words separated by one space; `None` where it cannot be read, as in a namespace that does not have it.
    pub fn text(&self, name: &str) -> Option<String> {
        self.read(name).ok()
    }

    /// The TCP memory in use (`mem` of proc_net(5)'s sockstat, in pages); `None` where it cannot be read.
    pub fn tcp_used_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/net/sockstat").ok()?;
        let mut words = text
            .lines()
            .find(|line| line.starts_with("TCP:"))?
            .split(' ');
        let pages: u64 = words
            .by_ref()
            .skip_while(|word| *word != "mem")
            .nth(1)?
            .parse()
            .ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }

    /// A number, of a triple the third; `None` where it cannot be read, as in a namespace that does not have it.
    pub fn number(&self, name: SysctlName) -> Option<u64> {
        let text = self.read(name.as_str()).ok()?;
        text.rsplit(' ').next()?.parse().ok()
    }

    /// The TCP memory at which the kernel's pressure begins (the second number of net.ipv4.tcp_mem); `None` where it
    /// cannot be read.
    pub fn tcp_pressure_bytes(&self) -> Option<u64> {
        let text = self.read("net.ipv4.tcp_mem").ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }

    fn read(&self, name: &str) -> Result<String, SysctlError> {
        let text = std::fs::read_to_string(self.path(name)).map_err(failed(name))?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn write(&self, name: &str, value: &str) -> Result<(), SysctlError> {
        std::fs::write(self.path(name), value).map_err(failed(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.replace('.', "/"))
    }
}

fn failed(name: &str) -> impl FnOnce(io::Error) -> SysctlError {
    move |source| SysctlError {
        name: name.to_owned(),
        source,
    }
}

fn noted(journal: &Journal, wanted: &str) -> Option<Change> {
    let is_it = |c: &&Change| matches!(c, Change::Sysctl { name, .. } if name == wanted);
    journal.changes().iter().find(is_it).cloned()
}

/// The first `before` stays: it is what there was before fatpath.
fn note(
    journal: &mut Journal,
    noted: Option<Change>,
    name: &str,
    now: &str,
    after: &str,
) -> Result<(), JournalError> {
    let (name, after) = (name.to_owned(), after.to_owned());
    match noted {
        Some(old @ Change::Sysctl { .. }) => {
            let Change::Sysctl { before, .. } = &old else {
                return Ok(());
            };
            let new = Change::Sysctl {
                name,
                before: before.clone(),
                after,
            };
            journal.replace(&old, new)
        }
        _ => journal.note(Change::Sysctl {
            name,
            before: now.to_owned(),
            after,
        }),
    }
}

/// To how many bytes Linux grows a buffer by itself on a host with enough memory (tcp_init()): of the receive buffer newer
/// kernels to more.
fn kernels_own(name: SysctlName) -> &'static [u64] {
    match name {
        SysctlName::TcpWmem => &[4 << 20],
        SysctlName::TcpRmem => &[6 << 20, 32 << 20],
        _ => &[],
    }
}

/// The value with its last number raised; `None` when it is high enough or no number.
fn raised(now: &str, at_least: u32, is_triple: bool) -> Option<String> {
    let mut fields: Vec<String> = now.split(' ').map(str::to_owned).collect();
    let last = if is_triple {
        fields.get_mut(2)?
    } else {
        fields.first_mut()?
    };
    if last.parse::<u64>().ok()? >= u64::from(at_least) {
        return None;
    }
    *last = at_least.to_string();
    Some(fields.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(value: &str) -> (tempfile::TempDir, Sysctls, Journal) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("net/core")).unwrap();
        std::fs::write(dir.path().join("net/core/rmem_max"), value).unwrap();
        let sysctls = Sysctls {
            root: dir.path().into(),
        };
        let journal = Journal::open(dir.path()).unwrap();
        (dir, sysctls, journal)
    }

    fn wanted(bytes: u32) -> Sysctl {
        let text = format!("[host.sysctl]\n\"net.core.rmem_max\" = {bytes}\n");
        fatpath_policy::parse(&text, None).unwrap().host.sysctls[0].clone()
    }

    const NAME: &str = "net.core.rmem_max";

    #[test]
    fn raises_in_steps_and_puts_back_what_was_there_first() {
        let (_dir, sysctls, mut journal) = host("212992\n");
        assert!(
            sysctls
                .raise(&mut journal, &wanted(1 << 20))
                .unwrap()
                .is_some()
        );
        assert!(
            sysctls
                .raise(&mut journal, &wanted(1 << 21))
                .unwrap()
                .is_some()
        );
        assert_eq!(sysctls.raise(&mut journal, &wanted(1 << 19)).unwrap(), None);
        assert_eq!(sysctls.read(NAME).unwrap(), "2097152");
        let Change::Sysctl { before, after, .. } = journal.changes()[0].clone() else {
            panic!()
        };
        assert_eq!((before.as_str(), after.as_str()), ("212992", "2097152"));
        assert!(matches!(
            sysctls.put_back(NAME, &before, &after),
            PutBack::Restored(_)
        ));
        assert_eq!(sysctls.read(NAME).unwrap(), "212992");
    }

    #[test]
    fn never_lowers() {
        let (_dir, sysctls, mut journal) = host("8388608\n");
        assert_eq!(sysctls.raise(&mut journal, &wanted(1 << 20)).unwrap(), None);
        assert!(journal.changes().is_empty());
    }

    #[test]
    fn leaves_alone_what_was_set_by_hand_since() {
        let (_dir, sysctls, mut journal) = host("212992\n");
        sysctls.raise(&mut journal, &wanted(1 << 20)).unwrap();
        sysctls.write(NAME, "300000").unwrap();
        let said = sysctls
            .raise(&mut journal, &wanted(1 << 21))
            .unwrap()
            .unwrap();
        assert!(said.contains("by hand"), "{said}");
        assert!(matches!(
            sysctls.put_back(NAME, "212992", "1048576"),
            PutBack::LeftAlone(_)
        ));
        assert_eq!(sysctls.read(NAME).unwrap(), "300000");
    }

    #[test]
    fn only_the_kernels_own_size_is_raised_and_known_afterwards() {
        let (dir, sysctls, mut journal) = host("212992\n");
        std::fs::create_dir_all(dir.path().join("net/ipv4")).unwrap();
        let mut raise = |text: &str, name, bytes| {
            std::fs::write(dir.path().join("net/ipv4/tcp_wmem"), text).unwrap();
            let said = sysctls.raise_default(&mut journal, name, bytes).unwrap();
            let without_us = sysctls.without_us(&journal, name).unwrap();
            (said.is_some(), sysctls.number(name).unwrap(), without_us)
        };
        let name = SysctlName::TcpWmem;
        let by_hand = raise("4096\t16384\t8388608\n", name, 1 << 25);
        assert_eq!(by_hand, (false, 8 << 20, 8 << 20));
        let small = raise("4096\t16384\t4194304\n", name, 1 << 20);
        assert_eq!(small, (false, 4 << 20, 4 << 20));
        let own = raise("4096\t16384\t4194304\n", name, 1 << 25);
        assert_eq!(own, (true, 32 << 20, 4 << 20));
        // Raised further when more is wanted, and left alone when set by hand since.
        let more = raise("4096\t16384\t33554432\n", name, 1 << 26);
        assert_eq!(more, (true, 64 << 20, 4 << 20));
        let since = raise("4096\t16384\t16777216\n", name, 1 << 26);
        assert_eq!(since, (false, 16 << 20, 16 << 20));
    }

    #[test]
    fn of_a_triple_only_the_maximum_is_raised() {
        assert_eq!(
            raised("4096 131072 6291456", 1 << 25, true).unwrap(),
            "4096 131072 33554432"
        );
        assert_eq!(raised("4096 131072 6291456", 1 << 20, true), None);
        assert_eq!(raised("junk", 1, false), None);
    }
}
