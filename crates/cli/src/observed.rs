// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose flows a command shows: those of this host's daemon, of another instance, or of a lab.

use anyhow::Result;
use clap::Args;
use fatpath_daemon::{Instance, InstanceOptions};

/// The daemon that is asked.
#[derive(Args)]
pub struct Observed {
    /// Ask the daemon of this lab (`fatpath lab list`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["run_dir", "pin_dir"])]
    lab: Option<String>,
    #[command(flatten)]
    options: InstanceOptions,
}

impl Observed {
    /// The instance that is meant.
    pub fn instance(&self) -> Result<Instance> {
        let Some(lab) = &self.lab else {
            return Instance::new(&self.options, None);
        };
        let (run_dir, pin_dir) = fatpath_testbed::lab::daemon_of(lab)?;
        let options = InstanceOptions {
            run_dir,
            pin_dir: Some(pin_dir),
        };
        Instance::new(&options, None)
    }
}
