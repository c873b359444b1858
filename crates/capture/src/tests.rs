// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole captures, made byte by byte: what the reader and the analysis say of them, and that hostile ones do no harm.

use crate::*;
use proptest::prelude::*;
use std::io::Read;
use std::net::Ipv4Addr;

const MS: i64 = 1_000_000;

/// A TCP segment over IPv4 from port `from` to `to`.
#[derive(Clone, Debug)]
struct Tcp {
    time_ns: i64,
    from: u16,
    to: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    payload_bytes: u16,
    options: Vec<u8>,
}

fn tcp(from: u16, to: u16, time_ms: i64) -> Tcp {
    Tcp {
        time_ns: time_ms * MS,
        from,
        to,
        seq: 0,
        ack: 0,
        flags: flag::ACK,
        window: 1000,
        payload_bytes: 0,
        options: Vec::new(),
    }
}

impl Tcp {
    fn packet(&self) -> Vec<u8> {
        let header_bytes = 20 + self.options.len() as u16;
        let [source, destination] =
            [self.from, self.to].map(|port| Ipv4Addr::from(u32::from(port)));
        let mut packet = vec![0x45, 0];
        packet.extend((20 + header_bytes + self.payload_bytes).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend(source.octets());
        packet.extend(destination.octets());
        packet.extend(self.from.to_be_bytes());
        packet.extend(self.to.to_be_bytes());
        packet.extend(self.seq.to_be_bytes());
        packet.extend(self.ack.to_be_bytes());
        packet.extend([((header_bytes / 4) << 4) as u8, self.flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(&self.options);
        packet.extend(vec![0; self.payload_bytes.into()]);
        packet
    }
}

fn raw(packet: &[u8], time_ns: i64) -> Frame<'_> {
    Frame {
        time_ns,
        link_type: 101,
        wire_bytes: packet.len() as u32,
        data: packet,
    }
}

fn analysed(segments: &[Tcp]) -> (Vec<Verdict>, Vec<Connection>) {
    let mut analysis = Analysis::new(Limits::default());
    let verdicts = segments.iter().map(|one| {
        let packet = one.packet();
        analysis.take(&raw(&packet, one.time_ns)).unwrap()
    });
    let verdicts = verdicts.collect();
    (verdicts, analysis.finish().0)
}

const CLIENT: u16 = 4000;
const SERVER: u16 = 80;
const MSS: [u8; 4] = [2, 4, 3, 232];
const SCALE: [u8; 4] = [3, 3, 7, 0];

/// A handshake over 50 ms, seen next to the client: MSS 1000, shift 7.
fn handshake() -> Vec<Tcp> {
    let syn = Tcp {
        flags: flag::SYN,
        options: [MSS, SCALE].concat(),
        ..tcp(CLIENT, SERVER, 0)
    };
    let syn_ack = Tcp {
        flags: flag::SYN | flag::ACK,
        ack: 1,
        seq: 100,
        ..syn.clone()
    };
    let syn_ack = Tcp {
        time_ns: 50 * MS,
        from: SERVER,
        to: CLIENT,
        ..syn_ack
    };
    vec![syn, syn_ack, ack_of_client(51)]
}

fn ack_of_client(time_ms: i64) -> Tcp {
    Tcp {
        seq: 1,
        ack: 101,
        ..tcp(CLIENT, SERVER, time_ms)
    }
}

fn data(seq: u32, time_ms: i64) -> Tcp {
    Tcp {
        seq,
        payload_bytes: 1000,
        ..ack_of_client(time_ms)
    }
}

fn ack(ack: u32, time_ms: i64) -> Tcp {
    Tcp {
        seq: 101,
        ack,
        ..tcp(SERVER, CLIENT, time_ms)
    }
}

#[test]
fn a_handshake_tells_its_times_and_where_the_capture_is() {
    let mut segments = handshake();
    segments.extend([data(1, 60), ack(1001, 110)]);
    let (_, connections) = analysed(&segments);
    let [one] = &connections[..] else {
        panic!("{connections:?}")
    };
    let handshake = one.handshake.unwrap();
    assert_eq!(handshake.rtt_us, Some(51_000.0));
    assert_eq!((one.near, one.ended), (Near::Client, Ended::No));
    let way = &one.from_client;
    assert_eq!(
        (way.acked_bytes, way.mss_bytes, way.window_scale),
        (1000, Some(1000), Some(7))
    );
    assert_eq!(one.from_server.window_max_bytes, 1000 << 7);
    assert_eq!(way.rtt.unwrap().samples, 2, "of the SYN and of the data");
}

#[test]
fn duplicate_acks_make_a_retransmission_fast_and_silence_makes_it_a_timeout() {
    let mut segments = handshake();
    segments.extend((0..5).map(|i| data(1 + i * 1000, 60)));
    segments.extend([
        ack(1001, 110),
        ack(1001, 111),
        ack(1001, 112),
        ack(1001, 113),
    ]);
    segments.extend([
        data(1001, 113),
        ack(5001, 163),
        data(5001, 164),
        data(5001, 600),
    ]);
    let (verdicts, connections) = analysed(&segments);
    let duplicates = verdicts.iter().filter(|v| v.is_duplicate_ack).count();
    assert_eq!(duplicates, 3);
    let kinds: Vec<_> = verdicts.iter().filter_map(|v| v.retransmission).collect();
    assert_eq!(kinds, [Retransmission::Fast, Retransmission::Timeout]);
    let way = &connections[0].from_client;
    assert_eq!((way.retransmitted_packets, way.unique_bytes), (2, 6000));
    assert_eq!(
        way.rtt.unwrap().samples,
        2,
        "none of what was sent again (Karn)"
    );
}

#[test]
fn what_is_in_flight_estimates_the_window_and_a_loss_ends_slow_start() {
    let mut segments = handshake();
    segments.extend((0..2).map(|i| data(1 + i * 1000, 60)));
    segments.push(ack(2001, 110));
    segments.extend((2..6).map(|i| data(1 + i * 1000, 111)));
    // The third segment is lost; what lies above the hole is not in flight any more.
    let sack = |end: u32, time_ms| Tcp {
        options: [
            &[1, 1, 5, 10][..],
            &3001_u32.to_be_bytes(),
            &end.to_be_bytes(),
        ]
        .concat(),
        ..ack(2001, time_ms)
    };
    segments.extend([sack(4001, 161), sack(5001, 161), sack(6001, 161)]);
    segments.extend([data(2001, 162), data(6001, 162)]);
    segments.push(ack(7001, 212));
    let (_, connections) = analysed(&segments);
    let way = &connections[0].from_client;
    assert_eq!(way.outstanding_max_bytes, 5000);
    assert_eq!(way.cwnd_estimate_max_bytes, 4000);
    assert_eq!(way.slow_start_bytes, Some(4000));
    assert_eq!(way.slow_start_us, Some(102_000.0));
}

#[test]
fn an_ack_without_outstanding_data_or_with_another_window_is_no_duplicate() {
    let mut segments = handshake();
    segments.extend([data(1, 60), ack(1001, 110), ack(1001, 111), data(1001, 112)]);
    let other = Tcp {
        window: 900,
        ..ack(1001, 113)
    };
    segments.push(other);
    let (verdicts, _) = analysed(&segments);
    assert!(verdicts.iter().all(|v| !v.is_duplicate_ack));
}

#[test]
fn a_hole_that_fills_soon_is_reordering_and_one_that_fills_late_a_loss_before_the_capture() {
    let mut segments = handshake();
    segments.extend([data(1, 60), data(2001, 61), data(3001, 61), data(1001, 62)]);
    segments.extend([data(5001, 63), data(4001, 200)]);
    let (verdicts, connections) = analysed(&segments);
    assert!(verdicts[6].is_out_of_order && verdicts[7].is_after_hole);
    assert!(verdicts[8].retransmission.is_some() && !verdicts[8].is_out_of_order);
    let way = &connections[0].from_client;
    assert_eq!((way.out_of_order, way.reordering_packets), (1, 2));
    assert_eq!(way.reordering_bytes, 3000);
}

#[test]
fn what_sack_reported_missing_and_nobody_sent_again_was_late() {
    let sack = |from: u32, to: u32| {
        let block = [from, to].map(u32::to_be_bytes).concat();
        [&[1, 1, 5, 10][..], &block].concat()
    };
    let reported = Tcp {
        options: sack(1001, 3001),
        ..ack(1, 110)
    };
    for (is_sent_again, late) in [(false, 1), (true, 0)] {
        let mut segments = handshake();
        segments.extend((0..3).map(|i| data(1 + i * 1000, 60)));
        segments.push(reported.clone());
        segments.extend(is_sent_again.then(|| data(1, 111)));
        segments.push(ack(3001, 165));
        let way = &analysed(&segments).1[0].from_client;
        assert_eq!(way.late_arrivals, late);
    }
}

#[test]
fn a_segment_that_follows_a_late_ack_was_held() {
    let mut segments = handshake();
    // In time, late and answered, late and not answered.
    segments.extend([data(1, 60), ack(1001, 110), data(1001, 110)]);
    segments.extend([ack(2001, 200), data(2001, 200), ack(3001, 290)]);
    segments.push(data(3001, 400));
    assert_eq!(analysed(&segments).1[0].from_client.held_segments, 1);
}

#[test]
fn a_closed_window_is_timed_and_probed() {
    let mut segments = handshake();
    let closed = Tcp {
        window: 0,
        ..ack(1001, 110)
    };
    let probe = Tcp {
        seq: 1000,
        ..ack_of_client(310)
    };
    let keep_alive = Tcp {
        time_ns: 900 * MS,
        ..probe.clone()
    };
    segments.extend([data(1, 60), closed, probe, ack(1001, 510), keep_alive]);
    let (verdicts, connections) = analysed(&segments);
    assert!(verdicts[4].is_zero_window && verdicts[5].is_window_probe);
    assert!(verdicts[7].is_keep_alive);
    let server = &connections[0].from_server;
    assert_eq!((server.zero_windows, server.zero_window_us), (1, 400_000.0));
}

#[test]
fn the_ends_of_connections() {
    let fin = |segment: Tcp| Tcp {
        flags: segment.flags | flag::FIN,
        ..segment
    };
    let reset = |segment: Tcp| Tcp {
        flags: flag::RST | flag::ACK,
        ..segment
    };
    let ended = |rest: Vec<Tcp>, begin: usize| {
        let segments = [handshake()[..begin].to_vec(), rest].concat();
        analysed(&segments).1[0].ended
    };
    assert_eq!(ended(vec![reset(ack(1, 50))], 1), Ended::Refused);
    assert_eq!(
        ended(vec![reset(ack_of_client(60))], 3),
        Ended::ResetByClient
    );
    assert_eq!(ended(vec![fin(ack_of_client(60))], 3), Ended::HalfClosed);
    assert_eq!(
        ended(vec![fin(ack_of_client(60)), fin(ack(2, 70))], 3),
        Ended::Closed
    );
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut segments = handshake();
    let again = handshake().into_iter().map(|segment| Tcp {
        seq: segment.seq.wrapping_add(50_000),
        time_ns: segment.time_ns + 1000 * MS,
        ..segment
    });
    segments.extend(again);
    assert_eq!(analysed(&segments).1.len(), 2);
    segments.truncate(3);
    segments.insert(1, segments[0].clone());
    let (verdicts, connections) = analysed(&segments);
    assert_eq!((connections.len(), verdicts[1].is_syn_again), (1, true));
}

#[test]
fn too_many_connections_push_out_the_longest_silent() {
    let limits = Limits {
        connections: 100,
        seed: 1,
        ..Limits::default()
    };
    let mut analysis = Analysis::new(limits);
    for port in 1..=10_000 {
        for segment in [
            tcp(port, SERVER, port.into()),
            tcp(20_000, SERVER, port.into()),
        ] {
            let packet = segment.packet();
            analysis.take(&raw(&packet, segment.time_ns));
        }
    }
    assert_eq!(analysis.counts().evicted, 10_001 - 100);
    let ended = analysis.take_ended();
    assert!(
        ended.iter().all(|c| c.client.socket().port() != 20_000),
        "it never was silent"
    );
    assert_eq!(ended.len() + analysis.finish().0.len(), 10_001);
}

#[test]
fn segments_that_wait_for_memory_are_judged_as_others() {
    // More connections than are followed at once, in turn.
    let of = |client: u16, segment: &Tcp| {
        let its = |port| if port == CLIENT { client } else { port };
        Tcp {
            from: its(segment.from),
            to: its(segment.to),
            time_ns: segment.time_ns + i64::from(client),
            ..segment.clone()
        }
    };
    let one = transfer();
    let turns = one
        .iter()
        .flat_map(|segment| (10_001..=11_500).map(move |client| of(client, segment)));
    let segments: Vec<Tcp> = turns.collect();
    let limits = Limits {
        connections: 1_400,
        ..Limits::default()
    };
    let judged = |take: fn(&mut Analysis, &Frame<'_>)| {
        let mut analysis = Analysis::new(limits).watching(&[1_200]);
        for segment in &segments {
            let packet = segment.packet();
            take(&mut analysis, &raw(&packet, segment.time_ns));
        }
        let histories = format!("{:?}", analysis.take_histories());
        let (connections, counts) = analysis.finish();
        (histories, format!("{connections:?} {counts:?}"))
    };
    let at_once = judged(|analysis, frame| {
        analysis.take(frame);
    });
    assert_eq!(
        judged(|analysis, frame| analysis.take_ahead(frame)),
        at_once
    );
}

#[test]
fn memory_is_bounded_in_bytes_whatever_connections_leave_outstanding() {
    let limits = Limits {
        bytes: 4 << 20,
        ..Limits::default()
    };
    let mut analysis = Analysis::new(limits);
    let mut most = 0;
    for port in 1..=200 {
        // Holes between all segments, none acknowledged.
        for i in 0..2000 {
            let segment = Tcp {
                from: port,
                ..data(1 + i * 2000, i64::from(port) * 1000)
            };
            let packet = segment.packet();
            analysis.take(&raw(&packet, segment.time_ns));
            most = most.max(analysis.held_bytes());
        }
    }
    assert!((2 << 20..=4 << 20).contains(&most), "{most}");
    assert!(analysis.counts().evicted > 100, "{:?}", analysis.counts());
    assert_eq!(analysis.take_ended().len() + analysis.finish().0.len(), 200);
}

#[test]
fn what_stays_outstanding_after_the_last_ack_is_not_in_the_mean() {
    let mut segments = handshake();
    // 1000 bytes for 50 of 100 ms; then nothing is answered for ten seconds.
    segments.extend([
        data(1, 100),
        ack(1001, 150),
        data(1001, 175),
        ack(2001, 200),
    ]);
    let (_, connections) = analysed(&segments);
    let mean = connections[0].from_client.outstanding_mean_bytes;
    assert_eq!(mean, 750.0);
    segments.extend([data(2001, 300), data(2001, 600), data(2001, 10_000)]);
    let (_, connections) = analysed(&segments);
    assert_eq!(connections[0].from_client.outstanding_mean_bytes, mean);
}

/// The packet in a frame of each link layer.
fn framed(link_type: i32, packet: &[u8]) -> Vec<u8> {
    let before: &[u8] = match link_type {
        0 | 108 => &[2, 0, 0, 0],
        1 => &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0],
        113 => &[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0],
        276 => &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => &[],
    };
    [before, packet].concat()
}

#[test]
fn each_link_layer_is_read() {
    let packet = data(1, 0).packet();
    let seen = |link_type: i32, data: &[u8]| {
        let frame = Frame {
            link_type,
            data,
            wire_bytes: data.len() as u32,
            time_ns: 0,
        };
        decode(&frame).map(|segment| (segment.payload_bytes, segment.source.socket().port()))
    };
    for link_type in [0, 1, 12, 101, 108, 113, 228, 276] {
        assert_eq!(
            seen(link_type, &framed(link_type, &packet)),
            Ok((1000, CLIENT)),
            "{link_type}"
        );
    }
    let tagged = |tags: &[u8]| [&[0; 12][..], tags, &[8, 0], &packet].concat();
    assert_eq!(seen(1, &tagged(&[0x81, 0, 0, 5])), Ok((1000, CLIENT)));
    assert_eq!(
        seen(1, &tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        Ok((1000, CLIENT))
    );
    assert_eq!(
        seen(1, &tagged(&[0x81, 0, 0, 5].repeat(9))),
        Err(NoSegment::Malformed)
    );
    assert_eq!(seen(147, &packet), Err(NoSegment::UnknownLink));
    assert_eq!(
        seen(1, &[[0; 12].as_slice(), &[8, 6]].concat()),
        Err(NoSegment::NotIp)
    );
    let mut fragment = packet.clone();
    fragment[6] = 0x20;
    assert_eq!(seen(101, &fragment), Err(NoSegment::Fragment));
    let mut udp = packet.clone();
    udp[9] = 17;
    assert_eq!(seen(101, &udp), Err(NoSegment::NotTcp));
    assert_eq!(seen(101, &packet[..30]), Err(NoSegment::CutShort));
    assert_eq!(
        seen(101, &packet[..40]),
        Ok((1000, CLIENT)),
        "the snaplen cut its data"
    );
}

/// An IPv4 packet of a protocol.
fn carrying(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let bytes = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, bytes[0], bytes[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&header[..], &[192, 0, 2, 1, 192, 0, 2, 2], payload].concat()
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let bytes = (8 + payload.len() as u16).to_be_bytes();
    let port = port.to_be_bytes();
    let header = [0x30, 0x39, port[0], port[1], bytes[0], bytes[1], 0, 0];
    carrying(17, &[&header[..], payload].concat())
}

#[test]
fn what_a_tunnel_carries_is_read_when_it_is_asked_for() {
    let packet = data(1, 0).packet();
    let frame = framed(1, &packet);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat();
    let gre = |header: &[u8], inner: &[u8]| carrying(47, &[header, inner].concat());
    let tunnels = [
        ("GRE", gre(&[0, 0, 8, 0], &packet)),
        (
            "with key and sequence",
            gre(&[0x30, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 2], &packet),
        ),
        ("bridged", gre(&[0, 0, 0x65, 0x58], &frame)),
        ("VXLAN", udp(4789, &vxlan)),
        ("IP in IP", carrying(4, &packet)),
        ("two", carrying(4, &udp(4789, &vxlan))),
    ];
    let seen = |packet: &[u8], is_asked: bool| match is_asked {
        true => decode_in_tunnels(&raw(packet, 0)),
        false => decode(&raw(packet, 0)),
    };
    let inside = Ok((1000, CLIENT));
    let of = |segment: Segment| (segment.payload_bytes, segment.source.socket().port());
    for (name, tunnel) in &tunnels {
        assert_eq!(seen(tunnel, false), Err(NoSegment::Tunnel), "{name}");
        assert_eq!(seen(tunnel, true).map(of), inside, "{name}");
        let cut = &tunnel[..tunnel.len() - 1000];
        assert_eq!(
            seen(cut, true).map(of),
            inside,
            "{name}: the snaplen cut its data"
        );
        for length in 0..tunnel.len() - 1000 {
            assert!(
                seen(&tunnel[..length], true).is_err(),
                "{name}: {length} bytes"
            );
        }
    }
    let many = (0..9).fold(packet, |inner, _| carrying(4, &inner));
    assert_eq!(seen(&many, true), Err(NoSegment::Malformed));
    let wireguard = udp(51_820, &[&[4, 0, 0, 0][..], &[9; 60]].concat());
    assert_eq!(seen(&wireguard, true), Err(NoSegment::Encrypted));
    assert_eq!(seen(&udp(53, &[4, 0, 0, 0]), true), Err(NoSegment::NotTcp));
}

#[test]
fn ipv6_is_read_behind_extension_headers() {
    let four = Tcp {
        flags: flag::SYN,
        ..data(7, 0)
    };
    let tcp = &four.packet()[20..];
    let mut six = vec![0x60, 0x20, 0, 0];
    six.extend((8 + tcp.len() as u16).to_be_bytes());
    six.extend([0, 64]);
    six.extend([[0xfd; 16], [0xfe; 16]].concat());
    // Hop-by-hop options, of padding.
    six.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    six.extend(tcp);
    let segment = decode(&raw(&six, 5)).unwrap();
    assert_eq!(
        (segment.seq, segment.payload_bytes, segment.time_ns),
        (7, 1000, 5)
    );
    assert!(segment.source.to_string().starts_with("[fdfd:"));
    assert_eq!((segment.ecn, segment.ip_id), (Ecn::Ect0, None));
}

/// Numbers in one of the two byte orders.
fn number32(value: u32, is_big: bool) -> [u8; 4] {
    if is_big {
        value.to_be_bytes()
    } else {
        value.to_le_bytes()
    }
}

fn number16(value: u16, is_big: bool) -> [u8; 2] {
    if is_big {
        value.to_be_bytes()
    } else {
        value.to_le_bytes()
    }
}

fn pcap(segments: &[Tcp], is_big: bool, is_nano: bool) -> Vec<u8> {
    let magic = if is_nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = number32(magic, is_big).to_vec();
    file.extend([number16(2, is_big), number16(4, is_big)].concat());
    file.extend([0, 0, 65_535, 101].map(|n| number32(n, is_big)).concat());
    for segment in segments {
        let packet = segment.packet();
        let (s, ns) = (
            segment.time_ns / 1_000_000_000,
            segment.time_ns % 1_000_000_000,
        );
        let fraction = if is_nano { ns } else { ns / 1000 };
        let length = packet.len() as u32;
        let header = [s as u32, fraction as u32, length, length];
        file.extend(header.map(|n| number32(n, is_big)).concat());
        file.extend(packet);
    }
    file
}

fn block(kind: u32, body: &[u8], is_big: bool) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = number32(12 + (body.len() + padding.len()) as u32, is_big);
    [&number32(kind, is_big), &length, body, &padding, &length].concat()
}

fn option(code: u16, value: &[u8], is_big: bool) -> Vec<u8> {
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    let length = number16(value.len() as u16, is_big);
    [&number16(code, is_big), &length, value, &padding].concat()
}

/// Of two interfaces: of microseconds and raw IP, and of nanoseconds and Ethernet; segments alternate.
fn pcapng(segments: &[Tcp], is_big: bool) -> Vec<u8> {
    let section = [
        &number32(0x1a2b_3c4d, is_big)[..],
        &number16(1, is_big),
        &number16(0, is_big),
        &[0xff; 8],
        &option(1, b"a \x1b[31mcomment", is_big),
        &[0; 4],
    ];
    let mut file = block(0x0a0d_0d0a, &section.concat(), is_big);
    for (link_type, resolution) in [(101, 6_u8), (1, 9)] {
        let body = [
            &number16(link_type, is_big)[..],
            &[0; 2],
            &number32(0, is_big),
            &option(9, &[resolution], is_big),
            &[0; 4],
        ];
        file.extend(block(1, &body.concat(), is_big));
    }
    for (i, segment) in segments.iter().enumerate() {
        let interface = i % 2;
        let frame = framed([101, 1][interface], &segment.packet());
        let ticks = segment.time_ns as u64 / [1000, 1][interface];
        let length = frame.len() as u32;
        let fields = [
            interface as u32,
            (ticks >> 32) as u32,
            ticks as u32,
            length,
            length,
        ];
        let mut body = fields.map(|n| number32(n, is_big)).concat();
        body.extend(frame);
        file.extend(block(6, &body, is_big));
    }
    file
}

/// Hands out as many bytes as the lengths say, again and again.
struct Pieces<'b> {
    bytes: &'b [u8],
    lengths: Vec<usize>,
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.lengths[self.next % self.lengths.len()].max(1);
        self.next += 1;
        let most = length.min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

/// All that a file says, and how reading it ended.
fn whole(input: impl Read) -> (Vec<Connection>, Counts, About, String) {
    let mut analysis = Analysis::new(Limits::default());
    let mut reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => {
            let (connections, counts) = analysis.finish();
            return (connections, counts, About::default(), error.to_string());
        }
    };
    let end = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => analysis.take(&frame),
            Ok(None) => break String::new(),
            Err(error) => break error.to_string(),
        };
    };
    let about = reader.about().clone();
    let (connections, counts) = analysis.finish();
    (connections, counts, about, end)
}

