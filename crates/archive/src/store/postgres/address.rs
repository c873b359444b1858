// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which server and database, as whom. The password is never part of it: it is read from its file when a connection is made.

use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Others may not read the file, and nobody else may write it.
const TOO_OPEN: u32 = 0o027;

/// Which server and database.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    config: Box<Config>,
    password_file: Option<PathBuf>,
}

impl ServerAddress {
    /// Reads `postgres://USER@HOST:PORT/DATABASE`, of whose options those of `tokio-postgres` are known.
    ///
    /// # Errors
    /// What is wrong with the URL. One that has a password is refused: it would be shown with the policy or the process.
    pub fn new(url: &str, password_file: Option<&Path>) -> Result<ServerAddress, String> {
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err("give postgres://USER@HOST/DATABASE".to_owned());
        }
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!(
                "not the URL of a server: {}",
                cause.unwrap_or_else(|| error.to_string())
            )
        })?;
        if config.get_password().is_some() {
            return Err(
                "no password in the URL, which others may read: give a file that has it".to_owned(),
            );
        }
        let password_file = password_file.map(Path::to_path_buf);
        Ok(ServerAddress {
            config: Box::new(config),
            password_file,
        })
    }

    /// With the password.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut config = Config::clone(&self.config);
        if let Some(file) = &self.password_file {
            config.password(read_password(file)?);
        }
        Ok(config)
    }

    /// Whether the connection is encrypted and the server's certificate is checked: by default unless it is this host.
    pub(super) fn has_tls(&self) -> bool {
        match self.config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Prefer => {
                // The addresses are those that are connected to, whatever the names.
                let mut addresses = self.config.get_hostaddrs().iter();
                !self.config.get_hosts().iter().all(is_here) || !addresses.all(IpAddr::is_loopback)
            }
            _ => true,
        }
    }
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

fn read_password(file: &Path) -> Result<String, String> {
    let name = file.display();
    let of_file = |error| format!("{name}: {error}");
    let metadata = file.metadata().map_err(of_file)?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.mode() & TOO_OPEN != 0 || ![0, user].contains(&metadata.uid()) {
        return Err(format!(
            "{name}: others may read or change the password: chown root {name} && chmod 640 {name}"
        ));
    }
    let text = std::fs::read_to_string(file).map_err(of_file)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Without options, which may say anything.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let (user, database) = (self.config.get_user(), self.config.get_dbname());
        write!(
            f,
            "postgres://{}@{}/{}",
            user.unwrap_or_default(),
            hosts.join(","),
            database.or(user).unwrap_or_default()
        )
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn address(url: &str) -> ServerAddress {
        ServerAddress::new(url, None).unwrap()
    }

    #[test]
    fn a_password_is_refused_in_the_url() {
        for url in [
            "postgres://a:secret@db.example/x",
            "postgres://a@db.example/x?password=secret",
        ] {
            let refused = ServerAddress::new(url, None).unwrap_err();
            assert!(refused.contains("a file that has it") && !refused.contains("secret"));
        }
        assert!(ServerAddress::new("/var/lib", None).is_err());
        assert!(ServerAddress::new("postgres://h:nonsense/x", None).is_err());
    }

    #[test]
    fn what_leaves_the_host_is_encrypted_unless_told_otherwise() {
        assert!(address("postgres://a@db.example/x").has_tls());
        assert!(address("postgres://a@localhost/x?sslmode=require").has_tls());
        assert!(address("postgres://a@localhost/x?hostaddr=192.0.2.1").has_tls());
        assert!(!address("postgres://a@localhost/x?hostaddr=127.0.0.1").has_tls());
        assert!(!address("postgres://a@db.example/x?sslmode=disable").has_tls());
        assert!(!address("postgres://a@127.0.0.1/x").has_tls());
        assert!(!address("postgres:///x?host=/run/postgresql").has_tls());
    }

    #[test]
    fn a_password_that_others_may_read_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "secret\n").unwrap();
        let address = ServerAddress::new("postgres://a@h/x", Some(&file)).unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            address.config()
        };
        assert!(with_mode(0o644).unwrap_err().contains("chmod 640"));
        assert!(with_mode(0o660).is_err());
        assert_eq!(
            with_mode(0o640).unwrap().get_password(),
            Some(&b"secret"[..])
        );
        assert_eq!(format!("{address:?}"), "postgres://a@h/x");
    }
}
