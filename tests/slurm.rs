// SPDX-License-Identifier: MIT OR Apache-2.0
//! What packaging/slurm has, in a real Slurm: a sweep as a job array, and rules for a job while it runs.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use support::{FATPATH, until, until_within};
use tempfile::TempDir;

const PROGRAMS: [&str; 6] = [
    "munged",
    "slurmctld",
    "slurmd",
    "sbatch",
    "sinfo",
    "unshare",
];
/// Slurm looks for jobs that may begin, and `sbatch --wait` for those that have ended, now and then only.
const MOST_WAITING: Duration = Duration::from_secs(300);

const SWEEP: &str = r#"
name = "sweep"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "5mbit"
delay = "10ms"
loss = "{loss}"
[vary]
loss = ["0.5%", "1%"]
[experiment]
repeats = 2
order = "random"
[[flow]]
from = "a"
to = "b"
source = "bulk"
stop = "1s"
law = "fp_reno"
"#;

/// A cluster of this machine alone, in namespaces of its own.
struct Slurm {
    folder: TempDir,
    /// All processes of the cluster, jobs included, end with it.
    namespaces: Child,
}

impl Slurm {
    /// `None`, with a line that says why, where it cannot run.
    fn start() -> Option<Slurm> {
        Slurm::start_with(|_| ())
    }

