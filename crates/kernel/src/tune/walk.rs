// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks over the live sockets of every network namespace.
//!
//! An iterator sees the namespace of the thread that opened it, so each namespace gets a thread that enters it.

use crate::abi;
use crate::handle::Kernel;
use crate::namespaces::{namespaces, netns_of, within};
use crate::pins::LINK_WALK;
use crate::pod::field_of;
use crate::{KernelError, law};
use libbpf_rs::{Iter, Link};
use std::fs::File;
use std::io::Read;
use std::sync::{Mutex, PoisonError};

/// A walk's orders stand in one map: a second walk at the same time would change them under way.
static WALKING: Mutex<()> = Mutex::new(());

/// How a walk treats the sockets that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They meet the live policy.
    Meet,
    /// They get their present share of a divided buffer.
    Share,
    /// They become rude or polite, as they now may.
    Rude,
    /// They lose our laws, and get what their programs asked for.
    Release,
}

/// What a walk over all namespaces did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Namespaces walked.
    pub namespaces: u32,
    /// Namespaces that were not: this process may not enter them, or has nothing to do there.
    pub passed_over: u32,
    /// TCP sockets seen.
    pub seen: u32,
    /// Sockets that were given something.
    pub changed: u32,
}

impl Kernel {
    /// Walks the sockets of all namespaces that can be found. A namespace that vanishes
    /// meanwhile is passed over; one that cannot be walked does not end the walk.
    pub(crate) fn walk(&self, mode: Mode) -> Result<Walked, KernelError> {
        walk_namespaces(|namespace| self.walk_in(namespace, mode))
    }

    /// The same in some namespaces, by their inodes.
    pub(crate) fn walk_some(
        &self,
        mode: Mode,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Walked, KernelError> {
        walk_namespaces(
            |namespace| match netns_of(namespace).is_some_and(&is_wanted) {
                true => self.walk_in(namespace, mode),
                false => Ok(None),
            },
        )
    }

    /// Releases the flows of another build, and has them meet this one's policy: a namespace at a time, so that each
    /// flow is without its tuning for a moment only. The release that failed first is no error of the walk.
    pub(crate) fn take_flows_over(
        &self,
        from: &Kernel,
    ) -> (Option<KernelError>, Result<Walked, KernelError>) {
        let mut unreleased = None;
        let walked = walk_namespaces(|namespace| {
            if from.can_release() {
                let released = from.walk_in(namespace, Mode::Release);
                unreleased = unreleased.take().or(released.err());
            }
            self.walk_in(namespace, Mode::Meet)
        });
        (unreleased, walked)
    }

    fn walk_in(&self, namespace: &File, mode: Mode) -> Result<Option<abi::fp_walk>, KernelError> {
        within(namespace, || self.walk_here(mode))?.transpose()
    }

    fn walk_here(&self, mode: Mode) -> Result<abi::fp_walk, KernelError> {
        let table = self.table("fp_walk")?;
        let mode = match mode {
            Mode::Meet => abi::FP_WALK_MEET,
            Mode::Share => abi::FP_WALK_SHARE,
            Mode::Rude => abi::FP_WALK_RUDE,
            Mode::Release => abi::FP_WALK_RELEASE,
        };
        let build: abi::fp_build = self.table("fp_build")?.get(0)?;
        let walk = abi::fp_walk {
            cgroup_id: build.cgroup_id,
            mode,
            law: field_of(&law::default_law()?),
            ..Default::default()
        };
        table.set(0, &walk)?;
        self.iterate(LINK_WALK)?;
        table.get(0)
    }

    /// Runs a pinned iterator to its end and answers what it wrote.
    pub(crate) fn iterate(&self, link: &str) -> Result<Vec<u8>, KernelError> {
        let link =
            Link::open(self.places.pin(link)).map_err(KernelError::bpf(format!("open {link}")))?;
        let mut written = Vec::new();
        Iter::new(&link)
            .map_err(KernelError::bpf("start an iterator"))?
            .read_to_end(&mut written)
            .map_err(KernelError::io("run an iterator"))?;
        Ok(written)
    }
}

fn walk_namespaces(
    mut walk: impl FnMut(&File) -> Result<Option<abi::fp_walk>, KernelError>,
) -> Result<Walked, KernelError> {
    let _alone = WALKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sum = Walked::default();
    let mut failed = None;
    for namespace in namespaces() {
        match walk(&namespace) {
            Ok(Some(walked)) => {
                sum.namespaces += 1;
                sum.seen += walked.seen;
                sum.changed += walked.changed;
            }
            Ok(None) => sum.passed_over += 1,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sum), Err)
}
