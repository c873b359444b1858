// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of a case, each with its way and its ends, as the flows of a simulation.
//!
//! Pure. Start with [`Mapping::simulation`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use fatpath_policy::Policy;
use fatpath_scenario::plan::{Family, Plan};
use fatpath_scenario::routes::Map;
use fatpath_scenario::{Case, Experiment, Flow, RoundTrip, Source, Transport, transport};
use fatpath_sim::{ChangeSpec, FlowSpec, LinkSpec, SharedRate, Spec, TcpSpec};

use super::ends::{Ends, Names};
use super::host::HostTcp;
use super::mapped::{MapError, Mapped};
use super::source::source;

/// The first port that the kernel gives to who opens a connection: `ip_local_port_range`.
const FIRST_CLIENT_PORT: u16 = 32_768;
/// Samples of a flow, and of all flows of a run together, where the scenario gives no interval.
const SAMPLES_OF_A_FLOW: u64 = 1_000;
const SAMPLES_OF_A_RUN: u64 = 200_000;
const LEAST_SAMPLES: u64 = 10;
const LEAST_INTERVAL_NS: u64 = 1_000_000;
/// Linux gives up on a SYN that was sent seven times, after 1 + 2 + 4 + ... + 64 s (`tcp_syn_retries`).
const OPENING_NS: u64 = 127_000_000_000;

/// A case that is being mapped.
pub(super) struct Mapping<'m> {
    pub(super) case: &'m Case,
    pub(super) plan: &'m Plan,
    pub(super) policy: Option<&'m Policy>,
    pub(super) map: Map,
    pub(super) flows: Vec<Flow>,
    pub(super) hosts: HashMap<&'m str, HostTcp>,
}

impl Mapping<'_> {
    pub(super) fn simulation(self, experiment: &Experiment, seed: u64) -> Result<Mapped, MapError> {
        let hosts = self.plan.hosts.len();
        let mut spec = Spec {
            hosts,
            links: self.links(),
            routes: vec![vec![None; hosts]; hosts],
            changes: self.changes(),
            seed,
            ..Spec::default()
        };
        let (mut first_streams, mut rtt_ns) = (vec![], vec![]);
        let mut sharing = Sharing::default();
        for flow in &self.flows {
            let way = self.way(flow, &mut spec)?;
            first_streams.push(spec.flows.len());
            rtt_ns.push(way.rtt_ns);
            for stream in 0..flow.streams {
                let connection = spec.flows.len();
                let one = self.flow(flow, &way, stream, connection, &mut sharing)?;
                spec.flows.push(one);
            }
        }
        spec.end_ns = self.end_ns(&rtt_ns, 0);
        spec.sample_every_ns = Some(sample_every_ns(&spec, experiment));
        spec.end_ns = self.end_ns(&rtt_ns, OPENING_NS);
        Ok(Mapped {
            spec,
            flows: self.flows,
            first_streams,
            rtt_ns,
        })
    }

    fn links(&self) -> Vec<LinkSpec> {
        let links = self.plan.links.iter();
        let link = links.map(|link| LinkSpec {
            between: link.between.each_ref().map(|host| self.host(host)),
            mtu_bytes: link.mtu_bytes.into(),
            directions: link.directions.clone(),
        });
        link.collect()
    }

    fn changes(&self) -> Vec<ChangeSpec> {
        let changes = self.plan.changes(&self.case.changes).into_iter();
        let links = &self.plan.links;
        let change = changes.filter_map(|change| {
            Some(ChangeSpec {
                at_ns: nanos(change.at),
                link: links.iter().position(|link| link.name == change.link)?,
                directions: change.directions,
            })
        });
        change.collect()
    }

    /// A host of the case by its number; every name of a link or a flow is one.
    fn host(&self, name: &str) -> usize {
        self.map.host(name).unwrap_or_default()
    }

    /// The links of a flow there and back, which become routes.
    fn way(&self, flow: &Flow, spec: &mut Spec) -> Result<Way, MapError> {
        let (from, to) = (self.host(&flow.from), self.host(&flow.to));
        let mut cuts_segments = false;
        let no_way = || MapError::Line {
            line: flow.line,
            why: format!("no route leads from {} to {}", flow.from, flow.to),
        };
        for (here, there) in [(from, to), (to, from)] {
            let path = self.map.path(here, there).ok_or_else(no_way)?;
            let mut at = here;
            for (link, end) in path {
                spec.routes[at][there].get_or_insert((link, end));
                cuts_segments |= here == from && self.plan.links[link].exact;
                at = spec.links[link].between[1 - end];
            }
        }
        let round = self.plan.round_trip(&flow.from, &flow.to);
        let RoundTrip { rtt_ns, mtu_bytes } = round.ok_or_else(no_way)?;
        Ok(Way {
            from,
            to,
            rtt_ns,
            mtu_bytes,
            cuts_segments,
        })
    }

    fn flow(
        &self,
        flow: &Flow,
        way: &Way,
        stream: u32,
        connection: usize,
        sharing: &mut Sharing,
    ) -> Result<FlowSpec, MapError> {
        let start_ns = nanos(flow.start);
        let (tcp, shared_rate) = match flow.source {
            Source::ConstantRate { payload_bytes, .. } => {
                check_fits(flow, payload_bytes, way)?;
                Default::default()
            }
            _ if flow.transport == Transport::Udp => (transported(flow, way)?, None),
            _ => self.ends(flow, way, stream, connection, sharing)?,
        };
        Ok(FlowSpec {
            from: way.from,
            to: way.to,
            start_ns,
            stop_ns: None,
            lasts_ns: flow.lasts.map(nanos),
            source: source(&flow.source),
            tcp,
            shared_rate,
            may_be_fragmented: flow.may_be_fragmented(),
        })
    }

    fn ends(
        &self,
        flow: &Flow,
        way: &Way,
        stream: u32,
        connection: usize,
        sharing: &mut Sharing,
    ) -> Result<(TcpSpec, Option<SharedRate>), MapError> {
        let ends = Ends {
            flow,
            sender: &self.hosts[flow.from.as_str()],
            receiver: &self.hosts[flow.to.as_str()],
            policy: self.policy,
            names: &self.names(flow, stream, connection),
            path_mtu_bytes: way.mtu_bytes,
            cuts_segments: way.cuts_segments,
            connections: self.flows.iter().map(|flow| u64::from(flow.streams)).sum(),
        };
        let tcp = ends.spec().map_err(|why| MapError::Case {
            flow: flow.label.clone(),
            why,
        })?;
        let shared = ends.shared_rate();
        let shared_rate = shared.map(|(rule, bps)| sharing.rate(way.from, rule, bps));
        Ok((tcp, shared_rate))
    }

    fn names(&self, flow: &Flow, stream: u32, connection: usize) -> Names {
        let family = match flow.ipv6 {
            true => Family::Ipv6,
            false => Family::Ipv4,
        };
        let address = |of: &str, from: &str| {
            let text = self.plan.address(of, from, family).unwrap_or_default();
            text.parse::<IpAddr>().unwrap_or(IpAddr::from([0; 4]))
        };
        let (asked, listening) = flow.ports;
        let asked = asked.map(|port| port.wrapping_add(stream as u16));
        let own = asked.unwrap_or(FIRST_CLIENT_PORT.wrapping_add((connection % 28_000) as u16));
        let [sender_port, receiver_port] = match flow.opened_by_receiver {
            true => [listening, own],
            false => [own, listening],
        };
        Names {
            sender: (address(&flow.from, &flow.to), sender_port),
            receiver: (address(&flow.to, &flow.from), receiver_port),
            cgroup: format!("/fatpath-lab-{}", self.plan.lab),
        }
    }

    /// When the last flow stops, or has failed, if each connection opens `late_ns` too late.
    fn end_ns(&self, rtt_ns: &[u64], late_ns: u64) -> u64 {
        let ends = self.flows.iter().zip(rtt_ns).map(|(flow, rtt_ns)| {
            let lasts_ns = match flow.lasts {
                Some(lasts) => nanos(lasts).saturating_add(late_ns),
                None => nanos(flow.time_limit),
            };
            nanos(flow.start)
                .saturating_add(handshake_ns(flow, *rtt_ns))
                .saturating_add(lasts_ns)
        });
        ends.max().unwrap_or(0)
    }
}

