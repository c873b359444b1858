// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP_RUDE as a program uses it, a path on which it may be allowed, and other users.
#![allow(unsafe_code)] // a private socket option, and another user's thread: raw system calls

use super::Lab;
use super::lent::Lent;
use serde_json::Value;
use std::ffi::{c_int, c_void};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

pub const TCP_RUDE: c_int = 0x7001;
pub const OFF_NOW: c_int = 0;
pub const ON: c_int = 1;
pub const OFF_NICELY: c_int = 2;

pub const POLITE: c_int = 0;
pub const RUDE: c_int = 1;
pub const GOING_POLITE: c_int = 2;

/// Error numbers, or 0.
pub type Answer = c_int;

fn answer(result: c_int) -> Answer {
    match result {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap(),
    }
}

pub fn set_bytes(socket: &impl AsRawFd, option: c_int, value: &[u8]) -> Answer {
    let (bytes, length) = (value.as_ptr().cast::<c_void>(), value.len() as u32);
    // SAFETY: an open socket, and a buffer of that length.
    answer(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, bytes, length)
    })
}

pub fn set(socket: &impl AsRawFd, value: c_int) -> Answer {
    set_bytes(socket, TCP_RUDE, &value.to_ne_bytes())
}

/// The value, or the negative error number.
pub fn get_sized(socket: &impl AsRawFd, mut length: u32) -> c_int {
    let mut value: c_int = -1;
    // SAFETY: an open socket, and no more than the value's own bytes.
    let result = unsafe {
        let value = (&raw mut value).cast::<c_void>();
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_RUDE,
            value,
            &mut length,
        )
    };
    match answer(result) {
        0 => value,
        error => -error,
    }
}

pub fn get(socket: &impl AsRawFd) -> c_int {
    get_sized(socket, 4)
}

pub fn law(socket: &TcpStream) -> String {
    let law = socket2::SockRef::from(socket).tcp_congestion().unwrap();
    let end = law.iter().position(|byte| *byte == 0).unwrap_or(law.len());
    String::from_utf8(law[..end].to_vec()).unwrap()
}

/// A path of 40 Mb/s and 120 ms, and a daemon with a rule for it.
pub struct Path {
    pub daemon: Lent,
    pub lab: Lab,
}

/// A flow that fills the path has 400 segments in flight; one in an emulated machine, whose timers are late,
/// still three times the fair window of 2 % loss.
pub const LINK: &str = "rate = \"40mbit\"\ndelay = \"60ms\"\nqueue = \"2bdp\"\nseed = 1";

impl Path {
    pub fn new(name: &str, settings: &str) -> Path {
        Path::over(name, LINK, settings)
    }

    pub fn over(name: &str, link: &str, settings: &str) -> Path {
        let lab = Lab::up(name, link);
        let daemon = Lent::with(&policy(settings));
        Path { daemon, lab }
    }

    /// Gives the rule other settings.
    pub fn apply(&self, settings: &str) {
        let output = self.daemon.apply(&policy(settings));
        assert!(output.status.success(), "{output:?}");
    }

    pub fn open_gate(&self) {
        let (a, b) = (self.lab.namespace("a"), self.lab.namespace("b"));
        self.ask(&["rude", "on", "--netns", &a, "--netns", &b]);
    }

    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = self.daemon.ask(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What still waits in a polite sender's buffer would take long under losses.
    pub fn end_losses(&self) {
        self.lab.set("loss=0%");
    }

    pub fn rude_flows(&self) -> Vec<Value> {
        let status = self.daemon.json(&["rude", "status"]);
        status["flows"].as_array().unwrap().clone()
    }

    pub fn flow(&self, socket: &TcpStream) -> Value {
        self.daemon.flow(socket.local_addr().unwrap())
    }
}

fn policy(settings: &str) -> String {
    format!(
        "[host.sysctl]\n'net.core.wmem_max' = 'auto'\n'net.core.rmem_max' = 'auto'\n\
         [[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16', 'fd77::/16']\n\
         send_buffer = '4MB'\nreceive_buffer = '4MB'\n{settings}\n"
    )
}

/// A thread of its own with another user's rights.
pub fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: three numbers; the raw call changes this thread alone.
            let set = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
            assert_eq!(set, 0);
            work()
        });
        thread.join().unwrap()
    })
}

pub const NOBODY: u32 = 65534;
