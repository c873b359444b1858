// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints what an idle path adds to the delay that was set: `idle [DELAY_MS [PACKETS [GAP_US]]]`. Needs root.

use std::env;
use std::error::Error;
use std::process;
use std::time::Duration;

use fatpath_emulator::idle;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let delay_ms = arguments.next().map_or(Ok(50), |text| text.parse())?;
    let packets = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let gap_us = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let run_name = format!("fp-idle-{}", process::id());
    let [delay, gap] = [
        Duration::from_millis(delay_ms),
        Duration::from_micros(gap_us),
    ];
    let (added, stats) = idle::added_delays(&run_name, delay, packets, gap)?;
    let mut added_us: Vec<f64> = added.iter().map(|added| added.from_device_us).collect();
    added_us.sort_by(f64::total_cmp);
    let quantile = |share: f64| added_us[((added_us.len() - 1) as f64 * share) as usize];
    println!(
        "added, µs: least {:.1}, median {:.1}, p90 {:.1}, p99 {:.1}, most {:.1}",
        quantile(0.0),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        quantile(1.0)
    );
    let lateness = stats.lateness;
    println!(
        "of that the forwarder's lateness: median {:.1}, p99 {:.1}, most {:.1}",
        lateness.p50_us, lateness.p99_us, lateness.max_us
    );
    Ok(())
}
