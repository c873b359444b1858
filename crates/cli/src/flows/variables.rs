// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath flows --variables`: every variable of every flow. Those that Linux cannot give are not among them;
//! one without a value at this moment is `-`, in JSON null.

use crate::not_running::not_running;
use anyhow::{Context, Result};
use fatpath_api::endpoint::GetFlowViews;
use fatpath_api::{FlowView, Sample};
use fatpath_daemon::{Instance, client};
use fatpath_estats::variables::{Variable, all};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Write, stdout};

pub(super) fn print(instance: &Instance, is_json: bool) -> Result<()> {
    let views =
        client::get::<GetFlowViews>(&instance.socket())?.with_context(|| not_running(instance))?;
    let mut out = stdout().lock();
    if is_json {
        let shown: Vec<Value> = views.iter().map(shown).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&shown)?)?;
        return Ok(());
    }
    if views.is_empty() {
        writeln!(out, "No flows seen yet.")?;
    }
    for view in &views {
        out.write_all(text(view).as_bytes())?;
    }
    Ok(())
}

fn given() -> impl Iterator<Item = &'static Variable> {
    all().filter(|variable| variable.is_present())
}

fn shown(view: &FlowView) -> Value {
    let value = |variable: &'static Variable| (variable.name, variable.of(&view.sample));
    let variables: BTreeMap<_, _> = given().map(value).collect();
    json!({
        "flow": view.flow,
        "rule": view.rule,
        "has_ended": view.has_ended,
        "variables": variables,
        "derived": view.derived,
    })
}

fn text(view: &FlowView) -> String {
    let flow = &view.flow;
    let rule = view.rule.as_deref().unwrap_or("no rule");
    let ended = if view.has_ended { ", ended" } else { "" };
    let head = format!(
        "{} to {}, {rule}, flow {}{ended}\n",
        flow.local, flow.remote, flow.cookie
    );
    let lines = given().map(|variable| line(variable, &view.sample));
    let derived = view.derived.iter();
    let derived = derived.map(|(name, value)| format!("  {name:<22} {value}\n"));
    head + &lines.chain(derived).collect::<String>()
}

fn line(variable: &Variable, sample: &Sample) -> String {
    let value = variable.of(sample);
    let value = value.map_or("-".to_owned(), |value| value.to_string());
    let line = format!("  {:<22} {value} {}", variable.name, variable.unit);
    format!("{}\n", line.trim_end())
}
