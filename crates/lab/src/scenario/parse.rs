// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a scenario file, each read once, with what it may be.
//!
//! Pure. Start with [`scenario`], which reads like the file does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::command;
use super::section::{Problem, Section, Source, Value};
use super::units::{self, QueueLimit};
use super::{Case, Experiment, Host, Link, Program, ResultKind, Scenario};
use fatpath_link::{CellSpec, ChainSpec};

struct PathCase {
    name: String,
    links: Vec<Link>,
    set: Texts,
}

struct Variant {
    name: String,
    policy: Option<PathBuf>,
    set: Texts,
}

pub(super) fn changed(_: &Link, _: &[(String, String)]) -> Result<Link, String> {
    Err("not yet".into())
}

fn cases(
    hosts: &[Host],
    paths: &[PathCase],
    variants: &[Variant],
    programs: &[Program],
    set: &Texts,
) -> Vec<Case> {
    let mut cases = vec![];
    for path in paths {
        for variant in variants {
            let mut values = set.clone();
            values.extend(path.set.clone());
            values.extend(variant.set.clone());
            let programs = programs.iter().cloned().map(|mut program| {
                for (name, value) in &values {
                    program.run = program.run.replace(&format!("{{{name}}}"), value);
                }
                program
            });
            cases.push(Case {
                path: path.name.clone(),
                variant: variant.name.clone(),
                vary: vec![],
                links: path.links.clone(),
                hosts: hosts.to_vec(),
                policy: variant.policy.clone(),
                programs: programs.collect(),
                changes: vec![],
                label: format!("{}.{}", path.name, variant.name),
            });
        }
    }
    cases
}

/// A program that gives no time limit gets this one.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A queue that nobody sized never gets smaller than this: two super-packets of 64 KiB.
const LEAST_DEFAULT_QUEUE_BYTES: u64 = 131_072;

/// The largest file; a scenario is written by hand.
const MOST_FILE_BYTES: usize = 1 << 20;

type Texts = BTreeMap<String, String>;

pub(super) fn scenario(file: &str, text: &str) -> Result<Scenario, Problem> {
    let source = Source { file, text };
    if text.len() > MOST_FILE_BYTES {
        return Err(source.problem(
            &(0..0),
            "the file is larger than 1 MiB; a scenario is shorter",
        ));
    }
    let mut root = source.root()?;
    let name = name(&root.need("name", LAB_NAME)?, lab_name)?;
    let hosts = hosts(&mut root)?;
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let set = defaults(&mut root)?;
    let base = root.take_named("links")?;
    let paths = paths(&mut root, &base, &names, &set)?;
    let variants = variants(&mut root, &set)?;
    let programs = programs(&mut root, &names, &set)?;
    root.finish()?;
    Ok(Scenario {
        name,
        cases: cases(&hosts, &paths, &variants, &programs, &set),
        hosts: names,
        experiment: Experiment::default(),
    })
}

const LAB_NAME: &str = "1 to 20 of a-z, 0-9 and -, beginning with a letter";
const DEVICE_NAME: &str = "1 to 15 of a-z, 0-9 and -, beginning with a letter";
const CASE_NAME: &str = "1 to 40 of A-Z, a-z, 0-9, ., _ and -, beginning with a letter or digit";

fn lab_name(text: &str) -> Result<(), &'static str> {
    lower_case_name(text, 20).then_some(()).ok_or(LAB_NAME)
}

fn device_name(text: &str) -> Result<(), &'static str> {
    lower_case_name(text, 15).then_some(()).ok_or(DEVICE_NAME)
}

fn lower_case_name(text: &str, most: usize) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= most
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn case_name(text: &str) -> Result<(), &'static str> {
    let good = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 40
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    good.then_some(()).ok_or(CASE_NAME)
}

fn name(value: &Value, check: fn(&str) -> Result<(), &'static str>) -> Result<String, Problem> {
    value.parsed(check)?;
    Ok(value.text()?.to_owned())
}

