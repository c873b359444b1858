// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model transfer`.

use super::given::{self, PathOptions};
use super::{print_notes, show_number, show_rate, show_time, write_json};
use anyhow::Result;
use clap::Args;
use fatpath_model::{Outside, Path, Quantity, cardwell, slow_start, transfer};
use fatpath_table::write_table;
use serde_json::json;
use std::io::Write;

pub const HELP: &str = "\
From the SYN to the acknowledgement of the last byte, under Reno. The parts are
those of Cardwell et al. (2000); the mean is that of the model `transfer`, which
also holds for long transfers with losses.

Examples:
  fatpath model transfer --bytes 2MB --rtt 100ms --rate 1gbit
  fatpath model transfer --bytes 100kB --rtt 30ms --loss 0.1% --initial-window 3
  fatpath model transfer --bytes 1GB --rtt 100ms --rate 10gbit \\
    --max-ssthresh 100";

#[derive(Args)]
pub struct Arguments {
    /// Size of the transfer: 2MB
    #[arg(long, value_name = "SIZE", value_parser = given::bytes)]
    bytes: f64,
    #[command(flatten)]
    path: PathOptions,
    /// Rate of the bottleneck, in bits of IP packets: 1gbit
    #[arg(long, value_name = "RATE", value_parser = given::rate_bps)]
    rate: Option<f64>,
    /// Share of the segments that are lost
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = given::loss)]
    loss: f64,
    /// Initial window, segments
    #[arg(long, value_name = "SEGMENTS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    initial_window: u32,
    /// Also print how long limited slow start (RFC 3742) with this max_ssthresh takes to reach the rate's window
    #[arg(long, value_name = "SEGMENTS", requires = "rate", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    max_ssthresh: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let path = arguments.path.path(arguments.loss, arguments.rate);
    let segments = (arguments.bytes / f64::from(path.mss_bytes)).ceil();
    let of = cardwell::Parameters {
        initial_window_pkts: f64::from(arguments.initial_window),
        ..cardwell::Parameters::linux(path.rtt_s)
    };
    let parts = cardwell::transfer(&path, segments, &of);
    let mean_s = transfer::mean_s(&path, segments, &of);
    let outside = outside(&path, segments);
    let opening = opening(arguments, &path);
    if arguments.json {
        return write_json(
            out,
            &json!({
                "segments": segments,
                "mean_s": mean_s,
                "rate_bps": arguments.bytes * 8.0 / mean_s,
                "cardwell": parts,
                "cardwell_s": parts.total_s(),
                "slow_start_round_trips": opening.map(|opening| opening.0),
                "limited_slow_start_round_trips": opening.and_then(|opening| opening.1),
                "outside": outside,
            }),
        );
    }
    let row = |name: &str, seconds: f64| [name.to_owned(), show_time(seconds)];
    let rows = [
        row("handshake", parts.handshake_s),
        row("slow start", parts.slow_start_s),
        row("first loss", parts.first_loss_s),
        row("congestion avoidance", parts.avoidance_s),
        row("cardwell", parts.total_s()),
        row("mean (transfer)", mean_s),
    ];
    write_table(out, ["part", "time"].map(str::to_owned), rows.into_iter())?;
    writeln!(
        out,
        "{} segments, {}",
        show_number(segments),
        show_rate(arguments.bytes * 8.0 / mean_s)
    )?;
    if let Some((doubling, limited)) = opening {
        let limited = limited.map_or(String::new(), |trips| {
            format!("; limited slow start: {}", show_number(trips))
        });
        writeln!(
            out,
            "round trips to the window of the rate: {}{limited}",
            show_number(doubling)
        )?;
    }
    print_notes(outside.iter());
    Ok(())
}

/// Round trips until slow start has the window of the rate, and limited slow start.
fn opening(arguments: &Arguments, path: &Path) -> Option<(f64, Option<f64>)> {
    let from = f64::from(arguments.initial_window);
    let to = path.bdp_pkts()?.max(from);
    let trips = |most| slow_start::round_trips(from, to, most);
    let limited = arguments
        .max_ssthresh
        .map(|most| trips(Some(f64::from(most))));
    Some((trips(None), limited))
}

fn outside(path: &Path, segments: f64) -> Vec<Outside> {
    let asked = [
        (Quantity::Loss, path.loss),
        (Quantity::TransferPkts, segments),
        (Quantity::LossesOfTransfer, segments * path.loss),
    ];
    let mut outside = cardwell::MODEL.outside(&asked);
    outside.extend(transfer::MODEL.outside(&asked));
    outside
}
