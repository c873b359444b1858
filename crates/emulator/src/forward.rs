// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forwarder: one thread that carries packets from device to device, through the chains of
//! their links, at the right moments. Knows time and devices; what happens to packets is the cells'.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::thread;

use fatpath_link::{Cell, Chain, Count, Counters};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::buffer::Pool;
use crate::frame::Frame;
use crate::network::Link;
use crate::stop::StopHandle;
use crate::topology::{End, LinkSpec};
use crate::tun::Tun;

/// Packets read from one device before the others get their turn. A super-packet costs some 30 µs,
/// so this bounds how late the packets of another direction leave.
const BATCH_PACKETS: usize = 4;

/// Devices reported in one wake-up; the rest are in the next one.
const EVENTS: usize = 64;

/// What a forwarder did.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Of each link, in the order of the topology.
    pub links: Vec<LinkStats>,
}

/// What passed one link.
#[derive(Clone, Debug)]
pub struct LinkStats {
    /// Its name.
    pub name: String,
    /// From `ends[0]` to `ends[1]`, and back.
    pub directions: [DirectionStats; 2],
}

/// What passed one direction of a link.
#[derive(Clone, Debug)]
pub struct DirectionStats {
    /// The chain as a whole.
    pub total: Counters,
    /// Each of its cells, in order.
    pub cells: Vec<Counters>,
    /// On the way when the forwarder stopped.
    pub held: Count,
    /// Packets (super-packets count once) that the far kernel refused: malformed, or device down.
    pub refused_packets: u64,
    /// Packets (likewise) that the device dropped since it was made because its ring was full: the
    /// machine was too slow for the traffic. They never reached the chain. With any, the run does
    /// not show what the link does.
    pub missed_packets: u64,
}

/// Why a forwarder ended before it was stopped.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A device cannot be read any more.
    #[error("link `{link}`: its device at host `{host}` is gone: {error}")]
    Device {
        /// The link.
        link: String,
        /// The host.
        host: String,
        /// What the system said.
        error: io::Error,
    },
    /// Waiting for packets failed.
    #[error("waiting for packets: {0}")]
    Wait(io::Error),
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

/// One direction of a link, with the devices at its two ends.
struct Direction<'a> {
    link: &'a Link,
    from: usize,
    chain: Chain<Frame>,
    refused_packets: u64,
}

/// Carries packets over `links` until `stop` is used. The work is done on a thread of its own, which
/// goes before other programs: a starved forwarder is late, and its devices drop packets that the
/// link would have carried.
pub(crate) fn run(links: &[Link], stop: &StopHandle) -> Result<Stats, ForwardError> {
    let forwarder = || {
        hasten().map_err(ForwardError::Wait)?;
        carry(links, stop)
    };
    let done = thread::scope(|scope| scope.spawn(forwarder).join());
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Puts the calling thread before others, where that is permitted.
fn hasten() -> io::Result<()> {
    const FIRST: i32 = -20;
    match rustix::process::setpriority_process(Some(rustix::thread::gettid()), FIRST) {
        // In containers without CAP_SYS_NICE; the forwarder works without it.
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => Ok(()),
        set => Ok(set?),
    }
}

fn carry(links: &[Link], stop: &StopHandle) -> Result<Stats, ForwardError> {
    let mut directions: Vec<_> = links.iter().flat_map(Direction::both).collect();
    let mut poller = Poller::new(&directions, stop).map_err(ForwardError::Wait)?;
    let clock = Clock::start();
    let pool = Pool::default();
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        let due_ns = directions
            .iter()
            .filter_map(|direction| direction.chain.next_due_ns())
            .min();
        poller
            .wait(&mut events, due_ns, &clock)
            .map_err(ForwardError::Wait)?;
        for event in events.drain(..) {
            match event.data.u64() {
                STOP => return Ok(Stats::of(links, &directions)),
                TIMER => {}
                index => directions[index as usize].receive(&clock, &pool)?,
            }
        }
        directions
            .iter_mut()
            .for_each(|direction| direction.send(clock.now_ns()));
    }
}

impl<'a> Direction<'a> {
    fn both(link: &'a Link) -> [Direction<'a>; 2] {
        [0, 1].map(|from| {
            let chain = link.spec.directions[from].build();
            let chain = chain.expect("`Topology::check` found every direction in range");
            Direction {
                link,
                from,
                chain,
                refused_packets: 0,
            }
        })
    }

