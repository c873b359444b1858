// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow that only receives is sampled by what arrives.

use crate::support::path::over;
use crate::support::wire::transfer;
use crate::{LONG, Read, reading, sampling_in_turn};
use fatpath_api::{Sample, SampleKind};
use std::io::{Read as _, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);

fn intervals(read: &Read, flow: &TcpStream) -> Vec<Sample> {
    let mut samples = read.of(flow);
    samples.retain(|sample| sample.kind == SampleKind::Interval);
    samples
}

#[test]
fn while_data_arrives_a_receiver_is_sampled_once_an_interval() {
    let Some(loaded) = sampling_in_turn("interval = '100ms'") else {
        return;
    };
    over("receiver", &[], |path| {
        reading(&loaded.kernel, |read| {
            let (sender, receiver) = path.connection();
            let start = Instant::now();
            let (mut lasted, mut longest) = (Duration::ZERO, Duration::ZERO);
            while lasted < 20 * INTERVAL {
                transfer(&sender, &receiver, 20_000);
                longest = longest.max(start.elapsed() - lasted);
                lasted = start.elapsed();
            }
            let most = (lasted.as_secs_f64() / INTERVAL.as_secs_f64()) as usize + 1;
            // What is sampled is the first read behind an interval, which may last a transfer longer at either end, and a jiffy.
            let each = INTERVAL + 2 * longest + Duration::from_millis(10);
            let least = ((lasted.as_secs_f64() / each.as_secs_f64()) as usize).saturating_sub(2);
            let end = Instant::now() + LONG;
            let samples = loop {
                let samples = intervals(read, &receiver);
                if samples.len() >= least {
                    break samples;
                }
                assert!(Instant::now() < end, "{} of {least}", samples.len());
                std::thread::sleep(Duration::from_millis(10));
            };
            assert!(samples.len() <= most, "{} of {most}", samples.len());
            assert!(samples.is_sorted_by(|a, b| a.bytes_received < b.bytes_received));
            assert!(samples.iter().all(|s| s.bytes_sent == 0 && s.is_tracked));
        });
    });
}

#[test]
fn a_request_of_a_few_segments_is_no_reason() {
    let Some(loaded) = sampling_in_turn("interval = '1ms'") else {
        return;
    };
    over("request", &[], |path| {
        reading(&loaded.kernel, |read| {
            let (mut sender, mut receiver) = path.connection();
            sender.set_nodelay(true).unwrap();
            for _ in 0..4 {
                // It began, and what it read before was, more than a jiffy ago.
                std::thread::sleep(Duration::from_millis(30));
                sender.write_all(&[7]).unwrap();
                receiver.read_exact(&mut [0]).unwrap();
            }
            let is_interval = |s: &Sample| s.kind == SampleKind::Interval;
            let first = read.until(&receiver, "a sample", is_interval);
            // Or more, where one came twice.
            assert!(first.data_segs_in >= 4, "{first:?}");
        });
    });
}
