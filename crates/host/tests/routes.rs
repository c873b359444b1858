// SPDX-License-Identifier: MIT OR Apache-2.0
//! Route metrics beside a routing daemon, in a network namespace: what it changes, and by what kind of routes.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use fatpath_host::{Host, PutBack, may_concern_routes};
use fatpath_netlink::{Notification, Notifications};
use fatpath_policy::{Classifier, RouteMetrics, parse, routes};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// RTM_NEWROUTE and RTM_DELROUTE of linux/rtnetlink.h.
const NEW_ROUTE: u16 = 24;
const DEL_ROUTE: u16 = 25;

/// A namespace with one wire, and what fatpath keeps of it; removed when it is dropped.
struct Router {
    name: String,
    run_dir: tempfile::TempDir,
}

impl Router {
    fn make(name: &str) -> Option<Router> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root, who alone may make a namespace");
            return None;
        }
        let name = format!("fpt-{name}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        assert!(made.unwrap().status.success());
        let run_dir = tempfile::tempdir().unwrap();
        let router = Router { name, run_dir };
        router.ip("link add v0 type veth peer name v1");
        router.up(["v0", "v1"]);
        router.ip("addr add 10.0.0.1/24 dev v0");
        router.ip("addr add fd00::1/64 dev v0 nodad");
        Some(router)
    }

    /// Until no notification of it is to come.
    fn up(&self, pair: [&str; 2]) {
        for device in pair {
            self.ip(&format!("link set {device} addrgenmode none up"));
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while pair
            .iter()
            .any(|d| !self.ip(&format!("link show {d}")).contains("state UP"))
        {
            assert!(Instant::now() < deadline, "the wire does not come up");
        }
    }

    fn try_ip(&self, arguments: &str) -> Output {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.name]).args(arguments.split(' '));
        ip.output().unwrap()
    }

    fn ip(&self, arguments: &str) -> String {
        let output = self.try_ip(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Each route of both families, sorted.
    fn table(&self) -> Vec<String> {
        let both = self.ip("-4 route show") + &self.ip("-6 route show");
        let mut lines: Vec<String> = both.lines().map(|line| line.trim().to_owned()).collect();
        lines.sort();
        lines
    }

    /// The routes to a prefix.
    fn to(&self, prefix: &str) -> String {
        let all = self.table();
        let of = all
            .iter()
            .filter(|line| line.split(' ').next() == Some(prefix));
        of.cloned().collect::<Vec<_>>().join("\n")
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name)).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                work()
            });
            thread.join().unwrap()
        })
    }

    fn host(&self) -> Host {
        Host::open(self.run_dir.path()).unwrap()
    }

    fn set(&self, wanted: &[RouteMetrics]) -> Vec<String> {
        self.within(|| self.host().set_routes(wanted).unwrap())
    }

    fn put_back(&self) -> Vec<PutBack> {
        self.within(|| self.host().put_back().unwrap())
    }

    fn notifications(&self) -> Notifications {
        self.within(|| Notifications::of_routes().unwrap())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .output();
    }
}

/// `reordering = 19` for these destinations.
fn wanted(destinations: &[&str]) -> Vec<RouteMetrics> {
    let text = format!("[[rule]]\nname = 'r'\ndestination = {destinations:?}\nreordering = 19\n");
    let policy = parse(&text, None).unwrap();
    routes(&policy, &Classifier::build(&policy))
}

/// How many routes came and how many went: what a request notifies of is there when the request has returned.
fn came_and_went(notifications: &Notifications) -> (usize, usize) {
    let all = notifications.received().unwrap();
    let of = |wanted: u16| {
        let is =
            |n: &&Notification| matches!(n, Notification::Message { kind, .. } if *kind == wanted);
        all.iter().filter(is).count()
    };
    (of(NEW_ROUTE), of(DEL_ROUTE))
}

