// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that sends packet trains, hears when their packets arrived, and estimates the path's rate.

use crate::TRAIN_SECRET;
use crate::call::{TestError, Whom, asked_for, connected, granted, heard};
use crate::record::RECORDED_WITHIN;
use crate::socket::Pair;
use fatpath_measure::trains::{Heard, MOST_PACKETS, MOST_TRAINS, Untrue};
use fatpath_measure::{Ask, Reply, Trains};
use fatpath_peer::Peer;
use fatpath_probe::{Secret, send};
use fatpath_train::{Arrival, Estimate, Limits, Response, Search, Train, Unusable};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// How long after a train was sent its record is there, whatever the path lost of it.
const HEARD_WITHIN: Duration = RECORDED_WITHIN.saturating_add(Duration::from_secs(5));

/// The test to make.
pub struct WantedRate<'a> {
    /// Whom to ask.
    pub whom: &'a Whom<'a>,
    /// No train is begun after that.
    pub duration: Duration,
    /// How long the responder may wait until no other test loads its path.
    pub patience: Duration,
    /// Of the trains.
    pub limits: Limits,
}

/// What became of a train.
pub struct Step<'a> {
    /// From 1.
    pub number: u32,
    /// What was sent.
    pub train: &'a Train,
    /// What the path made of it, or why it says nothing.
    pub response: Result<Response, Unusable>,
}

/// Makes a test; `note` is told of each train.
///
/// # Errors
/// See [`TestError`].
pub fn rate(wanted: &WantedRate<'_>, mut note: impl FnMut(&Step)) -> Result<Estimate, TestError> {
    let mut sender = Sender::begin(wanted)?;
    let mut search = Search::new(announceable(wanted.limits));
    let mut why = None;
    let begun = Instant::now();
    while let Some(train) = search.next() {
        if sender.number == MOST_TRAINS || begun.elapsed() > wanted.duration {
            break;
        }
        let response = sender.send(&train)?;
        note(&Step {
            number: sender.number,
            train: &train,
            response,
        });
        why = response.err().or(why);
        search.answer(&train, response.ok());
    }
    let found = search.estimate().filter(|_| !search.gave_up());
    found.ok_or_else(|| TestError::NoRate(wanted.whom.host.to_owned(), why))
}

/// Without trains that no responder grants.
fn announceable(limits: Limits) -> Limits {
    let most_bytes = u64::from(MOST_PACKETS) * u64::from(limits.packet_bytes);
    Limits {
        train_bytes: limits.train_bytes.min(most_bytes),
        ..limits
    }
}

/// A test that has begun.
struct Sender<'a> {
    whom: &'a Whom<'a>,
    peer: Peer,
    socket: UdpSocket,
    secret: Secret,
    /// Of the next train, from 0.
    number: u32,
}

impl<'a> Sender<'a> {
    fn begin(wanted: &WantedRate<'a>) -> Result<Sender<'a>, TestError> {
        let whom = wanted.whom;
        let broken = |error| whom.broken(error);
        let mut peer = connected(whom)?;
        let connection = peer.socket().try_clone().map_err(broken)?;
        let pair = Pair::bind(&connection, 0).map_err(broken)?;
        let ask = Ask::Rate(Trains {
            port: pair.port().map_err(broken)?,
            duration_us: wanted.duration.as_micros() as u64,
            patience_us: wanted.patience.as_micros() as u64,
        });
        match asked_for(&mut peer, &ask, wanted.patience, whom)? {
            Reply::Granted {} => {}
            _ => return Err(whom.nonsense()),
        }
        pair.connect(whom.port).map_err(broken)?;
        Ok(Sender {
            secret: Secret::new(&peer.secret(TRAIN_SECRET).map_err(broken)?),
            socket: pair.into_waiting().map_err(broken)?,
            whom,
            peer,
            number: 0,
        })
    }

    /// What the path makes of a train. A record that cannot be true ends the test.
    fn send(&mut self, train: &Train) -> Result<Result<Response, Unusable>, TestError> {
        granted(&mut self.peer, train, self.whom)?;
        let begun = Instant::now();
        let sent = send(&self.socket, &self.secret, self.number, train);
        let sent = sent.map_err(|error| TestError::Send(train.packet_bytes, error))?;
        let arrived = self.arrived(train, begun)?;
        self.number += 1;
        let Some(arrived) = arrived else {
            return Ok(Err(Unusable::Overrun));
        };
        match Response::of(train, &sent, &arrived) {
            Err(Unusable::Contradictory) => Err(self.untrue(Untrue::Packets)),
            response => Ok(response),
        }
    }

    /// What arrived of a train; `None`: it is not known, because the responder's host was too slow.
    fn arrived(
        &mut self,
        train: &Train,
        begun: Instant,
    ) -> Result<Option<Vec<Arrival>>, TestError> {
        let end = Instant::now() + HEARD_WITHIN;
        let mut record = Heard::of(train);
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            let Reply::Arrived {
                runs,
                overrun,
                is_last,
            } = heard(&mut self.peer, rest, self.whom)?
            else {
                return Err(self.whom.nonsense());
            };
            record.take(&runs).map_err(|why| self.untrue(why))?;
            if is_last {
                let arrived = record.end(begun.elapsed());
                let arrived = arrived.map_err(|why| self.untrue(why))?;
                return Ok((overrun == 0).then_some(arrived));
            }
        }
    }

