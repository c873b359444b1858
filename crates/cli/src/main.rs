// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one binary, `fatpath`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fatpath_cli::main()
}
