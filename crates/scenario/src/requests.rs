// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a `[[flow]]` asks of its connections: what programs can ask for, and the inside of their ends, which the simulator
//! has and the transport over UDP.
//!
//! Pure. A key that is added is written by `knobs.rs` too. Start with [`requests`].

use fatpath_cc::Idle;
use fatpath_tcp::MAX_BLOCKS;

use super::flow::{
    DelayedAcks, Detection, EndSettings, Growth, LawRequest, Requests, WindowReduction,
};
use super::values::{Refusal, Section, Value};
use super::{law, names, rude, units};

const DROPS: &str = "a list of segments, the first one is 1, such as [20, 25]";
/// More are better lost by a link's `loss`.
const MOST_DROPS: usize = 10_000;
/// More than months of a terabit a second.
const MOST_SEGMENT: u64 = 1_000_000_000_000_000;

pub(super) const DETECTIONS: [(&str, Detection); 5] = [
    ("rack", Detection::Rack),
    ("sack", Detection::Sack),
    ("fack", Detection::Fack),
    ("newreno", Detection::NewReno),
    ("reno", Detection::Reno),
];
pub(super) const REDUCTIONS: [(&str, WindowReduction); 3] = [
    ("prr", WindowReduction::Prr),
    ("at_once", WindowReduction::AtOnce),
    ("rampdown", WindowReduction::Rampdown),
];
pub(super) const GROWTHS: [(&str, Growth); 3] = [
    ("segments", Growth::Segments),
    ("acks", Growth::Acks),
    ("abc", Growth::AppropriateBytes),
];
pub(super) const DELAYED_ACKS: [(&str, DelayedAcks); 3] = [
    ("off", DelayedAcks::Off),
    ("on", DelayedAcks::On),
    ("quick", DelayedAcks::QuickAtStart),
];
pub(super) const IDLES: [(&str, Idle); 3] = [
    ("restart", Idle::Restart),
    ("keep", Idle::Keep),
    ("pace", Idle::Pace),
];

/// The keys that are not of the flow's source.
pub(super) fn requests(section: &mut Section) -> Requests {
    Requests {
        law: section.read("law", law_request),
        mss_bytes: section.whole("mss", 64..=65_000).map(|bytes| bytes as u32),
        window_bytes: section
            .optional("window", units::buffer_bytes)
            .map(|bytes| bytes as u32),
        pacing_rate_bps: section.optional("pacing_rate", units::rate_bps),
        ends: inner(section),
    }
}

fn inner(section: &mut Section) -> EndSettings {
    let packets = |section: &mut Section, key, least| {
        let packets = section.whole(key, least..=1 << 30);
        packets.map(|packets| packets as u32)
    };
    EndSettings {
        send_buffer_bytes: section.optional("send_buffer", units::buffer_bytes),
        receive_buffer_bytes: section.optional("receive_buffer", units::buffer_bytes),
        initial_window_pkts: packets(section, "initial_window", 1),
        cwnd_clamp_pkts: packets(section, "cwnd_clamp", 2),
        fragment: section.flag("fragment"),
        detection: section.optional("detection", detection),
        dupthresh: packets(section, "dupthresh", 1),
        sack_blocks: section
            .whole("sack_blocks", 1..=MAX_BLOCKS as u64)
            .map(|blocks| blocks as u8),
        reduction: section.optional("reduction", reduction),
        growth: section.optional("growth", growth),
        max_burst_pkts: packets(section, "max_burst", 1),
        pacing: section.flag("pacing"),
        pacing_quantum_ns: section.optional("pacing_quantum", units::pacing_quantum_ns),
        drops: section.read("drop", drops).unwrap_or_default(),
        rto_min_ns: section.optional("rto_min", units::period_ns),
        delayed_acks: section.optional("delayed_acks", delayed_acks),
        delayed_ack_max_ns: section.optional("delayed_ack_max", units::period_ns),
        delayed_ack_pkts: packets(section, "delayed_ack_count", 1),
        tail_loss_probe: section.flag("tail_loss_probe"),
        max_ssthresh_pkts: packets(section, "max_ssthresh", 2),
        initial_ssthresh_pkts: packets(section, "initial_ssthresh", 2),
        initial_rate_bps: section.optional("initial_rate", units::rate_bps),
        idle: section.optional("idle", idle),
        hystart: section.flag("hystart"),
        rude: section.read("rude", rude::request),
    }
}

/// A name, or a table of it and parameters; the parameters of laws that the simulator has are checked.
fn law_request(value: &Value) -> Result<LawRequest, Refusal> {
    if !value.as_toml().is_table() {
        let name = value.parsed(names::law)?;
        let parameters = vec![];
        return Ok(LawRequest { name, parameters });
    }
    let mut section = value.section()?;
    let name = section.need("law", names::LAW_NAME)?.parsed(names::law)?;
    let mut parameters = vec![];
    for (key, value) in section.entries() {
        parameters.push((key.get_ref().to_string(), value.number(0.0, f64::MAX)?));
    }
    let request = LawRequest { name, parameters };
    match law::of_request(&request) {
        Err(why) if !request.parameters.is_empty() => Err(value.refusal(why)),
        _ => Ok(request),
    }
}

/// Segments are counted from 1 in a file, as the papers do.
fn drops(value: &Value) -> Result<Vec<u64>, Refusal> {
    let items = value.items(DROPS)?;
    if items.len() > MOST_DROPS {
        return Err(value.refusal(format!("names more than {MOST_DROPS} segments")));
    }
    let numbers = items.iter().map(|item| item.integer(1..=MOST_SEGMENT));
    numbers.map(|number| Ok(number? - 1)).collect()
}

/// Which of the names it is.
fn named<T: Copy>(names: &[(&str, T)], text: &str) -> Option<T> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value)
}

fn detection(text: &str) -> Result<Detection, &'static str> {
    named(&DETECTIONS, text)
        .ok_or("\"rack\", \"sack\", \"fack\", \"newreno\" or \"reno\" (the last two without SACK)")
}

fn reduction(text: &str) -> Result<WindowReduction, &'static str> {
    named(&REDUCTIONS, text).ok_or("\"prr\", \"at_once\" or \"rampdown\"")
}

fn growth(text: &str) -> Result<Growth, &'static str> {
    named(&GROWTHS, text).ok_or("\"segments\", \"acks\" or \"abc\" (RFC 3465)")
}

fn delayed_acks(text: &str) -> Result<DelayedAcks, &'static str> {
    named(&DELAYED_ACKS, text)
        .ok_or("\"off\", \"on\", or \"quick\" (at the beginning every segment, as Linux)")
}

fn idle(text: &str) -> Result<Idle, &'static str> {
    named(&IDLES, text).ok_or("\"restart\", \"keep\" or \"pace\"")
}
