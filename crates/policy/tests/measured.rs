// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules whose path is measured: what they give before, and what follows afterwards.

use fatpath_policy::{
    AutoMode, MeasuredPath, MeasuredPaths, Policy, Setting, SysctlName, import_wad, parse,
};
use proptest::prelude::*;

const RULE: &str = "[host.sysctl]\n\"net.core.wmem_max\" = \"auto\"\n[[rule]]\nname = 'far'\nrtt = 'measured'\n\
    rate = 'measured'\nsend_buffer = '2bdp'\ninitial_ssthresh = 'bdp'\n\
    congestion_control = { law = 'fp_aimd', highspeed_buffer = 'bdp' }\n";

fn good(text: &str) -> Policy {
    parse(text, None).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn refused(text: &str) -> String {
    let problems = parse(text, None).expect_err("the file has errors");
    let told = problems
        .iter()
        .map(|problem| problem.in_file("p.toml").to_string());
    told.collect()
}

fn measured(rtt_us: impl Into<Option<u32>>, rate_bps: impl Into<Option<u64>>) -> MeasuredPaths {
    let path = MeasuredPath {
        rtt_us: rtt_us.into(),
        rate_bps: rate_bps.into(),
        by: "on 192.0.2.0/24 by flows".into(),
        most_buffer_bytes: None,
    };
    [("far".to_owned(), path)].into()
}

fn send_buffer(policy: &Policy) -> Option<u64> {
    policy.rules[0].settings.number(Setting::SendBuffer)
}

/// (a, b) of the rule's law.
fn ab(policy: &Policy) -> (f64, f64) {
    let law = policy.rules[0].settings.law().and_then(|law| law.ours());
    let law = law.expect("the rule has fp_aimd");
    (law.number("a"), law.number("b"))
}

#[test]
fn what_is_still_to_be_measured_is_left_to_the_kernel() {
    let policy = good(RULE);
    assert_eq!(send_buffer(&policy), None);
    assert!(!policy.rules[0].settings.gives(Setting::InitialSsthresh));
    assert_eq!(ab(&policy), (1.0, 0.5));
    assert_eq!(policy.host.at_least(SysctlName::CoreWmemMax), None);
    assert_eq!(policy.auto.mode, AutoMode::Observe);
    assert_eq!(policy.measured_rules().count(), 1);
}

#[test]
fn what_depends_on_the_path_follows_what_is_measured() {
    let policy = good(RULE);
    let near = policy
        .with_measured(&measured(20_000, 100_000_000))
        .unwrap();
    assert_eq!(send_buffer(&near), Some(500_000));
    assert_eq!(near.host.at_least(SysctlName::CoreWmemMax), Some(500_000));
    // 172 segments, which the row of 221 is the first to hold, and 6906.
    assert_eq!(ab(&near), (3.0, 0.41));
    let far = near
        .with_measured(&measured(80_000, 1_000_000_000))
        .unwrap();
    assert_eq!(send_buffer(&far), Some(20_000_000));
    assert_eq!(ab(&far), (24.0, 0.23));
    let reason = &far.rules[0].settings.iter().next().unwrap().1.reason;
    let why = "1 Gb/s x 80 ms = 10 MB (bdp), x 2, measured on 192.0.2.0/24 by flows";
    assert_eq!(reason, why);
    assert_eq!(far.with_measured(&MeasuredPaths::new()).unwrap(), policy);
}

#[test]
fn the_file_can_say_what_holds_until_then() {
    let text = RULE.replace(
        "send_",
        "rtt_otherwise = '50ms'\nrate_otherwise = '80mbit'\nsend_",
    );
    let policy = good(&text);
    assert_eq!(send_buffer(&policy), Some(1_000_000));
    let of_rtt = policy.with_measured(&measured(100_000, None)).unwrap();
    assert_eq!(send_buffer(&of_rtt), Some(2_000_000));
    let reason = &policy.rules[0].settings.iter().next().unwrap().1.reason;
    assert!(reason.ends_with(", until it is measured"), "{reason}");
}

#[test]
fn one_part_may_be_known() {
    let policy = good(&RULE.replace("rtt = 'measured'", "rtt = '10ms'"));
    let both = policy
        .with_measured(&measured(90_000, 800_000_000))
        .unwrap();
    assert_eq!(send_buffer(&both), Some(2_000_000));
    let lacking = RULE.replace("rtt = 'measured'\n", "");
    assert!(refused(&lacking).contains("send_buffer: \"2bdp\" needs the path's rtt and rate"));
}

/// A peer that delays its ACKs makes its path as long as it likes.
#[test]
fn a_buffer_that_follows_is_bounded_by_the_host() {
    let text = RULE.replace("send_", "receive_buffer = '300MB'\nsend_");
    let mut long = measured(60_000_000, 1_000_000_000);
    long.get_mut("far").unwrap().most_buffer_bytes = Some(90_000_000);
    let policy = good(&text).with_measured(&long).unwrap();
    assert_eq!(send_buffer(&policy), Some(90_000_000));
    assert_eq!(
        policy.host.at_least(SysctlName::CoreWmemMax),
        Some(90_000_000)
    );
    let settings = &policy.rules[0].settings;
    assert_eq!(settings.number(Setting::ReceiveBuffer), Some(300_000_000));
    let reasons: Vec<&str> = settings.iter().map(|(_, it)| it.reason.as_str()).collect();
    assert!(
        reasons[0].ends_with("by flows, at most 90 MB a flow"),
        "{reasons:?}"
    );
}

#[test]
fn a_file_of_which_nothing_is_measured_stays_as_it_is() {
    let policy = good("[[rule]]\nname = 'far'\nsend_buffer = '1MB'\n");
    assert_eq!(policy.with_measured(&measured(1, 1_000)).unwrap(), policy);
    assert_eq!(policy.auto.mode, AutoMode::Off);
}

#[test]
fn contradictions_are_told_with_the_remedy() {
    let alone = RULE.replace("rtt = 'measured'", "rtt = '10ms'\nrtt_otherwise = '20ms'");
    let told = refused(&alone);
    assert!(
        told.starts_with("p.toml:6:17: rtt_otherwise: `rtt_otherwise` is for a path whose rtt is measured; write rtt = \"measured\", or leave"),
        "{told}"
    );
    let off = format!("[auto]\nmode = 'off'\n{RULE}");
    let told = refused(&off);
    assert!(
        told.starts_with("p.toml:2:8: mode: rule `far` asks for what is measured, and nothing is learned of paths; write mode = \"observe\""),
        "{told}"
    );
    let told = refused(&RULE.replace("rate = 'measured'", "rate = 'mesured'"));
    assert!(told.contains("or \"measured\""), "{told}");
    let told = refused(&RULE.replace("send_", "rtt_otherwise = 'measured'\nsend_"));
    assert!(
        told.contains("rtt_otherwise: found the text \"measured\""),
        "{told}"
    );
}

#[test]
fn a_dynamic_entry_of_the_wad_follows_what_is_measured() {
    let imported = import_wad("[far]\ndst_addr: 192.0.2.9\nmode: 2\nsndbuf: 2000000\n").unwrap();
    let policy = good(&imported.toml);
    assert_eq!(send_buffer(&policy), None);
    let followed = policy
        .with_measured(&measured(100_000, 1_000_000_000))
        .unwrap();
    assert_eq!(send_buffer(&followed), Some(12_500_000));
    // 8632 segments.
    assert_eq!(ab(&followed), (27.0, 0.22));
}

proptest! {
    /// Nobody wrote these numbers: they are bounded, not refused.
    #[test]
    fn whatever_is_measured_is_taken(
        rtt_us in 1..=60_000_000_u32,
        rate_bps in 1_000..=100_000_000_000_000_u64,
        most_bytes in 1..2_000_000_000_u64,
    ) {
        let policy = good(RULE).with_measured(&measured(rtt_us, rate_bps)).unwrap();
        let wanted = u128::from(rate_bps) * u128::from(rtt_us) / 8_000_000 * 2;
        let given = u128::from(send_buffer(&policy).unwrap());
        prop_assert!((4096..1 << 30).contains(&given));
        prop_assert!(given.abs_diff(wanted) <= 2 || given == 4096 || given == (1 << 30) - 1);
        let mut bounded = measured(rtt_us, rate_bps);
        bounded.get_mut("far").unwrap().most_buffer_bytes = Some(most_bytes);
        let bounded = send_buffer(&policy.with_measured(&bounded).unwrap()).unwrap();
        prop_assert_eq!(u128::from(bounded), given.min(u128::from(most_bytes).max(4096)));
    }
}
