// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruments: loaded in addition to what tunes; what they sample, and what they counted.
//!
//! They are apart from the rest: where the kernel refuses them, flows are tuned all the same. Start at
//! [`Kernel::set_instruments`]; the samples themselves are read in `samples.rs`.

pub(crate) mod budget;
pub(crate) mod samples;

use crate::KernelError;
use crate::abi::{self, fp_instruments};
use crate::build::Build;
use crate::handle::Kernel;
use crate::hooks::SAMPLING;
use crate::object::program;
use crate::pins::{LINK_STATE_SET, LINK_WALK_MOVED, LINK_WALK_SAMPLES};
use crate::tune::flow::tick_us;
use fatpath_api::SampleCounts;
use fatpath_policy::{Instruments, SampledFlows};
use libbpf_rs::Object;
use libbpf_rs::query::{ProgInfoIter, ProgramInfo};
use std::ffi::OsString;
use std::time::Duration;

/// The programs of bpf/estats.bpf.c.
const PROGRAMS: [&str; 5] = [
    "sample_flow",
    "sample_received",
    "state_set",
    "walk_samples",
    "walk_moved",
];

impl Kernel {
    /// Whether the kernel took the instruments.
    pub fn has_instruments(&self) -> bool {
        self.places.pin(LINK_STATE_SET).exists()
    }

    /// Loads and attaches them unless they are. After a failure nothing of them is attached. What samples flows as they
    /// begin and go on waits for [`Kernel::set_instruments`].
    pub(crate) fn load_instruments(&self, build: &Build) -> Result<(), KernelError> {
        if self.has_instruments() {
            return Ok(());
        }
        let object = self.load_object("estats", build.image("estats"))?;
        self.attach_instruments(&object).inspect_err(|_| {
            let programs = SAMPLING.iter().map(|(name, _)| format!("prog_{name}"));
            let links = [LINK_WALK_SAMPLES, LINK_WALK_MOVED].map(str::to_owned);
            for pin in programs.chain(links) {
                let _ = std::fs::remove_file(self.places.pin(&pin));
            }
        })
    }

    fn attach_instruments(&self, object: &Object) -> Result<(), KernelError> {
        for (name, _) in SAMPLING {
            self.pin_program(&mut program(object, name)?)?;
        }
        for (name, pin) in [
            ("walk_samples", LINK_WALK_SAMPLES),
            ("walk_moved", LINK_WALK_MOVED),
            ("state_set", LINK_STATE_SET),
        ] {
            let link = program(object, name)?
                .attach()
                .map_err(KernelError::bpf(format!("attach {name}")))?;
            self.pin_link(link, pin)?;
        }
        Ok(())
    }

    /// Samples the flows that `instruments` names, as the live policy's rules stand now; call it after
    /// each [`Kernel::publish`]. A flow that is sampled learns it at its next round trip; one that is not,
    /// from Linux 6.12 on, at the next [`Kernel::walk_samples`].
    ///
    /// # Errors
    /// When the instruments are not loaded.
    pub fn set_instruments(&self, instruments: &Instruments) -> Result<(), KernelError> {
        let table = self.table("fp_instruments")?;
        let before: fp_instruments = table.get(0)?;
        let build: abi::fp_build = self.table("fp_build")?.get(0)?;
        let names = self.rule_names()?;
        // Of learned paths none: what is learned of a path needs its flows sampled before.
        let of_policy = names.iter().filter(|(id, _)| **id < abi::FP_MAX_RULE_IDS);
        let wanted = of_policy
            .filter(|(_, name)| instruments.rules.is_empty() || instruments.rules.contains(name));
        let mut config = fp_instruments {
            cgroup_id: build.cgroup_id,
            generation: before.generation.wrapping_add(1).max(1),
            ..orders_of(instruments)
        };
        for (id, _) in wanted {
            config.rules[*id as usize / 64] |= 1 << (id % 64);
        }
        let mut was_at_rest = self.lock_sampling();
        *was_at_rest = false;
        table.set(0, &config)?;
        match config.sampled {
            abi::FP_SAMPLED_NONE => Ok(()),
            // After `tune`: a flow has met its rule when its first sample is made.
            _ => self.attach_hooks(SAMPLING),
        }
    }

    /// Detaches what samples, which connections would pass at each of their events, once nothing is to be sampled and
    /// the last flow that was has ended, or has met the new configuration at a round trip. Two looks have to find that,
    /// of a caller that comes by now and then: a flow that began while the configuration changed is counted by the second.
    ///
    /// # Errors
    /// When the instruments are not loaded.
    pub fn rest_instruments(&self) -> Result<(), KernelError> {
        let mut was_at_rest = self.lock_sampling();
        let config: fp_instruments = self.table("fp_instruments")?.get(0)?;
        let sampled: u64 = self.table("fp_tracked")?.get(0)?;
        let is_at_rest = config.sampled == abi::FP_SAMPLED_NONE && sampled == 0;
        match std::mem::replace(&mut *was_at_rest, is_at_rest) && is_at_rest {
            true => self.detach_hooks(SAMPLING),
            false => Ok(()),
        }
    }

    /// What they counted.
    ///
    /// # Errors
    /// When they are not loaded.
    pub fn sample_counts(&self) -> Result<SampleCounts, KernelError> {
        let counts = self.table("fp_counts")?;
        let (interval_us, interval_configured_us) = self.sample_intervals_us()?;
        Ok(SampleCounts {
            samples_per_s_max: self.sample_budget()?,
            interval_us,
            interval_configured_us,
            events_unsampled: counts.sum(abi::FP_COUNT_EVENTS_UNSAMPLED)?,
            flows_sampled: self.table("fp_tracked")?.get(0)?,
            samples: counts.sum(abi::FP_COUNT_SAMPLES)?,
            samples_lost: counts.sum(abi::FP_COUNT_SAMPLES_LOST)?,
            flows_beyond_bounds: counts.sum(abi::FP_COUNT_UNSAMPLED)?,
            flows_without_storage: counts.sum(abi::FP_COUNT_UNSAMPLED_NO_STORAGE)?,
        })
    }
}

impl Kernel {
    /// How long the programs of the instruments ran, counted while kernel.bpf_stats_enabled is 1; those of
    /// other instances too. For benchmarks.
    pub fn instruments_ran(&self) -> Duration {
        let ours = PROGRAMS.map(OsString::from);
        ran(|info| ours.contains(&info.name))
    }

    /// The same of all BPF programs of the host.
    pub fn all_programs_ran(&self) -> Duration {
        ran(|_| true)
    }
}

fn ran(is_counted: impl Fn(&ProgramInfo) -> bool) -> Duration {
    let programs = ProgInfoIter::default().filter(is_counted);
    Duration::from_nanos(programs.map(|info| info.run_time_ns).sum())
}

fn orders_of(instruments: &Instruments) -> fp_instruments {
    fp_instruments {
        interval_ns: u64::from(instruments.interval_us) * 1000,
        interval_ticks: (u64::from(instruments.interval_us).div_ceil(tick_us()) as u32).max(1),
        sampled: match instruments.flows {
            SampledFlows::All => abi::FP_SAMPLED_ALL,
            SampledFlows::Rules => abi::FP_SAMPLED_RULES,
            SampledFlows::None => abi::FP_SAMPLED_NONE,
        },
        one_in: instruments.one_in,
        max_flows: instruments.max_flows,
        max_flows_per_prefix: instruments.max_flows_per_prefix,
        ..Default::default()
    }
}
