// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel makes of an explanation's settings that the host bounds.
//!
//! The host's values are arguments: this crate reads no sysctl. Start at [`Explanation::on_host`].

use crate::explain::{Bound, Explanation, SettingLine};
use crate::rate_law::bdps_wanted;
use crate::{Policy, Rule, Setting, SettingValue, SysctlName, Way};
use fatpath_units::show_bytes;

/// The largest window without RFC 7323's scale.
const MAX_UNSCALED_WINDOW_BYTES: u64 = 65_535;

/// A buffer: what bounds its size when it is set, and how far the kernel grows it when it is not.
struct Buffer {
    setting: Setting,
    most_set: SysctlName,
    most_grown: SysctlName,
}

const BUFFERS: [Buffer; 2] = [
    Buffer {
        setting: Setting::SendBuffer,
        most_set: SysctlName::CoreWmemMax,
        most_grown: SysctlName::TcpWmem,
    },
    Buffer {
        setting: Setting::ReceiveBuffer,
        most_set: SysctlName::CoreRmemMax,
        most_grown: SysctlName::TcpRmem,
    },
];

impl Explanation {
    /// The same with what this host makes of it, once the policy is live there. `sysctl` answers a sysctl's value,
    /// of a triple the third; `None` where it cannot be read, about which nothing is said. `tick_us` is the kernel's.
    pub fn on_host(
        mut self,
        policy: &Policy,
        sysctl: impl Fn(SysctlName) -> Option<u64>,
        tick_us: u64,
    ) -> Explanation {
        let raised = |name| policy.host.at_least(name).map_or(0, u64::from);
        let host = |name| sysctl(name).map(|now| now.max(raised(name)));
        for line in &mut self.settings {
            line.bound = bound_of(line, &host).or_else(|| least_timer(line, tick_us));
        }
        let met = self.rule.as_ref();
        let rule = met.and_then(|met| policy.rules.iter().find(|rule| rule.name == met.name));
        let unset = rule.into_iter().flat_map(|rule| unset_buffers(rule, &host));
        self.notes.extend(unset);
        self
    }
}

fn bound_of(line: &SettingLine, host: &impl Fn(SysctlName) -> Option<u64>) -> Option<Bound> {
    let mut buffers = BUFFERS.iter();
    let buffer = buffers.find(|buffer| buffer.setting.key() == line.setting)?;
    let SettingValue::Number(asked) = line.value else {
        return None;
    };
    let has_no_scale = host(SysctlName::TcpWindowScaling) == Some(0);
    let window = has_no_scale.then_some((SysctlName::TcpWindowScaling, MAX_UNSCALED_WINDOW_BYTES));
    let most = host(buffer.most_set).map(|most| (buffer.most_set, most));
    let (sysctl, value) = window
        .into_iter()
        .chain(most)
        .min_by_key(|(_, most)| *most)?;
    (value < asked).then_some(Bound {
        value,
        sysctl: Some(sysctl),
    })
}

/// A timer shorter than the kernel takes (TCP_TIMEOUT_MIN).
fn least_timer(line: &SettingLine, tick_us: u64) -> Option<Bound> {
    let mut all = Setting::ALL.into_iter();
    let setting = all.find(|setting| setting.key() == line.setting)?;
    let SettingValue::Number(asked_us) = line.value else {
        return None;
    };
    let value = 2 * tick_us;
    let is_raised = setting.spec().way == Way::Timer && asked_us < value;
    is_raised.then_some(Bound {
        value,
        sysctl: None,
    })
}

