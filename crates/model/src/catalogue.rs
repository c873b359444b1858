// SPDX-License-Identifier: MIT OR Apache-2.0
//! All models.

use crate::{Model, aimd, bbr, buffers, cardwell, cubic, highspeed, limits, mathis, pftk};
use crate::{recovery, scalable, slow_start, streams, tfrc, transfer};

/// Every model, in the order of docs/model.md.
pub const MODELS: [&Model; 22] = [
    &mathis::MODEL,
    &mathis::RANDOM_MODEL,
    &mathis::DELAYED_ACK_MODEL,
    &pftk::MODEL,
    &tfrc::MODEL,
    &aimd::MODEL,
    &aimd::RANDOM_MODEL,
    &scalable::MODEL,
    &scalable::FIRST_TERM_MODEL,
    &highspeed::MODEL,
    &cubic::MODEL,
    &bbr::MODEL,
    &streams::MODEL,
    &cardwell::MODEL,
    &transfer::MODEL,
    &recovery::MODEL,
    &slow_start::MODEL,
    &slow_start::QUEUE_MODEL,
    &buffers::QUEUE_MODEL,
    &buffers::MANY_FLOWS_MODEL,
    &buffers::REPAIR_MODEL,
    &limits::MODEL,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_model_has_a_source_and_a_range() {
        let names: BTreeSet<&str> = MODELS.iter().map(|model| model.name).collect();
        assert_eq!(names.len(), MODELS.len());
        for model in MODELS {
            assert!(!model.source.is_empty(), "{}", model.name);
            // What is compared with the simulator says where.
            assert_eq!(
                model.sim_error.is_some(),
                !model.range.is_empty(),
                "{}",
                model.name
            );
            assert!(
                model.range.iter().all(|bound| bound.min < bound.max),
                "{}",
                model.name
            );
        }
    }
}
