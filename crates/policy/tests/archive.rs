// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `[archive]` section.

#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_policy::{Archive, parse};

fn archive(section: &str) -> Option<Archive> {
    parse(section, None).unwrap().archive
}

#[test]
fn only_a_section_asks_for_an_archive() {
    assert_eq!(archive("# nothing"), None);
    assert_eq!(archive("[archive]"), Some(Archive::default()));
}

#[test]
fn each_key_is_read() {
    let read = archive(
        "[archive]\ndays = 7\nsize = '5GB'\nspool_size = '64MiB'\nevery_flow_from = '10kB'\none_in = 3\nhost_interval = '5s'",
    );
    let read = read.unwrap();
    assert_eq!((read.days, read.one_in), (7, 3));
    assert_eq!(
        (read.total_bytes, read.spool_bytes),
        (5_000_000_000, 64 << 20)
    );
    assert_eq!(
        (read.every_flow_bytes, read.host_interval_us),
        (10_000, 5_000_000)
    );
}

#[test]
fn what_is_out_of_range_or_unknown_is_refused_with_its_place() {
    for (line, said) in [
        ("days = 0", "an integer of 1 to 3650 days"),
        ("size = '1MB'", "16 MiB to 16 TiB"),
        ("spool_size = 7", "1 MiB to 64 GiB"),
        ("one_in = 0", "1 to 1000000"),
        ("host_interval = '100ms'", "1s to 3600s"),
        ("url = '/var/lib'", "postgres://USER@HOST/DATABASE"),
        ("url = 'postgres://u:secret@h/d'", "it has a password"),
        (
            "url = 'postgres://u@h/d?password=secret'",
            "it has a password",
        ),
        ("url = 'postgres://u:sec/secret@h/d'", "it has a password"),
        ("url = 'postgres://u:sec?secret@h/d'", "it has a password"),
        (
            "url = 'postgres://u@h/d?a=b&p%61ssword=secret'",
            "it has a password",
        ),
        ("url = 'http://u:secret@h/d'", "not the URL"),
        ("url = ['postgres://u:secret@h/d']", "not the URL"),
        ("password_file = '/etc/x'", "there is none"),
    ] {
        let problems = parse(&format!("[archive]\n{line}\n"), None).unwrap_err();
        let text = problems[0].in_file("p.toml").to_string();
        assert!(
            text.starts_with("p.toml:") && text.contains(said) && !text.contains("secret"),
            "{text}"
        );
    }
}

#[test]
fn a_server_has_a_url_and_a_password_in_a_file() {
    let url = "postgresql://fatpath@db.example:5433/site?sslmode=require";
    let read = archive(&format!(
        "[archive]\nurl = '{url}'\npassword_file = '/etc/x'"
    ));
    let server = read.unwrap().server.unwrap();
    assert_eq!(
        (server.url.as_str(), server.password_file),
        (url, Some("/etc/x".into()))
    );
    let with_size = parse(&format!("[archive]\nurl = '{url}'\nsize = '1GB'\n"), None).unwrap_err();
    assert!(
        with_size[0]
            .to_string()
            .contains("with `url` there are none")
    );
}
