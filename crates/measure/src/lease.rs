// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may load a resource: leases with a time to live and a fencing token.
//!
//! A state machine without I/O: three messages, which the daemon handles for its own tests and which a protocol can
//! carry to another host. `now_us` is of a clock that never goes back. A holder must stop loading the resource when its
//! lease ends; then no two holders load it at once, and one that died blocks nobody for longer than its time to live.
//! A test that needs several resources acquires them in the order of their names, so that no two tests wait for each
//! other.

use std::collections::BTreeMap;

/// What a holder asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The resource for `ttl_us`.
    Acquire {
        /// Its name.
        resource: String,
        /// The time to live.
        ttl_us: u64,
    },
    /// The resource for `ttl_us` from now on.
    Renew {
        /// Its name.
        resource: String,
        /// Of the answer to `Acquire`.
        token: u64,
        /// The time to live.
        ttl_us: u64,
    },
    /// No longer.
    Release {
        /// Its name.
        resource: String,
        /// Of the answer to `Acquire`.
        token: u64,
    },
}

/// What it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It holds the resource.
    Granted {
        /// Larger than that of any lease before: who sees a larger one refuses this one.
        token: u64,
        /// The lease ends then.
        until_us: u64,
    },
    /// Another holder has it, until then at most.
    Busy {
        /// The other lease ends then, unless it is renewed.
        until_us: u64,
    },
    /// The lease was the asker's to the last.
    Released,
    /// The lease had ended: whoever asks must not load the resource.
    Lost,
}

/// Longer than any test runs: a token that a clock error would make eternal ends.
const MAX_TTL_US: u64 = 24 * 3_600_000_000;

/// The leases of one host.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    held: BTreeMap<String, Lease>,
    last_token: u64,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    token: u64,
    until_us: u64,
}

impl Leases {
    /// `first_token` is larger than any token that an earlier state machine of this host gave, such as µs since 1970.
    pub fn new(first_token: u64) -> Leases {
        Leases {
            last_token: first_token,
            ..Leases::default()
        }
    }

    /// Handles a message that arrived at `now_us`.
    pub fn handle(&mut self, message: &Message, now_us: u64) -> Answer {
        self.held.retain(|_, lease| lease.until_us > now_us);
        match message {
            Message::Acquire { resource, ttl_us } => self.acquire(resource, *ttl_us, now_us),
            Message::Renew {
                resource,
                token,
                ttl_us,
            } => match self.held(resource, *token) {
                Some(lease) => {
                    lease.until_us = end(*ttl_us, now_us);
                    lease.granted()
                }
                None => Answer::Lost,
            },
            Message::Release { resource, token } => match self.held(resource, *token) {
                Some(_) => {
                    self.held.remove(resource);
                    Answer::Released
                }
                None => Answer::Lost,
            },
        }
    }

    fn acquire(&mut self, resource: &str, ttl_us: u64, now_us: u64) -> Answer {
        if let Some(lease) = self.held.get(resource) {
            return Answer::Busy {
                until_us: lease.until_us,
            };
        }
        self.last_token += 1;
        let lease = Lease {
            token: self.last_token,
            until_us: end(ttl_us, now_us),
        };
        self.held.insert(resource.to_owned(), lease);
        lease.granted()
    }

    fn held(&mut self, resource: &str, token: u64) -> Option<&mut Lease> {
        let lease = self.held.get_mut(resource);
        lease.filter(|lease| lease.token == token)
    }
}

impl Lease {
    fn granted(self) -> Answer {
        Answer::Granted {
            token: self.token,
            until_us: self.until_us,
        }
    }
}

