// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registry of congestion-control laws, one for the whole host.

use crate::KernelError;

/// The laws that a flow can be given now, by the kernel's names.
///
/// # Errors
/// When /proc/sys cannot be read.
pub fn registered_laws() -> Result<Vec<String>, KernelError> {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = std::fs::read_to_string(list).map_err(KernelError::io(format!("read {list}")))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The law that new sockets of this thread's network namespace get.
pub(crate) fn default_law() -> Result<String, KernelError> {
    let name = "/proc/sys/net/ipv4/tcp_congestion_control";
    let text = std::fs::read_to_string(name).map_err(KernelError::io(format!("read {name}")))?;
    Ok(text.trim().to_owned())
}
