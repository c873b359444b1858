// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of `measure.toml`. Start at [`parse`].

mod mesh;
mod peers;
mod single_ended;

use crate::tool::{Format, Iperf3, Mapping, Ping, Program, Protocol, Traceroute};
use crate::{Plan, Rate, Test, Tool};
use fatpath_toml::{Document, Problem, Refusal, Section, Value};
use fatpath_units as units;
use std::ops::RangeInclusive;

const S: u64 = 1_000_000;
/// Of a resource's name: the kernel keeps no longer ones (unix(7)), of which some letters are fatpath's.
pub const MOST_RESOURCE_LETTERS: usize = 80;
const TOOLS: &str = "\"ping\", \"echo\", \"one_way\", \"rate\", \"single_ended\", \"iperf3\", \"traceroute\", \"path_mtu\" or \"program\"";

/// Reads the text of a file.
///
/// # Errors
/// Everything that is wrong with it, in file order.
pub fn parse(text: &str) -> Result<Plan, Vec<Problem>> {
    let document = Document::parse("measure.toml", text)?;
    let mut root = document.root(());
    let sections = root
        .noted(root.clone().take_list("test"))
        .unwrap_or_default();
    root.allow(["test"]);
    let mut plan = Plan::default();
    for section in sections {
        let mut section = section.titled("[[test]]");
        let Some(test) = read_test(&mut section, &plan) else {
            continue;
        };
        plan.tests.push(test);
    }
    mesh::read(&mut root, &mut plan);
    peers::read(&mut root, &mut plan);
    root.note_unknown();
    document.finish().map(|()| plan)
}

/// Notes everything that is wrong with the test.
fn read_test(section: &mut Section, before: &Plan) -> Option<Test> {
    let name = needed(section, "name", NAMES, |value| {
        name_of(value, "test", |name| before.test(name).is_some())
    });
    let to = section.read("to", peer);
    let run = read_run(section)?;
    if to.is_none() && !section.has("to") && !matches!(run.tool, Tool::Program(_)) {
        section.note(section.missing("to", "the peer: a host name or an address"));
    }
    Some(Test {
        name: name?,
        to,
        ..run
    })
}

/// All of a test but its name and its peer.
fn read_run(section: &mut Section) -> Option<Test> {
    let every_us = needed(section, "every", TIMES, |value| {
        time(value, S..=7 * 86_400 * S)
    });
    let duration_us = section
        .read("duration", |value| time(value, S..=86_400 * S))
        .or((!section.has("duration")).then_some(10 * S));
    let jitter = section.read("jitter", jitter).unwrap_or(0.1);
    let resources = section.read("resource", resources).unwrap_or_default();
    let passive_first = section.read("passive_first", |value| value.boolean());
    let read = needed(section, "tool", TOOLS, |value| {
        value.parsed(|name| tool_named(name).ok_or(TOOLS))
    });
    let tool = read.and_then(|read| read(section));
    // Of a tool that was refused nobody asked for the keys.
    if tool.is_some() {
        section.note_unknown();
    }
    let test = Test {
        name: String::new(),
        to: None,
        every_us: every_us?,
        duration_us: duration_us?,
        jitter,
        resources,
        passive_first: passive_first.unwrap_or(true),
        tool: tool?,
    };
    refuse_inconsistent(section, &test);
    Some(test)
}

fn refuse_inconsistent(section: &Section, test: &Test) {
    if test.duration_us > test.every_us {
        let refusal = section.refusal("a run lasts longer than the time from one run to the next");
        section.note(refusal.allowed("`duration` is at most `every`"));
    }
    let is_refused = matches!(test.tool, Tool::Rate(_) | Tool::SingleEnded(_))
        && !Rate::DURATIONS_US.contains(&test.duration_us);
    if let Some(duration) = section.value("duration").filter(|_| is_refused) {
        let tool = test.tool.name();
        section.note(duration.found(&format!("1s to 1h for a test of `{tool}`")));
    }
}

type ReadTool = fn(&mut Section) -> Option<Tool>;

