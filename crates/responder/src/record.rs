// SPDX-License-Identifier: MIT OR Apache-2.0
//! The responder's end of a test of rate: waits for each train that is announced and granted, and says what of it arrived.

use crate::TRAIN_SECRET;
use crate::socket::Pair;
use fatpath_measure::trains::{self, MOST_TRAINS};
use fatpath_measure::{MOST_LINE_BYTES, Reply, Trains};
use fatpath_peer::Peer;
use fatpath_probe::{Patience, Receiver, Secret};
use fatpath_train::Train;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// How long a peer has to say a line, and to take a line or the record of a train.
const SAID_WITHIN: Duration = Duration::from_secs(10);
/// How long a train takes at most, of which nothing is kept after that.
pub const RECORDED_WITHIN: Duration = Duration::from_secs(10);
/// The first packet comes a round trip after its train was granted. Between two, the bottleneck of a path that is measured
/// well needs 5 ms.
const PATIENCE: Patience = Patience {
    first: Duration::from_secs(3),
    next: Duration::from_millis(60),
    all: RECORDED_WITHIN,
};

/// What was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// Packets that arrived.
    pub packets: u64,
    /// Of all trains that were granted.
    pub bytes: u64,
}

/// Records trains until the peer ends the test or its time is over. `grant` says why a train cannot be, if it cannot.
///
/// # Errors
/// The kernel's, the connection's, or a line that is none.
pub fn record(
    peer: &mut Peer,
    asked: &Trains,
    recorded: &mut Recorded,
    grant: impl Fn(&Train) -> Result<(), String>,
) -> io::Result<()> {
    let end = Instant::now() + Duration::from_micros(asked.duration_us) + SAID_WITHIN;
    let mut receiver = receiver(peer, asked)?;
    say(peer, &Reply::Granted {})?;
    for number in 0..MOST_TRAINS {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            break;
        }
        let Some(train) = announced(peer, rest)? else {
            break;
        };
        if let Err(why) = grant(&train) {
            say(peer, &Reply::Refused { why: why.clone() })?;
            return Err(io::Error::other(why));
        }
        recorded.bytes += train.bytes();
        say(peer, &Reply::Granted {})?;
        let record = receiver.receive(number, &train, PATIENCE)?;
        let packets = record.arrivals.iter().map(|run| u64::from(run.packets));
        recorded.packets += packets.sum::<u64>();
        let said_by = Instant::now() + SAID_WITHIN;
        for reply in trains::replies(&record.arrivals, record.overrun) {
            say_by(peer, &reply, said_by)?;
        }
    }
    Ok(())
}

/// Of datagrams to this connection's port, which come from the peer's.
fn receiver(peer: &Peer, asked: &Trains) -> io::Result<Receiver> {
    let connection = peer.socket();
    let pair = Pair::bind(connection, connection.local_addr()?.port())?;
    pair.connect(asked.port)?;
    let secret = Secret::new(&peer.secret(TRAIN_SECRET)?);
    Receiver::new(pair.into_waiting()?, secret)
}

/// The train that comes next; `None`: the test is over.
fn announced(peer: &mut Peer, within: Duration) -> io::Result<Option<Train>> {
    let line = match peer.hear_line(MOST_LINE_BYTES, within) {
        Ok(line) => line,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let train = trains::read(&line);
    train
        .map(Some)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Says a line of the protocol.
///
/// # Errors
/// The connection's.
pub fn say(peer: &mut Peer, reply: &Reply) -> io::Result<()> {
    say_by(peer, reply, Instant::now() + SAID_WITHIN)
}

fn say_by(peer: &mut Peer, reply: &Reply, end: Instant) -> io::Result<()> {
    let rest = end.saturating_duration_since(Instant::now());
    peer.say_line(&serde_json::to_string(reply)?, rest)
}
