// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel counts of the host, from files of proc(5). A line that is not as expected counts nothing.

use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Counts since the host was started.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Time of each processor that is on.
    pub processors: BTreeMap<u32, Ticks>,
    /// Memory.
    pub memory: Memory,
    /// Receive queues, one a processor that is on.
    pub softnet: BTreeMap<u32, Softnet>,
    /// Interfaces of this network namespace.
    pub interfaces: BTreeMap<String, Interface>,
}

/// How a processor spent its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    all: u64,
    idle: u64,
    softirq: u64,
}

/// What there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Memory {
    /// All.
    pub memory_bytes: u64,
    /// What programs could have without swapping.
    pub memory_available_bytes: u64,
}

/// A processor's receive queue. The kernel counts in 32 bits, and begins again at 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Softnet {
    /// Taken from the queue.
    pub packets: u32,
    /// That found it full.
    pub dropped: u32,
    /// Times that there were more packets than are taken at once.
    pub squeezed: u32,
}

/// An interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interface {
    /// Received.
    pub received_bytes: u64,
    /// Received damaged.
    pub received_errors: u64,
    /// Received, and dropped for want of room.
    pub received_dropped: u64,
    /// Sent.
    pub sent_bytes: u64,
    /// Not sent, by an error.
    pub sent_errors: u64,
    /// Dropped before they were sent.
    pub sent_dropped: u64,
}

impl Counters {
    /// Of this host; interfaces are those of this network namespace.
    ///
    /// # Errors
    /// If one of the files cannot be read.
    pub fn read() -> io::Result<Counters> {
        let read = std::fs::read_to_string::<&str>;
        Ok(Counters::parse(
            &read("/proc/stat")?,
            &read("/proc/meminfo")?,
            &read("/proc/net/softnet_stat")?,
            &read("/proc/net/dev")?,
        ))
    }

    /// Of the texts of /proc/stat, /proc/meminfo, /proc/net/softnet_stat and /proc/net/dev. Pure.
    pub fn parse(stat: &str, meminfo: &str, softnet: &str, dev: &str) -> Counters {
        Counters {
            processors: stat.lines().filter_map(processor).collect(),
            memory: Memory {
                memory_bytes: bytes(meminfo, "MemTotal:"),
                memory_available_bytes: bytes(meminfo, "MemAvailable:"),
            },
            softnet: softnet.lines().filter_map(receive_queue).collect(),
            interfaces: dev.lines().filter_map(interface).collect(),
        }
    }
}

/// `cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`; what follows is in these.
fn processor(line: &str) -> Option<(u32, Ticks)> {
    let (name, times) = line.split_once(' ')?;
    let number = name.strip_prefix("cpu")?.parse().ok()?;
    let times = times.split_whitespace().take(8).map(str::parse);
    let times: Vec<u64> = times.collect::<Result<_, _>>().ok()?;
    let ticks = Ticks {
        all: times.iter().fold(0, |sum, time| sum.saturating_add(*time)),
        idle: times.get(3)?.saturating_add(*times.get(4)?),
        softirq: *times.get(6)?,
    };
    Some((number, ticks))
}

fn bytes(meminfo: &str, name: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0u64).saturating_mul(1024)
}

/// A processor that is on, hexadecimal: packets, dropped, squeezed, …, and as the 13th (from Linux 5.10) its number.
fn receive_queue(line: &str) -> Option<(u32, Softnet)> {
    let counts = line
        .split_whitespace()
        .map(|word| u32::from_str_radix(word, 16));
    let counts: Vec<u32> = counts.collect::<Result<_, _>>().ok()?;
    let queue = Softnet {
        packets: *counts.first()?,
        dropped: *counts.get(1)?,
        squeezed: *counts.get(2)?,
    };
    Some((*counts.get(12)?, queue))
}

/// `eth0: BYTES PACKETS ERRORS DROPPED` and four more of what was received, then the same of what was sent.
fn interface(line: &str) -> Option<(String, Interface)> {
    let (name, counts) = line.split_once(':')?;
    let counts = counts.split_whitespace().map(str::parse);
    let counts: Vec<u64> = counts.collect::<Result<_, _>>().ok()?;
    let of = |index: usize| counts.get(index).copied();
    let interface = Interface {
        received_bytes: of(0)?,
        received_errors: of(2)?,
        received_dropped: of(3)?,
        sent_bytes: of(8)?,
        sent_errors: of(10)?,
        sent_dropped: of(11)?,
    };
    Some((name.trim().to_owned(), interface))
}

