// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's sysctls as the simulator understands them.
//!
//! Pure. Those of a mainline kernel come first, as in the lab; a host's own come after. What would change
//! the traffic and is not simulated is refused by name. Start with [`HostTcp::of`].

use fatpath_sim::Detection;

use fatpath_scenario::plan::{MAINLINE_OF_A_HOST, MAINLINE_OF_THE_MACHINE};

/// What a host's sysctls give its connections.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostTcp {
    /// `tcp_congestion_control`.
    pub(super) law: String,
    /// `tcp_rmem`, bytes of memory: least, first, most.
    pub(super) receive_memory_bytes: [u64; 3],
    /// `tcp_wmem`, likewise.
    pub(super) send_memory_bytes: [u64; 3],
    /// `net.core.rmem_max`: the most that SO_RCVBUF takes.
    pub(super) receive_max_bytes: u64,
    /// `net.core.wmem_max`.
    pub(super) send_max_bytes: u64,
    /// `tcp_moderate_rcvbuf`: the receive buffer grows with need.
    pub(super) grows: bool,
    /// `tcp_recovery`.
    pub(super) detection: Detection,
    /// `tcp_early_retrans`.
    pub(super) tail_loss_probe: bool,
    /// `tcp_reordering`.
    pub(super) dupthresh: u32,
    /// `tcp_slow_start_after_idle`.
    pub(super) restarts_after_idle: bool,
    /// `tcp_window_scaling`.
    pub(super) window_scaling: bool,
    /// `tcp_rto_min_us`, ns.
    pub(super) rto_min_ns: u64,
    /// `tcp_ecn`.
    pub(super) ecn: Ecn,
}

/// What a host does about explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ecn {
    /// 0: it neither asks for it nor agrees.
    Off,
    /// 1: it asks for it, and agrees.
    Asks,
    /// 2: it agrees when the other side asks.
    Agrees,
}

impl Default for HostTcp {
    /// What ip-sysctl.rst says, where the lab sets nothing.
    fn default() -> HostTcp {
        HostTcp {
            law: String::new(),
            receive_memory_bytes: [0; 3],
            send_memory_bytes: [0; 3],
            receive_max_bytes: 0,
            send_max_bytes: 0,
            grows: true,
            detection: Detection::Rack,
            tail_loss_probe: true,
            dupthresh: 3,
            restarts_after_idle: true,
            window_scaling: true,
            rto_min_ns: 200_000_000,
            ecn: Ecn::Agrees,
        }
    }
}

impl HostTcp {
    /// Of a host with these sysctls in addition to the mainline ones.
    ///
    /// # Errors
    /// In words: which sysctl, and why.
    pub(super) fn of(own: &[(String, String)]) -> Result<HostTcp, String> {
        let mut host = HostTcp::default();
        let mainline = MAINLINE_OF_A_HOST
            .into_iter()
            .chain(MAINLINE_OF_THE_MACHINE);
        let own = own.iter().map(|(name, value)| (&name[..], &value[..]));
        for (name, value) in mainline.chain(own) {
            host.set(name, value.trim())
                .ok_or_else(|| format!("{name} = {value}: {}", why(name)))?;
        }
        Ok(host)
    }

