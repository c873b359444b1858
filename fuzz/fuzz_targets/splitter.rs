// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that cells may do to a packet, on arbitrary bytes as a frame: split at any segments,
//! mark, duplicate, corrupt, and tell its sender. Lengths and checksums stay consistent.
#![no_main]

use fatpath_emulator::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fuzzing::packet(bytes));
