// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each event of a flow, with its cause made on purpose.

use crate::support::path::over;
use crate::support::wire::transfer;
use crate::{LONG, publish, reading, sampling_in_turn, walked};
use fatpath_api::{CaState, Sample, SampleKind};
use fatpath_emulator::CellSpec;
use fatpath_link::{LossSpec, ReorderSpec};
use fatpath_policy::parse;
use socket2::{Domain, Socket, Type};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

const ALL: &str = "interval = '100ms'";

fn kinds(samples: &[Sample], kind: SampleKind) -> Vec<&Sample> {
    samples.iter().filter(|s| s.kind == kind).collect()
}

#[test]
fn a_flow_begins_is_sampled_by_its_round_trips_and_ends() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    over("begin", &[], |path| {
        reading(&loaded.kernel, |read| {
            let (sender, receiver) = path.connection();
            let begin = read.until(&sender, "its begin", |s| s.kind == SampleKind::Begin);
            let accepted = read.until(&receiver, "its begin", |s| s.kind == SampleKind::Begin);
            assert!(!begin.flow.is_passive && accepted.flow.is_passive);
            assert!(begin.is_tracked && !begin.flow.is_adopted);
            assert_eq!((begin.bytes_sent, begin.flow.rule_id), (0, None));
            let start = Instant::now();
            for _ in 0..20 {
                transfer(&sender, &receiver, 10_000);
            }
            let lasted_ms = start.elapsed().as_millis() as usize;
            let samples = read.of(&sender);
            let intervals = kinds(&samples, SampleKind::Interval);
            assert!(!intervals.is_empty());
            assert!(intervals.len() <= lasted_ms / 100 + 1, "{lasted_ms} ms");
            let apart_ns = intervals.windows(2).map(|w| w[1].now_ns - w[0].now_ns);
            // The kernel's clock of an acknowledgement is a little before the sample's.
            assert!(apart_ns.min().is_none_or(|apart| apart > 95_000_000));
            assert!(
                intervals
                    .iter()
                    .all(|s| s.rtt_us.is_some_and(|rtt| rtt >= 20_000))
            );
            let ends = [sender.try_clone().unwrap(), receiver.try_clone().unwrap()];
            drop((sender, receiver));
            for end in &ends {
                // Both descriptors are closed only when the clones are: shut it down instead.
                let _ = end.shutdown(std::net::Shutdown::Both);
            }
            let last = read.until(&ends[0], "its end", |s| s.kind == SampleKind::End);
            assert_eq!(last.bytes_acked, 200_000 + 2, "data, SYN and FIN");
            assert_eq!(last.begin_ns, begin.begin_ns);
            assert!(last.count_rtt >= 20 && last.sum_rtt_us >= 20 * 20_000);
        });
    });
}

/// It has no storage, and its place is free for others when its end is told.
#[test]
fn the_end_of_a_flow_without_data_has_its_rule() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    let rule = "[[rule]]\nname = 'r'\ndestination = ['127.0.25.1']\nsend_buffer = 30000\n";
    publish(&loaded.kernel, &parse(rule, None).unwrap());
    let any_port = SocketAddr::from((Ipv4Addr::new(127, 0, 25, 1), 0));
    let listener = TcpListener::bind(any_port).unwrap();
    let to = listener.local_addr().unwrap();
    reading(&loaded.kernel, |read| {
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        client.bind(&any_port.into()).unwrap();
        client.connect(&to.into()).unwrap();
        let (accepted, local) = listener.accept().unwrap();
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        // The client's end comes before the RST that ends this one.
        read.until(&accepted, "its end", |s| s.kind == SampleKind::End);
        let mut samples = read.samples.lock().unwrap().clone();
        samples.retain(|s| s.flow.local == local || s.flow.remote == local);
        let seen: Vec<_> = samples.iter().map(|s| (s.kind, s.flow.rule_id)).collect();
        assert_eq!(seen.len(), 4, "{seen:?}");
        assert!(seen.iter().all(|(_, rule)| rule.is_some()), "{seen:?}");
        assert!(samples.iter().all(|s| s.extremes.is_some()));
    });
}

