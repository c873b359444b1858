// SPDX-License-Identifier: MIT OR Apache-2.0
//! Telling systemd that the daemon is ready, lives and ends (sd_notify(3)): a datagram each.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// What the daemon may say of itself.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    /// It answers, and what the policy wants is in place.
    Ready,
    /// It makes progress.
    Lives,
    /// It ends by itself.
    Ends,
}

impl Notice {
    fn text(self) -> &'static str {
        match self {
            Notice::Ready => "READY=1",
            Notice::Lives => "WATCHDOG=1",
            Notice::Ends => "STOPPING=1",
        }
    }

    /// Does nothing when systemd does not wait for it.
    pub fn send(self) {
        let Ok(path) = std::env::var("NOTIFY_SOCKET") else {
            return;
        };
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&path),
        };
        if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
            let _ = socket.send_to_addr(self.text().as_bytes(), &address);
        }
    }
}

/// How long systemd goes without a sign of life before it starts the daemon again (sd_watchdog_enabled(3)).
pub fn watchdog_limit() -> Option<Duration> {
    let number = |name| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let is_for_other =
        number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    let limit = number("WATCHDOG_USEC").filter(|us| *us > 0 && !is_for_other)?;
    Some(Duration::from_micros(limit))
}
