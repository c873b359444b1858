// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps a law that samples the delivery rate (`fp_bbr`) below the path's rate: it takes what a buffer or a pacing
//! rate lets through for what the path carries. Start at [`held_back`].

use crate::{Rule, Setting};
use fatpath_units::{show_bytes, show_rate};

/// What holds the flows of a rule back, and what would cure it.
pub(crate) struct HeldBack {
    pub(crate) message: String,
    pub(crate) remedy: String,
}

/// Of a rule whose law is such a one, and whose path is known.
pub(crate) fn held_back(rule: &Rule) -> Vec<HeldBack> {
    let buffers = [Setting::SendBuffer, Setting::ReceiveBuffer];
    let small = buffers.map(|buffer| small_buffer(rule, buffer));
    small
        .into_iter()
        .chain([slow_pacing(rule)])
        .flatten()
        .collect()
}

/// How many bandwidth-delay products a buffer of the rule has to hold. While a loss is repaired the receiver's window does
/// not move, and the law takes the rate that is left for the path's. In the simulator, 1 Gb/s with 100 ms and 0.1 or 1 %
/// of loss reach what they reach with the largest buffers from these on, to 4 % (docs/bbr.md).
pub(crate) fn bdps_wanted(rule: &Rule, buffer: Setting) -> u64 {
    let samples_rate = rule.settings.law().is_some_and(|law| law.is_our_rate_law());
    match buffer {
        Setting::ReceiveBuffer if samples_rate => 4,
        Setting::SendBuffer if samples_rate => 2,
        _ => 1,
    }
}

fn small_buffer(rule: &Rule, buffer: Setting) -> Option<HeldBack> {
    let law = rule.settings.law().filter(|law| law.is_our_rate_law())?;
    let bdp_bytes = rule.path.bdp_bytes()?;
    let bytes = rule.settings.number(buffer)?;
    let (key, bdps) = (buffer.key(), bdps_wanted(rule, buffer));
    (bytes < bdp_bytes.saturating_mul(bdps)).then(|| HeldBack {
        message: format!(
            "with {key} of {}, a loss lets {law} have less than the path's rate: it wants {bdps} times what the path \
             holds, {}",
            show_bytes(bytes),
            show_bytes(bdp_bytes)
        ),
        remedy: format!("write {key} = \"{bdps}bdp\""),
    })
}

fn slow_pacing(rule: &Rule) -> Option<HeldBack> {
    let law = rule.settings.law().filter(|law| law.is_our_rate_law())?;
    let path_bps = rule.path.rate_bps?;
    let paced_bps = rule.settings.number(Setting::PacingRate)?;
    (paced_bps < path_bps).then(|| HeldBack {
        message: format!(
            "pacing_rate of {} is below the path's rate, {}: {law}, which finds the rate itself, never finds more",
            show_rate(paced_bps),
            show_rate(path_bps)
        ),
        remedy: "leave pacing_rate out, unless the flows are to have no more".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Flow, explain, parse};

    fn told(settings: &str) -> String {
        let path = "[[rule]]\nname = 'wan'\nrtt = '100ms'\nrate = '1gbit'\n";
        let sysctls = "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n";
        let policy = parse(&format!("{path}{settings}\n{sysctls}"), None).expect("it is good");
        let flow = Flow::parse("192.0.2.1:443").expect("a destination");
        let notes = explain(&policy, &flow).notes.into_iter();
        let warnings = policy.warnings.iter().map(ToString::to_string);
        let all: Vec<String> = warnings.chain(notes).collect();
        all.join("\n")
    }

    #[test]
    fn small_buffers_are_warned_of() {
        let small = told(
            "congestion_control = 'fp_bbr'\nsend_buffer = '1.9bdp'\nreceive_buffer = '3.9bdp'",
        );
        for part in [
            "send_buffer = \"2bdp\"",
            "receive_buffer = \"4bdp\"",
            "12.5 MB",
        ] {
            assert!(small.contains(part), "{part}: {small}");
        }
        assert_eq!(
            small.matches("less than the path's rate").count(),
            4,
            "{small}"
        );
    }

    #[test]
    fn a_pacing_rate_below_the_path_is_warned_of() {
        let slow = told("congestion_control = 'fp_bbr'\npacing_rate = '900mbit'");
        assert!(slow.contains("pacing_rate of 900"), "{slow}");
        assert_eq!(
            told("congestion_control = 'fp_bbr'\npacing_rate = '1gbit'"),
            ""
        );
    }

    #[test]
    fn neither_large_buffers_nor_another_law_are() {
        let large = "send_buffer = '2bdp'\nreceive_buffer = '4bdp'";
        assert_eq!(told(&format!("congestion_control = 'fp_bbr'\n{large}")), "");
        let small = "send_buffer = '1bdp'\nreceive_buffer = '1bdp'\npacing_rate = '900mbit'";
        assert_eq!(
            told(&format!("congestion_control = 'fp_reno'\n{small}")),
            ""
        );
    }
}
