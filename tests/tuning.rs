// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flows meet the policy on the real kernel, over loopback: which rule, which settings,
//! what of the program's own survives.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use fatpath_policy::{Flow, Policy, parse};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::fmt::Write as _;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use support::lent::Lent;
use support::{Daemon, alone, cgroup_root, setting, until};

/// A connection and both of its ends.
struct Pair {
    here: Socket,
    there: TcpStream,
}

fn local(socket: &Socket) -> SocketAddr {
    socket.local_addr().unwrap().as_socket().unwrap()
}

fn connect(from: SocketAddr, to: SocketAddr) -> Pair {
    let listener = TcpListener::bind(to).unwrap();
    connect_to(&listener, from, |_| {})
}

fn connect_to(listener: &TcpListener, from: SocketAddr, prepare: impl Fn(&Socket)) -> Pair {
    let here = Socket::new(Domain::for_address(from), Type::STREAM, None).unwrap();
    here.set_reuse_address(true).unwrap();
    here.bind(&from.into()).unwrap();
    prepare(&here);
    here.connect(&listener.local_addr().unwrap().into())
        .unwrap();
    let (there, _) = listener.accept().unwrap();
    Pair { here, there }
}

fn v4(last: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 7, last)), 0)
}

#[test]
fn every_setting_is_given_to_both_ends_and_read_back() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n\
         [[rule]]\nname = 'all'\ndestination = ['127.0.7.0/24']\n\
         send_buffer = 8000000\nreceive_buffer = 9000000\ninitial_window = 40\ncwnd_clamp = 5000\n\
         rto_min = '40ms'\ndelayed_ack_max = '20ms'\npacing_rate = '8gbit'\nnotsent_lowat = '64KiB'\n\
         congestion_control = { law = 'fp_aimd', a = 4, b = 0.125 }\n",
    );
    let pair = connect(v4(1), v4(2));
    for end in [local(&pair.here), pair.there.local_addr().unwrap()] {
        let flow = daemon.flow(end);
        assert_eq!(flow["rule"], "all");
        let wanted = [
            ("send_buffer_bytes", json!(8_000_000)),
            ("receive_buffer_bytes", json!(9_000_000)),
            ("initial_window_pkts", json!(40)),
            ("cwnd_clamp_pkts", json!(5000)),
            ("rto_min_us", json!(40_000)),
            ("delayed_ack_max_us", json!(20_000)),
            ("pacing_rate_bps", json!(8_000_000_000u64)),
            ("notsent_lowat_bytes", json!(65536)),
            ("congestion_control", json!("fp_aimd")),
        ];
        for (name, value) in wanted {
            assert_eq!(
                setting(&flow, name),
                (value.clone(), value),
                "{name} of {end}"
            );
        }
    }
}

#[test]
fn window_scale_of_the_syn_follows_the_rule() {
    let Some(_alone) = alone() else { return };
    let rule = |bytes: u32| {
        format!(
            "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n\
             [[rule]]\nname = 'scale'\ndestination = ['127.0.7.2']\nreceive_buffer = {bytes}\n"
        )
    };
    // ilog2(window) - 15, tcp_select_initial_window().
    for (bytes, scale) in [(1 << 20, 5), (100_000_000, 11)] {
        let daemon = Lent::with(&rule(bytes));
        let pair = connect(v4(1), v4(2));
        let flow = daemon.flow(local(&pair.here));
        assert_eq!(flow["receive_window_scale"], scale, "{bytes} bytes");
    }
}

