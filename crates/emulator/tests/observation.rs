// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is observed of real packets, and links that change while they pass. Needs root; says so and
//! skips otherwise.
#![allow(unsafe_code)] // setsockopt(UDP_SEGMENT), which no crate wraps.
#![allow(clippy::unwrap_used)] // Clippy does not see that the functions beside the tests are theirs.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fatpath_emulator::{
    CellSpec, ChainSpec, Control, Count, DropCause, ForwardOptions, Network, ObservationOptions,
    Stats, Topology, unshaped,
};
use fatpath_observation::{Header, Record, read};

/// A packet of the tests on the wire: 20 + 8 bytes of headers, and the rest.
const PACKET_BYTES: u64 = 1_000;

/// One packet a millisecond.
const RATE_BPS: u64 = 8_000_000;

const LIMIT_BYTES: u64 = 50_000;

const INTERVAL_NS: u64 = 1_000_000;

fn can_run(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("skipped: {test} needs root");
    }
    is_root
}

/// Two hosts and an exact link, IPv4 only, so that no packet of the kernel's own is on it.
fn topology(test: &str, there: ChainSpec) -> Topology {
    let run_name = format!("fp-{test}-{}", process::id());
    let mut topology = unshaped::two_hosts(&run_name, &ChainSpec::default());
    let link = &mut topology.links[0];
    link.exact = true;
    link.directions[0] = there;
    link.ends.iter_mut().for_each(|end| end.ipv6 = None);
    topology
}

/// Forwards while `work` runs, and returns what was observed.
fn observe(
    topology: &Topology,
    work: impl FnOnce(&Network, &Control),
) -> (Header, Vec<Record>, Stats) {
    let mut file = temporary_file();
    let network = Network::up(topology).unwrap();
    let control = Control::new().unwrap();
    let observation = Some(ObservationOptions {
        file: file.try_clone().unwrap(),
        per_flow: true,
    });
    let stats = thread::scope(|scope| {
        let forwarder = scope.spawn(|| network.forward(ForwardOptions { observation }, &control));
        {
            // Also when `work` panics: the scope waits for the forwarder.
            let _stop = StopAtEnd(&control);
            work(&network, &control);
        }
        forwarder.join().unwrap().unwrap()
    });
    assert_eq!(stats.observation_error, None);
    file.rewind().unwrap();
    let (header, records) = read(BufReader::new(file)).unwrap();
    (header, records.map(Result::unwrap).collect(), stats)
}

struct StopAtEnd<'a>(&'a Control);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A file that has no name any more.
fn temporary_file() -> File {
    let path = std::env::temp_dir().join(format!(
        "fatpath-observation-{}-{:?}",
        process::id(),
        thread::current().id()
    ));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    std::fs::remove_file(path).unwrap();
    file.unwrap()
}

/// A socket of the client, whose every call sends `segments` packets at once.
fn sender(network: &Network) -> impl Fn(usize) {
    const UDP_SEGMENT: i32 = 103;
    let client = network.host("client").unwrap();
    let socket = client
        .run(|| UdpSocket::bind("10.99.0.1:7000"))
        .unwrap()
        .unwrap();
    let payload_bytes = PACKET_BYTES as i32 - 28;
    // SAFETY: the option is an int, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            UDP_SEGMENT,
            (&raw const payload_bytes).cast(),
            size_of_val(&payload_bytes) as libc::socklen_t,
        )
    };
    assert_eq!(status, 0);
    move |segments| {
        let payload = vec![7; payload_bytes as usize * segments];
        socket.send_to(&payload, "10.99.0.2:7000").unwrap();
    }
}

fn sum(records: &[Record], of: impl Fn(&Record) -> Count) -> Count {
    let mut sum = Count::default();
    records.iter().for_each(|record| sum += of(record));
    sum
}

/// 40 packets, which fit; when they are gone, 200, which do not.
#[test]
fn a_burst_is_recorded_to_the_byte() {
    if !can_run("a_burst_is_recorded_to_the_byte") {
        return;
    }
    let there = ChainSpec::of([CellSpec::rate(RATE_BPS, Some(LIMIT_BYTES))]);
    let (header, records, stats) = observe(&topology("record", there), |network, _| {
        let send = sender(network);
        send(40);
        thread::sleep(Duration::from_millis(200));
        (0..5).for_each(|_| send(40));
        thread::sleep(Duration::from_millis(200));
    });
    let names = |end: usize| {
        let direction = &header.directions[end];
        [&direction.link, &direction.from, &direction.to].map(String::as_str)
    };
    assert_eq!(names(0), ["wan", "client", "server"]);
    assert_eq!(names(1), ["wan", "server", "client"]);

    let (there, back): (Vec<_>, Vec<_>) = records
        .into_iter()
        .partition(|record| record.direction == 0);
    sums_are_those_of_the_stats(&there, &stats, 0);
    sums_are_those_of_the_stats(&back, &stats, 1);
    let total = &stats.links[0].directions[0].total;
    assert_eq!(total.arrived.packets, 240);
    assert!(total.dropped(DropCause::QueueFull).packets > 100);

    for pair in there.windows(2) {
        assert!(pair[0].interval < pair[1].interval);
    }
    let most_bytes = RATE_BPS / 8 * INTERVAL_NS / 1_000_000_000 + PACKET_BYTES;
    assert!(there.iter().all(|record| record.left.bytes <= most_bytes));
    // The 40 came at once. Of the 200, one leaves in a millisecond, but no instant has more.
    let pause = there
        .windows(2)
        .position(|pair| pair[0].interval + 20 < pair[1].interval);
    let (first, second) = there.split_at(pause.unwrap() + 1);
    let peak_bytes = |records: &[Record]| records.iter().map(|of| of.peak_queue_bytes).max();
    assert_eq!(peak_bytes(first), Some(40 * PACKET_BYTES));
    assert_eq!(peak_bytes(second), Some(LIMIT_BYTES));
    // One packet leaves the queue each millisecond.
    assert_eq!(
        first.len() as u64,
        first[39].interval - first[0].interval + 1
    );
}

