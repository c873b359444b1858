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
    for (name, of) in [
        ("lateness", stats.lateness),
        ("waiting, at most", stats.waiting),
    ] {
        println!(
            "{name}, µs: median {:.1}, p99 {:.1}, most {:.1}",
            of.p50_us, of.p99_us, of.max_us
        );
    }
    Ok(())
}
