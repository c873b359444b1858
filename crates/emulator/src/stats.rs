// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a forwarder did, as values that serialise.

use fatpath_link::{Count, Counters};
use fatpath_observation::Lateness;
use serde::Serialize;

/// What a forwarder did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// Of each link, in the order of the topology.
    pub links: Vec<LinkStats>,
    /// How late packets left, of all links.
    pub lateness: Lateness,
    /// How long packets waited in the devices before they were read, at most, of all links: the time
    /// since the device was last found empty, without that in which the forwarder slept or looked in vain.
    pub waiting: Lateness,
    /// Why the observation is not whole, such as a full disk; what the file holds is right.
    pub observation_error: Option<String>,
}

/// What passed one link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkStats {
    /// Its name.
    pub name: String,
    /// From `ends[0]` to `ends[1]`, and back.
    pub directions: [DirectionStats; 2],
}

/// What passed one direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionStats {
    /// The chain as a whole.
    pub total: Counters,
    /// Each of its cells, in order.
    pub cells: Vec<Counters>,
    /// On the way when the forwarder stopped.
    pub held: Count,
    /// Packets (super-packets count once) that a kernel refused: malformed, or device down.
    pub refused_packets: u64,
    /// Packets (likewise) that the device dropped since it was made because its ring was full: the
    /// machine was too slow for the traffic. They never reached the chain. With any, the run does
    /// not show what the link does. 0 if the device is gone.
    pub missed_packets: u64,
}
