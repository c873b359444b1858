// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs ask of TCP: one transfer after the other. Knows no packets.

use fatpath_link::Random;

use crate::Source;

/// A program, or one user of many.
#[derive(Debug)]
pub(crate) enum Program {
    /// [`Source::Bulk`].
    Bulk { bytes: Option<u64>, again: bool },
    /// [`Source::Chunks`].
    Chunks {
        bytes: u64,
        /// Of the first one, until it has begun.
        first_bytes: Option<u64>,
        every_ns: u64,
        /// Not yet begun.
        left: u64,
    },
    /// A user of [`Source::Web`].
    User(Box<User>),
}

/// Someone who reads pages.
#[derive(Debug)]
pub(crate) struct User {
    random: Random,
    mean_object_bytes: f64,
    shape: f64,
    objects_per_page: u32,
    mean_think_ns: u64,
    /// Of the page, not yet asked for.
    objects_left: u32,
}

/// What follows a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another over the same connection.
    Write { at_ns: u64 },
    /// Another over a new connection.
    Connect { at_ns: u64 },
    /// None.
    End,
}

/// More than any simulation delivers: 100 years at 1 Tb/s are 2^62 bytes.
const WITHOUT_END: u64 = u64::MAX / 2;

impl Program {
    /// Of a source that is not [`Source::ConstantRate`]; `random` is this user's own.
    pub(crate) fn new(source: &Source, random: Random) -> Program {
        match *source {
            Source::Bulk { bytes, again } => Program::Bulk { bytes, again },
            Source::Chunks {
                chunk_bytes,
                first_chunk_bytes,
                every_ns,
                count,
            } => Program::Chunks {
                bytes: chunk_bytes,
                first_bytes: first_chunk_bytes,
                every_ns,
                left: count.unwrap_or(u64::MAX),
            },
            Source::Web {
                mean_object_bytes,
                shape,
                objects_per_page,
                mean_think_ns,
                ..
            } => Program::User(Box::new(User {
                random,
                mean_object_bytes,
                shape,
                objects_per_page,
                mean_think_ns,
                objects_left: objects_per_page,
            })),
            Source::ConstantRate { .. } => unreachable!("datagrams need no TCP"),
        }
    }

    /// How long after the start of its flow it begins: users are in their pauses then.
    pub(crate) fn first_pause_ns(&mut self) -> u64 {
        match self {
            Program::User(user) => user.think_ns(),
            Program::Bulk { .. } | Program::Chunks { .. } => 0,
        }
    }

    /// The receiver opens the connection, asks, and is content when all has arrived; else the sender
    /// opens it, and wants all to be acknowledged.
    pub(crate) fn is_asked_for(&self) -> bool {
        matches!(self, Program::User(_))
    }

    /// A transfer begins with the connection that carries it, not with its first byte.
    pub(crate) fn counts_handshake(&self) -> bool {
        !matches!(self, Program::Chunks { .. })
    }

    /// The size of the next transfer, which begins.
    pub(crate) fn next_bytes(&mut self) -> u64 {
        match self {
            Program::Bulk { bytes, .. } => bytes.unwrap_or(WITHOUT_END),
            Program::Chunks {
                bytes,
                first_bytes,
                left,
                ..
            } => {
                *left = left.saturating_sub(1);
                first_bytes.take().unwrap_or(*bytes)
            }
            Program::User(user) => user.next_bytes(),
        }
    }

    /// What follows the transfer that began at `began_ns` and is over now.
    pub(crate) fn after(&mut self, began_ns: u64, now_ns: u64) -> Next {
        match self {
            Program::Bulk { again: true, .. } => Next::Connect { at_ns: now_ns },
            Program::Bulk { again: false, .. } | Program::Chunks { left: 0, .. } => Next::End,
            Program::Chunks { every_ns, .. } => Next::Write {
                at_ns: now_ns.max(began_ns + *every_ns),
            },
            Program::User(user) => Next::Connect {
                at_ns: now_ns + user.pause_ns(),
            },
        }
    }
}

impl User {
    fn next_bytes(&mut self) -> u64 {
        self.objects_left -= 1;
        // Pareto from `least` on has the mean `least` × shape / (shape − 1).
        let least_bytes = self.mean_object_bytes * (self.shape - 1.0) / self.shape;
        let bytes = least_bytes * self.random.unit().powf(-1.0 / self.shape);
        (bytes.round() as u64).clamp(1, WITHOUT_END)
    }

    /// Before the next object: none within a page.
    fn pause_ns(&mut self) -> u64 {
        if self.objects_left > 0 {
            return 0;
        }
        self.objects_left = self.objects_per_page;
        self.think_ns()
    }

    fn think_ns(&mut self) -> u64 {
        (-self.random.unit().ln() * self.mean_think_ns as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(objects_per_page: u32) -> Program {
        let source = Source::Web {
            users: 1,
            mean_object_bytes: 12_000.0,
            shape: 2.5,
            objects_per_page,
            mean_think_ns: 1_000_000,
        };
        Program::new(&source, Random::stream(1, 1))
    }

    #[test]
    fn objects_have_their_mean() {
        let mut user = user(u32::MAX);
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| user.next_bytes()).sum();
        let mean = sum as f64 / f64::from(count);
        assert!((mean / 12_000.0 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_user_thinks_between_pages_only() {
        let mut user = user(3);
        let pauses: Vec<_> = (0..9)
            .map(|_| {
                user.next_bytes();
                user.after(0, 0) != Next::Connect { at_ns: 0 }
            })
            .collect();
        let page = [false, false, true];
        assert_eq!(pauses, [page, page, page].concat());
    }
}
