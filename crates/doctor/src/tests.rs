// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts of several kinds, and what is said of them.

use crate::*;
use fatpath_policy::{memory_warnings, our_laws, parse};
use proptest::prelude::*;

/// Debian 13 as it comes, with fatpath and a rule.
fn good() -> Facts {
    let sysctls = [
        ("net.ipv4.tcp_window_scaling", "1"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_moderate_rcvbuf", "1"),
        ("net.core.default_qdisc", "fq_codel"),
        ("net.core.rmem_max", "212992"),
        ("net.core.wmem_max", "212992"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ];
    let brought: Vec<String> = our_laws().collect();
    let kernels = ["reno", "cubic"].map(str::to_owned);
    Facts {
        system: System {
            kernel_release: "6.12.9-amd64".to_owned(),
            has_btf: true,
            cgroup2: Some("/sys/fs/cgroup".into()),
            has_bpffs: true,
            daemon_memory_max_bytes: Ok(None),
            has_synchronised_clock: Ok(true),
        },
        laws: Laws {
            registered: Ok(kernels.iter().chain(&brought).cloned().collect()),
            brought,
            of_others: Ok(Vec::new()),
        },
        sysctls: sysctls
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        tcp_pressure_bytes: Some(8 << 30),
        tcp_used_bytes: Some(4096),
        rivals: Rivals {
            sockops: Some(Ok(Vec::new())),
            ..Rivals::default()
        },
        has_group: true,
        daemon: Ok(Daemon::Runs {
            pid: 4711,
            version: "0.1.0".to_owned(),
            errors: Vec::new(),
            lists_by_namespace: false,
        }),
        policy: policy(RULE),
        version: "0.1.0",
    }
}

const RULE: &str = "[host.sysctl]\n\"net.core.wmem_max\" = \"auto\"\n\"net.core.rmem_max\" = \"auto\"\n\
    [[rule]]\nname = \"cern\"\nsend_buffer = \"25MB\"\nreceive_buffer = \"25MB\"\n";

fn policy(text: &str) -> PolicyFile {
    let file = "/etc/fatpath/policy.toml".to_owned();
    let policy = parse(text, None).map(|mut policy| {
        let of_memory = memory_warnings(&policy, Some(8 << 30), |_| None);
        policy.warnings.extend(of_memory);
        policy
    });
    let policy = policy.map_err(|problems| {
        let lines = problems.iter().map(|it| it.in_file(&file).to_string());
        lines.collect()
    });
    PolicyFile {
        file,
        is_there: true,
        policy,
    }
}

fn level_of(facts: &Facts, check: &str) -> Level {
    let report = judge(facts);
    let found = report.checks.iter().find(|it| it.check == check);
    found.expect("there is such a check").level
}

#[test]
fn a_good_host_is_all_ok() {
    let report = judge(&good());
    assert_eq!(report.count(Level::Ok), report.checks.len(), "{report}");
    insta::assert_snapshot!(report);
}

#[test]
fn where_there_is_no_policy_the_remedy_is_to_write_one() {
    let mut facts = good();
    facts.policy.is_there = false;
    facts.policy.policy = Err(vec!["cannot read the policy".to_owned()]);
    let report = judge(&facts);
    let policy = report.checks.iter().find(|it| it.check == "policy");
    let remedy = policy.unwrap().remedy.as_deref().unwrap();
    assert!(remedy.contains("fatpath policy suggest"), "{remedy}");
}

#[test]
fn a_kernel_that_refuses_iterators_over_maps_is_told() {
    let mut facts = good();
    if let Ok(Daemon::Runs {
        lists_by_namespace, ..
    }) = &mut facts.daemon
    {
        *lists_by_namespace = true;
    }
    let report = judge(&facts);
    let daemon = report
        .checks
        .iter()
        .find(|it| it.check == "daemon")
        .unwrap();
    assert_eq!(daemon.level, Level::Ok);
    assert!(daemon.found.contains("iterators over maps"), "{report}");
}

#[test]
fn a_bad_host_has_a_remedy_for_each() {
    let mut facts = good();
    facts.system.kernel_release = "5.10.0-28-amd64".to_owned();
    facts.system.has_btf = false;
    facts.system.cgroup2 = None;
    facts.system.has_bpffs = false;
    facts.system.daemon_memory_max_bytes = Ok(Some(64 << 20));
    facts.system.has_synchronised_clock = Ok(false);
    for name in &SYSCTLS[..4] {
        facts.sysctls.insert((*name).to_owned(), "0".to_owned());
    }
    facts
        .sysctls
        .insert("net.core.default_qdisc".to_owned(), "pfifo_fast".to_owned());
    facts.tcp_used_bytes = Some(9 << 30);
    facts.rivals = Rivals {
        bpftune_pid: Some(99),
        tuned_profile: Some("latency".to_owned()),
        tuned_lines: tuned_lines("t/tuned.conf", "[sysctl]\nnet.ipv4.tcp_timestamps=0\n"),
        sysctl_lines: sysctl_lines(
            "/etc/sysctl.d/9.conf",
            "net.core.wmem_max = 4194304\nnet.ipv4.tcp_sack = 0\nnet.core.rmem_max = 1\nnet.core.rmem_max = 90000000\n",
        ),
        sockops: Some(Ok(vec![Sockops {
            id: 7,
            name: "mine".to_owned(),
            is_exclusive: true,
        }])),
    };
    facts.has_group = false;
    facts.laws.of_others = Ok(vec![("fp_aimd".to_owned(), "/sys/fs/bpf/other".to_owned())]);
    facts.daemon = Ok(Daemon::OnlyPins);
    let report = judge(&facts);
    let without: Vec<_> = report
        .checks
        .iter()
        .filter(|it| it.level != Level::Ok && it.remedy.is_none())
        .collect();
    assert!(without.is_empty(), "{without:?}");
    insta::assert_snapshot!(report);
}

#[test]
fn a_buffer_that_the_host_cuts_is_bad_unless_the_policy_raises_it() {
    let mut facts = good();
    assert_eq!(level_of(&facts, "send buffer"), Level::Ok);
    facts.policy = policy("[[rule]]\nname = \"cern\"\nsend_buffer = \"25MB\"\n");
    assert_eq!(level_of(&facts, "send buffer"), Level::Bad);
    assert_eq!(level_of(&facts, "receive buffer"), Level::Ok);
    facts
        .sysctls
        .insert("net.core.wmem_max".to_owned(), "33554432".to_owned());
    assert_eq!(level_of(&facts, "send buffer"), Level::Ok);
}

#[test]
fn window_scaling_that_the_policy_switches_on_is_not_bad() {
    let mut facts = good();
    let name = "net.ipv4.tcp_window_scaling";
    facts.sysctls.insert(name.to_owned(), "0".to_owned());
    assert_eq!(level_of(&facts, "window scaling"), Level::Bad);
    facts.policy = policy(&RULE.replace("sysctl]\n", &format!("sysctl]\n\"{name}\" = 1\n")));
    assert_eq!(level_of(&facts, "window scaling"), Level::Warn);
}

#[test]
fn a_file_counts_by_its_last_line() {
    let mut facts = good();
    let low = "net.core.rmem_max = 1000000\n";
    facts.rivals.sysctl_lines = sysctl_lines("f", low);
    assert_eq!(level_of(&facts, "sysctl.d"), Level::Warn);
    let high = format!("{low}net.core.rmem_max = 30000000\n");
    facts.rivals.sysctl_lines = sysctl_lines("f", &high);
    assert_eq!(level_of(&facts, "sysctl.d"), Level::Ok);
}

#[test]
fn what_tunes_nothing_or_is_broken_is_told() {
    let mut facts = good();
    facts.policy = policy("[auto]\n");
    assert_eq!(level_of(&facts, "policy"), Level::Warn);
    facts.policy = policy("[auto]\nmode = \"tune\"\n");
    assert_eq!(level_of(&facts, "policy"), Level::Ok);
    facts.policy = policy("[nonsense]\n[more]\n");
    assert_eq!(level_of(&facts, "policy"), Level::Bad);
}

#[test]
fn laws_are_missing_only_once_something_is_loaded() {
    let mut facts = good();
    facts.laws.registered = Ok(vec!["cubic".to_owned()]);
    assert_eq!(level_of(&facts, "laws"), Level::Warn);
    facts.daemon = Ok(Daemon::NotLoaded);
    assert_eq!(level_of(&facts, "laws"), Level::Ok);
    assert_eq!(level_of(&facts, "daemon"), Level::Warn);
}

#[test]
fn what_cannot_be_seen_is_not_ok() {
    let mut facts = good();
    let why = || "not root".to_owned();
    facts.system.daemon_memory_max_bytes = Err(why());
    facts.system.has_synchronised_clock = Err(why());
    facts.laws.registered = Err(why());
    facts.sysctls.clear();
    facts.tcp_used_bytes = None;
    facts.rivals.sockops = Some(Err(why()));
    facts.daemon = Err(why());
    let report = judge(&facts);
    // Seven kinds of sysctl, and TCP's memory beside them.
    assert_eq!(report.count(Level::Unseen), 5 + 8, "{report}");
    assert_eq!(report.count(Level::Bad) + report.count(Level::Warn), 0);
}

proptest! {
    /// Names of profiles, programs and files come from others.
    #[test]
    fn no_line_breaks_at_80_columns(words in "([a-z/.-]{1,30} ){0,30}", name in "\\PC{0,15}") {
        let mut facts = good();
        facts.daemon = Err(words.clone());
        facts.rivals.sockops = Some(Ok(vec![Sockops { id: 1, name, is_exclusive: false }]));
        facts.policy.policy = Err(vec![words]);
        for line in judge(&facts).to_string().lines() {
            prop_assert!(line.chars().count() <= 80, "{line}");
            prop_assert!(!line.contains(char::is_control));
        }
    }
}
