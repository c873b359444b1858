// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath try`, `fatpath policy suggest`, and the path's part of `fatpath doctor`: what a path from here is like, and
//! what TCP makes of it. What follows from what was seen, `fatpath-doctor` decides.

use crate::forecast::{host, known, learn};
use crate::paths::{in_words, learned_of};
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_api::LearnedPath;
use fatpath_daemon::InstanceOptions;
use fatpath_doctor::path::{Forecast, PathFacts, forecast, rough_rate};
use fatpath_doctor::write_wrapped;
use fatpath_path::{Host, Limit, Loss};
use fatpath_perform::{Handshakes, Route, Transfer};
use fatpath_theory::{loss, rate_bps};
use fatpath_units::show_count;
use serde::Serialize;
use std::fmt;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::net::IpAddr;

pub const HELP: &str = "\
Opens five TCP connections to the destination and closes them again: to --port,
else to 443 or 22. A refusal shows the round trip as well. Nothing is changed.

The forecast is that of `fatpath model` for one flow from this host, alone on
the path. Settings need the path's rate: --rate where it is known, --iperf3
where a server runs there, or what the daemon learned of the path.

Examples:
  fatpath try far.example
  fatpath try far.example:2811 --rate 10gbit
  fatpath try 192.0.2.7 --rate 1gbit --loss 0.01%
  fatpath try 192.0.2.7 --iperf3 --seconds 10 --json
  fatpath policy suggest 192.0.2.7 --rate 1gbit >> /etc/fatpath/policy.toml";

/// The path, and what is known of it.
#[derive(Args)]
pub struct Probe {
    /// Host name or address, with :PORT where neither 443 nor 22 answers
    #[arg(value_name = "DEST")]
    destination: String,
    /// TCP port to connect to: one that accepts or refuses
    #[arg(long)]
    port: Option<u16>,
    /// Rate of the bottleneck, in bits of IP packets: 1gbit
    #[arg(long, value_name = "RATE", value_parser = rate_bps)]
    rate: Option<f64>,
    /// Share of the segments that the path loses without a full queue: 0.01%
    #[arg(long, value_name = "SHARE", value_parser = loss)]
    loss: Option<f64>,
    /// Measure the rate: send to an iperf3 server on this port [default: 5201]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    iperf3: Option<u16>,
    /// Seconds to send to the iperf3 server
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    #[command(flatten)]
    instance: InstanceOptions,
}

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    probe: Probe,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was seen, and what follows.
#[derive(Serialize)]
pub struct Tried {
    destination: String,
    address: IpAddr,
    handshakes: Handshakes,
    mtu_bytes: u32,
    /// By the daemon; none where it does not run.
    learned: Option<Vec<LearnedPath>>,
    transfer: Option<Transfer>,
    /// Bits of data a second.
    rate_bps: Option<f64>,
    forecast: Forecast,
    /// Lines of a policy file.
    rule: String,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let tried = arguments.probe.run()?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&tried)? + "\n",
        false => tried.to_string(),
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

/// `fatpath policy suggest`.
pub fn suggest(probe: &Probe) -> Result<()> {
    let tried = probe.run()?;
    ensure!(
        tried.rate_bps.is_some(),
        "the rate of the path to {} is not known: give it (--rate) or measure it (--iperf3)",
        tried.destination
    );
    Ok(stdout().write_all(tried.rule.as_bytes())?)
}

impl Probe {
    /// Of a destination, of which nothing is known.
    pub fn of(destination: &str, instance: &InstanceOptions) -> Probe {
        Probe {
            destination: destination.to_owned(),
            port: None,
            rate: None,
            loss: None,
            iperf3: None,
            seconds: 0,
            instance: instance.clone(),
        }
    }

    /// Asks the path.
    pub fn run(&self) -> Result<Tried> {
        let (address, named) = fatpath_perform::resolve(&self.destination)?;
        let asked = self.port.or(named);
        let ports = asked.map_or(fatpath_perform::PORTS.to_vec(), |port| vec![port]);
        let handshakes = fatpath_perform::handshakes(address, &ports)?;
        let Route { local, mtu_bytes } = fatpath_perform::route(address)?;
        let learned = learned_of(&self.instance, address, Some(local)).ok();
        let mut facts = PathFacts {
            rtt_us: handshakes.least_us,
            mtu_bytes,
            is_ipv6: address.is_ipv6(),
            rate: None,
            loss: 0.0,
            loss_kind: None,
        };
        if let Some(path) = learned.iter().flatten().next() {
            learn(&mut facts, path);
        }
        let transfer = self.transfer(address, &mut facts)?;
        self.give(&mut facts);
        let forecast = forecast(&facts, &self.host());
        let rule = rule(&self.destination, address, &facts, &forecast);
        Ok(Tried {
            destination: self.destination.clone(),
            address,
            handshakes,
            mtu_bytes,
            learned,
            transfer,
            rate_bps: facts.rate.map(|rate| rate.bps.value),
            forecast,
            rule,
        })
    }