#[test]
fn a_route_by_a_nexthop_object_gets_metrics_and_keeps_its_object() {
    let Some(router) = Router::make("nhid") else {
        return;
    };
    for command in [
        "nexthop add id 7 via 10.0.0.2 dev v0",
        "nexthop add id 8 via fd00::2 dev v0",
        "nexthop add id 9 via 10.0.0.3 dev v0",
        "nexthop add id 10 group 7/9",
        "route add 198.51.100.0/24 nhid 7 proto bgp",
        "route add 198.51.101.0/24 nhid 10",
        "route add default nhid 9",
        "-6 route add 2001:db8:1::/48 nhid 8",
    ] {
        router.ip(command);
    }
    let before = router.table();
    // The last but one has no route of its own.
    let prefixes = [
        "198.51.100.0/24",
        "198.51.101.0/24",
        "192.0.2.0/24",
        "2001:db8:1::/48",
    ];
    let said = router.set(&wanted(&prefixes));
    assert_eq!(said.len(), 4, "{said:?}");
    for (prefix, nexthop) in prefixes
        .iter()
        .zip(["nhid 7", "nhid 10", "nhid 9", "nhid 8"])
    {
        let route = router.to(prefix);
        assert!(
            route.contains(nexthop) && route.contains("reordering 19"),
            "{route}"
        );
    }
    assert!(router.to("198.51.100.0/24").contains("proto bgp"));
    assert_eq!(
        router.set(&wanted(&prefixes)),
        [""; 0],
        "nothing is done twice"
    );
    // The routes follow their object without fatpath.
    router.ip("nexthop replace id 9 via 10.0.0.4 dev v0");
    assert!(router.to("192.0.2.0/24").contains("via 10.0.0.4"));
    router.ip("nexthop replace id 9 via 10.0.0.3 dev v0");
    let undone = router.put_back();
    assert!(
        undone.iter().all(|u| matches!(u, PutBack::Restored(_))),
        "{undone:?}"
    );
    assert_eq!(router.table(), before);
}

#[test]
fn a_route_that_refuses_keeps_no_other_from_its_metrics() {
    let Some(router) = Router::make("refuse") else {
        return;
    };
    router.ip("addr add 10.9.0.1/24 dev v0");
    router.ip("route add 198.51.100.0/24 via 10.9.0.7");
    router.ip("route add 203.0.113.0/24 via 10.0.0.2");
    // The kernel accepts no gateway to which no route leads.
    router.ip("route del 10.9.0.0/24");
    let wanted = wanted(&["198.51.100.0/24", "203.0.113.0/24"]);
    let mut host = router.host();
    let said = router.within(|| host.set_routes(&wanted).unwrap());
    assert!(
        said.iter().any(|what| what.contains("198.51.100.0/24: ")),
        "{said:?}"
    );
    assert!(router.to("203.0.113.0/24").contains("reordering 19"));
    assert_eq!(host.changes().len(), 1, "what was refused is no change");
    let again = router.within(|| host.follow_routes(&wanted).unwrap());
    assert_eq!(again, [""; 0], "the refusal is mentioned once");
}

#[test]
fn what_others_change_elsewhere_touches_none_of_our_routes() {
    let Some(router) = Router::make("elsewhere") else {
        return;
    };
    router.ip("route add default via 10.0.0.2");
    router.ip("route add 198.51.100.0/24 via 10.0.0.2");
    let wanted = wanted(&["198.51.100.0/24", "192.0.2.0/24"]);
    router.set(&wanted);
    let table = router.table();
    router.ip("route add 100.64.0.0/16 via 10.0.0.3");
    let seen = router.notifications();
    assert_eq!(router.set(&wanted), [""; 0]);
    assert_eq!(came_and_went(&seen), (0, 0));
    router.ip("route del 100.64.0.0/16");
    assert_eq!(router.table(), table);
}

/// The new route takes the old one's place; between the two there is always one.
#[test]
fn a_copy_follows_its_gateway_without_a_gap() {
    let Some(router) = Router::make("gap") else {
        return;
    };
    router.ip("route add default via 10.0.0.2");
    router.ip("-6 route add default via fd00::2");
    let both = wanted(&["192.0.2.0/24", "2001:db8::/32"]);
    router.set(&both);
    router.ip("route replace default via 10.0.0.3");
    router.ip("-6 route replace default via fd00::3");
    let seen = router.notifications();
    router.set(&both);
    assert_eq!(came_and_went(&seen), (2, 0));
    assert!(router.to("192.0.2.0/24").contains("via 10.0.0.3"));
    assert!(router.to("2001:db8::/32").contains("via fd00::3"));
    // One that the kernel takes before the other (a metric of less) is not in its place.
    router.ip("route add default via 10.0.0.4 metric 5");
    router.ip("route del default metric 0");
    router.set(&both);
    let copy = router.to("192.0.2.0/24");
    assert!(
        copy.contains("via 10.0.0.4") && copy.lines().count() == 1,
        "{copy}"
    );
    router.set(&[]);
    assert_eq!(router.to("192.0.2.0/24"), "");
    assert!(router.host().changes().is_empty());
}

