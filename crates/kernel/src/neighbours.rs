// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of others where ours hear of new flows: sockops at a cgroup.

#![allow(unsafe_code)] // bpf_prog_query has no safe face in libbpf-rs

use crate::libbpf_log::quieten_libbpf;
use crate::{KernelError, Places};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use std::collections::HashSet;
use std::io;
use std::os::fd::AsRawFd;

/// The kernel attaches so many programs of a type to a cgroup at most (BPF_CGROUP_MAX_PROGS).
const MOST_PROGRAMS: usize = 64;

/// The maps of every fatpath begin with this (bpf/include/maps.h).
const OUR_MAPS: &str = "fp_";

/// A sockops program of somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The kernel's number.
    pub id: u32,
    /// Its name, of 15 characters at most.
    pub name: String,
    /// Whether it lets no other program onto its cgroup.
    pub is_exclusive: bool,
}

/// The sockops programs at the cgroup of these places that no fatpath has loaded.
///
/// # Errors
/// Without the right to ask (CAP_NET_ADMIN and CAP_SYS_ADMIN), or when the cgroup cannot be opened.
pub fn sockops_of_others(places: &Places) -> Result<Vec<Neighbour>, KernelError> {
    quieten_libbpf();
    let (ids, flags) = attached(places)?;
    let is_exclusive = flags & (sys::BPF_F_ALLOW_MULTI | sys::BPF_F_ALLOW_OVERRIDE) == 0;
    let ours = our_maps();
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    let programs = ProgInfoIter::with_query_opts(with_maps).filter(|it| ids.contains(&it.id));
    let others = programs.filter(|it| !it.map_ids.iter().any(|map| ours.contains(map)));
    let neighbour = |name: String, id| Neighbour {
        id,
        name,
        is_exclusive,
    };
    Ok(others
        .map(|it| neighbour(it.name.to_string_lossy().into_owned(), it.id))
        .collect())
}

fn our_maps() -> HashSet<u32> {
    MapInfoIter::default()
        .filter(|map| map.name.to_string_lossy().starts_with(OUR_MAPS))
        .map(|map| map.id)
        .collect()
}

/// The numbers of the programs, and the flags with which they are attached.
fn attached(places: &Places) -> Result<(Vec<u32>, u32), KernelError> {
    let step = format!("ask for the programs at {}", places.cgroup.display());
    let cgroup = std::fs::File::open(&places.cgroup).map_err(KernelError::io(step.clone()))?;
    let mut ids = vec![0; MOST_PROGRAMS];
    let (mut flags, mut count) = (0, MOST_PROGRAMS as u32);
    // SAFETY: the descriptor is open during the call, and `count` says how many numbers `ids` has room for.
    let answer = unsafe {
        sys::bpf_prog_query(
            cgroup.as_raw_fd(),
            sys::BPF_CGROUP_SOCK_OPS,
            0,
            &raw mut flags,
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    if answer < 0 {
        let error = io::Error::from_raw_os_error(-answer);
        return Err(match error.kind() {
            io::ErrorKind::PermissionDenied => KernelError::NotPermitted,
            _ => KernelError::io(step)(error),
        });
    }
    ids.truncate(count as usize);
    // Where nothing is attached there are no flags.
    Ok((ids, flags))
}
