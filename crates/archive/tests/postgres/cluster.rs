// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PostgreSQL cluster of a test's own, in a temporary folder: its server is started and stopped by the test, and ends
//! with it.

use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::{NamedTempFile, TempDir};

pub const PASSWORD: &str = "not a secret";

/// A starting server is asked so often.
const POLL: Duration = Duration::from_millis(20);

/// Of a server, after a crash too, on a machine that does other things.
const LONGEST_START: Duration = Duration::from_secs(60);

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
    /// A cluster that runs, with an empty database `site`. `None`, and said, where PostgreSQL is not installed; with `CI` in
    /// the environment that is a failure, as nobody reads what a test that passes says.
    pub fn start() -> Option<Cluster> {
        let Some(programs) = programs() else {
            let missing = "no PostgreSQL under /usr/lib/postgresql (packaging/setup.sh tests)";
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            println!("skipped: {missing}");
            return None;
        };
        // The name of a socket has a hundred bytes: $TMPDIR may be longer.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let user = user();
        chown(folder.path(), Some(user.0), Some(user.1)).unwrap();
        let mut cluster = Cluster {
            folder,
            programs,
            user,
            settings: Vec::new(),
            server: None,
        };
        let password = cluster.folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        chown(&password, Some(user.0), Some(user.1)).unwrap();
        let mut initdb = cluster.program("initdb");
        initdb.args([
            "--username=fatpath",
            "--auth=scram-sha-256",
            "--pwfile=password",
        ]);
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "data"]);
        let made = initdb.output().unwrap();
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        cluster.run();
        cluster.sql_in("postgres", "CREATE DATABASE site");
        Some(cluster)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .current_dir(self.folder.path())
            .env("PGPASSWORD", PASSWORD);
        if rustix::process::geteuid().is_root() {
            command.uid(self.user.0).gid(self.user.1);
        }
        command
    }

    /// Starts it again, with TLS and nothing else at [`TLS_ADDRESS`]. The certificate of who signed its own.
    pub fn listen_with_tls(&mut self) -> PathBuf {
        self.crash();
        let mut shell = Command::new("sh");
        shell.args(["-c", CERTIFICATES, "sh", TLS_NAME]);
        if rustix::process::geteuid().is_root() {
            shell.uid(self.user.0).gid(self.user.1);
        }
        let data = self.folder.path().join("data");
        let made = shell.current_dir(&data).output().unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "openssl: {said}");
        let rules = data.join("pg_hba.conf");
        let encrypted = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(&rules, encrypted.replace("\nhost ", "\nhostssl ")).unwrap();
        let addresses = format!("listen_addresses={TLS_ADDRESS}");
        let files = ["ssl_cert_file=server.pem", "ssl_key_file=server.key"];
        let settings = [&addresses, "ssl=on"].into_iter().chain(files);
        self.settings = settings.map(str::to_owned).collect();
        self.run();
        data.join("ca.pem")
    }

    /// Starts the server, and waits until it answers.
    pub fn run(&mut self) {
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
            .stderr(std::fs::File::create(self.folder.path().join("log")).unwrap());
        let (told, heard) = channel();
        let waiter = std::thread::spawn(move || {
            let mut child = command.spawn().unwrap();
            told.send(Pid::from_child(&child)).unwrap();
            child.wait().unwrap();
        });
        let pid = heard.recv().unwrap();
        self.server = Some(Server { pid, waiter });
        let begun = Instant::now();
        while self.psql("postgres", "SELECT 1").is_err() {
            assert!(begun.elapsed() < LONGEST_START, "{}", self.log());
            std::thread::sleep(POLL);
        }
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

    /// As `fatpath`, in the database `site`; what `psql` prints.
    pub fn sql(&self, sql: &str) -> String {
        self.sql_in("site", sql)
    }

    fn sql_in(&self, database: &str, sql: &str) -> String {
        self.psql(database, sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// What it prints, or why it failed.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let output = self.session(database).arg("-c").arg(sql).output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)
                .unwrap()
                .trim_end()
                .to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
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
    pub fn password_file(&self, password: &str) -> PathBuf {
        let file = self
            .folder
            .path()
            .join(format!("password of {} bytes", password.len()));
        // Renamed: another thread may be reading it.
        let mut whole = NamedTempFile::new_in(self.folder.path()).unwrap();
        whole.write_all(password.as_bytes()).unwrap();
        whole.persist(&file).unwrap();
        file
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

/// The package's user.
fn user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
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
    (id(), id())
}
