// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated networks on one machine: real kernels, real packets, cells of [`fatpath_link`] between.
//!
//! Hosts are network namespaces, emulated links are pairs of TUN devices, and one thread forwards packets from
//! device to device through the two chains of each link; other links are veth pairs. 64 KB super-packets (TSO, UDP GSO) pass
//! whole; they are split only when their segments fare differently, or on links that are `exact`.
//!
//! It runs no programs of its own accord, knows no scenario files and keeps no results: that is the
//! lab's. It decides nothing about packets: that is the cells'.
//!
//! Start reading at [`Topology`], the input; then [`Network::up`] and [`Network::forward`], whose
//! loop is in `forward` and whose work is in `direction`. The packets themselves are in `frame`
//! (buffers) and `gso` (headers).

mod buffer;
mod bytes;
mod checksum;
mod clock;
mod control;
mod corrupt;
mod direction;
mod error;
mod forward;
mod fragment;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod gso;
mod icmp;
pub mod idle;
mod ip;
mod lateness;
mod link;
mod namespace;
mod netlink;
mod network;
mod observer;
mod poller;
mod priority;
mod stats;
mod topology;
mod tun;
pub mod unshaped;
mod vnet;
mod waiting;

pub use fatpath_link::{CellSpec, ChainSpec, Count, Counters, DropCause, SpecError};

pub use control::{ChangeError, Control, LinkChange};
pub use error::ForwardError;
pub use forward::ForwardOptions;
pub use namespace::{Namespace, NamespaceError, remove_namespace};
pub use network::{Network, UpError};
pub use observer::ObservationOptions;
pub use stats::{DirectionStats, LinkStats, Stats};
pub use topology::{End, HostSpec, LinkSpec, RouteSpec, Topology, TopologyError, WireSpec};
pub use tun::Tun;
