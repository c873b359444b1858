// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::protocol::Hole;
use crate::receive::part::Parts;
use fatpath_transport::frame::Write;
use fatpath_tree::system::MODE_BITS;
use std::os::unix::fs::FileExt;

fn target(folder: &Path, is_recursive: bool) -> Target {
    let receives = Receives {
        folder: folder.as_os_str().as_bytes().to_vec(),
        preserves: false,
        is_dry: false,
        ignores_times: false,
        is_recursive,
        names: vec![b"results.tar".to_vec()],
        ..Receives::default()
    };
    Target::open(receives).unwrap()
}

fn is_refused(target: &mut Target, path: &str, kind: Kind) -> bool {
    let entry = Entry {
        object: 1,
        path: path.into(),
        kind,
        mode: 0o644,
        modified: (0, 0),
        accessed: (0, 0),
        attributes: vec![],
    };
    matches!(target.prepare(&entry), Prepared::Done(Outcome::Failed(_)))
}

#[test]
fn a_link_of_the_sender_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = target(folder.path(), true);
    let link = Kind::Link {
        target: b".".to_vec(),
    };
    assert!(!is_refused(&mut target, "results.tar", link));
    let file = Kind::File {
        size: 1,
        is_linked: false,
    };
    assert!(is_refused(&mut target, "results.tar/.bashrc", file));
    assert!(!folder.path().join(".bashrc").exists());
}

#[test]
fn who_asks_for_a_file_gets_no_folder_and_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = target(folder.path(), false);
    let link = Kind::Link {
        target: b"/tmp".to_vec(),
    };
    for (path, kind) in [
        ("results.tar", link),
        ("results.tar", Kind::Folder),
        (
            "results.tar/x",
            Kind::File {
                size: 1,
                is_linked: false,
            },
        ),
        (
            "other",
            Kind::File {
                size: 1,
                is_linked: false,
            },
        ),
    ] {
        assert!(
            is_refused(&mut target, path, kind.clone()),
            "{path} {kind:?}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let file = Kind::File {
        size: 1,
        is_linked: false,
    };
    assert!(!is_refused(&mut target, "results.tar", file));
}

/// What lies in the folder is no file of the transfer, whatever its name: it gets no other name.
#[test]
fn only_a_file_of_the_transfer_gets_another_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("there"), "x").unwrap();
    let mut target = target(folder.path(), true);
    for of in ["there", "../there", "", "results.tar", "/etc/passwd"] {
        let name = Kind::HardLink { of: of.into() };
        assert!(is_refused(&mut target, "results.tar", name), "{of}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Where an ACL goes, its mask is the group's rights, unless the mode is set before.
#[test]
fn a_file_that_loses_its_acl_gets_the_senders_mode() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("results.tar");
    std::fs::write(&there, "x").unwrap();
    // linux/posix_acl_xattr.h: the owner, user 1234, the group without rights, the mask, others.
    let entries: [(u16, u16, u32); 5] = [
        (1, 6, u32::MAX),
        (2, 6, 1234),
        (4, 0, u32::MAX),
        (16, 6, u32::MAX),
        (32, 0, u32::MAX),
    ];
    let acl = entries.iter().flat_map(|(tag, rights, id)| {
        let (tag, rights) = (tag.to_le_bytes(), rights.to_le_bytes());
        [&tag[..], &rights, &id.to_le_bytes()].concat()
    });
    let acl: Vec<u8> = 2_u32.to_le_bytes().into_iter().chain(acl).collect();
    let name = "system.posix_acl_access";
    match rustix::fs::setxattr(&there, name, &acl, rustix::fs::XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => return println!("skipped: the file system has no ACLs"),
        set => set.unwrap(),
    }
    let stat = rustix::fs::stat(&there).unwrap();
    assert_eq!(stat.st_mode & MODE_BITS, 0o660);
    let mut target = target(folder.path(), false);
    target.receives.preserves = true;
    target.receives.attributes.acls = true;
    let entry = Entry {
        object: 1,
        path: b"results.tar".to_vec(),
        kind: Kind::File {
            size: 1,
            is_linked: false,
        },
        mode: 0o640,
        modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
        accessed: (0, 0),
        attributes: vec![],
    };
    let prepared = target.prepare(&entry);
    assert!(matches!(prepared, Prepared::Done(Outcome::Skipped)));
    assert!(target.take_problems().is_empty());
    let mode = rustix::fs::stat(&there).unwrap().st_mode;
    assert_eq!(mode & MODE_BITS, 0o640);
}

fn part(target: &mut Target) -> Prepared {
    let entry = Entry {
        object: 1,
        path: b"results.tar".to_vec(),
        kind: Kind::File {
            size: 1,
            is_linked: false,
        },
        mode: 0o644,
        modified: (0, 0),
        accessed: (0, 0),
        attributes: vec![],
    };
    target.prepare(&entry)
}

/// What came first stays, as it may be hashed by now; what is told of beyond the file's end fails it.
#[test]
fn a_hole_replaces_nothing_and_ends_within_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let Prepared::Part(one, _) = part(&mut target(folder.path(), false)) else {
        panic!("a file is taken");
    };
    let file = one.spec.file.clone();
    let mut parts = Parts::default();
    parts.parts.insert(1, one);
    let hole = |until| Hole {
        object: 1,
        from: 0,
        until,
    };
    for bytes in [b"x", b"y"] {
        parts.write(&Write {
            object: 1,
            offset: 0,
            bytes,
        });
    }
    assert_eq!((parts.hole(&hole(1)), parts.bytes), (0, 1));
    let mut byte = [0];
    file.read_exact_at(&mut byte, 0).unwrap();
    assert_eq!(byte, *b"x");
    assert_eq!(parts.hole(&hole(2)), 0);
    let failure = parts.parts.get_mut(&1).and_then(|part| part.take_failure());
    assert!(failure.is_some());
    assert_eq!(parts.ready, [1], "it was whole before");
}