    fn source(&self) -> &'a Tun {
        &self.link.tuns[self.from]
    }

    fn sink(&self) -> &'a Tun {
        &self.link.tuns[1 - self.from]
    }

    /// Reads some packets; each that is due at once leaves before the next one is read.
    fn receive(&mut self, clock: &Clock, pool: &Pool) -> Result<(), ForwardError> {
        for _ in 0..BATCH_PACKETS {
            let mut buffer = pool.take(Pool::LARGEST_BYTES);
            let read = self
                .source()
                .read(&mut buffer)
                .map_err(|error| self.gone(error))?;
            let Some(len_bytes) = read else { break };
            // Less than a virtio-net header never comes; were it to, it would be no packet.
            if len_bytes >= Tun::VNET_BYTES {
                self.chain
                    .push(clock.now_ns(), Frame::new(buffer, len_bytes));
                self.send(clock.now_ns());
            }
        }
        Ok(())
    }

    /// Writes every packet that is due.
    fn send(&mut self, now_ns: u64) {
        while let Some(departure) = self.chain.pop(now_ns) {
            let written = self.sink().write(departure.packet.bytes());
            self.refused_packets += u64::from(written.is_err());
        }
    }

    fn gone(&self, error: io::Error) -> ForwardError {
        let spec = &self.link.spec;
        let host = spec.ends[self.from].host.clone();
        ForwardError::Device {
            link: spec.name.clone(),
            host,
            error,
        }
    }

    fn stats(&self) -> DirectionStats {
        DirectionStats {
            total: self.chain.counters(),
            cells: self.chain.cell_counters().collect(),
            held: self.chain.held(),
            refused_packets: self.refused_packets,
            missed_packets: 0,
        }
    }
}

impl Stats {
    fn of(links: &[Link], directions: &[Direction]) -> Stats {
        let pairs = links.iter().zip(directions.chunks_exact(2));
        let link_stats = |(link, pair): (&Link, &[Direction])| LinkStats {
            name: link.spec.name.clone(),
            directions: [pair[0].stats(), pair[1].stats()],
        };
        Stats {
            links: pairs.map(link_stats).collect(),
        }
    }
}

/// Monotonic time from the start of the forwarder.
struct Clock {
    start_ns: u64,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            start_ns: monotonic_ns(),
        }
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.start_ns
    }

    /// A moment of this clock, as the kernel's timers count.
    fn moment(&self, at_ns: u64) -> Timespec {
        const SECOND_NS: u64 = 1_000_000_000;
        let at_ns = self.start_ns + at_ns;
        Timespec {
            tv_sec: (at_ns / SECOND_NS) as i64,
            tv_nsec: (at_ns % SECOND_NS) as i64,
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Not negative, and 584 years fit.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits for devices and for moments.
///
/// Moments by a timerfd: the kernel delays a timeout of epoll by up to a thousandth of it, which is
/// 50 µs on a path of 50 ms.
struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    timer_set_ns: Option<u64>,
}

/// What an event says: the index of a direction, or one of these.
const TIMER: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX;

impl Poller {
    fn new(directions: &[Direction], stop: &StopHandle) -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let add = |source: BorrowedFd, key, flags| {
            epoll::add(&epoll, source, epoll::EventData::new_u64(key), flags)
        };
        for (index, direction) in directions.iter().enumerate() {
            add(
                direction.source().as_fd(),
                index as u64,
                epoll::EventFlags::IN,
            )?;
        }
        add(stop.as_fd(), STOP, epoll::EventFlags::IN)?;
        // Edge-triggered, so that the count of expirations need not be read.
        add(
            timer.as_fd(),
            TIMER,
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        Ok(Poller {
            epoll,
            timer,
            timer_set_ns: None,
        })
    }

    /// Waits until a device has a packet, the stop is used, or the moment `due_ns` has come.
    fn wait(
        &mut self,
        events: &mut Vec<epoll::Event>,
        due_ns: Option<u64>,
        clock: &Clock,
    ) -> io::Result<()> {
        const AT_ONCE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let overdue = due_ns.is_some_and(|due_ns| due_ns <= clock.now_ns());
        if let Some(due_ns) = due_ns.filter(|_| !overdue) {
            self.set_timer(due_ns, clock)?;
        }
        match epoll::wait(
            &self.epoll,
            spare_capacity(events),
            overdue.then_some(&AT_ONCE),
        ) {
            Err(rustix::io::Errno::INTR) => Ok(()),
            waited => waited.map(drop).map_err(io::Error::from),
        }
    }

    /// Sets the timer to a moment, unless it is set to it already. A moment that nobody waits for
    /// any more costs one needless wake-up.
    fn set_timer(&mut self, due_ns: u64, clock: &Clock) -> io::Result<()> {
        if self.timer_set_ns.replace(due_ns) == Some(due_ns) {
            return Ok(());
        }
        let it_interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = Itimerspec {
            it_value: clock.moment(due_ns),
            it_interval,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}
