// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath send` reaches, from the start of the command to the last file verified and on its (memory's) disk: both
//! ends, hashing, sealing and, where there is a path, the emulator share this machine. The shell in ssh's place starts the
//! other end at once. Shares are of what the path can carry: rate × (1 - loss) × the data in a full packet.

pub mod disturbed;
pub mod over_scp;
pub mod small_files;

use crate::alone::{Alone, NETWORK};
use crate::cpu_time;
use crate::emulated::{forwarded, long_path};
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use fatpath_emulator::{Network, Topology};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const RUNS: u32 = 3;
const RATE_BPS: f64 = 1e9;
/// 20 s of the path.
const PATH_BYTES: u64 = 2_330_000_000;
/// Of a file in a full datagram of 1452 bytes, of 1500 on the wire: less headers of packet, segment and run, and the tag.
const DATA_OF_RATE: f64 = (1452.0 - 16.0 - 16.0 - 8.0 - 14.0) / 1480.0;
const TMPFS_BYTES: u64 = 3_000_000_000;
const SMALL_FILES: u64 = 30_000;
const SMALL_BYTES: u64 = 10_000;
const KILLS: u64 = 100;
const RESUME_BYTES: u64 = 400_000_000;
/// So that a kill comes before the end.
const RESUME_LIMIT: &str = "2gbit";
const TICK: Duration = Duration::from_millis(1);
const WITHIN: Duration = Duration::from_secs(60);

pub const GBPS: Figure = Figure {
    name: "mover.gbps_tmpfs",
    what: "one file of 3 GB from tmpfs to tmpfs over loopback, encrypted and verified",
    unit: "Gb/s",
    better: Better::Higher,
    goal: Some(8.0),
    summary: Summary::Median,
    measure: |run| tmpfs(run, |moved| moved.rate_bps / 1e9),
};

pub const CPU: Figure = Figure {
    name: "mover.cpu_s_per_gb",
    what: "processor time of both ends for it",
    unit: "s/GB",
    better: Better::Lower,
    goal: None,
    summary: Summary::Median,
    measure: |run| tmpfs(run, |moved| moved.cpu_s / (TMPFS_BYTES as f64 / 1e9)),
};

pub const SHARE: Figure = share("mover.share.0", |run| shares(run, 50, 0.0));
pub const SHARE_001: Figure = share("mover.share.0.01", |run| shares(run, 50, 0.0001));
pub const SHARE_1: Figure = share("mover.share.1", |run| shares(run, 50, 0.01));
pub const SHARE_268: Figure = Figure {
    what: "the same over 1 Gb/s x 268 ms, 1 % of loss",
    ..share("mover.share_268ms.1", |run| shares(run, 134, 0.01))
};

pub const SMALL: Figure = Figure {
    name: "mover.small_files_mbytes_s",
    what: "30,000 files of 10 kB from tmpfs to tmpfs over loopback, each verified",
    unit: "MB/s",
    better: Better::Higher,
    goal: Some(50.0),
    summary: Summary::Median,
    measure: small_files,
};

pub const RESENT: Figure = Figure {
    name: "mover.resume_resent",
    what: "of a file of 400 MB, sent again after kill -9 of either end in turn at a random moment: the worst of a hundred",
    unit: "share",
    better: Better::Lower,
    goal: Some(0.01),
    summary: Summary::Worst,
    measure: resent,
};

const fn share(name: &'static str, measure: fn(&Run) -> Result<Vec<f64>>) -> Figure {
    Figure {
        name,
        what: "a file of 2.33 GB over 1 Gb/s x 100 ms, start to verified, of what the path carries; loss in % at the end",
        unit: "share",
        better: Better::Higher,
        goal: Some(0.9),
        summary: Summary::Median,
        measure,
    }
}

/// What one transfer was.
struct Moved {
    rate_bps: f64,
    moved_bytes: u64,
    cpu_s: f64,
    train_bps: Option<f64>,
}

