// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a tool prints comes from a peer in part: it gives finite values or an error, and no
//! more values than a path has hops.

#![no_main]

use fatpath_measure::{Tool, parse};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const PLAN: &str = "
[[test]]
name = 'ping'
tool = 'ping'
to = 'h'
every = '1min'
[[test]]
name = 'echo'
tool = 'echo'
to = 'h'
every = '1min'
[[test]]
name = 'iperf3'
tool = 'iperf3'
to = 'h'
every = '1min'
[[test]]
name = 'traceroute'
tool = 'traceroute'
to = 'h'
every = '1min'
[[test]]
name = 'path_mtu'
tool = 'path_mtu'
to = 'h'
every = '1min'
[[test]]
name = 'json'
tool = 'program'
every = '1min'
run = ['p']
values.x = { field = 'a.0.b', unit = 'ms' }
[[test]]
name = 'netlogger'
tool = 'program'
every = '1min'
run = ['p']
format = 'netlogger'
values.x = { field = 'e:x', unit = 'ms' }
";

/// Of traceroute: 255 hops, and how many there were and answered.
const MOST_VALUES: usize = 257;

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let plan = parse(PLAN).expect("it is right");
    plan.tests.into_iter().map(|test| test.tool).collect()
});

fuzz_target!(|output: &str| {
    for tool in TOOLS.iter() {
        let Ok(measured) = tool.read(output) else { continue };
        let values = measured.values;
        assert!(values.len() <= MOST_VALUES, "{} values", values.len());
        assert!(values.values().all(|(value, _)| value.is_finite()), "{values:?}");
    }
});
