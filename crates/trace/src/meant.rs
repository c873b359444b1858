// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a trace is for a flow. No I/O.

use fatpath_api::Sample;
use fatpath_policy::{Flow, Trace, Verdict};

/// `rule` is the name of the flow's rule; `cgroup` gives the path of its cgroup, and is asked only where nothing else
/// decides.
pub(crate) fn is_meant(
    trace: &Trace,
    sample: &Sample,
    rule: Option<&str>,
    cgroup: impl FnOnce() -> Option<String>,
) -> bool {
    if !trace.wants_rule(rule) {
        return false;
    }
    let (local, remote) = (sample.flow.local, sample.flow.remote);
    let mut flow = Flow {
        destination_port: Some(remote.port()),
        source: Some(local.ip()),
        source_port: Some(local.port()),
        ..Flow::to(remote.ip())
    };
    match trace.matches.verdict(&flow) {
        Verdict::Matches => true,
        Verdict::Differs(_) => false,
        Verdict::Unknown(_) => {
            flow.cgroup = cgroup();
            trace.matches.verdict(&flow) == Verdict::Matches
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_api::SampleKind;
    use fatpath_estats::testing;

    fn trace(keys: &str) -> Trace {
        let text = format!("[[rule]]\nname = 'r'\n[[trace]]\nname = 't'\n{keys}\n");
        let policy = fatpath_policy::parse(&text, None).unwrap();
        policy.traces.into_iter().next().unwrap()
    }

    fn sample(local: &str, remote: &str) -> Sample {
        let mut sample = testing::sample(1, SampleKind::Interval, 0);
        sample.flow.local = local.parse().unwrap();
        sample.flow.remote = remote.parse().unwrap();
        sample
    }

    #[test]
    fn the_words_of_a_rule_choose_flows() {
        let sample = sample("10.1.0.9:2811", "[::ffff:192.0.2.7]:443");
        let is = |keys: &str| is_meant(&trace(keys), &sample, None, || panic!("nobody asks"));
        assert!(is(""));
        assert!(is("destination = ['192.0.2.0/24']\nsource = ['10.1.0.9']"));
        assert!(is("destination_ports = ['400-500']\nsource_ports = [2811]"));
        assert!(!is("destination = ['198.51.100.0/24']"));
        assert!(!is("destination_ports = [80]\ncgroup = '/x'"));
    }

    #[test]
    fn a_rule_is_asked_for_by_name_and_a_cgroup_by_path() {
        let sample = sample("10.1.0.9:2811", "192.0.2.7:443");
        let of_rule = |rule| is_meant(&trace("rules = ['r']"), &sample, rule, || None);
        assert!(of_rule(Some("r")) && !of_rule(Some("s")) && !of_rule(None));
        let in_cgroup = |path: Option<&str>| {
            let path = path.map(str::to_owned);
            is_meant(&trace("cgroup = '/x'"), &sample, None, || path)
        };
        assert!(in_cgroup(Some("/x/y")) && !in_cgroup(Some("/xy")) && !in_cgroup(None));
    }
}
