// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings a topology up, and takes down all that it made. Forwards nothing by itself: see `forward`.

use std::collections::HashMap;
use std::io;
use std::panic::resume_unwind;
use std::thread;

use crate::control::Control;
use crate::error::ForwardError;
use crate::forward::{self, ForwardOptions};
use crate::link::Link;
use crate::namespace::{Namespace, NamespaceError, remove_namespace};
use crate::netlink::{Netlink, device_index};
use crate::stats::Stats;
use crate::topology::{End, HostSpec, LinkSpec, RouteSpec, Topology, TopologyError, WireSpec};
use crate::tun::Tun;

/// Transmit queue of a device, in packets. The TUN ring must never drop what TCP has in flight
/// before the emulated queue sees it: 10,000 packets are a bandwidth-delay product of 15 MB even
/// without offload, and 640 MB with it.
const TXQUEUELEN: u32 = 10_000;

/// For messages.
const OPENING: &str = "opening netlink";

/// A network that is up: namespaces, devices, addresses and routes. Dropping it takes all down.
#[derive(Debug)]
pub struct Network {
    // Before `hosts`, so that the TUN devices go before their namespaces; wires go with these.
    links: Vec<Link>,
    hosts: Vec<Host>,
}

/// A namespace that goes when this does.
#[derive(Debug)]
struct Host {
    name: String,
    namespace: Namespace,
}

