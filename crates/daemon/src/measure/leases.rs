// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leases of this host, for its own tests.

use fatpath_measure::{Answer, Leases, Message};
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// A lease that another test holds is asked for again so often.
const RETRY: Duration = Duration::from_millis(100);

/// The leases, and the clock by which they end.
pub(crate) struct LocalLeases {
    leases: Mutex<Leases>,
    begun: Instant,
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
            leases: Mutex::new(Leases::new(first_token)),
            begun: Instant::now(),
        }
    }

    /// Waits for all `resources`, which are sorted by name; `None` when `goes_on` says no before.
    pub(crate) fn acquire(
        &self,
        resources: &[String],
        ttl: Duration,
        goes_on: impl Fn() -> bool,
    ) -> Option<Held<'_>> {
        let mut held = Held {
            leases: self,
            tokens: Vec::new(),
        };
        for resource in resources {
            let token = loop {
                match self.handle(&Message::Acquire {
                    resource: resource.clone(),
                    ttl_us: ttl.as_micros() as u64,
                }) {
                    Answer::Granted { token, .. } => break token,
                    _ if !goes_on() => return None,
                    _ => std::thread::sleep(RETRY),
                }
            };
            held.tokens.push((resource.clone(), token));
        }
        // What was acquired first has waited for the rest meanwhile.
        held.renew(ttl).then_some(held)
    }

    fn handle(&self, message: &Message) -> Answer {
        let now_us = self.begun.elapsed().as_micros() as u64;
        self.leases.lock().handle(message, now_us)
    }
}

impl Held<'_> {
    /// Whether all were still held.
    fn renew(&self, ttl: Duration) -> bool {
        let renewed = self.tokens.iter().map(|(resource, token)| {
            self.leases.handle(&Message::Renew {
                resource: resource.clone(),
                token: *token,
                ttl_us: ttl.as_micros() as u64,
            })
        });
        renewed
            .into_iter()
            .all(|answer| matches!(answer, Answer::Granted { .. }))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for (resource, token) in self.tokens.drain(..) {
            self.leases.handle(&Message::Release { resource, token });
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
        let sets = [["a", "b"], ["b", "c"], ["a", "c"]].map(|set| set.map(str::to_owned));
        std::thread::scope(|scope| {
            for set in &sets {
                scope.spawn(|| {
                    let _held = leases.acquire(set, ttl, || true).unwrap();
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

    #[test]
    fn who_gives_up_holds_nothing() {
        let leases = LocalLeases::new(0);
        let ttl = Duration::from_secs(60);
        let names = ["a", "b"].map(str::to_owned);
        let held = leases.acquire(&names[1..], ttl, || true).unwrap();
        assert!(leases.acquire(&names, ttl, || false).is_none());
        assert!(
            leases.acquire(&names[..1], ttl, || false).is_some(),
            "a is free"
        );
        drop(held);
        assert!(leases.acquire(&names, ttl, || false).is_some());
    }
}
