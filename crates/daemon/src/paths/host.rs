// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this host does by itself, as its sysctls say.

use fatpath_host::Sysctls;
use fatpath_path::Host;
use fatpath_policy::{Auto, Prefix, SysctlName};
use ipnet::IpNet;

/// Of where the kernel's memory pressure begins: four flows that fill their buffers, which the kernel doubles, take half.
/// How much all flows are given together is bounded by the policy's `tcp_mem_share`.
const PART_OF_PRESSURE: u64 = 2 * 4 * 2;

/// To how many bytes the kernel grows buffers by itself without fatpath. Network namespaces that are older than the daemon
/// do not have what it raised, and flows get the buffers that they need there, too.
#[derive(Clone, Copy)]
pub(crate) struct Autotuned {
    send_bytes: u64,
    receive_bytes: u64,
}

impl Default for Autotuned {
    fn default() -> Autotuned {
        Autotuned {
            send_bytes: u64::MAX,
            receive_bytes: u64::MAX,
        }
    }
}

impl Autotuned {
    /// Of this host.
    pub(crate) fn of(host: &fatpath_host::Host) -> Autotuned {
        Autotuned::by(|name| host.without_us(name))
    }

    /// As the sysctls are, whoever set them.
    fn now() -> Autotuned {
        let sysctls = Sysctls::default();
        Autotuned::by(|name| sysctls.number(name))
    }

    fn by(number: impl Fn(SysctlName) -> Option<u64>) -> Autotuned {
        let bytes = |name| number(name).unwrap_or(u64::MAX);
        Autotuned {
            send_bytes: bytes(SysctlName::TcpWmem),
            receive_bytes: bytes(SysctlName::TcpRmem),
        }
    }
}

/// What this host does by itself, and what the policy allows.
pub(super) fn read(autotuned: Autotuned, settings: &Auto) -> Host {
    Host {
        law: fatpath_kernel::default_law().unwrap_or_default(),
        send_autotuned_bytes: autotuned.send_bytes,
        receive_autotuned_bytes: autotuned.receive_bytes,
        most_buffer_bytes: most_buffer_bytes(),
        overrides: settings.override_application,
        private: settings.private.iter().map(as_net).collect(),
    }
}

fn as_net(prefix: &Prefix) -> IpNet {
    IpNet::new(prefix.address(), prefix.length_bits()).expect("a prefix has a length of its family")
}

/// What this host does by itself: as its sysctls say, without what an instance of fatpath raised where its journal can be
/// read.
pub fn defaults_of_host(run_dir: &std::path::Path) -> Host {
    let known = fatpath_host::Host::open(run_dir);
    let autotuned = known.map_or_else(|_| Autotuned::now(), |host| Autotuned::of(&host));
    read(autotuned, &Auto::default())
}

/// Largest buffer that follows from what is measured; none where it cannot be told, as in a namespace of its own.
pub fn most_measured_buffer_bytes() -> Option<u64> {
    Some(most_buffer_bytes()).filter(|most| *most > 0)
}

/// Largest buffer that one flow may be given; 0 where it cannot be told.
pub(crate) fn most_buffer_bytes() -> u64 {
    let pressure_bytes = Sysctls::default().tcp_pressure_bytes();
    pressure_bytes.unwrap_or_default() / PART_OF_PRESSURE
}
