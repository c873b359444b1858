// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables `[[flow]]`: flows without a program, for the simulator and, where iperf3 can make them,
//! for the lab.
//!
//! Pure. The keys are those of its source, and of `requests.rs`. Start with [`flows`].

use std::time::Duration;

use fatpath_link::headers::ETHERNET_MSS_BYTES;
use fatpath_transport::Spec;

use super::flow::{Flow, Requests, Source, Transport};
use super::groups::{Groups, Who, find, indexes, member};
use super::programs::{TIME_LIMIT, check_reached};
use super::requests::requests;
use super::routes::Map;
use super::size::Size;
use super::values::{Refusal, Section, Values};
use super::{Host, Link, transport, units};

/// Connections of a flow.
const MOST_STREAMS: u64 = 100_000;
/// The port on which flow 1 is listened for in the lab; iperf3's own is 5201.
const FIRST_PORT: u16 = 6001;
/// Each flow listens on a port of its own.
const MOST_FLOWS: usize = (u16::MAX - FIRST_PORT) as usize + 1;
/// Pareto shape of web objects (Crovella and Bestavros 1997, table 2: 1.0 to 1.3).
const WEB_SHAPE: f64 = 1.2;

/// All flows of a case, from their tables.
pub(super) fn flows(
    tables: &[Section],
    values: Values,
    groups: &Groups,
    (hosts, links): (&[Host], &[Link]),
    size: &Size,
) -> Result<Vec<Flow>, Refusal> {
    let map = Map::of(hosts, links);
    let mut flows: Vec<Flow> = vec![];
    for table in tables {
        let from = end(&mut table.with(values), "from", groups);
        let Some((from, who)) = table.noted(from) else {
            continue;
        };
        for index in indexes(who.count()) {
            if flows.len() == MOST_FLOWS {
                let many =
                    format!("makes more than {MOST_FLOWS} flows; streams makes several of one");
                return Err(table.refusal(many));
            }
            let reading = Reading {
                section: table.with(values.of_replica(index)),
                from: member(who, &from, index),
                number: flows.len() + 1,
            };
            let Some(flow) = table.noted(reading.flow(index, groups, &map)) else {
                continue;
            };
            let counted = size.add_flow(&flow);
            counted.map_err(|large| table.refusal(large))?;
            flows.push(flow);
        }
    }
    Ok(flows)
}

fn end(
    section: &mut Section,
    key: &'static str,
    groups: &Groups,
) -> Result<(String, Who), Refusal> {
    let value = section.need(key, &format!("one of: {}", groups.named()))?;
    let name = value.text()?;
    find(&value, groups, name)
}

/// A table while it is read.
struct Reading<'s> {
    section: Section<'s>,
    from: String,
    number: usize,
}

impl Reading<'_> {
    fn flow(mut self, index: Option<u32>, groups: &Groups, map: &Map) -> Result<Flow, Refusal> {
        let section = &mut self.section;
        section.take("from");
        let to = receiver(section, &self.from, index, groups, map);
        let to = section.noted(to).unwrap_or_default();
        let start = section.optional("start", units::moment_ns).unwrap_or(0);
        let streams = section.whole("streams", 1..=MOST_STREAMS).unwrap_or(1);
        let time_limit = section.optional("time_limit", units::time_limit);
        let transport = section
            .optional("transport", transport_kind)
            .unwrap_or_default();
        let kind = section.need("source", KINDS);
        let kind = kind.and_then(|kind| kind.parsed(Kind::read));
        let requests = match kind {
            Ok(Kind::Udp) => Requests::default(),
            _ => requests(section),
        };
        // Which keys there are depends on it.
        let kind = kind?;
        let source = source(section, kind);
        let lasts = lasts(section, start, &source);
        let lasts = section.noted(lasts).flatten();
        if transport == Transport::Udp {
            let checked = check_transported(section, &source, &requests);
            section.noted(checked);
        }
        let line = section.line() as usize;
        let flow = Flow {
            label: format!("{}-{}-{}", self.number, self.from, kind.name()),
            from: self.from,
            to,
            opened_by_receiver: false,
            ipv6: false,
            ports: (None, FIRST_PORT + (self.number - 1) as u16),
            streams: streams as u32,
            start: Duration::from_nanos(start),
            lasts,
            time_limit: time_limit.unwrap_or(TIME_LIMIT),
            transport,
            source,
            requests,
            line,
        };
        self.section.finish()?;
        Ok(flow)
    }
}

