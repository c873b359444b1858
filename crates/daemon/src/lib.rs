// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tuning daemon, and the way to talk to it. Wiring only: the kernel's events go to
//! the flow log, the policy goes to the kernel half and to the host, and an HTTP+JSON
//! API on a Unix socket tells what is so.
//!
//! The daemon holds no tuning: what it loads is pinned, and goes on without it.
//! Start at [`run`].

mod access;
mod answer;
mod api;
mod archive;
mod by_hand;
mod capture;
mod cgroup_paths;
pub mod client;
mod collector;
mod engine;
mod flow_log;
mod host_changes;
mod instance;
mod instruments;
mod learning;
pub mod measure;
mod missing;
mod options;
mod paths;
mod phases;
mod policy_file;
mod rude;
mod run;
mod shares;
mod signals;
mod state;
mod tuning_events;
mod unload;
mod workers;

pub use archive::answers::{archived_event, history_answer};
pub use archive::archive_said;
pub use fatpath_page::token_file;
pub use instance::{Instance, Running, gate_socket_in};
pub use options::{DaemonOptions, InstanceOptions};
pub use paths::{defaults_of_host, most_measured_buffer_bytes};
pub use policy_file::read_policy_file;
pub use run::run;
pub use unload::{unload, unregister_orphans};
