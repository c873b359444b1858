// SPDX-License-Identifier: MIT OR Apache-2.0
//! A configuration file of the Work Around Daemon to a policy file.
//!
//! The WAD's format is known from one example and its description (Dunigan, Mathis and Tierney, "A TCP
//! Tuning Daemon", SC 2002, section 3.3; seed 003). What those leave open is guessed, and each guess is
//! a [`Note`]. Nothing is dropped in silence: what has no equal becomes a comment and a note.
//!
//! Start at [`import_wad`].

use crate::policy::MAX_RULES;
use crate::read::Measure;
use crate::{Law, Prefix, Problem, Setting};
use fatpath_toml::{Refusal, Report, shortened};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// The longest WAD file in bytes; the policy that comes of it stays within a policy's own limit.
const MAX_WAD_BYTES: usize = 1 << 20;

/// A policy file, and what to know about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// The policy file; [`parse`](crate::parse) takes it.
    pub toml: String,
    /// What was guessed or has no equal, in the order of the WAD file.
    pub notes: Vec<Note>,
}

/// Something to know about one line of a WAD file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct Note {
    /// The line of the WAD file, from 1.
    pub line: u32,
    /// What was done with it.
    pub message: String,
}

/// Turns a WAD configuration file into a policy file.
///
/// # Errors
/// All lines that are no WAD configuration, and values that no policy takes.
pub fn import_wad(text: &str) -> Result<Imported, Vec<Problem>> {
    let mut reader = Reader {
        report: Report::on(text),
    };
    let entries = match text.len() <= MAX_WAD_BYTES {
        true => reader.entries(text),
        false => {
            reader.refuse(
                0,
                format!("the file has {} bytes", text.len()),
                "allowed: at most 1 MiB",
            );
            Vec::new()
        }
    };
    let mut names = HashSet::new();
    let rules: Vec<Rule> = entries
        .iter()
        .map(|entry| Rule::of(entry, &mut names, &mut reader))
        .collect();
    match reader.report.is_empty() {
        true => Ok(imported(rules)),
        false => Err(reader.report.into_problems()),
    }
}

fn imported(rules: Vec<Rule>) -> Imported {
    let mut toml = HEAD.to_owned();
    let tuned = rules.iter().any(|rule| !rule.off && rule.has_buffer());
    toml.push_str(if tuned { HOST } else { "" });
    rules.iter().for_each(|rule| toml.push_str(&rule.text()));
    Imported {
        toml,
        notes: rules.into_iter().flat_map(|rule| rule.notes).collect(),
    }
}

const HEAD: &str =
    "# Made by `fatpath import-wad` from a configuration file of the Work Around Daemon.\n";

/// The WAD's kernel had no bounds on its buffers; ours has, and they must be raised.
const HOST: &str = r#"
[host.sysctl]
"net.core.rmem_max" = "auto"
"net.core.wmem_max" = "auto"
"net.ipv4.tcp_window_scaling" = 1
"#;

/// The number of the mode is a guess; what dynamic tuning is stands in the paper.
const DYNAMIC: &str = "mode 2 is taken as dynamic tuning by the NTAF (a guess): buffers, and where wadai and wadmd are 0 \
                       Floyd's a and b, follow what is measured of the path";

const BUFFERS: [(&str, &str); 2] = [("sndbuf", "send_buffer"), ("rcvbuf", "receive_buffer")];

/// The keys of an entry, as the paper's example has them.
const KEYS: [&str; 13] = [
    "src_addr", "src_port", "dst_addr", "dst_port", "mode", "sndbuf", "rcvbuf", "wadai", "wadmd",
    "maxssth", "divide", "reorder", "delack",
];

/// `[name]` and the lines under it.
struct Entry<'t> {
    name: &'t str,
    offset: usize,
    values: BTreeMap<&'static str, Field<'t>>,
    /// Lines with keys that are not known.
    strange: Vec<Field<'t>>,
}

/// The value of a line and where the line begins.
#[derive(Clone, Copy)]
struct Field<'t> {
    key: &'t str,
    value: &'t str,
    offset: usize,
}

struct Reader<'t> {
    report: Report<'t>,
}

impl<'t> Reader<'t> {
    fn refuse(&mut self, offset: usize, message: impl Into<String>, allowed: impl Into<String>) {
        self.report
            .add(Refusal::new(offset, message).allowed(allowed));
    }

