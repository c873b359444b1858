// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the buffers of a policy's rules may take of a host's memory for TCP.
//!
//! The host's values are arguments: this crate reads no sysctl. Start at [`memory_warnings`].

use crate::review::warning;
use crate::{Policy, Problem, Rule, Setting};
use fatpath_units::show_bytes;

/// A rule of whose flows so few may fill all memory is warned of.
const FEW_FLOWS: u64 = 32;

/// setsockopt doubles the size of a buffer, to have memory for the kernel's own structures.
const DOUBLED: u64 = 2;

/// Memory that a rule's flows must not exceed, and by what.
struct Limit {
    bytes: u64,
    what: String,
}

/// Warns of rules whose flows can take all memory that a host has for TCP: `pressure_bytes`, the second number of
/// net.ipv4.tcp_mem, and `cgroup_bytes`, the limit of a cgroup's path. What is not known is not compared.
pub fn memory_warnings(
    policy: &Policy,
    pressure_bytes: Option<u64>,
    cgroup_bytes: impl Fn(&str) -> Option<u64>,
) -> Vec<Problem> {
    let host = pressure_bytes.map(|bytes| Limit {
        bytes: bytes * u64::from(policy.host.tcp_mem_share_milli()) / 1000,
        what: "the TCP memory of net.ipv4.tcp_mem".to_owned(),
    });
    let of_cgroup = |path: &str| {
        let bytes = cgroup_bytes(path)?;
        let what = format!("memory.max of the cgroup {path}");
        Some(Limit { bytes, what })
    };
    let warnings = policy.rules.iter().flat_map(|rule| {
        let group = rule.matches.cgroup.as_deref().and_then(of_cgroup);
        let limits = host.iter().chain(group.as_ref());
        let warnings: Vec<Problem> = limits.filter_map(|limit| exceeds(rule, limit)).collect();
        warnings
    });
    warnings.collect()
}

/// The worst case of the flows: all of them where they share the buffers, else as many as begin.
fn exceeds(rule: &Rule, limit: &Limit) -> Option<Problem> {
    let buffer = |setting| rule.settings.number(setting).unwrap_or(0) * DOUBLED;
    let flow_bytes = buffer(Setting::SendBuffer) + buffer(Setting::ReceiveBuffer);
    let flows = limit.bytes.checked_div(flow_bytes)?;
    let (shown, most) = (show_bytes(flow_bytes), show_bytes(limit.bytes));
    let what = &limit.what;
    match rule.settings.is_on(Setting::Divide) {
        true if flows == 0 => Some(warning(
            rule,
            format!("the buffers that its flows divide take {shown}, more than {what}, {most}"),
            "give it smaller buffers".to_owned(),
        )),
        false if flows < FEW_FLOWS => Some(warning(
            rule,
            format!(
                "{} flows that fill their buffers, {shown} each, take all of {what}, {most}; new flows then keep \
                 the kernel's own buffers",
                flows.max(1)
            ),
            "give it smaller buffers, or divide = true if it has more flows at a time".to_owned(),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const GIB: u64 = 1 << 30;

    fn warnings(settings: &str, host: &str, cgroup: Option<u64>) -> String {
        let text = format!("{host}\n[[rule]]\nname = 'wan'\n{settings}\n");
        let policy = parse(&text, None).expect("the policy is good");
        let warnings = memory_warnings(&policy, Some(GIB), |_| cgroup);
        let lines = warnings.iter().map(ToString::to_string);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn few_flows_that_fill_all_memory_are_told_by_their_number() {
        // 2 x (8 + 8) MiB of 1 GiB.
        let buffers = "send_buffer = '8MiB'\nreceive_buffer = '8MiB'\n";
        assert_eq!(warnings(buffers, "", None), "");
        let larger = "send_buffer = '32MiB'\nreceive_buffer = '32MiB'\n";
        let told = warnings(larger, "", None);
        assert!(told.contains("8 flows that fill their buffers"), "{told}");
        let half = warnings(buffers, "[host]\ntcp_mem_share = 0.5", None);
        assert!(half.contains("16 flows"), "{half}");
    }

    #[test]
    fn a_share_beyond_all_of_it_is_refused() {
        for share in ["0", "1.5", "0.0005", "'half'"] {
            let refused = parse(&format!("[host]\ntcp_mem_share = {share}\n"), None);
            let told = refused.expect_err(share)[0].to_string();
            assert!(told.contains("0.01 to 1"), "{told}");
        }
    }

    #[test]
    fn what_divides_its_buffers_is_compared_as_a_whole() {
        let divided = |bytes: &str| format!("send_buffer = '{bytes}'\ndivide = true\n");
        assert_eq!(warnings(&divided("400MiB"), "", None), "");
        let told = warnings(&divided("900MiB"), "", None);
        assert!(told.contains("its flows divide"), "{told}");
    }

    #[test]
    fn a_cgroup_has_a_limit_of_its_own() {
        let rule = "send_buffer = '8MiB'\ncgroup = '/mover'\n";
        assert_eq!(warnings(rule, "", None), "");
        let told = warnings(rule, "", Some(64 << 20));
        assert!(told.contains("4 flows"), "{told}");
        assert!(told.contains("memory.max of the cgroup /mover"), "{told}");
    }

    #[test]
    fn a_rule_without_buffers_takes_what_the_kernel_gives() {
        assert_eq!(warnings("initial_window = 20", "", Some(1)), "");
    }
}
