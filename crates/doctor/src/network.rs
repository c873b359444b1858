// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sysctls of TCP that are in the way, and the host's memory for TCP.

use crate::{Check, Facts};
use fatpath_policy::{Policy, Setting, SysctlName};
use fatpath_units::{show_bytes, show_rate};

const WINDOW_SCALING: &str = "net.ipv4.tcp_window_scaling";
const TIMESTAMPS: &str = "net.ipv4.tcp_timestamps";
const SACK: &str = "net.ipv4.tcp_sack";
const MODERATE: &str = "net.ipv4.tcp_moderate_rcvbuf";
const QDISC: &str = "net.core.default_qdisc";

/// The sysctls that are looked at.
pub const SYSCTLS: [&str; 9] = [
    WINDOW_SCALING,
    TIMESTAMPS,
    SACK,
    MODERATE,
    QDISC,
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// The round trip in which the tables say what a buffer carries, milliseconds.
const EXAMPLE_RTT_MS: u64 = 100;

/// A switch of TCP that long paths need.
struct Switch {
    check: &'static str,
    sysctl: &'static str,
    /// What its being off costs.
    cost: &'static str,
    is_bad: bool,
}

const SWITCHES: [Switch; 4] = [
    // RFC 7323 section 2.
    Switch {
        check: "window scaling",
        sysctl: WINDOW_SCALING,
        cost: "no window is larger than 64 KiB: at most 5 Mb/s over 100 ms",
        is_bad: true,
    },
    // RFC 7323 section 4 and 5.
    Switch {
        check: "timestamps",
        sysctl: TIMESTAMPS,
        cost: "fewer samples of the round-trip time, and no protection against wrapped sequence numbers",
        is_bad: false,
    },
    // RFC 2018; RFC 8985 needs it.
    Switch {
        check: "SACK",
        sysctl: SACK,
        cost: "recovery repairs one loss a round trip, and RACK is off",
        is_bad: false,
    },
    Switch {
        check: "receive autotuning",
        sysctl: MODERATE,
        cost: "receive buffers that no rule sets do not grow",
        is_bad: false,
    },
];

pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks: Vec<Check> = SWITCHES.iter().map(|it| switch(it, facts)).collect();
    checks.extend(BUFFERS.iter().map(|it| buffer(it, facts)));
    checks.push(tcp_memory(facts));
    checks.push(qdisc(facts));
    checks
}

fn switch(switch: &Switch, facts: &Facts) -> Check {
    let Some(value) = facts.sysctls.get(switch.sysctl) else {
        return not_readable(switch.check, switch.sysctl);
    };
    if value != "0" {
        return Check::ok(switch.check, "on");
    }
    let found = format!("{} = 0: {}", switch.sysctl, switch.cost);
    let remedy = format!("sysctl -w {}=1", switch.sysctl);
    match switch.is_bad && !raises_scaling(facts) {
        true => Check::bad(switch.check, found, remedy),
        false => Check::warn(switch.check, found, remedy),
    }
}

fn raises_scaling(facts: &Facts) -> bool {
    let policy = facts.policy.policy.as_ref().ok();
    policy.is_some_and(|it| it.host.at_least(SysctlName::TcpWindowScaling) == Some(1))
}

fn not_readable(check: &'static str, sysctl: &str) -> Check {
    Check::unseen(
        check,
        &format!("{sysctl} is not readable in this network namespace"),
    )
}

/// A buffer: what bounds its size where a rule sets it, and how far the kernel grows it where none does.
struct Buffer {
    check: &'static str,
    setting: Setting,
    most_set: SysctlName,
    most_grown: SysctlName,
}

const BUFFERS: [Buffer; 2] = [
    Buffer {
        check: "send buffer",
        setting: Setting::SendBuffer,
        most_set: SysctlName::CoreWmemMax,
        most_grown: SysctlName::TcpWmem,
    },
    Buffer {
        check: "receive buffer",
        setting: Setting::ReceiveBuffer,
        most_set: SysctlName::CoreRmemMax,
        most_grown: SysctlName::TcpRmem,
    },
];

