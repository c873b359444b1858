// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PostgreSQL cluster of a test's or a figure's own, in a temporary folder: its server is started and stopped by who
//! made it, and ends with it.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::{NamedTempFile, TempDir};

/// Of its user, `fatpath`.
pub const PASSWORD: &str = "not a secret";

const MISSING: &str = "no PostgreSQL under /usr/lib/postgresql (packaging/setup.sh tests)";

/// A starting server is asked so often.
const POLL: Duration = Duration::from_millis(20);

/// Of a server, after a crash too, on a machine that does other things.
const LONGEST_START: Duration = Duration::from_secs(60);

/// A cluster, and its server while that runs.
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    /// `initdb` and `postgres` refuse to run for root.
    user: (u32, u32),
    /// Of the server.
    settings: Vec<String>,
    server: Option<Server>,
}

/// Where a server with TLS listens: an address that only this host has, and that no other server takes.
pub const TLS_ADDRESS: &str = "127.0.54.32";
/// The name in its certificate.
pub const TLS_NAME: &str = "db.test";

/// An authority's certificate, and one of it for the server: `ca.pem`, `server.pem`, `server.key`.
const CERTIFICATES: &str = "set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -keyout ca.key -out ca.pem -subj '/CN=authority of a test' -days 2
openssl req $key -keyout server.key -out server.csr -subj /CN=server
echo \"subjectAltName=DNS:$1\" > extensions
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out server.pem
chmod 600 server.key";

struct Server {
    pid: Pid,
    /// Waits for its end.
    waiter: JoinHandle<()>,
}

impl Cluster {
    /// A cluster for a test. `None`, and said, where PostgreSQL is not installed; with `CI` in the environment that is a
    /// failure, as nobody reads what a test that passes says.
    ///
    /// # Panics
    /// When it does not start.
    pub fn for_test() -> Option<Cluster> {
        if programs().is_none() {
            assert!(std::env::var_os("CI").is_none(), "{MISSING}");
            println!("skipped: {MISSING}");
            return None;
        }
        // Its workers read tables at any time, and a test may count what a question reads.
        let cluster = Cluster::start_with(&["autovacuum=off"]);
        Some(cluster.unwrap_or_else(|error| panic!("PostgreSQL does not start: {error:#}")))
    }

    /// A cluster that runs, with an empty database `site`.
    pub fn start() -> Result<Cluster> {
        Cluster::start_with(&[])
    }

    /// The same with settings of its server.
    pub fn start_with(settings: &[&str]) -> Result<Cluster> {
        let mut cluster = Cluster {
            // The name of a socket has a hundred bytes: $TMPDIR may be longer.
            folder: tempfile::tempdir_in("/tmp")?,
            programs: programs().context(MISSING)?,
            user: user()?,
            settings: settings.iter().map(ToString::to_string).collect(),
            server: None,
        };
        cluster.make()?;
        cluster.run()?;
        cluster.psql("postgres", "CREATE DATABASE site")?;
        Ok(cluster)
    }