/// Rules that differ in every dimension, in an order that matters; flows in all combinations.
#[test]
fn the_kernel_finds_the_rule_that_the_policy_says() {
    let Some(_alone) = alone() else { return };
    let mut text = String::new();
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for n in 0..150 {
        let bits = 24 + random(9);
        let low = (random(8) as u32) & (u32::MAX << (32 - bits));
        let prefix = format!("{}/{bits}", Ipv4Addr::from(0x7f00_0700 + (low & 0xff)));
        writeln!(
            text,
            "[[rule]]\nname = 'r{n}'\nnotsent_lowat = {}",
            16384 + n
        )
        .unwrap();
        match random(6) {
            0 => writeln!(text, "source = ['{prefix}']\nsource_ports = ['4010-4020']"),
            1 => writeln!(
                text,
                "destination = ['{prefix}']\ndestination_ports = [{}]",
                4000 + random(6)
            ),
            2 => writeln!(
                text,
                "destination = ['{prefix}']\nsource = ['127.0.7.{}']",
                random(8)
            ),
            3 => writeln!(
                text,
                "destination = ['::1']\nsource_ports = ['{}-4015']",
                4010 + random(5)
            ),
            4 => writeln!(
                text,
                "destination = ['{prefix}', '::1']\nsource_ports = [{}]",
                4010 + random(6)
            ),
            _ => writeln!(
                text,
                "source_ports = [{}]\ndestination_ports = ['4000-4003']",
                4010 + random(6)
            ),
        }
        .unwrap();
    }
    let policy = parse(&text, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    let daemon = Lent::with(&text);
    let mut pairs: Vec<Pair> = Vec::new();
    for n in 0..120 {
        let (to, from) = (4000 + random(6) as u16, 4010 + random(6) as u16);
        let (mut a, mut b) = (v4(random(8) as u8), v4(8 + random(8) as u8));
        if n % 5 == 0 {
            (a, b) = ("[::1]:0".parse().unwrap(), "[::1]:0".parse().unwrap());
        }
        a.set_port(from);
        b.set_port(to);
        // One list of flows is of many pairs: in an emulated guest it takes a second.
        if pairs.len() == 20 || pairs.iter().any(|pair| ends(pair) == (a, b)) {
            check_rules(&daemon, &policy, &pairs);
            pairs.clear();
        }
        let listener = Socket::new(Domain::for_address(b), Type::STREAM, None).unwrap();
        listener.set_reuse_address(true).unwrap();
        listener.bind(&b.into()).unwrap();
        listener.listen(1).unwrap();
        pairs.push(connect_to(&listener.into(), a, |socket| {
            // Closed by RST: a later connection may have the same ends.
            socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        }));
    }
    check_rules(&daemon, &policy, &pairs);
}

fn ends(pair: &Pair) -> (SocketAddr, SocketAddr) {
    (local(&pair.here), pair.there.local_addr().unwrap())
}

/// Of both ends of each pair.
fn check_rules(daemon: &Daemon, policy: &Policy, pairs: &[Pair]) {
    let flows = daemon.flows();
    for (here, there) in pairs.iter().map(ends) {
        check_rule(&flows, policy, here, there);
        check_rule(&flows, policy, there, here);
    }
}

fn check_rule(flows: &[Value], policy: &Policy, source: SocketAddr, destination: SocketAddr) {
    let mut flow = Flow::to(destination.ip());
    flow.destination_port = Some(destination.port());
    flow.source = Some(source.ip());
    flow.source_port = Some(source.port());
    flow.cgroup = Some("/".into());
    let expected = policy
        .first_match(&flow)
        .map_or(Value::Null, |rule| json!(rule.name));
    let (local, remote) = (source.to_string(), destination.to_string());
    let mut listed = flows.iter();
    let found = listed
        .find(|flow| flow["local"] == *local && flow["remote"] == *remote)
        .map_or(Value::Null, |flow| flow["rule"].clone());
    assert_eq!(found, expected, "{source} -> {destination}");
}

#[test]
fn an_ipv6_socket_with_an_ipv4_peer_meets_the_ipv4_rule() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(
        "[[rule]]\nname = 'six'\ndestination = ['::/0']\nnotsent_lowat = 20000\n\
         [[rule]]\nname = 'four'\ndestination = ['127.0.7.2']\nnotsent_lowat = 30000\n",
    );
    let listener = TcpListener::bind(v4(2)).unwrap();
    let here = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
    here.set_only_v6(false).unwrap();
    let mapped = Ipv4Addr::new(127, 0, 7, 2).to_ipv6_mapped();
    let to = SocketAddr::new(mapped.into(), listener.local_addr().unwrap().port());
    here.connect(&to.into()).unwrap();
    let end = local(&here);
    let flow = daemon.flow(SocketAddr::new(end.ip().to_canonical(), end.port()));
    assert_eq!(flow["rule"], "four");
}

const OVERRIDE: &str = "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n\
     [[rule]]\nname = 'override'\ndestination = ['127.0.7.0/28']\n\
     send_buffer = 3000000\nreceive_buffer = 4000000\noverride_application = true\n";

fn set_64k(socket: &Socket) {
    socket.set_send_buffer_size(65536).unwrap();
    socket.set_recv_buffer_size(65536).unwrap();
}

fn buffers(flow: &Value) -> [Value; 2] {
    ["send_buffer_bytes", "receive_buffer_bytes"].map(|name| setting(flow, name).1)
}

