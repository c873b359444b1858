// SPDX-License-Identifier: MIT OR Apache-2.0
//! The impossible is refused, and said.

use std::ops::ControlFlow;

use fatpath_cc::Law;
use fatpath_link::CellSpec;
use fatpath_sim::{ChangeSpec, RudeRate, RudeSpec, Source, Spec, run};

use crate::support::*;

/// A spec that is fine, then changed.
fn refusal(change: impl Fn(&mut Spec)) -> String {
    let mut spec = row(vec![link([0, 1], MS_NS, []), link([1, 2], MS_NS, [])], S_NS);
    spec.flows = vec![bulk(Some(1))];
    assert!(spec.check().is_ok());
    change(&mut spec);
    let outcome = run(&spec, |_| ControlFlow::Continue(()));
    outcome.expect_err("nothing was refused").to_string()
}

#[test]
fn ways_that_lead_nowhere() {
    let to = |to| move |spec: &mut Spec| spec.flows[0].to = to;
    assert_eq!(refusal(to(0)), "flow 0: from a host to itself");
    assert_eq!(refusal(to(7)), "flow 0: no such host: 7");
    let no_way_back = refusal(|spec| {
        spec.flows[0].to = 2;
        spec.routes[1][0] = None;
    });
    assert_eq!(
        no_way_back,
        "flow 0: no route from host 2 to host 0: packets stop at host 1"
    );
    let loops = refusal(|spec| {
        spec.flows[0].to = 2;
        spec.routes[1][2] = Some((0, 1));
    });
    assert_eq!(loops, "flow 0: the route from host 0 to host 2 is a loop");
    let no_link = refusal(|spec| spec.routes[0][1] = Some((5, 0)));
    assert!(no_link.contains("packets stop at host 0"), "{no_link}");
    let against = refusal(|spec| spec.routes[0][1] = Some((0, 1)));
    assert!(against.contains("packets stop at host 0"), "{against}");
    let rows = refusal(|spec| spec.routes.truncate(1));
    assert!(rows.starts_with("routes: "), "{rows}");
}

#[test]
fn what_takes_no_time() {
    let all_at_once = |spec: &mut Spec| {
        let directions = spec.links[0].directions.iter_mut();
        directions.for_each(|chain| chain.cells.clear());
    };
    assert!(refusal(all_at_once).contains("takes no time"));
    let later = |spec: &mut Spec| {
        spec.changes = vec![ChangeSpec {
            at_ns: 1,
            link: 0,
            directions: Default::default(),
        }];
    };
    assert!(refusal(later).contains("takes no time"));
}

#[test]
fn values_out_of_range() {
    type Change = fn(&mut Spec);
    let tcp: [(Change, &str); 10] = [
        (|spec| spec.flows[0].tcp.mss_bytes = 0, "MSS"),
        (|spec| spec.flows[0].tcp.mss_bytes = 65_500, "MSS"),
        (|spec| spec.flows[0].tcp.header_bytes = u32::MAX, "MSS"),
        (|spec| spec.flows[0].tcp.dupthresh = 0, "duplicate ACKs"),
        (|spec| spec.flows[0].tcp.rto_min_ns = 0, "least RTO"),
        (|spec| spec.links[0].mtu_bytes = 20, "MTU"),
        (|spec| spec.links[0].between = [0, 0], "two different hosts"),
        (
            |spec| spec.sample_every_ns = Some(0),
            "time between samples",
        ),
        (
            // A second of five series: a flow's, and two links' of two.
            |spec| spec.sample_every_ns = Some(499),
            "time between samples",
        ),
        (|spec| spec.end_ns = u64::MAX, "100 years"),
    ];
    for (change, about) in tcp {
        let said = refusal(change);
        assert!(said.contains(about), "{said}");
    }
    let loss = |spec: &mut Spec| spec.links[1].directions[0].cells = vec![CellSpec::loss(2.0)];
    assert_eq!(refusal(loss), "link 1: loss of 2: give a share from 0 to 1");
}

#[test]
fn a_rude_flow_whose_fair_window_no_law_could_keep() {
    let rude = |spec: &mut Spec| {
        spec.flows[0].tcp.law = Law::named("bbr").unwrap();
        spec.flows[0].tcp.rude = Some(RudeSpec {
            rate: RudeRate::Estimated,
            off: None,
            converged_milli: 10,
        });
    };
    assert!(refusal(rude).contains("law of windows"));
}

#[test]
fn sources_out_of_range() {
    let web = |users, shape| Source::Web {
        users,
        mean_object_bytes: 1e4,
        shape,
        objects_per_page: 1,
        mean_think_ns: 0,
    };
    let rate = |rate_bps, payload_bytes| Source::ConstantRate {
        rate_bps,
        payload_bytes,
    };
    let bytes = Some(0);
    let again = false;
    for (source, about) in [
        (web(0, 2.0), "users"),
        (web(1, 1.0), "Pareto"),
        (web(1, f64::NAN), "Pareto"),
        (rate(0, 100), "rate"),
        (rate(1_000_000, 65_508), "datagrams"),
        (Source::Bulk { bytes, again }, "bytes"),
    ] {
        let said = refusal(|spec| spec.flows[0].source = source.clone());
        assert!(said.contains(about), "{said}");
    }
}
