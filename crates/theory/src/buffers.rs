// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath model buffers`.

use super::given::{self, PathOptions, kernel_name};
use super::{print_notes, show_bytes, show_number, write_json};
use anyhow::{Context, Result};
use clap::Args;
use fatpath_cc::Law;
use fatpath_model::{Outside, Quantity, buffers, limits, recovery, slow_start};
use fatpath_table::write_table;
use serde_json::{Value, json};
use std::io::Write;

pub const HELP: &str = "\
Sizes are bytes of data; docs/policy.md says how a rule's buffers become
windows.

Examples:
  fatpath model buffers --rtt 100ms --rate 1gbit
  fatpath model buffers --rtt 100ms --rate 1gbit --loss 0.1% --flows 100 --json";

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    path: PathOptions,
    /// Rate of the bottleneck: 1gbit
    #[arg(long, value_name = "RATE", value_parser = given::rate_bps)]
    rate: f64,
    /// Also print the window with which a flow keeps its rate while losses of this share are repaired
    #[arg(long, value_name = "SHARE", value_parser = given::loss)]
    loss: Option<f64>,
    /// Also print the queue that this many flows need together
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    flows: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One size.
struct Size {
    what: String,
    bdp: f64,
    why: String,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<()> {
    let bdp_bytes = buffers::bdp_bytes(arguments.rate, arguments.path.rtt);
    let path = arguments.path.path(0.0, Some(arguments.rate));
    let bdp_pkts = path.bdp_pkts().context("the path has a rate")?;
    let sizes = sizes(arguments, bdp_pkts);
    let outside = outside(arguments);
    if arguments.json {
        return write_json(
            out,
            &json!({
                "bdp_bytes": bdp_bytes,
                "window_scale": limits::scale_needed(2.0 * bdp_bytes),
                "sizes": sizes.iter().map(|size| size_json(size, bdp_bytes)).collect::<Vec<Value>>(),
                "outside": outside,
            }),
        );
    }
    let cells = |size: &Size| {
        let bytes = show_bytes(size.bdp * bdp_bytes);
        [
            size.what.clone(),
            bytes,
            show_number(size.bdp),
            size.why.clone(),
        ]
    };
    let header = ["what", "size", "bdp", "for"].map(str::to_owned);
    write_table(out, header, sizes.iter().map(cells))?;
    print_notes(outside.iter());
    Ok(())
}

fn sizes(arguments: &Arguments, bdp_pkts: f64) -> Vec<Size> {
    let size = |what: &str, bdp: f64, why: &str| Size {
        what: what.to_owned(),
        bdp,
        why: why.to_owned(),
    };
    let mut sizes = vec![
        size("window", 1.0, "the rate, without losses"),
        size("socket buffers", 2.0, "the rate while a loss is repaired"),
    ];
    if let Some(loss) = arguments.loss {
        let window_bdp = buffers::repair_window_bdp(bdp_pkts, loss);
        sizes.push(size(
            "window",
            window_bdp,
            "the rate of a law that ignores such losses",
        ));
    }
    let laws = fatpath_cc::laws()
        .iter()
        .filter_map(|spec| Law::named(spec.name));
    sizes.extend(laws.filter_map(|law| queue_of(&law, bdp_pkts)));
    let paced_bdp = slow_start_queue_bdp(bdp_pkts, Some(slow_start::LINUX_PACING_GAIN));
    sizes.extend([
        size(
            "queue",
            slow_start_queue_bdp(bdp_pkts, None),
            "slow start to a full path, unpaced",
        ),
        size("queue", paced_bdp, "the same, paced"),
    ]);
    if let Some(flows) = arguments.flows {
        let queue_bdp = buffers::many_flows_queue_bdp(f64::from(flows));
        sizes.push(size(
            "queue",
            queue_bdp,
            &format!("a busy link, {flows} flows of fp_reno"),
        ));
    }
    sizes
}

fn slow_start_queue_bdp(bdp_pkts: f64, pacing_gain: Option<f64>) -> f64 {
    let sender = slow_start::Sender {
        window_pkts: bdp_pkts,
        bdp_pkts,
        access_ratio: f64::INFINITY,
        pacing_gain,
    };
    slow_start::queue_pkts(&sender) / bdp_pkts
}

fn queue_of(law: &Law, bdp_pkts: f64) -> Option<Size> {
    let b = recovery::given_up(law, bdp_pkts)?;
    Some(Size {
        what: "queue".to_owned(),
        bdp: buffers::full_link_queue_bdp(b),
        why: format!("a busy link, one flow of {}", kernel_name(law)),
    })
}

fn outside(arguments: &Arguments) -> Vec<Outside> {
    let loss = arguments.loss.map(|loss| (Quantity::Loss, loss));
    let flows = arguments
        .flows
        .map(|flows| (Quantity::Flows, f64::from(flows)));
    let mut outside = buffers::REPAIR_MODEL.outside(loss.as_slice());
    outside.extend(buffers::MANY_FLOWS_MODEL.outside(flows.as_slice()));
    outside
}

fn size_json(size: &Size, bdp_bytes: f64) -> Value {
    json!({
        "what": size.what,
        "bytes": size.bdp * bdp_bytes,
        "bdp": size.bdp,
        "for": size.why,
    })
}