#[test]
fn a_programs_own_buffers_are_ignored_where_the_rule_overrides() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(OVERRIDE);
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    set_64k(&listener);
    listener.bind(&v4(2).into()).unwrap();
    listener.listen(1).unwrap();
    let pair = connect_to(&listener.into(), v4(1), set_64k);
    set_64k(&pair.here); // again, now that the path is known
    let there = pair.there.local_addr().unwrap();
    for flow in [daemon.flow(local(&pair.here)), daemon.flow(there)] {
        assert_eq!(buffers(&flow), [json!(3_000_000), json!(4_000_000)]);
        // The window scale of the SYN-ACK was not held down by the listening socket's 64 KiB.
        assert!(
            flow["receive_window_scale"].as_u64().unwrap() >= 6,
            "{flow}"
        );
    }
    // The program reads back what it set, doubled as the kernel does.
    assert_eq!(pair.here.send_buffer_size().unwrap(), 131_072);
    assert_eq!(
        socket2::SockRef::from(&pair.there)
            .recv_buffer_size()
            .unwrap(),
        131_072
    );
}

#[test]
fn a_programs_own_buffers_hold_on_other_paths() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(OVERRIDE);
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    set_64k(&listener);
    assert_eq!(listener.recv_buffer_size().unwrap(), 131_072);
    listener.bind(&v4(99).into()).unwrap();
    listener.listen(1).unwrap();
    let listener: TcpListener = listener.into();
    let pair = connect_to(&listener, v4(98), set_64k);
    for end in [local(&pair.here), pair.there.local_addr().unwrap()] {
        assert!(daemon.flow_now(end).is_none());
        assert_eq!(kernels_buffers(end), [131_072, 131_072]);
    }
}

/// What the kernel itself says (`skmem` of ss): receive and send buffer, bytes.
fn kernels_buffers(local: SocketAddr) -> [u32; 2] {
    let filter = format!("src {local}");
    let output = Command::new("ss")
        .args(["-Htnm", &filter])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let field = |name: &str| {
        let after = text
            .split(name)
            .nth(1)
            .unwrap_or_else(|| panic!("{filter}: {text}"));
        after
            .split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    [field(",rb"), field(",tb")]
}

#[test]
fn an_override_of_one_buffer_leaves_the_other_to_the_program() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(&OVERRIDE.replace("receive_buffer = 4000000\n", "\n"));
    let listener = TcpListener::bind(v4(2)).unwrap();
    let set_20k = |socket: &Socket| {
        socket.set_send_buffer_size(20_000).unwrap();
        socket.set_recv_buffer_size(20_000).unwrap();
    };
    let pair = connect_to(&listener, v4(1), set_20k);
    let end = local(&pair.here);
    assert_eq!(setting(&daemon.flow(end), "send_buffer_bytes").1, 3_000_000);
    assert_eq!(kernels_buffers(end)[0], 40_000);
}

#[test]
fn a_listening_sockets_own_buffers_hold_when_no_rule_overrides_any_more() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(OVERRIDE);
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.set_send_buffer_size(20_000).unwrap();
    listener.set_recv_buffer_size(20_000).unwrap();
    listener.bind(&v4(2).into()).unwrap();
    listener.listen(1).unwrap();
    let plain = OVERRIDE.replace("override_application = true", "divide = false");
    assert!(daemon.apply(&plain).status.success());
    let pair = connect_to(&listener.into(), v4(1), |_| {});
    let accepted = socket2::SockRef::from(&pair.there);
    assert_eq!(accepted.send_buffer_size().unwrap(), 40_000);
    assert_eq!(accepted.recv_buffer_size().unwrap(), 40_000);
}

#[test]
fn what_a_program_asks_for_later_is_not_undone_by_what_it_asked_before() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(OVERRIDE);
    let listener = TcpListener::bind(v4(99)).unwrap();
    let pair = connect_to(&listener, v4(98), set_64k);
    pair.here.set_send_buffer_size(100_000).unwrap();
    assert_eq!(pair.here.send_buffer_size().unwrap(), 200_000);
    assert!(daemon.apply(OVERRIDE).status.success());
    assert_eq!(kernels_buffers(local(&pair.here))[1], 200_000);
}

