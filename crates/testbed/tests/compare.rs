// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath lab compare`: one scenario on the real kernel and in the simulator.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees that only inside #[test]"
)]

mod bench;
mod sweep;

use bench::Bench;
use serde_json::Value;
use sweep::said;

/// The one case of the bench's scenario, run on both sides.
fn compared(bench: &Bench) -> Value {
    let command = "compare scenario.toml --out out --json --quiet";
    let output = bench.output(&command.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", said(&output));
    bench.json("compare.json")[0].clone()
}

/// A path that is clean and short, so that the machine hardly matters: goodput within a quarter.
#[test]
fn kernel_and_simulator_agree_on_a_clean_path() {
    let scenario = r#"
[hosts.a]
sysctl = { "net.ipv4.tcp_congestion_control" = "reno" }
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "20mbit"
delay = "10ms"
[[flow]]
from = "a"
to = "b"
source = "bulk"
stop = "5s"
[experiment]
lateness_limit = "none"
retries = 5
"#;
    let Some(bench) = Bench::of("agree", scenario) else {
        return;
    };
    let case = compared(&bench);
    let error = case["error_percent"].as_f64().unwrap();
    assert!(error.abs() <= 25.0, "{case}");
    bench.assert_nothing_remains("kernel_and_simulator_agree");
}

#[test]
fn a_scenario_runs_on_the_kernel_and_in_the_simulator() {
    let scenario = r#"
[hosts.a]
sysctl = { "net.ipv4.tcp_congestion_control" = "reno" }
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "10mbit"
delay = "5ms"
[[flow]]
from = "a"
to = "b"
source = "bulk"
stop = "2s"
[[flow]]
from = "a"
to = "b"
source = "udp"
rate = "1mbit"
start = "1s"
stop = "2s"
[experiment]
lateness_limit = "none"
retries = 5
"#;
    let Some(bench) = Bench::of("compare", scenario) else {
        return;
    };
    let case = compared(&bench);
    for side in ["kernel", "simulator"] {
        assert!(case[side]["median_mbps"].as_f64() > Some(0.0), "{case}");
    }
    assert!(bench.folder.join("out/throughput.svg").exists());
    bench.assert_nothing_remains("a_scenario_runs");
}

/// Segments that are lost on purpose, at the sender and on the link, and knobs that no kernel has: both sides send the same
/// segments again.
#[test]
fn a_flow_over_udp_is_the_same_connection_on_both_sides() {
    let scenario = r#"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "20mbit"
delay = "20ms"
forward.loss = { flow = 1, packets = [100] }
[[flow]]
from = "a"
to = "b"
transport = "udp"
source = "bulk"
bytes = "4MB"
start = "0.5s"
streams = 1
law = { law = "fp_aimd", a = 2, b = 0.5 }
initial_window = 4
initial_ssthresh = 30
detection = "fack"
dupthresh = 4
drop = [20, 25, 25]
delayed_acks = "on"
mss = 1000
receive_buffer = "200kB"
[experiment]
lateness_limit = "none"
retries = 5
"#;
    let Some(bench) = Bench::of("udp", scenario) else {
        return;
    };
    compared(&bench);
    for side in ["lab", "sim"] {
        let row = &bench.json(&format!("{side}/results.json"))[0];
        // Four were lost, and nothing else is sent again; one of them was lost again.
        assert_eq!(row["retransmits"], 4, "{row}");
        assert_eq!(row["timeouts"], 1, "{row}");
        assert!(row["goodput_mbps"].as_f64() > Some(1.0), "{row}");
    }
    bench.assert_nothing_remains("a_flow_over_udp");
}

/// Those of one connection; two have no common times.
#[test]
fn chunks_over_the_kernels_tcp_are_timed_on_both_sides() {
    let scenario = r#"
[hosts.a]
[hosts.b]
[links.wan]
between = ["a", "b"]
rate = "20mbit"
delay = "10ms"
exact = true
[[flow]]
from = "a"
to = "b"
source = "chunks"
start = "0.2s"
first_chunk = "10kB"
chunk = "200kB"
every = "0.5s"
count = 3
law = "cubic"
[[flow]]
from = "a"
to = "b"
source = "chunks"
start = "0.2s"
chunk = "10kB"
every = "0.5s"
count = 1
streams = 2
[experiment]
lateness_limit = "none"
emulator_apart = true
retries = 5
"#;
    let Some(bench) = Bench::of("chunks", scenario) else {
        return;
    };
    let case = compared(&bench);
    for side in ["kernel", "simulator"] {
        assert!(case[side]["transfer_p99_s"].as_f64() > Some(0.02), "{case}");
    }
    for side in ["lab", "sim"] {
        let row = &bench.json(&format!("{side}/results.json"))[0];
        let programs = row["programs"].as_array().unwrap();
        let counts = programs
            .iter()
            .map(|one| one["transfers"]["count"].as_u64());
        assert_eq!(counts.collect::<Vec<_>>(), [Some(3), None], "{row}");
        assert!(
            programs
                .iter()
                .all(|one| one["goodput_mbps"].as_f64() > Some(0.0))
        );
    }
    bench.assert_nothing_remains("chunks_over_the_kernels_tcp");
}