fn receiver(
    section: &mut Section,
    from: &str,
    index: Option<u32>,
    groups: &Groups,
    map: &Map,
) -> Result<String, Refusal> {
    let value = section.need("to", &format!("one of: {}", groups.named()))?;
    let (name, who) = find(&value, groups, value.text()?)?;
    let to = match (who, index) {
        (Who::Each(count), None) => {
            let message = format!("{name} is {count} hosts; name one, such as {name}-1");
            return Err(value.refusal(message));
        }
        (Who::Each(count), Some(index)) if index > count => {
            let message = format!("replica {index} has no partner, since {name} is {count} hosts");
            return Err(value.refusal(message));
        }
        _ => member(who, &name, index),
    };
    if to == from {
        return Err(value.refusal(format!("{to} is where the flow begins; it ends at another")));
    }
    // A link that was not read leads nowhere.
    if let (Some(start), Some(goal), false) = (map.host(from), map.host(&to), value.is_noted()) {
        let reached = check_reached(&map.ways(start), goal, map);
        reached.map_err(|why| value.refusal(format!("{to} {why}")))?;
    }
    Ok(to)
}

fn transport_kind(text: &str) -> Result<Transport, &'static str> {
    match text {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        _ => Err("\"tcp\", the kernel's, or \"udp\", fatpath's transport"),
    }
}

/// What the transport has not; in datagrams for Ethernet, since the path is not known here.
fn check_transported(
    section: &Section,
    source: &Source,
    requests: &Requests,
) -> Result<(), Refusal> {
    if !matches!(
        source,
        Source::Bulk { again: false, .. } | Source::Chunks { .. }
    ) {
        let told = "transport = \"udp\" carries source = \"bulk\", once, and \"chunks\"";
        return Err(section.refusal_here(told));
    }
    let spec = transport::spec(requests, Spec::default().datagram_bytes);
    spec.map(drop).map_err(|why| section.refusal_here(why))
}

const KINDS: &str = "\"bulk\", \"chunks\", \"web\" or \"udp\"";

#[derive(Clone, Copy)]
enum Kind {
    Bulk,
    Chunks,
    Web,
    Udp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Bulk => "bulk",
            Kind::Chunks => "chunks",
            Kind::Web => "web",
            Kind::Udp => "udp",
        }
    }

    fn read(text: &str) -> Result<Kind, &'static str> {
        let all = [Kind::Bulk, Kind::Chunks, Kind::Web, Kind::Udp];
        let found = all.into_iter().find(|kind| kind.name() == text);
        found.ok_or(KINDS)
    }
}

fn source(section: &mut Section, kind: Kind) -> Source {
    match kind {
        Kind::Bulk => Source::Bulk {
            bytes: section.optional("bytes", units::data_bytes),
            again: section.flag("again").unwrap_or(false),
        },
        Kind::Chunks => Source::Chunks {
            chunk_bytes: section.needed("chunk", units::data_bytes),
            first_chunk_bytes: section.optional("first_chunk", units::data_bytes),
            every_ns: section.needed("every", units::moment_ns),
            count: section.whole("count", 1..=1_000_000_000),
        },
        Kind::Web => web(section),
        Kind::Udp => udp(section),
    }
}

fn web(section: &mut Section) -> Source {
    let users = section.need("users", "a whole number from 1 to 1000000");
    let users = users.and_then(|users| users.integer(1..=1_000_000));
    let shape = section.read("shape", |value| value.number(1.01, 100.0));
    Source::Web {
        users: section.noted(users).unwrap_or_default() as u32,
        mean_object_bytes: section.needed("mean_object", units::data_bytes) as f64,
        shape: shape.unwrap_or(WEB_SHAPE),
        objects_per_page: section.whole("objects_per_page", 1..=10_000).unwrap_or(1) as u32,
        mean_think_ns: section.needed("think", units::moment_ns),
    }
}

fn udp(section: &mut Section) -> Source {
    let payload = section.whole("payload", 1..=65_507);
    Source::ConstantRate {
        rate_bps: section.needed("rate", units::rate_bps),
        // What iperf3 takes over Ethernet.
        payload_bytes: payload.map_or(ETHERNET_MSS_BYTES, |bytes| bytes as u32),
    }
}

