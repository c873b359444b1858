// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that one live flow is given by hand: it alone has them, besides what its rule gives, and only for a time.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use support::{Daemon, alone, setting, until};

const POLICY: &str = "[host.sysctl]\n'net.core.wmem_max' = 'auto'\n\
    [[rule]]\nname = 'wan'\ndestination = ['127.0.7.2']\nsend_buffer = 1000000\npacing_rate = '8gbit'\n";

struct Flows {
    ours: Vec<TcpStream>,
    _theirs: Vec<TcpStream>,
}

fn connections(count: usize) -> Flows {
    let listener = TcpListener::bind("127.0.7.2:0").unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = (0..count)
        .map(|_| {
            (
                TcpStream::connect(to).unwrap(),
                listener.accept().unwrap().0,
            )
        })
        .unzip();
    Flows {
        ours,
        _theirs: theirs,
    }
}

fn ends(socket: &TcpStream) -> [String; 2] {
    [socket.local_addr(), socket.peer_addr()].map(|end| end.unwrap().to_string())
}

fn tune(daemon: &Daemon, socket: &TcpStream, words: &[&str]) -> Value {
    let ends = ends(socket);
    daemon.json(&[&["tune", &ends[0], &ends[1]], words].concat())
}

fn pacing(daemon: &Daemon, socket: &TcpStream) -> Value {
    setting(&daemon.flow_of(socket), "pacing_rate_bps").1
}

#[test]
fn one_flow_has_other_settings_until_its_time_is_over() {
    let Some(_alone) = alone() else { return };
    let mut daemon = Daemon::start(POLICY);
    let flows = connections(2);
    let [tuned, other] = &flows.ours[..] else {
        unreachable!()
    };
    let rate = json!(8_000_000_000_u64);
    assert_eq!(pacing(&daemon, tuned), rate);

    let words = ["pacing_rate=100mbit", "congestion_control=fp_bbr"];
    let now = tune(&daemon, tuned, &words)["flow"].take();
    assert_eq!(now["law"], "fp_bbr", "{now:#}");
    assert_eq!(setting(&now, "pacing_rate_bps").1, json!(100_000_000));
    assert_eq!(setting(&now, "send_buffer_bytes").1, json!(1_000_000));
    assert_eq!(pacing(&daemon, other), rate, "the other keeps its rule's");
    let other_policy = POLICY.replace("1000000", "2000000");
    assert!(daemon.apply(&other_policy).status.success());
    let buffer = setting(&daemon.flow_of(tuned), "send_buffer_bytes").1;
    assert_eq!(buffer, json!(2_000_000), "the rest follows the rule");
    assert_eq!(
        pacing(&daemon, tuned),
        json!(100_000_000),
        "another policy leaves it"
    );

    let undone = tune(&daemon, tuned, &["--undo"])["flow"].take();
    assert_eq!(
        (&undone["rule"], pacing(&daemon, tuned)),
        (&json!("wan"), rate.clone())
    );
    assert_ne!(undone["law"], "fp_bbr");

    let now = tune(&daemon, tuned, &["pacing_rate=50mbit", "--for", "3"])["flow"].take();
    assert_eq!(setting(&now, "pacing_rate_bps").1, json!(50_000_000));
    until("its time to be over", || {
        (pacing(&daemon, tuned) == rate).then_some(())
    });

    tune(&daemon, tuned, &["pacing_rate=50mbit"]);
    daemon.end();
    let pacing_then = pacing(&daemon, tuned);
    assert_eq!(pacing_then, rate, "it ends with the daemon");
}

#[test]
fn what_cannot_be_given_is_refused_and_changes_nothing() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start(POLICY);
    let flows = connections(1);
    let [local, remote] = ends(&flows.ours[0]);
    let refused = |words: &[&str], why: &str| {
        let output = daemon.ask(&[&["tune"], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(why),
            "{words:?}: {said}"
        );
    };
    refused(&[&local, &remote, "pacing_rate=1"], "pacing_rate");
    refused(&[&local, &remote, "no_such=1"], "no_such");
    refused(&[&local, &remote, "reordering=10"], "route");
    refused(&[&local, &remote, "--undo"], "nobody tuned");
    refused(&[&local, &remote], "give settings");
    refused(&["127.0.7.1:1", &remote, "pacing=true"], "no live flow");
    assert_eq!(daemon.flow_of(&flows.ours[0])["rule"], "wan");
}