fn transfer() -> Vec<Tcp> {
    let mut segments = handshake();
    for i in 0..20 {
        let time_ms = 60 + i64::from(i) * 10;
        segments.extend([data(1 + i * 1000, time_ms), ack(1 + i * 1000, time_ms + 5)]);
    }
    segments
}

#[test]
fn both_formats_in_both_byte_orders_say_the_same() {
    let segments = transfer();
    let files = [
        pcap(&segments, false, false),
        pcap(&segments, true, false),
        pcap(&segments, false, true),
        pcap(&segments, true, true),
        pcapng(&segments, false),
        pcapng(&segments, true),
    ];
    let (expected, counts, _, end) = whole(&files[0][..]);
    assert_eq!((end.as_str(), counts.segments), ("", segments.len() as u64));
    assert_eq!(expected[0].from_client.data_packets, 20);
    for file in &files[1..] {
        let (connections, others, about, end) = whole(&file[..]);
        assert_eq!(
            (&connections, others, end.as_str()),
            (&expected, counts, "")
        );
        assert!(about.comments.len() < 2);
    }
    assert_eq!(whole(&files[5][..]).2.comments, ["a \u{1b}[31mcomment"]);
}

#[test]
fn a_file_that_is_cut_or_damaged_keeps_what_came_before() {
    let file = pcap(&transfer(), false, false);
    let (_, counts, _, end) = whole(&file[..file.len() - 10]);
    assert_eq!(counts.segments, transfer().len() as u64 - 1);
    assert!(end.contains("ends within a record"), "{end}");
    let mut damaged = file.clone();
    damaged[24 + 8..24 + 12].copy_from_slice(&[0xff; 4]);
    assert!(whole(&damaged[..]).3.contains("damaged at byte 24"));
    assert!(
        whole(&b"no capture at all, but a text"[..])
            .3
            .contains("neither")
    );
    assert!(whole(&b""[..]).3.contains("neither"));
}

