// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a guest in QEMU, in software everywhere: a host's KVM may be there and not work.
//!
//! The first serial line carries the kernel's messages, into a file; the second what the job
//! in the guest prints, line by line to the caller.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What the job prints last; without it the guest did not come to its end.
pub const END: &str = "== end";

/// In software the processors' time stamps may differ, so time comes from the HPET: a guest whose clock
/// stepped back has hung. It goes on where the host's scheduler stops a processor of the
/// guest: only a long silence is a stall. `oops=panic` with `-no-reboot` ends the run at once. What Debian's kernels do
/// against attackers (cleared pages, security modules, checked copies) is a tenth of a guest's time in software, and
/// nothing here depends on it.
const COMMAND_LINE: &str = "console=ttyS0 panic=-1 oops=panic mitigations=off tsc=unstable clocksource=hpet \
    cgroup_no_v1=all rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30 \
    init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off security=none audit=0";

const MEMORY_MIB: u32 = 2048;

/// Lines of the kernel that no run may cause.
const COMPLAINTS: [&str; 10] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "Kernel panic",
    "rcu: INFO",
    "self-detected stall",
    "blocked for more than",
    "soft lockup",
    "UBSAN",
    "refcount_t",
];

/// What to start.
pub struct Machine<'a> {
    /// The kernel's image.
    pub image: &'a Path,
    /// The guest's root.
    pub medium: Medium<'a>,
    /// Where the kernel's messages go.
    pub console: &'a Path,
    /// When a run is given up.
    pub limit: Duration,
}

/// Where a guest has its root.
pub enum Medium<'a> {
    /// In memory: what it writes is gone at its end.
    Initramfs(&'a Path),
    /// On a disk with ext4, which the next run of it sees as this one leaves it.
    Disk(&'a Path),
}

impl Medium<'_> {
    /// The guests of the kernel matrix run at once, on hosts of two processors: one for each, where QEMU need not make
    /// their memory accesses atomic, is a sixth faster than two. The disk's guest runs alone.
    fn processors(&self) -> u32 {
        match self {
            Medium::Initramfs(_) => 1,
            Medium::Disk(_) => 2,
        }
    }
}

/// What systemd needs besides: no terminals are there to log in at. Debian's cloud kernels have NVMe and ext4 built in.
const DISK_COMMAND_LINE: &str = "root=/dev/nvme0n1 rw systemd.getty_auto=no";

impl Machine<'_> {
    /// Runs the guest to its end; each line of its job goes to `on_line`.
    pub fn run(&self, mut on_line: impl FnMut(&str)) -> Result<()> {
        let mut qemu = Running(self.command().spawn().context(
            "qemu-system-x86_64 cannot be started; packaging/setup.sh kernels installs it",
        )?);
        let ended = self.follow(lines(&mut qemu.0)?, &mut on_line);
        drop(qemu);
        let complaints = self.complaints()?;
        ensure!(
            complaints.is_empty(),
            "the kernel complains ({}):\n{complaints}",
            self.console.display()
        );
        ended
    }

    fn follow(&self, lines: Receiver<String>, on_line: &mut impl FnMut(&str)) -> Result<()> {
        let deadline = Instant::now() + self.limit;
        let mut ended = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if line == END => ended = true,
                Ok(line) => on_line(&line),
                Err(RecvTimeoutError::Timeout) => {
                    anyhow::bail!("given up after {} s", self.limit.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        ensure!(
            ended,
            "the guest stopped before its end: see {}",
            self.console.display()
        );
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-nodefaults", "-no-reboot", "-display", "none"]);
        // An old one is faster in software: it has four levels of page tables, and the kernel copies and clears
        // pages in plain loops, where a newer one's `rep movsb` goes byte by byte.
        command.args(["-cpu", "Nehalem"]);
        command.args(["-smp", &self.medium.processors().to_string()]);
        command.args(["-accel", "tcg,thread=multi"]);
        command.args(["-m", &MEMORY_MIB.to_string()]);
        command.arg("-kernel").arg(self.image);
        match self.medium {
            Medium::Initramfs(file) => {
                command.arg("-initrd").arg(file);
                command.args(["-append", COMMAND_LINE]);
            }
            Medium::Disk(file) => {
                let append = format!("{COMMAND_LINE} {DISK_COMMAND_LINE}");
                command.args(["-append", &append]);
                let drive = format!(
                    "if=none,id=root,format=raw,cache=unsafe,file={}",
                    file.display()
                );
                command.args(["-drive", &drive, "-device", "nvme,serial=root,drive=root"]);
            }
        }
        command
            .arg("-serial")
            .arg(format!("file:{}", self.console.display()));
        command.args(["-serial", "stdio"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn complaints(&self) -> Result<String> {
        let console = std::fs::read(self.console).context("the kernel's messages")?;
        let console = String::from_utf8_lossy(&console);
        let complaints = console
            .lines()
            .filter(|line| COMPLAINTS.iter().any(|word| line.contains(word)));
        Ok(complaints.collect::<Vec<_>>().join("\n"))
    }
}

/// A guest that ends with the run, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines(qemu: &mut Child) -> Result<Receiver<String>> {
    let stdout = qemu.stdout.take().context("the guest's second line")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}