/// The window that the receiving end announces at most, after a transfer over loopback.
#[test]
fn a_live_flow_announces_the_window_that_its_new_buffer_allows() {
    use std::io::{Read, Write};
    let Some(_alone) = alone() else { return };
    let daemon =
        Lent::with("[[rule]]\nname = 'other'\ndestination = ['192.0.2.1']\nquickack = true\n");
    let mut pair = connect(v4(1), v4(2));
    let policy = "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n\
         [[rule]]\nname = 'live'\ndestination = ['127.0.7.1']\nreceive_buffer = 40000000\n";
    assert!(daemon.apply(policy).status.success());
    let mut block = vec![0; 1 << 17];
    for _ in 0..400 {
        pair.here.write_all(&block).unwrap();
        pair.there.read_exact(&mut block).unwrap();
    }
    let filter = format!("src {}", pair.there.local_addr().unwrap());
    let output = Command::new("ss")
        .args(["-Htin", &filter])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let after = text.split("rcv_ssthresh:").nth(1).unwrap();
    let window: u32 = after.split(' ').next().unwrap().parse().unwrap();
    // Without the rule autotuning stops far below it; 131,072 is the clamp of the first buffer.
    assert!(window > 10_000_000, "{text}");
}

#[test]
fn without_override_the_programs_own_buffer_stays_and_is_said() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(
        "[[rule]]\nname = 'polite'\ndestination = ['127.0.7.2']\nsend_buffer = 3000000\n",
    );
    let listener = TcpListener::bind(v4(2)).unwrap();
    let pair = connect_to(&listener, v4(1), set_64k);
    let flow = daemon.flow(local(&pair.here));
    assert_eq!(
        setting(&flow, "send_buffer_bytes"),
        (json!(3_000_000), json!(65_536))
    );
    assert!(
        flow["settings"][0]["note"]
            .as_str()
            .unwrap()
            .contains("override_application")
    );
}

#[test]
fn a_divided_buffer_is_shared_and_given_back() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n\
         [[rule]]\nname = 'shared'\ndestination = ['127.0.7.2']\n\
         send_buffer = 2400000\nreceive_buffer = 1200000\ndivide = true\n",
    );
    let listener = TcpListener::bind(v4(2)).unwrap();
    let first = connect_to(&listener, v4(1), |_| {});
    // Only flows that carry data count.
    let has = |others: &[&Pair], bytes: [u32; 2]| {
        until("the share", || {
            for mut socket in others.iter().map(|pair| &pair.here).chain([&first.here]) {
                socket.write_all(b"x").unwrap();
            }
            let flow = daemon.flow_now(local(&first.here))?;
            (buffers(&flow) == bytes.map(|b| json!(b))).then_some(())
        });
    };
    has(&[], [2_400_000, 1_200_000]);
    let second = connect_to(&listener, v4(1), |_| {});
    has(&[&second], [1_200_000, 600_000]);
    let third = connect_to(&listener, v4(1), |_| {});
    has(&[&second, &third], [800_000, 400_000]);
    assert_eq!(
        buffers(&daemon.flow(local(&third.here))),
        [json!(800_000), json!(400_000)]
    );
    drop((second, third));
    has(&[], [2_400_000, 1_200_000]);
}