#[test]
fn what_the_writer_writes_is_read() {
    let written = Written {
        application: "fatpath",
        comment: "headers",
        interface: "wan0",
        snaplen: 0,
    };
    let mut writer = Writer::new(Vec::new(), &written).unwrap();
    let segments = transfer();
    for segment in &segments {
        let packet = segment.packet();
        // The headers only.
        let kept = &packet[..packet.len() - usize::from(segment.payload_bytes)];
        writer
            .packet(segment.time_ns, packet.len() as u32, kept)
            .unwrap();
    }
    let bytes = writer.bytes();
    let file = writer.finish(0, 7).unwrap();
    assert!(bytes < file.len() as u64 && file.len() as u64 <= bytes + 40);
    let (connections, counts, about, end) = whole(&file[..]);
    let (expected, ..) = whole(&pcap(&segments, false, true)[..]);
    assert_eq!((connections, end.as_str()), (expected, ""));
    assert_eq!(counts.segments, segments.len() as u64);
    assert_eq!(
        (about.dropped_packets, about.comments),
        (Some(7), vec!["headers".to_owned()])
    );
    assert_eq!(about.interfaces, ["wan0"]);
}

fn any_segment() -> impl Strategy<Value = Tcp> {
    let near = prop_oneof![0_u32..8000, any::<u32>()];
    let numbers = (near.clone(), near, any::<u8>(), any::<u16>(), 0_u16..3000);
    let options = prop::collection::vec(any::<u8>(), 0..10);
    let time = prop_oneof![0_i64..1 << 34, any::<i64>()];
    (numbers, options, time, any::<bool>()).prop_map(|(numbers, options, time_ns, is_client)| {
        let (seq, ack, flags, window, payload_bytes) = numbers;
        let [from, to] = if is_client {
            [CLIENT, SERVER]
        } else {
            [SERVER, CLIENT]
        };
        Tcp {
            time_ns,
            from,
            to,
            seq,
            ack,
            flags,
            window,
            payload_bytes,
            options: options.repeat(4),
        }
    })
}

