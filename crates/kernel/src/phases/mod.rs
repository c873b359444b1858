// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases of programs: probes on the functions of communication libraries, and whose sockets are whose.
//!
//! Nothing of it is pinned: the probes go with the process that has the [`Phases`], and a few seconds later
//! ([`GATE`]) flows no longer follow what was last known. Start at [`Phases::begin`], then [`Phases::pass`] every two
//! seconds or so.

mod cost;
mod functions;
mod libraries;

use crate::build::Build;
use crate::handle::Kernel;
use crate::maps::Table;
use crate::object::program;
use crate::pod::value_of;
use crate::{KernelError, abi};
use fatpath_api::{PhaseLibrary, PhaseProcess};
use fatpath_clock::monotonic_ns;
use fatpath_policy::PhaseTable;
use functions::{Function, functions};
use libbpf_rs::{Link, MapCore, Object};
use libraries::{FileId, Library, Search};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use zerocopy::IntoBytes;

/// Flows follow their processes for so long after the latest pass.
pub const GATE: Duration = Duration::from_secs(10);

/// A collective operation that lasts longer is none any more: a thread may have left it without returning.
const LONGEST_PHASE: Duration = Duration::from_secs(600);

/// Files are of whoever runs a program: more are not probed.
const MOST_FILES: usize = 64;

/// A file that no pass has found for so many is gone: replaced, or its container ended.
const PASSES_UNSEEN: u32 = 30;

/// The probes, and what they are on.
pub struct Phases {
    object: Object,
    tables: Vec<PhaseTable>,
    search: Search,
    probed: BTreeMap<FileId, Probed>,
    probe_us: Option<f64>,
    /// On the ends of processes and on new sockets.
    _links: Vec<Link>,
}

struct Probed {
    library: PhaseLibrary,
    unseen: u32,
    _links: Vec<Link>,
}

impl std::fmt::Debug for Phases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phases")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl Phases {
    /// Loads the probes, follows the ends of processes, and notes whose the new sockets are.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn begin(kernel: &Kernel, tables: &[PhaseTable]) -> Result<Phases, KernelError> {
        let object = kernel.load_object("phases", Build::this().image("phases"))?;
        // Where it cannot be measured, phases are followed all the same.
        let probe_us = cost::probe_us(&object).ok().flatten();
        kernel.forget_processes()?;
        let mut links = Vec::new();
        for name in ["exited", "executed"] {
            let attached = program(&object, name)?.attach();
            links.push(attached.map_err(KernelError::bpf("follow the ends of processes"))?);
        }
        links.push(kernel.cgroup_link(&object, "own_socket")?);
        Ok(Phases {
            object,
            tables: tables.to_vec(),
            search: Search::default(),
            probed: BTreeMap::new(),
            probe_us,
            _links: links,
        })
    }

    /// What entry and return add to a call, in microseconds, as measured at the begin; `None`: it could not be.
    pub fn probe_us(&self) -> Option<f64> {
        self.probe_us
    }

    /// Probes libraries that have come, lets those go that have gone, and has flows follow for [`GATE`] from now on.
    /// Answers what is new to tell.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn pass(&mut self, kernel: &Kernel) -> Result<Vec<String>, KernelError> {
        let mut notes = Vec::new();
        let found = self.search.pass(&self.tables);
        for probed in self.probed.values_mut() {
            probed.unseen += 1;
        }
        for library in found {
            match self.probed.get_mut(&library.id) {
                Some(probed) => probed.unseen = 0,
                None => notes.extend(self.probe(&library)),
            }
        }
        self.probed
            .retain(|_, probed| probed.unseen < PASSES_UNSEEN);
        kernel.forget_ended_processes()?;
        kernel.open_phase_gate(GATE)?;
        Ok(notes)
    }

    /// The libraries that have probes.
    pub fn libraries(&self) -> Vec<PhaseLibrary> {
        let probed = self.probed.values().map(|probed| probed.library.clone());
        probed
            .filter(|library| library.functions > 0 || library.problem.is_some())
            .collect()
    }

    /// A file is tried once, whatever comes of it. Answers what is wrong with it.
    fn probe(&mut self, library: &Library) -> Option<String> {
        if self.probed.len() >= MOST_FILES {
            return None;
        }
        let tables: Vec<_> = self
            .tables
            .iter()
            .filter(|table| table.is_library(&library.path))
            .collect();
        let is_wanted = |name: &str| tables.iter().any(|table| table.is_collective(name));
        let mut of_file = PhaseLibrary {
            path: library.path.clone(),
            phases: tables.iter().map(|table| table.name.clone()).collect(),
            functions: 0,
            stepped: Vec::new(),
            problem: None,
        };
        let mut links = Vec::new();
        match functions(&library.file, is_wanted) {
            Ok(functions) if functions.is_empty() => {
                of_file.problem = Some("it has none of the functions".to_owned());
            }
            Ok(functions) => {
                for function in &functions {
                    match self.attach(library, function) {
                        Ok(both) => links.extend(both),
                        Err(error) => {
                            of_file.problem = Some(format!("{}: {error}", function.name));
                            continue;
                        }
                    }
                    of_file.functions += 1;
                    if function.is_stepped {
                        of_file.stepped.push(function.name.clone());
                    }
                }
            }
            Err(error) => of_file.problem = Some(error.to_string()),
        }
        let note = note_of(&of_file);
        let probed = Probed {
            library: of_file,
            unseen: 0,
            _links: links,
        };
        self.probed.insert(library.id, probed);
        note
    }

    /// The return first: an entry without it would begin a phase that nothing ends.
    fn attach(&self, library: &Library, function: &Function) -> Result<[Link; 2], KernelError> {
        let path = format!("/proc/self/fd/{}", library.file.as_fd().as_raw_fd());
        let attach = |name, is_return| {
            let offset = function.offset as usize;
            let attached = program(&self.object, name)?.attach_uprobe(is_return, -1, &path, offset);
            attached.map_err(KernelError::bpf(format!("probe {}", function.name)))
        };
        Ok([attach("returned", true)?, attach("entered", false)?])
    }
}