#[test]
fn a_cgroup_rule_holds_for_the_cgroup_and_those_below() {
    let Some(_alone) = alone() else { return };
    let root = cgroup_root();
    let name = format!("fatpath-test-{}", std::process::id());
    let inner = root.join(&name).join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let daemon = Lent::with(&format!(
        "[[rule]]\nname = 'group'\ncgroup = '/{name}'\ndestination = ['127.0.7.2']\nnotsent_lowat = 40000\n"
    ));
    let outside = connect(v4(1), v4(2));
    std::fs::write(inner.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let inside = connect(v4(1), v4(2));
    std::fs::write(root.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let flow = daemon.flow(local(&inside.here));
    assert_eq!(flow["rule"], "group");
    assert_eq!(flow["cgroup"], format!("/{name}/inner"));
    assert!(daemon.flow_now(local(&outside.here)).is_none());
    drop((inside, outside));
    std::fs::remove_dir(&inner).unwrap();
    std::fs::remove_dir(root.join(name)).unwrap();
}

#[test]
fn live_flows_meet_a_new_policy_at_once() {
    let Some(_alone) = alone() else { return };
    let rule = |law: &str| {
        format!(
            "[[rule]]\nname = 'live'\ndestination = ['127.0.7.2']\ncongestion_control = {law}\n"
        )
    };
    let daemon =
        Lent::with("[[rule]]\nname = 'other'\ndestination = ['192.0.2.1']\nquickack = true\n");
    let pair = connect(v4(1), v4(2));
    assert!(daemon.flow_now(local(&pair.here)).is_none());
    assert!(daemon.apply(&rule("'reno'")).status.success());
    let flow = daemon.flow(local(&pair.here));
    assert_eq!(
        (&flow["law"], &flow["opened"]),
        (&json!("reno"), &json!("before_fatpath"))
    );
    assert!(
        daemon
            .apply(&rule("{ law = 'fp_aimd', a = 2, b = 0.5 }"))
            .status
            .success()
    );
    assert_eq!(daemon.flow(local(&pair.here))["law"], "fp_aimd");
    // The rule stays and gives no law any more.
    let lawless = "[[rule]]\nname = 'live'\ndestination = ['127.0.7.2']\nnotsent_lowat = 20000\n";
    assert!(daemon.apply(lawless).status.success());
    assert_ne!(daemon.flow(local(&pair.here))["law"], "fp_aimd");
    let again = daemon.apply(&rule("{ law = 'fp_aimd', a = 2, b = 0.5 }"));
    assert!(again.status.success());
    // The rule goes: so does the law that only it gave.
    assert!(
        daemon
            .apply("[[rule]]\nname = 'other'\ndestination = ['192.0.2.1']\nquickack = true\n")
            .status
            .success()
    );
    let flow = daemon.flow(local(&pair.here));
    assert_eq!(flow["rule"], Value::Null);
    assert_ne!(flow["law"], "fp_aimd");
}

/// Two ticks, of 1 to 10 ms; the kernel refuses less.
#[test]
fn a_timer_shorter_than_the_kernels_least_is_its_least() {
    let Some(_alone) = alone() else { return };
    let timers = "rto_min = '1ms'\ndelayed_ack_max = '1ms'\n";
    let daemon = Lent::with(&format!(
        "[[rule]]\nname = 'least'\ndestination = ['127.0.7.0/24']\n{timers}"
    ));
    let pair = connect(v4(1), v4(2));
    let flow = daemon.flow(local(&pair.here));
    for name in ["rto_min_us", "delayed_ack_max_us"] {
        let (wanted_us, has_us) = setting(&flow, name);
        assert_eq!(wanted_us, 1000);
        let has_us = has_us.as_u64().unwrap();
        assert!((2_000..=20_000).contains(&has_us), "{name}: {has_us}");
    }
}

#[test]
fn what_a_rule_no_longer_gives_goes_back_to_the_kernels_own() {
    let Some(_alone) = alone() else { return };
    let rule = |settings: &str| {
        format!("[[rule]]\nname = 'back'\ndestination = ['127.0.7.2']\n{settings}\n")
    };
    let given = "pacing_rate = '100mbit'\nrto_min = '40ms'\ndelayed_ack_max = '20ms'\nnotsent_lowat = 20000";
    let daemon = Lent::with(&rule(given));
    let pair = connect(v4(1), v4(2));
    let end = local(&pair.here);
    assert_eq!(setting(&daemon.flow(end), "rto_min_us").1, 40_000);
    assert!(daemon.apply(&rule("cwnd_clamp = 900")).status.success());
    assert!(
        daemon
            .apply(
                &rule(given)
                    .replace("100mbit", "34gbit")
                    .replace("20000", "1")
            )
            .status
            .success()
    );
    assert!(
        daemon
            .apply("[[rule]]\nname = 'other'\ndestination = ['192.0.2.1']\nquickack = true\n")
            .status
            .success()
    );
    // The next ACK makes the timer of the minimum: 200 ms and the round-trip time.
    std::io::Write::write_all(&mut &pair.here, b"x").unwrap();
    let filter = format!("src {end}");
    let info = until("the timer", || {
        let output = Command::new("ss")
            .args(["-Htni", &filter])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let rto = text
            .split(" rto:")
            .nth(1)?
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()?;
        (rto >= 200.0).then_some(text)
    });
    assert!(
        !info.contains("notsent_lowat") && !info.contains("34Gbps"),
        "{info}"
    );
}

#[test]
fn only_flows_of_the_daemons_cgroup_are_tuned_also_by_a_walk() {
    let Some(_alone) = alone() else { return };
    let group = cgroup_root().join(format!("fatpath-only-{}", std::process::id()));
    std::fs::create_dir_all(&group).unwrap();
    let outside = connect(v4(1), v4(2));
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let inside = connect(v4(1), v4(2));
    std::fs::write(
        cgroup_root().join("cgroup.procs"),
        std::process::id().to_string(),
    )
    .unwrap();
    let rule = "[[rule]]\nname = 'only'\ndestination = ['127.0.7.2']\nnotsent_lowat = 20000\n";
    let daemon = Daemon::start_for(&group, rule);
    assert_eq!(daemon.flow(local(&inside.here))["rule"], "only");
    assert!(daemon.flow_now(local(&outside.here)).is_none());
    drop((daemon, inside));
    std::fs::remove_dir(group).unwrap();
}
