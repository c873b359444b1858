// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a message may have at most: memory is bounded, whatever the other end says.

use super::{Entry, Kind, LeftOut, Message, Outcome, Part};
use fatpath_tree::attributes::{self, weight_bytes};

/// Entries, answers and the like in one message at most.
pub const MOST_ITEMS: usize = 512;
/// A path or a link's target of an entry is no longer: PATH_MAX, and a name that stands for what was given.
const MOST_PATH_BYTES: usize = 4096 + 256;
/// What else is a text is no longer. A path is reported as too long with one name more, and a reason may have one in it, escaped.
const MOST_TEXT_BYTES: usize = 32 << 10;
/// Stretches of all answers of a message, and names in the first one, at most: a short one takes more memory than bytes of the
/// message.
const MOST_RANGES: usize = 1 << 17;
const MOST_NAMES: usize = 1 << 18;

/// What is kept of a message has bounds: how many items, and how long each of their texts is.
pub fn is_bounded(message: &Message) -> bool {
    match message {
        Message::Hello(hello) => {
            let asked = &hello.agreed.tcp;
            hello.part.names() <= MOST_NAMES
                && asked.len() <= MOST_ITEMS
                && longest(asked.iter().map(String::len)) <= MOST_TEXT_BYTES
        }
        Message::Entries(entries) => {
            let texts = entries.iter().map(Entry::text_bytes);
            let attributes = entries.iter().map(|entry| weight_bytes(&entry.attributes));
            entries.len() <= MOST_ITEMS
                && longest(texts) <= MOST_PATH_BYTES
                && longest(attributes) <= attributes::MOST_BYTES
        }
        Message::Problems(problems) => {
            let texts = problems.iter();
            let texts = texts.map(|problem| problem.path.len().max(problem.why.len()));
            problems.len() <= MOST_ITEMS && longest(texts) <= MOST_TEXT_BYTES
        }
        Message::Deleted { paths, .. } => {
            paths.len() <= MOST_ITEMS && longest(paths.iter().map(Vec::len)) <= MOST_PATH_BYTES
        }
        Message::Holes(holes) => holes.len() <= MOST_ITEMS,
        Message::Checksums(checksums) => {
            let texts = checksums.iter();
            let texts = texts.filter_map(|checksum| checksum.blake3.as_ref().err());
            checksums.len() <= MOST_ITEMS && longest(texts.map(String::len)) <= MOST_TEXT_BYTES
        }
        Message::Answers(answers) => {
            let texts = answers.iter().map(|answer| match &answer.outcome {
                Outcome::Failed(why) => why.len(),
                _ => 0,
            });
            let ranges = answers.iter().map(|answer| match &answer.outcome {
                Outcome::Wanted(ranges) => ranges.len(),
                _ => 0,
            });
            let ranges = ranges.sum::<usize>();
            answers.len() <= MOST_ITEMS
                && ranges <= MOST_RANGES
                && longest(texts) <= MOST_TEXT_BYTES
        }
        _ => true,
    }
}

fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or_default()
}

impl Part {
    fn names(&self) -> usize {
        match self {
            Part::Send(sends) => sends.paths.len() + sends.patterns.count(),
            Part::Receive(receives) => {
                let patterns = receives.deletes.as_ref().map_or(0, LeftOut::count);
                receives.names.len() + patterns
            }
        }
    }
}

impl LeftOut {
    fn count(&self) -> usize {
        self.exclude.len() + self.include.len()
    }
}

impl Entry {
    fn text_bytes(&self) -> usize {
        let target = match &self.kind {
            Kind::Link { target } | Kind::HardLink { of: target } => target.len(),
            _ => 0,
        };
        self.path.len().max(target)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::super::{Agreed, Answer, Hello, Problem, Receives, VERSION, decode};
    use super::*;
    use fatpath_tree::attributes::Attribute;

    #[test]
    fn no_message_has_texts_without_end() {
        let problem = |bytes: usize| {
            let (path, why) = (vec![b'x'; bytes], String::new());
            postcard::to_stdvec(&Message::Problems(vec![Problem { path, why }])).unwrap()
        };
        assert!(decode(&problem(MOST_TEXT_BYTES)).is_some());
        assert_eq!(decode(&problem(MOST_TEXT_BYTES + 1)), None);
    }

    #[test]
    fn no_entry_has_a_path_or_attributes_without_end() {
        let entry = |path: usize, values: &[usize]| {
            let attributes = values.iter().map(|bytes| Attribute {
                name: vec![],
                value: vec![0; *bytes],
            });
            let entry = Entry {
                object: 0,
                path: vec![b'x'; path],
                kind: Kind::Folder,
                mode: 0,
                modified: (0, 0),
                accessed: (0, 0),
                attributes: attributes.collect(),
            };
            postcard::to_stdvec(&Message::Entries(vec![entry])).unwrap()
        };
        assert!(decode(&entry(MOST_PATH_BYTES, &[])).is_some());
        assert_eq!(decode(&entry(MOST_PATH_BYTES + 1, &[])), None);
        assert!(decode(&entry(1, &[32 << 10, 31 << 10])).is_some());
        assert_eq!(decode(&entry(1, &[32 << 10, 32 << 10])), None);
        assert_eq!(decode(&entry(1, &[0; 2000])), None, "many weigh, too");
    }

    /// Four mebibytes of the shortest take some hundred in memory.
    #[test]
    fn no_message_has_short_items_without_end() {
        let outcome = Outcome::Wanted(vec![(0, 1); MOST_RANGES / 2]);
        let answers = |count| {
            vec![
                Answer {
                    object: 0,
                    outcome: outcome.clone()
                };
                count
            ]
        };
        let answers = |count| postcard::to_stdvec(&Message::Answers(answers(count))).unwrap();
        assert!(decode(&answers(2)).is_some());
        assert_eq!(decode(&answers(3)), None);
        let hello = |names| {
            let agreed = Agreed::of_tests();
            let receives = Receives {
                names: vec![vec![]; names],
                ..Receives::default()
            };
            let hello = Hello {
                version: VERSION,
                random: [0; 32],
                agreed,
                part: Part::Receive(receives),
            };
            postcard::to_stdvec(&Message::Hello(hello)).unwrap()
        };
        assert!(decode(&hello(MOST_NAMES)).is_some());
        assert_eq!(decode(&hello(MOST_NAMES + 1)), None);
    }

    #[test]
    fn no_message_has_items_without_end() {
        let answer = Answer {
            object: 0,
            outcome: Outcome::Stored,
        };
        let message = Message::Answers(vec![answer; MOST_ITEMS + 1]);
        assert_eq!(decode(&postcard::to_stdvec(&message).unwrap()), None);
    }
}
