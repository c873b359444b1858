// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a caller of a listener may have: a folder below the listener's, files that are there where it may fetch them, and the
//! listener's ports.

use crate::protocol::{Agreed, Hello, Part, Sends};
use anyhow::{Context, Result, ensure};
use fatpath_tree::system::{Within, open_below};
use fatpath_tree::{checked, shown};
use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::Errno;
use rustix::process::fchdir;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// How long a caller may ask to be waited for when it says nothing: one whose host is gone keeps its place for so long.
const MOST_SILENCE_MS: u32 = 10 * 60 * 1000;

/// What a caller is held to.
#[derive(Debug)]
pub struct Bounds {
    /// Everything is below it.
    pub folder: PathBuf,
    /// Where data may arrive; `None`: at all addresses of the host.
    pub address: Option<IpAddr>,
    /// First and last port.
    pub ports: (u16, u16),
    /// The largest window.
    pub window_bytes: u64,
    /// The caller may fetch what is there.
    pub gives: bool,
}

impl Bounds {
    /// Refuses what is out of bounds, and enters the folder that the caller sends to, or the listener's where it fetches: what it
    /// is called from here on stands in its place. For a process that serves one caller.
    ///
    /// # Errors
    /// The caller wants what it may not have, or the folder cannot be made.
    pub fn hold(&self, hello: &mut Hello) -> Result<()> {
        self.agree(&mut hello.agreed)?;
        match &mut hello.part {
            Part::Receive(receives) => {
                ensure!(
                    receives.deletes.is_none(),
                    "a listener deletes nothing, as others may share its folder: leave out --delete"
                );
                receives.folder = self.enter(&receives.folder, receives.is_dry)?;
            }
            Part::Send(sends) => {
                self.permit(sends)?;
                ensure!(
                    hello.agreed.tcp.is_empty(),
                    "a listener sends as its own congestion control has it: leave out --tcp"
                );
                self.enter(b"", true)?;
            }
        }
        Ok(())
    }

    /// What may be fetched is named from the listener's folder on.
    fn permit(&self, sends: &mut Sends) -> Result<()> {
        ensure!(
            self.gives,
            "the listener gives no files to this end: whoever runs it may add --give-to NAME, with the name that it has for this \
             end's key; or fetch them by ssh, as HOST:FILE"
        );
        for path in &mut sends.paths {
            let names = checked(trimmed(path)).with_context(|| shown(path))?;
            *path = names.join(&b'/');
        }
        Ok(())
    }

    /// What this end is set to alone is lowered: the sender is told of the window with each acknowledgement.
    fn agree(&self, agreed: &mut Agreed) -> Result<()> {
        let ((first, last), (wanted_first, wanted_last)) = (self.ports, agreed.ports);
        ensure!(
            (first..=last).contains(&wanted_first) && (first..=last).contains(&wanted_last),
            "the listener uses the ports {first} to {last}: give --ports {first}-{last}"
        );
        agreed.window_bytes = agreed.window_bytes.min(self.window_bytes);
        agreed.silence_ms = agreed.silence_ms.min(MOST_SILENCE_MS);
        Ok(())
    }

    /// Makes `path` where it is missing, or in a dry run what is missing of it the result; no link is followed.
    fn enter(&self, path: &[u8], is_dry: bool) -> Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.folder, flags, Mode::empty());
        let mut folder = root.context("the listener's folder cannot be opened")?;
        let names = match trimmed(path) {
            b"" => vec![],
            path => checked(path).with_context(|| format!("the folder {}", shown(path)))?,
        };
        for (done, name) in names.iter().enumerate() {
            folder = match open_below(&folder, name, flags, Within::Folder) {
                Err(Errno::NOENT) if is_dry => {
                    fchdir(&folder)?;
                    return Ok(names[done..].join(&b'/'));
                }
                Err(Errno::NOENT) => make_below(&folder, name, flags),
                opened => opened,
            }
            .map_err(|error| cannot(name, error))?;
        }
        fchdir(&folder)?;
        Ok(vec![])
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    let is_slash = |byte: &&u8| **byte == b'/';
    let from = path.iter().take_while(is_slash).count();
    let after = path[from..].iter().rev().take_while(is_slash).count();
    &path[from..path.len() - after]
}

fn make_below(folder: &OwnedFd, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => open_below(folder, name, flags, Within::Folder),
        Err(error) => Err(error),
    }
}

fn cannot(name: &[u8], error: Errno) -> anyhow::Error {
    let name = shown(name);
    match error {
        Errno::LOOP => anyhow::anyhow!("{name} is a symbolic link, and none is followed"),
        error => anyhow::Error::from(std::io::Error::from(error))
            .context(format!("the folder {name} cannot be opened")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    fn agreed() -> Agreed {
        Agreed {
            window_bytes: 4 << 30,
            silence_ms: u32::MAX,
            ports: (50_000, 50_010),
            ..Agreed::of_tests()
        }
    }

    #[test]
    fn a_caller_is_held_to_window_silence_and_ports() {
        let bounds = Bounds {
            folder: "/".into(),
            address: None,
            ports: (50_000, 50_010),
            window_bytes: 1 << 20,
            gives: false,
        };
        let mut wanted = agreed();
        bounds.agree(&mut wanted).unwrap();
        assert_eq!(
            (wanted.window_bytes, wanted.silence_ms),
            (1 << 20, MOST_SILENCE_MS)
        );
        (wanted.window_bytes, wanted.silence_ms) = (1 << 19, 1000);
        bounds.agree(&mut wanted).unwrap();
        assert_eq!((wanted.window_bytes, wanted.silence_ms), (1 << 19, 1000));
        for ports in [(49_999, 50_000), (50_010, 50_011), (1, u16::MAX)] {
            wanted.ports = ports;
            let said = bounds.agree(&mut wanted).unwrap_err().to_string();
            assert!(said.contains("--ports 50000-50010"), "{said}");
        }
    }

    #[test]
    fn what_is_fetched_is_below_the_folder_and_permitted() {
        let bounds = |gives| Bounds {
            folder: "/".into(),
            address: None,
            ports: (50_000, 50_010),
            window_bytes: 1 << 20,
            gives,
        };
        let permitted = |gives, path: &str| {
            let mut sends = Sends {
                paths: vec![path.into()],
                ..Sends::default()
            };
            let permitted = bounds(gives).permit(&mut sends);
            permitted.map(|()| String::from_utf8(sends.paths.remove(0)).unwrap())
        };
        for (path, wanted) in [("/run-7/", "run-7"), ("a/b", "a/b")] {
            assert_eq!(permitted(true, path).unwrap(), wanted);
            let said = permitted(false, path).unwrap_err().to_string();
            assert!(said.contains("--give-to"), "{said}");
        }
        for path in ["", "/", "..", "a/../../b", "a//b", ".fatpath-1.part"] {
            assert!(permitted(true, path).is_err(), "{path}");
        }
    }

    #[test]
    fn slashes_around_a_folder_say_nothing() {
        let cases: [(&[u8], &[u8]); 4] =
            [(b"", b""), (b"//", b""), (b"/a/b/", b"a/b"), (b"a", b"a")];
        for (path, wanted) in cases {
            assert_eq!(trimmed(path), wanted);
        }
    }
}
