// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fatpath costs connections that it has nothing to do with: the rate of a
//! connect-accept-close loop with a large policy loaded, over the rate without.
//!
//! The machines at hand change their speed by half from one second to the next, so the two sides
//! must lie within milliseconds of each other, and a daemon takes half a second to load. So it is
//! loaded once, for a cgroup that this process enters for one side and leaves for the other: outside,
//! the kernel runs none of fatpath's programs. What is not seen that way is the test whether a socket's
//! cgroup has programs, a few nanoseconds, which a host without any skips.

use crate::alone::Alone;
use crate::connect_loop::{Connections, Slice, connect_for_a_slice};
use crate::figure::{Better, Figure, Summary};
use crate::group::Group;
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use anyhow::{Result, ensure};
use std::fmt::Write;

/// Samples, each the median of as many pairs of slices.
const SAMPLES: u32 = 30;
const PAIRS_A_SAMPLE: u32 = 10;

/// A slice of the loop.
pub type Connect = fn() -> Result<Slice>;

const RULES: u32 = 1000;
const PREFIXES_A_RULE: u32 = 10;

/// What a rule for a long fat path gives.
pub const SETTINGS: &str = "\
send_buffer = '1MiB'
receive_buffer = '1MiB'
congestion_control = { law = 'fp_aimd', a = 6, b = 0.3 }
initial_window = 20
";

/// What the host must allow for them.
pub const BUFFERS: &str =
    "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n";

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "tune.connect_rate_ratio",
    what: "connections a second over loopback, 1,000 rules that they do not meet over unloaded",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(0.97),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    paired(run, &(prelude() + &rules(RULES)), |loaded, connections| {
        let counts = loaded.status()?.counts;
        ensure!(counts.flows_met == 0, "{counts:?}: loopback matched a rule");
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
    paired_by(run, policy, connect_for_a_slice, |_| Ok(()), check)
}

/// The same with a loop of the caller's, and what is to be done once the policy is live.
pub fn paired_by(
    run: &Run,
    policy: &str,
    connect: Connect,
    prepare: impl Fn(&Loaded) -> Result<()>,
    check: impl Fn(&Loaded, Connections) -> Result<()>,
) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let group = Group::make()?;
    let loaded = Loaded::start(run, &alone, policy, Some(group.path()))?;
    prepare(&loaded)?;
    let _one = OneProcessor::keep()?;
    let mut tuned = 0;
    let samples = (1..=SAMPLES).map(|n| {
        run.check()?;
        sample(run, &group, connect, n, &mut tuned)
    });
    let samples = samples.collect::<Result<Vec<f64>>>()?;
    check(&loaded, Connections { count: tuned })?;
    Ok(samples)
}

fn sample(run: &Run, group: &Group, connect: Connect, n: u32, tuned: &mut u64) -> Result<f64> {
    let pairs = (0..PAIRS_A_SAMPLE).map(|pair| {
        let (with, without) = match pair % 2 {
            0 => (with(group, connect, tuned)?, connect()?),
            _ => {
                let without = connect()?;
                (with(group, connect, tuned)?, without)
            }
        };
        Ok(with.per_s() / without.per_s())
    });
    let ratio = Summary::Median
        .of(&pairs.collect::<Result<Vec<f64>>>()?)
        .expect("there are pairs");
    run.say(format!("  sample {n} of {SAMPLES}: {ratio:.3}"));
    Ok(ratio)
}

fn with(group: &Group, connect: Connect, tuned: &mut u64) -> Result<Slice> {
    group.enter()?;
    let slice = connect();
    group.leave()?;
    let slice = slice?;
    *tuned += slice.connections;
    Ok(slice)
}

/// What the host must allow for the buffers of the rules; and tuning alone: the instruments have figures of
/// their own.
pub fn prelude() -> String {
    format!("{BUFFERS}[instruments]\nflows = 'none'\n")
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