/// The name of the part that `target` would make.
fn part_name(folder: &Path) -> std::path::PathBuf {
    let mut target = target(folder, false);
    let Prepared::Part(part, _) = part(&mut target) else {
        panic!("a file is taken");
    };
    folder.join(OsStr::from_bytes(&part.spec.part_name))
}

fn failure(prepared: Prepared) -> String {
    match prepared {
        Prepared::Done(Outcome::Failed(why)) => why,
        _ => panic!("it is taken"),
    }
}

#[test]
fn a_part_that_others_may_write_to_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (name, other) = (part_name(folder.path()), folder.path().join("other"));
    let mut target = target(folder.path(), false);
    let mut refused = || failure(part(&mut target));
    std::fs::write(&other, "x").unwrap();
    std::fs::hard_link(&other, &name).unwrap();
    assert!(refused().contains("is not this user's alone"));
    std::fs::remove_file(&name).unwrap();
    std::os::unix::fs::symlink(&other, &name).unwrap();
    assert!(
        refused().contains("symbolic link"),
        "a link is not followed"
    );
    std::fs::remove_file(&name).unwrap();
    if geteuid().is_root() {
        std::fs::write(&name, "").unwrap();
        std::os::unix::fs::chown(&name, Some(65534), None).unwrap();
        assert!(refused().contains("is not this user's alone"));
        std::fs::remove_file(&name).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "x");
}

#[test]
fn a_part_that_lost_its_name_before_it_was_locked_is_another_transfers() {
    let folder = tempfile::tempdir().unwrap();
    let name = part_name(folder.path());
    let mut target = target(folder.path(), false);
    let root = target.root.clone().unwrap();
    let part_name = name.file_name().unwrap().as_bytes();
    let opened = File::from(own::open(&root, part_name, OFlags::empty()).unwrap());
    std::fs::rename(&name, folder.path().join("results.tar")).unwrap();
    assert!(own::lock(&opened, &root, part_name).is_err());
    // While one has it, another does not get it.
    let Prepared::Part(..) = part(&mut target) else {
        panic!("the name is free");
    };
    let holds = File::from(own::open(&root, part_name, OFlags::empty()).unwrap());
    own::lock(&holds, &root, part_name).unwrap();
    assert!(failure(part(&mut target)).contains("another transfer"));
}
