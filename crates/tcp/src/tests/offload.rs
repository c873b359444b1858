// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts of what is given to a device at once.

use super::super::Sender;
use super::acks::{ack, send_all};
use crate::{Buffer, TcpSpec};

const RTT_NS: u64 = 20_000_000;
/// Of a segment at 500 Mb/s.
const GAP_NS: u64 = 24_000;

/// A sender whose first window has left at 0.
fn sender(offload: bool, window_pkts: u32) -> Sender {
    let spec = TcpSpec {
        offload,
        initial_window_pkts: window_pkts,
        send_buffer: Buffer::Fixed(1 << 28),
        ..TcpSpec::default()
    };
    let mut sender = Sender::new(&spec, RTT_NS, 0);
    sender.set_peer_window(1 << 28);
    sender.write(1 << 28);
    assert_eq!(send_all(&mut sender, 0), window_pkts as usize);
    sender
}

/// What leaves at each acknowledgement of one segment more, the first of which comes after `rtt_ns`.
fn sent_by_acks(sender: &mut Sender, rtt_ns: u64, acks: u64) -> Vec<usize> {
    let sent = (1..=acks).map(|next| {
        let now_ns = rtt_ns + next * GAP_NS;
        sender.handle_ack(now_ns, &ack(now_ns, next, &[]));
        send_all(sender, now_ns)
    });
    sent.collect()
}

/// 100 segments of 1448 bytes in 20 ms, twice of which is the rate in slow start: ten in 1.024 ms, and more as the window grows.
/// After a pause nothing waits.
#[test]
fn acknowledgements_wait_until_a_millisecond_of_the_pace_may_leave() {
    let sent = sent_by_acks(&mut sender(true, 100), RTT_NS, 20);
    assert_eq!(sent[..11], [2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 10]);
    let plain = sent_by_acks(&mut sender(false, 100), RTT_NS, 20);
    assert!(plain.iter().all(|pkts| *pkts == 2), "{plain:?}");
}

#[test]
fn nothing_waits_where_the_pace_is_slow() {
    let sent = sent_by_acks(&mut sender(true, 10), RTT_NS, 5);
    assert_eq!(sent, [2; 5]);
}

/// A path that has become much shorter: the next acknowledgement is not expected for milliseconds.
#[test]
fn nothing_waits_for_an_acknowledgement_that_is_far() {
    let sent = sent_by_acks(&mut sender(true, 100), RTT_NS / 2, 5);
    assert_eq!(sent, [2; 5]);
}

/// While it holds a burst back, the window is in use: else it would not grow.
#[test]
fn a_window_that_holds_a_burst_back_grows() {
    let mut sender = sender(true, 100);
    sent_by_acks(&mut sender, RTT_NS, 4);
    assert_eq!(sender.figures().cwnd_pkts, 104);
}
