// SPDX-License-Identifier: MIT OR Apache-2.0
//! A path in the simulator, flows on it, and the processor time that simulating them takes.

use anyhow::{Result, ensure};
use fatpath_cc::Law;
use fatpath_link::{CellSpec, ChainSpec};
use fatpath_sim::{Buffer, FlowSpec, LinkSpec, Outcome, Source, Spec, TcpSpec, run};
use rustix::time::{ClockId, clock_gettime};
use std::ops::ControlFlow;

const RTT_NS: u64 = 100_000_000;
/// Never the limit.
const AMPLE_BYTES: u64 = 1 << 30;
/// Linux's, over Ethernet.
pub const MSS_BYTES: u64 = 1_448;

/// Two hosts, 100 ms from each other and back, with `cells` on the way of the data.
pub fn path(cells: impl Into<Vec<CellSpec>>, seconds: u64) -> Spec {
    path_of(RTT_NS, cells, seconds * 1_000_000_000)
}

/// Two hosts, `rtt_ns` from each other and back, with `cells` on the way of the data.
pub fn path_of(rtt_ns: u64, cells: impl Into<Vec<CellSpec>>, end_ns: u64) -> Spec {
    let back = ChainSpec::of([CellSpec::delay(rtt_ns / 2)]);
    let mut there = ChainSpec::of(cells);
    there.cells.push(CellSpec::delay(rtt_ns / 2));
    path_by([there, back], end_ns)
}

/// Two hosts, and what is on the way of the data and on the way back.
pub fn path_by(directions: [ChainSpec; 2], end_ns: u64) -> Spec {
    Spec {
        hosts: 2,
        links: vec![LinkSpec {
            between: [0, 1],
            mtu_bytes: 1_500,
            directions,
        }],
        routes: vec![vec![None, Some((0, 0))], vec![Some((0, 1)), None]],
        end_ns,
        seed: 1,
        ..Spec::default()
    }
}

/// A flow without end, as Linux's but for its law and buffers.
pub fn flow(law: Law, receive_buffer_bytes: u64) -> FlowSpec {
    FlowSpec {
        from: 0,
        to: 1,
        start_ns: 0,
        stop_ns: None,
        lasts_ns: None,
        source: Source::Bulk {
            bytes: None,
            again: false,
        },
        tcp: TcpSpec {
            law,
            send_buffer: Buffer::Fixed(AMPLE_BYTES),
            receive_buffer: Buffer::Fixed(receive_buffer_bytes),
            ..TcpSpec::default()
        },
        shared_rate: None,
        may_be_fragmented: false,
    }
}

/// Of a flow that the network limits.
pub fn unlimited_flow(law: Law) -> FlowSpec {
    flow(law, AMPLE_BYTES)
}

/// The processor time of one delivered data packet. Not the time of a clock on the wall: others use
/// this machine too.
pub struct Cost {
    /// What came of it.
    pub outcome: Outcome,
    /// Nanoseconds of this thread.
    pub packet_ns: f64,
}

/// Simulates `spec`.
pub fn cost(spec: &Spec) -> Result<Cost> {
    let begin_ns = thread_ns();
    let outcome = run(spec, |_| ControlFlow::Continue(()))?;
    let took_ns = thread_ns() - begin_ns;
    let packets = outcome.delivered_packets;
    ensure!(packets > 100_000, "only {packets} packets: too few to tell");
    Ok(Cost {
        outcome,
        packet_ns: took_ns as f64 / packets as f64,
    })
}

fn thread_ns() -> i128 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
