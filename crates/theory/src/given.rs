// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is given on the command line: a path, and laws.

use anyhow::{Context, Result, bail};
use clap::Args;
use fatpath_cc::Law;
use fatpath_model::Path;
use std::path::PathBuf;

/// Of the path; the loss is each command's own.
#[derive(Args)]
pub struct PathOptions {
    /// Round-trip time without queues: 100ms, 200us
    #[arg(long, value_name = "TIME", value_parser = time_s)]
    pub rtt: f64,
    /// Data in a segment, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1448, value_parser = clap::value_parser!(u32).range(1..=65_495))]
    pub mss: u32,
}

/// A path that a rate is given of, and laws: what the commands ask for that go out from a rate.
#[derive(Args)]
pub struct RateOptions {
    #[command(flatten)]
    path: PathOptions,
    /// Rate in bits of IP packets: 1gbit
    #[arg(long, value_name = "RATE", value_parser = rate_bps)]
    rate: f64,
    #[command(flatten)]
    laws: LawOptions,
}

impl RateOptions {
    /// Without loss.
    pub fn path(&self) -> Path {
        self.path.path(0.0, Some(self.rate))
    }

    /// See [`LawOptions::laws`].
    pub fn laws(&self) -> Result<Vec<Law>> {
        self.laws.laws()
    }
}

/// Which laws.
#[derive(Args)]
pub struct LawOptions {
    /// Only this law, such as fp_scalable or reno [default: all]
    #[arg(long, value_name = "LAW")]
    law: Option<String>,
    /// A parameter of the law, such as a=4; may be repeated
    #[arg(long, value_name = "KEY=NUMBER", requires = "law", value_parser = parameter)]
    set: Vec<(String, f64)>,
}

impl PathOptions {
    /// Without a largest window.
    pub fn path(&self, loss: f64, rate_bps: Option<f64>) -> Path {
        Path {
            mss_bytes: self.mss,
            rate_bps,
            ..Path::new(self.rtt, loss)
        }
    }
}

impl LawOptions {
    /// The law that is asked for, or all.
    pub fn laws(&self) -> Result<Vec<Law>> {
        let all = fatpath_cc::laws()
            .iter()
            .filter_map(|spec| Law::named(spec.name));
        let Some(name) = &self.law else {
            return Ok(all.collect());
        };
        let Some(law) = Law::named(name) else {
            let known: Vec<String> = all.map(|law| kernel_name(&law)).collect();
            bail!("no such law: '{name}'; the laws are {}", known.join(", "));
        };
        let given: Vec<(&str, f64)> = self
            .set
            .iter()
            .map(|(key, value)| (key.as_str(), *value))
            .collect();
        let (law, _) = law.with_given(&given).context("--set")?;
        Ok(vec![law])
    }
}

/// The law's name in the kernel.
pub fn kernel_name(law: &Law) -> String {
    format!("fp_{}", law.spec().name)
}

pub fn time_s(text: &str) -> Result<f64, String> {
    match fatpath_units::time_ns(text) {
        Some(ns) if ns > 0 => Ok(ns as f64 / 1e9),
        _ => Err("give a time above 0, such as 100ms".to_owned()),
    }
}

/// A rate above 0, bits a second, as an argument.
///
/// # Errors
/// What to give instead.
pub fn rate_bps(text: &str) -> Result<f64, String> {
    match fatpath_units::rate_bps(text) {
        Some(bps) if bps > 0 => Ok(bps as f64),
        _ => Err(match fatpath_units::meant_by_bps(text) {
            Some(meant) => format!("ambiguous (tc reads bytes); write {meant}"),
            None => "give a rate above 0, such as 1gbit".to_owned(),
        }),
    }
}

pub fn bytes(text: &str) -> Result<f64, String> {
    match fatpath_units::bytes(text) {
        Some(bytes) if bytes > 0 => Ok(bytes as f64),
        _ => Err("give a size above 0, such as 2MB".to_owned()),
    }
}

/// A loss rate, half of the segments at most, as an argument.
///
/// # Errors
/// What to give instead.
pub fn loss(text: &str) -> Result<f64, String> {
    match fatpath_units::share(text) {
        Some(share) if share <= 0.49 => Ok(share),
        _ => Err("give a loss rate from 0% to 49%, such as 0.01%".to_owned()),
    }
}

/// A file that a figure can be written to.
pub fn picture(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match fatpath_plot::Format::of(&file) {
        Some(_) => Ok(file),
        None => Err("give a file name that ends in .png or .svg".to_owned()),
    }
}

fn parameter(text: &str) -> Result<(String, f64), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=NUMBER, such as a=4")?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| format!("'{value}' is no number"))?;
    Ok((key.trim().to_owned(), value))
}
