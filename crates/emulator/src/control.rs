// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to stop a running forwarder, and how to change its links, from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fatpath_link::{ChainSpec, SpecError};
use rustix::event::{EventfdFlags, eventfd};

use crate::clock::monotonic_ns;

/// Stops one forwarder and changes its links. Clones control the same one.
#[derive(Clone, Debug)]
pub struct Control(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Readable when there is something new.
    event: OwnedFd,
    stopped: AtomicBool,
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    /// Names of the links, once a forwarder has begun.
    links: Option<Vec<String>>,
    changes: Vec<Change>,
}

/// A change of one link that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkChange {
    /// The link's name.
    pub link: String,
    /// What its directions become.
    pub directions: [ChainSpec; 2],
    /// When, from now.
    pub after: Duration,
}

/// A change of one link that is yet to come.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) link: String,
    pub(crate) directions: [ChainSpec; 2],
    /// On the monotonic clock.
    pub(crate) at_ns: u64,
}

/// Why a link is not changed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// The network has no such link.
    #[error("no such link: `{link}`; the links are: {links}")]
    UnknownLink {
        /// The name given.
        link: String,
        /// The names there are.
        links: String,
    },
    /// A direction is out of range.
    #[error("link `{link}`: {error}")]
    Direction {
        /// The link.
        link: String,
        /// What is out of range.
        error: SpecError,
    },
}

impl Control {
    /// A control that has not been used. Fails only when the process is out of file descriptors.
    pub fn new() -> io::Result<Control> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Control(Arc::new(Shared {
            event: eventfd(0, flags)?,
            stopped: AtomicBool::new(false),
            requests: Mutex::default(),
        })))
    }

    /// Stops the forwarder, now or as soon as it begins, for good. Safe in a signal handler: a store
    /// and one `write`.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Changes `link` to `directions` in `after` from now: what passes it from that moment on meets
    /// the new cells, what is on the way stays so (see [`fatpath_link::Chain::adopt`]). Changes of
    /// one moment are made in the order of the calls. Before a forwarder has begun, a name is taken
    /// as it is, and the forwarder ends when there is no such link.
    pub fn change(
        &self,
        link: &str,
        directions: [ChainSpec; 2],
        after: Duration,
    ) -> Result<(), ChangeError> {
        let link = link.to_owned();
        self.change_all(vec![LinkChange {
            link,
            directions,
            after,
        }])
    }

    /// Makes several such changes, all counted from one moment; none of them, if one cannot be.
    pub fn change_all(&self, changes: Vec<LinkChange>) -> Result<(), ChangeError> {
        changes.iter().try_for_each(check_range)?;
        let now_ns = monotonic_ns();
        let mut requests = self.requests();
        if let Some(links) = &requests.links {
            let mut names = changes.iter().map(|change| &change.link);
            names.try_for_each(|link| check_name(link, links))?;
        }
        requests.changes.extend(changes.into_iter().map(|change| {
            let after_ns = u64::try_from(change.after.as_nanos()).unwrap_or(u64::MAX);
            Change {
                link: change.link,
                directions: change.directions,
                at_ns: now_ns.saturating_add(after_ns),
            }
        }));
        drop(requests);
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        // Fails only when the counter is full, and then the forwarder is awake.
        let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
    }

    /// A forwarder with these links begins: later changes must name one of them, and so must those
    /// asked for already.
    pub(crate) fn begin(&self, links: Vec<String>) -> Result<(), ChangeError> {
        let mut requests = self.requests();
        requests
            .changes
            .iter()
            .try_for_each(|change| check_name(&change.link, &links))?;
        requests.links = Some(links);
        Ok(())
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// The changes asked for since this was called last.
    pub(crate) fn take_changes(&self) -> Vec<Change> {
        let mut count = [0; 8];
        // Nothing to read is no error: there may be changes from before the forwarder.
        let _ = rustix::io::read(&self.0.event, &mut count);
        std::mem::take(&mut self.requests().changes)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        // No code panics while it holds the lock, and the requests are whole between statements.
        self.0
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

fn check_range(change: &LinkChange) -> Result<(), ChangeError> {
    let out_of_range = |error| ChangeError::Direction {
        link: change.link.clone(),
        error,
    };
    let mut specs = change.directions.iter();
    specs.try_for_each(|spec| spec.check().map_err(out_of_range))
}

fn check_name(link: &str, links: &[String]) -> Result<(), ChangeError> {
    match links.iter().any(|name| name == link) {
        true => Ok(()),
        false => Err(ChangeError::UnknownLink {
            link: link.into(),
            links: links.join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use fatpath_link::CellSpec;

    use super::*;

    fn change(control: &Control, link: &str, spec: ChainSpec) -> Result<(), ChangeError> {
        control.change(link, [spec.clone(), spec], Duration::ZERO)
    }

    #[test]
    fn a_change_is_checked_when_it_is_asked_for() {
        let control = Control::new().unwrap();
        let refused = change(&control, "wan", ChainSpec::of([CellSpec::loss(1.5)]));
        assert!(matches!(refused, Err(ChangeError::Direction { .. })));
        change(&control, "wan", ChainSpec::default()).unwrap();
        control.begin(vec!["wan".into()]).unwrap();
        let refused = change(&control, "lan", ChainSpec::default());
        assert!(matches!(refused, Err(ChangeError::UnknownLink { .. })));
        assert_eq!(control.take_changes().len(), 1);
        assert_eq!(control.take_changes().len(), 0);
    }

    #[test]
    fn several_changes_have_one_moment_or_are_not_made() {
        let control = Control::new().unwrap();
        control.begin(vec!["a".into(), "b".into()]).unwrap();
        let all = |changes: [(&str, ChainSpec); 2]| {
            let changes = changes.map(|(link, spec)| LinkChange {
                link: link.into(),
                directions: [spec.clone(), spec],
                after: Duration::ZERO,
            });
            control.change_all(changes.into())
        };
        let (good, bad) = (ChainSpec::default(), ChainSpec::of([CellSpec::loss(1.5)]));
        assert!(all([("a", good.clone()), ("c", good.clone())]).is_err());
        assert!(all([("a", good.clone()), ("b", bad)]).is_err());
        assert_eq!(control.take_changes().len(), 0);
        all([("a", good.clone()), ("b", good)]).unwrap();
        let made = control.take_changes();
        assert_eq!(made.len(), 2);
        assert_eq!(made[0].at_ns, made[1].at_ns);
    }

    #[test]
    fn a_forwarder_does_not_begin_with_a_change_of_no_link_of_its() {
        let control = Control::new().unwrap();
        change(&control, "lan", ChainSpec::default()).unwrap();
        assert!(control.begin(vec!["wan".into()]).is_err());
    }
}
