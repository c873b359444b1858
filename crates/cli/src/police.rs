// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath police`: what a router does with marked segments. No daemon takes part.

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use fatpath_kernel::{
    Hook, Orders, Police, PoliceMark, PoliceMode, PoliceStatus, Suspect, Watch, bpffs,
    bpffs_is_mounted,
};
use fatpath_policy::Prefix;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Between two looks at the flows that are watched.
const LOOK: Duration = Duration::from_secs(1);

pub const HELP: &str = "\
A policer stays after this command until --off, or until the interface is
removed. With --mode, a second policer on the same interface replaces the first.
Without --mode, an interface that has a policer keeps it: it is shown, or
watched, and what no option names stays. Unmarked packets are never touched,
except by --penalty.

Modes:
  count         marked segments pass
  drop          marked segments are dropped
  reset         both ends of the connection get a RST; always at tc
  limit=RATE    marked segments beyond RATE, for all of them together, are
                dropped; such as 50mbit

Examples:
  fatpath police eth0 --mode count
  fatpath police eth0 --mode drop --except 192.0.2.0/24 --except 2001:db8::/32
  fatpath police eth0 --mode limit=200mbit --mark dscp=4
  fatpath police eth0
  fatpath police eth0 --watch --least-rtt 20ms
  fatpath police eth0 --watch --penalty 60s
  fatpath police status
  fatpath police eth0 --off";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PoliceArguments {
    #[command(subcommand)]
    command: Option<PoliceCommand>,
    /// Interface on which marked segments arrive
    #[arg(required = true)]
    interface: Option<String>,
    #[command(flatten)]
    orders: OrderArguments,
    /// With --watch: round-trip time that is assumed for flows whose SYN was not seen
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time_us)]
    least_rtt: u32,
    /// With --watch: drop for so long all of a flow that did not slow down in five seconds in a row
    #[arg(long, value_name = "TIME", requires = "watch", value_parser = time_us)]
    penalty: Option<u32>,
    /// Remove the policer
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct OrderArguments {
    /// What is done with marked segments: count, drop, reset, limit=RATE [default: as it is, or count]
    #[arg(long, value_parser = mode, conflicts_with = "off")]
    mode: Option<PoliceMode>,
    /// Marked segments from or to PREFIX pass; may be repeated
    #[arg(long = "except", value_name = "PREFIX", conflicts_with = "off")]
    exceptions: Vec<Prefix>,
    /// The mark: bits of TCP's header among 0x0f00, or dscp=N [default: as it is, or 0x200]
    #[arg(long, value_parser = mark, conflicts_with = "off")]
    mark: Option<PoliceMark>,
    /// Hook of the program [default: xdp where the driver supports it, else tc]
    #[arg(long, conflicts_with = "off")]
    hook: Option<HookArgument>,
    /// Report flows that do not slow down under loss although they are not marked, until Ctrl-C
    #[arg(long, conflicts_with = "off")]
    watch: bool,
}

#[derive(Subcommand)]
enum PoliceCommand {
    /// Print the policers and their counters
    Status(Place),
}