/// The flows of one host and one rule share a rate: such groups by their number.
#[derive(Default)]
struct Sharing(Vec<(usize, String)>);

impl Sharing {
    fn rate(&mut self, host: usize, rule: &str, bps: u64) -> SharedRate {
        let is_it = |(of_host, of_rule): &(usize, String)| *of_host == host && of_rule == rule;
        let group = self.0.iter().position(is_it).unwrap_or_else(|| {
            self.0.push((host, rule.to_owned()));
            self.0.len() - 1
        });
        SharedRate { bps, group }
    }
}

/// What a flow's packets pass.
struct Way {
    from: usize,
    to: usize,
    rtt_ns: u64,
    mtu_bytes: u32,
    cuts_segments: bool,
}

/// The ends of the transport, which knows neither the hosts' sysctls nor policies.
fn transported(flow: &Flow, way: &Way) -> Result<TcpSpec, MapError> {
    let spec = transport::spec(&flow.requests, flow.most_datagram_bytes(way.mtu_bytes));
    let spec = spec.map_err(|why| MapError::Line {
        line: flow.line,
        why,
    })?;
    Ok(transport::simulated(&spec, flow.network_bytes()))
}

/// The simulator has the fragments of IPv4 alone.
fn check_fits(flow: &Flow, payload_bytes: u32, way: &Way) -> Result<(), MapError> {
    let most_bytes = u32::from(flow.most_datagram_bytes(way.mtu_bytes));
    if !flow.ipv6 || payload_bytes <= most_bytes {
        return Ok(());
    }
    let why = format!(
        "packets longer than the MTU of {} bytes from {} to {} over IPv6: the simulator fragments those of IPv4 alone; \
         {most_bytes} bytes of payload fit",
        way.mtu_bytes, flow.from, flow.to
    );
    Err(MapError::Line {
        line: flow.line,
        why,
    })
}

/// Before data flow; a datagram needs no connection.
pub(crate) fn handshake_ns(flow: &Flow, rtt_ns: u64) -> u64 {
    match flow.is_udp() {
        true => 0,
        false => rtt_ns,
    }
}

fn sample_every_ns(spec: &Spec, experiment: &Experiment) -> u64 {
    let of_a_flow = SAMPLES_OF_A_RUN / spec.flows.len().max(1) as u64;
    let count = of_a_flow.clamp(LEAST_SAMPLES, SAMPLES_OF_A_FLOW);
    let asked = experiment.sample_every.map(nanos);
    asked.unwrap_or((spec.end_ns / count).max(LEAST_INTERVAL_NS))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