fn hosts(root: &mut Section) -> Result<Vec<Host>, Problem> {
    let mut hosts = vec![];
    for (name, mut section) in root.take_named("hosts")? {
        let router = section.take("router").is_some();
        if let Err(allowed) = device_name(&name) {
            return Err(section.problem(format!("hosts.{name}: a host's name is {allowed}")));
        }
        section.finish()?;
        hosts.push(Host {
            name,
            router,
            sysctls: vec![],
        });
    }
    if hosts.is_empty() {
        Err(root.problem("hosts: name at least one host: [hosts.NAME]"))
    } else {
        Ok(hosts)
    }
}

fn defaults(root: &mut Section) -> Result<Texts, Problem> {
    let entries = root.take_texts("set")?;
    entries
        .iter()
        .map(|(name, value)| Ok((name.clone(), value.text()?.to_owned())))
        .collect()
}

/// `set` of a path or a variant: only what the top-level `[set]` names, so that a misspelt name
/// is not silently a new one.
fn changes(section: &mut Section, defaults: &Texts) -> Result<Texts, Problem> {
    let mut changes = Texts::new();
    for (name, value) in section.take_texts("set")? {
        if !defaults.contains_key(&name) {
            let known = defaults
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known
            };
            return Err(value.problem(format!("has no default; named in [set]: {known}")));
        }
        changes.insert(name, value.text()?.to_owned());
    }
    Ok(changes)
}

fn paths(
    root: &mut Section,
    base: &[(String, Section)],
    hosts: &[String],
    set: &Texts,
) -> Result<Vec<PathCase>, Problem> {
    let mut paths: Vec<PathCase> = vec![];
    for mut section in root.take_list("path")? {
        let name = unique_name(&mut section, paths.iter().map(|path| path.name.as_str()))?;
        let changed = section.take_named("links")?;
        let links = changed_links(base, changed, hosts)?;
        let set = changes(&mut section, set)?;
        section.finish()?;
        paths.push(PathCase { name, links, set });
    }
    if paths.is_empty() {
        let links = changed_links(base, vec![], hosts)?;
        paths.push(PathCase {
            name: "default".to_owned(),
            links,
            set: Texts::new(),
        });
    }
    Ok(paths)
}

fn unique_name<'a>(
    section: &mut Section,
    mut taken: impl Iterator<Item = &'a str>,
) -> Result<String, Problem> {
    let value = section.need("name", CASE_NAME)?;
    let name = name(&value, case_name)?;
    if taken.any(|other| other == name) {
        return Err(value.problem(format!("\"{name}\" is taken; names are unique")));
    }
    Ok(name)
}

fn changed_links(
    base: &[(String, Section)],
    mut changed: Vec<(String, Section)>,
    hosts: &[String],
) -> Result<Vec<Link>, Problem> {
    let mut links: Vec<Link> = vec![];
    for (name, section) in base {
        let over = changed.iter().position(|(other, _)| other == name);
        let section = match over {
            Some(index) => section.overlaid(changed.swap_remove(index).1),
            None => section.copy(),
        };
        links.push(link(name, section, hosts)?);
    }
    match changed.first() {
        None => Ok(links),
        Some((name, section)) => {
            let known = base
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            Err(section.problem(format!(
                "links.{name}: no such link; the links are: {known}"
            )))
        }
    }
}

fn link(name: &str, mut section: Section, hosts: &[String]) -> Result<Link, Problem> {
    if let Err(allowed) = device_name(name) {
        return Err(section.problem(format!("links.{name}: a link's name is {allowed}")));
    }
    let between = between(&mut section, hosts)?;
    let mtu_bytes = section
        .take("mtu")
        .map_or(Ok(1500), |mtu| mtu.integer(1280..=65535))? as u16;
    let seed = section
        .take("seed")
        .map_or(Ok(1), |seed| seed.integer(0..=u64::MAX >> 2))?;
    let both = Effects::take(&mut section)?;
    let forward = one_way(&mut section, "forward", both)?;
    let backward = one_way(&mut section, "backward", both)?;
    let rtt_ns = forward.delay_ns.unwrap_or(0) + backward.delay_ns.unwrap_or(0);
    let directions = [
        forward.direction(rtt_ns, 2 * seed),
        backward.direction(rtt_ns, 2 * seed + 1),
    ];
    let sized = [forward, backward]
        .iter()
        .any(|one| one.queue.is_some() && one.rate_bps.is_none());
    if sized {
        return Err(section.problem(format!(
            "links.{name}.queue: needs a rate, which is what makes a queue"
        )));
    }
    section.finish()?;
    Ok(Link {
        name: name.to_owned(),
        between,
        mtu_bytes,
        exact: false,
        directions,
    })
}

