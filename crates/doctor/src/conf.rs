// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sysctls that files set: those of sysctl.d(5) and the profiles of tuned.

/// One line that sets a sysctl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfLine {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The sysctl, with dots.
    pub key: String,
    /// Its value, words separated by one space.
    pub value: String,
}

impl ConfLine {
    /// The last number of the value: of three, the maximum.
    pub(crate) fn number(&self) -> Option<u64> {
        // tuned writes `>` before what is only to be raised.
        let value = self.value.trim_start_matches('>');
        value.rsplit(' ').next()?.parse().ok()
    }
}

/// The lines of a file of sysctl.d(5).
pub fn sysctl_lines(file: &str, text: &str) -> Vec<ConfLine> {
    text.lines()
        .zip(1..)
        .filter_map(|(text, line)| read_line(file, text, line))
        .collect()
}

/// The lines of the section `[sysctl]` of a profile of tuned.
pub fn tuned_lines(file: &str, text: &str) -> Vec<ConfLine> {
    in_section(text, "[sysctl]")
        .filter_map(|(text, line)| read_line(file, text, line))
        .collect()
}

/// The profiles that a profile of tuned builds on.
pub fn tuned_includes(text: &str) -> Vec<String> {
    let includes = in_section(text, "[main]").filter_map(|(text, _)| {
        let (key, value) = text.split_once('=')?;
        (key.trim() == "include").then_some(value)
    });
    let names = includes.flat_map(|value| value.split([',', ';']));
    names
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn in_section<'t>(text: &'t str, section: &'t str) -> impl Iterator<Item = (&'t str, usize)> {
    let mut is_inside = false;
    text.lines().zip(1..).filter(move |(text, _)| {
        let text = text.trim();
        if text.starts_with('[') {
            is_inside = text == section;
        }
        is_inside
    })
}

fn read_line(file: &str, text: &str, line: usize) -> Option<ConfLine> {
    let text = text.trim();
    if text.starts_with(['#', ';', '[']) {
        return None;
    }
    let (key, value) = text.split_once('=')?;
    // `-` before a key: an error does not count.
    let key = key.trim().trim_start_matches('-');
    let value: Vec<&str> = value.trim().trim_matches('"').split_whitespace().collect();
    Some(ConfLine {
        file: file.to_owned(),
        line,
        key: dotted(key),
        value: value.join(" "),
    })
}

/// sysctl.d(5): where the first separator is a slash, slashes separate and dots are part of names.
fn dotted(key: &str) -> String {
    match key.find(['/', '.']) {
        Some(at) if key[at..].starts_with('/') => key.replace('/', "."),
        _ => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(lines: &[ConfLine]) -> Vec<(usize, &str, &str)> {
        lines
            .iter()
            .map(|line| (line.line, line.key.as_str(), line.value.as_str()))
            .collect()
    }

    #[test]
    fn both_ways_to_write_a_key_and_comments_are_read() {
        let text = "# a comment\n; another\nnet.ipv4.tcp_sack=0\n\n -net/core/rmem_max = 4194304\nnonsense\n\
                    net.ipv4.tcp_rmem = 4096\t131072  33554432\n";
        let lines = sysctl_lines("/etc/sysctl.d/10-net.conf", text);
        let wanted = [
            (3, "net.ipv4.tcp_sack", "0"),
            (5, "net.core.rmem_max", "4194304"),
            (7, "net.ipv4.tcp_rmem", "4096 131072 33554432"),
        ];
        assert_eq!(pairs(&lines), wanted);
        assert_eq!(lines[2].number(), Some(33_554_432));
    }

    #[test]
    fn of_a_tuned_profile_only_the_section_sysctl_counts() {
        let text = "[main]\nsummary=a = b\ninclude=throughput-performance, own\n[cpu]\ngovernor=performance\n\
                    [sysctl]\nnet.core.rmem_max=>16777216\nnet.ipv4.tcp_rmem=\"4096 131072 16777216\"\n[disk]\nx=1\n";
        let lines = tuned_lines("t", text);
        let wanted = [
            (7, "net.core.rmem_max", ">16777216"),
            (8, "net.ipv4.tcp_rmem", "4096 131072 16777216"),
        ];
        assert_eq!(pairs(&lines), wanted);
        assert_eq!(lines[0].number(), Some(16_777_216));
        assert_eq!(tuned_includes(text), ["throughput-performance", "own"]);
    }

    proptest! {
        /// Other people write these files.
        #[test]
        fn no_text_is_too_odd(text in "[\\[\\]a-z./=#;>\" 0-9\n-]{0,200}") {
            for line in sysctl_lines("f", &text).iter().chain(&tuned_lines("f", &text)) {
                prop_assert!(line.line >= 1 && line.line <= text.lines().count());
                let _ = line.number();
            }
            let _ = tuned_includes(&text);
        }
    }
}
