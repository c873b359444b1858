// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a folder has all that comes into it, so that it gets its mode and times, and is forgotten: the sender names what is
//! in a folder right after it, and each file that was asked for has an end. What is remembered goes by what is under way,
//! not by how much there is.

use fatpath_tree::attributes::{Attribute, weight_bytes};
use std::collections::HashMap;

/// What a folder gets when all that is in it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: Vec<u8>,
    pub mode: u32,
    pub modified: (i64, u32),
    pub accessed: (i64, u32),
    pub attributes: Vec<Attribute>,
}

/// The folders that something may still come into.
#[derive(Default)]
pub struct Folders {
    waiting: HashMap<Vec<u8>, Waiting>,
    /// Of the attributes of those.
    attribute_bytes: usize,
    /// Those that the newest name is of or below, the outermost first.
    open: Vec<Vec<u8>>,
}

struct Waiting {
    folder: Folder,
    /// Files in it that are arriving, and folders that wait.
    awaited: usize,
    /// More may be named in it.
    is_open: bool,
}

impl Folders {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// What their attributes take in memory.
    pub fn attribute_bytes(&self) -> usize {
        self.attribute_bytes
    }

    /// The sender names this; gives the folders that are complete by that, the deepest first.
    pub fn named(&mut self, path: &[u8]) -> Vec<Folder> {
        let mut complete = vec![];
        while let Some(last) = self.open.pop_if(|open| !is_below(path, open)) {
            if let Some(waiting) = self.waiting.get_mut(&last) {
                waiting.is_open = false;
            }
            self.close(last, &mut complete);
        }
        complete
    }

    /// It is a folder; [`Folders::named`] was told.
    pub fn begin(&mut self, folder: Folder) {
        let path = folder.path.clone();
        self.attribute_bytes += weight_bytes(&folder.attributes);
        if let Some(known) = self.waiting.get_mut(&path) {
            self.attribute_bytes -= weight_bytes(&known.folder.attributes);
            known.folder = folder; // named twice: what was said last
            return;
        }
        self.await_in(above(&path));
        let (awaited, is_open) = (0, true);
        let waiting = Waiting {
            folder,
            awaited,
            is_open,
        };
        self.waiting.insert(path.clone(), waiting);
        self.open.push(path);
    }

    /// It is a file that arrives from now on.
    pub fn awaits(&mut self, path: &[u8]) {
        self.await_in(above(path));
    }

    /// That file is there, or will never be; gives the folders that are complete by that, the deepest first.
    pub fn ended(&mut self, path: &[u8]) -> Vec<Folder> {
        let mut complete = vec![];
        if let Some(waiting) = self.waiting.get_mut(above(path)) {
            waiting.awaited = waiting.awaited.saturating_sub(1);
            self.close(above(path).to_vec(), &mut complete);
        }
        complete
    }

    /// Nothing more is named, and nothing arrives: all that are left, the deepest first.
    pub fn end(&mut self) -> Vec<Folder> {
        self.open.clear();
        self.attribute_bytes = 0;
        let mut left: Vec<_> = self.waiting.drain().map(|(_, left)| left.folder).collect();
        left.sort_by(|one, other| other.path.cmp(&one.path));
        left
    }

    fn await_in(&mut self, path: &[u8]) {
        if let Some(waiting) = self.waiting.get_mut(path) {
            waiting.awaited += 1;
        }
    }

    /// Takes it out if nothing more comes into it, and those above it that waited for it alone.
    fn close(&mut self, mut path: Vec<u8>, complete: &mut Vec<Folder>) {
        while let Some(waiting) = self.waiting.get(&path)
            && waiting.awaited == 0
            && !waiting.is_open
            && let Some(closed) = self.waiting.remove(&path)
        {
            self.attribute_bytes -= weight_bytes(&closed.folder.attributes);
            complete.push(closed.folder);
            path = above(&path).to_vec();
            if let Some(above) = self.waiting.get_mut(&path) {
                above.awaited = above.awaited.saturating_sub(1);
            }
        }
    }
}

/// The folder that it is in; empty: the target itself.
fn above(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/');
    &path[..end.unwrap_or_default()]
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn folder(path: &str) -> Folder {
        Folder {
            path: path.into(),
            mode: 0o755,
            modified: (1, 2),
            accessed: (3, 4),
            attributes: vec![],
        }
    }

    fn shown(complete: Vec<Folder>) -> Vec<String> {
        let paths = complete.into_iter().map(|folder| folder.path);
        paths.map(|path| String::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn a_folder_is_complete_when_all_in_it_has_ended_and_the_sender_is_past_it() {
        let mut folders = Folders::default();
        let nothing: [&str; 0] = [];
        for path in ["a", "a/b", "a/b/c"] {
            assert_eq!(shown(folders.named(path.as_bytes())), nothing);
            folders.begin(folder(path));
        }
        for path in ["a/b/c/1", "a/b/c/2"] {
            assert_eq!(shown(folders.named(path.as_bytes())), nothing);
            folders.awaits(path.as_bytes());
        }
        assert_eq!(shown(folders.ended(b"a/b/c/1")), nothing);
        assert_eq!(
            shown(folders.named(b"a/bc")),
            nothing,
            "a file of a/b/c arrives"
        );
        folders.begin(folder("a/bc"));
        assert_eq!(shown(folders.ended(b"a/b/c/2")), ["a/b/c", "a/b"]);
        assert_eq!(shown(folders.named(b"z")), ["a/bc", "a"]);
        folders.begin(folder("z"));
        folders.begin(folder("z/deep"));
        assert_eq!(shown(folders.end()), ["z/deep", "z"]);
        assert_eq!(folders.count(), 0);
    }

    /// A million files, ten in a folder and ten folders in another one, of which the last 16,384 have not ended: what is
    /// remembered are the folders of these, and each folder comes once, after all that is in it.
    #[test]
    fn what_is_remembered_goes_by_what_is_under_way() {
        const UNDER_WAY: usize = 16_384;
        let (mut folders, mut arriving) = (Folders::default(), VecDeque::new());
        let (mut most, mut complete) = (0, 0);
        folders.begin(folder("top"));
        for number in 0..1_000_000 {
            let (above, below) = (number / 100, number / 10);
            for (of, path) in [
                (100, format!("top/{above}")),
                (10, format!("top/{above}/{below}")),
            ] {
                if number % of == 0 {
                    complete += folders.named(path.as_bytes()).len();
                    folders.begin(folder(&path));
                }
            }
            let path = format!("top/{above}/{below}/{number}").into_bytes();
            complete += folders.named(&path).len();
            folders.awaits(&path);
            arriving.push_back(path);
            if arriving.len() > UNDER_WAY {
                complete += folders.ended(&arriving.pop_front().unwrap()).len();
            }
            most = most.max(folders.count());
        }
        assert!(most <= UNDER_WAY / 10 + UNDER_WAY / 100 + 10, "{most}");
        complete += arriving
            .iter()
            .map(|path| folders.ended(path).len())
            .sum::<usize>();
        assert_eq!(shown(folders.end()).last().unwrap(), "top");
        assert_eq!(
            complete,
            110_001 - 3,
            "all but those that the last name is in"
        );
    }
}
