// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios as simulations.

mod classic;
mod models;
mod synchronised;

use std::path::Path;

use fatpath_cc::{Idle, Law};
use fatpath_scenario::Scenario;
use fatpath_sim::{Buffer, DelayedAcks, Detection, RudeOff, RudeRate, RudeSpec, Source};

use super::*;

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// The case of that label as a simulation.
fn mapped(scenario: &Scenario, label: &str) -> Result<Mapped, MapError> {
    let how = How {
        jobs: 1,
        seed: None,
    };
    let simulator = Simulator::of(scenario, how).unwrap();
    let mut cases = scenario.cases.iter();
    let case = cases.find(|case| case.label() == label).unwrap();
    simulator.mapped(case, &simulator.plan(case), 1)
}

fn load(file: &str) -> Scenario {
    crate::load(&experiments().join(file)).unwrap()
}

/// Hosts a and b on a link of 10 ms each way, a with these sysctls, and more.
fn text_of(sysctls: &str, more: &str) -> String {
    format!(
        "name = \"x\"\n[hosts.a]\nsysctl = {{ {sysctls} }}\n\
         [hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\nrate = \"1gbit\"\ndelay = \"10ms\"\n{more}"
    )
}

/// The one case of [`text_of`], with Reno as a's law.
fn of_text(sysctls: &str, more: &str) -> Mapped {
    let reno = "\"net.ipv4.tcp_congestion_control\" = \"reno\"";
    let text = text_of(&format!("{reno}, {sysctls}"), more);
    let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    mapped(&scenario, "default.default").unwrap()
}

const BULK: &str = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\nstop = \"10s\"\n";

#[test]
fn the_demo_is_tuned_as_its_policy_says() {
    let demo = load("demo.toml");
    let tuned = mapped(&demo, "small-buffers.tuned").unwrap();
    let case = &demo.cases[5];
    assert_eq!(tuned.spec.links[0].directions, case.links[0].directions);
    let flow = &tuned.spec.flows[0];
    assert_eq!((flow.from, flow.to, tuned.rtt_ns[0]), (0, 1, 100_000_000));
    assert_eq!(flow.lasts_ns, Some(20_000_000_000));
    // It ends with its flow, whose SYN may be late.
    assert_eq!(tuned.spec.end_ns, 147_100_000_000);
    let tcp = &flow.tcp;
    let law = Law::named("aimd").unwrap();
    assert_eq!(tcp.law, law.with_all(&[("a", 400.0), ("b", 0.05)]).unwrap());
    assert_eq!((tcp.mss_bytes, tcp.header_bytes), (1448, 52));
    assert_eq!((tcp.initial_window_pkts, tcp.cwnd_clamp_pkts), (64, 13_000));
    // The program's 64 KiB are overridden.
    assert_eq!(tcp.send_buffer, Buffer::Fixed(50_000_000));
    // 25 MB, doubled by the kernel, of which 170/256 is data at this MTU.
    assert_eq!(tcp.receive_buffer, Buffer::Fixed(33_203_125));
}

#[test]
fn a_flow_is_rude_by_its_rule_or_without_a_policy_by_its_key() {
    let share = load("rude/share.toml");
    let of = |variant| {
        let label = format!("default.{variant}.loss=0%");
        mapped(&share, &label).unwrap().spec.flows[0].tcp.clone()
    };
    assert_eq!(of("reno").rude, None);
    let rude = of("rude-share");
    assert_eq!(rude.rude.unwrap().rate, RudeRate::Share(917_066_666));
    assert_eq!(rude.law, Law::RENO);
    assert_eq!(of("rude").rude.unwrap().rate, RudeRate::Estimated);
    let beside = mapped(
        &load("rude/beside.toml"),
        "20ms.rude-unlimited.queue=0.2bdp",
    );
    let unlimited = &beside.unwrap().spec.flows[0].tcp;
    assert_eq!(unlimited.rude.unwrap().rate, RudeRate::Unlimited);
    let off = "rude = { rate = \"1mbit\", off = \"nicely\", at = \"3s\" }\n";
    let tcp = of_text("", &format!("{BULK}{off}")).spec.flows[0]
        .tcp
        .clone();
    let (at_ns, nicely) = (3_000_000_000, true);
    let expected = RudeSpec {
        rate: RudeRate::Share(965_333), // 1448 of 1500 bytes are data
        off: Some(RudeOff { at_ns, nicely }),
        converged_milli: 10,
    };
    assert_eq!(tcp.rude, Some(expected));
}

