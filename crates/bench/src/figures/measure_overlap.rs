// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether two hosts ever load one resource at a time: eight hosts ask for leases at one of them, over a network that delays
//! messages; holders are killed at random. In simulated time, so the count is exact.

use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::Result;
use fatpath_measure::{Answer, Leases, Message};

const HOSTS: usize = 8;
const TESTS: u64 = 1_000;
const TICK_US: u64 = 10_000;
const TTL_US: u64 = 10_000_000;
/// Some tests would last longer than their lease.
const LONGEST_TEST_US: u64 = 12_000_000;
const LONGEST_DELAY_US: u64 = 500_000;
/// Of a test, in each tick.
const KILLED_ONE_IN: u64 = 2_000;

/// A count.
pub const FIGURE: Figure = Figure {
    name: "measure.overlap",
    what: "tests on one resource that overlapped: 8 hosts, 1,000 tests, holders killed",
    unit: "tests",
    better: Better::Lower,
    goal: Some(0.0),
    summary: Summary::Worst,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    run.check()?;
    let mut network = Network::new();
    while network.tests < TESTS {
        network.tick();
    }
    run.say(format!(
        "  {} tests, {} killed, {} ended by their lease",
        network.tests, network.killed, network.cut
    ));
    Ok(vec![network.overlaps as f64])
}

#[derive(Clone, Copy)]
enum State {
    Rests {
        until_us: u64,
    },
    Asks {
        sent_us: u64,
        arrives_us: u64,
    },
    IsAnswered {
        sent_us: u64,
        answer: Answer,
        arrives_us: u64,
    },
    Loads {
        token: u64,
        end_us: u64,
    },
    Releases {
        token: u64,
        arrives_us: u64,
    },
}

struct Network {
    now_us: u64,
    random: u64,
    leases: Leases,
    hosts: [State; HOSTS],
    tests: u64,
    killed: u64,
    cut: u64,
    overlaps: u64,
}

impl Network {
    fn new() -> Network {
        Network {
            now_us: 0,
            random: 1,
            leases: Leases::new(0),
            hosts: [State::Rests { until_us: 0 }; HOSTS],
            tests: 0,
            killed: 0,
            cut: 0,
            overlaps: 0,
        }
    }

    fn tick(&mut self) {
        self.now_us += TICK_US;
        for host in 0..HOSTS {
            self.hosts[host] = self.next(self.hosts[host]);
        }
    }

    fn next(&mut self, state: State) -> State {
        let now_us = self.now_us;
        match state {
            State::Rests { until_us } if until_us <= now_us => State::Asks {
                sent_us: now_us,
                arrives_us: self.delayed_us(),
            },
            State::Asks {
                sent_us,
                arrives_us,
            } if arrives_us <= now_us => {
                let ttl_us = TTL_US;
                let answer = self.ask(&Message::Acquire {
                    resource: "wan".into(),
                    ttl_us,
                });
                let arrives_us = self.delayed_us();
                State::IsAnswered {
                    sent_us,
                    answer,
                    arrives_us,
                }
            }
            State::IsAnswered {
                sent_us,
                answer,
                arrives_us,
            } if arrives_us <= now_us => self.answered(sent_us, answer),
            State::Loads { token, end_us } => self.load(token, end_us),
            State::Releases { token, arrives_us } if arrives_us <= now_us => {
                self.ask(&Message::Release {
                    resource: "wan".into(),
                    token,
                });
                self.rest()
            }
            other => other,
        }
    }

    /// A holder counts its time to live from when it asked: it cannot have been granted earlier.
    fn answered(&mut self, sent_us: u64, answer: Answer) -> State {
        let Answer::Granted { token, .. } = answer else {
            return self.rest();
        };
        let done_us = self.now_us + self.below(LONGEST_TEST_US);
        let lease_end_us = sent_us + TTL_US;
        self.tests += 1;
        self.cut += u64::from(done_us > lease_end_us);
        let loading = self
            .hosts
            .iter()
            .filter(|host| matches!(host, State::Loads { .. }));
        self.overlaps += loading.count() as u64;
        State::Loads {
            token,
            end_us: done_us.min(lease_end_us),
        }
    }

    fn load(&mut self, token: u64, end_us: u64) -> State {
        if self.below(KILLED_ONE_IN) == 0 {
            self.killed += 1;
            return self.rest();
        }
        match end_us <= self.now_us {
            true => State::Releases {
                token,
                arrives_us: self.delayed_us(),
            },
            false => State::Loads { token, end_us },
        }
    }

    fn ask(&mut self, message: &Message) -> Answer {
        self.leases.handle(message, self.now_us)
    }

    fn rest(&mut self) -> State {
        State::Rests {
            until_us: self.now_us + self.below(5_000_000),
        }
    }

    fn delayed_us(&mut self) -> u64 {
        self.now_us + self.below(LONGEST_DELAY_US)
    }

    /// Xorshift64 (Marsaglia 2003).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }
}