fn between(section: &mut Section, hosts: &[String]) -> Result<[String; 2], Problem> {
    const ALLOWED: &str = "the names of two hosts, such as [\"client\", \"server\"]";
    let value = section.need("between", ALLOWED)?;
    let pair = value.pair(ALLOWED)?;
    if let Some(stranger) = pair.iter().find(|host| !hosts.contains(host)) {
        return Err(value.problem(format!(
            "\"{stranger}\" is no host; the hosts are: {}",
            hosts.join(", ")
        )));
    }
    if pair[0] == pair[1] {
        return Err(value.problem("a link joins two different hosts"));
    }
    Ok(pair)
}

/// The keys that may stand in a link, for both directions, or in its `forward` and `backward`.
#[derive(Clone, Copy)]
struct Effects {
    rate_bps: Option<u64>,
    delay_ns: Option<u64>,
    queue: Option<QueueLimit>,
    loss: Option<f64>,
    overhead_bytes: Option<u32>,
}

impl Effects {
    fn take(section: &mut Section) -> Result<Effects, Problem> {
        Ok(Effects {
            rate_bps: optional(section, "rate", units::rate_bps)?,
            delay_ns: optional(section, "delay", units::delay_ns)?,
            queue: optional(section, "queue", units::queue_limit)?,
            loss: optional(section, "loss", units::share)?,
            overhead_bytes: optional(section, "overhead", units::overhead_bytes)?,
        })
    }

    fn or(self, both: Effects) -> Effects {
        Effects {
            rate_bps: self.rate_bps.or(both.rate_bps),
            delay_ns: self.delay_ns.or(both.delay_ns),
            queue: self.queue.or(both.queue),
            loss: self.loss.or(both.loss),
            overhead_bytes: self.overhead_bytes.or(both.overhead_bytes),
        }
    }

    fn direction(self, rtt_ns: u64, seed: u64) -> ChainSpec {
        direction(Direction {
            delay_ns: self.delay_ns.unwrap_or(0),
            rate_bps: self.rate_bps,
            queue_bytes: self
                .rate_bps
                .map(|rate_bps| queue_bytes(self.queue, rate_bps, rtt_ns)),
            loss: self.loss.unwrap_or(0.0),
            overhead_bytes: self.overhead_bytes.unwrap_or(0),
            seed,
        })
    }
}

struct Direction {
    delay_ns: u64,
    rate_bps: Option<u64>,
    queue_bytes: Option<u64>,
    loss: f64,
    overhead_bytes: u32,
    seed: u64,
}

fn direction(direction: Direction) -> ChainSpec {
    let Direction {
        delay_ns,
        rate_bps,
        queue_bytes,
        loss,
        overhead_bytes,
        seed,
    } = direction;
    let rate = rate_bps.map(|rate_bps| {
        let mut rate = CellSpec::rate(rate_bps, queue_bytes);
        if let CellSpec::Rate(rate) = &mut rate {
            rate.overhead_bytes = overhead_bytes;
        }
        rate
    });
    let loss = (loss > 0.0).then(|| CellSpec::loss(loss));
    let delay = (delay_ns > 0).then(|| CellSpec::delay(delay_ns));
    ChainSpec {
        cells: [rate, loss, delay].into_iter().flatten().collect(),
        seed,
    }
}