/// From `start` to `stop`; what has no end by itself needs one.
fn lasts(section: &mut Section, start: u64, source: &Source) -> Result<Option<Duration>, Refusal> {
    let Some(value) = section.take("stop") else {
        let ends = match source {
            Source::Bulk { bytes, again } => bytes.is_some() && !again,
            Source::Chunks { count, .. } => count.is_some(),
            Source::Web { .. } | Source::ConstantRate { .. } => false,
        };
        return match ends {
            true => Ok(None),
            false => Err(section.missing("stop", "when the flow ends, such as \"10s\"")),
        };
    };
    match value.parsed(units::moment_ns)?.checked_sub(start) {
        Some(1..) => {
            let stop = value.parsed(units::moment_ns)?;
            Ok(Some(Duration::from_nanos(stop - start)))
        }
        _ => Err(value.refusal("must come after start")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    const BEGIN: &str = "name = \"x\"\n[set]\nlaw = \"fp_reno\"\n[hosts.left]\ncount = 2\n[hosts.right]\n\
                         count = 2\n[hosts.r]\nrouter = true\n[hosts.lonely]\n[links.near]\n\
                         between = [\"left\", \"r\"]\n[links.far]\nbetween = [\"r\", \"right\"]\n[[flow]]\n";

    fn parse(flow: &str) -> Result<Scenario, String> {
        let parsed = Scenario::parse("x.toml", &format!("{BEGIN}{flow}"));
        parsed.map_err(|refused| crate::tests::lines(&refused))
    }

    #[test]
    fn hosts_with_a_count_send_each_to_its_partner() {
        let text = "from = \"left\"\nto = \"right\"\nsource = \"bulk\"\nbytes = \"{n}MB\"\nlaw = \"{law}\"";
        let scenario = parse(text).unwrap();
        let flows = &scenario.cases[0].flows;
        let ends: Vec<_> = flows
            .iter()
            .map(|flow| (&flow.from[..], &flow.to[..]))
            .collect();
        assert_eq!(ends, [("left-1", "right-1"), ("left-2", "right-2")]);
        let labels: Vec<_> = flows.iter().map(|flow| &flow.label[..]).collect();
        assert_eq!(labels, ["1-left-1-bulk", "2-left-2-bulk"]);
        assert_ne!(flows[0].source, flows[1].source);
        assert_ne!(flows[0].ports, flows[1].ports);
        assert_eq!(flows[0].requests.law.as_ref().unwrap().name, "fp_reno");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let ends = "from = \"left-1\"\nto = \"right-1\"\n";
        let told = [
            "from = \"left\"".to_owned(),
            "from = \"left-1\"\nto = \"right\"\nsource = \"bulk\"".to_owned(),
            "from = \"left-1\"\nto = \"lonely\"\nsource = \"bulk\"".to_owned(),
            "from = \"left-1\"\nto = \"left-1\"\nsource = \"bulk\"".to_owned(),
            format!("{ends}source = \"ftp\""),
            format!("{ends}source = \"bulk\""),
            format!("{ends}source = \"bulk\"\nbytes = \"1MB\"\nagain = true"),
            format!("{ends}source = \"bulk\"\nstart = \"5s\"\nstop = \"5s\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nusers = 3"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nstreams = 0"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nlaw = {{ law = \"fp_aimd\", b = 1.5 }}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nlaw = {{ law = \"fp_aimd\", b = 0.0625 }}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nlaw = {{ law = \"vegas\", b = 0.5 }}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ndelayed_acks = \"never\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ndetection = \"tahoe\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nreduction = \"never\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ngrowth = \"bytes\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nsack_blocks = 17"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ndrop = 20"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ndrop = [20, 0]"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nrude = {{ off = \"nicely\" }}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\nrude = {{ off = \"soon\", at = \"1s\" }}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ntransport = \"sctp\""),
            format!("{ends}source = \"bulk\"\nagain = true\nstop = \"5s\"\ntransport = \"udp\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ntransport = \"udp\"\nwindow = \"1MB\""),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ntransport = \"udp\"\nrude = {{}}"),
            format!("{ends}source = \"bulk\"\nstop = \"5s\"\ntransport = \"udp\"\nmss = 100"),
            format!("{ends}source = \"udp\"\nstop = \"5s\"\nrate = \"0bit\""),
            format!("{ends}source = \"web\"\nstop = \"5s\"\nusers = 1\nmean_object = \"1kB\"\nshape = 1\nthink = \"1s\""),
        ]
        .map(|flow| parse(&flow).unwrap_err());
        insta::assert_snapshot!(told.join("\n"), @r#"
        x.toml:15:1: flow[1].to: is missing; it is one of: left (left-1 to left-2), right (right-1 to right-2), r, lonely
        x.toml:15:1: flow[1].source: is missing; it is "bulk", "chunks", "web" or "udp"
        x.toml:15:1: flow[1].stop: is missing; it is when the flow ends, such as "10s"
        x.toml:17:6: flow[1].to: right is 2 hosts; name one, such as right-1
        x.toml:15:1: flow[1].stop: is missing; it is when the flow ends, such as "10s"
        x.toml:17:6: flow[1].to: lonely is on no link, so it has no address
        x.toml:15:1: flow[1].stop: is missing; it is when the flow ends, such as "10s"
        x.toml:17:6: flow[1].to: left-1 is where the flow begins; it ends at another
        x.toml:18:10: flow[1].source: found the text "ftp"; allowed: "bulk", "chunks", "web" or "udp"
        x.toml:15:1: flow[1].stop: is missing; it is when the flow ends, such as "10s"
        x.toml:15:1: flow[1].stop: is missing; it is when the flow ends, such as "10s"
        x.toml:20:8: flow[1].stop: must come after start
        x.toml:20:1: unknown key `users` in flow[1]; allowed: from, to, start, streams, time_limit, transport, source, law, mss, window, pacing_rate, send_buffer, receive_buffer, initial_window, cwnd_clamp, fragment, detection, dupthresh, sack_blocks, reduction, growth, max_burst, pacing, pacing_quantum, drop, rto_min, delayed_acks, delayed_ack_max, delayed_ack_count, tail_loss_probe, max_ssthresh, initial_ssthresh, initial_rate, idle, hystart, rude, bytes, again, stop
        x.toml:20:11: flow[1].streams: found 0; allowed: a whole number from 1 to 100000
        x.toml:20:7: flow[1].law: b = 1.5 is out of range: 0.001 to 0.999 (fraction of the window given up at a congestion event)
        x.toml:20:7: flow[1].law: b = 0.0625 is not 0.001 to 0.999 with at most three decimals (fraction of the window given up at a congestion event)
        x.toml:20:7: flow[1].law: the simulator does not have law vegas; it has fp_reno, fp_aimd, fp_scalable, fp_highspeed, fp_cubic, fp_bbr (and reno and cubic, which are fp_reno and fp_cubic)
        x.toml:20:16: flow[1].delayed_acks: found the text "never"; allowed: "off", "on", or "quick" (at the beginning every segment, as Linux)
        x.toml:20:13: flow[1].detection: found the text "tahoe"; allowed: "rack", "sack", "fack", "newreno" or "reno" (the last two without SACK)
        x.toml:20:13: flow[1].reduction: found the text "never"; allowed: "prr", "at_once" or "rampdown"
        x.toml:20:10: flow[1].growth: found the text "bytes"; allowed: "segments", "acks" or "abc" (RFC 3465)
        x.toml:20:15: flow[1].sack_blocks: found 17; allowed: a whole number from 1 to 16
        x.toml:20:8: flow[1].drop: found 20; allowed: a list of segments, the first one is 1, such as [20, 25]
        x.toml:20:13: flow[1].drop[2]: found 0; allowed: a whole number from 1 to 1000000000000000
        x.toml:20:8: flow[1].rude: off and at belong together, such as "nicely" and "3s"
        x.toml:20:16: flow[1].rude.off: found the text "soon"; allowed: "now" or "nicely"
        x.toml:20:13: flow[1].transport: found the text "sctp"; allowed: "tcp", the kernel's, or "udp", fatpath's transport
        x.toml:15:1: flow[1]: transport = "udp" carries source = "bulk", once, and "chunks"
        x.toml:15:1: flow[1]: window: is of the kernel's sockets; give receive_buffer
        x.toml:15:1: flow[1]: rude: over UDP, `fatpath send --rate` alone has no congestion control
        x.toml:15:1: flow[1]: mss: give 458 bytes or more
        x.toml:20:8: flow[1].rate: found the text "0bit"; allowed: a rate from "1kbit" to "1tbit" (bit, kbit, mbit, gbit, tbit; decimal)
        x.toml:22:9: flow[1].shape: found 1; allowed: a number from 1.01 to 100
        "#);
    }
}
