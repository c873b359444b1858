// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any pattern of losses, reordering and doubling delivers every byte once and in order, and ends.

use proptest::prelude::*;

use super::channel::{Channel, Fate};
use crate::{Buffer, DelayedAcks, Detection, Growth, TcpSpec, WindowReduction};

const MS: u64 = 1_000_000;

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Doubled),
        1 => (1u64..400).prop_map(|ms| Fate::Late(ms * MS)),
        1 => (1u64..1000).prop_map(|us| Fate::Late(us * 1000)),
    ]
}

fn spec() -> impl Strategy<Value = TcpSpec> {
    let buffer = prop_oneof![
        (1500u64..100_000).prop_map(Buffer::Fixed),
        (1500u64..100_000, 0u64..4_000_000)
            .prop_map(|(least, more)| Buffer::Auto(least, least + more)),
    ];
    let acks = prop_oneof![
        Just(DelayedAcks::Off),
        Just(DelayedAcks::On { max_ns: 40 * MS }),
        Just(DelayedAcks::QuickAtStart { max_ns: 200 * MS }),
    ];
    let detection = prop::sample::select(vec![
        Detection::Rack,
        Detection::Sack,
        Detection::Fack,
        Detection::NewReno,
        Detection::Reno,
    ]);
    let reduction = prop::sample::select(vec![
        WindowReduction::Prr,
        WindowReduction::AtOnce,
        WindowReduction::Rampdown,
    ]);
    let growth = prop::sample::select(vec![
        Growth::Segments,
        Growth::Acks,
        Growth::AppropriateBytes,
    ]);
    let drops = prop::collection::vec(0u64..60, 0..6);
    let recovery = (detection, 1u8..=16, reduction, growth, drops);
    let pace = prop::option::of(1_000_000u64..1_000_000_000);
    (
        buffer.clone(),
        buffer,
        acks,
        recovery,
        any::<bool>(),
        pace,
        any::<bool>(),
        prop_oneof![Just(0), 4u32..40],
        1u32..20,
        2u32..5,
    )
        .prop_map(
            |(
                send_buffer,
                receive_buffer,
                delayed_acks,
                (detection, sack_blocks, reduction, growth, drops),
                tail_loss_probe,
                pacing_rate_bps,
                pacing,
                max_burst_pkts,
                initial_window_pkts,
                dupthresh,
            )| TcpSpec {
                send_buffer,
                receive_buffer,
                delayed_acks,
                detection,
                sack_blocks,
                reduction,
                growth,
                drops,
                tail_loss_probe,
                pacing_rate_bps,
                pacing,
                max_burst_pkts,
                initial_window_pkts,
                dupthresh,
                ..TcpSpec::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        spec in spec(),
        segment_fates in prop::collection::vec(fate(), 1..300),
        ack_fates in prop::collection::vec(fate(), 1..100),
        writes in prop::collection::vec((1u64..200_000, 0u64..500), 1..4),
        segment_us in 0u64..500,
        queue_pkts in 5u64..200,
    ) {
        let mut channel = Channel::new(&spec, 50 * MS);
        (channel.segment_ns, channel.queue_pkts) = (segment_us * 1000, queue_pkts);
        // After the lists all arrives, so that it must end.
        channel.segment_fate = Box::new(move |n, _| segment_fates.get(n as usize).copied().unwrap_or(Fate::Arrives));
        channel.ack_fate = Box::new(move |n, _| ack_fates.get(n as usize).copied().unwrap_or(Fate::Arrives));
        channel.check = Box::new(|sender, receiver| {
            sender.check_counts();
            let waits = sender.next_timeout_ns().is_some();
            assert!(waits || sender.is_done(), "nothing is awaited: {sender:?}");
            assert!(sender.figures().acked_bytes <= receiver.delivered_bytes());
        });
        let mut written = 0;
        for (bytes, pause_ms) in writes {
            channel.write(bytes);
            written += bytes;
            channel.run(channel.now_ns + pause_ms * MS);
        }
        channel.run(3_600_000 * MS);
        prop_assert!(channel.sender.is_done(), "{:?}", channel.sender.figures());
        prop_assert_eq!(channel.receiver.delivered_bytes(), written);
        prop_assert_eq!(channel.sender.figures().acked_bytes, written);
        prop_assert_eq!(channel.sender.next_timeout_ns(), None);
    }
}
