// SPDX-License-Identifier: MIT OR Apache-2.0
//! The classifier against the naive match, the routes against the rules, on random policies.
//!
//! Addresses and ports come from small pools of neighbours, so that prefixes nest and flows hit.
#![allow(clippy::disallowed_types, clippy::disallowed_macros)] // measures and prints how long a look-up lasts

use fatpath_policy::{Classifier, Flow, MAX_RULES, Policy, Prefix, Setting, parse, routes};
use proptest::prelude::*;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

const CGROUPS: [&str; 6] = ["/", "/a", "/a/b", "/a/bc", "/a/b/c", "/d"];

fn address() -> impl Strategy<Value = IpAddr> {
    // Few bits differ, high and low ones, so that prefixes of all lengths meet.
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(0x0a00_0000 | bits & 0x8001_0003).into()),
        any::<u128>().prop_map(|bits| {
            Ipv6Addr::from_bits(bits & (0x8000_0001_u128 << 96 | 0x8000_0000_0003)).into()
        }),
    ]
}

fn prefix() -> impl Strategy<Value = Prefix> {
    let lengths = prop::sample::select(vec![
        0, 1, 8, 15, 16, 24, 31, 32, 33, 64, 80, 95, 96, 97, 127, 128,
    ]);
    (address(), lengths).prop_map(|(address, length)| {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        Prefix::holding(address, length.min(longest)).expect("the length was bounded")
    })
}

fn ports() -> impl Strategy<Value = String> {
    let bound = prop::sample::select(vec![1_u16, 2, 80, 443, 444, 5000, 65534, 65535]);
    prop::collection::btree_set(bound, 2).prop_map(|bounds| {
        let bounds: Vec<_> = bounds.into_iter().collect();
        format!("[\"{}-{}\"]", bounds[0], bounds[1])
    })
}

fn list(key: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        prop::collection::vec(prefix(), 1..4).prop_map(move |prefixes| {
            let quoted: Vec<_> = prefixes
                .iter()
                .map(|prefix| format!("\"{prefix}\""))
                .collect();
            format!("{key} = [{}]\n", quoted.join(", "))
        }),
    ]
}

fn optional(
    key: &'static str,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    prop::option::weighted(0.4, value).prop_map(move |value| {
        value
            .map(|value| format!("{key} = {value}\n"))
            .unwrap_or_default()
    })
}

fn rule() -> impl Strategy<Value = String> {
    let cgroup = prop::sample::select(CGROUPS.to_vec()).prop_map(|path| format!("\"{path}\""));
    (
        list("destination"),
        list("source"),
        optional("destination_ports", ports()),
        optional("source_ports", ports()),
        optional("cgroup", cgroup),
    )
        .prop_map(|(a, b, c, d, e)| a + &b + &c + &d + &e)
}

fn policy_of(rules: impl Strategy<Value = Vec<String>>) -> impl Strategy<Value = Policy> {
    rules.prop_map(|rules| {
        let text = rules
            .iter()
            .enumerate()
            .fold(String::from("# random"), |text, (index, rule)| {
                text + &format!("\n[[rule]]\nname = \"r{index}\"\n{rule}")
            });
        parse(&text, None).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
    })
}

fn whole_flow() -> impl Strategy<Value = (SocketAddr, SocketAddr, &'static str)> {
    let port = || prop::sample::select(vec![1_u16, 2, 79, 80, 443, 444, 445, 4999, 5001, 65535]);
    let cgroup = prop::sample::select(vec!["/", "/a", "/ab", "/a/b", "/a/bc", "/a/b/c/d", "/d/e"]);
    (address(), address(), port(), port(), cgroup)
        .prop_filter("one family", |(to, from, ..)| {
            to.is_ipv4() == from.is_ipv4()
        })
        .prop_map(|(to, from, to_port, from_port, cgroup)| {
            (
                SocketAddr::new(to, to_port),
                SocketAddr::new(from, from_port),
                cgroup,
            )
        })
}

