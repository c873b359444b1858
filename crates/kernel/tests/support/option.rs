// SPDX-License-Identifier: MIT OR Apache-2.0
//! The socket option TCP_RUDE.
#![allow(unsafe_code)] // a private socket option: a raw system call

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

const TCP_RUDE: i32 = 0x7001;
pub const RUDE_OFF_NOW: i32 = 0;
pub const RUDE_ON: i32 = 1;
pub const RUDE_OFF_NICELY: i32 = 2;

pub fn set_rude(flow: &TcpStream, value: i32) -> io::Result<()> {
    let (length, value) = (size_of::<i32>() as u32, std::ptr::from_ref(&value).cast());
    let socket = flow.as_raw_fd();
    // SAFETY: an open socket, and a value of that length.
    match unsafe { libc::setsockopt(socket, libc::IPPROTO_TCP, TCP_RUDE, value, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
