// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests between hosts of fatpath: `[responder]`, `[[peer]]`, and the tools that ask one.

use super::{S, identifier, needed, quantity, resources, time};
use crate::tool::PATIENCE_US;
use crate::{AskedServer, Echo, Iperf3, Kind, Peer, Plan, Rate, Responder};
use fatpath_toml::{Refusal, Section, Value};
use fatpath_units as units;
use ipnet::IpNet;
use std::net::IpAddr;

/// What a peer may send a day, and how fast, where the file does not say.
const BYTES_A_DAY: u64 = 100_000_000;
const RATE_BPS: u64 = 1_000_000;
const PREFIXES: &str = "a prefix, or a list of prefixes: \"192.0.2.0/24\"";
const KEY: &str = "a key as `fatpath keys show` prints it at the peer: \"ed25519:AAAA…\"";
/// Of 32 bytes in base64, without its `=`.
const KEY_CHARACTERS: usize = 43;

/// Reads `[responder]` and each `[[peer]]`.
pub(super) fn read(root: &mut Section, plan: &mut Plan) {
    let read = root.read("responder", |value| {
        let section = value.section_or("a table, under a line `[responder]`")?;
        Ok(responder(&mut section.titled("[responder]")))
    });
    plan.responder = read.flatten();
    let sections = root.noted(root.clone().take_list("peer"));
    root.allow(["responder", "peer"]);
    for section in sections.unwrap_or_default() {
        let peer = peer(&mut section.titled("[[peer]]"), plan);
        plan.peers.extend(peer);
    }
}

fn responder(section: &mut Section) -> Option<Responder> {
    const LISTEN: &str = "an address and a port: \"192.0.2.1:4748\", \"[::]:4748\"";
    let listen = needed(section, "listen", LISTEN, |value| {
        value.parsed(|text| text.parse().map_err(|_| LISTEN))
    });
    let clock_error_us = section.read("clock_error", clock_error);
    let iperf3_port = section.read("iperf3_port", |value| value.integer(1..=65_535));
    let resources = section.read("resource", resources);
    section.note_unknown();
    Some(Responder {
        listen: listen?,
        resources,
        clock_error_us,
        iperf3_port: iperf3_port.map_or(Iperf3::PORT, |port| port as u16),
    })
}

pub(super) fn echo(section: &mut Section) -> Echo {
    let interval_us = section.read("interval", |value| time(value, 1_000..=60 * S));
    let size_bytes = section.read("size", |value| value.integer(56..=8952));
    Echo {
        port: port(section),
        interval_us: interval_us.unwrap_or(Echo::INTERVAL_US),
        size_bytes: size_bytes.unwrap_or(Echo::SIZE_BYTES),
        clock_error_us: None,
        key: section.read("key", |value| value.text()),
        trust: section.read("trust", |value| value.text()),
    }
}

pub(super) fn one_way(section: &mut Section) -> Echo {
    Echo {
        clock_error_us: section.read("clock_error", clock_error),
        ..echo(section)
    }
}

pub(super) fn rate(section: &mut Section) -> Rate {
    let size_bytes = section.read("size", |value| value.integer(576..=9000));
    Rate {
        port: port(section),
        size_bytes: size_bytes.unwrap_or(Rate::SIZE_BYTES),
        most_rate_bps: section.read("most_rate", most_rate),
        patience_us: patience(section),
        key: section.read("key", |value| value.text()),
        trust: section.read("trust", |value| value.text()),
    }
}

/// Of a server of iperf3 that a responder starts.
pub(super) fn asked_server(section: &mut Section) -> AskedServer {
    AskedServer {
        port: port(section),
        patience_us: patience(section),
        key: section.read("key", |value| value.text()),
        trust: section.read("trust", |value| value.text()),
    }
}

pub(super) fn most_rate(value: &Value) -> Result<u64, Refusal> {
    const ALLOWED: &str = "a rate of 1mbit to 100gbit: \"10gbit\"";
    let bps = quantity(value, units::rate_bps, ALLOWED)?;
    match Rate::MOST_RATES_BPS.contains(&bps) {
        true => Ok(bps),
        false => Err(value.found(ALLOWED)),
    }
}

/// For how long a responder may wait before a test that loads its path.
fn patience(section: &mut Section) -> u64 {
    let patience_us = section.read("patience", |value| time(value, 0..=3600 * S));
    patience_us.unwrap_or(PATIENCE_US)
}

/// Of a responder.
fn port(section: &mut Section) -> u16 {
    let port = section.read("port", |value| value.integer(1..=65_535));
    port.map_or(Echo::PORT, |port| port as u16)
}

/// By how much a clock may be wrong.
fn clock_error(value: &Value) -> Result<u64, Refusal> {
    time(value, 1..=60 * S)
}

