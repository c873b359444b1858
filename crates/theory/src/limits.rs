// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model limits`.

use super::given;
use super::{show_bytes, show_rate, show_time, write_json};
use anyhow::Result;
use clap::Args;
use fatpath_model::{buffers, limits};
use fatpath_table::write_table;
use serde_json::json;
use std::io::Write;

pub const HELP: &str = "\
RFC 7323. Linux's timestamps tick each millisecond (since 6.7 each microsecond
where a route has the feature tcp_usec_ts).

Examples:
  fatpath model limits --rate 100gbit --rtt 100ms
  fatpath model limits --rate 400gbit --rtt 1ms --tick 1us --json";

#[derive(Args)]
pub struct Arguments {
    /// Rate of the data: 100gbit
    #[arg(long, value_name = "RATE", value_parser = given::rate_bps)]
    rate: f64,
    /// Round-trip time: 100ms
    #[arg(long, value_name = "TIME", value_parser = given::time_s)]
    rtt: f64,
    /// Time between two ticks of the timestamps' clock
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = given::time_s)]
    tick: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let bdp_bytes = buffers::bdp_bytes(arguments.rate, arguments.rtt);
    let scale = limits::scale_needed(bdp_bytes);
    let largest_bytes = limits::largest_window_bytes(limits::MAX_SCALE) as f64;
    let window_bps = limits::window_limit_bps(limits::MAX_SCALE, arguments.rtt);
    let sequence_s = limits::sequence_wrap_s(arguments.rate);
    let timestamp_s = limits::timestamp_wrap_s(arguments.tick);
    let paws_bps = limits::paws_limit_bps(arguments.tick);
    if arguments.json {
        return write_json(
            out,
            &json!({
                "bdp_bytes": bdp_bytes,
                "window_scale": scale,
                "largest_window_bytes": largest_bytes,
                "largest_window_bps": window_bps,
                "sequence_wrap_s": sequence_s,
                "timestamp_wrap_s": timestamp_s,
                "paws_limit_bps": paws_bps,
            }),
        );
    }
    let rows = [
        ("window of the rate", show_bytes(bdp_bytes)),
        (
            "window scale that it needs",
            scale.map_or("more than TCP has".to_owned(), |scale| scale.to_string()),
        ),
        ("largest window", show_bytes(largest_bytes)),
        ("rate with the largest window", show_rate(window_bps)),
        (
            "half of the sequence numbers pass in",
            show_time(sequence_s),
        ),
        ("half of the timestamps pass in", show_time(timestamp_s)),
        ("timestamps protect up to", show_rate(paws_bps)),
    ];
    let header = ["limit", "value"].map(str::to_owned);
    let cells = rows
        .into_iter()
        .map(|(what, value)| [what.to_owned(), value]);
    Ok(write_table(out, header, cells)?)
}
