// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[USER@]HOST:PATH` and `fatpath://HOST:PORT/PATH`: which host, how to reach fatpath there, and its address.

use crate::by_key::{self, KeyFiles};
use crate::control::Control;

use anyhow::{Context, Result, bail};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::process::Command;

/// What a place begins with that a listener has.
const SCHEME: &str = "fatpath://";

/// A place on another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As ssh takes it: `USER@HOST`.
    pub host: String,
    /// Where `fatpath recv --listen` is; `None`: fatpath is to be started there.
    pub port: Option<u16>,
    /// The path there; empty: the home folder, or the listener's.
    pub path: String,
}

impl Place {
    /// Reads one; `None`: it is a path on this host, as `./a:b` is, or a `fatpath://` without a host or a port.
    pub fn parse(text: &str) -> Option<Place> {
        if let Some(rest) = text.strip_prefix(SCHEME) {
            return Place::of_listener(rest);
        }
        let end = match text.find('[') {
            Some(open) if !text[..open].contains([':', '/']) => open + text[open..].find("]:")? + 1,
            _ => text.find(':')?,
        };
        let (host, path) = (text[..end].replace(['[', ']'], ""), &text[end + 1..]);
        // What begins with a dash is an option of ssh.
        let is_host = !host.is_empty() && !host.contains('/') && !host.starts_with('-');
        is_host.then(|| Place {
            host,
            port: None,
            path: path.to_owned(),
        })
    }

    fn of_listener(text: &str) -> Option<Place> {
        let (at, path) = text.split_once('/').unwrap_or((text, ""));
        let (host, port) = at.rsplit_once(':')?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let is_host = !host.is_empty() && (bare.is_some() || !host.contains([':', '@', '[', ']']));
        let port = port.parse().ok().filter(|port| *port > 0 && is_host)?;
        Some(Place {
            host: bare.unwrap_or(host).to_owned(),
            port: Some(port),
            path: path.to_owned(),
        })
    }

    /// The host alone.
    pub fn without_path(&self) -> Place {
        Place {
            path: String::new(),
            ..self.clone()
        }
    }

    /// The host without the user.
    fn name(&self) -> &str {
        self.host
            .rsplit_once('@')
            .map_or(&self.host, |(_, name)| name)
    }
}

/// As it was given.
impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.port {
            Some(port) => write!(to, "{SCHEME}{host}:{port}/{}", self.path),
            None => write!(to, "{host}:{}", self.path),
        }
    }
}

/// How the other fatpath is reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// What starts it.
    pub shell: Shell,
    /// What it is known by where it listens.
    pub keys: KeyFiles,
}

impl Reach {
    /// Reaches the fatpath at `place`, which is to do `verb`; and its address, where that is known by now.
    ///
    /// # Errors
    /// What the shell or the network says, or the ends do not trust each other.
    pub fn call(&self, place: &Place, verb: &str) -> Result<(Control, Option<IpAddr>)> {
        let Some(port) = place.port else {
            return Ok((Control::start(&self.shell.words(place, verb))?, None));
        };
        let (control, address) = by_key::call(&place.host, port, &self.keys)?;
        Ok((control, Some(address)))
    }
}

/// How the other fatpath is started.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The command that runs others on a host, as rsync's `-e`; `None`: ssh.
    pub rsh: Option<String>,
    /// The fatpath there.
    pub fatpath: String,
}

impl Shell {
    /// The words of the command that starts `fatpath VERB --stdio` there.
    pub fn words(&self, place: &Place, verb: &str) -> Vec<String> {
        let shell = self.rsh.as_deref().unwrap_or("ssh -T -x");
        let words = shell.split_whitespace().chain([place.host.as_str()]);
        let words = words.map(str::to_owned);
        words
            .chain([self.fatpath.clone(), verb.to_owned(), "--stdio".to_owned()])
            .collect()
    }