/// A folder in memory, with what stands in ssh's place.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Result<Place> {
        let folder = tempfile::tempdir_in("/dev/shm").context("/dev/shm")?;
        let shell = folder.path().join("rsh");
        fs::write(&shell, "#!/bin/sh\nshift\nexec \"$@\"\n")?;
        fs::set_permissions(&shell, PermissionsExt::from_mode(0o755))?;
        Ok(Place { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn send(&self, run: &Run, mut command: Command, what: &str) -> Command {
        command.arg("send").arg("-r").arg(self.path(what));
        command.arg(format!("host:{}", self.path("to").display()));
        command.arg("--rsh").arg(self.path("rsh"));
        command.arg("--remote-fatpath").arg(&run.fatpath);
        command.args(["--address", "127.0.0.1", "--json"]);
        command
    }

    /// Over loopback, to a folder that is not there.
    fn moved(&self, run: &Run, what: &str) -> Result<Moved> {
        run.check()?;
        let moved = done(&mut self.send(run, Command::new(&run.fatpath), what))?;
        fs::remove_dir_all(self.path("to"))?;
        Ok(moved)
    }
}

fn done(command: &mut Command) -> Result<Moved> {
    let before = cpu_time::of_children()?;
    let output = command.output()?;
    let cpu_s = (cpu_time::of_children()? - before).as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fatpath send: {said}");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Moved {
        rate_bps: report["rate_bps"].as_f64().context("no rate")?,
        moved_bytes: report["moved_bytes"].as_u64().context("no bytes")?,
        cpu_s,
        train_bps: report["train_bps"].as_f64(),
    })
}

/// Bytes without a pattern.
fn fill(path: &Path, bytes: u64, mut state: u64) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..bytes / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes())?;
    }
    Ok(file.flush()?)
}

/// So many files, each with other bytes.
fn fill_folder(folder: &Path, files: u64, file_bytes: u64) -> Result<()> {
    fs::create_dir(folder)?;
    let one = |number: u64| fill(&folder.join(number.to_string()), file_bytes, number + 1);
    (0..files).try_for_each(one)
}

fn tmpfs(run: &Run, of: fn(&Moved) -> f64) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill(&place.path("file"), TMPFS_BYTES, 1)?;
    let one = |n| {
        let moved = place.moved(run, "file")?;
        let (gbps, cpu_s) = (moved.rate_bps / 1e9, moved.cpu_s);
        run.say(format!(
            "  run {n} of {RUNS}: {gbps:.2} Gb/s, {cpu_s:.2} s of processor"
        ));
        Ok(of(&moved))
    };
    (1..=RUNS).map(one).collect()
}

fn small_files(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill_folder(&place.path("files"), SMALL_FILES, SMALL_BYTES)?;
    let one = |n| {
        let mbytes_s = place.moved(run, "files")?.rate_bps / 8e6;
        run.say(format!("  run {n} of {RUNS}: {mbytes_s:.0} MB/s"));
        Ok(mbytes_s)
    };
    (1..=RUNS).map(one).collect()
}

fn path(delay_ms: u64, loss: f64, seed: u64) -> Topology {
    long_path(RATE_BPS as u64, delay_ms, loss, seed)
}

fn shares(run: &Run, delay_ms: u64, loss: f64) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill(&place.path("file"), PATH_BYTES, 1)?;
    let one = |n: u32| {
        let moved = moved_over(run, &place, &path(delay_ms, loss, n.into()), "file")?;
        let share = moved.rate_bps / (RATE_BPS * (1.0 - loss) * DATA_OF_RATE);
        run.say(format!(
            "  run {n} of {RUNS}: {share:.3}, {:.0} Mb/s; the train had {:.0} Mb/s",
            moved.rate_bps / 1e6,
            moved.train_bps.unwrap_or(f64::NAN) / 1e6
        ));
        Ok(share)
    };
    (1..=RUNS).map(one).collect()
}