/// Why a network did not come up. All that was made until then is gone again.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The description makes no sense.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A namespace could not be made or entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The TUN driver is missing.
    #[error(
        "/dev/net/tun is missing: `modprobe tun`; in a container, pass the device \
         (docker: --device /dev/net/tun --cap-add NET_ADMIN)"
    )]
    NoTun,
    /// The kernel refuses for want of a capability.
    #[error("link `{link}`: not permitted: run as root (CAP_NET_ADMIN)")]
    NotPermitted {
        /// The link.
        link: String,
    },
    /// A device could not be made or set up.
    #[error("link `{link}`, {doing} at host `{host}`: {error}")]
    Device {
        /// The link.
        link: String,
        /// The host at whose end it failed.
        host: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A host could not be set up.
    #[error("host `{host}`, {doing}: {error}")]
    Host {
        /// The host.
        host: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A route could not be set.
    #[error("host `{host}`: route to {to}: {error}")]
    Route {
        /// The host.
        host: String,
        /// Where the route leads.
        to: String,
        /// What the system said.
        error: io::Error,
    },
}

impl Network {
    /// Makes the namespaces, devices, addresses and routes of `topology`.
    pub fn up(topology: &Topology) -> Result<Network, UpError> {
        topology.check()?;
        let mut network = Network {
            links: vec![],
            hosts: vec![],
        };
        for host in &topology.hosts {
            network.hosts.push(Host::create(host)?);
        }
        for wire in &topology.wires {
            network.join(wire)?;
        }
        let mut tuns = HashMap::new();
        for (host, spec) in network.hosts.iter().zip(&topology.hosts) {
            tuns.extend(host.namespace.run(|| set_up(spec, topology))??);
        }
        // After all devices: a wire has no carrier until both of its ends are up.
        for (host, spec) in network.hosts.iter().zip(&topology.hosts) {
            host.namespace.run(|| add_routes(spec))??;
        }
        for (index, link) in topology.links.iter().enumerate() {
            let tun = |end| tuns.remove(&(index, end));
            network.links.push(Link {
                spec: link.clone(),
                tuns: [0, 1]
                    .map(tun)
                    .map(|tun| tun.expect("`Topology::check` found both hosts of each link")),
            });
        }
        Ok(network)
    }

    /// Makes the two devices of a wire, one in each host.
    fn join(&self, wire: &WireSpec) -> Result<(), UpError> {
        let [one, other] = wire.ends.each_ref();
        let other = self.namespace_of(&other.host);
        let made = self.namespace_of(&one.host).run(|| {
            let netlink = Netlink::open()?;
            netlink.add_veth(&wire.name, other.as_fd())
        })?;
        let doing = "making the veth pair (`modprobe veth`, if the kernel has it as a module)";
        made.map_err(|error| device_error(&wire.name, one, doing, error))
    }

    /// The namespace of a host, by the host's name in the topology.
    pub fn host(&self, name: &str) -> Option<&Namespace> {
        self.hosts
            .iter()
            .find(|host| host.name == name)
            .map(|host| &host.namespace)
    }

    /// Carries packets until `control` stops it; blocks the calling thread. Every call starts with
    /// fresh cells, as the topology has them.
    ///
    /// # Errors
    /// When it cannot begin; when it ends by itself, such as for a device that is gone: then with what
    /// it did, [`ForwardError::Ended`].
    pub fn forward(
        &self,
        options: ForwardOptions,
        control: &Control,
    ) -> Result<Stats, ForwardError> {
        let (mut stats, mut ended) = forward::run(&self.links, options, control)?;
        for (link, link_stats) in self.links.iter().zip(&mut stats.links) {
            for (end, direction) in link.spec.ends.iter().zip(&mut link_stats.directions) {
                match self.missed_packets(&link.spec, end) {
                    Ok(missed_packets) => direction.missed_packets = missed_packets,
                    Err(error) => ended = ended.and(Err(error)),
                }
            }
        }
        match ended {
            Ok(()) => Ok(stats),
            Err(cause) => Err(ForwardError::Ended {
                cause: Box::new(cause),
                stats: Box::new(stats),
            }),
        }
    }

    /// Carries packets while `work` runs on the calling thread, until it has ended.
    ///
    /// # Errors
    /// Those of [`Network::forward`]; `work` runs to its end all the same.
    pub fn forward_while<T>(
        &self,
        options: ForwardOptions,
        work: impl FnOnce(&Control) -> T,
    ) -> Result<(T, Stats), ForwardError> {
        let control = Control::new().map_err(ForwardError::Wait)?;
        thread::scope(|scope| {
            let forwarder = scope.spawn(|| self.forward(options, &control));
            let done = {
                let _stop = StopAtEnd(&control);
                work(&control)
            };
            let stats = forwarder
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic));
            Ok((done, stats?))
        })
    }

    /// What the device at one end of a link dropped on its way to the forwarder.
    fn missed_packets(&self, link: &LinkSpec, end: &End) -> Result<u64, ForwardError> {
        let dropped = self
            .namespace_of(&end.host)
            .run(|| transmit_drops(&link.name));
        let dropped = dropped
            .map_err(io::Error::other)
            .and_then(|dropped| dropped);
        dropped.map_err(|error| ForwardError::device(link, end, error))
    }

    fn namespace_of(&self, host: &str) -> &Namespace {
        self.host(host)
            .expect("`Topology::check` found every host that a link names")
    }
}

/// Stops the forwarder, also when the work during which it runs panics: its scope waits for it.
struct StopAtEnd<'a>(&'a Control);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Drop for Network {
    /// Closes the devices side by side: each waits for the kernel to be done with it, some 20 ms.
    fn drop(&mut self) {
        const THREADS: usize = 16;
        let share = self.links.len().div_ceil(THREADS).max(1);
        thread::scope(|scope| {
            while !self.links.is_empty() {
                let links: Vec<_> = self.links.drain(..share.min(self.links.len())).collect();
                scope.spawn(|| drop(links));
            }
        });
    }
}