#[derive(Args)]
struct Place {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory of the pins of all policers, on a BPF file system
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/fatpath-police")]
    police_dir: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum HookArgument {
    Xdp,
    Tc,
}

fn mode(text: &str) -> Result<PoliceMode, String> {
    match text {
        "count" => Ok(PoliceMode::Count),
        "drop" => Ok(PoliceMode::Drop),
        "reset" => Ok(PoliceMode::Reset),
        _ => {
            let rate = text
                .strip_prefix("limit=")
                .and_then(fatpath_units::rate_bps);
            let rate = rate.and_then(|bps| u64::try_from(bps).ok());
            rate.filter(|bps| *bps > 0)
                .map(PoliceMode::Limit)
                .ok_or_else(|| "count, drop, reset or limit=RATE, such as limit=50mbit".into())
        }
    }
}

fn mark(text: &str) -> Result<PoliceMark, String> {
    if let Some(dscp) = text.strip_prefix("dscp=") {
        let dscp = dscp.parse().ok().filter(|dscp| (1..=63).contains(dscp));
        return dscp
            .map(PoliceMark::Dscp)
            .ok_or_else(|| "a DSCP is 1 to 63".into());
    }
    let bits = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    bits.filter(|bits| *bits != 0 && bits & !0x0f00 == 0)
        .map(PoliceMark::Bits)
        .ok_or_else(|| "one or more of the bits 0x100, 0x200, 0x400, 0x800, or dscp=N".into())
}

fn time_us(text: &str) -> Result<u32, String> {
    let us = fatpath_units::time_us(text).and_then(|us| u32::try_from(us).ok());
    us.filter(|us| *us > 0)
        .ok_or_else(|| "give a time with its unit, such as 10ms".into())
}

pub fn run(arguments: PoliceArguments) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "run as root: BPF programs and interfaces need it"
    );
    let (interface, place) = match (arguments.command, arguments.interface) {
        (Some(PoliceCommand::Status(place)), _) => return status(&place),
        (None, Some(interface)) => (interface, arguments.place),
        (None, None) => bail!("give an interface, such as eth0"),
    };
    if arguments.off {
        return take_away(&place, &interface);
    }
    if !bpffs_is_mounted() && place.police_dir.starts_with(bpffs()) {
        return Err(fatpath_kernel::KernelError::NoBpffs(bpffs()).into());
    }
    let police = put_or_keep(&place, &interface, &arguments.orders)?;
    let watches = arguments.orders.watch;
    print(&[police.status()?], place.json && !watches)?;
    match watches {
        true => {
            let penalty = arguments.penalty.map(|us| Duration::from_micros(us.into()));
            watch(&police, arguments.least_rtt, penalty, place.json)
        }
        false => Ok(()),
    }
}

/// A police that is there and already does what is asked for stays, with its counters.
fn put_or_keep(place: &Place, interface: &str, asked: &OrderArguments) -> Result<Police> {
    let there = match asked.mode {
        Some(_) => None,
        None => Police::of(&place.police_dir, interface)?,
    };
    let status = there.as_ref().map(Police::status).transpose()?;
    let present = status.as_ref().and_then(PoliceStatus::orders);
    let wanted = asked.over(present.clone().unwrap_or_default());
    let is_in_place = status.is_some_and(|status| status.is_in_place);
    match there {
        Some(police) if is_in_place && present.as_ref() == Some(&wanted) => Ok(police),
        _ => Ok(Police::put(&place.police_dir, interface, &wanted)?),
    }
}

impl OrderArguments {
    /// What no option names is as in `present`.
    fn over(&self, present: Orders) -> Orders {
        let hook = self.hook.map(|hook| match hook {
            HookArgument::Xdp => Hook::Xdp,
            HookArgument::Tc => Hook::Tc,
        });
        Orders {
            mode: self.mode.unwrap_or(present.mode),
            mark: self.mark.unwrap_or(present.mark),
            exceptions: match self.exceptions.is_empty() {
                true => present.exceptions,
                false => self.exceptions.clone(),
            },
            watches: self.watch || present.watches,
            hook: hook.or(present.hook),
        }
    }
}

fn take_away(place: &Place, interface: &str) -> Result<()> {
    let police = Police::of(&place.police_dir, interface)?;
    let police = police.with_context(|| format!("no policer is attached to {interface}"))?;
    let last = police.status()?;
    police.take_away()?;
    print(&[last], place.json)
}

fn status(place: &Place) -> Result<()> {
    let polices = Police::all(&place.police_dir)?;
    let statuses: Result<Vec<PoliceStatus>, _> = polices.iter().map(Police::status).collect();
    print(&statuses?, place.json)
}

fn print(polices: &[PoliceStatus], as_json: bool) -> Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(polices)? + "\n",
        false if polices.is_empty() => "no interface has a policer\n".into(),
        false => polices.iter().map(shown).collect(),
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