    /// `None`: it is not simulated.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let tcp = name.strip_prefix("net.ipv4.").unwrap_or(name);
        match tcp {
            "tcp_congestion_control" => self.law = value.to_owned(),
            "tcp_rmem" => self.receive_memory_bytes = triple(value)?,
            "tcp_wmem" => self.send_memory_bytes = triple(value)?,
            "net.core.rmem_max" => self.receive_max_bytes = value.parse().ok()?,
            "net.core.wmem_max" => self.send_max_bytes = value.parse().ok()?,
            "tcp_moderate_rcvbuf" => self.grows = switch(value)?,
            "tcp_recovery" => {
                self.detection = match switch(value)? {
                    true => Detection::Rack,
                    false => Detection::Sack,
                }
            }
            "tcp_early_retrans" => self.tail_loss_probe = one_of(value, "3", "0")?,
            "tcp_reordering" => self.dupthresh = value.parse().ok().filter(|n| *n >= 1)?,
            "tcp_slow_start_after_idle" => self.restarts_after_idle = switch(value)?,
            "tcp_window_scaling" => self.window_scaling = switch(value)?,
            "tcp_rto_min_us" => {
                let rto_min_us: u64 = value.parse().ok().filter(|us| *us > 0)?;
                self.rto_min_ns = rto_min_us * 1000;
            }
            "tcp_sack" | "tcp_dsack" | "tcp_timestamps" => return switch(value)?.then_some(()),
            "tcp_ecn" => {
                self.ecn = match value {
                    "0" => Ecn::Off,
                    "1" => Ecn::Asks,
                    "2" => Ecn::Agrees,
                    _ => return None,
                }
            }
            "tcp_mtu_probing" => return (value == "0").then_some(()),
            other => return does_not_matter(other).then_some(()),
        }
        Some(())
    }
}

/// Sysctls that change nothing of the traffic of a lab.
fn does_not_matter(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "tcp_no_metrics_save",
        "tcp_fin_timeout",
        "tcp_tw_reuse",
        "tcp_max_tw_buckets",
        "tcp_syncookies",
        "tcp_fastopen",
        "ip_forward",
        "ip_local_port_range",
        "tcp_available_congestion_control",
    ];
    NAMES.contains(&name)
        || ["conf.", "icmp_", "net.ipv6."]
            .iter()
            .any(|of| name.starts_with(of))
}

fn why(name: &str) -> &'static str {
    match name.starts_with("net.ipv4.tcp_") || name.starts_with("net.core.") {
        true => "is not simulated; leave it out, or run the scenario in the lab",
        false => "is not known to the simulator; leave it out, or run the scenario in the lab",
    }
}

fn switch(value: &str) -> Option<bool> {
    one_of(value, "1", "0")
}

fn one_of(value: &str, on: &str, off: &str) -> Option<bool> {
    (value == on || value == off).then_some(value == on)
}

fn triple(value: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = value.split_whitespace().map(|n| n.parse().ok()).collect();
    let triple: [u64; 3] = numbers?.try_into().ok()?;
    (triple[0] <= triple[1] && triple[1] <= triple[2]).then_some(triple)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sysctls: &[(&str, &str)]) -> Result<HostTcp, String> {
        let owned: Vec<_> = sysctls
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect();
        HostTcp::of(&owned)
    }

    #[test]
    fn a_host_begins_with_what_the_lab_sets_and_its_own_come_after() {
        let plain = of(&[]).unwrap();
        assert_eq!(plain.law, "cubic");
        assert_eq!(plain.receive_memory_bytes, [4096, 131_072, 6_291_456]);
        assert_eq!(plain.send_max_bytes, 212_992);
        let own = of(&[
            ("net.ipv4.tcp_congestion_control", "fp_reno"),
            ("net.ipv4.tcp_recovery", "0"),
            ("net.ipv4.tcp_wmem", "4096\t16384 65536"),
            ("net.ipv4.conf.all.rp_filter", "2"),
        ])
        .unwrap();
        assert_eq!(
            (own.law.as_str(), own.detection),
            ("fp_reno", Detection::Sack)
        );
        assert_eq!(own.send_memory_bytes[2], 65_536);
    }

    #[test]
    fn what_is_not_simulated_is_refused_by_name() {
        for (name, value) in [
            ("net.ipv4.tcp_sack", "0"),
            ("net.ipv4.tcp_timestamps", "0"),
            ("net.ipv4.tcp_ecn", "3"),
            ("net.ipv4.tcp_frto", "0"),
            ("net.ipv4.tcp_rmem", "1 2"),
            ("net.ipv4.tcp_wmem", "3 2 1"),
            ("net.ipv4.udp_mem", "1 2 3"),
        ] {
            let message = of(&[(name, value)]).unwrap_err();
            assert!(message.starts_with(name), "{message}");
        }
    }
}