impl Host {
    fn create(spec: &HostSpec) -> Result<Host, UpError> {
        Ok(Host {
            name: spec.name.clone(),
            namespace: Namespace::create(&spec.netns)?,
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A name that someone else removed meanwhile, or reused, is not ours to complain about.
        let _ = remove_namespace(self.namespace.name());
    }
}

/// A link, and which of its ends, by their indices.
type Place = (usize, usize);

/// Inside a host: makes its devices for links, and sets those of wires up. Returns the devices for links.
fn set_up(host: &HostSpec, topology: &Topology) -> Result<Vec<(Place, Tun)>, UpError> {
    if host.forwarding {
        forward_for_others().map_err(host_error(host, "setting forwarding sysctls"))?;
    }
    let netlink = Netlink::open().map_err(host_error(host, OPENING))?;
    let mut tuns = vec![];
    for (index, link) in topology.links.iter().enumerate() {
        for (number, end) in link.ends.iter().enumerate() {
            if end.host == host.name {
                tuns.push(((index, number), attach(&netlink, link, end)?));
            }
        }
    }
    for wire in &topology.wires {
        for end in wire.ends.iter().filter(|end| end.host == host.name) {
            configure(&netlink, &wire.name, wire.mtu, end)?;
        }
    }
    Ok(tuns)
}

/// Inside a host whose devices are up.
fn add_routes(host: &HostSpec) -> Result<(), UpError> {
    let netlink = Netlink::open().map_err(host_error(host, OPENING))?;
    let mut routes = host.routes.iter();
    routes.try_for_each(|route| add_route(&netlink, host, route))
}

/// Devices that are there take it over, and those that come later.
fn forward_for_others() -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    match std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// Makes the device of one end of a link, up and with its addresses.
fn attach(netlink: &Netlink, link: &LinkSpec, end: &End) -> Result<Tun, UpError> {
    let tun = Tun::open(&link.name).map_err(|error| tun_error(link, end, error))?;
    let prepared = device_index(&link.name).and_then(|index| netlink.prepare(index, TXQUEUELEN));
    prepared.map_err(|error| device_error(&link.name, end, "setting its queue", error))?;
    configure(netlink, &link.name, link.mtu, end)?;
    Ok(tun)
}

/// Sets a device up, with the addresses of this end.
fn configure(netlink: &Netlink, device: &str, mtu: u32, end: &End) -> Result<(), UpError> {
    let failed = |doing| move |error| device_error(device, end, doing, error);
    quieten(device, end).map_err(failed("setting IPv6 sysctls"))?;
    let index = device_index(device).map_err(failed("finding the device"))?;
    netlink
        .set_up(index, mtu)
        .map_err(failed("setting the device up"))?;
    for address in end.addresses() {
        netlink
            .add_address(index, address)
            .map_err(failed("adding an address"))?;
    }
    Ok(())
}

/// Keeps packets that no program sent off the path: without IPv6 addresses there is no IPv6, and
/// with some there is no link-local address in addition, so no router solicitation.
fn quieten(device: &str, end: &End) -> io::Result<()> {
    let sysctl = if end.ipv6.is_some() {
        "addr_gen_mode"
    } else {
        "disable_ipv6"
    };
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/{sysctl}"), "1") {
        // A kernel without IPv6 has none to silence.
        Err(error) if end.ipv6.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

/// Packets that a device in the namespace of the calling thread did not transmit.
fn transmit_drops(device: &str) -> io::Result<u64> {
    /// `drop` is the fourth of the eight counters of each direction.
    const TRANSMIT_DROP: usize = 8 + 3;
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let row = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'));
    let drops = row.and_then(|row| row.split_whitespace().nth(TRANSMIT_DROP)?.parse().ok());
    drops.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in /proc/net/dev"))
}

fn add_route(netlink: &Netlink, host: &HostSpec, route: &RouteSpec) -> Result<(), UpError> {
    netlink.add_route(route).map_err(|error| UpError::Route {
        host: host.name.clone(),
        to: route.to.to_string(),
        error,
    })
}

fn tun_error(link: &LinkSpec, end: &End, error: io::Error) -> UpError {
    match error.kind() {
        io::ErrorKind::NotFound => UpError::NoTun,
        io::ErrorKind::PermissionDenied => UpError::NotPermitted {
            link: link.name.clone(),
        },
        _ => device_error(&link.name, end, "making the TUN device", error),
    }
}

fn host_error(host: &HostSpec, doing: &'static str) -> impl Fn(io::Error) -> UpError {
    move |error| UpError::Host {
        host: host.name.clone(),
        doing,
        error,
    }
}

fn device_error(link: &str, end: &End, doing: &'static str, error: io::Error) -> UpError {
    UpError::Device {
        link: link.to_owned(),
        host: end.host.clone(),
        doing,
        error,
    }
}
