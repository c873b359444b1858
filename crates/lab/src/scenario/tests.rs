// SPDX-License-Identifier: MIT OR Apache-2.0
//! What files say and what is said of wrong ones.

use fatpath_link::{CellSpec, ChainSpec, LossSpec, RateSpec, Service};

use proptest::prelude::*;

use super::*;

const DEMO: &str = include_str!("../../../../experiments/demo.toml");

fn parse(text: &str) -> Result<Scenario, Problem> {
    Scenario::parse("x.toml", text)
}

/// A well-formed scenario with one more part.
fn with(part: &str) -> String {
    let begin = "name = \"x\"\n[set]\nwindow = \"\"\n[hosts.a]\n[hosts.b]\n[links.wan]\n\
                 between = [\"a\", \"b\"]\nrate = \"1gbit\"\ndelay = \"50ms\"\n";
    format!("{begin}{part}\n")
}

#[test]
fn the_demo_says_what_the_issue_asks_for() {
    let demo = parse(DEMO).unwrap();
    let names: Vec<&str> = demo.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["clean", "lossy", "small-buffers"]);
    for path in &demo.paths {
        for direction in path.links[0].directions {
            assert_eq!(direction.rate_bps, Some(1_000_000_000));
            assert_eq!(direction.delay_ns, 50_000_000);
            assert_eq!(direction.queue_bytes, Some(12_500_000));
            let lossy = path.name == "lossy";
            assert!((direction.loss - if lossy { 1e-4 } else { 0.0 }).abs() < 1e-18);
        }
    }
    assert_eq!(
        demo.values(&demo.paths[2], &demo.variants[0])["window"],
        "-w 64K"
    );
    assert_eq!(demo.values(&demo.paths[0], &demo.variants[1])["window"], "");
}

#[test]
fn a_direction_overrides_the_link_and_a_path_overrides_both() {
    let text = with(
        "backward = { rate = \"10mbit\", loss = \"1%\" }\n[[path]]\nname = \"p\"\n\
                     links.wan.backward.loss = \"2%\"\nlinks.wan.delay = \"5ms\"",
    );
    let [forward, backward] = parse(&text).unwrap().paths[0].links[0].directions;
    assert_eq!(
        (forward.rate_bps, backward.rate_bps),
        (Some(1_000_000_000), Some(10_000_000))
    );
    assert_eq!((forward.loss, backward.loss), (0.0, 0.02));
    assert_eq!(
        (forward.delay_ns, backward.delay_ns),
        (5_000_000, 5_000_000)
    );
    assert_eq!(forward.queue_bytes, Some(1_250_000));
    assert_ne!(forward.seed, backward.seed);
}

#[test]
fn without_paths_and_variants_there_is_one_of_each() {
    let scenario = parse(&with("")).unwrap();
    assert_eq!((scenario.paths.len(), scenario.variants.len()), (1, 1));
}