fn buffer(buffer: &Buffer, facts: &Facts) -> Check {
    let (Some(most_set), Some(most_grown)) = (
        number(facts, buffer.most_set),
        number(facts, buffer.most_grown),
    ) else {
        return not_readable(buffer.check, buffer.most_set.as_str());
    };
    if let Ok(policy) = &facts.policy.policy
        && let Some(check) = cut(buffer, policy, most_set)
    {
        return check;
    }
    let grown = facts
        .policy
        .policy
        .as_ref()
        .ok()
        .and_then(|policy| policy.host.at_least(buffer.most_grown))
        .map_or(most_grown, |raised| most_grown.max(raised.into()));
    Check::ok(
        buffer.check,
        format!(
            "without a rule grows to {}: about {} over {EXAMPLE_RTT_MS} ms",
            show_bytes(grown),
            show_rate(carried_bps(grown)),
        ),
    )
}

/// A rule asks for more than the kernel gives.
fn cut(buffer: &Buffer, policy: &Policy, most_bytes: u64) -> Option<Check> {
    let asked = policy
        .rules
        .iter()
        .filter_map(|rule| Some((rule.settings.number(buffer.setting)?, &rule.name)));
    let (asked_bytes, rule) = asked.max()?;
    let raised = policy.host.at_least(buffer.most_set).map_or(0, u64::from);
    (asked_bytes > most_bytes.max(raised)).then(|| {
        Check::bad(
            buffer.check,
            format!(
                "the rule {rule} asks for {}; {} cuts it to {}",
                show_bytes(asked_bytes),
                buffer.most_set,
                show_bytes(most_bytes.max(raised))
            ),
            format!(
                "In the policy, under [host.sysctl]: \"{}\" = \"auto\"",
                buffer.most_set
            ),
        )
    })
}

/// A buffer counts memory, about half of which is data (tcp_adv_win_scale = 1). Whole megabits: it is an estimate.
fn carried_bps(memory_bytes: u64) -> u64 {
    let bps = (memory_bytes / 2).saturating_mul(8 * 1000) / EXAMPLE_RTT_MS;
    bps / 1_000_000 * 1_000_000
}

/// Of a triple the third.
fn number(facts: &Facts, name: SysctlName) -> Option<u64> {
    let text = facts.sysctls.get(name.as_str())?;
    text.rsplit(' ').next()?.parse().ok()
}

fn tcp_memory(facts: &Facts) -> Check {
    const NAME: &str = "TCP memory";
    let (Some(pressure), Some(used)) = (facts.tcp_pressure_bytes, facts.tcp_used_bytes) else {
        return not_readable(NAME, "net.ipv4.tcp_mem");
    };
    let found = format!(
        "{} of {} in use (net.ipv4.tcp_mem)",
        show_bytes(used),
        show_bytes(pressure)
    );
    match used < pressure {
        true => Check::ok(NAME, found),
        false => Check::warn(
            NAME,
            format!("{found}: the kernel shrinks windows, and rules' buffers are withheld"),
            "Raise the three numbers of net.ipv4.tcp_mem (pages), or set divide = true in the rules",
        ),
    }
}

/// Those that keep the flows of a host apart, so that one does not wait behind another's burst.
const FAIR: [&str; 4] = ["fq", "fq_codel", "cake", "fq_pie"];

fn qdisc(facts: &Facts) -> Check {
    const NAME: &str = "default qdisc";
    match facts.sysctls.get(QDISC).map(String::as_str) {
        None => not_readable(NAME, QDISC),
        Some(name) if FAIR.contains(&name) => Check::ok(NAME, name),
        Some(name) => Check::warn(
            NAME,
            format!("{name}: in the host's own queue flows wait behind one another's bursts"),
            format!("sysctl -w {QDISC}=fq (for interfaces that come up from then on)"),
        ),
    }
}