fn shown(police: &PoliceStatus) -> String {
    let mode = match police.mode {
        PoliceMode::Count => "count".into(),
        PoliceMode::Drop => "drop".into(),
        PoliceMode::Reset => "reset".into(),
        PoliceMode::Limit(bps) => format!("limit={}", fatpath_units::show_rate(bps)),
    };
    let mark = match police.mark {
        PoliceMark::Bits(bits) => format!("{bits:#x}"),
        PoliceMark::Dscp(dscp) => format!("dscp={dscp}"),
    };
    let hook = match police.hook {
        Hook::Xdp => "xdp",
        Hook::Tc => "tc",
    };
    let t = &police.tallies;
    let place = match police.is_in_place {
        true => format!("at {hook}"),
        false => "not in place: its interface was removed, or its program was detached".into(),
    };
    let head = format!("{}: {mode}, mark {mark}, {place}\n", police.interface);
    let rows = [
        ("unmarked", t.unmarked),
        ("penalized", t.penalized),
        ("malformed", t.malformed),
        ("marked", t.marked),
        ("  excepted", t.excepted),
        ("  passed", t.passed),
        ("  dropped", t.dropped),
        ("  reset", t.reset),
    ];
    let rows = rows.map(|(name, tally)| {
        format!(
            "  {name:12} {:>14} pkts {:>18} bytes\n",
            tally.pkts, tally.bytes
        )
    });
    let exceptions = police.exceptions.iter();
    let exceptions =
        exceptions.map(|(prefix, pkts)| format!("  except {prefix:24} {pkts:>8} pkts\n"));
    head + &rows.concat() + &exceptions.collect::<String>()
}

/// Each flow is reported again as long as it goes on. Ctrl-C ends the reports; the police stays.
fn watch(
    police: &Police,
    least_rtt_us: u32,
    penalty: Option<Duration>,
    as_json: bool,
) -> Result<()> {
    let mut watch = Watch::over(police, least_rtt_us)?;
    if let Some(penalty) = penalty {
        watch = watch.penalizing(police, penalty)?;
    }
    let mut last = Instant::now();
    loop {
        std::thread::sleep(LOOK);
        ensure!(
            police.status().is_ok_and(|now| now.is_in_place),
            "the policer of {} is gone: its flows are watched no longer",
            police.interface()
        );
        let interval = last.elapsed();
        last = Instant::now();
        for suspect in watch.look(interval.as_secs_f64())? {
            let line = match as_json {
                true => serde_json::to_string(&suspect)?,
                false => reported(&suspect, penalty),
            };
            writeln!(stdout(), "{line}")?;
        }
    }
}

fn reported(suspect: &Suspect, penalty: Option<Duration>) -> String {
    let measured = if suspect.rtt_is_measured {
        "measured"
    } else {
        "assumed"
    };
    let begins = penalty.filter(|_| suspect.is_penalized);
    let fate = begins.map_or(String::new(), |lasts| {
        let lasts = fatpath_units::show_time(lasts.as_micros() as u64);
        format!("; dropped for {lasts}")
    });
    format!(
        "{} -> {}: {} at {:.2} % loss, {} times Reno's at a round trip of {} ({measured}){fate}",
        suspect.source,
        suspect.destination,
        fatpath_units::show_rate(suspect.rate_bps as u64),
        suspect.loss * 100.0,
        suspect.times_reno.round(),
        fatpath_units::show_time(suspect.rtt_us.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_marks_are_read() {
        assert_eq!(mode("limit=50mbit"), Ok(PoliceMode::Limit(50_000_000)));
        assert_eq!(mode("reset"), Ok(PoliceMode::Reset));
        assert_eq!(mark("0x200"), Ok(PoliceMark::Bits(0x200)));
        assert_eq!(mark("256"), Ok(PoliceMark::Bits(0x100)));
        assert_eq!(mark("dscp=63"), Ok(PoliceMark::Dscp(63)));
    }

    #[test]
    fn what_would_match_flags_or_everything_is_refused() {
        for text in [
            "0x2", "0x202", "0", "0x1000", "dscp=0", "dscp=64", "dscp=", "x",
        ] {
            assert!(mark(text).is_err(), "{text}");
        }
        for text in [
            "limit",
            "limit=",
            "limit=0",
            "limit=0mbit",
            "limit=5",
            "halt",
        ] {
            assert!(mode(text).is_err(), "{text}");
        }
    }
}
