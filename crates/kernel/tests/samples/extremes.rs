// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maxima and minima of a flow: they stay when the state that made them has passed.

use crate::support::path::{Path, over};
use crate::support::wire::transfer;
use crate::{LONG, reading, sampling_in_turn, try_walked, walked};
use fatpath_api::{CaState, Extremes, Sample, SampleKind};
use fatpath_emulator::CellSpec;
use fatpath_kernel::Kernel;
use fatpath_link::LossSpec;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const ALL: &str = "interval = '100ms'";

fn extremes(sample: &Sample) -> Extremes {
    sample.extremes.unwrap()
}

/// Walks until a sample of the flow is like this.
fn walked_until(kernel: &Kernel, flow: &TcpStream, is: impl Fn(&Sample) -> bool) -> Sample {
    let end = Instant::now() + LONG;
    loop {
        let sample = try_walked(kernel, flow);
        if let Some(sample) = sample.clone().filter(&is) {
            return sample;
        }
        assert!(Instant::now() < end, "{sample:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_windows_before_and_after_a_loss_stay_known() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    let one = CellSpec::Loss(LossSpec::Packets {
        flow: None,
        packets: vec![100],
    });
    over("extremes", &[one], |path| {
        reading(&loaded.kernel, |read| {
            let (sender, receiver) = path.connection();
            transfer(&sender, &receiver, 1_000_000);
            let is_signal = |s: &Sample| s.kind == SampleKind::Congestion;
            let signal = read.until(&sender, "the signal", is_signal);
            let lost_at_pkts = u32::try_from(signal.pre_cong_sum_cwnd_pkts).unwrap();
            let at_signal = extremes(&signal);
            assert_eq!(at_signal.max_ss_cwnd_pkts, Some(lost_at_pkts));
            assert_eq!(at_signal.max_ca_cwnd_pkts, None);
            assert_eq!(at_signal.max_ssthresh_pkts, signal.ssthresh_pkts);
            assert_eq!(at_signal.min_ssthresh_pkts, signal.ssthresh_pkts);
            transfer(&sender, &receiver, 1_000_000);
            let is_quiet = |s: &Sample| s.packets_out == 0 && s.ca_state == CaState::Open;
            let quiet = walked_until(&loaded.kernel, &sender, is_quiet);
            let x = extremes(&quiet);
            assert_eq!(x.max_ss_cwnd_pkts, Some(lost_at_pkts));
            assert!(x.max_ca_cwnd_pkts >= signal.ssthresh_pkts, "{x:?}");
            assert!(x.max_retx_queue_pkts >= lost_at_pkts / 2, "{x:?}");
            let pipe_pkts = x.max_pipe_bytes / u64::from(quiet.mss_bytes);
            assert!(pipe_pkts >= u64::from(lost_at_pkts / 2), "{x:?}");
            assert!(pipe_pkts <= x.max_retx_queue_pkts.into(), "{x:?}");
            assert!(quiet.unsent_bytes == 0 && x.max_app_wqueue_bytes > 0);
            assert_eq!(
                (x.min_mss_bytes, x.max_mss_bytes),
                (quiet.mss_bytes, quiet.mss_bytes)
            );
            assert!((x.min_rto_us..=x.max_rto_us).contains(&quiet.rto_us));
        });
    });
}

#[test]
fn the_queues_of_a_receiver_stay_known_when_they_are_empty() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    over("queues", &[], |path| {
        let (mut sender, mut receiver) = path.connection();
        let kernel = &loaded.kernel;
        let is_there = |s: &Sample| s.unread_bytes == 10_000;
        sender.write_all(&[7; 10_000]).unwrap();
        let full = walked_until(kernel, &receiver, is_there);
        receiver.read_exact(&mut [0; 10_000]).unwrap();
        path.change(&[CellSpec::Loss(LossSpec::Independent { probability: 0.3 })]);
        let gap_bytes = gap_of(kernel, path, &sender, &receiver);
        let after = walked(kernel, &receiver);
        assert_eq!((after.unread_bytes, after.reasm_queue_bytes), (0, 0));
        let x = extremes(&after);
        assert!(x.max_app_rqueue_bytes >= 10_000);
        assert!(x.max_reasm_queue_bytes >= gap_bytes, "{x:?}");
        assert!(x.max_rwin_sent_bytes >= full.receive_window_bytes);
    });
}

/// What a gap in what arrived has held back, before all of it has arrived.
fn gap_of(kernel: &Kernel, path: &Path, sender: &TcpStream, receiver: &TcpStream) -> u32 {
    std::thread::scope(|scope| {
        let all = scope.spawn(|| transfer(sender, receiver, 300_000));
        let has_gap = |s: &Sample| s.reasm_queue_bytes > 0;
        let bytes = walked_until(kernel, receiver, has_gap).reasm_queue_bytes;
        path.change(&[]);
        all.join().unwrap();
        bytes
    })
}

#[test]
fn the_longest_timeout_is_that_of_the_dead_path() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    over("longest", &[], |path| {
        reading(&loaded.kernel, |read| {
            let (mut sender, mut receiver) = path.connection();
            transfer(&sender, &receiver, 100_000);
            path.change(&[CellSpec::Loss(LossSpec::Independent { probability: 1.0 })]);
            sender.write_all(&[7; 10_000]).unwrap();
            let is_first = |s: &Sample| s.kind == SampleKind::Timeout && s.timeouts == 1;
            let first = read.until(&sender, "a timeout", is_first);
            let is_second = |s: &Sample| s.subsequent_timeouts == 1;
            read.until(&sender, "a second timeout", is_second);
            path.change(&[]);
            receiver.read_exact(&mut [0; 10_000]).unwrap();
            transfer(&sender, &receiver, 100_000);
            let is_short = |s: &Sample| s.backoff == 0 && s.rto_us < 2 * first.rto_us;
            let x = extremes(&walked_until(&loaded.kernel, &sender, is_short));
            assert!(x.max_rto_us >= 2 * first.rto_us, "{x:?}");
            assert!(x.min_rto_us <= first.rto_us, "{x:?}");
        });
    });
}
