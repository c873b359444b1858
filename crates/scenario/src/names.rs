// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which names a scenario may give, and the names of its cases.
//!
//! Pure. Start with [`device`]; a case's name is its [`label`].

use std::collections::BTreeMap;

pub(super) const LAB_NAME: &str = "1 to 20 of a-z, 0-9 and -, beginning with a letter";
pub(super) const LAW_NAME: &str = "the name of a law, 1 to 15 of A-Z, a-z, 0-9, _ and -";
const DEVICE_NAME: &str = "1 to 15 of a-z, 0-9 and -, beginning with a letter";
pub(super) const CASE_NAME: &str =
    "1 to 40 of A-Z, a-z, 0-9, ., _ and -, beginning with a letter or digit";

/// A label stays a good part of a file's name (255 bytes), with what the runs add.
const MOST_LABEL_BYTES: usize = 120;

/// A lab's name, part of the names of its namespaces.
pub(super) fn lab(text: &str) -> Result<(), &'static str> {
    lower_case(text, 20).then_some(()).ok_or(LAB_NAME)
}

/// The name of a device, and of a host.
pub(super) fn device(text: &str) -> Result<(), &'static str> {
    lower_case(text, 15).then_some(()).ok_or(DEVICE_NAME)
}

fn lower_case(text: &str, most: usize) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= most
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The name of a law; the kernel has room for 15 bytes.
pub(super) fn law(text: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let good = (1..=15).contains(&text.len()) && text.chars().all(fits);
    good.then(|| text.to_owned()).ok_or(LAW_NAME)
}

/// The name of a path, a variant, or something to vary.
pub(super) fn case(text: &str) -> Result<(), &'static str> {
    let good = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 40
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    good.then_some(()).ok_or(CASE_NAME)
}

/// A sysctl that each network namespace has for itself. Names with other characters, or with two
/// dots in a row, could lead out of /proc/sys/net.
pub(super) fn is_sysctl(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.starts_with("net.") && name.len() <= 100 && name.chars().all(fits) && !name.contains("..")
}

/// How many cases have asked for a label.
pub(super) type Labels = BTreeMap<String, u32>;

/// The name of a case, unlike all before it: where they would be alike, a number follows a `~`, which
/// no label has by itself.
pub(super) fn label(
    path: &str,
    variant: &str,
    vary: &[(String, String)],
    taken: &mut Labels,
) -> String {
    let mut label = format!("{path}.{variant}");
    for (name, value) in vary {
        label.push_str(&format!(".{name}={value}"));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-+=%".contains(c);
    let label: String = label
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(MOST_LABEL_BYTES)
        .collect();
    let count = taken.entry(label.clone()).or_default();
    *count += 1;
    match *count {
        1 => label,
        count => format!("{label}~{count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_differ_and_are_file_names() {
        let vary = |text: &str| vec![("flags".to_owned(), text.to_owned())];
        let mut taken = Labels::new();
        assert_eq!(label("a.b", "c", &[], &mut taken), "a.b.c");
        assert_eq!(label("a", "b.c", &[], &mut taken), "a.b.c~2");
        assert_eq!(
            label("p", "v", &vary("-w 1/2"), &mut taken),
            "p.v.flags=-w-1-2"
        );
        assert_eq!(
            label("p", "v", &vary("-w 1:2"), &mut taken),
            "p.v.flags=-w-1-2~2"
        );
        let long = label("p", "v", &vary(&"ä".repeat(500)), &mut taken);
        assert_eq!(long.len(), MOST_LABEL_BYTES);
        assert_eq!(
            label("p", "v", &vary(&"ö".repeat(500)), &mut taken),
            format!("{long}~2")
        );
    }

    #[test]
    fn sysctls_stay_below_net() {
        assert!(is_sysctl("net.ipv4.tcp_rmem"));
        for name in [
            "kernel.panic",
            "net.ipv4/../../kernel",
            "net...x",
            "network",
            "net.a b",
        ] {
            assert!(!is_sysctl(name), "{name}");
        }
    }
}
