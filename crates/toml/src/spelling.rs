// SPDX-License-Identifier: MIT OR Apache-2.0
//! A key that does not exist, and the one that was probably meant.

/// At most 64 characters of a text that a file gave.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What to write in place of an unknown key: its nearest neighbour, or one of all that are known.
pub(crate) fn instead(key: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|candidate| (distance(key, candidate), candidate))
        .min();
    match nearest {
        // Two slips of the pen, in a word long enough to know it by; more is another word.
        Some((edits, candidate)) if edits <= 2 && edits * 3 <= candidate.len() => {
            format!("did you mean `{candidate}`?")
        }
        None => "allowed: none".to_owned(),
        _ => format!("allowed: {}", known.join(", ")),
    }
}

/// The Levenshtein distance, with hyphens and capitals forgiven.
fn distance(written: &str, known: &str) -> usize {
    let written: Vec<char> = shortened(written)
        .to_lowercase()
        .replace('-', "_")
        .chars()
        .collect();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, letter) in written.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, wanted) in known.chars().enumerate() {
            let replaced = diagonal + usize::from(*letter != wanted);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[known.len()]
}