fn flow(destination: SocketAddr, source: SocketAddr, cgroup: &str) -> Flow {
    Flow {
        destination: destination.ip(),
        destination_port: Some(destination.port()),
        source: Some(source.ip()),
        source_port: Some(source.port()),
        cgroup: Some(cgroup.to_owned()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_tables_say_what_the_rules_say(
        policy in policy_of(prop::collection::vec(rule(), 0..70)),
        flows in prop::collection::vec(whole_flow(), 50),
    ) {
        let classifier = Classifier::build(&policy);
        for (to, from, cgroup) in flows {
            let naive = policy.first_match(&flow(to, from, cgroup)).map(|rule| rule.name.as_str());
            let tables = classifier.lookup(to, from, cgroup).map(|rule| policy.rules[rule].name.as_str());
            prop_assert_eq!(naive, tables, "{} {} {}", to, from, cgroup);
        }
    }

    #[test]
    fn no_flow_reaches_a_rule_that_is_said_to_be_unreachable(
        policy in policy_of(prop::collection::vec(rule(), 2..12)),
        flows in prop::collection::vec(whole_flow(), 50),
    ) {
        let unreachable: Vec<u32> = policy.warnings.iter().map(|warning| warning.line).collect();
        for (to, from, cgroup) in flows {
            let met = policy.first_match(&flow(to, from, cgroup));
            prop_assert!(met.is_none_or(|rule| !unreachable.contains(&rule.line)));
        }
    }

    #[test]
    fn the_longest_route_carries_the_metrics_of_the_first_rule(
        policy in policy_of(prop::collection::vec(metric_rule(), 1..20)),
        addresses in prop::collection::vec(address(), 50),
    ) {
        let routes = routes(&policy, &Classifier::build(&policy));
        for address in addresses {
            let route = routes
                .iter()
                .filter(|route| route.prefix.contains(address))
                .max_by_key(|route| route.prefix.key_bits());
            let met = policy.first_match(&Flow::to(address)).map(|rule| &rule.settings);
            let reordering = met.and_then(|settings| settings.number(Setting::Reordering));
            let quickack = met.and_then(|settings| settings.truth(Setting::Quickack));
            prop_assert_eq!(route.and_then(|route| route.reordering_pkts.map(u64::from)), reordering);
            prop_assert_eq!(route.is_some_and(|route| route.quickack), quickack.unwrap_or(false));
        }
    }
}

fn metric_rule() -> impl Strategy<Value = String> {
    let prefixes = list("destination").prop_filter("a destination", |list| !list.is_empty());
    let reordering = optional(
        "reordering",
        (3..6_u32).prop_map(|segments| segments.to_string()),
    );
    let quickack = optional(
        "quickack",
        any::<bool>().prop_map(|truth| truth.to_string()),
    );
    (prefixes, reordering, quickack).prop_map(|(a, b, c)| a + &b + &c)
}

/// 1,024 rules of 64 prefixes each: 65,536 of IPv4 and IPv6, half of them within another.
fn largest_policy() -> String {
    let mut text = String::new();
    for rule in 0..MAX_RULES as u32 {
        write!(text, "[[rule]]\nname = \"r{rule}\"\ndestination = [").expect("a String takes all");
        for index in 0..64_u32 {
            let number = rule * 64 + index;
            let (high, low) = (number >> 8, number & 0xff);
            let prefix = match index % 4 {
                0 => format!("2001:db8:{number:x}::/48"),
                1 => format!("2001:db8:{:x}:{number:x}::/64", number - 1),
                2 => format!("10.{high}.{low}.0/24"),
                _ => format!("10.{high}.{}.{low}", low - 1),
            };
            write!(text, "\"{prefix}\", ").expect("a String takes all");
        }
        writeln!(text, "]\ndestination_ports = [{}]", rule % 1000 + 1).expect("a String takes all");
    }
    text
}

/// The bound is wide for slow machines; work quadratic in the prefixes would take minutes.
#[test]
fn the_largest_policy_is_built_in_seconds() {
    let text = largest_policy();
    let start = Instant::now();
    let policy = parse(&text, None).expect("the policy is within the limits");
    let parsed = start.elapsed();
    let start = Instant::now();
    let classifier = Classifier::build(&policy);
    let built = start.elapsed();
    println!(
        "parse {parsed:?}, build {built:?}, {} prefixes, {} sets",
        classifier.destination.len(),
        classifier.sets.len()
    );
    assert_eq!(classifier.destination.len(), 65_536 + 2);
    assert!(built < Duration::from_secs(10), "{built:?}");
    let flow = (
        "10.1.194.7:8".parse().unwrap(),
        "10.0.0.1:9".parse().unwrap(),
        "/",
    );
    assert_eq!(classifier.lookup(flow.0, flow.1, flow.2), Some(7));
}
