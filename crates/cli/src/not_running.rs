// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command says that needs the daemon, where none answers.

use fatpath_daemon::Instance;
use std::path::Path;

/// Where the one system-wide instance lives: the one that systemd starts.
const SYSTEMS: &str = "/run/fatpath";

/// With the command that starts it.
pub fn not_running(instance: &Instance) -> String {
    let run_dir = &instance.run_dir;
    let start = match run_dir == Path::new(SYSTEMS) {
        true => "systemctl start fatpath".to_owned(),
        false => format!("fatpath daemon --run-dir {}", run_dir.display()),
    };
    format!("the daemon is not running; start it: {start}")
}