fn queue_bytes(limit: Option<QueueLimit>, rate_bps: u64, rtt_ns: u64) -> u64 {
    let bdp_bytes = rate_bps as f64 / 8.0 * (rtt_ns as f64 / 1e9);
    match limit {
        Some(QueueLimit::Bytes(bytes)) => bytes,
        Some(QueueLimit::Bdp(times)) => ((bdp_bytes * times).round() as u64).max(1500),
        None => (bdp_bytes.round() as u64).max(LEAST_DEFAULT_QUEUE_BYTES),
    }
}

fn one_way(section: &mut Section, key: &'static str, both: Effects) -> Result<Effects, Problem> {
    let Some(value) = section.take(key) else {
        return Ok(both);
    };
    let mut section = value.section()?;
    let own = Effects::take(&mut section)?;
    section.finish()?;
    Ok(own.or(both))
}

fn optional<T>(
    section: &mut Section,
    key: &'static str,
    parse: fn(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, Problem> {
    section
        .take(key)
        .map(|value| value.parsed(parse))
        .transpose()
}

fn variants(root: &mut Section, set: &Texts) -> Result<Vec<Variant>, Problem> {
    let mut variants: Vec<Variant> = vec![];
    for mut section in root.take_list("variant")? {
        let name = unique_name(
            &mut section,
            variants.iter().map(|variant| variant.name.as_str()),
        )?;
        let policy = section
            .take("policy")
            .map(|policy| policy.text().map(PathBuf::from))
            .transpose()?;
        let set = changes(&mut section, set)?;
        section.finish()?;
        variants.push(Variant { name, policy, set });
    }
    if variants.is_empty() {
        variants.push(Variant {
            name: "default".to_owned(),
            policy: None,
            set: Texts::new(),
        });
    }
    Ok(variants)
}

fn programs(root: &mut Section, hosts: &[String], set: &Texts) -> Result<Vec<Program>, Problem> {
    let mut programs: Vec<Program> = vec![];
    for mut section in root.take_list("program")? {
        let program = program(&mut section, hosts, set)?;
        if program.result.is_some() && programs.iter().any(|other| other.result.is_some()) {
            return Err(
                section.problem("result: another program gives the result already; only one may")
            );
        }
        section.finish()?;
        programs.push(program);
    }
    Ok(programs)
}

fn program(section: &mut Section, hosts: &[String], set: &Texts) -> Result<Program, Problem> {
    let time_limit = optional(section, "time_limit", units::time_limit)?;
    Ok(Program {
        host: program_host(section, hosts)?,
        run: program_command(section, hosts, set)?,
        ready_port: ready_port(section)?,
        result: optional(section, "result", result_kind)?,
        lasts: optional(section, "lasts", units::time_limit)?,
        time_limit: time_limit.unwrap_or(TIME_LIMIT),
    })
}

fn program_host(section: &mut Section, hosts: &[String]) -> Result<String, Problem> {
    let value = section.need("host", &format!("one of: {}", hosts.join(", ")))?;
    let host = value.text()?;
    if hosts.iter().any(|other| other == host) {
        return Ok(host.to_owned());
    }
    Err(value.problem(format!(
        "\"{host}\" is no host; the hosts are: {}",
        hosts.join(", ")
    )))
}

fn program_command(
    section: &mut Section,
    hosts: &[String],
    set: &Texts,
) -> Result<String, Problem> {
    let value = section.need("run", "a command, such as \"iperf3 -c {server}\"")?;
    let template = value.text()?;
    let known = |name: &str| {
        let host = name
            .strip_suffix(".ipv4")
            .or(name.strip_suffix(".ipv6"))
            .unwrap_or(name);
        let is_known = hosts.iter().any(|other| other == host) || set.contains_key(name);
        is_known.then(|| "x".to_owned())
    };
    command::words(template, known).map_err(|error| value.problem(error.to_string()))?;
    Ok(template.to_owned())
}

fn ready_port(section: &mut Section) -> Result<Option<u16>, Problem> {
    let Some(value) = section.take("ready") else {
        return Ok(None);
    };
    let mut ready = value.section()?;
    let port = ready
        .need("port", "the TCP port on which it listens, 1 to 65535")?
        .integer(1..=65535)?;
    ready.finish()?;
    Ok(Some(port as u16))
}

fn result_kind(text: &str) -> Result<ResultKind, &'static str> {
    match text {
        "iperf3" => Ok(ResultKind::Iperf3),
        _ => Err("a known kind of output; known: \"iperf3\""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEMO: &str = include_str!("../../../../experiments/demo.toml");

    fn parse(text: &str) -> Result<Scenario, Problem> {
        scenario("x.toml", text)
    }

    /// A well-formed scenario with one more part.
    fn with(part: &str) -> String {
        let begin = "name = \"x\"\n[set]\nwindow = \"\"\n[hosts.a]\n[hosts.b]\n[links.wan]\n\
                     between = [\"a\", \"b\"]\nrate = \"1gbit\"\ndelay = \"50ms\"\n";
        format!("{begin}{part}\n")
    }

    #[test]
    fn the_demo_says_what_the_issue_asks_for() {
        let demo = parse(DEMO).unwrap();
        let names: Vec<&str> = demo.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["clean", "lossy", "small-buffers"]);
        for path in &demo.paths {
            for direction in path.links[0].directions {
                assert_eq!(direction.rate_bps, Some(1_000_000_000));
                assert_eq!(direction.delay_ns, 50_000_000);
                assert_eq!(direction.queue_bytes, Some(12_500_000));
                let lossy = path.name == "lossy";
                assert!((direction.loss - if lossy { 1e-4 } else { 0.0 }).abs() < 1e-18);
            }
        }
        assert_eq!(
            demo.values(&demo.paths[2], &demo.variants[0])["window"],
            "-w 64K"
        );
        assert_eq!(demo.values(&demo.paths[0], &demo.variants[1])["window"], "");
    }

    #[test]
    fn a_direction_overrides_the_link_and_a_path_overrides_both() {
        let text = with(
            "backward = { rate = \"10mbit\", loss = \"1%\" }\n[[path]]\nname = \"p\"\n\
                         links.wan.backward.loss = \"2%\"\nlinks.wan.delay = \"5ms\"",
        );
        let [forward, backward] = parse(&text).unwrap().paths[0].links[0].directions;
        assert_eq!(
            (forward.rate_bps, backward.rate_bps),
            (Some(1_000_000_000), Some(10_000_000))
        );
        assert_eq!((forward.loss, backward.loss), (0.0, 0.02));
        assert_eq!(
            (forward.delay_ns, backward.delay_ns),
            (5_000_000, 5_000_000)
        );
        assert_eq!(forward.queue_bytes, Some(1_250_000));
        assert_ne!(forward.seed, backward.seed);
    }

    #[test]
    fn without_paths_and_variants_there_is_one_of_each() {
        let scenario = parse(&with("")).unwrap();
        assert_eq!((scenario.paths.len(), scenario.variants.len()), (1, 1));
    }

    #[test]
    fn errors_name_the_place_the_key_and_what_is_allowed() {
        let wrong = [
            "".to_owned(),
            "name = ".to_owned(),
            "name = \"Demo\"".to_owned(),
            "name = \"x\"".to_owned(),
            "name = \"x\"\n[hosts.a]\nport = 1".to_owned(),
            with("rait = \"1gbit\""),
            with("loss = 0.01"),
            with("loss = \"101%\""),
            with("mtu = 100"),
            with("forward.rate = \"1gigabit\""),
            with("[links.two]\nbetween = [\"a\", \"c\"]"),
            with("[links.two]\nbetween = [\"a\", \"a\"]"),
            with("[links.two]\nbetween = \"a\""),
            with("[links.two]\nbetween = [\"a\", \"b\"]\nqueue = \"1bdp\""),
            with("[path]\nname = \"p\""),
            with("[[path]]\nname = \"p\"\nlinks.lan.loss = \"1%\""),
            with("[[path]]\nname = \"p\"\nset.windw = \"\""),
            with("[[path]]\nname = \"p\"\n[[path]]\nname = \"p\""),
            with("[[path]]\nname = \"../p\""),
            with("[[program]]\nrun = \"x\""),
            with("[[program]]\nhost = \"c\"\nrun = \"x\""),
            with("[[program]]\nhost = \"a\"\nrun = \"x {sever}\""),
            with("[[program]]\nhost = \"a\"\nrun = \"x\"\nready = { port = 0 }"),
            with("[[program]]\nhost = \"a\"\nrun = \"x\"\nresult = \"netperf\""),
            with("[[program]]\nhost = \"a\"\nrun = \"x\"\ntime_limit = \"60\""),
        ];
        let told: Vec<String> = wrong
            .iter()
            .map(|text| parse(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        x.toml:1:1: name: is missing; it is 1 to 20 of a-z, 0-9 and -, beginning with a letter
        x.toml:1:8: not TOML: string values must be quoted, expected literal string
        x.toml:1:8: name: "Demo" is not 1 to 20 of a-z, 0-9 and -, beginning with a letter
        x.toml:1:1: hosts: name at least one host: [hosts.NAME]
        x.toml:3:1: hosts.a.port: unknown key; allowed here: none
        x.toml:10:1: links.wan.rait: unknown key; allowed here: between, mtu, seed, rate, delay, queue, loss, overhead, forward, backward
        x.toml:10:8: links.wan.loss: must be text: a share of the segments from "0%" to "100%", not a TOML float
        x.toml:10:8: links.wan.loss: "101%" is not a share of the segments from "0%" to "100%"
        x.toml:10:7: links.wan.mtu: 100 is not a whole number from 1280 to 65535
        x.toml:10:16: links.wan.forward.rate: "1gigabit" is not a rate from "1kbit" to "1tbit" (bit, kbit, mbit, gbit, tbit; decimal)
        x.toml:11:11: links.two.between: "c" is no host; the hosts are: a, b
        x.toml:11:11: links.two.between: a link joins two different hosts
        x.toml:11:11: links.two.between: must be the names of two hosts, such as ["client", "server"], not a TOML string
        x.toml:10:1: links.two.queue: needs a rate, which is what makes a queue
        x.toml:10:1: path: must be written as [[path]]
        x.toml:12:7: links.lan: no such link; the links are: wan
        x.toml:12:13: path[1].set.windw: has no default; named in [set]: window
        x.toml:13:8: path[2].name: "p" is taken; names are unique
        x.toml:11:8: path[1].name: "../p" is not 1 to 40 of A-Z, a-z, 0-9, ., _ and -, beginning with a letter or digit
        x.toml:10:1: program[1].host: is missing; it is one of: a, b
        x.toml:11:8: program[1].host: "c" is no host; the hosts are: a, b
        x.toml:12:7: program[1].run: {sever} is neither a host nor named in [set]
        x.toml:13:18: program[1].ready.port: 0 is not a whole number from 1 to 65535
        x.toml:13:10: program[1].result: "netperf" is not a known kind of output; known: "iperf3"
        x.toml:13:14: program[1].time_limit: "60" is not a time from "1s" to "24h" (s, min, h)
        "#);
    }

    #[test]
    fn large_and_deeply_nested_files_are_refused_quickly() {
        assert!(parse(&"#".repeat(100 << 20)).is_err());
        assert!(parse(&"[".repeat(1 << 20)).is_err());
        assert!(parse(&format!("a = {}", "[".repeat(100_000))).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_damage_to_a_good_file_makes_it_panic(
            at in 0..DEMO.len(), removed in 0usize..40, inserted in "[\\[\\]{}=\"a-z0-9.\n]{0,8}"
        ) {
            let from = (0..=at).rev().find(|i| DEMO.is_char_boundary(*i)).unwrap();
            let to = (at + removed).min(DEMO.len());
            let to = (to..=DEMO.len()).find(|i| DEMO.is_char_boundary(*i)).unwrap();
            let text = format!("{}{inserted}{}", &DEMO[..from], &DEMO[to..]);
            if let Err(problem) = parse(&text) {
                prop_assert!(problem.line <= text.lines().count() + 1);
            }
        }
    }
}