fn note_of(library: &PhaseLibrary) -> Option<String> {
    let path = &library.path;
    if let Some(problem) = &library.problem {
        return Some(format!(
            "{path}: {problem}: no phases are seen in what is missing"
        ));
    }
    if library.stepped.is_empty() {
        return None;
    }
    Some(format!(
        "{path}: a call of {} costs some 11 us more, not 2: the kernel does not emulate the first instruction",
        library.stepped.join(", ")
    ))
}

impl Kernel {
    fn open_phase_gate(&self, gate: Duration) -> Result<(), KernelError> {
        let gate = abi::fp_phase_gate {
            until_ns: monotonic_ns() + gate.as_nanos() as u64,
            limit_ns: LONGEST_PHASE.as_nanos() as u64,
        };
        self.table("fp_phase_gate")?.set(0, &gate)
    }

    /// No flow follows its process any more.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn close_phase_gate(&self) -> Result<(), KernelError> {
        self.table("fp_phase_gate")?
            .set(0, &abi::fp_phase_gate::default())
    }

    /// The processes that called a function of a phase, and have not ended.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn phase_processes(&self) -> Result<Vec<PhaseProcess>, KernelError> {
        let table = self.table("fp_processes")?;
        let now_ns = monotonic_ns();
        let processes = numbers(&table).into_iter().filter_map(|number| {
            let process: abi::fp_process = table.get(number).ok()?;
            (process.start_ns != 0).then(|| shown(number, &process, now_ns))
        });
        Ok(processes.collect())
    }

    fn forget_processes(&self) -> Result<(), KernelError> {
        let table = self.table("fp_processes")?;
        for number in numbers(&table) {
            let _ = table.handle().delete(number.as_bytes());
        }
        Ok(())
    }

    /// The kernel half sees them end; this is for those that ended unseen.
    fn forget_ended_processes(&self) -> Result<(), KernelError> {
        let table = self.table("fp_processes")?;
        for number in numbers(&table) {
            if !std::path::Path::new(&format!("/proc/{number}")).exists() {
                let _ = table.handle().delete(number.as_bytes());
            }
        }
        Ok(())
    }
}

fn numbers(table: &Table) -> Vec<u32> {
    let keys = table.handle().keys();
    keys.filter_map(|key| value_of(&key)).collect()
}

fn shown(number: u32, process: &abi::fp_process, now_ns: u64) -> PhaseProcess {
    let command = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    let is_collective = process.threads as i32 > 0;
    let now = match is_collective {
        true => now_ns.saturating_sub(process.entered_ns),
        false => 0,
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    let observed_s = seconds(now_ns.saturating_sub(process.since_ns));
    let per_s = |count: u64| {
        if observed_s > 0.0 {
            count as f64 / observed_s
        } else {
            0.0
        }
    };
    PhaseProcess {
        pid: number,
        command: command.trim().to_owned(),
        is_collective,
        observed_s,
        collective_share: (seconds(process.collective_ns + now) / observed_s.max(1e-9)).min(1.0),
        phases: process.phases,
        calls: process.calls,
        switches_per_s: per_s(2 * process.phases),
        calls_per_s: per_s(process.calls),
    }
}
