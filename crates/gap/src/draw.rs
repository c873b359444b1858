// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's paths replaced by random ones: what holds for paths that somebody thought of must hold for these. Pure.

use anyhow::{Context, Result};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

/// How many paths are drawn.
pub const PATHS: usize = 24;

/// Each is drawn evenly on a logarithmic scale.
const RATE_MBPS: Range<f64> = 10.0..5000.0;
const RTT_MS: Range<f64> = 5.0..600.0;
const QUEUE_BDP: Range<f64> = 0.02..8.0;
const LOSS: Range<f64> = 1e-5..1e-2;
/// A path that holds more is drawn again: what it needs is beyond the TCP memory of many hosts.
const MOST_BDP_MB: f64 = 32.0;

/// What a path does besides delaying and queueing; the first is as likely as three others.
const KINDS: [&str; 10] = [
    "clean",
    "clean",
    "clean",
    "loss",
    "loss",
    "bursts",
    "reordered",
    "policed",
    "acks-lost",
    "jitter",
];

/// What is said above the scenario.
fn ranges(seed: u64) -> String {
    format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
         # Paths drawn by seed {seed}: {:.0} to {:.0} Mb/s, RTT {:.0} to {:.0} ms, at most {MOST_BDP_MB:.0} MB between them, queue {} to {} bdp, each evenly\n\
         # on a logarithmic scale; of ten paths three have no other property, two lose {} to {} of the packets,\n\
         # one each loses bursts, reorders, polices, loses ACKs, or varies its delay.\n",
        RATE_MBPS.start,
        RATE_MBPS.end,
        RTT_MS.start,
        RTT_MS.end,
        QUEUE_BDP.start,
        QUEUE_BDP.end,
        LOSS.start,
        LOSS.end
    )
}

/// The scenario of that text with 24 random paths in place of its own, for its link `wan`.
///
/// # Errors
/// If the text is not TOML.
pub fn scenario(text: &str, seed: u64) -> Result<String> {
    let mut document: DocumentMut = text.parse().context("not a scenario")?;
    document.decor_mut().clear();
    document["name"] = value(format!("gap-random-{seed}"));
    if let Some(mut name) = document.key_mut("name") {
        name.leaf_decor_mut().clear();
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut paths = ArrayOfTables::new();
    for number in 1..=PATHS {
        paths.push(path(number, &mut random));
    }
    document["path"] = Item::ArrayOfTables(paths);
    Ok(ranges(seed) + &document.to_string())
}

fn path(number: usize, random: &mut Xoshiro256PlusPlus) -> Table {
    let (rate_mbps, rtt_ms) = loop {
        let drawn = (evenly(RATE_MBPS, random), evenly(RTT_MS, random));
        if drawn.0 * drawn.1 / 8000.0 <= MOST_BDP_MB {
            break drawn;
        }
    };
    let kind = KINDS[(random.next_u64() % KINDS.len() as u64) as usize];
    let queue = evenly(QUEUE_BDP, random);
    let mut table = Table::new();
    let name = format!("r{number}-{rate_mbps:.0}m-{rtt_ms:.0}ms-{kind}");
    table["name"] = value(name);
    let mut link = InlineTable::new();
    link.insert("rate", format!("{}kbit", (rate_mbps * 1e3).round()).into());
    link.insert("delay", format!("{}us", (rtt_ms * 500.0).round()).into());
    link.insert("queue", format!("{queue:.3}bdp").into());
    link.extend(property(kind, rate_mbps, random));
    let mut links = Table::from_iter([("wan", Value::from(link))]);
    links.set_dotted(true);
    table["links"] = Item::Table(links);
    table
}

/// What the link has besides rate, delay and queue.
fn property(
    kind: &str,
    rate_mbps: f64,
    random: &mut Xoshiro256PlusPlus,
) -> Option<(&'static str, Value)> {
    let inline = |pairs: Vec<(&str, Value)>| Value::from(InlineTable::from_iter(pairs));
    Some(match kind {
        "loss" => {
            let percent = format!("{:.4}%", 100.0 * evenly(LOSS, random));
            ("forward", inline(vec![("loss", percent.into())]))
        }
        "bursts" => {
            let loss = inline(vec![("to_bad", "0.001%".into()), ("to_good", "10%".into())]);
            ("forward", inline(vec![("loss", loss)]))
        }
        "reordered" => {
            let reorder = inline(vec![("share", "1%".into()), ("by", 10.into())]);
            ("forward", inline(vec![("reorder", reorder)]))
        }
        "policed" => {
            let rate = format!(
                "{}kbit",
                (rate_mbps * 1e3 * evenly(0.1..0.8, random)).round()
            );
            let policer = [
                ("rate", rate.into()),
                ("burst", "256KiB".into()),
                ("exceed", "drop".into()),
            ];
            ("forward", inline(vec![("policer", inline(policer.into()))]))
        }
        "acks-lost" => ("backward", inline(vec![("loss", "5%".into())])),
        "jitter" => ("jitter", "2ms".into()),
        _ => return None,
    })
}

/// Evenly on a logarithmic scale.
fn evenly(range: Range<f64>, random: &mut Xoshiro256PlusPlus) -> f64 {
    let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    range.start * (range.end / range.start).powf(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/gap/");

    fn read(name: &str) -> String {
        std::fs::read_to_string(format!("{EXPERIMENTS}{name}")).unwrap()
    }

    #[test]
    fn the_random_scenario_of_the_repository_is_what_its_seed_draws() {
        let is_it = scenario(&read("bulk.toml"), 1).unwrap() == read("random.toml");
        assert!(
            is_it,
            "fatpath gap draw experiments/gap/bulk.toml > experiments/gap/random.toml"
        );
    }

    #[test]
    fn other_seeds_draw_other_paths_within_the_ranges() {
        let paths = |seed| {
            let drawn = scenario(&read("bulk.toml"), seed).unwrap();
            let document: DocumentMut = drawn.parse().unwrap();
            let paths = document["path"].as_array_of_tables().unwrap().clone();
            paths
                .iter()
                .map(|path| path["name"].to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(2).len(), PATHS);
        assert_eq!(paths(2), paths(2));
        assert_ne!(paths(2), paths(3));
    }

    #[test]
    fn what_is_no_toml_is_refused() {
        assert!(scenario("[[path", 1).is_err());
    }
}