#[test]
fn a_changed_metric_replaces_the_route() {
    let Some(router) = Router::make("metric") else {
        return;
    };
    router.ip("route add 198.51.100.0/24 via 10.0.0.2");
    let before = router.table();
    router.set(&wanted(&["198.51.100.0/24"]));
    let mut other = wanted(&["198.51.100.0/24"]);
    other[0].quickack = true;
    let seen = router.notifications();
    router.set(&other);
    assert_eq!(came_and_went(&seen), (1, 0));
    assert!(router.to("198.51.100.0/24").contains("quickack 1"));
    router.set(&[]);
    assert_eq!(came_and_went(&seen), (1, 0));
    assert_eq!(router.table(), before);
}

#[test]
fn gateways_on_link_and_nexthops_that_are_down_keep_their_routes() {
    let Some(router) = Router::make("down") else {
        return;
    };
    router.ip("link add w0 type veth peer name w1");
    router.up(["w0", "w1"]);
    router.ip("addr add 10.1.0.1/24 dev w0");
    router.ip("route add 198.51.100.0/24 nexthop via 10.0.0.2 dev v0 nexthop via 10.1.0.2 dev w0");
    router.ip("route add 198.51.101.0/24 via 10.66.0.1 dev v0 onlink");
    router.ip("link set w1 down");
    let wanted = wanted(&["198.51.100.0/24", "198.51.101.0/24"]);
    let said = router.set(&wanted);
    assert!(
        said.iter().all(|what| what.ends_with("given metrics")),
        "{said:?}"
    );
    let shown = router.ip("route show");
    assert_eq!(shown.matches("reordering 19").count(), 2, "{shown}");
    assert!(router.to("198.51.101.0/24").contains("onlink"), "{shown}");
    router.ip("link set w1 up");
    assert_eq!(
        router.set(&wanted),
        [""; 0],
        "a link that comes back changes no route"
    );
}

/// Two routes with one destination, TOS and metric: the kernel would replace the first, whichever is meant.
#[test]
fn routes_that_cannot_be_told_apart_are_left_alone() {
    let Some(router) = Router::make("twice") else {
        return;
    };
    router.ip("route add 198.51.100.0/24 via 10.0.0.2");
    router.ip("route append 198.51.100.0/24 via 10.0.0.3");
    let before = router.table();
    router.set(&wanted(&["198.51.100.0/24"]));
    assert_eq!(router.table(), before);
}

#[test]
fn only_notifications_that_may_concern_the_metrics_do() {
    let Some(router) = Router::make("concern") else {
        return;
    };
    let wanted = wanted(&["198.51.100.0/24"]);
    let seen = router.notifications();
    // The wire may still report its state.
    let is_its = |command: &str, notification: &Notification| {
        let is_of_route = matches!(notification, Notification::Message { kind, .. } if [NEW_ROUTE, DEL_ROUTE].contains(kind));
        is_of_route || !command.contains("route")
    };
    let concern = |command: &str| {
        router.ip(command);
        let mut all = seen.received().unwrap();
        all.retain(|notification| is_its(command, notification));
        assert!(!all.is_empty(), "{command}");
        may_concern_routes(&all, &wanted)
    };
    for (command, expected) in [
        ("route add 203.0.113.0/24 via 10.0.0.2", false),
        ("route add 198.51.100.0/25 via 10.0.0.2", true),
        ("route add 198.51.100.0/25 via 10.0.0.2 table 7", false),
        ("route add default via 10.0.0.2", true),
        ("-6 route add default via fd00::2", false),
        ("nexthop add id 7 via 10.0.0.2 dev v0", true),
        ("link set v1 down", true),
    ] {
        assert_eq!(concern(command), expected, "{command}");
    }
    assert!(may_concern_routes(&[Notification::Lost], &wanted));
    assert!(!may_concern_routes(&[Notification::Lost], &[]));
}
