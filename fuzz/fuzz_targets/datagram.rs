// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport's ends against arbitrary datagrams: as they come, which changes nothing, and as frames that a peer with
//! the keys sealed, which never panic; what is read of a frame is written the same again.
#![no_main]

use fatpath_transport::frame::{AckFrame, Data, Write, push_run, push_segment};
use fatpath_transport::{Ecn, Extent, HEADER_BYTES, Kind, Receiver, Run, Secret, Sender, Spec};
use libfuzzer_sys::fuzz_target;

const MS: u64 = 1_000_000;

fuzz_target!(|frames: Vec<(u8, Vec<u8>)>| {
    let spec = Spec { datagram_bytes: 1232, search: Some(1232..=8952), ..Spec::default() };
    let flow = || Secret::agree(&[7; 32], &[8; 32]).next_flow().expect("the first of many");
    let mut sealers = [flow().of_sender(spec.cipher).0, flow().of_receiver(spec.cipher).0];
    let mut sender = Sender::new(&spec, flow(), MS, 0).expect("the default is in range");
    let mut receiver = Receiver::new(&spec, flow(), MS, 0).expect("the default is in range");
    let (object, offset, bytes) = (0, 0, 1 << 20);
    sender.send(Extent { object, offset, bytes });
    let mut now_ns = 0;
    for (what, frame) in frames.iter().filter(|(_, frame)| frame.len() < 60_000) {
        now_ns += u64::from(*what) * MS;
        check_frame(frame);
        let before = format!("{sender:?} {receiver:?}");
        assert!(sender.handle_datagram(now_ns, &mut frame.clone()).is_err());
        assert!(receiver.handle_datagram(now_ns, Ecn::Marked, &mut frame.clone()).is_err());
        assert_eq!(format!("{sender:?} {receiver:?}"), before);
        let kinds = [Kind::Data, Kind::Probe, Kind::Ack, Kind::Close, Kind::Hello, Kind::Size, Kind::Sized];
        let kind = kinds[usize::from(what % 8).min(6)];
        let mut datagram = [&[0; HEADER_BYTES], &frame[..]].concat();
        let of_acks = usize::from(what / 8 % 2);
        sealers[of_acks].seal(kind, &mut datagram, 0).expect("few were sealed");
        let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Marked][usize::from(what / 16 % 3)];
        match of_acks {
            0 => drop(receiver.handle_datagram(now_ns, ecn, &mut datagram).map(|received| received.writes.count())),
            _ => drop(sender.handle_datagram(now_ns, &mut datagram)),
        }
        move_on(now_ns, &mut sender, &mut receiver);
    }
});

fn move_on(now_ns: u64, sender: &mut Sender, receiver: &mut Receiver) {
    if sender.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
        sender.handle_timeout(now_ns);
    }
    if receiver.poll_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
        receiver.handle_timeout(now_ns);
    }
    let mut datagram = Vec::new();
    while sender.poll_transmit(now_ns, &mut datagram, |_, _| Ok::<(), ()>(())) == Ok(true) {
        datagram.clear(); // a probe of the path's MTU comes alone
    }
    while receiver.poll_transmit(now_ns, &mut datagram) == Ok(true) {}
}

fn check_frame(frame: &[u8]) {
    let mut again = Vec::new();
    if let Some(data) = Data::decode(frame) {
        push_segment(&mut again, data.segment);
        for Write { object, offset, bytes } in data.writes {
            let run = Run { object, offset, bytes: bytes.len() as u16 };
            push_run(&mut again, &run).copy_from_slice(bytes);
        }
        assert_eq!(again, frame);
    }
    again.clear();
    if let Some(ack) = AckFrame::decode(frame) {
        ack.push(&mut again);
        assert_eq!(again, frame);
    }
}
