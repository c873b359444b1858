// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host itself did while flows were slow or fast: its processors, memory, receive queues and interfaces, as an
//! event of the archive at an interval. Counts are those of the interval.

use super::event::event_now;
use fatpath_archive::Event;
use fatpath_host::Sysctls;
use fatpath_host::counters::{Counters, Interface, Memory, Softnet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Of the interfaces that moved something, those that moved most.
const MOST_INTERFACES: usize = 64;

/// Reads the host at an interval.
#[derive(Default)]
pub(super) struct HostLoad {
    before: Option<(Counters, Instant)>,
}

/// The event's body.
#[derive(Debug, PartialEq, Serialize)]
struct Body {
    /// Since the event before.
    interval_s: f64,
    processors: usize,
    /// Of all processors' time, what was not idle.
    busy_share: f64,
    /// One flow's packets are worked on by one processor: where it is busy, the flow waits.
    busiest_processor: u32,
    busiest_share: f64,
    /// Of the time of the processor that did most of it, what went into network and timer interrupts' work.
    softirq_share: f64,
    #[serde(flatten)]
    memory: Memory,
    /// Used by the buffers of TCP sockets.
    tcp_memory_bytes: Option<u64>,
    /// From this on the kernel makes buffers smaller.
    tcp_memory_pressure_bytes: Option<u64>,
    /// Packets that processors took from their receive queues.
    softnet_packets: u64,
    /// Packets that found a queue full (`net.core.netdev_max_backlog`).
    softnet_dropped: u64,
    /// Times that a processor had more packets than it may take at once (`net.core.netdev_budget`).
    softnet_squeezed: u64,
    interfaces: BTreeMap<String, Interface>,
}

impl HostLoad {
    /// The event of the interval that ends now. None: it has not ended, or is the first, or the host cannot be read.
    pub(super) fn event(&mut self, interval: Duration) -> Option<Event> {
        let now = Instant::now();
        let since = self.before.as_ref().map(|(_, at)| *at);
        if since.is_some_and(|at| now - at < interval) {
            return None;
        }
        let (before, at) = self.before.replace((Counters::read().ok()?, now))?;
        let (after, _) = self.before.as_ref()?;
        let body = body(&before, after, now - at, &Sysctls::default());
        let mut event = event_now("host.load", &body);
        event.value = Some(body.busiest_share);
        Some(event)
    }
}

fn body(before: &Counters, after: &Counters, interval: Duration, sysctls: &Sysctls) -> Body {
    // A processor that was off meanwhile counts from the next interval on: what it has is of longer than this one.
    let ticks = after.processors.iter().filter_map(|(number, ticks)| {
        let before = before.processors.get(number)?;
        Some((*number, ticks.since(*before)))
    });
    let ticks: Vec<_> = ticks.collect();
    let busiest = ticks
        .iter()
        .map(|(number, ticks)| (*number, ticks.busy_share()))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let (busiest_processor, busiest_share) = busiest.unwrap_or_default();
    let shares = ticks.iter().map(|(_, ticks)| ticks.busy_share());
    let softirq = ticks.iter().map(|(_, ticks)| ticks.softirq_share());
    let queues = after.softnet.iter();
    let queues = queues.filter_map(|(number, it)| Some(it.since(*before.softnet.get(number)?)));
    let queues: Vec<Softnet> = queues.collect();
    let sum = |of: fn(&Softnet) -> u32| queues.iter().map(|it| u64::from(of(it))).sum();
    Body {
        interval_s: interval.as_secs_f64(),
        processors: after.processors.len(),
        busy_share: shares.sum::<f64>() / ticks.len().max(1) as f64,
        busiest_processor,
        busiest_share,
        softirq_share: softirq.fold(0.0, f64::max),
        memory: after.memory,
        tcp_memory_bytes: sysctls.tcp_used_bytes(),
        tcp_memory_pressure_bytes: sysctls.tcp_pressure_bytes(),
        softnet_packets: sum(|it| it.packets),
        softnet_dropped: sum(|it| it.dropped),
        softnet_squeezed: sum(|it| it.squeezed),
        interfaces: interfaces(before, after),
    }
}

fn interfaces(before: &Counters, after: &Counters) -> BTreeMap<String, Interface> {
    let all = after.interfaces.iter().map(|(name, counts)| {
        let before = before.interfaces.get(name).copied().unwrap_or_default();
        (name.clone(), counts.since(before))
    });
    let mut moved: Vec<_> = all.filter(|(_, it)| *it != Interface::default()).collect();
    moved.sort_by_key(|(_, it)| std::cmp::Reverse(it.received_bytes.saturating_add(it.sent_bytes)));
    moved.truncate(MOST_INTERFACES);
    moved.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_own_counts() {
        let counters = |busy: u64, packets: u64, bytes: u64| {
            let stat =
                format!("cpu 9 9\ncpu0 0 0 0 100 0 0 0 0\ncpu1 {busy} 0 0 100 0 0 {busy} 0\n");
            let net = format!(
                "  eth0: {bytes} 1 0 2 0 0 0 0 0 0 0 0 0 0 0 0\n lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            );
            let softnet = format!(
                "{packets:08x} 0 1 0 0 0 0 0 0 0 0 0 0\n{packets:08x} 2 0 0 0 0 0 0 0 0 0 0 1\n"
            );
            Counters::parse(
                &stat,
                "MemTotal: 4 kB\nMemAvailable: 1 kB\n",
                &softnet,
                &net,
            )
        };
        let (before, after) = (counters(10, 5, 1000), counters(60, 16, 3000));
        let body = body(&before, &after, Duration::from_secs(2), &Sysctls::default());
        assert_eq!((body.processors, body.busiest_processor), (2, 1));
        assert_eq!((body.busiest_share, body.busy_share), (1.0, 0.5));
        assert_eq!(body.softirq_share, 0.5);
        assert_eq!((body.softnet_packets, body.softnet_dropped), (22, 0));
        assert_eq!(body.memory.memory_available_bytes, 1024);
        let names: Vec<&str> = body.interfaces.keys().map(String::as_str).collect();
        assert_eq!(names, ["eth0"], "the others moved nothing");
        assert_eq!(body.interfaces["eth0"].received_bytes, 2000);
        assert_eq!(body.interfaces["eth0"].received_dropped, 0);
    }

    #[test]
    fn counts_begin_again_and_processors_come_back() {
        let counters = |of_processors: &[(u32, u32)]| {
            let (mut stat, mut softnet) = (String::new(), String::new());
            for (number, count) in of_processors {
                stat.push_str(&format!("cpu{number} {count} 0 0 0 0 0 0 0\n"));
                softnet.push_str(&format!(
                    "{count:x} {count:x} 0 0 0 0 0 0 0 0 0 0 {number:x}\n"
                ));
            }
            Counters::parse(&stat, "", &softnet, "")
        };
        let counted = |before: &Counters, after: &Counters| {
            let body = body(before, after, Duration::from_secs(1), &Sysctls::default());
            assert_eq!(body.softnet_packets, body.softnet_dropped);
            (body.processors, body.busy_share, body.softnet_packets)
        };
        let all = counters(&[(0, u32::MAX - 1), (1, 900), (2, 100)]);
        let two = counters(&[(0, 5), (2, 103)]);
        let again = counters(&[(0, 5), (1, 950), (2, 104)]);
        assert_eq!(counted(&all, &two), (2, 0.5, 7 + 3));
        assert_eq!(counted(&two, &again), (3, 0.5, 1));
    }

    #[test]
    fn this_host_can_be_read() {
        let mut load = HostLoad::default();
        assert!(
            load.event(Duration::ZERO).is_none(),
            "nothing to compare with"
        );
        assert!(load.event(Duration::from_secs(3600)).is_none(), "too soon");
        assert!(!Counters::read().unwrap().softnet.is_empty());
        let event = load.event(Duration::ZERO).unwrap();
        let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
        assert!(body["processors"].as_u64() > Some(0), "{body}");
        assert!(body["memory_available_bytes"].as_u64() > Some(0), "{body}");
        assert!(body["tcp_memory_bytes"].is_u64(), "{body}");
    }
}
