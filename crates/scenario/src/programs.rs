// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of a case: on every replica of their host, with all values filled in.
//!
//! Pure. What is left in a command is the names of hosts, whose addresses a plan gives. A command that
//! names a host which its own does not reach is refused. Start with [`programs`].

use std::time::Duration;

use super::command::{self, CommandError, Piece};
use super::groups::{Groups, Who, find, indexes, member, replica};
use super::plan::host_and_family;
use super::routes::{Map, Ways};
use super::size::Size;
use super::values::{INDEX, Refusal, Section, Value, Values};
use super::{Host, Link, Program, ResultKind, units};

/// A program that gives no time limit gets this one.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(300);

/// All programs of a case, from their tables.
pub(super) fn programs(
    tables: &[Section],
    values: Values,
    groups: &Groups,
    hosts: &[Host],
    links: &[Link],
    size: &Size,
) -> Result<Vec<Program>, Refusal> {
    let map = Map::of(hosts, links);
    let mut programs: Vec<Program> = vec![];
    for table in tables {
        let host = program_host(&mut table.with(values), groups);
        let Some((host, who)) = table.noted(host) else {
            continue;
        };
        for index in indexes(who.count()) {
            let section = table.with(values.of_replica(index));
            let read = program(section, member(who, &host, index), groups, &map);
            let Some(program) = table.noted(read) else {
                continue;
            };
            size.add_program(&program)
                .map_err(|large| table.refusal(large))?;
            programs.push(program);
        }
    }
    Ok(programs)
}

fn program_host(section: &mut Section, groups: &Groups) -> Result<(String, Who), Refusal> {
    let value = section.need("host", &format!("one of: {}", groups.named()))?;
    let name = value.text()?;
    find(&value, groups, name)
}

fn program(
    mut section: Section,
    host: String,
    groups: &Groups,
    map: &Map,
) -> Result<Program, Refusal> {
    section.take("host");
    let time_limit = section.optional("time_limit", units::time_limit);
    let run = command(&mut section, &host, groups, map);
    let program = Program {
        run: section.noted(run).unwrap_or_default(),
        host,
        ready_port: section.read("ready", ready_port),
        result: section.optional("result", result_kind),
        lasts: section.optional("lasts", units::time_limit),
        time_limit: time_limit.unwrap_or(TIME_LIMIT),
        line: section.line() as usize,
    };
    section.finish()?;
    Ok(program)
}

fn command(
    section: &mut Section,
    host: &str,
    groups: &Groups,
    map: &Map,
) -> Result<String, Refusal> {
    let values = section.placeholders();
    let value = section.need("run", "a command, such as \"iperf3 -c {server}\"")?;
    let wrong = |error: CommandError| value.refusal(error.to_string());
    let mut filled = String::new();
    for piece in command::pieces(value.raw()?).map_err(wrong)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Brace => filled.push_str("{{"),
            Piece::Name(name) => filled.push_str(&filled_name(&value, name, groups, values)?),
        }
    }
    command::words(&filled, |_| Some("x".to_owned())).map_err(wrong)?;
    let ways = map.host(host).map(|from| map.ways(from));
    for name in command::names(&filled).map_err(wrong)? {
        let (to, _) = host_and_family(name);
        // A link that was not read leads nowhere.
        if let (Some(ways), Some(at), false) = (&ways, map.host(to), value.is_noted()) {
            let reached = check_reached(ways, at, map);
            reached.map_err(|why| value.refusal(format!("{{{to}}}: {to} {why}")))?;
        }
    }
    Ok(filled)
}

/// What stands for `{name}` in a command: a value, or a single host in braces.
fn filled_name(
    value: &Value,
    name: &str,
    groups: &Groups,
    values: Values,
) -> Result<String, Refusal> {
    let (host, _) = host_and_family(name);
    let suffix = &name[host.len()..];
    match (groups.who(host), values.index()) {
        (Some(Who::One), _) => Ok(format!("{{{name}}}")),
        (Some(Who::Each(count)), Some(index)) if index <= count => {
            Ok(format!("{{{}{suffix}}}", replica(host, index)))
        }
        (Some(Who::Each(count)), Some(index)) => Err(value.refusal(format!(
            "{{{name}}}: replica {index} has no partner, since {host} is {count} hosts"
        ))),
        (Some(Who::Each(count)), None) => Err(value.refusal(format!(
            "{{{name}}}: {host} is {count} hosts; name one, such as {{{host}-1{suffix}}}"
        ))),
        (None, _) => {
            match values.text(name) {
                Some(text) => Ok(text.replace('{', "{{")),
                None if name == INDEX => Err(value
                    .refusal("{n} is the index of a replica, and the program's host has no count")),
                None => Err(value
                    .refusal(CommandError::Unknown(name.to_owned()).to_string())
                    .allowed(groups.meant(host, "the hosts are"))),
            }
        }
    }
}

/// What reaches, is reached: the way back leads through the same routers.
pub(super) fn check_reached(ways: &Ways, to: usize, map: &Map) -> Result<(), &'static str> {
    if map.first_link(to).is_none() {
        Err("is on no link, so it has no address")
    } else if !ways.reach(to) {
        Err("cannot be reached from the program's host; only hosts with router = true forward")
    } else {
        Ok(())
    }
}

fn ready_port(value: &Value) -> Result<u16, Refusal> {
    let mut ready = value.section()?;
    let port = ready
        .need("port", "the TCP port on which it listens, 1 to 65535")?
        .integer(1..=65535)?;
    ready.finish()?;
    Ok(port as u16)
}

fn result_kind(text: &str) -> Result<ResultKind, &'static str> {
    match text {
        "iperf3" => Ok(ResultKind::Iperf3),
        "flow" => Ok(ResultKind::Flow),
        _ => Err("\"iperf3\" or \"flow\" (fatpath flow send)"),
    }
}