/// Notes everything that is wrong with the peer.
fn peer(section: &mut Section, before: &Plan) -> Option<Peer> {
    let name = needed(
        section,
        "name",
        "a name of letters, digits, `-`, `_` and `.`",
        |value| name_of(value, before),
    );
    let prefixes = needed(section, "prefix", PREFIXES, |value| {
        several(value, PREFIXES, prefix)
    });
    let key = needed(section, "key", KEY, key_of);
    let kinds = section.read("kinds", |value| {
        several(
            value,
            "a list of kinds: [\"echo\", \"one_way\", \"rate\", \"iperf3\"]",
            kind,
        )
    });
    let longest_us = section.read("duration", |value| time(value, S..=3600 * S));
    let bytes_a_day = section.read("bytes_a_day", |value| {
        quantity(value, units::bytes, "bytes: \"100MB\"")
    });
    let rate_bps = section.read("rate", |value| {
        quantity(value, units::rate_bps, "a rate: \"1mbit\"")
    });
    section.note_unknown();
    Some(Peer {
        name: name?,
        prefixes: prefixes?,
        key: key?,
        kinds: kinds.unwrap_or_else(|| Kind::DEFAULT.to_vec()),
        longest_us: longest_us.unwrap_or(60 * S),
        bytes_a_day: bytes_a_day.unwrap_or(BYTES_A_DAY),
        rate_bps: rate_bps.unwrap_or(RATE_BPS),
    })
}

fn name_of(value: &Value, before: &Plan) -> Result<String, Refusal> {
    let name = value.parsed(|name| {
        let name = identifier(name, "-_.").filter(|name| name.len() <= 64);
        name.ok_or("1 to 64 letters, digits, `-`, `_` and `.`")
    })?;
    match before.peers.iter().any(|peer| peer.name == name) {
        true => Err(value
            .refusal(format!("a second peer named `{name}`"))
            .allowed("each peer needs a name of its own")),
        false => Ok(name),
    }
}

/// One, or a list.
fn several<T>(
    value: &Value,
    allowed: &str,
    read: impl Fn(&Value) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    match value.as_str() {
        Some(_) => Ok(vec![read(value)?]),
        None => value.items(allowed)?.iter().map(read).collect(),
    }
}

fn prefix(value: &Value) -> Result<IpNet, Refusal> {
    value.parsed(|text| {
        let host = || text.parse::<IpAddr>().map(IpNet::from);
        let prefix = text.parse::<IpNet>().or_else(|_| host());
        prefix.map(|prefix| prefix.trunc()).map_err(|_| PREFIXES)
    })
}

fn key_of(value: &Value) -> Result<String, Refusal> {
    value.parsed(|text| {
        let encoded = text.strip_prefix("ed25519:");
        let encoded = encoded.and_then(|encoded| encoded.strip_suffix('='));
        let is_key = encoded.is_some_and(|encoded| {
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
            encoded.len() == KEY_CHARACTERS && encoded.chars().all(is_base64)
        });
        is_key.then(|| text.to_owned()).ok_or(KEY)
    })
}

fn kind(value: &Value) -> Result<Kind, Refusal> {
    value.parsed(|text| {
        let named = Kind::ALL.iter().find(|(name, _)| *name == text);
        named
            .map(|(_, kind)| *kind)
            .ok_or("\"echo\", \"one_way\", \"rate\" or \"iperf3\"")
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const FILE: &str = "[responder]\nlisten = '[::]:4748'\n[[peer]]\nname = 'dtn1'\nprefix = '192.0.2.7/24'\n\
        key = 'ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='\n";

    #[test]
    fn a_peer_has_limits_where_none_are_given() {
        let plan = parse(FILE).unwrap();
        assert_eq!(plan.responder.unwrap().listen.port(), 4748);
        let peer = &plan.peers[0];
        assert_eq!(peer.prefixes, ["192.0.2.0/24".parse().unwrap()]);
        assert_eq!(
            (peer.longest_us, peer.rate_bps, peer.bytes_a_day),
            (60 * S, RATE_BPS, BYTES_A_DAY)
        );
        assert_eq!(peer.kinds, [Kind::Echo, Kind::OneWay]);
        let host = parse(&FILE.replace("192.0.2.7/24", "192.0.2.7")).unwrap();
        assert_eq!(
            host.peers[0].prefixes,
            ["192.0.2.7/32".parse::<IpNet>().unwrap()]
        );
        let at = |text: &str| peer.is_at(text.parse().unwrap());
        assert!(at("192.0.2.9") && at("::ffff:192.0.2.9") && !at("192.0.3.9"));
    }

    #[test]
    fn what_is_wrong_with_a_peer_is_said_with_its_place() {
        let wrong = |from: &str, to: &str| {
            let problems = parse(&FILE.replace(from, to)).unwrap_err();
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("\n")
        };
        for (from, to, said) in [
            ("[::]:4748", "4748", "2:10: "),
            ("/24", "/33", "5:10: "),
            ("AAA=", "AA=", "6:7: "),
            ("key", "kinds = ['flood']\nkey", "6:10: "),
            ("key", "rate = 'fast'\nkey", "6:8: "),
            ("key", "kye", "key: is missing"),
            (
                "[[peer]]",
                "[[peer]]\nname = 'dtn1'\nprefix = '::/0'\nkey = 'x'\n[[peer]]",
                "6:7: ",
            ),
        ] {
            let problems = wrong(from, to);
            assert!(problems.contains(said), "{to}: {problems}");
        }
        let twice = format!("{FILE}{}", &FILE[FILE.find("[[peer]]").unwrap()..]);
        let problems = parse(&twice).unwrap_err();
        assert!(problems[0].to_string().contains("a second peer"));
    }
}
