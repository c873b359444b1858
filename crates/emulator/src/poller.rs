// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for devices, for requests and for moments.
//!
//! Moments by a timerfd: the kernel delays a timeout of epoll by up to a thousandth of it, which is
//! 50 µs on a path of 50 ms. A thread that a timer wakes runs tens of µs later still, so the timer is
//! set early by about as much, and the rest is spent looking at the devices again and again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::Clock;

/// Events reported in one wake-up; the rest are in the next one.
const EVENTS: usize = 64;

/// The margin between the timer and the moment that it is for. Of wake-ups on an idle virtual
/// machine, half take 42 µs and one of a hundred over 100 µs.
const MARGIN_NS: std::ops::RangeInclusive<u64> = 10_000..=150_000;

/// How fast the margin follows the wake-ups: up by this when one was later, down by a ninth of it
/// otherwise, so that it settles where one of ten is later.
const MARGIN_STEP_NS: u64 = 4_500;

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// The device of the direction with this index has packets.
    Packets(usize),
    /// There are requests.
    Requests,
}

/// A moment that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// Keys of what is no device.
const TIMER: u64 = u64::MAX - 1;
const REQUESTS: u64 = u64::MAX;

pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to and has not rung for.
    timer_ns: Option<u64>,
    margin_ns: u64,
    allowance: Allowance,
    keys: Vec<epoll::Event>,
}

impl Poller {
    /// Waits for `devices`, numbered in their order, and for requests.
    pub(crate) fn new<'a>(
        devices: impl Iterator<Item = BorrowedFd<'a>>,
        requests: BorrowedFd,
    ) -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let add = |source: BorrowedFd, key, flags| {
            epoll::add(&epoll, source, epoll::EventData::new_u64(key), flags)
        };
        for (index, device) in devices.enumerate() {
            add(device, index as u64, epoll::EventFlags::IN)?;
        }
        add(requests, REQUESTS, epoll::EventFlags::IN)?;
        // Edge-triggered, so that the count of expirations need not be read.
        let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
        add(timer.as_fd(), TIMER, once)?;
        Ok(Poller {
            epoll,
            timer,
            timer_ns: None,
            margin_ns: *MARGIN_NS.end(),
            allowance: Allowance {
                left_ns: Allowance::MOST_NS,
                counted_ns: 0,
            },
            keys: Vec::with_capacity(EVENTS),
        })
    }

    /// Waits until there is something to do, which `events` then lists, or the moment `due_ns` has
    /// come; with [`NEVER`], as long as it takes. Burns the processor for at most the margin.
    pub(crate) fn wait(
        &mut self,
        events: &mut Vec<Event>,
        due_ns: u64,
        clock: &Clock,
    ) -> io::Result<()> {
        events.clear();
        let mut now_ns = clock.now_ns();
        let margin_ns = self.margin_ns.min(self.allowance.at(now_ns));
        let ring_ns = due_ns.saturating_sub(margin_ns);
        loop {
            let (begun_ns, near) = (now_ns, now_ns >= ring_ns);
            if !near && due_ns != NEVER {
                self.set_timer(ring_ns, clock)?;
            }
            let rung = self.look(events, near)?;
            if begun_ns >= due_ns {
                return Ok(());
            }
            now_ns = clock.now_ns();
            match rung {
                _ if near => self.allowance.spend(now_ns - begun_ns),
                Some(rung_ns) if events.is_empty() => self.learn(now_ns.saturating_sub(rung_ns)),
                _ => {}
            }
            if !events.is_empty() {
                return Ok(());
            }
        }
    }

    /// Collects events, waiting for one unless `at_once`. Returns what the timer was set to if it rang.
    fn look(&mut self, events: &mut Vec<Event>, at_once: bool) -> io::Result<Option<u64>> {
        const AT_ONCE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.keys.clear();
        let timeout = at_once.then_some(&AT_ONCE);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.keys), timeout) {
            Err(rustix::io::Errno::INTR) => {}
            waited => drop(waited?),
        }
        let mut rung = None;
        for key in &self.keys {
            match key.data.u64() {
                TIMER => rung = self.timer_ns.take(),
                REQUESTS => events.push(Event::Requests),
                index => events.push(Event::Packets(index as usize)),
            }
        }
        Ok(rung)
    }

    /// Moves the margin towards how late the timer woke us.
    fn learn(&mut self, late_ns: u64) {
        let moved_ns = match late_ns > self.margin_ns {
            true => self.margin_ns + MARGIN_STEP_NS,
            false => self.margin_ns - MARGIN_STEP_NS / 9,
        };
        self.margin_ns = moved_ns.clamp(*MARGIN_NS.start(), *MARGIN_NS.end());
    }

    /// Sets the timer to a moment, unless it is set to it already. A moment that nobody waits for
    /// any more costs one needless wake-up.
    fn set_timer(&mut self, at_ns: u64, clock: &Clock) -> io::Result<()> {
        if self.timer_ns.replace(at_ns) == Some(at_ns) {
            return Ok(());
        }
        let it_interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let once = Itimerspec {
            it_value: clock.moment(at_ns),
            it_interval,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

/// How long may be spent looking in vain: one part of time in eight. The programs at the ends need the
/// processor too, and with packets due all the time it would be the forwarder's alone.
#[derive(Debug)]
struct Allowance {
    left_ns: u64,
    counted_ns: u64,
}

impl Allowance {
    const SHARE: u64 = 8;
    const MOST_NS: u64 = 1_000_000;

    fn at(&mut self, now_ns: u64) -> u64 {
        let earned_ns = (now_ns - self.counted_ns) / Self::SHARE;
        self.counted_ns += earned_ns * Self::SHARE;
        self.left_ns = (self.left_ns + earned_ns).min(Self::MOST_NS);
        self.left_ns
    }

    fn spend(&mut self, spent_ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(spent_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_time_is_allowed_however_often_it_is_asked() {
        let mut allowance = Allowance {
            left_ns: 0,
            counted_ns: 0,
        };
        let mut spent_ns = 0;
        for now_ns in (0..1_000_000).step_by(3) {
            let left_ns = allowance.at(now_ns).min(5);
            allowance.spend(left_ns);
            spent_ns += left_ns;
        }
        assert!((124_990..=125_000).contains(&spent_ns), "{spent_ns}");
        assert_eq!(allowance.at(u64::MAX / 2), Allowance::MOST_NS);
    }
}
