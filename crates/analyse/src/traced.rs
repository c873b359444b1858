// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--trace`: what the sender's kernel said of a flow, by the files of `fatpath trace`, laid over what the capture shows.

use anyhow::{Result, bail};
use fatpath_capture::{Beside, History, KernelSaid, Medians, Point, Way};
use fatpath_record::{Traced, read};
use fatpath_table::write_table;
use fatpath_units::show_time;
use serde::Serialize;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What the kernel said beside what the capture shows of one direction.
#[derive(Serialize)]
pub struct Laid {
    flow: u64,
    /// Whose data it is about: `client` or `server`.
    from: &'static str,
    /// The traced flow's.
    cookie: u64,
    /// Its congestion control at the end.
    law: String,
    #[serde(flatten)]
    beside: Beside,
}

/// Gives each direction what its sender's kernel said, and compares.
///
/// # Errors
/// If a file is no trace, or has none of these connections.
pub fn lay(histories: &mut [History], files: &[PathBuf]) -> Result<Vec<Laid>> {
    let mut flows = Vec::new();
    for file in files {
        flows.extend(read(file)?);
    }
    let mut laid = Vec::new();
    for history in histories.iter_mut() {
        let ends = [history.client, history.server].map(|end| end.socket());
        let (flow, reverse) = (history.flow, [ends[1], ends[0]]);
        let ways = [
            ("client", ends, &mut history.from_client),
            ("server", reverse, &mut history.from_server),
        ];
        let laid_over = ways
            .into_iter()
            .filter_map(|(from, ends, way)| lay_over(flow, from, ends, way, &flows));
        laid.extend(laid_over);
    }
    if laid.is_empty() {
        bail!(
            "no trace has samples of these connections while they were captured: `fatpath trace --out DIR` beside the \
             capture, on the host that sends"
        );
    }
    Ok(laid)
}

/// None where nothing was traced while this direction sent data.
fn lay_over(
    flow: u64,
    from: &'static str,
    ends: [SocketAddr; 2],
    way: &mut Way,
    flows: &[Traced],
) -> Option<Laid> {
    let is_it = |traced: &&Traced| traced.ends == Some(ends);
    let (first_ns, last_ns) = (way.acked.first()?.time_ns, way.acked.last()?.time_ns);
    // The ports may have served another connection before.
    let during = |traced: &&Traced| said(traced, first_ns, last_ns).cwnd.len();
    let one = flows.iter().filter(is_it).max_by_key(during)?;
    let same = flows
        .iter()
        .filter(is_it)
        .filter(|other| other.cookie == one.cookie);
    let mut kernel = KernelSaid::default();
    // A long trace has several files.
    for part in same {
        let part = said(part, first_ns, last_ns);
        kernel.cwnd.extend(part.cwnd);
        kernel.in_flight.extend(part.in_flight);
        kernel.srtt.extend(part.srtt);
        kernel.mss_bytes = part.mss_bytes;
        kernel.retransmitted_packets += part.retransmitted_packets;
    }
    if !way.has_data() || kernel.cwnd.is_empty() {
        return None;
    }
    way.kernel = kernel;
    Some(Laid {
        flow,
        from,
        cookie: one.cookie,
        law: one.law.clone(),
        beside: way.beside_kernel(),
    })
}

/// The samples between two times.
fn said(traced: &Traced, first_ns: i64, last_ns: i64) -> KernelSaid {
    let time_ns = |t_s: f64| {
        let since_us = (t_s * 1e6) as i64;
        traced
            .begin_us
            .saturating_add(since_us)
            .saturating_mul(1000)
    };
    let mss_bytes = i64::from(traced.mss_bytes);
    let mut said = KernelSaid {
        mss_bytes: traced.mss_bytes,
        ..KernelSaid::default()
    };
    for point in &traced.points {
        let time_ns = time_ns(point.t_s);
        if !(first_ns..=last_ns).contains(&time_ns) {
            continue;
        }
        // What the first says was sent again before it.
        if !said.cwnd.is_empty() {
            said.retransmitted_packets += point.retransmitted_pkts;
        }
        let point_of = |value| Point { time_ns, value };
        said.cwnd
            .push(point_of(i64::from(point.cwnd_pkts) * mss_bytes));
        said.in_flight
            .push(point_of(i64::from(point.in_flight_pkts) * mss_bytes));
        if point.srtt_us > 0 {
            said.srtt.push(point_of(i64::from(point.srtt_us) * 1000));
        }
    }
    said
}

pub fn print(laid: &[Laid], out: &mut impl Write) -> io::Result<()> {
    for one in laid {
        writeln!(
            out,
            "\nflow {}, data of the {}: the kernel's samples (cookie {}, {}) beside the capture, medians",
            one.flow, one.from, one.cookie, one.law
        )?;
        let header = ["", "KERNEL", "CAPTURE", "APART", "SAMPLES"].map(str::to_owned);
        write_table(out, header, rows(&one.beside).into_iter())?;
    }
    Ok(())
}

