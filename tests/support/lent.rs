// SPDX-License-Identifier: MIT OR Apache-2.0
//! A daemon that serves the tests of a program one after the other. To load one takes the verifier half a second,
//! and in an emulated machine ten: a new policy takes neither.
//!
//! For tests that ask nothing of a daemon's begin, end or logs.

use super::Daemon;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Between two tests.
static IDLE: Mutex<Option<Daemon>> = Mutex::new(None);

fn idle() -> MutexGuard<'static, Option<Daemon>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a daemon waits for the next test.
pub fn is_one_idle() -> bool {
    idle().is_some()
}

/// Unloads the daemon that waits: another is to be started.
pub fn end_idle() {
    let ended = idle().take();
    drop(ended);
}

/// Given back when it is dropped.
pub struct Lent(Option<Daemon>);

impl Lent {
    /// A daemon with this policy: the one that another test left, if there is one.
    pub fn with(policy: &str) -> Lent {
        let left = idle().take();
        let daemon = left.inspect(|daemon| {
            let output = daemon.apply(policy);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
        });
        Lent(Some(daemon.unwrap_or_else(|| Daemon::start(policy))))
    }
}

impl Deref for Lent {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Daemon {
        self.0.as_mut().unwrap()
    }
}

/// What failed may be the daemon's fault: the next test has another.
impl Drop for Lent {
    fn drop(&mut self) {
        let mut daemon = self.0.take().unwrap();
        let lives = matches!(daemon.child.try_wait(), Ok(None));
        if !std::thread::panicking() && lives && daemon.ask(&["rude", "off"]).status.success() {
            unload_at_exit();
            *idle() = Some(daemon);
        }
    }
}

/// The harness ends the process, and drops nothing that is static.
#[allow(unsafe_code)]
fn unload_at_exit() {
    extern "C" fn unload() {
        end_idle();
    }
    static ONCE: Once = Once::new();
    // SAFETY: a function that does not unwind: dropping a daemon panics nowhere.
    ONCE.call_once(|| assert_eq!(unsafe { libc::atexit(unload) }, 0));
}
