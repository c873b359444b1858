// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several flows, or connections, is given up: one that is silent while another one is not.

use std::time::Duration;

/// What is silent for so long beside others, or for half of what silence may last, is given up: its port is blocked, its
/// line is broken, or something between forgot it. Losses alone keep nothing silent for so long.
const SILENT_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// The first to give up, of those that were silent for so long each; `None` of one: nothing is known of it.
pub fn silent_beside(
    silence: Duration,
    silent_for: impl Iterator<Item = Option<Duration>> + Clone,
) -> Option<usize> {
    let most = (silence / 2).min(SILENT_BESIDE_OTHERS);
    let mut known = silent_for.clone().flatten();
    // Where none speaks, the path is silent as a whole.
    let one_speaks = known.any(|silent| silent < most / 2);
    let place = silent_for
        .into_iter()
        .position(|silent| silent.is_some_and(|silent| silent >= most));
    place.filter(|_| one_speaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_given_up_where_another_speaks() {
        let first = |silence_s, silent_ms: &[Option<u64>]| {
            let silent_for = silent_ms.iter().map(|ms| ms.map(Duration::from_millis));
            silent_beside(Duration::from_secs(silence_s), silent_for)
        };
        assert_eq!(first(30, &[Some(100), Some(5000)]), Some(1));
        assert_eq!(first(30, &[Some(2500), Some(5000)]), None);
        assert_eq!(first(30, &[Some(100), Some(4999)]), None);
        assert_eq!(first(2, &[Some(1000), None, Some(499)]), Some(0));
        assert_eq!(first(2, &[Some(1000), None]), None);
        assert_eq!(first(2, &[Some(1000)]), None);
    }
}