#[test]
fn errors_name_the_place_the_key_and_what_is_allowed() {
    let wrong = [
        "".to_owned(),
        "name = ".to_owned(),
        "name = \"Demo\"".to_owned(),
        "name = \"x\"".to_owned(),
        "name = \"x\"\n[hosts.a]\nport = 1".to_owned(),
        with("rait = \"1gbit\""),
        with("loss = 0.01"),
        with("loss = \"101%\""),
        with("mtu = 100"),
        with("forward.rate = \"1gigabit\""),
        with("[links.two]\nbetween = [\"a\", \"c\"]"),
        with("[links.two]\nbetween = [\"a\", \"a\"]"),
        with("[links.two]\nbetween = \"a\""),
        with("[links.two]\nbetween = [\"a\", \"b\"]\nqueue = \"1bdp\""),
        with("[path]\nname = \"p\""),
        with("[[path]]\nname = \"p\"\nlinks.lan.loss = \"1%\""),
        with("[[path]]\nname = \"p\"\nset.windw = \"\""),
        with("[[path]]\nname = \"p\"\n[[path]]\nname = \"p\""),
        with("[[path]]\nname = \"../p\""),
        with("[[program]]\nrun = \"x\""),
        with("[[program]]\nhost = \"c\"\nrun = \"x\""),
        with("[[program]]\nhost = \"a\"\nrun = \"x {sever}\""),
        with("[[program]]\nhost = \"a\"\nrun = \"x\"\nready = { port = 0 }"),
        with("[[program]]\nhost = \"a\"\nrun = \"x\"\nresult = \"netperf\""),
        with("[[program]]\nhost = \"a\"\nrun = \"x\"\ntime_limit = \"60\""),
    ];
    let told: Vec<String> = wrong
        .iter()
        .map(|text| parse(text).unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    x.toml:1:1: name: is missing; it is 1 to 20 of a-z, 0-9 and -, beginning with a letter
    x.toml:1:8: not TOML: string values must be quoted, expected literal string
    x.toml:1:8: name: "Demo" is not 1 to 20 of a-z, 0-9 and -, beginning with a letter
    x.toml:1:1: hosts: name at least one host: [hosts.NAME]
    x.toml:3:1: hosts.a.port: unknown key; allowed here: none
    x.toml:10:1: links.wan.rait: unknown key; allowed here: between, mtu, seed, rate, delay, queue, loss, overhead, forward, backward
    x.toml:10:8: links.wan.loss: must be text: a share of the segments from "0%" to "100%", not a TOML float
    x.toml:10:8: links.wan.loss: "101%" is not a share of the segments from "0%" to "100%"
    x.toml:10:7: links.wan.mtu: 100 is not a whole number from 1280 to 65535
    x.toml:10:16: links.wan.forward.rate: "1gigabit" is not a rate from "1kbit" to "1tbit" (bit, kbit, mbit, gbit, tbit; decimal)
    x.toml:11:11: links.two.between: "c" is no host; the hosts are: a, b
    x.toml:11:11: links.two.between: a link joins two different hosts
    x.toml:11:11: links.two.between: must be the names of two hosts, such as ["client", "server"], not a TOML string
    x.toml:10:1: links.two.queue: needs a rate, which is what makes a queue
    x.toml:10:1: path: must be written as [[path]]
    x.toml:12:7: links.lan: no such link; the links are: wan
    x.toml:12:13: path[1].set.windw: has no default; named in [set]: window
    x.toml:13:8: path[2].name: "p" is taken; names are unique
    x.toml:11:8: path[1].name: "../p" is not 1 to 40 of A-Z, a-z, 0-9, ., _ and -, beginning with a letter or digit
    x.toml:10:1: program[1].host: is missing; it is one of: a, b
    x.toml:11:8: program[1].host: "c" is no host; the hosts are: a, b
    x.toml:12:7: program[1].run: {sever} is neither a host nor named in [set]
    x.toml:13:18: program[1].ready.port: 0 is not a whole number from 1 to 65535
    x.toml:13:10: program[1].result: "netperf" is not a known kind of output; known: "iperf3"
    x.toml:13:14: program[1].time_limit: "60" is not a time from "1s" to "24h" (s, min, h)
    "#);
}

#[test]
fn large_and_deeply_nested_files_are_refused_quickly() {
    assert!(parse(&"#".repeat(100 << 20)).is_err());
    assert!(parse(&"[".repeat(1 << 20)).is_err());
    assert!(parse(&format!("a = {}", "[".repeat(100_000))).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_damage_to_a_good_file_makes_it_panic(
        at in 0..DEMO.len(), removed in 0usize..40, inserted in "[\\[\\]{}=\"a-z0-9.\n]{0,8}"
    ) {
        let from = (0..=at).rev().find(|i| DEMO.is_char_boundary(*i)).unwrap();
        let to = (at + removed).min(DEMO.len());
        let to = (to..=DEMO.len()).find(|i| DEMO.is_char_boundary(*i)).unwrap();
        let text = format!("{}{inserted}{}", &DEMO[..from], &DEMO[to..]);
        if let Err(problem) = parse(&text) {
            prop_assert!(problem.line <= text.lines().count() + 1);
        }
    }
}