proptest! {
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..2000), format in 0..4) {
        let file = match format {
            0 => bytes,
            1 => [&pcap(&[], false, false), &bytes[..]].concat(),
            2 => [&pcapng(&[], true), &bytes[..]].concat(),
            _ => {
                let mut file = pcapng(&transfer(), false);
                for pair in bytes.chunks_exact(3).take(20) {
                    let at = usize::from(pair[0]) << 8 | usize::from(pair[1]);
                    let length = file.len();
                    file[at % length] = pair[2];
                }
                file
            }
        };
        whole(&file[..]);
    }

    /// Any order of times, numbers, flags and options.
    #[test]
    fn no_segments_do_harm(segments in prop::collection::vec(any_segment(), 0..80)) {
        let (verdicts, connections) = analysed(&segments);
        prop_assert_eq!(verdicts.len(), segments.len());
        let packets = connections.iter().map(|c| c.from_client.packets + c.from_server.packets);
        prop_assert_eq!(packets.sum::<u64>(), segments.len() as u64);
        for way in connections.iter().flat_map(|c| [&c.from_client, &c.from_server]) {
            let kinds = &way.retransmissions;
            let sum = kinds.fast + kinds.timeout + kinds.after_timeout + kinds.tail_loss_probe + kinds.unclear;
            prop_assert_eq!(sum, way.retransmitted_packets);
            prop_assert!(way.acked_bytes <= way.unique_bytes);
            prop_assert!(way.goodput_bps >= 0.0 && way.window_limited_us >= 0.0);
        }
    }

    #[test]
    fn how_the_input_is_cut_into_reads_changes_nothing(
        lengths in prop::collection::vec(1_usize..400, 1..20),
        is_ng in any::<bool>(),
        cut in 0_usize..60,
    ) {
        let file = if is_ng { pcapng(&transfer(), true) } else { pcap(&transfer(), false, true) };
        let file = &file[..file.len() - cut];
        let pieces = Pieces { bytes: file, lengths, next: 0 };
        prop_assert_eq!(whole(pieces), whole(file));
    }
}

