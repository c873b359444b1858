// SPDX-License-Identifier: MIT OR Apache-2.0
//! A word that does not exist, and the one that was probably meant.

/// At most 64 characters of a text that a file gave.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What to write in place of an unknown key: its nearest neighbour, or one of all that are known.
pub(crate) fn instead(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.is_empty() => "allowed: none".to_owned(),
        None => format!("allowed: {}", known.join(", ")),
    }
}

/// The one of these words that was probably meant by another.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known = known.into_iter();
    let distances = known.map(|candidate| (distance(written, candidate), candidate));
    // Two slips of the pen, in a word long enough to know it by; more is another word.
    let (_, meant) = distances
        .min()
        .filter(|(edits, meant)| *edits <= 2 && edits * 3 <= meant.len())?;
    Some(meant)
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
