// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that come from the other end: a path below the target folder, or refused.

/// The beginning of names that are ours: parts of files, and their journals.
pub const OURS: &[u8] = b".fatpath-";

/// Longest path (PATH_MAX less its NUL) and name (NAME_MAX), bytes.
pub(crate) const PATH_BYTES: usize = 4095;
const NAME_BYTES: usize = 255;

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It is empty, or has an empty name in it, as an absolute path has.
    #[error("an absolute path, or an empty name")]
    Empty,
    /// A name is `.` or `..`.
    #[error("a path that leaves the target folder")]
    Leaves,
    /// It has a NUL.
    #[error("a name with a NUL")]
    Nul,
    /// Longer than Linux takes.
    #[error("a name that is too long")]
    Long,
    /// It begins as fatpath's own files do.
    #[error("a name that begins with .fatpath-, as those of unfinished transfers do")]
    Ours,
}

/// Checks a path of the other end, and gives its names.
pub fn checked(path: &[u8]) -> Result<Vec<&[u8]>, BadName> {
    if path.len() > PATH_BYTES {
        return Err(BadName::Long);
    }
    let names: Vec<_> = path.split(|byte| *byte == b'/').collect();
    for name in &names {
        match *name {
            b"" => return Err(BadName::Empty),
            b"." | b".." => return Err(BadName::Leaves),
            name if name.contains(&0) => return Err(BadName::Nul),
            name if name.len() > NAME_BYTES => return Err(BadName::Long),
            name if is_ours(name) => return Err(BadName::Ours),
            _ => {}
        }
    }
    Ok(names)
}

/// The name begins as ours do ([`OURS`]), or does where names of other case are the same (`case.rs`): such file systems also
/// leave characters out, as ext4 and HFS+ do U+200C and U+00AD. So what is not ASCII does not count.
pub fn is_ours(name: &[u8]) -> bool {
    let ascii = name.iter().filter(|byte| byte.is_ascii());
    let begins = ascii.take(OURS.len()).map(u8::to_ascii_lowercase);
    begins.eq(OURS.iter().copied())
}

/// A name for people: what is no text, and what a terminal would obey, is escaped.
pub fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let escaped = |char: char| match char.is_control() {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_names_are_refused() {
        let long = [b'a'; 256];
        let deep = [&b"a/"[..]; 2050].concat();
        let refused: [(&[u8], BadName); 19] = [
            (b"", BadName::Empty),
            (b"/etc/passwd", BadName::Empty),
            (b"a//b", BadName::Empty),
            (b"a/", BadName::Empty),
            (b".", BadName::Leaves),
            (b"..", BadName::Leaves),
            (b"../x", BadName::Leaves),
            (b"a/../../x", BadName::Leaves),
            (b"a/./b", BadName::Leaves),
            (b"a\0b", BadName::Nul),
            (&long, BadName::Long),
            (&deep, BadName::Long),
            (b".fatpath-0011.part", BadName::Ours),
            (b"a/.fatpath-x/b", BadName::Ours),
            (b".FatPath-0011.part", BadName::Ours),
            (b"a/.FATPATH-x/b", BadName::Ours),
            (".fat\u{200c}path-0011.part".as_bytes(), BadName::Ours),
            ("\u{200c}.FATPATH-".as_bytes(), BadName::Ours),
            ("a/.fatpath\u{ad}-x".as_bytes(), BadName::Ours),
        ];
        for (path, why) in refused {
            assert_eq!(checked(path), Err(why), "{}", shown(path));
        }
        for other in [&b".fatpath"[..], b"x.fatpath-", ".fatp\u{e4}th-".as_bytes()] {
            assert_eq!(checked(other), Ok(vec![other]));
        }
        assert_eq!(checked(b"a/b c/\xff"), Ok(vec![&b"a"[..], b"b c", b"\xff"]));
        assert_eq!(shown(b"a\x1b[2J\xff"), "a\\u{1b}[2J\u{fffd}");
    }

    proptest! {
        #[test]
        fn what_is_taken_stays_below(path in prop::collection::vec(prop::sample::select(b"/.a\0".to_vec()), 0..12)) {
            if let Ok(names) = checked(&path) {
                prop_assert_eq!(&names.join(&b'/'), &path);
                prop_assert!(names.iter().all(|name| ![&b""[..], b".", b".."].contains(name)));
            }
        }
    }
}