/// A transfer of 200 segments as two captures have it: the second clock is 3 s ahead, 20 ms to the server and 30 ms back.
/// `cut` says how many segments a packet of the first capture has; `is_lost` which segments do not reach the second.
fn both_ends(cut: u32, is_lost: impl Fn(u32) -> bool) -> [Vec<Tcp>; 2] {
    let [mut near, mut far] = [Vec::new(), Vec::new()];
    let shifted = |segment: &Tcp, by_ms: i64| Tcp {
        time_ns: segment.time_ns + by_ms * MS,
        ..segment.clone()
    };
    for segment in handshake() {
        // The SYN-ACK is seen by the server first.
        let by_ms = if segment.from == CLIENT { 3020 } else { 2970 };
        far.push(shifted(&segment, by_ms));
        near.push(segment);
    }
    for first in (0..200).step_by(cut as usize) {
        let time_ms = 100 + i64::from(first);
        let packet = Tcp {
            payload_bytes: 1000 * cut as u16,
            ..data(1 + first * 1000, time_ms)
        };
        near.push(packet);
        let arrived = (first..first + cut).filter(|number| !is_lost(*number));
        far.extend(arrived.map(|number| data(1 + number * 1000, time_ms + 3020)));
        let answer = ack(1 + first * 1000, time_ms + 50);
        far.push(shifted(&answer, 2970));
        near.push(answer);
    }
    for capture in [&mut near, &mut far] {
        capture.push(ack(200_001, capture.last().unwrap().time_ns / MS + 100));
        capture.sort_by_key(|segment| segment.time_ns);
    }
    [near, far]
}