/// Of a path that is known: buffers that the kernel grows by itself, and not far enough.
fn unset_buffers(rule: &Rule, host: &impl Fn(SysctlName) -> Option<u64>) -> Vec<String> {
    let Some(bdp_bytes) = rule.path.bdp_bytes() else {
        return Vec::new();
    };
    let note = |buffer: &Buffer| {
        let most = host(buffer.most_grown)?;
        let bdps = bdps_wanted(rule, buffer.setting);
        let wanted_bytes = bdp_bytes.saturating_mul(bdps);
        // The kernel counts a buffer's memory, about twice the data in it.
        let is_too_small =
            rule.settings.number(buffer.setting).is_none() && most / 2 < wanted_bytes;
        is_too_small.then(|| {
            format!(
                "`{}` sets no {}: the kernel grows it to {} of memory at most ({}), about half of it data, and the \
                 path holds {}{}",
                rule.name,
                buffer.setting.key(),
                show_bytes(most),
                buffer.most_grown,
                show_bytes(bdp_bytes),
                match bdps {
                    1 => String::new(),
                    _ => format!(", of which its law wants {bdps} times as much"),
                }
            )
        })
    };
    BUFFERS.iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, explain, parse};

    /// A host as Linux comes.
    fn mainline(name: SysctlName) -> Option<u64> {
        Some(match name {
            SysctlName::CoreRmemMax | SysctlName::CoreWmemMax => 212_992,
            SysctlName::TcpRmem => 6_291_456,
            SysctlName::TcpWmem => 4_194_304,
            SysctlName::TcpWindowScaling => 1,
        })
    }

    fn explained(text: &str, host: impl Fn(SysctlName) -> Option<u64>) -> Explanation {
        let policy = parse(text, None).expect("the policy is good");
        let flow = Flow::parse("192.0.2.1:443").expect("a destination");
        explain(&policy, &flow).on_host(&policy, host, 4_000)
    }

    const RULE: &str = "[[rule]]\nname = 'wan'\nsend_buffer = '100MB'\nreceive_buffer = '100kB'\n";

    #[test]
    fn a_buffer_that_the_host_cuts_is_told_with_what_is_left_of_it() {
        let explanation = explained(RULE, mainline);
        let bounds: Vec<_> = explanation.settings.iter().map(|line| line.bound).collect();
        let cut = Bound {
            value: 212_992,
            sysctl: Some(SysctlName::CoreWmemMax),
        };
        assert_eq!(bounds, [Some(cut), None]);
        let text = explanation.to_string();
        let told = "given as 100MB; the kernel makes it 208 KiB, bound by net.core.wmem_max";
        assert!(text.contains(told), "{text}");
        assert_eq!(text.matches("the kernel makes it").count(), 1, "{text}");
    }

    #[test]
    fn what_the_policy_raises_or_nobody_knows_does_not_cut() {
        let raised = format!("{RULE}[host.sysctl]\n'net.core.wmem_max' = 'auto'\n");
        for explanation in [explained(&raised, mainline), explained(RULE, |_| None)] {
            assert!(explanation.settings.iter().all(|line| line.bound.is_none()));
        }
        let half = format!("{RULE}[host.sysctl]\n'net.core.wmem_max' = 50000000\n");
        let bound = explained(&half, mainline).settings[0].bound;
        assert_eq!(bound.map(|bound| bound.value), Some(50_000_000));
    }

    #[test]
    fn a_timer_below_two_ticks_is_told_with_what_the_kernel_makes_of_it() {
        let timers = "[[rule]]\nname = 'near'\nrto_min = '8ms'\ndelayed_ack_max = '7ms'\n";
        let explanation = explained(timers, mainline);
        let bounds = explanation.settings.iter().map(|line| line.bound);
        let values: Vec<_> = bounds.map(|bound| bound.map(|bound| bound.value)).collect();
        assert_eq!(values, [None, Some(8_000)]);
        let text = explanation.to_string();
        let told = "given as 7ms; the kernel makes it 8 ms, its least (two ticks)";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn without_window_scaling_no_buffer_counts_above_a_window() {
        let unscaled = |name| match name {
            SysctlName::TcpWindowScaling => Some(0),
            _ => mainline(name),
        };
        let explanation = explained(RULE, unscaled);
        let values = explanation.settings.iter().map(|line| line.bound);
        let values: Vec<_> = values.map(|bound| bound.map(|bound| bound.value)).collect();
        assert_eq!(values, [Some(65_535), Some(65_535)]);
    }

    #[test]
    fn a_buffer_that_the_kernel_grows_is_compared_with_the_path() {
        let path = "[[rule]]\nname = 'wan'\nrtt = '100ms'\nrate = '1gbit'\ninitial_window = 20\n";
        let notes = explained(path, mainline).notes;
        let told = notes.join("\n");
        for part in [
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_rmem",
            "12.5 MB",
            "4 MiB",
            "6 MiB",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let roomy = |_| Some(100_000_000);
        assert_eq!(explained(path, roomy).notes, Vec::<String>::new());
        let bbr = format!("{path}congestion_control = 'fp_bbr'\n");
        let told = explained(&bbr, |_| Some(80_000_000)).notes.join("\n");
        assert!(
            told.contains("4 times as much") && !told.contains("tcp_wmem"),
            "{told}"
        );
        let set = format!("{path}send_buffer = '1bdp'\nreceive_buffer = '1bdp'\n");
        assert_eq!(explained(&set, mainline).notes, Vec::<String>::new());
    }
}
