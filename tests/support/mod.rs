// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the whole-program tests share: a daemon of their own, and what it says.
//!
//! Laws and sysctls are the host's, so only one test runs at a time (`alone`), or those at once that share a
//! daemon (`shared`). Everything else of a daemon is its own: run directory, pins, logs.
#![allow(dead_code)] // each test binary uses its part

pub mod causes;
pub mod host;
pub mod lent;
pub mod listener;
pub mod mover;
pub mod ordinary;
pub mod responder;
pub mod rude;
pub mod tcpdump;
pub mod transfer;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const FATPATH: &str = env!("CARGO_BIN_EXE_fatpath");

/// The lock on this machine: between two tests held only while a daemon waits for the next (`lent`).
static MACHINE: Mutex<Option<File>> = Mutex::new(None);

/// A test's turn.
pub struct Alone(MutexGuard<'static, Option<File>>);

/// Waits for this machine; `None`, and a line that says so, when the test cannot run here.
///
/// # Panics
/// When a fatpath is loaded on it: the laws would be that one's.
pub fn alone() -> Option<Alone> {
    let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if machine.is_none() {
        *machine = Some(locked()?);
    }
    Some(Alone(machine))
}

/// A turn among the tests of one program that need nothing of the host: neither its laws nor its sysctls. They run
/// beside those that do (`NAMESPACES_TOO` of xtask). `None`, and a line that says so, when the test cannot run here.
pub fn in_turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    is_root().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: not root");
    }
    is_root
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !lent::is_one_idle() {
            *self.0 = None;
        }
    }
}

fn locked() -> Option<File> {
    if !is_root() {
        return None;
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("skipped: the kernel has no BTF");
        return None;
    }
    let lock = File::create(std::env::temp_dir().join("fatpath-tests.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    if let Some(other) = fatpath_kernel::laws_of_others(Path::new("")).first() {
        panic!("a fatpath is loaded on this host: {other:?}");
    }
    Some(lock)
}

/// The daemon that some tests of a program share: they run at the same time, each with a path of its own and flows
/// to ports of its own. It is unloaded, and the machine given back, when none of them is left.
pub struct Shared {
    pub daemon: Daemon,
    _machine: File,
}

/// `None`, and a line that says so, when the test cannot run here. All must share one policy.
pub fn shared(policy: &str) -> Option<Arc<Shared>> {
    static SHARED: Mutex<Weak<Shared>> = Mutex::new(Weak::new());
    // A test that failed meanwhile does not keep the others away.
    let mut current = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = current.upgrade() {
        return Some(shared);
    }
    let machine = locked()?;
    let shared = Arc::new(Shared {
        daemon: Daemon::start(policy),
        _machine: machine,
    });
    *current = Arc::downgrade(&shared);
    Some(shared)
}

/// Asks again and again, for a minute at most: in an emulated machine all is slow.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(Duration::from_secs(60), what, ask)
}