    fn untrue(&self, why: Untrue) -> TestError {
        TestError::Untrue(self.whom.host.to_owned(), why)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::{PREAMBLE_BYTES, PROTOCOL};
    use fatpath_measure::Run;
    use fatpath_peer::{Key, accept, add};
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    const WITHIN: Duration = Duration::from_secs(20);

    /// What comes of a test whose responder grants it and its first train, says these lines, and leaves.
    fn said_of_the_first_train(lines: &[String]) -> Result<Estimate, TestError> {
        let folder = tempfile::tempdir().unwrap();
        let make = |name| Key::make(&folder.path().join(name)).unwrap();
        let (key, liar, trust) = (make("key"), make("liar"), folder.path().join("hosts"));
        add(&trust, &liar.public(), "127.0.0.1").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut socket, _) = listener.accept().unwrap();
                socket.read_exact(&mut [0; PREAMBLE_BYTES]).unwrap();
                let mut peer = accept(socket, &liar, PROTOCOL, |_| true, WITHIN).unwrap();
                for _ in ["the test", "the train"] {
                    peer.hear_line(4096, WITHIN).unwrap();
                    peer.say_line(r#"{"granted":{}}"#, WITHIN).unwrap();
                }
                for line in lines {
                    peer.say_line(line, WITHIN).unwrap();
                }
            });
            let whom = Whom {
                host: "127.0.0.1",
                port,
                key: &key,
                trust: &trust,
                trust_option: "",
            };
            let wanted = WantedRate {
                whom: &whom,
                duration: Duration::from_secs(10),
                patience: Duration::ZERO,
                limits: Limits::default(),
            };
            rate(&wanted, |_| ())
        })
    }

    fn arrived(runs: Vec<Run>) -> String {
        let reply = Reply::Arrived {
            runs,
            overrun: 0,
            is_last: true,
        };
        serde_json::to_string(&reply).unwrap()
    }

    #[test]
    fn a_record_that_cannot_be_true_gives_no_estimate() {
        for (what, runs) in [
            ("more than was sent", vec![(0, 0, 1_000_000)]),
            ("packets that were not sent", vec![(0, 1_000_000, 9)]),
            ("packets twice", vec![(0, 0, 9), (1, 5, 3)]),
            ("no packets", vec![(0, 0, 0)]),
            ("seconds", vec![(0, 0, 1), (u32::MAX, 1, 9)]),
        ] {
            let ended = said_of_the_first_train(&[arrived(runs)]);
            assert!(
                matches!(ended, Err(TestError::Untrue(..))),
                "{what}: {ended:?}"
            );
        }
    }

    #[test]
    fn trains_of_short_packets_have_no_more_than_a_responder_grants() {
        for packet_bytes in [576, 1500, 9000] {
            let limits = announceable(Limits {
                packet_bytes,
                ..Limits::default()
            });
            let packets = limits.train_bytes / u64::from(packet_bytes);
            assert!(packets <= MOST_PACKETS.into(), "{packet_bytes}: {packets}");
        }
    }

    #[test]
    fn what_no_responder_says_gives_no_estimate() {
        let back = r#"{"arrived":{"runs":[[-5,0,9]],"overrun":0,"is_last":true}}"#;
        for line in [back, r#"{"granted":{}}"#, "", &"x".repeat(5000)] {
            let ended = said_of_the_first_train(&[line.to_owned()]);
            let is_seen = matches!(ended, Err(TestError::Nonsense(_) | TestError::Io(..)));
            assert!(is_seen, "{line}: {ended:?}");
        }
    }

    #[test]
    fn a_responder_that_leaves_gives_no_estimate() {
        let first = Reply::Arrived {
            runs: vec![(0, 0, 1)],
            overrun: 0,
            is_last: false,
        };
        let line = serde_json::to_string(&first).unwrap();
        for lines in [&[][..], &[line]] {
            let ended = said_of_the_first_train(lines);
            assert!(ended.unwrap_err().to_string().contains("127.0.0.1"));
        }
    }
}