fn tool_named(name: &str) -> Option<ReadTool> {
    Some(match name {
        "ping" => ping,
        "echo" => |section| Some(Tool::Echo(peers::echo(section))),
        "one_way" => |section| Some(Tool::OneWay(peers::one_way(section))),
        "rate" => |section| Some(Tool::Rate(peers::rate(section))),
        "single_ended" => |section| Some(Tool::SingleEnded(single_ended::read(section))),
        "iperf3" => iperf3,
        "traceroute" => traceroute,
        "path_mtu" => |_| Some(Tool::PathMtu),
        "program" => program,
        _ => return None,
    })
}

fn ping(section: &mut Section) -> Option<Tool> {
    // Linux lets only root ask more often than every 2 ms.
    let interval_us = section.read("interval", |value| time(value, 10_000..=60 * S));
    let size_bytes = section.read("size", |value| value.integer(0..=65_000));
    Some(Tool::Ping(Ping {
        interval_us: interval_us.unwrap_or(S),
        size_bytes: size_bytes.unwrap_or(56),
    }))
}

fn iperf3(section: &mut Section) -> Option<Tool> {
    let is_asked = section.read("server", |value| {
        value.parsed(|name| match name {
            "running" => Ok(false),
            "responder" => Ok(true),
            _ => Err("\"running\" or \"responder\""),
        })
    });
    let asked = is_asked
        .unwrap_or(false)
        .then(|| peers::asked_server(section));
    let port = match asked {
        Some(_) => None,
        None => section.read("port", |value| value.integer(1..=65_535)),
    };
    let protocol = section.read("protocol", |value| {
        value.parsed(|name| match name {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            _ => Err("\"tcp\" or \"udp\""),
        })
    });
    let streams = section.read("streams", |value| value.integer(1..=128));
    Some(Tool::Iperf3(Iperf3 {
        port: port.map_or(Iperf3::PORT, |port| port as u16),
        asked,
        protocol: protocol.unwrap_or(Protocol::Tcp),
        streams: streams.unwrap_or(1),
        congestion_control: section.read("congestion_control", |value| {
            value.parsed(|name| identifier(name, "_-").ok_or("the name of a congestion control"))
        }),
        rate_bps: section.read("rate", |value| {
            quantity(value, units::rate_bps, "a rate: \"900mbit\"")
        }),
        window_bytes: section.read("window", |value| {
            quantity(value, units::bytes, "bytes: \"4MiB\"")
        }),
        reverse: section
            .read("reverse", |value| value.boolean())
            .unwrap_or(false),
    }))
}

fn traceroute(section: &mut Section) -> Option<Tool> {
    let method = section.read("method", |value| {
        value.parsed(|name| match name {
            "udp" | "icmp" | "tcp" => Ok(name.to_owned()),
            _ => Err("\"udp\", \"icmp\" or \"tcp\""),
        })
    });
    let max_hops = section.read("max_hops", |value| value.integer(1..=255));
    Some(Tool::Traceroute(Traceroute {
        method: method.unwrap_or_else(|| "udp".to_owned()),
        max_hops: max_hops.unwrap_or(30),
    }))
}

fn program(section: &mut Section) -> Option<Tool> {
    const RUN: &str = "the program and its arguments: [\"/usr/local/bin/probe\", \"--json\"]";
    if !section.has("run") {
        section.note(section.missing("run", RUN));
    }
    let run = section.read_list("run", |value| value.text());
    let format = section.read("format", |value| {
        value.parsed(|name| match name {
            "json" => Ok(Format::Json),
            "netlogger" => Ok(Format::Netlogger),
            _ => Err("\"json\" or \"netlogger\""),
        })
    });
    let mappings = section.noted(section.clone().take_named("values"));
    section.allow(["values"]);
    let mapping = |(name, section): (String, Section)| mapping(name, section);
    let values: Vec<Mapping> = mappings
        .unwrap_or_default()
        .into_iter()
        .filter_map(mapping)
        .collect();
    if !section.has("values") {
        let allowed =
            "tables, each of a value: values.rtt = { field = \"rtt.avg\", unit = \"ms\" }";
        section.note(section.missing("values", allowed));
    }
    Some(Tool::Program(Program {
        run: run.into_iter().map(|(word, _)| word).collect(),
        format: format.unwrap_or(Format::Json),
        values,
    }))
}

