// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this host does by itself, as its sysctls say.

use fatpath_host::Sysctls;
use fatpath_path::Host;
use fatpath_policy::SysctlName;

/// Of where the kernel's memory pressure begins: four flows that fill their buffers, which the kernel doubles, take half.
/// How much all flows are given together is bounded by the policy's `tcp_mem_share`.
const PART_OF_PRESSURE: u64 = 2 * 4 * 2;

/// What this host does by itself.
pub(super) fn read() -> Host {
    let sysctls = Sysctls::default();
    let autotuned = |name| sysctls.number(name).unwrap_or(u64::MAX);
    Host {
        law: fatpath_kernel::default_law().unwrap_or_default(),
        send_autotuned_bytes: autotuned(SysctlName::TcpWmem),
        receive_autotuned_bytes: autotuned(SysctlName::TcpRmem),
        most_buffer_bytes: sysctls.tcp_pressure_bytes().unwrap_or_default() / PART_OF_PRESSURE,
    }
}
