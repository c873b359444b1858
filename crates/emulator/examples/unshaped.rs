// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the speed of one TCP flow over a link that does nothing: `unshaped [SECONDS [exact]]`.
//! With `exact`, every segment is a packet of its own. Needs root.

use std::env;
use std::error::Error;
use std::process;

use fatpath_emulator::{ChainSpec, unshaped};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let run_name = format!("fp-unshaped-{}", process::id());
    let mut topology = unshaped::two_hosts(&run_name, &ChainSpec::default());
    topology.links[0].exact = arguments.next().as_deref() == Some("exact");
    let (gbps, stats) = unshaped::tcp_gbps(&topology, seconds)?;
    println!("{gbps:.2} Gb/s");
    let lateness = stats.lateness;
    println!(
        "lateness, µs: median {:.1}, p99 {:.1}, most {:.1}",
        lateness.p50_us, lateness.p99_us, lateness.max_us
    );
    Ok(())
}
