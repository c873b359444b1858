// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file has beside bytes, mode and times: extended attributes (xattr(7)), POSIX ACLs (acl(5)) among them.

use crate::system::{attribute, attribute_names, remove_attribute, set_attribute};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;

/// All of a file, as [`Attribute::weight_bytes`] counts them, at most.
pub const MOST_BYTES: usize = 64 << 10;
/// Of all names of a file, and of a value (XATTR_LIST_MAX, XATTR_SIZE_MAX).
const KERNEL_BYTES: usize = 64 << 10;
/// An attribute costs this beside its name and value.
const OVERHEAD_BYTES: usize = 64;

const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Which attributes are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Which {
    /// `user.*`.
    pub user: bool,
    /// `security.*` and `trusted.*`, which programs of the system obey: root may store them.
    pub privileged: bool,
    /// POSIX ACLs, with the numbers of their users and groups.
    pub acls: bool,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// With its namespace, as `user.comment`.
    pub name: Vec<u8>,
    /// Any bytes.
    pub value: Vec<u8>,
}

impl Attribute {
    /// What it takes in memory.
    pub fn weight_bytes(&self) -> usize {
        OVERHEAD_BYTES + self.name.len() + self.value.len()
    }
}

/// What all of them take in memory.
pub fn weight_bytes(attributes: &[Attribute]) -> usize {
    attributes.iter().map(Attribute::weight_bytes).sum()
}

impl Which {
    /// Any at all.
    pub fn is_any(&self) -> bool {
        self.user || self.privileged || self.acls
    }

    /// That one is meant.
    pub fn has(&self, name: &[u8]) -> bool {
        let is_of = |space: &[u8]| name.starts_with(space);
        self.user && is_of(b"user.")
            || self.privileged && (is_of(b"security.") || is_of(b"trusted."))
            || self.acls && ACLS.contains(&name)
    }
}

/// The attributes of an open file, which may be open as a place ([`crate::system::PLACE`]), and is no link.
///
/// # Errors
/// The kernel's, or there is more than [`MOST_BYTES`].
pub fn read(file: &impl AsFd, which: Which) -> io::Result<Vec<Attribute>> {
    let mut names = vec![0; KERNEL_BYTES];
    let length = match attribute_names(file, &mut names) {
        Err(Errno::OPNOTSUPP) => return Ok(vec![]),
        listed => listed?,
    };
    let (mut attributes, mut value) = (vec![], vec![0; KERNEL_BYTES]);
    let names = names[..length].split(|byte| *byte == 0);
    for name in names.filter(|name| which.has(name)) {
        let Some(length) = attribute(file, name, &mut value)? else {
            continue; // it is gone since
        };
        attributes.push(Attribute {
            name: name.to_vec(),
            value: value[..length].to_vec(),
        });
    }
    match weight_bytes(&attributes) <= MOST_BYTES {
        true => Ok(attributes),
        false => Err(io::Error::other("it has attributes of more than 64 KiB")),
    }
}

/// It has these attributes of `which`, and no others.
pub fn are(file: &impl AsFd, which: Which, wanted: &[Attribute]) -> bool {
    let is_all = |there: Vec<Attribute>| {
        there.len() == wanted.len() && wanted.iter().all(|one| there.contains(one))
    };
    read(file, which).is_ok_and(is_all)
}

/// Gives an open file these attributes, and takes those of `which` from it that are not among them; privileged ones stay,
/// as the system gives them by itself. The mode is to be set before: what an access ACL masked becomes the group's where the
/// ACL goes.
///
/// # Errors
/// What could not be done first, in words, and how much else.
pub fn apply(file: &impl AsFd, which: Which, wanted: &[Attribute]) -> Result<(), String> {
    let there = read(file, which).map_err(|error| format!("attributes: {error}"))?;
    let is_too_much = |one: &&Attribute| {
        let is_wanted = wanted.iter().any(|wanted| wanted.name == one.name);
        let removable = Which {
            privileged: false,
            ..which
        };
        !is_wanted && removable.has(&one.name)
    };
    let removed = there.iter().filter(is_too_much);
    let removed = removed.map(|one| (one, remove_attribute(file, &one.name)));
    let missing = wanted.iter().filter(|one| !there.contains(one));
    let set = missing.map(|one| {
        let set = match which.has(&one.name) {
            true => set_attribute(file, &one.name, &one.value),
            false => Err(Errno::PERM),
        };
        (one, set)
    });
    let mut failed = removed
        .chain(set)
        .filter_map(|(one, done)| Some((one, io::Error::from(done.err()?))));
    let Some((one, error)) = failed.next() else {
        return Ok(());
    };
    let first = format!("attribute {}: {error}", crate::shown(&one.name));
    // One text for each file: a sender may name a thousand attributes that are refused.
    Err(match failed.count() {
        0 => first,
        more => format!("{first}; and {more} more"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    const USER: Which = Which {
        user: true,
        privileged: false,
        acls: false,
    };

    fn attribute(name: &str, value: &[u8]) -> Attribute {
        let (name, value) = (name.into(), value.into());
        Attribute { name, value }
    }

    #[test]
    fn attributes_are_meant_by_their_namespaces() {
        let all = Which {
            user: true,
            privileged: true,
            acls: true,
        };
        let names = [
            "user.a",
            "trusted.a",
            "security.capability",
            "system.posix_acl_access",
            "system.posix_acl_default",
            "system.other",
            "users.a",
            "",
        ];
        let meant = |which: Which| names.map(|name| which.has(name.as_bytes()));
        assert_eq!(
            meant(all),
            [true, true, true, true, true, false, false, false]
        );
        assert_eq!(
            meant(USER),
            [true, false, false, false, false, false, false, false]
        );
        assert_eq!(meant(Which::default()), [false; 8]);
    }

    #[test]
    fn a_file_gets_what_is_wanted_and_no_more() {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        let wanted = [attribute("user.a", b"1"), attribute("user.b", &[0, 255])];
        if apply(&file, USER, &wanted).is_err_and(|why| why.contains("not supported")) {
            println!("skipped: the file system has no attributes");
            return;
        }
        let read_all = || {
            let mut read = read(&file, USER).unwrap();
            read.sort_by(|one, other| one.name.cmp(&other.name));
            read
        };
        assert_eq!(read_all(), wanted);
        assert!(are(&file, USER, &wanted) && !are(&file, USER, &wanted[..1]));
        let wanted = [attribute("user.a", b"2")];
        assert_eq!(apply(&file, USER, &wanted), Ok(()));
        assert_eq!(read_all(), wanted);
        let others = [attribute("trusted.a", b"1"), attribute("user.\0", b"")];
        assert_eq!(
            apply(&file, USER, &others).unwrap_err(),
            "attribute trusted.a: Operation not permitted (os error 1); and 1 more"
        );
        let long = vec![0; KERNEL_BYTES + 1];
        let refused = apply(&file, USER, &[attribute("user.long", &long)]).unwrap_err();
        assert!(refused.starts_with("attribute user.long: "), "{refused}");
    }
}
