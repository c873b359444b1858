// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints how many Gb/s one TCP flow gets through a link that does nothing. Needs root and iperf3.

use std::process::ExitCode;

use fatpath_emulator::{ChainSpec, unshaped};

fn main() -> ExitCode {
    match unshaped::tcp_gbps("fp-unshaped", &ChainSpec::default(), 5) {
        Ok(gbps) => println!("{gbps:.2} Gb/s"),
        Err(error) => {
            eprintln!("unshaped: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