/// Asks again and again, for so long at most.
pub fn until_within<T>(most: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + most;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited {most:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A daemon with places of its own, unloaded when it is dropped.
pub struct Daemon {
    pub dir: TempDir,
    pub child: Child,
    pins: PathBuf,
    namespace: Option<String>,
    cgroup: Option<PathBuf>,
    listens: bool,
    /// More arguments of the daemon.
    pub arguments: Vec<String>,
    /// And of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// A program, with arguments, that starts the daemon.
    pub wrapper: Vec<String>,
}

impl Daemon {
    pub fn start(policy: &str) -> Daemon {
        Daemon::start_in(None, policy)
    }

    /// Beside another one: with pins of its own.
    pub fn start_beside(name: &str, policy: &str) -> Daemon {
        Daemon::start_at(name, None, policy)
    }

    /// Not started yet: [`Daemon::restart`] does.
    pub fn idle(policy: &str) -> Daemon {
        Daemon::at("test", None, policy)
    }

    /// In a network namespace, whose routes and sysctls are then the daemon's.
    pub fn start_in(namespace: Option<&str>, policy: &str) -> Daemon {
        Daemon::start_at("test", namespace, policy)
    }

    /// For the flows of one cgroup.
    pub fn start_for(cgroup: &Path, policy: &str) -> Daemon {
        let mut daemon = Daemon::at("test", None, policy);
        daemon.cgroup = Some(cgroup.to_path_buf());
        daemon.restart();
        daemon
    }

    /// That also answers over TCP.
    pub fn start_listening(policy: &str) -> Daemon {
        let mut daemon = Daemon::at("test", None, policy);
        daemon.listens = true;
        daemon.restart();
        daemon
    }

    fn start_at(name: &str, namespace: Option<&str>, policy: &str) -> Daemon {
        let mut daemon = Daemon::at(name, namespace, policy);
        daemon.restart();
        daemon
    }

    fn at(name: &str, namespace: Option<&str>, policy: &str) -> Daemon {
        lent::end_idle();
        let dir = tempfile::tempdir().unwrap();
        let pins = PathBuf::from(format!("/sys/fs/bpf/fatpath-{name}-{}", std::process::id()));
        std::fs::write(dir.path().join("policy.toml"), policy).unwrap();
        let namespace = namespace.map(str::to_owned);
        Daemon {
            child: idle(),
            dir,
            pins,
            namespace,
            cgroup: None,
            listens: false,
            arguments: Vec::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
        }
    }

    pub fn pins(&self) -> &Path {
        &self.pins
    }

    /// Starts the program again in the same places and waits until it answers.
    pub fn restart(&mut self) {
        self.spawn("flows.jsonl");
        until("the daemon to be ready", || {
            assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.stderr());
            self.path("run/ready").exists().then_some(())
        });
    }

    pub fn spawn(&mut self, flow_log: &str) {
        let _ = std::fs::remove_file(self.path("run/ready"));
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(self.path("stderr"))
            .unwrap();
        let mut command = match self.wrapper.split_first() {
            None => self.program(),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(FATPATH);
                command
            }
        };
        command
            .arg("daemon")
            .arg("--policy")
            .arg(self.path("policy.toml"));
        command
            .arg("--flow-log")
            .arg(self.dir.path().join(flow_log));
        command.arg("--archive").arg(self.path("archive"));
        // Those of this host are none of the test.
        command.arg("--measure").arg(self.path("measure.toml"));
        command.args(&self.arguments);
        command.envs(self.environment.iter().cloned());
        if let Some(cgroup) = &self.cgroup {
            command.arg("--cgroup").arg(cgroup);
        }
        if self.listens {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        self.child = self.placed(command).stderr(stderr).spawn().unwrap();
    }

    fn program(&self) -> Command {
        match &self.namespace {
            None => Command::new(FATPATH),
            Some(name) => {
                // Not `ip netns exec`: that hides the cgroup mount behind a /sys of its own.
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{name}")).arg(FATPATH);
                command
            }
        }
    }

    fn placed(&self, mut command: Command) -> Command {
        command
            .arg("--run-dir")
            .arg(self.path("run"))
            .arg("--pin-dir")
            .arg(&self.pins);
        command
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Runs `fatpath ARGUMENTS` on this instance.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command.args(arguments);
        self.placed(command)
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.ask(&[arguments, &["--json"]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub fn flows(&self) -> Vec<Value> {
        self.json(&["flows"]).as_array().unwrap().clone()
    }

    /// The flow with this local end, once it is listed.
    pub fn flow(&self, local: std::net::SocketAddr) -> Value {
        until("a flow to be listed", || self.flow_now(local))
    }

    /// The flow of this socket. Paths of other tests have the same addresses, and may have the same local port.
    pub fn flow_of(&self, socket: &TcpStream) -> Value {
        let local = socket.local_addr().unwrap().to_string();
        let remote = socket.peer_addr().unwrap().to_string();
        let is_it = |flow: &Value| flow["local"] == *local && flow["remote"] == *remote;
        until("a flow to be listed", || {
            self.flows().into_iter().find(is_it)
        })
    }

    pub fn flow_now(&self, local: std::net::SocketAddr) -> Option<Value> {
        let local = local.to_string();
        self.flows()
            .into_iter()
            .find(|flow| flow["local"] == local.as_str())
    }

    /// Lines of the flow log so far.
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("flows.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn write_policy(&self, text: &str) {
        std::fs::write(self.path("policy.toml"), text).unwrap();
    }

    pub fn apply(&self, text: &str) -> Output {
        self.write_policy(text);
        let file = self.path("policy.toml");
        self.ask(&["policy", "apply", file.to_str().unwrap()])
    }

    pub fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// It reads its files again.
    pub fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// As systemd ends it: what it gave stays.
    pub fn end(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    pub fn unload(&mut self) -> Value {
        let report = self.json(&["unload"]);
        let _ = self.child.wait();
        report
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let mut unloaded = self.ask(&["unload"]);
        let _ = self.child.kill();
        let _ = self.child.wait();
        // One that was killed while it started has left pins, which would keep the laws from the next test.
        if self.pins().exists() {
            unloaded = self.ask(&["unload"]);
        }
        if std::thread::panicking() {
            eprintln!("the daemon said:\n{}", self.stderr());
            eprintln!("unload said: {}", String::from_utf8_lossy(&unloaded.stderr));
        }
    }
}

fn idle() -> Child {
    Command::new("true").stdout(Stdio::null()).spawn().unwrap()
}

/// Where cgroup 2 is mounted.
pub fn cgroup_root() -> PathBuf {
    fatpath_mounts::first_mount_of("cgroup2").unwrap().unwrap()
}

/// What a setting was asked to be and what the kernel has, of a flow's JSON.
pub fn setting(flow: &Value, name: &str) -> (Value, Value) {
    let settings = flow["settings"].as_array().unwrap();
    let found = settings.iter().find(|s| s["setting"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not among {settings:?}"));
    (found["asked"].clone(), found["has"].clone())
}

/// Two hosts of `fatpath lab`, taken down when it is dropped.
pub struct Lab {
    name: String,
    dir: TempDir,
}

impl Lab {
    /// `link` is the body of a scenario's link: `rate = …`, `delay = …`.
    pub fn up(name: &str, link: &str) -> Lab {
        Lab::up_with(name, link, |_| Vec::new())
    }

    /// Counts what passes, of each flow, in `observation` of its scratch directory.
    pub fn observed(name: &str, link: &str) -> Lab {
        Lab::up_with(name, link, |dir| {
            let file = dir.join("observation").into_os_string();
            vec!["--observe".into(), file, "--flows".into()]
        })
    }

    fn up_with(name: &str, link: &str, more: impl FnOnce(&Path) -> Vec<OsString>) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("t-{name}-{}", std::process::id());
        let file = dir.path().join("scenario.toml");
        let scenario = format!(
            "name = \"{name}\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n{link}\n"
        );
        std::fs::write(&file, scenario).unwrap();
        let output = Command::new(FATPATH)
            .args(["lab", "up"])
            .arg(&file)
            .args(more(dir.path()))
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Lab { name, dir }
    }

    pub fn namespace(&self, host: &str) -> String {
        format!("fp-{}-{host}", self.name)
    }

    /// `program` on a host of the lab.
    pub fn command(&self, host: &str, program: &[&str]) -> Command {
        let mut command = Command::new(FATPATH);
        command
            .args(["lab", "exec", "--lab", &self.name, host, "--"])
            .args(program);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn output(&self, host: &str, program: &[&str]) -> String {
        let output = self.command(host, program).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// `work` on a host of the lab: sockets that it makes are the host's.
    pub fn on<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(Path::new("/run/netns").join(self.namespace(host))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    /// A connection from `a` to `b`: both ends.
    pub fn connection(&self, port: u16) -> (TcpStream, TcpStream) {
        self.connections(port, 1).remove(0)
    }

    /// So many of them.
    pub fn connections(&self, port: u16, count: usize) -> Vec<(TcpStream, TcpStream)> {
        let address = format!("{}:{port}", self.address("b"));
        let listener = self.on("b", || TcpListener::bind(&address).unwrap());
        let connect = || {
            (
                TcpStream::connect(&address).unwrap(),
                listener.accept().unwrap().0,
            )
        };
        self.on("a", || (0..count).map(|_| connect()).collect())
    }

    /// Some TcpExt counters of a host's kernel, together.
    pub fn counted(&self, host: &str, names: &[&str]) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/netstat");
        let netstat = self.on(host, read).unwrap();
        let mut rows = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
        let (keys, values) = (rows.next().unwrap(), rows.next().unwrap());
        let both = keys.split(' ').zip(values.split(' '));
        let named = both.filter(|(key, _)| names.contains(key));
        named.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
    }

    /// A counter of TCP of a host's kernel, of /proc/net/snmp.
    pub fn counted_tcp(&self, host: &str, name: &str) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
        let snmp = self.on(host, read).unwrap();
        let mut rows = snmp.lines().filter(|line| line.starts_with("Tcp:"));
        let (keys, values) = (rows.next().unwrap(), rows.next().unwrap());
        let mut both = keys.split(' ').zip(values.split(' '));
        let (_, value) = both.find(|(key, _)| *key == name).unwrap();
        value.parse().unwrap()
    }

    /// Changes the link: `forward.loss=1%`.
    pub fn set(&self, change: &str) {
        let output = Command::new(FATPATH)
            .args(["lab", "set", "wan", change, "--lab", &self.name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// The IPv4 address of a host.
    pub fn address(&self, host: &str) -> String {
        let json = self.output(host, &["ip", "-j", "-4", "addr", "show", "scope", "global"]);
        let links: Value = serde_json::from_str(&json).unwrap();
        let links = links.as_array().unwrap();
        let local = links
            .iter()
            .find_map(|link| link["addr_info"][0]["local"].as_str());
        local.unwrap().to_owned()
    }

    /// iperf3 from `a` to `b`; the child's output is its JSON.
    pub fn transfer(&self, seconds: u32, arguments: &[&str]) -> Child {
        let is_listening = || {
            let listening = self.output("b", &["ss", "-Hltn", "sport", "=", ":5201"]);
            listening.contains("5201")
        };
        // The server of the transfer before may not have gone yet.
        until("the last iperf3 to end", || (!is_listening()).then_some(()));
        let server = self
            .command("b", &["iperf3", "--server", "--one-off"])
            .spawn()
            .unwrap();
        drop(server);
        let address = self.address("b");
        until("iperf3 to listen", || is_listening().then_some(()));
        let seconds = seconds.to_string();
        let client = ["iperf3", "--json", "--client", &address, "--time", &seconds];
        self.command("a", &[&client, arguments].concat())
            .spawn()
            .unwrap()
    }

    pub fn scratch(&self) -> &Path {
        self.dir.path()
    }

    /// Takes the lab down, and keeps the directory.
    pub fn into_scratch(mut self) -> TempDir {
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let down = Command::new(FATPATH)
            .args(["lab", "down", &self.name])
            .output();
        if let Ok(output) = down
            && !output.status.success()
        {
            eprintln!("lab down: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