    fn transfer(&self, address: IpAddr, facts: &mut PathFacts) -> Result<Option<Transfer>> {
        let Some(port) = self.iperf3 else {
            return Ok(None);
        };
        if stderr().is_terminal() {
            eprintln!("sending to {address} port {port} for {} s", self.seconds);
        }
        let before = forecast(facts, &self.host());
        let transfer = fatpath_perform::transfer(address, port, self.seconds, before.mss_bytes)?;
        // A flow that had most of what its window allows says nothing of the path's own rate.
        let is_windowed = transfer.goodput_bps > 0.6 * before.defaults.rate_bps;
        facts.rate = Some(known(
            transfer.goodput_bps,
            is_windowed.then_some(Limit::OwnBuffer),
        ));
        facts.loss = transfer.retransmitted_share;
        Ok(Some(transfer))
    }

    fn host(&self) -> Host {
        host(&self.instance.run_dir)
    }

    /// What the user knows counts most.
    fn give(&self, facts: &mut PathFacts) {
        if let Some(packets_bps) = self.rate {
            let mss_bytes = f64::from(forecast(facts, &self.host()).mss_bytes);
            let data_bps = packets_bps * mss_bytes / f64::from(facts.mtu_bytes);
            facts.rate = Some(known(data_bps, None));
        }
        if let Some(loss) = self.loss {
            facts.loss = loss;
            facts.loss_kind = (loss > 0.0).then_some(Loss::Random);
        }
    }
}

/// A rule that gives what the forecast rests on; a comment where none is needed or the rate is not known.
fn rule(destination: &str, address: IpAddr, facts: &PathFacts, forecast: &Forecast) -> String {
    let safe = |text: &str| text.replace(char::is_control, "?");
    let rtt_ms = facts.rtt_us / 1e3;
    let rate = facts
        .rate
        .map_or("unknown".to_owned(), |rate| rough_rate(rate.bps.value));
    let mut text = format!(
        "\n# {}: round trip {rtt_ms:.1} ms, rate {rate} of data.\n",
        safe(destination)
    );
    for reason in &forecast.reasons {
        text.push_str(&format!("# {}\n", safe(reason)));
    }
    if forecast.settings.contains("_buffer = ") {
        text.push_str("# Needs \"net.core.wmem_max\" and rmem_max = \"auto\" in [host.sysctl].\n");
    }
    if !forecast.settings.is_empty() {
        let name = address.to_string().replace(':', "-");
        let settings = &forecast.settings;
        text.push_str(&format!(
            "[[rule]]\nname = \"to-{name}\"\ndestination = [\"{address}\"]\n{settings}"
        ));
    }
    text
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shakes, address) = (&self.handshakes, self.address);
        let how = if shakes.refused { "refuses" } else { "answers" };
        writeln!(f, "path           {address}, port {} {how}", shakes.port)?;
        writeln!(
            f,
            "round trip     {:.1} ms, the least of {}; the most {:.1} ms",
            shakes.least_us / 1e3,
            show_count(shakes.count, "handshake"),
            shakes.most_us / 1e3
        )?;
        let (mtu, mss) = (self.mtu_bytes, self.forecast.mss_bytes);
        writeln!(f, "path MTU       {mtu} bytes by the route, {mss} of data")?;
        write_wrapped(f, "flows          ", &self.shown_by_flows())?;
        if let Some(transfer) = &self.transfer {
            writeln!(
                f,
                "iperf3         {} in {} s, {:.3} % of the segments sent again",
                rough_rate(transfer.goodput_bps),
                transfer.seconds,
                transfer.retransmitted_share * 100.0
            )?;
        }
        self.forecast.fmt(f)?;
        if !self.forecast.settings.is_empty() {
            let lines = self.rule.trim_start().lines();
            let keys = lines.filter(|line| !line.starts_with('#'));
            let keys: Vec<String> = keys.map(|line| format!("  {line}")).collect();
            writeln!(
                f,
                "a rule for this path (fatpath policy suggest prints it):"
            )?;
            writeln!(f, "{}", keys.join("\n"))?;
        }
        Ok(())
    }
}

impl Tried {
    fn shown_by_flows(&self) -> String {
        let Some(learned) = &self.learned else {
            return "not known what they show: the daemon does not run".to_owned();
        };
        let Some(path) = learned.first() else {
            return "have shown nothing of this path yet ([auto] in the policy)".to_owned();
        };
        let rate = path.rate_bps.map_or("no rate yet".to_owned(), rough_rate);
        format!(
            "{}: round trip {:.1} ms, {rate}, loss {}",
            show_count(path.flows, "flow"),
            path.base_rtt_us / 1e3,
            in_words(path.loss.as_deref().unwrap_or("of unknown kind"))
        )
    }
}
