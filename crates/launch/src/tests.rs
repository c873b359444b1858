// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use std::path::Path;

const LONG: Duration = Duration::from_secs(30);

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Whether the process is there, and no zombie that nobody has reaped yet.
fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

fn until_gone(pid: &str) {
    let begun = Instant::now();
    while lives(pid) {
        assert!(begun.elapsed() < LONG, "process {pid} lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_it_prints_is_read() {
    let ended = run(&shell("echo out; echo err >&2; exit 3"), LONG, || true).unwrap();
    assert_eq!(
        (ended.output.as_str(), ended.errors.as_str()),
        ("out\n", "err\n")
    );
    assert!(matches!(ended.end, End::Exited(status) if status.code() == Some(3)));
}

#[test]
fn output_is_bounded_and_does_not_block_its_writer() {
    let ended = run(&shell("yes | head -c 20000000; echo end >&2"), LONG, || {
        true
    })
    .unwrap();
    assert_eq!(ended.output.len() as u64, MAX_OUTPUT_BYTES);
    assert_eq!(ended.errors, "end\n");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = run(&["no-such-program".to_owned()], LONG, || true).unwrap_err();
    assert_eq!(error.to_string(), "cannot start no-such-program");
    assert!(matches!(run(&[], LONG, || true), Err(LaunchError::Nothing)));
}

#[test]
fn at_the_timeout_its_children_are_killed_too() {
    let begun = Instant::now();
    let ended = run(
        &shell("sleep 1000 & echo $!; sleep 1000"),
        Duration::from_millis(300),
        || true,
    )
    .unwrap();
    assert_eq!(ended.end, End::TimedOut);
    assert!(begun.elapsed() < LONG);
    until_gone(&ended.output);
}

#[test]
fn nothing_outlives_a_program_that_ends_by_itself() {
    let ended = run(&shell("sleep 1000 >/dev/null 2>&1 & echo $!"), LONG, || {
        true
    })
    .unwrap();
    assert!(matches!(ended.end, End::Exited(status) if status.success()));
    until_gone(&ended.output);
}

#[test]
fn the_caller_can_end_it() {
    let begun = Instant::now();
    let ended = run(&shell("sleep 1000"), LONG, || begun.elapsed() < TICK).unwrap();
    assert_eq!(ended.end, End::Cancelled);
}

#[test]
fn without_a_cgroup_its_process_group_is_killed() {
    for lasts in [Duration::ZERO, Duration::from_millis(300)] {
        let begun = Instant::now();
        let script = shell("echo $$; sleep 1000 & echo $!; sleep 1000");
        let ended = run_in(None, &script, &[], LONG, || begun.elapsed() < lasts).unwrap();
        assert_eq!(ended.end, End::Cancelled);
        assert!(begun.elapsed() < LONG);
        ended.output.lines().for_each(until_gone);
    }
}

#[test]
fn a_program_that_is_ended_at_once_leaves_no_cgroup() {
    for _ in 0..20 {
        let Some(cgroup) = Cgroup::make() else {
            println!("skipped: no cgroup of version 2 can be made");
            return;
        };
        let folder = cgroup.folder().to_owned();
        let script = shell("echo $$; sleep 1000");
        let ended = run_in(Some(cgroup), &script, &[], LONG, || false).unwrap();
        assert_eq!(ended.end, End::Cancelled);
        ended.output.lines().for_each(until_gone);
        assert!(!folder.exists());
    }
}

/// As a scheduled test that runs a program of its own is: its guard is killed with it.
#[test]
fn a_run_within_a_run_leaves_no_cgroup() {
    let Some(cgroup) = Cgroup::make() else {
        println!("skipped: no cgroup of version 2 can be made");
        return;
    };
    let folder = cgroup.folder().to_owned();
    let nested = format!(
        "mkdir {0}/a {0}/a/b && echo $$ >{0}/a/b/cgroup.procs && sleep 1000",
        folder.display()
    );
    let begun = Instant::now();
    let goes_on = || !folder.join("a/b").exists();
    let ended = run_in(Some(cgroup), &shell(&nested), &[], LONG, goes_on).unwrap();
    assert_eq!(ended.end, End::Cancelled);
    assert!(!folder.exists() && begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn its_environment_has_what_is_given() {
    let script = shell("echo $FATPATH_TEST");
    let ended = run_with(&script, &[("FATPATH_TEST", "given")], LONG, || true).unwrap();
    assert_eq!(ended.output, "given\n");
}

#[test]
fn a_cgroup_holds_also_what_left_its_session() {
    if Cgroup::make().is_none_or(|cgroup| std::fs::remove_dir(cgroup.folder()).is_err()) {
        println!("skipped: no cgroup of version 2 can be made");
        return;
    }
    let script = "setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; cat /proc/self/cgroup";
    let ended = run(&shell(script), LONG, || true).unwrap();
    let folder = ended
        .output
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap();
    let mount = fatpath_mounts::first_mount_of("cgroup2").unwrap().unwrap();
    assert!(folder.contains("fatpath-run-"), "{folder}");
    assert!(!mount.join(folder).exists(), "the cgroup is removed");
    until_gone(ended.output.lines().next().unwrap());
}

#[test]
fn a_program_reads_what_it_is_handed_and_no_folder_has_it() {
    let handed = HandedFile::new("a key").unwrap();
    let path = handed.path();
    // Each time from its beginning.
    for _ in 0..2 {
        let ended = run(&["cat".to_owned(), path.clone()], LONG, || true).unwrap();
        assert_eq!((&*ended.output, &*ended.errors), ("a key", ""));
    }
    let is_at = std::fs::read_link(&path).unwrap();
    assert!(is_at.to_string_lossy().starts_with("/memfd:"), "{is_at:?}");
    drop(handed);
    assert!(!std::fs::read_link(&path).is_ok_and(|other| other == is_at));
}