    fn entries(&mut self, text: &'t str) -> Vec<Entry<'t>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut next_offset = 0;
        for line in text.split_inclusive('\n') {
            let offset = next_offset;
            next_offset += line.len();
            let line = line.trim();
            let header = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            match (header, entries.last_mut()) {
                _ if line.is_empty() || line.starts_with('#') => {}
                (Some(name), _) => {
                    entries.push(Entry {
                        name: name.trim(),
                        offset,
                        values: BTreeMap::new(),
                        strange: Vec::new(),
                    });
                }
                (None, Some(entry)) => self.field(line, offset, entry),
                (None, None) => self.refuse(
                    offset,
                    format!("`{}` stands before any entry", shortened(line)),
                    "an entry begins with its name in brackets: [bob]",
                ),
            }
        }
        if entries.is_empty() && self.report.is_empty() {
            self.refuse(
                0,
                "the file has no entry",
                "an entry begins with its name in brackets: [bob]",
            );
        }
        if let Some(offset) = entries.get(MAX_RULES).map(|entry| entry.offset) {
            self.refuse(
                offset,
                format!("{} entries", entries.len()),
                format!("allowed: at most {MAX_RULES}"),
            );
            entries.clear();
        }
        entries
    }

    fn field(&mut self, line: &'t str, offset: usize, entry: &mut Entry<'t>) {
        let Some((key, value)) = line.split_once(':') else {
            return self.refuse(
                offset,
                format!("`{}` is no line of a WAD file", shortened(line)),
                "write `key: value`",
            );
        };
        let field = Field {
            key: key.trim(),
            value: value.trim(),
            offset,
        };
        match KEYS.into_iter().find(|known| *known == field.key) {
            None => entry.strange.push(field),
            Some(known) => {
                if entry.values.insert(known, field).is_some() {
                    self.refuse(
                        offset,
                        format!("`{known}` occurs twice"),
                        "each key once in an entry",
                    );
                }
            }
        }
    }

    /// The number of a field, 0 when it is absent: the WAD's way to say "leave it alone".
    fn number(
        &mut self,
        entry: &Entry,
        key: &str,
        allowed: &str,
        fits: impl Fn(u64) -> bool,
    ) -> u64 {
        let Some(field) = entry.values.get(key) else {
            return 0;
        };
        match field.value.parse() {
            Ok(number) if number == 0 || fits(number) => number,
            _ => {
                self.refuse_field(field, allowed);
                0
            }
        }
    }

    fn refuse_field(&mut self, field: &Field, allowed: &str) {
        self.refuse(
            field.offset,
            format!("{}: found `{}`", field.key, shortened(field.value)),
            format!("allowed: {allowed}"),
        );
    }
}

/// One entry on its way to a rule: the lines of the policy file, and the notes.
struct Rule {
    lines: Vec<String>,
    notes: Vec<Note>,
    /// The WAD had the entry switched off.
    off: bool,
    /// The NTAF said what the path holds.
    is_dynamic: bool,
}

impl Rule {
    fn of(entry: &Entry, names: &mut HashSet<String>, reader: &mut Reader) -> Rule {
        let mut rule = Rule {
            lines: Vec::new(),
            notes: Vec::new(),
            off: false,
            is_dynamic: false,
        };
        rule.name(entry, names, reader);
        rule.mode(entry, reader);
        rule.matches(entry, reader);
        rule.buffers(entry, reader);
        rule.override_note(entry, reader);
        rule.law(entry, reader);
        rule.route_metrics(entry, reader);
        rule.strange(entry, reader);
        rule
    }

    fn text(&self) -> String {
        let comment = if self.off { "# " } else { "" };
        self.lines.iter().fold(String::from("\n"), |text, line| {
            text + comment + line + "\n"
        })
    }

    fn has_buffer(&self) -> bool {
        self.lines
            .iter()
            .any(|line| line.starts_with("send_buffer") || line.starts_with("receive_buffer"))
    }

    fn set(&mut self, key: &str, value: impl std::fmt::Display) {
        self.lines.push(format!("{key} = {value}"));
    }

    fn note(&mut self, offset: usize, message: impl Into<String>, reader: &Reader) {
        self.notes.push(Note {
            line: reader.report.line(offset),
            message: message.into(),
        });
    }