#[test]
fn a_law_that_is_not_simulated_fails_its_case_only() {
    let vegas = text_of("\"net.ipv4.tcp_congestion_control\" = \"vegas\"", BULK);
    let scenario = Scenario::parse("x.toml", &vegas).unwrap();
    let error = mapped(&scenario, "default.default").unwrap_err();
    assert!(matches!(error, MapError::Case { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("law vegas; it has fp_reno"), "{message}");
}

/// Two of a, which are a group, and one of b, which is another one; a's share is what the policy states.
#[test]
fn a_hosts_flows_of_a_rule_share_its_rate() {
    let file = format!("fatpath-shared-rate-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(file);
    let policy = "[[rule]]\nname = 'r'\ncongestion_control = 'fp_reno'\npacing_rate = '50mbit/n'\n";
    std::fs::write(&file, policy).unwrap();
    let variant = format!("[[variant]]\nname = \"shared\"\npolicy = {file:?}\n");
    let back = BULK.replace("from = \"a\"\nto = \"b\"", "from = \"b\"\nto = \"a\"");
    let text = text_of("", &format!("{BULK}{BULK}{back}{variant}"));
    let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mapped = mapped(&scenario, "default.shared");
    std::fs::remove_file(&file).unwrap();
    let spec = mapped.unwrap().spec;
    let groups = spec.flows.iter().map(|flow| {
        let rate = flow.shared_rate.unwrap();
        assert_eq!(
            (rate.bps, flow.tcp.pacing_rate_bps),
            (50_000_000, Some(50_000_000))
        );
        rate.group
    });
    assert_eq!(groups.collect::<Vec<_>>(), [0, 0, 1]);
    let outcome = fatpath_sim::run(&spec, |_| ControlFlow::Continue(())).unwrap();
    for (flow, stated_bps) in outcome.flows.iter().zip([25e6, 25e6, 50e6]) {
        let of_stated = flow.goodput_bps() / stated_bps;
        assert!((0.95..1.02).contains(&of_stated), "{of_stated}");
    }
}

/// A file of experiments/bbr: `bbr` is the kernel's version 1, in a policy and as a host's law.
#[test]
fn the_kernels_bbr_is_none_of_ours() {
    let losses = load("bbr/random-loss.toml");
    let of = |variant| mapped(&losses, &format!("default.{variant}.loss=0%"));
    let flow = &of("bbr").unwrap().spec.flows[0];
    assert_eq!(flow.tcp.law, Law::named("bbr").unwrap());
    let message = of("version-1").unwrap_err().to_string();
    assert!(message.contains("fp_bbr is version 3"), "{message}");
    let host = text_of("\"net.ipv4.tcp_congestion_control\" = \"bbr\"", BULK);
    let scenario = Scenario::parse("x.toml", &host).unwrap();
    let message = mapped(&scenario, "default.default")
        .unwrap_err()
        .to_string();
    assert!(message.contains("fp_bbr is version 3"), "{message}");
}

/// Who opens asks (1), and the other end agrees unless it is off (0): here both are hosts of one text.
#[test]
fn ecn_is_on_where_the_hosts_agree() {
    let of = |here: &str, there: &str| {
        let policy = "\"net.ipv4.tcp_congestion_control\" = \"reno\"";
        let own = format!("{policy}, \"net.ipv4.tcp_ecn\" = \"{here}\"");
        let peer = format!("[hosts.b]\nsysctl = {{ \"net.ipv4.tcp_ecn\" = \"{there}\" }}");
        let text = text_of(&own, BULK).replace("[hosts.b]", &peer);
        let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        mapped(&scenario, "default.default").unwrap().spec.flows[0]
            .tcp
            .ecn
    };
    assert!(of("1", "2") && of("1", "1"));
    assert!(!of("1", "0") && !of("2", "1") && !of("0", "1"));
}

#[test]
fn without_a_policy_a_flow_has_the_kernels_default_law() {
    let demo = load("demo.toml");
    let flow = &mapped(&demo, "clean.default").unwrap().spec.flows[0];
    assert_eq!(flow.tcp.law, Law::named("cubic").unwrap());
    assert!(flow.tcp.start.hystart);
}

/// Linux's own CUBIC, which a host has or a program asks for, and not the law of that name.
#[test]
fn the_kernels_cubic_starts_as_it_does() {
    let starts = |sysctls: &str, law: &str| {
        let mapped = of_text(sysctls, &format!("{BULK}{law}"));
        mapped.spec.flows[0].tcp.starts_as_kernel
    };
    let of_host = "\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"";
    assert!(starts(of_host, "law = \"cubic\""));
    assert!(!starts(of_host, "law = \"fp_cubic\""));
    assert!(!starts(of_host, ""), "Reno's host");
}

#[test]
fn segments_leave_together_where_a_link_passes_them_one_by_one() {
    let of_link = |exact: &str| {
        let text = text_of("", BULK).replace("rate =", &format!("exact = {exact}\nrate ="));
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let mapped = mapped(&scenario, "default.default").unwrap();
        mapped.spec.flows[0].tcp.offload
    };
    assert_eq!(["true", "false"].map(of_link), [true, false]);
}

#[test]
fn a_rules_bounds_on_bursts_reach_the_flow() {
    let folder = std::env::temp_dir().join(format!("fatpath-bursts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rule =
        "[[rule]]\nname = 'r'\ncongestion_control = 'fp_reno'\npacing = true\nmax_burst = 64\n";
    std::fs::write(folder.join("policy.toml"), rule).unwrap();
    let variant = "[[variant]]\nname = \"bounded\"\npolicy = \"policy.toml\"\n";
    let file = folder.join("x.toml");
    std::fs::write(&file, text_of("", &format!("{variant}{BULK}"))).unwrap();
    let scenario = crate::load(&file).unwrap();
    let tcp = mapped(&scenario, "default.bounded").unwrap().spec.flows[0]
        .tcp
        .clone();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((tcp.pacing, tcp.max_burst_pkts), (true, 64));
    let free = of_text("", BULK).spec.flows[0].tcp.clone();
    assert_eq!((free.pacing, free.max_burst_pkts), (false, 0));
}

/// Their programs are no iperf3, or use options of it that the simulator does not have.
const OF_THE_KERNEL: [&str; 13] = [
    "captured.toml",
    "mpi/npb.toml",
    "mpi/programs.toml",
    "mpi/steps.toml",
    "nicely.toml",
    "wan-kernel.toml",
    "lan-kernel.toml",
    "fairness.toml",
    "gap/settle-beside.toml",
    "gap/settle.toml",
    "gap/short.toml",
    "ntaf/dynamic.toml",
    "ntaf/schedule.toml",
];

#[test]
fn every_experiment_can_be_simulated_but_for_its_law() {
    let mut count = 0;
    let is_of_the_kernel = |file: &PathBuf| OF_THE_KERNEL.iter().any(|name| file.ends_with(name));
    for file in scenarios().filter(|file| !is_of_the_kernel(file)) {
        let scenario = crate::load(&file).unwrap();
        let how = How {
            jobs: 1,
            seed: None,
        };
        let simulator = Simulator::of(&scenario, how).unwrap();
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        simulator
            .check(&cases)
            .unwrap_or_else(|error| panic!("{file:?}: {error}"));
        for case in cases {
            if let Err(error) = simulator.mapped(case, &simulator.plan(case), 1) {
                let message = error.to_string();
                assert!(message.contains("does not have law"), "{file:?}: {message}");
            }
        }
        count += 1;
    }
    assert!(count > 10, "{count}");
}

fn scenarios() -> impl Iterator<Item = PathBuf> {
    let folders = fs_files(&experiments()).into_iter();
    let folders = folders.filter(|file| file.is_dir()).chain([experiments()]);
    let files = folders.flat_map(|folder| fs_files(&folder));
    files.filter(|file| is_scenario(file))
}

fn fs_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn is_scenario(file: &Path) -> bool {
    let name = file.to_string_lossy();
    let mut of_daemons = ["-policy.toml", "-measure.toml"].into_iter();
    name.ends_with(".toml") && !of_daemons.any(|end| name.ends_with(end))
}

#[test]
fn datagrams_that_do_not_fit_are_fragmented_and_over_ipv6_refused_with_their_line() {
    let of = |to: &str, payload: u32| {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\nmtu = 1400\ndelay = \"1ms\"\n\
             [[program]]\nhost = \"b\"\nrun = \"iperf3 -s\"\nready = {{ port = 5201 }}\n[[program]]\nhost = \"a\"\n\
             run = \"iperf3 -c {to} -u -b 1M -t 1 -l {payload}\"\n"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        mapped(&scenario, "default.default").map(|_| ())
    };
    assert_eq!(of("{b}", 1373), Ok(()));
    assert_eq!(of("{b.ipv6}", 1352), Ok(()));
    let message = of("{b.ipv6}", 1353).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "line 12: packets longer than the MTU of 1400 bytes from a to b over IPv6"
        ),
        "{message}"
    );
}

/// The lengths are those of the wire; one segment has all fragments of its datagram.
#[test]
fn a_flow_may_ask_for_segments_that_are_fragmented() {
    let of = |mss: u32, fragment: bool| {
        let more = format!("{BULK}transport = \"udp\"\nmss = {mss}\nfragment = {fragment}\n");
        of_text("\"net.ipv4.tcp_sack\" = \"1\"", &more)
            .spec
            .flows
            .remove(0)
    };
    let flow = of(5834, true);
    let length = flow.tcp.mss_bytes + flow.tcp.header_bytes;
    assert_eq!((length, flow.may_be_fragmented), (5888 + 28, true));
    let whole = of(5834, false);
    let length = whole.tcp.mss_bytes + whole.tcp.header_bytes;
    assert_eq!((length, whole.may_be_fragmented), (1500, false));
}

/// The sender of the transport keeps no data, so nothing but the receiver's window bounds what is on its way.
#[test]
fn a_flow_over_udp_fills_its_window_in_each_round_trip() {
    let more = format!(
        "{BULK}transport = \"udp\"\nlaw = \"reno\"\nreceive_buffer = \"500kB\"\nsend_buffer = \"1MB\"\n"
    );
    let mapped = of_text("\"net.ipv4.tcp_sack\" = \"1\"", &more);
    let outcome = fatpath_sim::run(&mapped.spec, |_| ControlFlow::Continue(())).unwrap();
    let mbps = outcome.flows[0].delivered_bytes as f64 * 8e-6 / 10.0;
    let window_mbps = 0.5 * 8.0 / 0.020;
    assert!(
        (0.95 * window_mbps..1.01 * window_mbps).contains(&mbps),
        "{mbps}"
    );
}

#[test]
fn what_the_simulator_refuses_is_told_with_the_line_of_the_file() {
    let of = |delay: &str, experiment: &str| {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[hosts.c]\n[links.ab]\nbetween = [\"a\", \"b\"]\ndelay = \"1ms\"\n\
             [links.ac]\nbetween = [\"a\", \"c\"]\ndelay = \"{delay}\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\nstop = \"9s\"\nstreams = 3\nlaw = \"fp_reno\"\n\
             [[flow]]\nfrom = \"a\"\nto = \"c\"\nsource = \"bulk\"\nstop = \"9s\"\nstreams = 2\nlaw = \"fp_reno\"\n{experiment}"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let (jobs, seed) = (1, None);
        let simulator = Simulator::of(&scenario, How { jobs, seed }).unwrap();
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        simulator
            .check(&cases)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(of("1ms", ""), Ok(()));
    let message = of("0ms", "").unwrap_err();
    assert!(
        message.starts_with("line 18: its round trip takes no time"),
        "{message}"
    );
    let message = of("1ms", "[experiment]\nsample_every = \"1us\"").unwrap_err();
    assert!(
        message.starts_with("line 26: time between samples"),
        "{message}"
    );
}

#[test]
fn a_run_has_the_same_number_however_many_there_are() {
    let numbers = |repeats: u32| {
        let text = format!(
            "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\ndelay = \"{{way}}\"\n[vary]\nway = [\"1ms\", \"2ms\", \"3ms\"]\n\
             [experiment]\nrepeats = {repeats}\norder = \"random\"\n"
        );
        let scenario = Scenario::parse("x.toml", &text).unwrap();
        let (jobs, seed) = (1, None);
        let simulator = Simulator::of(&scenario, How { jobs, seed }).unwrap();
        let cases: Vec<&Case> = scenario.cases.iter().collect();
        let all = crate::run::sequence(&cases, &scenario.experiment, |_, _| false);
        let rows = all
            .iter()
            .map(|planned| (planned.name(), simulator.row(planned).run));
        rows.collect::<HashMap<String, u32>>()
    };
    let (two, four) = (numbers(2), numbers(4));
    assert!(two.iter().all(|(name, number)| four[name] == *number));
    let mut all: Vec<u32> = four.into_values().collect();
    all.sort_unstable();
    assert_eq!(all, (1..=12).collect::<Vec<u32>>());
}

#[test]
fn pairs_of_hosts_go_by_their_own_ways() {
    let mapped = {
        let scenario = load("paths/mpi-2x8.toml");
        let mut scenario = scenario.clone();
        for host in &mut scenario.cases[0].hosts {
            let law = (
                "net.ipv4.tcp_congestion_control".to_owned(),
                "reno".to_owned(),
            );
            host.sysctls.push(law);
        }
        mapped(&scenario, "default.default").unwrap()
    };
    assert_eq!(mapped.spec.flows.len(), 8);
    for (index, flow) in mapped.spec.flows.iter().enumerate() {
        for (from, to) in [(flow.from, flow.to), (flow.to, flow.from)] {
            let (mut at, mut links) = (from, 0);
            while at != to {
                let (link, direction) = mapped.spec.routes[at][to].unwrap();
                assert_eq!(mapped.spec.links[link].between[direction], at);
                at = mapped.spec.links[link].between[1 - direction];
                links += 1;
            }
            assert_eq!(links, 3, "flow {index}");
        }
        assert_eq!(mapped.rtt_ns[index], 20_000_000);
    }
}

#[test]
fn repeats_lose_other_segments_and_a_seed_others_again() {
    let text = format!(
        "name = \"x\"\n[hosts.a]\n[hosts.b]\n[links.wan]\nbetween = [\"a\", \"b\"]\nrate = \"1gbit\"\n\
         loss = \"1%\"\n[[change]]\nat = \"1s\"\nlink = \"wan\"\nloss = \"2%\"\n{BULK}law = \"reno\"\n"
    );
    let scenario = Scenario::parse("x.toml", &text).unwrap();
    let case = &scenario.cases[0];
    let seeds = |repeat, seed| {
        let simulator = Simulator::of(&scenario, How { jobs: 1, seed }).unwrap();
        let mapped = simulator
            .mapped(case, &simulator.plan(case), repeat)
            .unwrap();
        let of_links = mapped.spec.links[0]
            .directions
            .each_ref()
            .map(|one| one.seed);
        let of_changes = mapped.spec.changes[0]
            .directions
            .each_ref()
            .map(|one| one.seed);
        assert_eq!(of_links, of_changes);
        (of_links, mapped.spec.seed)
    };
    // Those of the lab's first repeat are those of the scenario.
    assert_eq!(
        seeds(1, None).0,
        case.links[0].directions.each_ref().map(|one| one.seed)
    );
    let all = [
        seeds(1, None),
        seeds(2, None),
        seeds(1, Some(1)),
        seeds(1, Some(2)),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one), "{index}");
    }
}

#[test]
fn sysctls_reach_the_ends_of_the_flows() {
    let sysctls = "\"net.ipv4.tcp_recovery\" = 0, \
                   \"net.ipv4.tcp_wmem\" = \"4096 16384 65536\", \"net.ipv4.tcp_reordering\" = 9, \
                   \"net.ipv4.tcp_slow_start_after_idle\" = 0, \"net.ipv4.tcp_early_retrans\" = 0";
    let tcp = of_text(sysctls, BULK).spec.flows.remove(0).tcp;
    assert_eq!((tcp.detection, tcp.dupthresh), (Detection::Sack, 9));
    assert_eq!(tcp.send_buffer, Buffer::Auto(16_384, 65_536));
    assert_eq!(tcp.receive_buffer, Buffer::Auto(87_040, 4_177_920));
    assert_eq!((tcp.start.idle, tcp.tail_loss_probe), (Idle::Keep, false));
}

#[test]
fn a_flows_own_requests_come_before_the_hosts() {
    let more = format!(
        "{BULK}streams = 2\nlaw = {{ law = \"fp_aimd\", a = 6 }}\nmss = 1000\ndelayed_acks = \"off\"\n\
         initial_window = 3\nsend_buffer = \"1MiB\"\nreceive_buffer = \"2MiB\"\ndetection = \"sack\"\n\
         dupthresh = 19\nmax_ssthresh = 100\nidle = \"pace\"\ninitial_rate = \"100mbit\"\nrto_min = \"1s\""
    );
    let mapped = of_text("", &more);
    assert_eq!((mapped.spec.flows.len(), mapped.flows.len()), (2, 1));
    let tcp = &mapped.spec.flows[1].tcp;
    assert_eq!(tcp.law, Law::named("aimd").unwrap().with("a", 6.0).unwrap());
    assert_eq!((tcp.mss_bytes, tcp.header_bytes), (1000, 52));
    assert_eq!(tcp.delayed_acks, DelayedAcks::Off);
    assert_eq!((tcp.initial_window_pkts, tcp.dupthresh), (3, 19));
    assert_eq!(tcp.send_buffer, Buffer::Fixed(1 << 20));
    assert_eq!(tcp.receive_buffer, Buffer::Fixed(2 << 20));
    assert_eq!(tcp.start.max_ssthresh_pkts, 100);
    assert_eq!(tcp.start.initial_rate_bps, 100_000_000);
    assert_eq!(
        (tcp.start.idle, tcp.rto_min_ns),
        (Idle::Pace, 1_000_000_000)
    );
}

#[test]
fn a_programs_own_buffers_are_bounded_and_doubled() {
    let buffers = |window: &str| {
        let tcp = of_text("", &format!("{BULK}window = \"{window}\""))
            .spec
            .flows
            .remove(0)
            .tcp;
        (tcp.send_buffer, tcp.receive_buffer)
    };
    assert_eq!(
        buffers("64KiB"),
        (Buffer::Fixed(131_072), Buffer::Fixed(87_040))
    );
    assert_eq!(
        buffers("10MiB"),
        (Buffer::Fixed(425_984), Buffer::Fixed(282_880))
    );
}

#[test]
fn every_source_is_what_the_table_says() {
    let more = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nsource = \"web\"\nusers = 7\nmean_object = \"12kB\"\n\
                shape = 1.3\nobjects_per_page = 4\nthink = \"5s\"\nstart = \"1s\"\nstop = \"9s\"\n\
                [[flow]]\nfrom = \"b\"\nto = \"a\"\nsource = \"chunks\"\nchunk = \"10MB\"\nfirst_chunk = \"1kB\"\nevery = \"1s\"\n\
                count = 3\n[[flow]]\nfrom = \"a\"\nto = \"b\"\nsource = \"udp\"\nrate = \"1mbit\"\npayload = 200\n\
                stop = \"3s\"\n[[flow]]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\nbytes = \"1GB\"\n\
                law = \"reno\"\ntime_limit = \"60s\"";
    // What flows from b needs a law that is simulated too.
    let more = more.replace("count = 3", "count = 3\nlaw = \"reno\"");
    let spec = of_text("", &more).spec;
    let web = Source::Web {
        users: 7,
        mean_object_bytes: 12_000.0,
        shape: 1.3,
        objects_per_page: 4,
        mean_think_ns: 5_000_000_000,
    };
    assert_eq!(spec.flows[0].source, web);
    assert_eq!(spec.flows[0].start_ns, 1_000_000_000);
    assert_eq!(spec.flows[0].lasts_ns, Some(8_000_000_000));
    let chunks = Source::Chunks {
        chunk_bytes: 10_000_000,
        first_chunk_bytes: Some(1_000),
        every_ns: 1_000_000_000,
        count: Some(3),
    };
    assert_eq!(
        (&spec.flows[1].source, spec.flows[1].lasts_ns),
        (&chunks, None)
    );
    let (rate_bps, payload_bytes) = (1_000_000, 200);
    let udp = Source::ConstantRate {
        rate_bps,
        payload_bytes,
    };
    assert_eq!(
        (&spec.flows[2].source, spec.flows[2].lasts_ns),
        (&udp, Some(3_000_000_000))
    );
    // The chunks may take the five minutes of every program.
    assert_eq!(spec.end_ns, 300_020_000_000);
}
