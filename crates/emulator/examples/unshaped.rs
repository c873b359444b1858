// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how many Gb/s one TCP flow gets through a link that does nothing. Needs root and iperf3.

use fatpath_emulator::{ChainSpec, unshaped};

fn main() -> Result<(), unshaped::UnshapedError> {
    let gbps = unshaped::tcp_gbps("fp-unshaped", &ChainSpec::default(), 5)?;
    println!("{gbps:.2} Gb/s");
    Ok(())
}
