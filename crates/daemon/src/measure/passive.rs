// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether ordinary flows said enough of a path lately, so that a test of its rate is left out.

use crate::archive::Archive;
use fatpath_archive::Kind;
use fatpath_archive::store::{Location, Query, Record, path_of};
use fatpath_measure::Test;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A server that does not answer within this does not hold a test up.
const DEADLINE: Duration = Duration::from_secs(5);

const LATELY_US: i64 = 3_600_000_000;

/// So many flows are enough.
const ENOUGH: usize = 3;

/// A flow that moved less says nothing of a rate.
const LEAST_BYTES: f64 = 1e6;

/// How many flows to the peer's path lately said something of its rate, where these are enough. Those of `tests` do not count.
pub(super) fn enough_flows(
    archive: &Location,
    test: &Test,
    tests: &[Test],
    peer: IpAddr,
    now_us: i64,
) -> Option<usize> {
    if !test.passive_first || !test.tool.is_of_rate() || !archive.may_exist() {
        return None;
    }
    let query = Query {
        prefix: Some(path_of(peer)),
        host: archive.is_shared().then(Archive::own_host),
        kinds: vec![Kind::Flow],
        limit: 1000,
        ..Query::between(now_us - LATELY_US, i64::MAX)
    };
    let flows = archive
        .open_within(DEADLINE)
        .and_then(|store| store.query(&query));
    let flows = flows.unwrap_or_default();
    let ports = tests.iter().filter_map(|test| test.tool.rate_port());
    let ports: Vec<u16> = ports.collect();
    let count = flows
        .iter()
        .filter(|flow| says_a_rate(flow, &ports))
        .count();
    (count >= ENOUGH).then_some(count)
}

/// Flows of tests themselves are none.
fn says_a_rate(flow: &Record, ports_of_tests: &[u16]) -> bool {
    let body: serde_json::Value = serde_json::from_str(&flow.event.body).unwrap_or_default();
    let remote = body["remote"].as_str().and_then(|text| text.parse().ok());
    let is_of_tests =
        remote.is_some_and(|remote: SocketAddr| ports_of_tests.contains(&remote.port()));
    flow.event.value.is_some_and(|bytes| bytes >= LEAST_BYTES) && !is_of_tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_archive::store::{Batch, SqliteStore, Store};
    use fatpath_archive::{Event, Origin};

    const NOW_US: i64 = 1_795_392_000_000_000;

    fn flow(remote: &str, age_s: i64) -> Event {
        let remote: SocketAddr = remote.parse().unwrap();
        Event {
            time_us: NOW_US - age_s * 1_000_000,
            name: "flow.end".into(),
            peer: Some(remote.ip()),
            rule: None,
            value: Some(5e6),
            weight: 1,
            body: format!("{{\"remote\": \"{remote}\"}}"),
        }
    }

    fn enough(flows: Vec<Event>) -> Option<usize> {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin {
            host: "h".into(),
            boot: "b".into(),
        };
        let events = (1..).zip(flows).collect();
        let batch = Batch {
            origin,
            kind: Kind::Flow,
            events,
        };
        SqliteStore::at(folder.path()).put(&batch).unwrap();
        let test = |tool: &str| {
            format!("[[test]]\nname = '{tool}'\ntool = '{tool}'\nto = '192.0.2.1'\nevery = '1h'\n")
        };
        let text = test("iperf3") + &test("rate");
        let plan = fatpath_measure::parse(&text).unwrap();
        enough_flows(
            &Location::Folder(folder.path().to_path_buf()),
            &plan.tests[0],
            &plan.tests,
            "192.0.2.1".parse().unwrap(),
            NOW_US,
        )
    }

    #[test]
    fn three_flows_of_the_last_hour_are_enough() {
        let flows = vec![
            flow("192.0.2.9:443", 10),
            flow("192.0.2.9:443", 20),
            flow("192.0.2.1:22", 3500),
        ];
        assert_eq!(enough(flows.clone()), Some(3));
        assert_eq!(enough(flows[1..].to_vec()), None);
        let with_old = vec![
            flows[0].clone(),
            flows[1].clone(),
            flow("192.0.2.1:22", 3700),
        ];
        assert_eq!(enough(with_old), None, "one is older");
        let with_other = vec![flows[0].clone(), flows[1].clone(), flow("192.0.3.1:22", 30)];
        assert_eq!(enough(with_other), None, "one is of another path");
        let with_test = vec![
            flows[0].clone(),
            flows[1].clone(),
            flow("192.0.2.1:5201", 30),
        ];
        assert_eq!(enough(with_test), None, "one is a test's");
        let with_another = vec![
            flows[0].clone(),
            flows[1].clone(),
            flow("192.0.2.1:4748", 30),
        ];
        assert_eq!(enough(with_another), None, "one is another test's");
    }
}
