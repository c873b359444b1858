// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kills a run when this process closes a pipe, or dies.

use crate::cgroup::Cgroup;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Argument 0 is the cgroup's folder, or empty; standard input gives the process group, and closes at the end. The group is
/// killed also where there is a cgroup, which the program may not have entered yet. A cgroup is empty a moment after its
/// last process was killed; one within it is that of a run that the program made, whose guard is killed with it.
const SCRIPT: &str = r#"
group=
read -r group
while read -r _; do :; done
[ -z "$group" ] || kill -9 "-$group"
[ -n "$0" ] || exit 0
echo 1 >"$0/cgroup.kill" || kill -9 $(cat "$0/cgroup.procs")
tries=0
while [ -d "$0" ] && [ $tries -lt 500 ]; do
    rmdir "$0"/*/*/ "$0"/*/ "$0"
    [ ! -d "$0" ] || sleep 0.01
    tries=$((tries + 1))
done
"#;

/// Dropped when the run is over, which takes until nothing of it is left.
pub(crate) struct Guard(Child);

impl Guard {
    pub(crate) fn start(cgroup: Option<&Cgroup>) -> io::Result<Guard> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT]);
        match cgroup {
            Some(cgroup) => shell.arg(cgroup.folder()),
            None => shell.arg(""),
        };
        shell.stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C of a terminal ends this process, not the guard.
        shell.process_group(0).spawn().map(Guard)
    }

    /// The process leads a process group of its own.
    pub(crate) fn watch(&mut self, process: u32) -> io::Result<()> {
        match &mut self.0.stdin {
            Some(pipe) => writeln!(pipe, "{process}"),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
