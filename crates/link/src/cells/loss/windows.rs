// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independent loss during certain times only.

use crate::random::{Picker, Random, Stretch};
use crate::{LossWindow, SpecError};

#[derive(Debug)]
pub(super) struct Windows {
    windows: Vec<LossWindow>,
    /// The window that packets came in last, with what chooses in it.
    current: Option<(usize, Picker)>,
}

pub(super) fn check(windows: &[LossWindow]) -> Result<(), SpecError> {
    let refuse = |message: &str| Err(SpecError::Other(message.to_owned()));
    if windows
        .iter()
        .any(|window| window.from_ns >= window.until_ns)
    {
        return refuse("time window of loss: give an end after its beginning");
    }
    if !windows.is_sorted_by(|one, next| one.until_ns <= next.from_ns) {
        return refuse("time windows of loss: give them in order, without overlap");
    }
    windows
        .iter()
        .try_for_each(|window| super::loss_probability(window.probability))
}

impl Windows {
    pub(super) fn new(windows: Vec<LossWindow>) -> Windows {
        Windows {
            windows,
            current: None,
        }
    }

    pub(super) fn next(&mut self, now_ns: u64, limit: u32, random: &mut Random) -> Stretch {
        let index = self
            .windows
            .partition_point(|window| window.until_ns <= now_ns);
        let open = self
            .windows
            .get(index)
            .filter(|window| window.from_ns <= now_ns);
        let Some(window) = open else {
            return Stretch::before(u64::MAX, 0, limit);
        };
        let same = self.current.take().filter(|(last, _)| *last == index);
        let (_, mut picker) =
            same.unwrap_or_else(|| (index, Picker::new(window.probability, random)));
        let stretch = picker.next(limit, random);
        self.current = Some((index, picker));
        stretch
    }
}
