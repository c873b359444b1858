// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of the path to a host that does not run fatpath, by packet trains that its kernel answers.

use crate::path::route;
use fatpath_measure::SingleEnded;
use fatpath_probe::answered::{Answered, Method, OpenError};
use fatpath_probe::{Patience, Record};
use fatpath_train::{
    Departure, Limits, Response, SingleEndedEstimate, SingleEndedSearch, Train, Unusable,
};
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The first answer comes a round trip after its train was sent. Between two, the bottleneck of a path that is measured well
/// needs 5 ms.
const PATIENCE: Patience = Patience {
    first: Duration::from_secs(3),
    next: Duration::from_millis(60),
    all: Duration::from_secs(10),
};

/// Packets that go before the trains: a host that answers none of them is left in peace.
const FIRST: Train = Train {
    rate_bps: 1_000_000,
    packets: 3,
    packet_bytes: 0,
};

/// The test to make.
pub struct WantedSingleEnded {
    /// The host.
    pub peer: IpAddr,
    /// What it is to answer.
    pub method: Method,
    /// No train is begun after that.
    pub duration: Duration,
    /// Of the trains. Packets are no longer than the path's MTU.
    pub limits: Limits,
}

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
pub enum SingleEndedError {
    /// No socket.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel has no way there.
    #[error("{0:#}")]
    Route(anyhow::Error),
    /// The host, or a firewall before it.
    #[error("{0} answered no packet; try --method {1}")]
    Silent(IpAddr, &'static str),
    /// Too many trains were unusable.
    #[error("too few trains to {0} were answered, as by a host that limits its answers{because}", because = .1.map_or(String::new(), |why| format!("; of the last, {why}")))]
    TooFew(IpAddr, Option<Unusable>),
    /// The kernel's.
    #[error("cannot send packets to {0}")]
    Io(IpAddr, #[source] io::Error),
}

/// Makes a test; `note` is told of each train by its number, from 1.
///
/// # Errors
/// See [`SingleEndedError`].
pub fn single_ended(
    wanted: &WantedSingleEnded,
    mut note: impl FnMut(u32, &Train, &Result<Response, Unusable>),
) -> Result<SingleEndedEstimate, SingleEndedError> {
    let mut answered = Answered::open(wanted.peer, wanted.method)?;
    let packet_bytes = first_answered(&mut answered, wanted)?;
    let mut search = SingleEndedSearch::new(Limits {
        packet_bytes,
        ..wanted.limits
    });
    let (mut why, begun) = (None, Instant::now());
    for number in 1.. {
        let next = search.next();
        let Some(train) = next.filter(|_| begun.elapsed() <= wanted.duration) else {
            break;
        };
        let (sent, heard) = exchange(&mut answered, wanted.peer, number, &train)?;
        let response = match heard.overrun {
            0 => Response::of(&train, &sent, &heard.arrivals),
            _ => Err(Unusable::Overrun),
        };
        note(number, &train, &response);
        why = response.err().or(why);
        search.answer(&train, response.ok());
    }
    search
        .estimate()
        .ok_or(SingleEndedError::TooFew(wanted.peer, why))
}

/// The length of packets that are answered, as wanted or as the path's MTU has it, which may be known only after the first.
fn first_answered(
    answered: &mut Answered,
    wanted: &WantedSingleEnded,
) -> Result<u32, SingleEndedError> {
    for number in [u32::MAX, u32::MAX - 1] {
        let route = route(wanted.peer).map_err(SingleEndedError::Route)?;
        let packet_bytes = wanted.limits.packet_bytes.min(route.mtu_bytes);
        let first = Train {
            packet_bytes,
            ..FIRST
        };
        let heard = match exchange(answered, wanted.peer, number, &first) {
            // A router's answer is the socket's error, and the route knows the MTU now.
            Err(SingleEndedError::Io(_, error)) if is_too_long(&error) => continue,
            exchanged => exchanged?.1,
        };
        if !heard.arrivals.is_empty() {
            return Ok(packet_bytes);
        }
    }
    let other = match wanted.method {
        Method::Icmp => SingleEnded::METHODS[1],
        Method::Tcp(_) => SingleEnded::METHODS[0],
    };
    Err(SingleEndedError::Silent(wanted.peer, other))
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
}

fn exchange(
    answered: &mut Answered,
    peer: IpAddr,
    number: u32,
    train: &Train,
) -> Result<(Vec<Departure>, Record), SingleEndedError> {
    let exchanged = answered.exchange(number, train, PATIENCE);
    exchanged.map_err(|error| SingleEndedError::Io(peer, error))
}