fn mapping(name: String, mut section: Section) -> Option<Mapping> {
    let field = needed(
        &mut section,
        "field",
        "where the value is in the output",
        |value| value.text(),
    );
    let unit = needed(
        &mut section,
        "unit",
        "the value's unit: \"ms\", \"b/s\", \"1\"",
        |value| value.text(),
    );
    section.note_unknown();
    Some(Mapping {
        name,
        field: field?,
        unit: unit?,
    })
}

fn needed<T>(
    section: &mut Section,
    key: &'static str,
    allowed: &str,
    read: impl Fn(&Value) -> Result<T, Refusal>,
) -> Option<T> {
    if !section.has(key) {
        section.allow([key]);
        section.note(section.missing(key, allowed));
    }
    section.read(key, read)
}

const NAMES: &str = "1 to 64 letters, digits, `-`, `_` and `.`";

/// The name of a test or a mesh.
fn name_of(value: &Value, what: &str, is_taken: impl Fn(&str) -> bool) -> Result<String, Refusal> {
    let name = value.parsed(|name| identifier(name, "-_.").ok_or(NAMES))?;
    match is_taken(&name) {
        true => Err(value
            .refusal(format!("a second {what} named `{name}`"))
            .allowed(format!("each {what} needs a name of its own"))),
        false if name.len() > 64 => Err(value.found(NAMES)),
        false => Ok(name),
    }
}

/// Letters, digits and the marks given; it begins with a letter or digit, so it can be no option of a tool.
fn identifier(text: &str, marks: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == ':');
    (begins_well && text.chars().all(is_allowed)).then(|| text.to_owned())
}

fn peer(value: &Value) -> Result<String, Refusal> {
    let peer = value.parsed(|text| identifier(text, "-_.:%").ok_or("a host name or an address"))?;
    match peer.len() {
        ..=253 => Ok(peer),
        _ => Err(value.found("a host name of at most 253 characters")),
    }
}

const TIMES: &str = "a time with its unit: \"10s\", \"5min\", \"1h\"";

fn time(value: &Value, allowed: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let us = value.as_str().and_then(units::time_ns).map(|ns| ns / 1000);
    let us = us
        .and_then(|us| u64::try_from(us).ok())
        .filter(|us| allowed.contains(us));
    let range = || {
        let shown = |us: u64| units::show_time(us);
        format!(
            "{} to {}, {TIMES}",
            shown(*allowed.start()),
            shown(*allowed.end())
        )
    };
    us.ok_or_else(|| value.found(&range()))
}

fn jitter(value: &Value) -> Result<f64, Refusal> {
    let share = value.as_str().and_then(units::share);
    let share = share.filter(|share| (0.0..=0.5).contains(share));
    share.ok_or_else(|| value.found("a share of 0% to 50%, such as \"10%\""))
}

fn quantity(value: &Value, parse: fn(&str) -> Option<u128>, allowed: &str) -> Result<u64, Refusal> {
    let number = value
        .as_str()
        .and_then(parse)
        .and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| value.found(allowed))
}