    /// With what `prepare` puts into its folder.
    fn start_with(prepare: impl FnOnce(&Path)) -> Option<Slurm> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return None;
        }
        if let Some(program) = PROGRAMS.into_iter().find(|program| !is_installed(program)) {
            println!("skipped: no {program}; packaging/setup.sh long installs Slurm");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // Clients of munge, whoever they are, must get to its socket.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        prepare(folder.path());
        let namespaces = Command::new("unshare")
            .args([
                "--net",
                "--uts",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .arg(repository().join("tests/slurm/node.sh"))
            .arg(folder.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let slurm = Slurm { folder, namespaces };
        until("a node that takes jobs", || slurm.is_idle().then_some(()));
        Some(slurm)
    }

    fn is_idle(&self) -> bool {
        let output = self
            .command(&["sinfo", "--noheader", "--format=%t"])
            .output()
            .unwrap();
        output.status.success() && output.stdout == b"idle\n"
    }

    /// A command of Slurm, where the cluster is.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &self.namespaces.id().to_string(),
                "--net",
                "--uts",
                "--",
            ])
            .args(words)
            .env("SLURM_CONF", self.path("slurm.conf"))
            .env("FATPATH", FATPATH)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Submits the script for a sweep into that folder.
    fn submit(&self, options: &[&str], out: &str) -> Output {
        let script = repository().join("packaging/slurm/sweep.sbatch");
        let output = self.path("%j.txt");
        let options = [
            &["sbatch", "--parsable", "--output", text(&output)],
            options,
        ]
        .concat();
        let job = self
            .command(&options)
            .args([text(&script), "sweep.toml", out])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        finished(job)
    }

    /// The same until the job is through: whether it succeeded, and what it said.
    fn complete(&self, options: &[&str], out: &str) -> (bool, String) {
        let output = self.submit(&[&["--wait"], options].concat(), out);
        let job = String::from_utf8(output.stdout).unwrap();
        let said = fs::read_to_string(self.path(&format!("{}.txt", job.trim())));
        (output.status.success(), said.unwrap_or_default())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["slurmctld.log", "slurmd.log"] {
                let said = fs::read_to_string(self.path(log)).unwrap_or_default();
                println!("{log}:\n{said}");
            }
        }
        let _ = self.namespaces.kill();
        let _ = self.namespaces.wait();
    }
}

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    version.is_ok()
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn finished(mut child: Child) -> Output {
    until_within(MOST_WAITING, "sbatch", || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

/// All files of the results but the parts that they were merged from.
fn assert_equal(slurm: &Slurm, one: &str, merged: &str) {
    let mut diff = Command::new("diff");
    diff.args(["--recursive", "--exclude=parts", one, merged]);
    let output = diff.current_dir(slurm.folder.path()).output().unwrap();
    let differences = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{differences}");
}

#[test]
#[ignore = "long"]
fn a_job_array_makes_a_sweep_and_a_job_after_it_merges_the_parts() {
    let Some(slurm) = Slurm::start() else { return };
    fs::write(slurm.path("sweep.toml"), SWEEP).unwrap();
    let one = Command::new(FATPATH)
        .args([
            "sim",
            "sweep.toml",
            "--out",
            "one",
            "--jobs",
            "1",
            "--quiet",
        ])
        .current_dir(slurm.folder.path())
        .output();
    assert!(one.unwrap().status.success());

    let array = slurm.submit(&["--array=1-3"], "whole");
    let after = String::from_utf8(array.stdout).unwrap();
    let after = format!("--dependency=afterany:{}", after.trim());
    let (is_merged, said) = slurm.complete(&[&after], "whole");
    assert!(is_merged, "{said}");
    assert_equal(&slurm, "one", "whole");

    // A task is missing; then it alone is submitted.
    let of_three = "--export=ALL,PARTS=3";
    let (is_made, said) = slurm.complete(&["--array=1,3", of_three], "again");
    assert!(is_made, "{said}");
    let (is_merged, said) = slurm.complete(&[], "again");
    assert!(
        !is_merged && said.contains("part 2/3 was not given"),
        "{said}"
    );
    let (is_made, said) = slurm.complete(&["--array=2", of_three], "again");
    assert!(is_made, "{said}");
    let (is_merged, said) = slurm.complete(&[], "again");
    assert!(is_merged, "{said}");
    assert_equal(&slurm, "one", "again");
}

/// A stand-in for the daemon: what is applied must be a good policy, and is kept.
const APPLIES: &str = r#"#!/bin/sh
[ "$1 $2" = "policy apply" ] && "$REAL" policy check "$3" && cp "$3" "$FOLDER/applied"
"#;

const OF_PARTITION: &str = r#"[[rule]]
name = "mpi-@JOB@"
cgroup = "@CGROUP@"
pacing_rate = "450mbit"
"#;

const OF_NODE: &str = r#"[[rule]]
name = "all"
pacing_rate = "1gbit"
"#;

/// Prolog and Epilog, with this folder's files in place of the node's.
fn prepare_job_rules(folder: &Path) {
    let script = repository().join("packaging/slurm/job.sh");
    let folder_name = text(folder);
    let wrapper = format!(
        "#!/bin/sh\nexport REAL='{FATPATH}' FOLDER='{folder_name}' FATPATH='{folder_name}/applies'\n\
         export FATPATH_POLICY='{folder_name}/policy.toml' FATPATH_SLURM='{folder_name}/partitions'\n\
         export FATPATH_JOBS='{folder_name}/jobs'\nexec '{}'\n",
        script.display()
    );
    let job = folder.join("job");
    let more = format!("Prolog={0}\nEpilog={0}\n", job.display());
    fs::create_dir(folder.join("partitions")).unwrap();
    for (name, content) in [
        ("job", wrapper.as_str()),
        ("applies", APPLIES),
        ("more.conf", more.as_str()),
        ("policy.toml", OF_NODE),
        ("partitions/all.toml", OF_PARTITION),
    ] {
        let file = folder.join(name);
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
#[ignore = "long"]
fn a_job_has_the_rules_of_its_partition_while_it_runs() {
    let Some(slurm) = Slurm::start_with(prepare_job_rules) else {
        return;
    };
    let words = [
        "sbatch",
        "--parsable",
        "--wait",
        "--wrap",
        "cp applied during",
    ];
    let job = slurm
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let job = finished(job);
    assert!(job.status.success(), "{job:?}");
    let job = String::from_utf8(job.stdout).unwrap();
    let (job, of_job) = (
        job.trim(),
        fs::read_to_string(slurm.path("during")).unwrap(),
    );
    let cgroup = format!("/system.slice/slurmstepd.scope/job_{job}");
    let expected = OF_PARTITION
        .replace("@JOB@", job)
        .replace("@CGROUP@", &cgroup);
    assert_eq!(of_job, expected + OF_NODE);
    let applied = || fs::read_to_string(slurm.path("applied")).unwrap();
    until("the rules are gone", || {
        (applied() == OF_NODE).then_some(())
    });
}
