// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed: a scenario's hosts and links live, in network namespaces of the real kernel, with its programs.
//!
//! [`cli::LabCommand`] brings a lab up and down, changes it, and shows what passed its links; [`run::Testbed`]
//! runs the cases of an experiment in it, a new lab for each run, with its programs unchanged.
//!
//! It refuses to leave anything behind: what is changed on the machine is noted before the change,
//! and a supervisor process puts it back even when everything else has been killed. It does not emulate
//! (that is `fatpath-emulator`), tune (that is the daemon), or keep results (that is `fatpath-experiment`).
//!
//! Start reading with [`lab::Lab`] (a lab that is up), then [`supervisor::supervise`] (who makes and removes it all).

mod child;
pub mod cli;
pub mod control;
mod error;
mod forwarding;
mod hosts;
pub mod iperf3;
pub mod journal;
pub mod lab;
pub mod lab_directory;
mod machine;
pub mod observe;
mod processors;
mod program;
mod records;
pub mod run;
mod session;
mod settings;
pub mod supervisor;
mod tail;
mod transported;
pub mod undo;
