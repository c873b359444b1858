// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of several flows, or connections, is given up: one that is silent while another one is not.

use std::time::Duration;

/// What is silent for so long beside others, or for half of what silence may last, is given up: its port is blocked, its
/// line is broken, or something between forgot it. Losses alone keep nothing silent for so long.
const SILENT_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// How one of them stands.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    /// For how long the other end has owed an answer and said nothing; zero: it owes none.
    pub silent_for: Duration,
    /// It has answered at some time. One that never did may owe an answer for a short time only because it has just begun.
    pub was_heard: bool,
}

/// The first to give up; `None` of one: there is nothing to give up yet.
pub fn silent_beside(
    silence: Duration,
    mut all: impl Iterator<Item = Option<Quiet>> + Clone,
) -> Option<usize> {
    let most = (silence / 2).min(SILENT_BESIDE_OTHERS);
    // Where none speaks, the path is silent as a whole.
    let mut known = all.clone().flatten();
    let one_speaks = known.any(|one| one.was_heard && one.silent_for < most / 2);
    let place = all.position(|one| one.is_some_and(|one| one.silent_for >= most));
    place.filter(|_| one_speaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_given_up_where_another_speaks() {
        let first = |silence_s, all: &[Option<(u64, bool)>]| {
            let all = all.iter().map(|one| {
                one.map(|(silent_ms, was_heard)| Quiet {
                    silent_for: Duration::from_millis(silent_ms),
                    was_heard,
                })
            });
            silent_beside(Duration::from_secs(silence_s), all)
        };
        let heard = |silent_ms| Some((silent_ms, true));
        let unheard = |silent_ms| Some((silent_ms, false));
        assert_eq!(first(30, &[heard(100), heard(5000)]), Some(1));
        assert_eq!(first(30, &[heard(100), unheard(5000)]), Some(1));
        assert_eq!(first(30, &[heard(2500), heard(5000)]), None);
        assert_eq!(first(30, &[unheard(100), unheard(5000)]), None);
        assert_eq!(first(30, &[heard(100), heard(4999)]), None);
        assert_eq!(first(2, &[heard(1000), None, heard(499)]), Some(0));
        assert_eq!(first(2, &[heard(1000), None]), None);
        assert_eq!(first(2, &[heard(1000)]), None);
    }
}