    /// Keeps a line as a comment, and says why.
    fn keep(&mut self, field: &Field, why: &str, reader: &Reader) {
        self.lines.push(format!(
            "# {}: {}",
            printable(field.key),
            printable(field.value)
        ));
        self.note(
            field.offset,
            format!("{}: kept as a comment: {why}", shortened(field.key)),
            reader,
        );
    }

    fn name(&mut self, entry: &Entry, names: &mut HashSet<String>, reader: &Reader) {
        let name = unique(&plain_name(entry.name), names);
        if name != entry.name {
            let message = format!("entry `{}` becomes rule `{name}`", shortened(entry.name));
            self.note(entry.offset, message, reader);
        }
        self.lines.push("[[rule]]".to_owned());
        self.set("name", format!("\"{name}\""));
    }

    /// The example has mode 1 with static values; the text speaks of static and of dynamic tuning.
    fn mode(&mut self, entry: &Entry, reader: &mut Reader) {
        let Some(field) = entry.values.get("mode") else {
            return;
        };
        match field.value {
            "1" => {}
            "0" => {
                self.off = true;
                self.note(
                    field.offset,
                    "mode 0 is taken as off (a guess): the rule is a comment",
                    reader,
                );
            }
            "2" => {
                self.is_dynamic = true;
                self.note(field.offset, DYNAMIC, reader);
            }
            _ => reader.refuse_field(field, "0 (off), 1 (static) or 2 (dynamic)"),
        }
    }

    /// The paper says that the file can ask for the override, and not by which key.
    fn override_note(&mut self, entry: &Entry, reader: &Reader) {
        if self.has_buffer() && !self.off {
            self.lines.push("# override_application = true".to_owned());
            let message = "the WAD could override a program's own buffers, by a key that the paper does not show: where you want it, uncomment override_application";
            self.note(entry.offset, message, reader);
        }
    }

    fn matches(&mut self, entry: &Entry, reader: &mut Reader) {
        for (key, ours) in [("dst_addr", "destination"), ("src_addr", "source")] {
            if let Some(prefix) = address(entry, key, reader) {
                self.set(ours, format!("[\"{prefix}\"]"));
            }
        }
        for (key, ours) in [
            ("dst_port", "destination_ports"),
            ("src_port", "source_ports"),
        ] {
            let port = reader.number(entry, key, "0 (any) to 65535", |port| port <= 65_535);
            if port > 0 {
                self.set(ours, format!("[{port}]"));
            }
        }
    }

    /// By what is measured; the static values are of no use then.
    fn dynamic_buffers(&mut self, entry: &Entry, reader: &Reader) {
        for key in ["rtt", "rate"] {
            self.set(key, "\"measured\"");
        }
        for (key, ours) in BUFFERS {
            let given = entry.values.get(key).filter(|field| field.value != "0");
            if let Some(field) = given {
                self.keep(field, "the buffer follows what is measured", reader);
            }
            self.set(ours, "\"bdp\"");
        }
    }

    fn buffers(&mut self, entry: &Entry, reader: &mut Reader) {
        let allowed = "0 (leave it alone), or 4096 to 1073741823 bytes";
        let mut any = false;
        for (key, ours) in BUFFERS {
            let bytes = reader.number(entry, key, allowed, |bytes| {
                (4096..1 << 30).contains(&bytes)
            });
            if bytes > 0 && !self.is_dynamic {
                self.set(ours, bytes);
                any = true;
            }
        }
        if self.is_dynamic {
            self.dynamic_buffers(entry, reader);
            any = true;
        }
        let divide = reader.number(entry, "divide", "0 or 1", |flag| flag == 1) == 1;
        match entry.values.get("divide") {
            Some(field) if divide && !any => {
                self.keep(field, "the entry sets no buffer to divide", reader)
            }
            _ if divide => self.set("divide", true),
            _ => {}
        }
    }