#[test]
fn a_lost_segment_is_one_congestion_signal_and_one_retransmission() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    let one = CellSpec::Loss(LossSpec::Packets {
        flow: None,
        packets: vec![100],
    });
    over("loss", &[one], |path| {
        reading(&loaded.kernel, |read| {
            let (sender, receiver) = path.connection();
            transfer(&sender, &receiver, 1_000_000);
            let is_signal = |s: &Sample| s.kind == SampleKind::Congestion;
            let signal = read.until(&sender, "the signal", is_signal);
            assert_eq!(signal.ca_state, CaState::Recovery);
            assert_eq!((signal.cong_signals, signal.timeouts), (1, 0));
            let before_pkts = signal.pre_cong_sum_cwnd_pkts;
            let after_pkts = signal.post_cong_sum_ssthresh_pkts;
            assert!(before_pkts > after_pkts && after_pkts >= 2);
            assert_eq!(Some(after_pkts), signal.ssthresh_pkts.map(u64::from));
            assert!((20_000..2_000_000).contains(&signal.pre_cong_sum_rtt_us));
            let again = |s: &Sample| s.kind == SampleKind::Retransmission;
            assert!(read.until(&sender, "it again", again).segs_retrans >= 1);
            let is_open = |s: &Sample| s.cong_signals == 1 && s.ca_state == CaState::Open;
            transfer(&sender, &receiver, 1_000_000);
            read.until(&sender, "the end of recovery", is_open);
            assert_eq!(kinds(&read.of(&sender), SampleKind::Congestion).len(), 1);
            assert!(kinds(&read.of(&receiver), SampleKind::Congestion).is_empty());
        });
    });
}

#[test]
fn a_dead_path_is_timeouts_and_the_flow_goes_on_after_it() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    over("dead", &[], |path| {
        reading(&loaded.kernel, |read| {
            let (mut sender, receiver) = path.connection();
            transfer(&sender, &receiver, 100_000);
            path.change(&[CellSpec::Loss(LossSpec::Independent { probability: 1.0 })]);
            sender.write_all(&[7; 50_000]).unwrap();
            let second = |s: &Sample| s.subsequent_timeouts >= 1;
            let second = read.until(&sender, "a second timeout", second);
            assert_eq!((second.kind, second.timeouts), (SampleKind::Timeout, 1));
            assert!(second.backoff >= 1 && second.retransmits >= 1);
            let samples = read.of(&sender);
            let signals = kinds(&samples, SampleKind::Congestion);
            let lost: Vec<_> = signals
                .iter()
                .filter(|s| s.ca_state == CaState::Loss)
                .collect();
            assert_eq!(lost.len(), 1, "only the first lowers ssthresh");
            path.change(&[]);
            let mut rest = vec![0; 50_000];
            std::io::Read::read_exact(&mut &receiver, &mut rest).unwrap();
            transfer(&sender, &receiver, 100_000);
            let is_open = |s: &Sample| s.ca_state == CaState::Open && s.timeouts == 1;
            read.until(&sender, "an open window", is_open);
        });
    });
}

#[test]
fn reordering_is_disorder_and_no_signal() {
    let Some(loaded) = sampling_in_turn("interval = '1ms'") else {
        return;
    };
    let swap = CellSpec::Reorder(ReorderSpec {
        probability: 0.05,
        displacement_packets: 2,
        hold_limit_ns: 1_000_000,
    });
    over("order", &[swap], |path| {
        reading(&loaded.kernel, |read| {
            let (sender, receiver) = path.connection();
            let end = Instant::now() + LONG;
            while read.of(&sender).iter().all(|s| s.reord_seen == 0) {
                assert!(Instant::now() < end, "waited for reordering");
                transfer(&sender, &receiver, 200_000);
            }
            let samples = read.of(&sender);
            let states = kinds(&samples, SampleKind::State);
            assert!(states.iter().any(|s| s.ca_state == CaState::Disorder));
            // It has no round trips of its own.
            assert!(walked(&loaded.kernel, &receiver).rcv_ooopack > 0);
        });
    });
}

#[test]
fn only_laws_of_ours_count_acknowledgements() {
    let Some(loaded) = sampling_in_turn(ALL) else {
        return;
    };
    over("acks", &[], |path| {
        let (sender, receiver) = path.connection();
        transfer(&sender, &receiver, 300_000);
        let plain = walked(&loaded.kernel, &sender);
        assert_eq!((plain.law.as_str(), plain.slow_start_acks), ("reno", None));
        let rule = "[[rule]]\nname = 'r'\ndestination = ['10.99.0.2']\n\
                    congestion_control = 'fp_reno'\ninitial_ssthresh = 40\n";
        publish(&loaded.kernel, &parse(rule, None).unwrap());
        let (sender, receiver) = path.connection();
        transfer(&sender, &receiver, 1_000_000);
        let ours = walked(&loaded.kernel, &sender);
        assert_eq!(ours.law, "fp_reno");
        assert!(ours.slow_start_acks.is_some_and(|acks| acks >= 5));
        assert!(ours.cong_avoid_acks.is_some_and(|acks| acks >= 5));
    });
}