    /// Where datagrams to the host go: what ssh's configuration makes of its name, else what ssh told the other end.
    ///
    /// # Errors
    /// Nobody knows.
    pub fn address(&self, place: &Place, told: Option<IpAddr>) -> Result<IpAddr> {
        let configured = match self.rsh {
            Some(_) => None,
            None => ssh_host_name(&place.host),
        };
        let name = configured.as_deref().unwrap_or(place.name());
        let resolved = (name, 0)
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.next());
        if let Some(address) = resolved {
            return Ok(address.ip());
        }
        let Some(address) = told else {
            bail!("{name} has no address here: give the one that datagrams go to by --address");
        };
        Ok(address)
    }
}

/// What `HostName` of ssh_config(5) makes of a host.
fn ssh_host_name(host: &str) -> Option<String> {
    let output = Command::new("ssh").args(["-G", host]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("hostname "))?;
    Some(name.to_owned())
}

/// The address by which the ssh that started this program was reached: SSH_CONNECTION of ssh(1).
pub fn ssh_reached() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split(' ').nth(2)?.parse().ok()
}

/// The places that `texts` name, which have to be on one host.
///
/// # Errors
/// One is on this host, or two hosts are named.
pub fn on_one_host(texts: &[String]) -> Result<Vec<Place>> {
    let places = texts.iter().map(|text| {
        Place::parse(text)
            .with_context(|| format!("{text} is on this host: give HOST:PATH, or use cp"))
    });
    let places = places.collect::<Result<Vec<_>>>()?;
    if places
        .iter()
        .any(|place| place.without_path() != places[0].without_path())
    {
        bail!("the files are on different hosts: give one command for each host");
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_scp_reads_them() {
        let read = |text: &str| Place::parse(text).map(|place| (place.host, place.path));
        let place = |host: &str, path: &str| Some((host.to_owned(), path.to_owned()));
        assert_eq!(read("dtn1:/data"), place("dtn1", "/data"));
        assert_eq!(read("me@dtn1:"), place("me@dtn1", ""));
        assert_eq!(read("me@[2001:db8::1]:a:b"), place("me@2001:db8::1", "a:b"));
        assert_eq!(read("[::1]:x"), place("::1", "x"));
        let options = ["-oProxyCommand=x:y", "[-oProxyCommand=x]:y"];
        for here in ["file", "./a:b", "/a:b", ":x"].into_iter().chain(options) {
            assert_eq!(read(here), None, "{here}");
        }
    }

    #[test]
    fn places_of_listeners_have_a_host_and_a_port() {
        let read = |text: &str| {
            let place = Place::parse(text)?;
            assert_eq!(
                place.to_string().trim_end_matches('/'),
                text.trim_end_matches('/')
            );
            Some((place.host, place.port?, place.path))
        };
        let place = |host: &str, path: &str| Some((host.to_owned(), 4747, path.to_owned()));
        assert_eq!(read("fatpath://dtn1:4747"), place("dtn1", ""));
        assert_eq!(read("fatpath://dtn1:4747/"), place("dtn1", ""));
        assert_eq!(read("fatpath://dtn1:4747/a/b:c"), place("dtn1", "a/b:c"));
        assert_eq!(
            read("fatpath://[2001:db8::1]:4747/a"),
            place("2001:db8::1", "a")
        );
        for wrong in [
            "",
            "dtn1",
            "dtn1/a",
            ":4747/a",
            "me@dtn1:4747",
            "dtn1:0",
            "dtn1:x",
            "::1:4747",
            "[]:4747x",
        ] {
            assert_eq!(Place::parse(&format!("fatpath://{wrong}")), None, "{wrong}");
        }
    }

    #[test]
    fn a_command_is_started_as_rsync_starts_it() {
        let place = Place {
            host: "me@dtn1".into(),
            port: None,
            path: String::new(),
        };
        let shell = Shell {
            rsh: Some("ip  netns exec".into()),
            fatpath: "/opt/fatpath".into(),
        };
        let words = shell.words(&place, "recv");
        assert_eq!(
            words,
            [
                "ip",
                "netns",
                "exec",
                "me@dtn1",
                "/opt/fatpath",
                "recv",
                "--stdio"
            ]
        );
    }
}
