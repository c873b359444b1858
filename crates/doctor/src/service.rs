// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws, group, policy and daemon.

use crate::{Check, Daemon, Facts, Laws, PolicyFile, Seen};
use fatpath_policy::{AutoMode, Policy};

pub(crate) fn checks(facts: &Facts) -> Vec<Check> {
    vec![
        laws(&facts.laws, &facts.daemon),
        group(facts.has_group),
        policy(&facts.policy),
        daemon(&facts.daemon, facts.version),
    ]
}

fn laws(laws: &Laws, daemon: &Seen<Daemon>) -> Check {
    const NAME: &str = "laws";
    let registered = match &laws.registered {
        Err(why) => return Check::unseen(NAME, why),
        Ok(registered) => registered,
    };
    if let Ok(others) = &laws.of_others
        && let Some((law, owner)) = others.first()
    {
        return Check::warn(
            NAME,
            format!("{law} is registered by another fatpath ({owner}): this one goes without it"),
            "Unload the other one there; fatpath unload --orphans where nobody can reach it any more",
        );
    }
    let (_, missing): (Vec<_>, Vec<_>) = laws
        .brought
        .iter()
        .map(String::as_str)
        .partition(|law| registered.iter().any(|it| it == law));
    let is_loaded = matches!(daemon, Ok(Daemon::Runs { .. } | Daemon::OnlyPins));
    match is_loaded && !missing.is_empty() {
        true => Check::warn(
            NAME,
            format!(
                "the kernel did not take {}: rules that name them leave the law as it is",
                missing.join(" ")
            ),
            "journalctl -u fatpath says why",
        ),
        false if missing.is_empty() => Check::ok(NAME, registered.join(" ")),
        false => Check::ok(
            NAME,
            format!("{}; the daemon brings more", registered.join(" ")),
        ),
    }
}

fn group(is_there: bool) -> Check {
    const NAME: &str = "group fatpath";
    match is_there {
        true => Check::ok(NAME, "its members may read what the daemon knows"),
        false => Check::warn(
            NAME,
            "no such group: only root may read what the daemon knows",
            "groupadd --system fatpath, then restart the daemon",
        ),
    }
}

fn policy(file: &PolicyFile) -> Check {
    const NAME: &str = "policy";
    let name = &file.file;
    match &file.policy {
        Err(_) if !file.is_there => Check::bad(
            NAME,
            format!("there is no {name}: the daemon does not start without it"),
            format!(
                "fatpath policy suggest DEST >>{name} writes a rule for a path; the package brings a file to edit"
            ),
        ),
        Err(problems) => Check::bad(
            NAME,
            match problems.as_slice() {
                [] => name.clone(),
                [first] => first.clone(),
                [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
            },
            format!("fatpath policy check {name} names every problem"),
        ),
        Ok(policy) if tunes_nothing(policy) => Check::warn(
            NAME,
            format!("{name} tunes nothing: it has no rule, and [auto] does not tune"),
            format!("Write a [[rule]] into {name}, or mode = \"tune\" under [auto]"),
        ),
        Ok(policy) => of_good(policy, name),
    }
}

fn tunes_nothing(policy: &Policy) -> bool {
    policy.rules.is_empty() && policy.auto.mode != AutoMode::Tune
}

fn of_good(policy: &Policy, name: &str) -> Check {
    const NAME: &str = "policy";
    let rules = match policy.rules.len() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    match policy.warnings.as_slice() {
        [] if policy.auto.mode == AutoMode::Tune => Check::ok(
            NAME,
            format!("{name}: {rules}, and learned paths are tuned"),
        ),
        [] => Check::ok(NAME, format!("{name}: {rules}")),
        [first, ..] => Check::warn(
            NAME,
            format!("{}", first.in_file(name)),
            format!("fatpath policy check {name} prints every warning"),
        ),
    }
}

fn daemon(daemon: &Seen<Daemon>, version: &str) -> Check {
    const NAME: &str = "daemon";
    match daemon {
        Err(why) => Check::unseen(NAME, why),
        Ok(Daemon::NotLoaded) => Check::warn(
            NAME,
            "does not run, and nothing is loaded: no flow is tuned",
            "systemctl enable --now fatpath, or fatpath daemon",
        ),
        Ok(Daemon::OnlyPins) => Check::warn(
            NAME,
            "does not run: flows are tuned, and nothing is logged, learned or shown",
            "systemctl start fatpath; journalctl -u fatpath says why it ended",
        ),
        Ok(Daemon::Runs {
            version: running, ..
        }) if running != version => Check::warn(
            NAME,
            format!("runs version {running}, and this program is {version}"),
            "systemctl restart fatpath (live flows go on)",
        ),
        Ok(Daemon::Runs {
            errors,
            pid,
            lists_by_namespace,
            ..
        }) => match errors.first() {
            Some(first) => Check::warn(
                NAME,
                format!("runs (pid {pid}); {first}"),
                "fatpath status and journalctl -u fatpath say more",
            ),
            None if *lists_by_namespace => Check::ok(
                NAME,
                format!(
                    "runs (pid {pid}); this kernel refuses iterators over maps: flows of network namespaces that have \
                     neither a process nor a name are not listed"
                ),
            ),
            None => Check::ok(NAME, format!("runs (pid {pid})")),
        },
    }
}