    /// wadai and wadmd: segments added a round trip, and the fraction given up at a loss; maxssth needs a
    /// law of ours, which is then Reno's.
    fn law(&mut self, entry: &Entry, reader: &mut Reader) {
        let parameters = aimd_parameters(entry, reader);
        let measure = Measure::of(Setting::MaxSsthresh);
        let allowed = format!("0 (leave it alone), or {}", measure.allowed());
        let limit = reader.number(entry, "maxssth", &allowed, |limit| measure.holds(limit));
        match (parameters.is_empty(), limit > 0) {
            (false, _) => self.set(
                "congestion_control",
                format!("{{ law = \"fp_aimd\"{parameters} }}"),
            ),
            (true, _) if self.is_dynamic => self.set(
                "congestion_control",
                "{ law = \"fp_aimd\", highspeed_buffer = \"bdp\" }",
            ),
            (true, true) => self.set("congestion_control", "\"fp_reno\""),
            (true, false) => {}
        }
        if limit > 0 {
            self.set("max_ssthresh", limit);
        }
    }

    /// Settings that only routes carry, so only for rules by destination.
    fn route_metrics(&mut self, entry: &Entry, reader: &mut Reader) {
        let metrics = [
            (
                "reorder",
                "reordering = ",
                entry
                    .values
                    .get("reorder")
                    .filter(|field| field.value != "0"),
            ),
            (
                "delack",
                "quickack = true",
                entry
                    .values
                    .get("delack")
                    .filter(|field| field.value == "0"),
            ),
        ];
        let by_destination = self.asks("destination")
            && !["source", "destination_ports", "source_ports"]
                .iter()
                .any(|key| self.asks(key));
        for (key, line, field) in metrics {
            let number = reader.number(entry, key, "a whole number", |_| true);
            let Some(field) = field else { continue };
            if !by_destination {
                let nearest = match key {
                    "delack" => "; delayed_ack_max = \"8ms\" is the nearest that sockets take",
                    _ => "",
                };
                let why = format!(
                    "it is a metric of routes, which needs an entry with dst_addr and without src_addr and ports{nearest}"
                );
                self.keep(field, &why, reader);
            } else if key == "reorder" && !(3..=300).contains(&number) {
                self.keep(field, "the kernel takes 3 to 300 segments", reader);
            } else {
                let value = if key == "reorder" {
                    number.to_string()
                } else {
                    String::new()
                };
                self.lines.push(format!("{line}{value}"));
            }
        }
    }

    fn asks(&self, key: &str) -> bool {
        self.lines.iter().any(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(" ="))
        })
    }

    fn strange(&mut self, entry: &Entry, reader: &Reader) {
        for field in &entry.strange {
            self.keep(field, "the key is not known", reader);
        }
    }
}

/// `, a = 6, b = 0.3`; nothing when the entry leaves them alone.
fn aimd_parameters(entry: &Entry, reader: &mut Reader) -> String {
    let specs = Law::named("fp_aimd").ours().map(|law| law.spec());
    let specs = specs.iter().flat_map(|law| &law.parameters);
    let mut text = String::new();
    for (key, spec) in ["wadai", "wadmd"].into_iter().zip(specs) {
        let Some(field) = entry.values.get(key) else {
            continue;
        };
        let number = field.value.parse::<f64>().ok();
        if number == Some(0.0) {
            continue;
        }
        match number.and_then(|number| spec.exactly(number)) {
            Some(value) => text += &format!(", {} = {value}", spec.key),
            None => {
                reader.refuse_field(field, &format!("0 (leave it alone), or {}", spec.allowed()))
            }
        }
    }
    text
}

/// The prefix of an address key; `None` when it is absent, any, or refused.
fn address(entry: &Entry, key: &str, reader: &mut Reader) -> Option<Prefix> {
    let field = entry
        .values
        .get(key)
        .filter(|field| !["0.0.0.0", "0"].contains(&field.value))?;
    match shortened(field.value).parse() {
        Ok(prefix) => Some(prefix),
        Err(_) => {
            reader.refuse_field(
                field,
                "an address such as 10.5.128.74 (names are not looked up), or 0.0.0.0 for any",
            );
            None
        }
    }
}

/// A name that a rule may have: what it may not hold becomes a hyphen.
fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "._-".contains(letter) {
            letter
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(plain).take(63).collect();
    if name.is_empty() {
        "path".to_owned()
    } else {
        name
    }
}

fn unique(name: &str, names: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{}-{number}", &name[..name.len().min(58)]));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates
        .find(|candidate| names.insert(candidate.clone()))
        .expect("the numbers do not end")
}

/// What a TOML comment may hold.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}
