// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath tune`: other settings for one live flow.

use crate::not_running::not_running;
use crate::observed::Observed;
use crate::one_flow;
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_api::endpoint::TuneFlow;
use fatpath_api::{SettingOutcome, SettingReport, SettingValue, TuneQuery, TunedFlow};
use fatpath_daemon::client;
use fatpath_table::write_table;
use fatpath_toml::Document;
use std::io::{Write, stdout};

pub const HELP: &str = "\
FLOW is a connection as `fatpath flows` lists it: its two ends, or the remote
end alone when only one flow has it, or the flow's cookie. KEY=VALUE is a
setting as a rule of the policy file has it (docs/policy.md). What the flow's
rule gives besides stays.

The settings last until --for is over, the flow ends, --undo, or the daemon ends
(where it is killed, until the next one starts): then the flow has what its rule
gives again. A program's own settings win, as always, unless
override_application=true is among the settings.

Examples:
  fatpath tune 10.5.128.74:443 pacing_rate=500mbit --for 60
  fatpath tune 10.5.0.1:40112 10.5.128.74:443 congestion_control=fp_bbr \\
    send_buffer=64MB
  fatpath tune 81923 'congestion_control={ law = \"fp_aimd\", a = 6, b = 0.3 }'
  fatpath tune 81923 --undo";

#[derive(Args)]
pub struct Arguments {
    /// The flow: local and remote ADDRESS:PORT, the remote one, or its cookie; then its settings
    #[arg(value_name = "FLOW|KEY=VALUE", num_args = 1.., required = true)]
    words: Vec<String>,
    /// Seconds after which the flow has what its rule gives again
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    for_s: Option<u64>,
    /// Give the flow back what its rule gives
    #[arg(long, conflicts_with = "for_s")]
    undo: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: Observed,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let (settings, flow): (Vec<String>, Vec<String>) = arguments
        .words
        .iter()
        .cloned()
        .partition(|word| word.contains('='));
    ensure!(
        settings.is_empty() == arguments.undo,
        "give settings, such as pacing_rate=500mbit, or --undo"
    );
    let instance = arguments.of.instance()?;
    let [local, remote] = one_flow::ends(&flow, &instance)?;
    let lines: Result<Vec<String>> = settings.iter().map(|word| line(word)).collect();
    let query = TuneQuery {
        local,
        remote,
        settings: lines?.concat(),
        for_s: arguments.for_s,
    };
    let tuned = client::ask::<TuneFlow>(&instance.socket(), &query)?
        .with_context(|| not_running(&instance))?;
    if arguments.json {
        return Ok(writeln!(
            stdout(),
            "{}",
            serde_json::to_string_pretty(&tuned)?
        )?);
    }
    for note in &tuned.notes {
        eprintln!("fatpath: warning: {note}");
    }
    match tuned.flow {
        Some(flow) => print(&flow),
        None => Ok(writeln!(stdout(), "No rule gives this flow anything.")?),
    }
}

/// A setting as a line of a rule: what is no value of TOML is a text.
fn line(word: &str) -> Result<String> {
    let (key, value) = word.split_once('=').unwrap_or_default();
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    ensure!(is_key, "'{key}' is not the name of a setting");
    ensure!(
        !value.contains(char::is_control),
        "{key}: a value is one line of text"
    );
    let is_toml = Document::parse("a setting", &format!("key = {value}")).is_ok();
    let value = match is_toml {
        true => value.to_owned(),
        false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    Ok(format!("{key} = {value}\n"))
}

fn print(flow: &TunedFlow) -> Result<()> {
    let mut out = stdout().lock();
    let rule = flow.rule.as_deref().unwrap_or("-");
    writeln!(
        out,
        "{} to {}, rule {rule}, law {}",
        flow.flow.local, flow.flow.remote, flow.measures.law
    )?;
    let header = ["SETTING", "ASKED", "HAS", "OUTCOME"].map(str::to_owned);
    Ok(write_table(
        &mut out,
        header,
        flow.settings.iter().map(row),
    )?)
}

fn row(setting: &SettingReport) -> [String; 4] {
    let note = setting.note.as_deref().map(|note| format!(": {note}"));
    [
        setting.setting.to_string(),
        text(&setting.asked),
        text(&setting.has),
        outcome(setting.outcome).to_owned() + &note.unwrap_or_default(),
    ]
}

fn text(value: &SettingValue) -> String {
    match value {
        SettingValue::Number(number) => number.to_string(),
        SettingValue::Name(name) => name.clone(),
    }
}

fn outcome(outcome: SettingOutcome) -> &'static str {
    match outcome {
        SettingOutcome::Given => "given",
        SettingOutcome::OverridesProgram => "given, over the program's own",
        SettingOutcome::KeptProgramsOwn => "the program's own stays",
        SettingOutcome::TooLate => "only for a flow that begins",
        SettingOutcome::IgnoredByLaw => "ignored by the law",
        SettingOutcome::Withheld => "withheld: TCP memory is short",
        SettingOutcome::Refused => "refused by the kernel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_line_of_a_rule() {
        assert_eq!(
            line("pacing_rate=500mbit").unwrap(),
            "pacing_rate = \"500mbit\"\n"
        );
        assert_eq!(line("cwnd_clamp=100").unwrap(), "cwnd_clamp = 100\n");
        assert_eq!(line("pacing=true").unwrap(), "pacing = true\n");
        let law = "congestion_control={ law = \"fp_aimd\", a = 6, b = 0.3 }";
        assert_eq!(line(law).unwrap(), law.replacen('=', " = ", 1) + "\n");
        for bad in ["=1", "[[rule]]\nname=1", "pacing_rate=1\n[[rule]]"] {
            assert!(line(bad).is_err(), "{bad}");
        }
    }
}
