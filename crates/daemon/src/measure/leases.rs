// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leases of the daemon's own tests. What one of them holds is also taken from the other programs of this host.

use fatpath_measure::{Answer, Leases, Message};
use fatpath_perform::HostLease;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// A lease that another test holds is asked for again so often.
const RETRY: Duration = Duration::from_millis(100);

/// The leases, and the clock by which they end.
pub(crate) struct LocalLeases {
    table: Mutex<Table>,
    begun: Instant,
}

struct Table {
    leases: Leases,
    /// Of each resource that a test of the daemon holds, with the token of that test.
    of_host: BTreeMap<String, (u64, HostLease)>,
}

/// Resources that are held until this is dropped, or until their time to live is over.
pub(crate) struct Held<'a> {
    leases: &'a LocalLeases,
    tokens: Vec<(String, u64)>,
}

impl LocalLeases {
    /// `first_token` is larger than what earlier daemons of this host gave: µs since 1970.
    pub(crate) fn new(first_token: u64) -> LocalLeases {
        LocalLeases {
            table: Mutex::new(Table {
                leases: Leases::new(first_token),
                of_host: BTreeMap::new(),
            }),
            begun: Instant::now(),
        }
    }

    /// Waits for all `resources`, which are sorted by name; `None` when `goes_on` says no before.
    ///
    /// # Errors
    /// The kernel gives this process no lease.
    pub(crate) fn acquire(
        &self,
        resources: &[String],
        ttl: Duration,
        goes_on: impl Fn() -> bool,
    ) -> io::Result<Option<Held<'_>>> {
        let mut held = Held {
            leases: self,
            tokens: Vec::new(),
        };
        for resource in resources {
            let token = loop {
                match self.take(resource, ttl)? {
                    Some(token) => break token,
                    None if !goes_on() => return Ok(None),
                    None => std::thread::sleep(RETRY),
                }
            };
            held.tokens.push((resource.clone(), token));
        }
        // What was acquired first has waited for the rest meanwhile.
        Ok(held.renew(ttl).then_some(held))
    }

    /// The lease's token; `None`: another test of this host has it.
    fn take(&self, resource: &str, ttl: Duration) -> io::Result<Option<u64>> {
        let acquire = Message::Acquire {
            resource: resource.to_owned(),
            ttl_us: ttl.as_micros() as u64,
        };
        let mut table = self.table.lock();
        let Answer::Granted { token, .. } = table.leases.handle(&acquire, self.now_us()) else {
            return Ok(None);
        };
        // The host's lease of a test that has outlived its own goes over to this one.
        let of_host = match table.of_host.remove(resource) {
            Some((_, of_host)) => Ok(Some(of_host)),
            None => HostLease::take(resource),
        };
        let resource = resource.to_owned();
        match of_host {
            Ok(Some(of_host)) => {
                table.of_host.insert(resource, (token, of_host));
                Ok(Some(token))
            }
            not_taken => {
                let release = Message::Release { resource, token };
                table.leases.handle(&release, self.now_us());
                not_taken.map(|_| None)
            }
        }
    }

    fn renew(&self, resource: &str, token: u64, ttl: Duration) -> bool {
        let renew = Message::Renew {
            resource: resource.to_owned(),
            token,
            ttl_us: ttl.as_micros() as u64,
        };
        let answer = self.table.lock().leases.handle(&renew, self.now_us());
        matches!(answer, Answer::Granted { .. })
    }

    fn release(&self, resource: String, token: u64) {
        let mut table = self.table.lock();
        if table
            .of_host
            .get(&resource)
            .is_some_and(|(of, _)| *of == token)
        {
            table.of_host.remove(&resource);
        }
        let release = Message::Release { resource, token };
        table.leases.handle(&release, self.now_us());
    }

    fn now_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }
}

impl Held<'_> {
    /// Whether all were still held.
    fn renew(&self, ttl: Duration) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.all(|(resource, token)| self.leases.renew(resource, *token, ttl))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for (resource, token) in self.tokens.drain(..) {
            self.leases.release(resource, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn threads_hold_a_resource_one_after_the_other() {
        let leases = LocalLeases::new(0);
        let (loading, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let ttl = Duration::from_secs(60);
        let sets = [["a", "b"], ["b", "c"], ["a", "c"]].map(names);
        std::thread::scope(|scope| {
            for set in &sets {
                scope.spawn(|| {
                    let _held = leases.acquire(set, ttl, || true).unwrap().unwrap();
                    // Any two of the sets have a resource in common.
                    assert_eq!(loading.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::sleep(Duration::from_millis(20));
                    loading.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(done.load(Ordering::SeqCst), 3);
    }

    fn names<const N: usize>(names: [&str; N]) -> [String; N] {
        names.map(|name| format!("{name}-{}", std::process::id()))
    }

    #[test]
    fn who_gives_up_holds_nothing() {
        let leases = LocalLeases::new(0);
        let ttl = Duration::from_secs(60);
        let names = names(["d", "e"]);
        let acquire = |resources: &[String]| leases.acquire(resources, ttl, || false).unwrap();
        let held = acquire(&names[1..]).unwrap();
        assert!(acquire(&names).is_none());
        assert!(acquire(&names[..1]).is_some(), "d is free");
        drop(held);
        assert!(acquire(&names).is_some());
    }

    #[test]
    fn other_programs_of_the_host_wait_too() {
        let leases = LocalLeases::new(0);
        let ttl = Duration::from_secs(60);
        let names = names(["f"]);
        let others = || HostLease::take(&names[0]).unwrap();
        let held = leases.acquire(&names, ttl, || false).unwrap().unwrap();
        assert!(others().is_none());
        drop(held);
        let of_other = others().unwrap();
        assert!(leases.acquire(&names, ttl, || false).unwrap().is_none());
        drop(of_other);
        assert!(leases.acquire(&names, ttl, || false).unwrap().is_some());
        assert!(others().is_some());
    }

    #[test]
    fn a_lease_that_ended_goes_over_and_is_given_back_by_the_last() {
        let leases = LocalLeases::new(0);
        let names = names(["g"]);
        let others = || HostLease::take(&names[0]).unwrap();
        let acquire = |ttl| leases.acquire(&names, ttl, || false).unwrap();
        // The clock has gone on before it can be renewed, or it ends soon after.
        drop(acquire(Duration::ZERO));
        assert!(others().is_some());
        let outlived = leases.take(&names[0], Duration::ZERO).unwrap().unwrap();
        let next = acquire(Duration::from_secs(60)).unwrap();
        leases.release(names[0].clone(), outlived);
        assert!(others().is_none(), "the next one has it");
        drop(next);
        assert!(others().is_some());
    }
}