/// One name or a list; sorted, each once.
fn resources(value: &Value) -> Result<Vec<String>, Refusal> {
    let name = |value: &Value| {
        value.parsed(|name| {
            let name =
                identifier(name, "-_.:@/").filter(|name| name.len() <= MOST_RESOURCE_LETTERS);
            name.ok_or("names of interfaces or paths, of at most 80 letters: \"eth0\"")
        })
    };
    let mut names = match value.as_str() {
        Some(_) => vec![name(value)?],
        None => {
            let items = value.items("a name, or a list of names: [\"eth0\", \"to-geneva\"]")?;
            items.iter().map(name).collect::<Result<Vec<_>, _>>()?
        }
    };
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = "[[test]]\nname = 'a'\ntool = 'ping'\nto = '192.0.2.1'\nevery = '1min'\n";

    fn problems(text: &str) -> Vec<String> {
        let problems = parse(text).unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let plan = parse(PING).unwrap();
        let test = &plan.tests[0];
        assert_eq!((test.every_us, test.duration_us), (60 * S, 10 * S));
        assert_eq!((test.jitter, test.passive_first), (0.1, true));
        assert_eq!(
            test.tool,
            Tool::Ping(Ping {
                interval_us: S,
                size_bytes: 56
            })
        );
        assert_eq!(parse("# nothing yet\n"), Ok(Plan::default()));
    }

    #[test]
    fn the_sample_file_is_valid() {
        let plan = parse(include_str!("../../../packaging/measure.toml")).unwrap();
        assert!(plan.tests.is_empty(), "what is installed tests nobody");
        let uncommented = include_str!("../../../packaging/measure.toml").lines();
        let uncommented = uncommented.map(|line| line.strip_prefix("#: ").unwrap_or(line));
        let plan = parse(&uncommented.collect::<Vec<_>>().join("\n"));
        let tools = plan.unwrap().tests;
        let tools: Vec<&str> = tools.iter().map(|test| test.tool.name()).collect();
        assert_eq!(
            tools,
            [
                "ping",
                "echo",
                "rate",
                "single_ended",
                "iperf3",
                "iperf3",
                "traceroute",
                "path_mtu",
                "program"
            ]
        );
    }

    #[test]
    fn everything_wrong_is_found_in_one_pass() {
        let text = format!(
            "{PING}intervall = '1s'\n[[test]]\nname = 'a'\ntool = 'pnig'\nevery = '5'\n[tset]\n"
        );
        let wanted = [
            "6:1: unknown key `intervall` in [[test]]; did you mean `interval`?",
            "8:8: name: a second test named `a`",
            "9:8: ",
            "10:9: ",
            "11:2: unknown key `tset`",
        ];
        let found = problems(&text);
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.starts_with(wanted), "{found}");
        }
    }

    #[test]
    fn what_a_tool_would_take_for_an_option_is_refused() {
        let found = problems(&PING.replace("192.0.2.1", "-f"));
        assert!(found[0].contains("a host name or an address"), "{found:?}");
    }

    #[test]
    fn a_test_needs_a_peer_and_time() {
        let found = problems("[[test]]\nname = 'a'\ntool = 'ping'\nevery = '5s'\n");
        assert!(
            found.iter().any(|p| p.contains("to: is missing")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|p| p.contains("longer than the time")),
            "{found:?}"
        );
    }

    #[test]
    fn a_test_of_rate_lasts_an_hour_at_most() {
        let test = |duration: &str| {
            let test = PING.replace("ping", "rate").replace("1min", "2h");
            format!("{test}duration = '{duration}'\n")
        };
        assert!(parse(&test("1h")).is_ok());
        let found = problems(&test("61min"));
        assert!(
            found.len() == 1 && found[0].starts_with("6:12: duration: "),
            "{found:?}"
        );
    }

    #[test]
    fn a_test_that_waits_for_others_has_its_patience() {
        let served = PING.replace("'ping'", "'iperf3'\nserver = 'responder'");
        for test in [PING.replace("ping", "rate"), served] {
            let waits_us = |more: &str| {
                let plan = parse(&format!("{test}{more}")).unwrap();
                plan.tests[0].tool.waits_us()
            };
            assert_eq!(waits_us("") + 50 * S, waits_us("patience = '1min'\n"));
            let found = problems(&format!("{test}patience = '2h'\n"));
            assert!(found[0].contains("0 us to 3600 s"), "{found:?}");
        }
        let running = PING.replace("ping", "iperf3");
        let found = problems(&format!("{running}patience = '1min'\n"));
        assert!(found[0].contains("unknown key `patience`"), "{found:?}");
    }

    #[test]
    fn resources_are_in_the_order_of_their_names() {
        let plan = parse(&format!("{PING}resource = ['wan', 'eth0', 'wan']\n")).unwrap();
        assert_eq!(plan.tests[0].resources, ["eth0", "wan"]);
        let long = "x".repeat(MOST_RESOURCE_LETTERS + 1);
        let found = problems(&format!("{PING}resource = '{long}'\n"));
        assert!(found[0].contains("at most 80 letters"), "{found:?}");
    }
}
