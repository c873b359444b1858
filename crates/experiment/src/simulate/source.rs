// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says of a flow, in the simulator's types.
//!
//! Pure. Start with [`source`].

use fatpath_sim as sim;

use fatpath_scenario::{RudeOff, Source};

/// What is sent.
pub(super) fn source(source: &Source) -> sim::Source {
    match *source {
        Source::Bulk { bytes, again } => sim::Source::Bulk { bytes, again },
        Source::Chunks {
            chunk_bytes,
            first_chunk_bytes,
            every_ns,
            count,
        } => sim::Source::Chunks {
            chunk_bytes,
            first_chunk_bytes,
            every_ns,
            count,
        },
        Source::Web {
            users,
            mean_object_bytes,
            shape,
            objects_per_page,
            mean_think_ns,
        } => sim::Source::Web {
            users,
            mean_object_bytes,
            shape,
            objects_per_page,
            mean_think_ns,
        },
        Source::ConstantRate {
            rate_bps,
            payload_bytes,
        } => sim::Source::ConstantRate {
            rate_bps,
            payload_bytes,
        },
    }
}

/// The end of being rude.
pub(super) fn rude_off(RudeOff { at_ns, nicely }: RudeOff) -> sim::RudeOff {
    sim::RudeOff { at_ns, nicely }
}
