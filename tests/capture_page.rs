// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTML file of captured flows in a browser: web/capture has what must hold.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_capture::{Analysis, Ecn, End, History, Limits, Options, Segment, flag};
use fatpath_plot::interactive;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

const SEGMENT_BYTES: u32 = 1448;
/// One in so many is lost, and sent again.
const LOST_EVERY: u32 = 1000;
/// Twice the mean gap between two packets: segments and half as many ACKs, some 13 Gb/s.
const GAP_NS: u64 = 1_200;

/// A bulk transfer that was captured next to its sender.
struct Transfer {
    analysis: Analysis,
    client: End,
    server: End,
    time_ns: i64,
    gaps: Gaps,
}

/// Uneven times between packets, as on a host: xorshift.
struct Gaps(u64);

impl Gaps {
    fn next_ns(&mut self) -> i64 {
        for shift in [13, -7, 17] {
            self.0 ^= match shift {
                1.. => self.0 << shift,
                _ => self.0 >> -shift,
            };
        }
        (self.0 % GAP_NS) as i64
    }
}

impl Transfer {
    fn take(&mut self, is_from_client: bool, flags: u8, seq: u32, ack: u32, options: Options) {
        let ends = [self.client, self.server];
        let [source, destination] = match is_from_client {
            true => ends,
            false => [self.server, self.client],
        };
        self.analysis.take_segment(&Segment {
            time_ns: self.time_ns,
            source,
            destination,
            seq,
            ack,
            flags,
            window: 60_000,
            payload_bytes: if is_from_client && flags == flag::ACK {
                SEGMENT_BYTES
            } else {
                0
            },
            ip_id: None,
            ecn: Ecn::NotCapable,
            options,
        });
        self.time_ns += self.gaps.next_ns();
    }
}

/// So many segments; an ACK for two, 64 segments later.
fn history(segments: u32) -> History {
    let end = |host: &str, port| End::new(host.parse::<IpAddr>().unwrap(), port);
    let mut transfer = Transfer {
        analysis: Analysis::new(Limits::default()).watching(&[1]),
        client: end("10.0.0.1", 40_000),
        server: end("2001:db8::1", 5201),
        time_ns: 1_700_000_000_000_000_000,
        gaps: Gaps(1),
    };
    let none = Options::default();
    let syn = Options::read(&[2, 4, 5, 168, 3, 3, 7, 0, 4, 2], false);
    transfer.take(true, flag::SYN, u32::MAX, 0, syn);
    transfer.take(false, flag::SYN | flag::ACK, 0, 0, syn);
    let seq = |number: u32| number.wrapping_mul(SEGMENT_BYTES);
    for number in 0..segments {
        transfer.take(true, flag::ACK, seq(number), 1, none);
        if number % 2 == 0 || number < 64 {
            continue;
        }
        let acked = number - 63;
        let lost = acked - acked % LOST_EVERY;
        let above = acked - lost;
        if (1..=4).contains(&above) && lost > 0 {
            let block = [seq(lost + 1), seq(acked)];
            let block = [&[1, 1, 5, 10][..], &block.map(u32::to_be_bytes).concat()].concat();
            transfer.take(false, flag::ACK, 1, seq(lost), Options::read(&block, false));
            if above == 4 {
                transfer.take(true, flag::ACK, seq(lost), 1, none);
            }
        } else {
            transfer.take(false, flag::ACK, 1, seq(acked), none);
        }
    }
    transfer.analysis.take_histories().remove(0)
}

#[test]
fn a_captured_flow_is_seen_in_a_browser() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !web.join("node_modules").exists() || !Path::new("/usr/bin/chromium").exists() {
        println!("skipped: needs web/node_modules and /usr/bin/chromium (packaging/setup.sh)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, title: &str, histories: &[History]| {
        let file = dir.path().join(name);
        fs::write(&file, interactive(title, histories).unwrap()).unwrap();
        file
    };
    let large = write("large.html", "flow 1", &[history(2_000_000)]);
    let mut other = history(500);
    other.flow = 2;
    let both = [history(3000), other];
    let small = write("small.html", "<img src=x onerror=alert(1)>", &both);
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", "test:capture"])
        .current_dir(web)
        .env("FATPATH_LARGE", large)
        .env("FATPATH_SMALL", small);
    let output = npm.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    println!("{said}");
}
