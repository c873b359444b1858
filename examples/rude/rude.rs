// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends standard input to HOST PORT, rudely where that is allowed: rude HOST PORT < FILE
//!
//! Needs nothing but rustc; a program of yours may take the two calls from the crate libc.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

// Of include/fatpath/rude.h.
const TCP_RUDE: c_int = 0x7001;
const RUDE_ON: c_int = 1;
const STATES: [&str; 3] = ["polite", "rude", "going polite"];

const IPPROTO_TCP: c_int = 6;

unsafe extern "C" {
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: u32) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut u32)
    -> c_int;
}

/// Where it is refused, the connection goes on with congestion control.
fn be_rude(connection: &TcpStream) -> &'static str {
    let (fd, mut value) = (connection.as_raw_fd(), RUDE_ON);
    let at = (&raw mut value).cast::<c_void>();
    let mut length = size_of::<c_int>() as u32;
    // SAFETY: an open socket, and a buffer of that length.
    if unsafe { setsockopt(fd, IPPROTO_TCP, TCP_RUDE, at, length) } != 0 {
        eprintln!("not rude: {}", io::Error::last_os_error());
    }
    value = 0;
    // SAFETY: as above.
    unsafe { getsockopt(fd, IPPROTO_TCP, TCP_RUDE, at, &mut length) };
    STATES[value as usize]
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port] = &arguments[..] else {
        eprintln!("usage: rude HOST PORT < FILE");
        std::process::exit(2);
    };
    let mut connection = TcpStream::connect(format!("{host}:{port}"))?;
    println!("{}", be_rude(&connection));
    io::copy(&mut io::stdin(), &mut connection)?;
    Ok(())
}