fn sums_are_those_of_the_stats(records: &[Record], stats: &Stats, direction: usize) {
    let total = &stats.links[0].directions[direction].total;
    assert_eq!(sum(records, |record| record.arrived), total.arrived);
    assert_eq!(sum(records, |record| record.left), total.left);
    for cause in DropCause::ALL {
        let recorded = sum(records, |record| record.dropped(cause));
        assert_eq!(recorded, total.dropped(cause));
    }
    let flows = |of: fn(&Record) -> Count, of_flows: fn(&Record) -> Count| {
        assert_eq!(sum(records, of_flows), sum(records, of));
    };
    if direction == 0 {
        flows(
            |record| record.arrived,
            |record| {
                record.flows[..]
                    .iter()
                    .fold(Count::default(), |mut sum, flow| {
                        sum += flow.arrived;
                        sum
                    })
            },
        );
        flows(
            |record| record.left,
            |record| {
                record.flows[..]
                    .iter()
                    .fold(Count::default(), |mut sum, flow| {
                        sum += flow.left;
                        sum
                    })
            },
        );
    }
}

/// 100 packets wait for a bottleneck, which passes one a millisecond; behind it, from one moment on, every
/// packet gets lost. That moment is in virtual time: none before it, all from it on.
#[test]
fn a_change_comes_at_its_moment() {
    if !can_run("a_change_comes_at_its_moment") {
        return;
    }
    const AFTER: Duration = Duration::from_millis(50);
    let chain = |loss| ChainSpec::of([CellSpec::rate(RATE_BPS, None), CellSpec::loss(loss)]);
    let mut asked = [Duration::ZERO; 2];
    let (header, records, stats) = observe(&topology("change", chain(0.0)), |network, control| {
        let send = sender(network);
        (0..4).for_each(|_| send(25));
        thread::sleep(Duration::from_millis(10));
        let directions = [chain(1.0), ChainSpec::default()];
        asked[0] = since_1970();
        control.change("wan", directions, AFTER).unwrap();
        asked[1] = since_1970();
        thread::sleep(Duration::from_millis(200));
        let nobody = control.change("lan", [chain(0.0), chain(0.0)], AFTER);
        assert!(nobody.unwrap_err().to_string().contains("wan"));
    });
    let total = &stats.links[0].directions[0].total;
    let lost = total.dropped(DropCause::Loss).packets;
    assert_eq!(total.left.packets + lost, 100);

    let there = || records.iter().filter(|record| record.direction == 0);
    let last_left = there().rfind(|record| record.left.packets > 0).unwrap();
    let first_lost = there().find(|record| record.dropped(DropCause::Loss).packets > 0);
    let first_lost = first_lost.unwrap().interval;
    assert!((last_left.interval..=last_left.interval + 1).contains(&first_lost));
    // The clock of the day may be slewed by some µs meanwhile; the intervals are a thousand.
    let moment = |interval| Duration::from_nanos(header.begun_unix_ns + interval * INTERVAL_NS);
    assert!(moment(last_left.interval) <= asked[1] + AFTER);
    assert!(moment(first_lost + 1) >= asked[0] + AFTER);
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A full disk ends the observation, not the forwarding.
#[test]
fn a_full_disk_does_not_stop_the_links() {
    if !can_run("a_full_disk_does_not_stop_the_links") {
        return;
    }
    let network = Network::up(&topology("full", ChainSpec::default())).unwrap();
    let control = Control::new().unwrap();
    let file = File::options().write(true).open("/dev/full").unwrap();
    let observation = Some(ObservationOptions {
        file,
        per_flow: false,
    });
    let stats = thread::scope(|scope| {
        let forwarder = scope.spawn(|| network.forward(ForwardOptions { observation }, &control));
        let _stop = StopAtEnd(&control);
        let send = sender(&network);
        for _ in 0..10 {
            send(10);
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
        control.stop();
        forwarder.join().unwrap().unwrap()
    });
    assert_eq!(stats.links[0].directions[0].total.left.packets, 100);
    assert!(stats.observation_error.unwrap().contains("No space left"));
}

/// What a forwarder did serialises, with names that results show.
#[test]
fn stats_are_json() {
    if !can_run("stats_are_json") {
        return;
    }
    let there = ChainSpec::of([CellSpec::loss(1.0)]);
    let (_, _, stats) = observe(&topology("json", there), |network, _| {
        sender(network)(10);
        thread::sleep(Duration::from_millis(100));
    });
    let json = serde_json::to_value(&stats).unwrap();
    let total = &json["links"][0]["directions"][0]["total"];
    assert_eq!(total["dropped"]["loss"]["packets"], 10, "{json}");
    assert_eq!(json["lateness"]["count"], 0, "{json}");
}