fn rows(beside: &Beside) -> Vec<[String; 5]> {
    let row = |name: &str, medians: Option<Medians>, show: fn(f64) -> String| {
        let shown = |of: fn(&Medians) -> f64| medians.map_or("-".to_owned(), |m| show(of(&m)));
        [
            name.to_owned(),
            shown(|m| m.kernel),
            shown(|m| m.capture),
            shown(|m| m.apart),
            medians.map_or(0, |m| m.samples).to_string(),
        ]
    };
    let bytes = |bytes: f64| format!("{} B", bytes.round());
    let time = |us: f64| show_time(us.round() as u64);
    let (kernel, capture) = (beside.retransmitted_kernel, beside.retransmitted_capture);
    vec![
        row("smoothed round trip", beside.srtt_us, time),
        row("in flight", beside.in_flight_bytes, bytes),
        row("congestion window, estimated", beside.cwnd_bytes, bytes),
        [
            "segments sent again".to_owned(),
            kernel.to_string(),
            capture.to_string(),
            kernel.abs_diff(capture).to_string(),
            String::new(),
        ],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::Point as Sampled;
    use fatpath_capture::{Analysis, Ecn, End, Limits, Options, Segment, flag};

    const CLIENT: &str = "10.0.0.1:4000";
    const SERVER: &str = "10.0.0.2:80";
    const BEGIN_US: i64 = 1_000_000;

    /// Twenty segments, one each 10 ms, acknowledged 50 ms later.
    fn history() -> History {
        let end = |text: &str| {
            let socket: SocketAddr = text.parse().unwrap();
            End::new(socket.ip(), socket.port())
        };
        let (client, server) = (end(CLIENT), end(SERVER));
        let mut analysis = Analysis::new(Limits::default()).watching(&[1]);
        let segment = |is_data: bool, number: i64| Segment {
            time_ns: BEGIN_US * 1000 + number * 10_000_000 + i64::from(!is_data) * 50_000_000,
            source: if is_data { client } else { server },
            destination: if is_data { server } else { client },
            seq: if is_data { number as u32 * 1000 } else { 0 },
            ack: if is_data {
                0
            } else {
                number as u32 * 1000 + 1000
            },
            flags: flag::ACK,
            window: 60_000,
            payload_bytes: if is_data { 1000 } else { 0 },
            ip_id: None,
            ecn: Ecn::NotCapable,
            options: Options::default(),
        };
        let both = [true, false].map(|is_data| (0..20).map(move |n| segment(is_data, n)));
        let mut all: Vec<Segment> = both.into_iter().flatten().collect();
        all.sort_by_key(|segment| segment.time_ns);
        all.iter().for_each(|segment| {
            analysis.take_segment(segment);
        });
        analysis.take_histories().remove(0)
    }

    fn traced(cookie: u64, begin_us: i64, ends: [&str; 2]) -> Traced {
        let sampled = |n: u32| Sampled {
            t_s: f64::from(n) * 0.02,
            cwnd_pkts: 10,
            ssthresh_pkts: None,
            srtt_us: 50_000,
            rtt_us: None,
            in_flight_pkts: 5,
            rate_bps: 0.0,
            average_bps: 0.0,
            retransmitted_pkts: 1,
        };
        Traced {
            cookie,
            begin_us,
            mss_bytes: 1000,
            ends: Some(ends.map(|end| end.parse().unwrap())),
            points: (0..10).map(sampled).collect(),
            ..Traced::default()
        }
    }

    fn laid_over(flows: &[Traced]) -> Option<Laid> {
        let mut history = history();
        let ends = [history.client, history.server].map(|end| end.socket());
        lay_over(1, "client", ends, &mut history.from_client, flows)
    }

    #[test]
    fn a_flow_is_found_by_its_ends_and_its_time() {
        let ends = [CLIENT, SERVER];
        let flows = [
            traced(7, BEGIN_US - 50_000_000, ends),
            traced(8, BEGIN_US, ends),
            traced(9, BEGIN_US, [SERVER, CLIENT]),
        ];
        let laid = laid_over(&flows).unwrap();
        assert_eq!(laid.cookie, 8);
        let (flight, srtt) = (
            laid.beside.in_flight_bytes.unwrap(),
            laid.beside.srtt_us.unwrap(),
        );
        assert_eq!(
            (flight.kernel, flight.capture, flight.apart),
            (5000.0, 5000.0, 0.0)
        );
        assert_eq!((srtt.kernel, srtt.capture), (50_000.0, 50_000.0));
        assert!(laid_over(&flows[..1]).is_none(), "of another time");
        assert!(laid_over(&flows[2..]).is_none(), "of the other end");
    }

    #[test]
    fn the_parts_of_a_long_trace_are_one() {
        let whole = traced(8, BEGIN_US, [CLIENT, SERVER]);
        let cut = |range: std::ops::Range<usize>| Traced {
            points: whole.points[range].to_vec(),
            ..whole.clone()
        };
        let one = laid_over(std::slice::from_ref(&whole)).unwrap().beside;
        let two = laid_over(&[cut(0..4), cut(4..10)]).unwrap().beside;
        assert_eq!(one.srtt_us, two.srtt_us);
        assert_eq!(one.cwnd_bytes, two.cwnd_bytes);
    }
}
