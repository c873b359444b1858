// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TUN device with virtio-net headers and segmentation offload. Moves bytes; reads no headers.
#![allow(unsafe_code)] // ioctls of linux/if_tun.h, which no crate wraps.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{self, IntegerSetter, Setter, opcode};

const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
const TUNSETIFF: ioctl::Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOFFLOAD: ioctl::Opcode = opcode::write::<u32>(b'T', 208);
const TUNSETVNETHDRSZ: ioctl::Opcode = opcode::write::<c_int>(b'T', 216);
/// TUN_F_CSUM, TSO4, TSO6 and TSO_ECN.
const OFFLOAD_TCP: usize = 0x01 | 0x02 | 0x04 | 0x08;
/// TUN_F_USO4 and USO6, from Linux 6.2 on.
const OFFLOAD_UDP: usize = 0x20 | 0x40;

/// The open end of a TUN device. The device goes when this does.
#[derive(Debug)]
pub struct Tun(OwnedFd);

/// `struct ifreq` as TUNSETIFF reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

impl Tun {
    /// Length of the virtio-net header before each packet.
    pub const VNET_BYTES: usize = 10;

    /// Makes a device in the namespace of the calling thread. `device` has at most 15 bytes.
    ///
    /// # Errors
    /// The kernel's, such as for want of the right to make one.
    pub fn open(device: &str) -> io::Result<Tun> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tun = Tun(rustix::fs::open("/dev/net/tun", flags, Mode::empty())?);
        tun.name(device)?;
        tun.offload()?;
        Ok(tun)
    }

    fn name(&self, device: &str) -> io::Result<()> {
        let flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
        let mut request = InterfaceRequest {
            name: [0; 16],
            flags,
            rest: [0; 22],
        };
        request.name[..device.len()].copy_from_slice(device.as_bytes());
        // SAFETY: both read the type that the opcode is paired with here, and keep no pointer.
        unsafe {
            ioctl::ioctl(&self.0, Setter::<TUNSETIFF, _>::new(request))?;
            ioctl::ioctl(
                &self.0,
                Setter::<TUNSETVNETHDRSZ, _>::new(Self::VNET_BYTES as c_int),
            )?;
        }
        Ok(())
    }

    fn offload(&self) -> io::Result<()> {
        // SAFETY: TUNSETOFFLOAD takes its argument by value.
        let set = |bits| unsafe {
            ioctl::ioctl(&self.0, IntegerSetter::<TUNSETOFFLOAD>::new_usize(bits))
        };
        set(OFFLOAD_TCP | OFFLOAD_UDP).or_else(|_| set(OFFLOAD_TCP))?;
        Ok(())
    }

    /// Reads one packet with its virtio-net header; `None` when there is none now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, buffer) {
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            length => Ok(Some(length?)),
        }
    }

    /// Writes one packet with its virtio-net header.
    ///
    /// # Errors
    /// The kernel's, such as when the device is down.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.0, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
