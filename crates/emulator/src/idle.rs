// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much an idle path adds to the delay that was set: single UDP packets, until the receiving
//! kernel's timestamp, so that no program's wake-up is in it.
#![allow(unsafe_code)] // recvmsg with SO_TIMESTAMPING, which no crate wraps.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use fatpath_link::{CellSpec, ChainSpec};

use crate::clock::unix_ns;
use crate::unshaped::{UnshapedError, two_hosts};
use crate::{Control, ForwardOptions, Network, Stats};

/// A packet that is lost would otherwise be waited for for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a packet took beyond the delay that was set, in µs.
#[derive(Clone, Copy, Debug)]
pub struct Added {
    /// From before the sending call, so with the sender's kernel.
    pub from_call_us: f64,
    /// From the sending kernel's timestamp, at the device.
    pub from_device_us: f64,
}

/// Sends `packets` packets one by one over a path of `delay` each way, each `gap` after the one
/// before came, and returns what each took beyond `delay`, in order of time, and what the forwarder
/// says. `run_name` makes the names of the namespaces unique.
///
/// # Errors
/// The network's, and the sockets'.
pub fn added_delays(
    run_name: &str,
    delay: Duration,
    packets: usize,
    gap: Duration,
) -> Result<(Vec<Added>, Stats), UnshapedError> {
    let delay_ns = delay.as_nanos() as u64;
    let direction = ChainSpec::of([CellSpec::delay(delay_ns)]);
    let network = Network::up(&two_hosts(run_name, &direction))?;
    let measure = |_: &Control| probe(&network, packets, gap);
    let (measured, stats) = network.forward_while(ForwardOptions::default(), measure)?;
    let beyond_us = |took_ns: u64| (took_ns as f64 - delay_ns as f64) / 1e3;
    let added = |took: Took| Added {
        from_call_us: beyond_us(took.from_call_ns),
        from_device_us: beyond_us(took.from_device_ns),
    };
    Ok((measured?.into_iter().map(added).collect(), stats))
}

/// The whole way of a packet, by its two beginnings.
struct Took {
    from_call_ns: u64,
    from_device_ns: u64,
}

fn probe(network: &Network, packets: usize, gap: Duration) -> Result<Vec<Took>, UnshapedError> {
    let bind = |host, address: [u8; 4]| {
        let namespace = network.host(host).expect("`two_hosts` names it");
        namespace.run(|| UdpSocket::bind(SocketAddr::from((address, 7000))))
    };
    let near = bind("client", [10, 99, 0, 1])??;
    let far = bind("server", [10, 99, 0, 2])??;
    far.set_read_timeout(Some(PATIENCE))?;
    ask_for_timestamps(&near, libc::SOF_TIMESTAMPING_TX_SOFTWARE)?;
    ask_for_timestamps(&far, libc::SOF_TIMESTAMPING_RX_SOFTWARE)?;
    let far_address = far.local_addr()?;
    let one = |number: usize| {
        // Not in step with any timer.
        thread::sleep(gap + Duration::from_micros(number as u64 * 79 % 100));
        let called_ns = unix_ns();
        near.send_to(&[0; 64], far_address)?;
        let received_ns = timestamp_ns(&far, 0)?;
        Ok(Took {
            from_call_ns: between_ns(called_ns, received_ns)?,
            from_device_ns: between_ns(timestamp_ns(&near, libc::MSG_ERRQUEUE)?, received_ns)?,
        })
    };
    (0..packets).map(one).collect()
}

/// Timestamps are of the clock of the day, which may be set back.
fn between_ns(from_ns: u64, to_ns: u64) -> io::Result<u64> {
    let back =
        || io::Error::other("the clock of the day was set back while a packet was on its way");
    to_ns.checked_sub(from_ns).ok_or_else(back)
}

fn ask_for_timestamps(socket: &UdpSocket, of: libc::c_uint) -> io::Result<()> {
    let flags = of | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option is an int, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of_val(&flags) as libc::socklen_t,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives a packet, or the note about one that was sent; returns when the kernel did that, since
/// 1970.
fn timestamp_ns(socket: &UdpSocket, flags: libc::c_int) -> io::Result<u64> {
    let mut payload = [0u8; 128];
    // Of u64, so that the headers in it are aligned.
    let mut ancillary = [0u64; 32];
    let mut part = libc::iovec {
        iov_base: payload.as_mut_ptr().cast(),
        iov_len: payload.len(),
    };
    // SAFETY: all zero is a valid msghdr; the pointers that it gets outlive the calls. The headers
    // that CMSG_FIRSTHDR and CMSG_NXTHDR give are those that the kernel wrote into `ancillary`, and
    // one of SCM_TIMESTAMPING has three timespecs behind it.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = ancillary.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&ancillary);
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() && (*header).cmsg_type != libc::SCM_TIMESTAMPING {
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        if header.is_null() {
            return Err(io::Error::other("a packet came without a timestamp"));
        }
        let stamp = libc::CMSG_DATA(header).cast::<libc::timespec>();
        let stamp = stamp.read_unaligned();
        Ok(stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_went_back_is_no_delay() {
        assert_eq!(between_ns(3, 5).unwrap(), 2);
        assert!(between_ns(5, 3).is_err());
    }
}