/// Of pairs of transfers in turn, the rate of the first over that of the second.
fn ratios(run: &Run, pair: impl Fn(u64) -> Result<[Moved; 2]>) -> Result<Vec<f64>> {
    let one = |n: u32| {
        let [first, second] = pair(n.into())?.map(|moved| moved.rate_bps / 1e6);
        let ratio = first / second;
        run.say(format!(
            "  pair {n} of {RUNS}: {ratio:.3}, {first:.0} over {second:.0} Mb/s"
        ));
        Ok(ratio)
    };
    (1..=RUNS).map(one).collect()
}

/// Over a path of its own, to a folder that is not there.
fn moved_over(run: &Run, place: &Place, path: &Topology, what: &str) -> Result<Moved> {
    run.check()?;
    let (moved, _) = forwarded(path, |network| over(run, place, network, what))?;
    fs::remove_dir_all(place.path("to"))?;
    Ok(moved)
}

/// From the client to the server: the shell enters the other namespace.
fn over(run: &Run, place: &Place, network: &Network, what: &str) -> Result<Moved> {
    let host = format!("{NETWORK}-server");
    let mut command = sending(run, place, network, [what, "ip netns exec", &host])?;
    done(command.args(["--address", "10.99.0.2"]))
}

/// At the client: what is sent, the command that starts the other end, and the host for it.
fn sending(
    run: &Run,
    place: &Place,
    network: &Network,
    [what, rsh, host]: [&str; 3],
) -> Result<Command> {
    let client = network.host("client").context("`two_hosts` names it")?;
    let mut command = client.command(&run.fatpath);
    command.args(["send", "-r"]).arg(place.path(what));
    command.arg(format!("{host}:{}", place.path("to").display()));
    command.args(["--rsh", rsh, "--json", "--remote-fatpath"]);
    command.arg(&run.fatpath);
    Ok(command)
}

/// Of each kill: what is sent after it beyond what had not arrived, over the file's length.
fn resent(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let place = Place::new()?;
    fill(&place.path("file"), RESUME_BYTES, 1)?;
    let one = |number: u64| {
        let there = killed(run, &place, number)?;
        let moved = place.moved(run, "file")?;
        let again = (moved.moved_bytes + there).saturating_sub(RESUME_BYTES);
        let share = again as f64 / RESUME_BYTES as f64;
        run.say(format!(
            "  kill {} of {KILLS}: {there} bytes were there, {again} sent again",
            number + 1
        ));
        Ok(share)
    };
    (0..KILLS).map(one).collect()
}

/// Begins, and kills the receiver or the sender when a part of random length is there; that length.
fn killed(run: &Run, place: &Place, number: u64) -> Result<u64> {
    let mut command = place.send(run, Command::new(&run.fatpath), "file");
    command.args(["--limit", RESUME_LIMIT]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut sender = command.spawn()?;
    let receiver = within(run, "a receiver", || called_by(sender.id()))?;
    let at_bytes = RESUME_BYTES * (5 + number.wrapping_mul(37) % 85) / 100;
    within(run, "a part", || {
        part_bytes(&place.path("to")).filter(|bytes| *bytes >= at_bytes)
    })?;
    let victim = match number % 2 {
        0 => receiver,
        _ => sender.id() as i32,
    };
    kill_process(Pid::from_raw(victim).context("a process")?, Signal::KILL)?;
    ended(run, &mut sender, receiver)?;
    part_bytes(&place.path("to")).context("no part is left")
}

fn ended(run: &Run, sender: &mut Child, receiver: i32) -> Result<()> {
    sender.wait()?;
    within(run, "the receiver's end", || {
        (!Path::new(&format!("/proc/{receiver}")).exists()).then_some(())
    })
}

/// The process that `fatpath send` started.
fn called_by(parent: u32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Of the part in a folder, what is in memory.
fn part_bytes(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut parts =
        entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "part"));
    Some(512 * parts.next()?.metadata().ok()?.blocks())
}

fn within<T>(run: &Run, what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        ensure!(begun.elapsed() < WITHIN, "{what} does not come");
        run.pause(TICK)?;
    }
}
