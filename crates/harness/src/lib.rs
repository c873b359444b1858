// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the figures of `crates/bench` measure with: the host to themselves, a daemon of their own, networks, connections,
//! paths in the simulator, and counts of processor time and memory; and what tests of the archive share with its figures: a
//! PostgreSQL server, and writers that are killed.
//!
//! It knows no figure, and what it sets up it takes down again, also after Ctrl-C. Start at [`run::Run`] and
//! [`alone::Alone`].

pub mod alone;
pub mod bpf_stats;
pub mod captured;
pub mod cluster;
pub mod compared;
pub mod connect_loop;
pub mod cpu_time;
pub mod crowd;
pub mod emulated;
pub mod group;
pub mod instance;
pub mod killed_writer;
pub mod lab;
pub mod loaded;
pub mod memory;
pub mod one_processor;
pub mod peer;
pub mod printed;
pub mod run;
pub mod simulated;
pub mod sshd;
pub mod transfer;
pub mod tun_host;
pub mod wire;
