// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fatpath costs connections that it has nothing to do with: the rate of a
//! connect-accept-close loop with a large policy loaded, over the rate without.

use crate::alone::Alone;
use crate::connect_loop::{Connections, connect_for};
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::run::Run;
use anyhow::{Result, ensure};
use std::fmt::Write;
use std::time::Duration;

const PAIRS: u32 = 30;
const SIDE: Duration = Duration::from_millis(500);
/// Not counted: caches warm up, and what the unload freed is freed.
const WARM_UP: Duration = Duration::from_millis(100);

const RULES: u32 = 1000;
const PREFIXES_A_RULE: u32 = 10;

/// What a rule for a long fat path gives.
pub const SETTINGS: &str = "\
send_buffer = '1MiB'
receive_buffer = '1MiB'
congestion_control = { law = 'fp_aimd', a = 6, b = 0.3 }
initial_window = 20
";

/// Median of thirty paired ratios.
pub const FIGURE: Figure = Figure {
    name: "tune.connect_rate_ratio",
    what: "connections a second over loopback, 1,000 rules that they do not meet over unloaded",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.9),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    paired(run, &(prelude() + &rules(RULES)), |loaded, connections| {
        let counts = loaded.status()?.counts;
        ensure!(counts.flows_met == 0, "{counts:?}: loopback met a rule");
        ensure!(
            counts.flows_passed >= 2 * connections.count,
            "{counts:?}: fatpath did not see the loop"
        );
        Ok(())
    })
}

/// Ratios of the rate with `policy` over the rate without fatpath, in interleaved pairs.
/// `check` says whether the loaded side was what the figure claims.
pub fn paired(
    run: &Run,
    policy: &str,
    check: impl Fn(&Loaded, Connections) -> Result<()>,
) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let with = || {
        let loaded = Loaded::start(run, &alone, policy)?;
        let connections = settled_rate(run)?;
        check(&loaded, connections)?;
        Ok(connections.per_s)
    };
    let without = || {
        alone.wait_until_unloaded(run)?;
        Ok(settled_rate(run)?.per_s)
    };
    (1..=PAIRS).map(|n| pair(run, n, with, without)).collect()
}

/// The order alternates, so that a machine that grows slower or faster favours neither side.
fn pair(
    run: &Run,
    n: u32,
    with: impl Fn() -> Result<f64>,
    without: impl Fn() -> Result<f64>,
) -> Result<f64> {
    let (with, without) = if n % 2 == 0 {
        let with = with()?;
        (with, without()?)
    } else {
        let without = without()?;
        (with()?, without)
    };
    let (ratio, more_ns) = (with / without, 1e9 / with - 1e9 / without);
    run.say(format!(
        "  pair {n} of {PAIRS}: {with:.0}/s with, {without:.0}/s without: {ratio:.3}, {more_ns:+.0} ns"
    ));
    Ok(ratio)
}

fn settled_rate(run: &Run) -> Result<Connections> {
    run.check()?;
    connect_for(WARM_UP)?;
    connect_for(SIDE)
}

/// What the host must allow for the buffers of the rules.
pub fn prelude() -> String {
    "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n".into()
}

/// `count` rules with ten prefixes each, half of them IPv6, none of them loopback's. Every
/// third asks for a port too, so that the ports of a flow are looked up as well.
pub fn rules(count: u32) -> String {
    let mut text = String::new();
    for rule in 0..count {
        let first = rule * PREFIXES_A_RULE;
        let prefixes: Vec<String> = (first..first + PREFIXES_A_RULE).map(prefix).collect();
        let ports = match rule % 3 {
            0 => format!("destination_ports = [{}]\n", 1024 + rule),
            _ => String::new(),
        };
        write!(
            text,
            "[[rule]]\nname = 'rule-{rule}'\ndestination = ['{}']\n{ports}{SETTINGS}",
            prefixes.join("', '")
        )
        .expect("a string takes all that is written");
    }
    text
}

/// The IPv4 ones spread over 1.0.0.0 to 222.0.0.0, on both sides of 127.0.0.0/8, so that the
/// search for a loopback address goes deep before it fails.
fn prefix(n: u32) -> String {
    if n % 2 == 1 {
        return format!("2001:db8:{n:x}::/48");
    }
    let n = n / 2;
    let first = 1 + n % 222;
    let first = first + u32::from(first >= 127);
    format!("{first}.{}.0.0/16", n / 222)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_policy_is_as_large_as_promised_and_spares_loopback() {
        let prefixes: HashSet<String> = (0..RULES * PREFIXES_A_RULE).map(prefix).collect();
        assert_eq!(prefixes.len(), 10_000);
        assert!(!prefixes.iter().any(|p| p.starts_with("127.")));
        assert_eq!(rules(RULES).matches("[[rule]]").count(), 1000);
    }
}
