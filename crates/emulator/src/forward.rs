// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forwarder: one thread that goes round the directions of all links, and lets each do what is
//! due. What that is, is theirs; what happens to packets is the cells'.

use std::io;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::thread;

use crate::buffer::Pool;
use crate::clock::Clock;
use crate::control::{Change, Control};
use crate::direction::{Direction, Tools};
use crate::error::ForwardError;
use crate::lateness::LatenessCounter;
use crate::link::Link;
use crate::observer::{ObservationOptions, Observer, direction_names};
use crate::poller::{Event, Poller};
use crate::priority::hasten;
use crate::stats::{LinkStats, Stats};
use crate::topology::{End, LinkSpec};
use crate::waiting::Rounds;

/// What a forwarder does in addition to forwarding.
#[derive(Debug, Default)]
pub struct ForwardOptions {
    /// Records what passes; `None`: nothing is recorded.
    pub observation: Option<ObservationOptions>,
}

impl ForwardError {
    pub(crate) fn device(link: &LinkSpec, end: &End, error: io::Error) -> ForwardError {
        ForwardError::Device {
            link: link.name.clone(),
            host: end.host.clone(),
            error,
        }
    }
}

/// Forwards packets over `links` until `control` stops it. The work is done on a thread of its own,
/// which goes before other programs: a starved forwarder is late, and its devices drop packets that
/// the link would have forwarded. Returns what it did, and how it ended; an error if it did not begin.
pub(crate) fn run(
    links: &[Link],
    options: ForwardOptions,
    control: &Control,
) -> Result<(Stats, Result<(), ForwardError>), ForwardError> {
    control.begin(links.iter().map(|link| link.spec.name.clone()).collect())?;
    let clock = Clock::start();
    // Begun here, so that its thread does not go before other programs too.
    let names = || links.iter().flat_map(|link| direction_names(&link.spec));
    let observer = options
        .observation
        .map(|options| Observer::begin(names().collect(), &clock, options))
        .transpose()
        .map_err(ForwardError::Observation)?;
    let forwarder = || {
        hasten().map_err(ForwardError::Wait)?;
        let mut round = Round::new(links, clock, observer);
        let ended = round.forward(control);
        Ok((round.finish(links), ended))
    };
    let done = thread::scope(|scope| scope.spawn(forwarder).join());
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// All directions: those of link i are number 2 i and 2 i + 1.
struct Round<'a> {
    directions: Vec<Direction<'a>>,
    /// When each has something to do.
    dues_ns: Vec<u64>,
    tools: Tools,
}

impl<'a> Round<'a> {
    fn new(links: &'a [Link], clock: Clock, observer: Option<Observer>) -> Round<'a> {
        let observed = observer.as_ref().map(Observer::header);
        let ends = links.iter().flat_map(|link| [(link, 0), (link, 1)]);
        let directions: Vec<_> = ends
            .enumerate()
            .map(|(index, (link, from))| Direction::new(link, from, index, observed))
            .collect();
        Round {
            dues_ns: directions.iter().map(Direction::due_ns).collect(),
            directions,
            tools: Tools {
                clock,
                pool: Pool::default(),
                lateness: LatenessCounter::new(),
                waiting: LatenessCounter::new(),
                rounds: Rounds::default(),
                observer,
            },
        }
    }

    /// Goes round until `control` stops it.
    fn forward(&mut self, control: &Control) -> Result<(), ForwardError> {
        let devices = self.directions.iter().map(|of| of.source().as_fd());
        let mut poller = Poller::new(devices, control.as_fd()).map_err(ForwardError::Wait)?;
        let mut events = vec![];
        self.take_changes(control.take_changes());
        while !control.is_stopped() {
            self.wait(&mut poller, &mut events)?;
            for event in &events {
                match event {
                    Event::Packets(index) => self.receive(*index)?,
                    Event::Requests => self.take_changes(control.take_changes()),
                }
            }
            self.send();
        }
        Ok(())
    }

    /// Waits until there is something to do.
    fn wait(&mut self, poller: &mut Poller, events: &mut Vec<Event>) -> Result<(), ForwardError> {
        let clock = self.tools.clock;
        let called_ns = clock.now_ns();
        let waited = poller.wait(events, self.due_ns(), &clock);
        self.tools.rounds.begin(called_ns, clock.now_ns());
        waited.map_err(ForwardError::Wait)
    }

    fn due_ns(&self) -> u64 {
        self.dues_ns.iter().copied().min().unwrap_or(u64::MAX)
    }

    fn receive(&mut self, index: usize) -> Result<(), ForwardError> {
        self.directions[index].receive(&mut self.tools)?;
        self.dues_ns[index] = self.directions[index].due_ns();
        Ok(())
    }

    /// Lets each direction do what is due.
    fn send(&mut self) {
        let now_ns = self.tools.clock.now_ns();
        for (direction, due_ns) in self.directions.iter_mut().zip(&mut self.dues_ns) {
            if *due_ns <= now_ns {
                direction.send(&mut self.tools);
                *due_ns = direction.due_ns();
            }
        }
    }

    fn take_changes(&mut self, changes: Vec<Change>) {
        for change in changes {
            let at_ns = self.tools.clock.at_monotonic_ns(change.at_ns);
            let named = |direction: &Direction| direction.link().spec.name == change.link;
            let first = self.directions.iter().position(named);
            let first = first.expect("`Control` checked the name");
            for (index, spec) in (first..).zip(change.directions) {
                self.directions[index].change_at(at_ns, spec);
                self.dues_ns[index] = self.directions[index].due_ns();
            }
        }
    }

    fn finish(mut self, links: &[Link]) -> Stats {
        for direction in &mut self.directions {
            direction.finish(&mut self.tools);
        }
        let pairs = links.iter().zip(self.directions.chunks_exact(2));
        let link_stats = |(link, pair): (&Link, &[Direction])| LinkStats {
            name: link.spec.name.clone(),
            directions: [pair[0].stats(), pair[1].stats()],
        };
        Stats {
            links: pairs.map(link_stats).collect(),
            lateness: self.tools.lateness.summary(),
            waiting: self.tools.waiting.summary(),
            observation_error: self.tools.observer.and_then(Observer::finish),
        }
    }
}
