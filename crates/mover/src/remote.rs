// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[USER@]HOST:PATH`: which host, how to start fatpath there, and its address.

use anyhow::{Context, Result, bail};
use std::net::{IpAddr, ToSocketAddrs};
use std::process::Command;

/// A place on another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As ssh takes it: `USER@HOST`.
    pub host: String,
    /// The path there; empty: the home folder.
    pub path: String,
}

impl Place {
    /// Reads one; `None`: it is a path on this host, as `./a:b` is.
    pub fn parse(text: &str) -> Option<Place> {
        let end = match text.find('[') {
            Some(open) if !text[..open].contains([':', '/']) => open + text[open..].find("]:")? + 1,
            _ => text.find(':')?,
        };
        let (host, path) = (text[..end].replace(['[', ']'], ""), &text[end + 1..]);
        // What begins with a dash is an option of ssh.
        let is_host = !host.is_empty() && !host.contains('/') && !host.starts_with('-');
        is_host.then(|| Place {
            host,
            path: path.to_owned(),
        })
    }

    /// The host alone.
    pub fn without_path(&self) -> Place {
        Place {
            host: self.host.clone(),
            path: String::new(),
        }
    }

    /// The host without the user.
    fn name(&self) -> &str {
        self.host
            .rsplit_once('@')
            .map_or(&self.host, |(_, name)| name)
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
    if places.iter().any(|place| place.host != places[0].host) {
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
    fn a_command_is_started_as_rsync_starts_it() {
        let place = Place {
            host: "me@dtn1".into(),
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
