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
    CellSpec, ChainSpec, Control, Count, DropCause, ForwardError, ForwardOptions, Network,
    ObservationOptions, Stats, Topology, unshaped,
};
use fatpath_observation::{FlowRecord, Header, Record, read};

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
    let options = into_file(file.try_clone().unwrap());
    let forwarded = network.forward_while(options, |control| work(&network, control));
    let (_, stats) = forwarded.unwrap();
    assert_eq!(stats.observation_error, None);
    file.rewind().unwrap();
    let (header, records) = read(BufReader::new(file)).unwrap();
    (header, records.map(Result::unwrap).collect(), stats)
}

fn into_file(file: File) -> ForwardOptions {
    ForwardOptions {
        observation: Some(ObservationOptions {
            file,
            per_flow: true,
        }),
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
    // It takes 40 ms, which touch 41 intervals, and none of them is left out.
    let numbers = first
        .iter()
        .map(|record| record.interval - first[0].interval);
    assert!(numbers.eq(0..=40));
}

fn sums_are_those_of_the_stats(records: &[Record], stats: &Stats, direction: usize) {
    let total = &stats.links[0].directions[direction].total;
    assert_eq!(sum(records, |record| record.arrived), total.arrived);
    assert_eq!(sum(records, |record| record.left), total.left);
    for cause in DropCause::ALL {
        let recorded = sum(records, |record| record.dropped(cause));
        assert_eq!(recorded, total.dropped(cause));
    }
    // All packets that programs send have ports.
    if direction == 0 {
        let of_flows = |of: fn(&FlowRecord) -> Count| {
            let flows = records.iter().flat_map(|record| &record.flows);
            flows.map(of).fold(Count::default(), |mut sum, count| {
                sum += count;
                sum
            })
        };
        assert_eq!(of_flows(|flow| flow.arrived), total.arrived);
        assert_eq!(of_flows(|flow| flow.left), total.left);
    }
}

/// 150 packets wait for a bottleneck, which passes one a millisecond; behind it every packet gets lost
/// from one moment on, until another. The moments are in virtual time, and in their own order, not
/// in that of the calls.
#[test]
fn changes_come_at_their_moments() {
    if !can_run("changes_come_at_their_moments") {
        return;
    }
    const FROM: Duration = Duration::from_millis(40);
    const UNTIL: Duration = Duration::from_millis(80);
    let chain = |loss| ChainSpec::of([CellSpec::rate(RATE_BPS, None), CellSpec::loss(loss)]);
    let mut asked = [Duration::ZERO; 3];
    let (header, records, stats) = observe(&topology("change", chain(0.0)), |network, control| {
        let send = sender(network);
        (0..6).for_each(|_| send(25));
        thread::sleep(Duration::from_millis(10));
        let change = |loss, after| {
            let directions = [chain(loss), ChainSpec::default()];
            control.change("wan", directions, after).unwrap();
        };
        asked[0] = since_1970();
        change(0.0, UNTIL);
        asked[1] = since_1970();
        change(1.0, FROM);
        asked[2] = since_1970();
        thread::sleep(Duration::from_millis(250));
        let nobody = control.change("lan", [chain(0.0), chain(0.0)], FROM);
        assert!(nobody.unwrap_err().to_string().contains("wan"));
    });
    let total = &stats.links[0].directions[0].total;
    let lost = |record: &Record| record.dropped(DropCause::Loss).packets;
    assert_eq!(
        total.left.packets + total.dropped(DropCause::Loss).packets,
        150
    );

    let there: Vec<_> = records
        .iter()
        .filter(|record| record.direction == 0)
        .collect();
    let interval_of = |found: Option<&&Record>| found.unwrap().interval;
    let first_lost = interval_of(there.iter().find(|record| lost(record) > 0));
    let last_lost = interval_of(there.iter().rfind(|record| lost(record) > 0));
    let left = |record: &&&Record| record.left.packets > 0;
    let mut before = there.iter().filter(|record| record.interval <= first_lost);
    let last_left = interval_of(before.rfind(left));
    let mut after = there.iter().filter(|record| record.interval >= last_lost);
    let left_again = interval_of(after.find(left));
    assert!((last_left..=last_left + 1).contains(&first_lost));
    assert!((last_lost..=last_lost + 1).contains(&left_again));
    // The clock of the day may be slewed by some µs meanwhile; the intervals are a thousand.
    let moment = |interval| Duration::from_nanos(header.begun_unix_ns + interval * INTERVAL_NS);
    assert!(moment(last_left) <= asked[2] + FROM && moment(first_lost + 1) >= asked[1] + FROM);
    assert!(moment(last_lost) <= asked[1] + UNTIL && moment(left_again + 1) >= asked[0] + UNTIL);
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Nothing happens to a packet that needs 8 s, but its queue is not empty: that is recorded as it goes.
#[test]
fn a_queue_that_stands_still_is_recorded_meanwhile() {
    if !can_run("a_queue_that_stands_still_is_recorded_meanwhile") {
        return;
    }
    let there = ChainSpec::of([CellSpec::rate(1_000, None)]);
    let network = Network::up(&topology("still", there)).unwrap();
    let file = temporary_file();
    let options = into_file(file.try_clone().unwrap());
    let len_bytes = || file.metadata().unwrap().len();
    let forwarded = network.forward_while(options, |_| {
        sender(&network)(1);
        thread::sleep(Duration::from_millis(500));
        let header_bytes = len_bytes();
        // A block is written after 1,000 intervals.
        let mut grown = (0..60).map(|_| {
            thread::sleep(Duration::from_millis(100));
            len_bytes() > header_bytes
        });
        grown.any(|grown| grown)
    });
    assert!(forwarded.unwrap().0);
}

/// A device that is gone ends the forwarder; what was counted and observed until then is kept.
#[test]
fn a_device_that_goes_takes_no_results_along() {
    if !can_run("a_device_that_goes_takes_no_results_along") {
        return;
    }
    let mut file = temporary_file();
    let network = Network::up(&topology("gone", ChainSpec::default())).unwrap();
    let options = into_file(file.try_clone().unwrap());
    let forwarded = network.forward_while(options, |_| {
        sender(&network)(10);
        thread::sleep(Duration::from_millis(100));
        let client = network.host("client").unwrap();
        let delete = client.command("ip").args(["link", "del", "wan"]).status();
        assert!(delete.unwrap().success());
        thread::sleep(Duration::from_millis(100));
    });
    let error = forwarded.unwrap_err();
    assert!(
        error.to_string().contains("host `client` is gone"),
        "{error}"
    );
    let ForwardError::Ended { stats, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(stats.links[0].directions[0].total.left.packets, 10);
    assert_eq!(stats.observation_error, None);
    file.rewind().unwrap();
    let (_, records) = read(BufReader::new(file)).unwrap();
    let there = records.map(Result::unwrap).filter(|of| of.direction == 0);
    sums_are_those_of_the_stats(&there.collect::<Vec<_>>(), &stats, 0);
}

/// A full disk ends the observation, not the forwarding.
#[test]
fn a_full_disk_does_not_stop_the_links() {
    if !can_run("a_full_disk_does_not_stop_the_links") {
        return;
    }
    let network = Network::up(&topology("full", ChainSpec::default())).unwrap();
    let file = File::options().write(true).open("/dev/full").unwrap();
    let work = |_: &Control| {
        let send = sender(&network);
        for _ in 0..10 {
            send(10);
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
    };
    let (_, stats) = network.forward_while(into_file(file), work).unwrap();
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