impl Ticks {
    /// What was counted from then to now.
    pub fn since(self, before: Ticks) -> Ticks {
        Ticks {
            all: self.all.saturating_sub(before.all),
            idle: self.idle.saturating_sub(before.idle),
            softirq: self.softirq.saturating_sub(before.softirq),
        }
    }

    fn share(self, ticks: u64) -> f64 {
        match self.all {
            0 => 0.0,
            all => ticks as f64 / all as f64,
        }
    }

    /// What was not idle.
    pub fn busy_share(self) -> f64 {
        self.share(self.all.saturating_sub(self.idle))
    }

    /// What went into network and timer interrupts' work.
    pub fn softirq_share(self) -> f64 {
        self.share(self.softirq)
    }
}

impl Softnet {
    /// What was counted from then to now.
    pub fn since(self, before: Softnet) -> Softnet {
        Softnet {
            packets: self.packets.wrapping_sub(before.packets),
            dropped: self.dropped.wrapping_sub(before.dropped),
            squeezed: self.squeezed.wrapping_sub(before.squeezed),
        }
    }
}

/// One that was made again counts from 0.
impl Interface {
    /// What was counted from then to now.
    pub fn since(self, before: Interface) -> Interface {
        Interface {
            received_bytes: self.received_bytes.saturating_sub(before.received_bytes),
            received_errors: self.received_errors.saturating_sub(before.received_errors),
            received_dropped: self
                .received_dropped
                .saturating_sub(before.received_dropped),
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            sent_errors: self.sent_errors.saturating_sub(before.sent_errors),
            sent_dropped: self.sent_dropped.saturating_sub(before.sent_dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let stat = "cpu  10 0 0 90 0 0 0 0 0 0\ncpu0 1 2 3 90 4 5 6 7 8 9\ncpu11 0 0 0 1 0 0 0 0\nctxt 5\n";
        let dev = "Inter-| Receive | Transmit\n face |bytes packets\n  eth0:1000 5 1 2 0 0 0 0 2000 6 3 4 0 0 0 0\n";
        let softnet = "0000000a 1 2 0 0 0 0 0 0 0 0 0 00000000 0 0\nffffffff 0 0 0 0 0 0 0 0 0 0 0 0000000b\n";
        let counters = Counters::parse(stat, "MemTotal:   2000 kB\n", softnet, dev);
        let ticks = counters.processors[&0];
        assert_eq!((ticks.all, ticks.idle, ticks.softirq), (118, 94, 6));
        assert_eq!(counters.processors.len(), 2);
        assert_eq!(counters.memory.memory_bytes, 2_048_000);
        let queues = counters.softnet.iter();
        let queues = queues.map(|(number, it)| (*number, it.packets, it.dropped, it.squeezed));
        assert!(queues.eq([(0, 10, 1, 2), (11, u32::MAX, 0, 0)]));
        let eth0 = counters.interfaces["eth0"];
        assert_eq!(
            (eth0.received_dropped, eth0.sent_bytes, eth0.sent_dropped),
            (2, 2000, 4)
        );
    }

    #[test]
    fn what_is_not_as_expected_counts_nothing() {
        let most = u64::MAX;
        for text in [
            String::new(),
            "cpu\ncpu0\ncpu0 1\ncpux 1 2 3 4 5 6 7 8\neth0:\neth0: 1 2\n:\nx y z\n".to_owned(),
            format!("cpu0 {most} {most} 0 {most} {most} 0 {most} 0\nMemTotal: {most} kB\n"),
            format!("{most:x} {most:x}\n{most:x} {most:x} {most:x}0\n"),
            format!("1 2 3\n{}\n", format!("{most:x} ").repeat(13)),
        ] {
            let counters = Counters::parse(&text, &text, &text, &text);
            let share = counters.processors.values().map(|ticks| ticks.busy_share());
            assert!(share.fold(0.0, f64::max) <= 1.0);
            assert!(counters.interfaces.is_empty() && counters.softnet.is_empty());
        }
    }
}
