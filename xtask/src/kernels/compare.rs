// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our laws beside the kernel's modules of the same law, in a guest whose kernel has both.
//!
//! Flows of both run at once over one path with random loss of 1e-4 (compare.sh): no flow is held
//! back by another, and what slows the guest slows both. The result is the ratio of the goodputs;
//! it says nothing when the guest was not idle for a good part of the time.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// What is compared with what.
const PAIRS: [&str; 5] = [
    "fp_reno=reno",
    "fp_aimd=reno",
    "fp_highspeed=highspeed",
    "fp_scalable=scalable",
    "fp_cubic=cubic",
];

/// How long, with how many flows, over which path.
pub struct Comparison {
    flows: u32,
    seconds: u64,
    delay_ms: u32,
    pairs: Vec<String>,
}

impl Comparison {
    /// `[FLOWS [SECONDS [DELAY_MS [OURS=THEIRS…]]]]`
    pub fn new(words: &[String]) -> Result<Comparison> {
        let pairs = match words.get(3..) {
            None | Some([]) => PAIRS.map(str::to_owned).to_vec(),
            Some(pairs) => pairs.to_vec(),
        };
        ensure!(
            pairs.iter().all(|pair| pair.contains('=')),
            "a pair is OURS=THEIRS"
        );
        Ok(Comparison {
            flows: number(words.first(), 4)?,
            seconds: number(words.get(1), 240)?.into(),
            delay_ms: number(words.get(2), 50)?,
            pairs,
        })
    }

    /// The words of its job.
    pub fn command(&self) -> Vec<String> {
        let script = include_str!("compare.sh").to_owned();
        let mut words = vec!["sh".into(), "-c".into(), script, "compare".into()];
        words.extend([
            self.flows.to_string(),
            self.seconds.to_string(),
            self.delay_ms.to_string(),
        ]);
        words.extend(self.pairs.iter().cloned());
        words
    }

    /// When the run is given up.
    pub fn limit(&self) -> Duration {
        let pairs = self.pairs.len() as u64;
        Duration::from_secs(120 + pairs * (self.seconds + 60))
    }
}

fn number(word: Option<&String>, otherwise: u32) -> Result<u32> {
    word.map_or(Ok(otherwise), |word| {
        word.parse().with_context(|| format!("{word} is no number"))
    })
}

/// "As fast as the in-tree modules of the same law, within 10 %".
const AGREES_WITHIN: f64 = 0.1;

/// Lines of the job, as they become a table.
#[derive(Default)]
pub struct Table {
    ours: Option<(String, f64)>,
    differ: Vec<String>,
}

impl Table {
    /// The text to show for one line of the job, if any.
    pub fn row(&mut self, line: &str) -> Result<Option<String>> {
        let Some(result) = line.strip_prefix("== result ") else {
            return Ok(Some(line.to_owned()));
        };
        let (law, json) = result.split_once(' ').context("a law and its result")?;
        let mbps = goodput_mbps(json).with_context(|| format!("{law}: {json}"))?;
        Ok(match self.ours.take() {
            None => {
                self.ours = Some((law.to_owned(), mbps));
                None
            }
            Some((ours, ours_mbps)) => {
                let ratio = ours_mbps / mbps;
                if (ratio - 1.0).abs() > AGREES_WITHIN {
                    self.differ.push(ours.clone());
                }
                Some(format!(
                    "{ours} {ours_mbps:.1} Mb/s, {law} {mbps:.1} Mb/s: law.in_tree_ratio.{ours} {ratio:.3}"
                ))
            }
        })
    }

    /// An error that names the laws of ours that are not as fast as those of the kernel.
    pub fn verdict(&self) -> Result<()> {
        let differ = self.differ.join(", ");
        ensure!(
            differ.is_empty(),
            "more than 10 % from the kernel's own: {differ}"
        );
        Ok(())
    }
}

fn goodput_mbps(json: &str) -> Option<f64> {
    let result: Value = serde_json::from_str(json).ok()?;
    let bps = result["end"]["sum_received"]["bits_per_second"].as_f64()?;
    (bps > 0.0).then_some(bps / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_results_is_one_row() {
        let mut table = Table::default();
        let result = |law: &str, bps: u64| {
            format!(
                "== result {law} {{\"end\":{{\"sum_received\":{{\"bits_per_second\":{bps}}}}}}}"
            )
        };
        assert_eq!(table.row(&result("fp_reno", 9_500_000)).unwrap(), None);
        assert_eq!(
            table.row(&result("reno", 10_000_000)).unwrap().unwrap(),
            "fp_reno 9.5 Mb/s, reno 10.0 Mb/s: law.in_tree_ratio.fp_reno 0.950"
        );
        assert!(table.verdict().is_ok());
        table.row(&result("fp_aimd", 8_900_000)).unwrap();
        table.row(&result("reno", 10_000_000)).unwrap();
        let said = table.verdict().unwrap_err().to_string();
        assert!(
            said.contains("fp_aimd") && !said.contains("fp_reno"),
            "{said}"
        );
    }

    #[test]
    fn a_transfer_that_failed_is_an_error() {
        let mut table = Table::default();
        assert!(
            table
                .row("== result reno {\"error\":\"no route\"}")
                .is_err()
        );
        assert!(Comparison::new(&["4".into(), "x".into()]).is_err());
    }
}