fn end(ttl_us: u64, now_us: u64) -> u64 {
    now_us.saturating_add(ttl_us.min(MAX_TTL_US))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Acquire {
            holder: usize,
            resource: usize,
            ttl_us: u64,
        },
        Renew {
            holder: usize,
            resource: usize,
            ttl_us: u64,
        },
        Release {
            holder: usize,
            resource: usize,
        },
        /// The holder forgets everything, without a word.
        Die {
            holder: usize,
        },
        Wait {
            us: u64,
        },
    }

    const HOLDERS: usize = 8;
    const RESOURCES: usize = 3;

    fn step() -> impl Strategy<Value = Step> {
        let (holder, resource, ttl_us) = (0..HOLDERS, 0..RESOURCES, 1_u64..1000);
        prop_oneof![
            (holder.clone(), resource.clone(), ttl_us.clone()).prop_map(
                |(holder, resource, ttl_us)| Step::Acquire {
                    holder,
                    resource,
                    ttl_us
                }
            ),
            (holder.clone(), resource.clone(), ttl_us).prop_map(|(holder, resource, ttl_us)| {
                Step::Renew {
                    holder,
                    resource,
                    ttl_us,
                }
            }),
            (holder.clone(), resource)
                .prop_map(|(holder, resource)| Step::Release { holder, resource }),
            holder.prop_map(|holder| Step::Die { holder }),
            (1_u64..500).prop_map(|us| Step::Wait { us }),
        ]
    }

    /// What each holder believes to hold: token and end.
    #[derive(Default)]
    struct World {
        leases: Leases,
        beliefs: BTreeMap<(usize, usize), (u64, u64)>,
        now_us: u64,
        largest_token: u64,
    }

    impl World {
        fn take(&mut self, step: &Step) {
            match *step {
                Step::Wait { us } => self.now_us += us,
                Step::Die { holder } => self.beliefs.retain(|(of, _), _| *of != holder),
                Step::Acquire {
                    holder,
                    resource,
                    ttl_us,
                } => {
                    let acquire = Message::Acquire {
                        resource: resource.to_string(),
                        ttl_us,
                    };
                    match self.leases.handle(&acquire, self.now_us) {
                        Answer::Granted { token, until_us } => {
                            assert!(token > self.largest_token, "tokens grow");
                            self.largest_token = token;
                            self.beliefs.insert((holder, resource), (token, until_us));
                        }
                        Answer::Busy { until_us } => {
                            assert!(until_us > self.now_us && until_us <= self.now_us + 1000)
                        }
                        other => panic!("{other:?}"),
                    }
                }
                Step::Renew {
                    holder,
                    resource,
                    ttl_us,
                } => {
                    let Some((token, _)) = self.beliefs.get(&(holder, resource)).copied() else {
                        return;
                    };
                    let renew = Message::Renew {
                        resource: resource.to_string(),
                        token,
                        ttl_us,
                    };
                    match self.leases.handle(&renew, self.now_us) {
                        Answer::Granted { until_us, .. } => {
                            self.beliefs.insert((holder, resource), (token, until_us));
                        }
                        _ => drop(self.beliefs.remove(&(holder, resource))),
                    }
                }
                Step::Release { holder, resource } => {
                    let Some((token, _)) = self.beliefs.remove(&(holder, resource)) else {
                        return;
                    };
                    self.leases.handle(
                        &Message::Release {
                            resource: resource.to_string(),
                            token,
                        },
                        self.now_us,
                    );
                }
            }
        }

        fn loading(&self, resource: usize) -> usize {
            let now_us = self.now_us;
            let holds = |((_, of), (_, until_us)): &(&(usize, usize), &(u64, u64))| {
                *of == resource && *until_us > now_us
            };
            self.beliefs.iter().filter(holds).count()
        }
    }

    proptest! {
        #[test]
        fn no_two_holders_load_a_resource(steps in prop::collection::vec(step(), 1..300)) {
            let mut world = World::default();
            for step in &steps {
                world.take(step);
                for resource in 0..RESOURCES {
                    prop_assert!(world.loading(resource) <= 1, "{step:?} at {}", world.now_us);
                }
            }
            // Whatever happened, and whoever died: after the longest time to live the resource is free.
            world.now_us += 1000;
            let acquire = Message::Acquire { resource: "0".into(), ttl_us: 1 };
            prop_assert!(matches!(world.leases.handle(&acquire, world.now_us), Answer::Granted { .. }), "not free");
        }
    }

    #[test]
    fn one_that_was_late_is_fenced_off() {
        let mut leases = Leases::new(100);
        let acquire = Message::Acquire {
            resource: "eth0".into(),
            ttl_us: 10,
        };
        assert_eq!(
            leases.handle(&acquire, 0),
            Answer::Granted {
                token: 101,
                until_us: 10
            }
        );
        assert_eq!(leases.handle(&acquire, 9), Answer::Busy { until_us: 10 });
        assert_eq!(
            leases.handle(&acquire, 10),
            Answer::Granted {
                token: 102,
                until_us: 20
            }
        );
        let late = Message::Renew {
            resource: "eth0".into(),
            token: 101,
            ttl_us: 10,
        };
        assert_eq!(leases.handle(&late, 11), Answer::Lost);
        let late = Message::Release {
            resource: "eth0".into(),
            token: 101,
        };
        assert_eq!(leases.handle(&late, 11), Answer::Lost);
        assert_eq!(leases.handle(&acquire, 11), Answer::Busy { until_us: 20 });
    }
}
