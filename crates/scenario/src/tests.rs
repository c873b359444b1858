// SPDX-License-Identifier: MIT OR Apache-2.0
//! What files say and what is said of wrong ones.

use std::collections::BTreeSet;

use fatpath_link::{CellSpec, ChainSpec, LossSpec, RateSpec, Service};

use proptest::prelude::*;

use super::*;

const DEMO: &str = include_str!("../../../experiments/demo.toml");

/// What is wrong, a line each, without the severity that all have.
pub(crate) fn lines(refused: &Refused) -> String {
    let problems = refused.problems.iter();
    let lines = problems.map(|problem| problem.in_file(&refused.file).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

fn parse(text: &str) -> Result<Scenario, Refused> {
    Scenario::parse("x.toml", text)
}

/// A well-formed scenario with one more part.
fn with(part: &str) -> String {
    let begin = "name = \"x\"\n[set]\nwindow = \"\"\n[hosts.a]\n[hosts.b]\n[links.wan]\n\
                 between = [\"a\", \"b\"]\nrate = \"1gbit\"\ndelay = \"50ms\"\n";
    format!("{begin}{part}\n")
}

/// The only link of the first case.
fn link_of(part: &str) -> Link {
    let mut scenario = parse(&with(part)).unwrap_or_else(|wrong| panic!("{wrong}"));
    scenario.cases.remove(0).links.remove(0)
}

/// The forward cells of the only link; the direction without rate and delay of its own.
fn cells_of(part: &str) -> Vec<CellSpec> {
    let text = format!(
        "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n{part}\n"
    );
    let mut scenario = parse(&text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let [forward, _] = scenario.cases.remove(0).links.remove(0).directions;
    forward.cells
}

fn told(text: &str) -> String {
    lines(&parse(text).unwrap_err())
}

fn rate(cells: &[CellSpec]) -> &RateSpec {
    let rate = cells.iter().find_map(|cell| match cell {
        CellSpec::Rate(rate) => Some(rate),
        _ => None,
    });
    rate.expect("the test's link has a rate")
}

fn pairs(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    settings.iter().map(owned).collect()
}

#[test]
fn the_demo_says_what_the_issue_asks_for() {
    let demo = parse(DEMO).unwrap();
    let labels: Vec<&str> = demo.cases.iter().map(Case::label).collect();
    assert_eq!(
        labels,
        [
            "clean.default",
            "clean.tuned",
            "lossy.default",
            "lossy.tuned",
            "small-buffers.default",
            "small-buffers.tuned"
        ]
    );
    for case in &demo.cases {
        for direction in &case.links[0].directions {
            let mut cells = vec![
                CellSpec::rate(1_000_000_000, Some(12_500_000)),
                CellSpec::loss(1e-4),
                CellSpec::delay(50_000_000),
            ];
            if case.path != "lossy" {
                cells.remove(1);
            }
            assert_eq!(direction.cells, cells);
        }
        let is_small = case.path == "small-buffers";
        assert_eq!(case.programs[1].run.contains("-w 64K"), is_small);
        assert_eq!(case.policy.is_some(), case.variant == "tuned");
    }
}

#[test]
fn a_direction_overrides_the_link_and_a_path_overrides_both() {
    let link = link_of(
        "backward = { rate = \"10mbit\", loss = \"1%\" }\n[[path]]\nname = \"p\"\n\
         links.wan.backward.loss = \"2%\"\nlinks.wan.delay = \"5ms\"",
    );
    let [forward, backward] = link.directions;
    assert_eq!(
        forward.cells,
        [
            CellSpec::rate(1_000_000_000, Some(1_250_000)),
            CellSpec::delay(5_000_000)
        ]
    );
    assert_eq!(
        backward.cells,
        [
            CellSpec::rate(10_000_000, Some(131_072)),
            CellSpec::loss(0.02),
            CellSpec::delay(5_000_000)
        ]
    );
    assert_ne!(forward.seed, backward.seed);
}

#[test]
fn a_path_puts_one_kind_of_rate_or_of_loss_in_place_of_another() {
    let text = "loss = { to_bad = \"1%\", to_good = \"20%\" }\n[[path]]\nname = \"p\"\n\
                links.wan.rate_steps = [{ at = \"0s\", rate = \"2gbit\" }]\n\
                links.wan.loss = { every = 100 }";
    let [forward, _] = link_of(text).directions;
    assert!(matches!(
        rate(&forward.cells).service,
        Service::Steps { .. }
    ));
    let loss = CellSpec::Loss(LossSpec::Periodic {
        every: 100,
        first: 100,
    });
    assert_eq!(forward.cells[1], loss);
}

#[test]
fn without_paths_and_variants_there_is_one_case() {
    let scenario = parse(&with("")).unwrap();
    assert_eq!(scenario.cases.len(), 1);
    assert_eq!(scenario.cases[0].label(), "default.default");
    assert_eq!(scenario.experiment, Experiment::default());
}

#[test]
fn the_cells_of_a_stage_have_one_order_whatever_the_order_of_the_keys() {
    let all = "delay = \"5ms\"\njitter = { distribution = \"pareto\", mean = \"1ms\", shape = 1.5 }\n\
               reorder = { share = \"1%\", by = 3 }\nduplicate = \"0.1%\"\ncorrupt = \"0.2%\"\n\
               loss = [\"1%\", { flow = 1, packets = [20, 21] }]\n\
               discipline = { name = \"codel\", ecn = true }\nmark_above = \"100kB\"\n\
               overhead = \"38B\"\nqueue = \"1000pkts\"\nrate = \"1gbit\"\npath_mtu = 1400\n\
               policer = { rate = \"50mbit\", burst = \"64KiB\" }";
    insta::assert_debug_snapshot!(cells_of(all));
}

#[test]
fn every_form_of_every_effect() {
    let forms = [
        "policer = { rate = \"50mbit\", burst = \"64KiB\", exceed = \"mark\" }",
        "policer = { rate = \"50mbit\", burst = \"64KiB\", exceed = \"dscp\", dscp = 8 }",
        "policer = \"none\"",
        "rate = \"unlimited\"",
        "rate_steps = [{ at = \"0s\", rate = \"1gbit\" }, { at = \"5s\", rate = \"0bit\" }]\n\
         repeat_after = \"10s\"",
        "rate = \"1gbit\"\nqueue = \"2bdp\"\ndelay = \"50ms\"",
        "rate = \"1gbit\"\nqueue = \"600kB\"\ndiscipline = \"red\"",
        "rate = \"1gbit\"\ndiscipline = { name = \"red\", min = \"50kB\", max = \"150kB\", \
         max_probability = \"10%\", weight = 0.01, ecn = true }",
        "rate = \"1gbit\"\nqueue = \"10pkts\"\ndiscipline = \"drop-head\"\nmark_above = \"0.5bdp\"",
        "loss = { share = \"1%\" }",
        "loss = { to_bad = \"0.1%\", to_good = \"30%\", loss_in_good = \"0.01%\" }",
        "loss = { packets = [1] }",
        "loss = { every = 100, first = 7 }",
        "loss = { windows = [{ from = \"5s\", until = \"6s\", share = \"50%\" }] }",
        "reorder = { share = \"1%\", by = 3, hold = \"1s\" }",
        "jitter = \"2ms\"",
        "delay = \"1s\"\njitter = { distribution = \"normal\", std_dev = \"2ms\", reorders = true }",
        "cells = [{ delay = \"10ms\", loss = \"0%\" }, { loss = \"1%\", rate = \"1gbit\" }, \
         { delay = \"5ms\" }]",
        "loss = \"0%\"\ndelay = \"0ms\"\njitter = \"0ms\"\ncorrupt = \"0%\"",
    ];
    let read: Vec<String> = forms
        .iter()
        .map(|form| format!("{form}\n  {:?}", cells_of(form)))
        .collect();
    insta::assert_snapshot!(read.join("\n"));
}

#[test]
fn what_is_set_while_traffic_runs_is_what_the_file_would_have_said() {
    let before = link_of("queue = \"1bdp\"\nseed = 7");
    let settings = [
        ("loss", "1%"),
        ("rate", "500mbit"),
        ("queue", "1bdp"),
        ("forward.delay", "20ms"),
        ("jitter", "{ distribution = \"normal\", std_dev = \"1ms\" }"),
        ("path_mtu", "1400"),
        ("policer", "{ rate = \"1gbit\", burst = \"1MB\" }"),
    ];
    let changed = before.changed(&pairs(&settings)).unwrap();
    let text = "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\nseed = 7\n\
                loss = \"1%\"\nrate = \"500mbit\"\nqueue = \"1bdp\"\ndelay = \"50ms\"\npath_mtu = 1400\n\
                forward.delay = \"20ms\"\njitter = { distribution = \"normal\", std_dev = \"1ms\" }\n\
                policer = { rate = \"1gbit\", burst = \"1MB\" }";
    let written = parse(text).unwrap().cases.remove(0).links.remove(0);
    assert_eq!(changed, written);
    assert_eq!(
        rate(&changed.directions[0].cells).queue.limit_bytes,
        Some(4_375_000)
    );
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let before = link_of("queue = \"1bdp\"\ndiscipline = \"codel\"\noverhead = \"38B\"");
    let changed = before.changed(&pairs(&[("rate", "500mbit")])).unwrap();
    let (old, new) = (
        rate(&before.directions[1].cells),
        rate(&changed.directions[1].cells),
    );
    assert_eq!(
        new.service,
        Service::Constant {
            rate_bps: 500_000_000
        }
    );
    assert_eq!((&new.queue, new.overhead_bytes), (&old.queue, 38));
    let back = changed.changed(&pairs(&[("rate", "1gbit")])).unwrap();
    assert_eq!(back, before);
}

#[test]
fn a_change_needs_one_place_and_says_so() {
    let link = link_of("");
    let two = {
        let text = "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\n\
                    cells = [{ delay = \"1ms\" }, { loss = \"1%\" }, { delay = \"2ms\" }]";
        parse(text).unwrap().cases.remove(0).links.remove(0)
    };
    let one = two.changed(&pairs(&[("loss", "2%")])).unwrap();
    assert_eq!(one.directions[0].cells[1], CellSpec::loss(0.02));
    let wrong = [
        two.changed(&pairs(&[("delay", "5ms")])),
        two.changed(&pairs(&[("corrupt", "5%")])),
        link.changed(&pairs(&[("loss", "5")])),
        link.changed(&pairs(&[("mtu", "1400")])),
        link.changed(&pairs(&[("rate", "1\nseed = 1")])),
        link.changed(&pairs(&[("Loss!", "1%")])),
        link.changed(&pairs(&[("loss", "1%"), ("loss", "2%")])),
        link.changed(&pairs(&[("loss", "{ packets = [3, 2] }")])),
        link.changed(&pairs(&[("loss", "{law}")])),
        link.changed(&pairs(&[("path_mtu", "14")])),
        link.changed(&pairs(&[("rate_trace", "verizon.up")])),
        Link {
            directions: [ChainSpec::default(), ChainSpec::default()],
            ..link
        }
        .changed(&pairs(&[("queue", "1bdp")])),
    ];
    let wrong: Vec<String> = wrong.into_iter().map(Result::unwrap_err).collect();
    insta::assert_snapshot!(wrong.join("\n"));
}

#[test]
fn changes_add_up_in_order_of_time() {
    let text = with(
        "[[change]]\nat = \"10s\"\nlink = \"wan\"\nloss = \"0%\"\n\
         [[change]]\nat = \"5s\"\nlink = \"wan\"\nloss = \"1%\"\nbackward.delay = \"20ms\"",
    );
    let case = parse(&text).unwrap().cases.remove(0);
    let at: Vec<u64> = case
        .changes
        .iter()
        .map(|change| change.at.as_secs())
        .collect();
    assert_eq!(at, [5, 10]);
    let [_, backward] = &case.changes[1].directions;
    assert_eq!(
        backward.cells[1..],
        [CellSpec::loss(0.0), CellSpec::delay(20_000_000)]
    );
    assert_eq!(case.links[0].directions[1].cells.len(), 2);
}

const DUMBBELL: &str = r#"
    name = "x"
    set.law = "reno"
    vary.rtt = ["5ms", "10ms"]
    vary.size = [1, 2]
    hosts.left = { count = 3, sysctl = { "net.ipv4.tcp_congestion_control" = "{law}" } }
    hosts.right.count = 3
    hosts.r1.router = true
    hosts.r2 = { router = true, sysctl = { "net.ipv4.ip_default_ttl" = 33 } }
    links.near = { between = ["left", "r1"], delay = "{n}ms" }
    links.wan = { between = ["r1", "r2"], rate = "500mbit", queue = "128KiB", delay = "{rtt}" }
    links.far = { between = ["r2", "right"] }
    change = [{ at = "1s", link = "near", loss = "{n}%" }, { at = "2s", link = "far-2", loss = "1%" }]
    [[program]]
    host = "right"
    run = "serve {n}"
    ready.port = 5201
    [[program]]
    host = "left"
    run = "send {right} {right.ipv6} {right-3} {n} {size} {{ok"
    result = "iperf3"
    [[program]]
    host = "r1"
    run = "look {left-2}"
"#;

#[test]
fn replicas_have_links_programs_and_partners_of_their_own() {
    let scenario = parse(DUMBBELL).unwrap();
    assert_eq!(scenario.hosts, ["left", "right", "r1", "r2"]);
    let case = &scenario.cases[1];
    assert_eq!(case.label(), "default.default.rtt=5ms.size=2");
    let hosts: Vec<&str> = case.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(
        hosts,
        [
            "left-1", "left-2", "left-3", "right-1", "right-2", "right-3", "r1", "r2"
        ]
    );
    assert_eq!(
        case.hosts[2].sysctls,
        pairs(&[("net.ipv4.tcp_congestion_control", "reno")])
    );
    assert_eq!(
        case.hosts[7].sysctls,
        pairs(&[("net.ipv4.ip_default_ttl", "33")])
    );
    let links: Vec<String> = case
        .links
        .iter()
        .map(|link| format!("{} {}", link.name, link.between.join("+")))
        .collect();
    assert_eq!(
        links,
        [
            "near-1 left-1+r1",
            "near-2 left-2+r1",
            "near-3 left-3+r1",
            "wan r1+r2",
            "far-1 r2+right-1",
            "far-2 r2+right-2",
            "far-3 r2+right-3"
        ]
    );
    assert_eq!(
        case.links[1].directions[0].cells,
        [CellSpec::delay(2_000_000)]
    );
    let commands: Vec<&str> = case
        .programs
        .iter()
        .map(|program| program.run.as_str())
        .collect();
    assert_eq!(
        commands,
        [
            "serve 1",
            "serve 2",
            "serve 3",
            "send {right-1} {right-1.ipv6} {right-3} 1 2 {{ok",
            "send {right-2} {right-2.ipv6} {right-3} 2 2 {{ok",
            "send {right-3} {right-3.ipv6} {right-3} 3 2 {{ok",
            "look {left-2}"
        ]
    );
    let changes: Vec<&str> = case
        .changes
        .iter()
        .map(|change| change.link.as_str())
        .collect();
    assert_eq!(changes, ["near-1", "near-2", "near-3", "far-2"]);
    assert_eq!(case.changes[2].directions[0].cells[0], CellSpec::loss(0.03));
}

#[test]
fn no_two_directions_draw_from_one_stream() {
    let case = parse(DUMBBELL).unwrap().cases.remove(0);
    let seeds: BTreeSet<u64> = case
        .links
        .iter()
        .flat_map(|link| {
            link.directions
                .each_ref()
                .map(|direction| direction.seed >> 8)
        })
        .collect();
    assert_eq!(seeds.len(), 2 * case.links.len());
}

#[test]
fn vary_is_a_cross_product_in_file_order_and_the_strongest_value() {
    let text = with(
        "[[path]]\nname = \"p\"\nset.window = \"path\"\n[[variant]]\nname = \"v\"\n\
         set.window = \"variant\"\n[[variant]]\nname = \"w\"\n[vary]\nwindow = [\"1\", \"2\"]\n\
         mtu = [1500, 9000]\n[[program]]\nhost = \"a\"\nrun = \"x {window} {mtu}\"",
    );
    let scenario = parse(&text).unwrap();
    let told: Vec<String> = scenario
        .cases
        .iter()
        .map(|case| format!("{}: {}", case.label(), case.programs[0].run))
        .collect();
    assert_eq!(
        told,
        [
            "p.v.window=1.mtu=1500: x 1 1500",
            "p.v.window=1.mtu=9000: x 1 9000",
            "p.v.window=2.mtu=1500: x 2 1500",
            "p.v.window=2.mtu=9000: x 2 9000",
            "p.w.window=1.mtu=1500: x 1 1500",
            "p.w.window=1.mtu=9000: x 1 9000",
            "p.w.window=2.mtu=1500: x 2 1500",
            "p.w.window=2.mtu=9000: x 2 9000",
        ]
    );
}

#[test]
fn without_vary_the_variants_value_is_stronger_than_the_paths() {
    let text = with(
        "[[path]]\nname = \"p\"\nset.window = \"path\"\n[[variant]]\nname = \"v\"\n\
         set.window = \"variant\"\n[[variant]]\nname = \"w\"\n[[program]]\nhost = \"a\"\n\
         run = \"x {window}\"",
    );
    let cases = parse(&text).unwrap().cases;
    assert_eq!(
        [&cases[0].programs[0].run, &cases[1].programs[0].run],
        ["x variant", "x path"]
    );
}

#[test]
fn values_are_not_looked_into_for_placeholders() {
    let text = with("[[program]]\nhost = \"a\"\nrun = \"x {window}\"")
        .replace("window = \"\"", "window = \"{b} {{\"");
    let run = &parse(&text).unwrap().cases[0].programs[0].run;
    let words = command::words(run, |_| None).unwrap();
    assert_eq!(words, ["x", "{b}", "{{"]);
}

#[test]
fn an_experiment_says_how_often_and_in_which_order() {
    let text = with(
        "[experiment]\nrepeats = 5\nretries = 2\norder = \"random\"\nseed = 3\nwarm_up = 1\n\
         observe = { flows = true }\nlateness_limit = \"1ms\"\nemulator_apart = true",
    );
    let expected = Experiment {
        sample_every: None,
        sample_every_line: None,
        repeats: 5,
        retries: 2,
        order: Order::Random { seed: 3 },
        warm_up_runs: 1,
        observe: Some(Observe { per_flow: true }),
        lateness_limit: LatenessLimit::Us(1_000),
        emulator_apart: true,
    };
    assert_eq!(parse(&text).unwrap().experiment, expected);
    let off = with("[experiment]\nlateness_limit = \"none\"");
    assert_eq!(
        parse(&off).unwrap().experiment.lateness_limit,
        LatenessLimit::None
    );
}

#[test]
fn the_lateness_that_is_allowed_follows_from_the_links_unless_the_file_says_it() {
    let links = |delay: &str| {
        let two = format!("[links.two]\nbetween = [\"a\", \"b\"]\ndelay = \"{delay}\"");
        parse(&with(&two)).unwrap().cases[0].links.clone()
    };
    let default = LatenessLimit::default();
    assert_eq!(
        default.us(&links("40ms\"\nbackward.delay = \"30ms")),
        Some(7_000)
    );
    assert_eq!(default.us(&links("1ms")), Some(1_000));
    assert_eq!(default.us(&[]), Some(1_000));
    let near = "[hosts.c]\n[links.near]\nbetween = [\"b\", \"c\"]\nemulated = false";
    let links_too = parse(&with(near)).unwrap().cases[0].links.clone();
    assert_eq!(default.us(&links_too), Some(10_000), "of wan alone");
    assert_eq!(LatenessLimit::Us(3).us(&links("1ms")), Some(3));
    assert_eq!(LatenessLimit::None.us(&links("1ms")), None);
}

#[test]
fn a_file_with_too_many_cases_is_refused_before_they_are_made() {
    let values: Vec<u32> = (0..400).collect();
    let vary = format!(
        "[vary]\nva = {values:?}\nvb = {values:?}\n[[program]]\nhost = \"a\"\nrun = \"x {{va}} {{vb}}\""
    );
    assert!(told(&with(&vary)).contains("160000 cases"));
    let values: Vec<u32> = (0..9_000).collect();
    let many = with(&format!("[vary]\nva = {values:?}\n[hosts.c]\ncount = 200"));
    assert!(told(&many).contains("more than 500000"));
}

#[test]
fn nothing_happens_on_a_link_that_the_kernel_carries() {
    let near = |more: &str| {
        with(&format!(
            "[hosts.c]\n[links.near]\nbetween = [\"b\", \"c\"]\nemulated = false\n{more}"
        ))
    };
    let links = &parse(&near("mtu = 1400")).unwrap().cases[0].links;
    let emulated = links.iter().map(|link| link.emulated);
    assert_eq!(emulated.collect::<Vec<_>>(), [true, false]);
    let refused = [
        "loss = \"1%\"",
        "exact = true",
        "backward.delay = \"1ms\"",
        "[[change]]\nat = \"1s\"\nlink = \"near\"\nloss = \"1%\"",
    ];
    for more in refused {
        let told = told(&near(more));
        assert!(
            told.contains("the kernel carries this link at once"),
            "{told}"
        );
    }
}

#[test]
fn long_lists_are_refused() {
    let changes = "[[change]]\nat = \"1s\"\nlink = \"wan\"\n".repeat(1_001);
    assert!(told(&with(&changes)).contains("change: there are 1001; at most 1000"));
    let cells = format!("forward.cells = [{}]", "{ loss = \"1%\" }, ".repeat(101));
    assert!(told(&with(&cells)).contains("has 101 tables; at most 100"));
}

#[test]
fn all_that_is_wrong_is_told_at_once_within_one_table_too() {
    let text = "name = \"x\"\n[experiment]\nrepeats = 0\norder = \"shuffled\"\nwarm_up = 200\n\
        [hosts.a]\nrouter = 1\nsysctl = { \"kernel.panic\" = 1, \"net.ipv4.tcp_sack\" = true }\n[hosts.b]\n\
        [links.wan]\nbetween = [\"a\", \"b\"]\nrate = \"fast\"\nqueue = \"1bpd\"\ndelay = 5\nloss = \"2\"\n\
        forward.jitter = \"x\"\npolicer = { rate = 1, burst = 2 }\nlos = 1\n\
        [links.lan]\nbetween = [\"a\", \"c\"]\nmtu = 1\n\
        [[program]]\nhost = \"a\"\nrun = \"x {sever}\"\ntime_limit = \"60\"\nresult = \"x\"\n\
        [[flow]]\nfrom = \"a\"\nto = \"bb\"\nsource = \"chunks\"\nchunk = 1\nlaw = 5\nmss = 1\nstreams = 0\n\
        [[change]]\nlink = \"wann\"\n[[change]]\nat = \"1s\"\nlink = \"wan\"\ndelay = 1\nloss = 2\n\
        [[path]]\nname = \"../p\"\nlinks.wam.loss = \"1%\"\n[vary]\nx = []\ny = [\"1\", \"1\"]\n";
    let refused = Scenario::parse("x.toml", text).unwrap_err();
    insta::assert_snapshot!(refused.to_string());
}

#[test]
fn one_mistake_is_told_once() {
    let once = [
        with("rate = \"fast\"\nqueue = \"1bdp\"\nmark_above = \"1bdp\""),
        with("policer = { rate = \"0\", burst = \"1MB\" }"),
        with(
            "[hosts.c]\n[links.two]\nbetween = [\"b\", \"d\"]\n[[program]]\nhost = \"a\"\nrun = \"x {c}\"",
        ),
        with("loss = \"{x}\"\n[vary]\nx = [\"1%\", \"2\", \"3%\"]"),
    ];
    for text in once {
        let refused = Scenario::parse("x.toml", &text).unwrap_err();
        assert_eq!(refused.problems.len(), 1, "{refused}");
    }
}

#[test]
fn a_daemon_may_have_tests() {
    let variant = |keys: &str| with(&format!("[[variant]]\nname = \"v\"\n{keys}"));
    let scenario = parse(&variant("policy = \"p\"\nmeasure = \"m\"")).unwrap();
    let flow_log = "/runs/v.1.flows.jsonl".into();
    let daemon = plan::Plan::of(&scenario, &scenario.cases[0], flow_log).daemon;
    let daemon = daemon.unwrap();
    assert_eq!(daemon.measure, Some("m".into()));
    assert_eq!(daemon.archive(), PathBuf::from("/runs/v.1.archive"));
    let alone = told(&variant("measure = \"m\""));
    assert!(alone.contains("give the policy of the daemon"), "{alone}");
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
        with("over-head = \"38B\""),
        with("loss = \"1%\"\ndelayed = \"1ms\""),
        with("overhead = 38"),
        with("[[variant]]\nname = \"v\"\npolcy = \"p.toml\""),
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
        with("queue = \"0pkts\""),
        with("mark_above = \"2pkts\""),
        with("rate_steps = [{ at = \"0s\", rate = \"1gbit\" }]"),
        with("repeat_after = \"1s\""),
        with("forward = { rate_steps = [{ at = \"1s\", rate = \"1gbit\" }] }"),
        with("forward = { rate_trace = \"up.trace\" }"),
        with("discipline = \"pie\""),
        with("discipline = { name = \"codel\", min = \"1kB\" }"),
        with("loss = { to_bad = \"1%\" }"),
        with("loss = { often = true }"),
        with("loss = { packets = [2, 1] }"),
        with("loss = { every = 3, first = 4 }"),
        with("loss = { windows = [{ from = \"2s\", until = \"1s\", share = \"1%\" }] }"),
        with("reorder = { share = \"1%\" }"),
        with("jitter = { distribution = \"cauchy\" }"),
        with("policer = { rate = \"50mbit\" }"),
        with("policer = { rate = \"50mbit\", burst = \"1MB\", exceed = \"shape\" }"),
        with("policer = { rate = \"50mbit\", burst = \"1MB\", exceed = \"dscp\" }"),
        with("policer = { rate = \"50mbit\", burst = \"1MB\", exceed = \"dscp\", dscp = 64 }"),
        with("policer = \"off\""),
        with("path_mtu = 67"),
        with("cells = [{ loss = \"1%\" }]"),
        with("forward.cells = [{ loss = \"1%\" }]"),
        with("exact = 1"),
        with("[hosts.c]\ncount = 0"),
        with("[hosts.a-host-of-many]\ncount = 10"),
        with("[hosts.a-fine-name-1]\n[hosts.a-fine-name]\ncount = 2"),
        with("[hosts.c]\nrouter = \"yes\""),
        with("[hosts.c]\nsysctl = { \"kernel.panic\" = 1 }"),
        with("[hosts.c]\nsysctl = { \"net.ipv4.tcp_sack\" = true }"),
        with("[hosts.c]\ncount = 2\n[hosts.d]\ncount = 3\n[links.two]\nbetween = [\"c\", \"d\"]"),
        with("[hosts.c]\n[[program]]\nhost = \"a\"\nrun = \"x {c}\""),
        with(
            "[hosts.c]\n[links.two]\nbetween = [\"b\", \"c\"]\n[[program]]\nhost = \"a\"\nrun = \"x {c}\"",
        ),
        with("[hosts.c]\ncount = 2\n[[program]]\nhost = \"a\"\nrun = \"x {c}\""),
        with(
            "[hosts.r]\nrouter = true\n[hosts.c]\ncount = 2\n[hosts.d]\ncount = 3\n\
             [links.two]\nbetween = [\"r\", \"c\"]\n[links.three]\nbetween = [\"r\", \"d\"]\n\
             [[program]]\nhost = \"d\"\nrun = \"x {c}\"",
        ),
        with("[[program]]\nhost = \"a\"\nrun = \"x {n}\""),
        with("[vary]\nloss = [\"1%\", \"2\"]\n[[path]]\nname = \"p\"\nlinks.wan.loss = \"{loss}\""),
        with("[vary]\nloss = [\"1\", \"2\"]\n[[path]]\nname = \"p\"\nlinks.wan.loss = \"{loss}0\""),
        with("[vary]\nlaw = [\"reno\", \"cubic\"]"),
        with("[vary]\nlaw = []"),
        with("[vary]\nlaw = \"reno\""),
        with("[vary]\nlaw = [\"reno\", \"reno\"]"),
        with("[vary]\na = [1]"),
        with("[vary]\nn = [1]"),
        with("[[path]]\nname = \"p\"\nlinks.wan.loss = \"{los}\""),
        with("[[path]]\nname = \"p\"\nlinks.wan.loss = \"{window\""),
        with("[experiment]\nrepeats = 0"),
        with("[experiment]\nretries = 101"),
        with("[experiment]\norder = \"shuffled\""),
        with("[experiment]\nseed = 1"),
        with("[experiment]\nobserve = 1"),
        with("[experiment]\nlateness_limit = \"1\""),
        with("[[change]]\nat = \"1s\"\nlink = \"lan\""),
        with("[[change]]\nlink = \"wan\""),
        with("[[change]]\nat = \"1s\"\nlink = \"wan\"\nmtu = 1400"),
        with("[[change]]\nat = \"1s\"\nlink = \"wan\"\nloss = \"1\""),
    ];
    let told: Vec<String> = wrong.iter().map(|text| told(text)).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn what_is_wrong_in_each_table_is_told_at_once() {
    let text = "name = \"X\"\ntypo = 1\n[vary]\nlaw = [\"reno\", \"cubic\"]\n[hosts.client]\nrouter = 1\n\
                [hosts.server]\n[links.wan]\nbetween = [\"client\", \"server\"]\nlos = 1\nqueu = 2\n\
                [[flow]]\nfrom = \"cleint\"\nto = \"server\"\nsource = \"bulk\"\n\
                [[program]]\nhost = \"server\"\nrun = \"x {nobody}\"\n[experiment]\nrepeats = 0\n";
    insta::assert_snapshot!(told(text), @r#"
    x.toml:1:8: name: found the text "X"; allowed: 1 to 20 of a-z, 0-9 and -, beginning with a letter
    x.toml:2:1: unknown key `typo` in a scenario file; allowed: name, experiment, hosts, set, links, path, variant, vary, change, program, flow
    x.toml:6:10: hosts.client.router: found 1; allowed: true or false
    x.toml:10:1: unknown key `los` in links.wan; did you mean `loss`?
    x.toml:11:1: unknown key `queu` in links.wan; did you mean `queue`?
    x.toml:13:8: flow[1].from: "cleint" is not a host; did you mean "client"?
    x.toml:18:7: program[1].run: {nobody} is neither a host nor named in [set]; the hosts are: client, server
    x.toml:20:11: experiment.repeats: found 0; allowed: a whole number from 1 to 10000
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
        which in 0usize..2, at in 0usize..10_000, removed in 0usize..40,
        inserted in "[\\[\\]{}=\"a-z0-9.%\n]{0,8}"
    ) {
        let good = [DEMO, DUMBBELL][which];
        let at = at % good.len();
        let from = (0..=at).rev().find(|i| good.is_char_boundary(*i)).unwrap();
        let to = (at + removed).min(good.len());
        let to = (to..=good.len()).find(|i| good.is_char_boundary(*i)).unwrap();
        let text = format!("{}{inserted}{}", &good[..from], &good[to..]);
        if let Err(refused) = parse(&text) {
            prop_assert!(!refused.problems.is_empty());
            for problem in refused.problems {
                prop_assert!(problem.line as usize <= text.lines().count() + 1);
            }
        }
    }

    #[test]
    fn no_setting_makes_a_change_panic(
        key in "(forward.|backward.)?(loss|rate|queue|delay|jitter|reorder|discipline|[a-z_.]{1,8})",
        value in "[0-9]{1,3}(%|ms|mbit|bdp|pkts|kB)|\\{.{0,20}\\}|.{0,20}"
    ) {
        let _ = link_of("loss = \"1%\"").changed(&[(key, value)]);
    }

    #[test]
    fn what_follows_the_rules_parses_and_leaves_nothing_open(
        both in effects(), forward in effects(), sides in (1u32..5, 1u32..5),
        varied in proptest::collection::vec("[0-9]{1,2}ms", 1..4), seed in 0u64..1000
    ) {
        let values: BTreeSet<String> = varied.into_iter().collect();
        let values = Vec::from_iter(values);
        let (left, right) = sides;
        let text = format!(
            "name = \"x\"\nvary.rtt = {values:?}\n[hosts]\nleft = {{ count = {left} }}\n\
             right = {{ count = {right}, router = true }}\nr = {{ router = true }}\n\
             sink = {{ sysctl = {{ \"net.ipv4.tcp_rmem\" = \"4096 {{rtt}} 1\" }} }}\n\
             [links.in]\nbetween = [\"left\", \"r\"]\nseed = {seed}\n{both}\nforward = {{ {} }}\n\
             [links.out]\nbetween = [\"r\", \"right\"]\ndelay = \"{{rtt}}\"\n\
             [links.end]\nbetween = [\"right-1\", \"sink\"]\n\
             [[program]]\nhost = \"left\"\nrun = \"x {{n}} {{right-1}} {{sink.ipv6}} {{rtt}}\"\n",
            forward.replace('\n', ", ").trim_end_matches(", ")
        );
        let scenario = parse(&text).map_err(|wrong| TestCaseError::fail(format!("{wrong}\n{text}")))?;
        prop_assert_eq!(scenario.cases.len(), values.len());
        for case in &scenario.cases {
            prop_assert_eq!(case.hosts.len() as u32, left + right + 2);
            prop_assert_eq!(case.links.len() as u32, left + right + 1);
            let plan = crate::plan::Plan::of(&scenario, case, PathBuf::new());
            for program in &case.programs {
                let words = plan.words(program).unwrap();
                prop_assert_eq!(words.len(), 5);
                let is_open = |word: &String| word.contains(['{', '}']);
                prop_assert!(!words.iter().any(is_open));
            }
            for direction in case.links.iter().flat_map(|link| &link.directions) {
                prop_assert_eq!(direction.check(), Ok(()));
            }
        }
    }
}

/// Effect keys, a line each, all as they may be.
fn effects() -> impl Strategy<Value = String> {
    let maybe = |form: &'static str| proptest::option::of(form.prop_map(|text: String| text));
    let queue =
        maybe("queue = \"[1-9][0-9]{3}kB\"|queue = \"[1-9]bdp\"|queue = \"[1-9][0-9]pkts\"");
    let discipline = maybe("discipline = \"(drop-tail|drop-head|codel|red)\"");
    let bottleneck = (maybe("rate = \"[1-9][0-9]?mbit\""), queue, discipline);
    let bottleneck = bottleneck.prop_map(|(rate, queue, discipline)| {
        let of_rate = rate.is_some();
        [
            rate,
            queue.filter(|_| of_rate),
            discipline.filter(|_| of_rate),
        ]
    });
    let loss = maybe(
        "loss = \"[0-9]\\.[0-9]%\"|loss = \\{ every = [1-9][0-9], first = [1-9] \\}|\
         loss = \\[\\{ packets = \\[3, 1[0-9]\\] \\}, \"1%\"\\]|\
         loss = \\{ to_bad = \"[0-9]%\", to_good = \"[1-9]0%\" \\}",
    );
    let others = (
        maybe("corrupt = \"[0-9]%\""),
        maybe("duplicate = \"[0-9]%\""),
        maybe("reorder = \\{ share = \"[0-9]%\", by = [1-9] \\}"),
        maybe("delay = \"[0-9]{1,3}(ms|us)\""),
        maybe(
            "jitter = \"[1-9]ms\"|jitter = \\{ distribution = \"exponential\", mean = \"[1-9]ms\" \\}",
        ),
        maybe("path_mtu = 1[3-4][0-9]{2}"),
    );
    (bottleneck, loss, others).prop_map(|(bottleneck, loss, others)| {
        let (corrupt, duplicate, reorder, delay, jitter, path_mtu) = others;
        let others = [loss, corrupt, duplicate, reorder, delay, jitter, path_mtu];
        let lines: Vec<String> = bottleneck.into_iter().chain(others).flatten().collect();
        lines.join("\n")
    })
}