fn compared(captures: &[Vec<Tcp>; 2]) -> Compared {
    let connections = captures.each_ref().map(|one| analysed(one).1.remove(0));
    let known = [0, 1].map(|at| Known {
        connection: &connections[at],
        first_ns: captures[at].first().unwrap().time_ns,
        last_ns: captures[at].last().unwrap().time_ns,
    });
    let mut comparison = Comparison::new(known, 1).unwrap();
    let offset_ns = comparison.offset_ns();
    let segments = |at: usize| {
        let segments = captures[at]
            .iter()
            .map(|one| decode(&raw(&one.packet(), one.time_ns)));
        segments.map(Result::unwrap).collect::<Vec<Segment>>()
    };
    let first = segments(0)
        .into_iter()
        .map(|one| (one.time_ns, Capture::First, one));
    let second = segments(1).into_iter();
    let second = second.map(|one| (one.time_ns - offset_ns, Capture::Second, one));
    let mut all: Vec<_> = first.chain(second).collect();
    all.sort_by_key(|(time_ns, ..)| *time_ns);
    for (_, capture, segment) in &all {
        comparison.take(*capture, segment);
    }
    comparison.finish()
}

#[test]
fn two_captures_tell_losses_and_delays_whatever_their_clocks_and_offload() {
    let is_lost = |number: u32| number % 40 == 7;
    for cut in [1, 10] {
        let captures = both_ends(cut, is_lost);
        let one = compared(&captures);
        assert_eq!((one.nearer_client, one.round_trip_us), (1, Some(50_000.0)));
        // Half of the difference of 10 ms between the two ways is taken for the clock's.
        assert_eq!(one.clock_offset_us, Some(2_995_000.0));
        assert_eq!(one.clock_doubt_us, Some(25_000.0));
        let way = &one.from_client;
        assert_eq!((way.lost_segments, way.lost_bytes), (5, 5000), "{cut}");
        let places: Vec<i64> = way.lost.iter().map(|lost| lost.offset_bytes).collect();
        assert_eq!(places, [7000, 47_000, 87_000, 127_000, 167_000]);
        assert_eq!(way.delay.unwrap().median_us, 25_000.0);
        assert_eq!((way.added_segments, way.given_up), (0, 0));
        let [near, far] = captures;
        let other = compared(&[far, near]);
        assert_eq!(
            (other.nearer_client, other.from_client.lost_segments),
            (2, 5)
        );
        assert_eq!(other.clock_offset_us, Some(-2_995_000.0));
        assert_eq!(other.from_client.delay, one.from_client.delay);
    }
}