    fn make(&self) -> Result<()> {
        let (user, group) = (Some(self.user.0), Some(self.user.1));
        chown(self.folder.path(), user, group)?;
        let password = self.folder.path().join("password");
        std::fs::write(&password, PASSWORD)?;
        chown(&password, user, group)?;
        let mut initdb = self.program("initdb");
        initdb.args([
            "--username=fatpath",
            "--auth=scram-sha-256",
            "--pwfile=password",
        ]);
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "data"]);
        printed(&mut initdb).context("initdb").map(drop)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .current_dir(self.folder.path())
            .env("PGPASSWORD", PASSWORD);
        self.as_user(&mut command);
        command
    }

    fn as_user<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        match rustix::process::geteuid().is_root() {
            true => command.uid(self.user.0).gid(self.user.1),
            false => command,
        }
    }

    /// Starts it again, with TLS and nothing else at [`TLS_ADDRESS`]. The certificate of who signed its own.
    pub fn listen_with_tls(&mut self) -> Result<PathBuf> {
        self.crash();
        let data = self.folder.path().join("data");
        let mut shell = Command::new("sh");
        shell.args(["-c", CERTIFICATES, "sh", TLS_NAME]);
        printed(self.as_user(&mut shell).current_dir(&data)).context("openssl")?;
        let rules = data.join("pg_hba.conf");
        let encrypted = std::fs::read_to_string(&rules)?;
        std::fs::write(&rules, encrypted.replace("\nhost ", "\nhostssl "))?;
        let addresses = format!("listen_addresses={TLS_ADDRESS}");
        let files = ["ssl_cert_file=server.pem", "ssl_key_file=server.key"];
        let settings = [&addresses, "ssl=on"].into_iter().chain(files);
        self.settings = settings.map(str::to_owned).collect();
        self.run()?;
        Ok(data.join("ca.pem"))
    }

    /// Starts the server, and waits until it answers.
    pub fn run(&mut self) -> Result<()> {
        let mut command = Command::new("setpriv");
        command.current_dir(self.folder.path());
        if rustix::process::geteuid().is_root() {
            let (user, group) = (self.user.0, self.user.1);
            command.args([
                format!("--reuid={user}"),
                format!("--regid={group}"),
                "--clear-groups".into(),
            ]);
        }
        // Only the server crashes, not the host: nothing needs to be on the disk.
        // The signal comes when the thread that made the process ends: that one waits for it.
        command
            .args(["--pdeathsig", "QUIT", "--"])
            .arg(self.programs.join("postgres"))
            .args([
                "-D",
                "data",
                "-c",
                "listen_addresses=",
                "-c",
                "shared_buffers=16MB",
                "-c",
                "fsync=off",
            ])
            .arg("-k")
            .arg(self.folder.path())
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .stdout(Stdio::null())
            .stderr(File::create(self.folder.path().join("log"))?);
        let (told, heard) = channel();
        let waiter = std::thread::spawn(move || match command.spawn() {
            Ok(mut child) => {
                let _ = told.send(Ok(Pid::from_child(&child)));
                let _ = child.wait();
            }
            Err(error) => drop(told.send(Err(error))),
        });
        let pid = heard.recv()?.context("setpriv")?;
        self.server = Some(Server { pid, waiter });
        let begun = Instant::now();
        while self.psql("postgres", "SELECT 1").is_err() {
            ensure!(begun.elapsed() < LONGEST_START, "{}", self.log());
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// What the server said since it was started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends the server as a crash does: at the next start it recovers what was committed.
    pub fn crash(&mut self) {
        if let Some(server) = self.server.take() {
            // It may have ended.
            let _ = kill_process(server.pid, Signal::QUIT);
            let _ = server.waiter.join();
        }
    }

    /// What `psql` prints, as `fatpath`, or why it failed.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        printed(self.session(database).arg("-c").arg(sql))
    }

    /// `psql`, without its headings.
    pub fn session(&self, database: &str) -> Command {
        let mut psql = self.program("psql");
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "fatpath",
            "-d",
            database,
        ])
        .arg("-h")
        .arg(self.folder.path());
        psql
    }

    /// Of the database `site`.
    pub fn url(&self) -> String {
        self.url_of("site")
    }

    /// Of a database.
    pub fn url_of(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://fatpath@{folder}/{database}")
    }

    /// A file that only its owner reads.
    pub fn password_file(&self, password: &str) -> Result<PathBuf> {
        let file = self
            .folder
            .path()
            .join(format!("password of {} bytes", password.len()));
        // Renamed: another thread may be reading it.
        let mut whole = NamedTempFile::new_in(self.folder.path())?;
        whole.write_all(password.as_bytes())?;
        whole.persist(&file)?;
        Ok(file)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Of the newest version that is installed.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let installed = programs.filter(|programs| programs.join("initdb").exists());
    installed.max_by_key(|programs| version(programs))
}

fn version(programs: &Path) -> u32 {
    let version = programs.parent().and_then(Path::file_name);
    version
        .and_then(|name| name.to_str()?.parse().ok())
        .unwrap_or_default()
}

/// The package's user and its group.
fn user() -> Result<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd")?;
    let postgres = users.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = postgres
        .into_iter()
        .flat_map(|line| line.split(':'))
        .skip(2);
    let mut id = || {
        fields
            .next()
            .and_then(|id| id.parse().ok())
            .unwrap_or(65534)
    };
    Ok((id(), id()))
}

fn printed(program: &mut Command) -> Result<String> {
    let output = program.output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
