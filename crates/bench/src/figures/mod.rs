// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures: each is one file here and one entry in [`FIGURES`].

mod ack_cost;
mod aimd_window;
mod archive;
mod bbr;
mod bbr_ack_cost;
mod capture;
mod capture_kernel;
mod capture_page;
mod cli;
mod connect_rate;
mod connect_rate_tuned;
mod emulator_delay;
mod emulator_exact;
mod emulator_loss;
mod emulator_shaped;
mod estats;
mod gap;
mod gap_settle;
mod gap_simulated;
mod kernel_sim_error;
mod load;
mod mark_cpu;
mod measure_overlap;
mod measured_tests;
mod mesh;
mod model;
mod mover;
mod mpi;
mod paths;
mod police;
mod police_live;
mod rate_error;
mod reno_cpu;
mod rude_share;
mod schedule_error;
mod sim_bytes_per_flow;
mod sim_packets;
mod sim_window_cost;
mod transport;
mod unshaped;
mod upgrade;
mod why;

use crate::figure::Figure;
use std::sync::LazyLock;

/// All of them, in the order in which they are measured.
pub static FIGURES: LazyLock<Vec<&'static Figure>> = LazyLock::new(|| {
    let groups = rude_share::FIGURES.iter().chain(&bbr::FIGURES);
    let groups = groups.chain(&gap::FIGURES).chain(&mpi::FIGURES);
    SINGLE.into_iter().chain(groups).collect()
});

const SINGLE: [&Figure; 82] = [
    &cli::HELP,
    &cli::EXPLAIN,
    &connect_rate::FIGURE,
    &connect_rate_tuned::FIGURE,
    &unshaped::FIGURE,
    &emulator_shaped::FIGURE,
    &emulator_exact::FIGURE,
    &emulator_loss::FIGURE,
    &emulator_delay::P50,
    &emulator_delay::P99,
    &aimd_window::FIGURE,
    &reno_cpu::FIGURE,
    &ack_cost::CLEAN,
    &ack_cost::LOSSY,
    &mark_cpu::FIGURE,
    &police::PASS,
    &police::DROP,
    &police_live::FIGURE,
    &kernel_sim_error::CLEAN,
    &kernel_sim_error::LOSSY,
    &kernel_sim_error::CUBIC,
    &kernel_sim_error::PATTERNS,
    &bbr_ack_cost::FIGURE,
    &estats::idle::FIGURE,
    &estats::idle::FIGURE_100K,
    &estats::walk::FIGURE,
    &estats::walk::FIGURE_IDLE,
    &estats::active::FIGURE,
    &estats::bulk::FIGURE,
    &estats::lost::FIGURE,
    &estats::connect_rate::FIGURE,
    &load::CORE_SHARE,
    &load::MEMORY,
    &load::LOST_UNCOUNTED,
    &why::FIGURE,
    &why::GAIN_ERROR,
    &why::FALSE_PER_1000,
    &paths::CONNECT_RATE,
    &paths::CORE_SHARE,
    &paths::MEMORY,
    &upgrade::FIGURE,
    &sim_packets::FIGURE,
    &sim_window_cost::FIGURE,
    &sim_bytes_per_flow::FIGURE,
    &model::FIGURE,
    &archive::EVENTS_PER_S,
    &archive::CORE_SHARE,
    &archive::QUERY_MS,
    &archive::QUERY_MS_POSTGRES,
    &archive::LOST_OR_DOUBLED,
    &measure_overlap::FIGURE,
    &schedule_error::FIGURE,
    &mesh::FIGURE,
    &rate_error::MEDIAN,
    &rate_error::WORST,
    &capture::MPPS,
    &capture::MPPS_20K,
    &capture::OVER_TSHARK,
    &capture::MEMORY,
    &capture_kernel::KINDS_EXACT,
    &capture_kernel::RTT_ERROR,
    &capture_kernel::FINDINGS,
    &capture_page::STEP_MS,
    &transport::GBPS,
    &transport::CPU,
    &transport::over_quinn::FIGURE,
    &transport::segmentation_off::FIGURE,
    &transport::sim_error::FIGURE,
    &mover::GBPS,
    &mover::CPU,
    &mover::SHARE,
    &mover::SHARE_001,
    &mover::SHARE_1,
    &mover::SHARE_268,
    &mover::SMALL,
    &mover::disturbed::REORDERED,
    &mover::disturbed::IN_BURSTS,
    &mover::small_files::FIGURE,
    &mover::over_scp::FIGURE,
    &mover::RESENT,
    &gap_settle::FIGURE,
    &gap_simulated::FIGURE,
];

pub use sim_bytes_per_flow::simulate_flows;