#[test]
fn what_was_sent_before_the_other_capture_began_is_not_lost() {
    let [near, far] = both_ends(1, |_| false);
    let late = far
        .into_iter()
        .filter(|one| one.time_ns >= 3200 * MS)
        .collect();
    let connections = [near.clone(), late];
    let one = compared(&connections);
    assert_eq!(one.from_client.lost_segments, 0);
    assert!(one.from_client.not_judged > 10, "{one:?}");
}

proptest! {
    #[test]
    fn each_byte_is_lost_or_arrives(lost in prop::collection::hash_set(0_u32..200, 0..60), cut in 1_u32..=4) {
        let cut = [1, 2, 5, 10][cut as usize - 1];
        let one = compared(&both_ends(cut, |number| lost.contains(&number)));
        prop_assert_eq!(one.from_client.lost_bytes, 1000 * lost.len() as u64);
        prop_assert_eq!(one.from_client.lost_segments, lost.len() as u64);
        prop_assert_eq!(one.from_client.added_bytes, 0);
    }

    #[test]
    fn captures_that_have_nothing_to_do_with_each_other_do_no_harm(
        captures in prop::collection::vec(
            (any::<bool>(), any::<bool>(), any::<u32>(), any::<u32>(), 0_u16..3000, any::<i64>()), 2..60)
    ) {
        let ends = |is_back: bool| if is_back { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
        let mut both = [handshake(), handshake()];
        for (is_second, is_back, seq, ack, payload_bytes, time_ns) in captures {
            let (from, to) = ends(is_back);
            both[usize::from(is_second)].push(Tcp { seq, ack, payload_bytes, time_ns, ..tcp(from, to, 0) });
        }
        let one = compared(&both);
        prop_assert!(one.from_client.lost_bytes <= one.from_client.sent_bytes);
    }
}
