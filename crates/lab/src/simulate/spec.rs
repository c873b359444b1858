// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case of a scenario as a simulation: the same links with the same random numbers, the same ways, the
//! flows that its programs make.
//!
//! Pure but for the policy file. Start with [`Mapped::of`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use fatpath_link::CellSpec;
use fatpath_policy::Policy;
use fatpath_sim::{ChangeSpec, FlowSpec, LinkSpec, Source, Spec, SpecError};
use thiserror::Error;

use super::command::{self, Client, Iperf3};
use super::ends::{Ends, Names};
use super::host::HostTcp;
use crate::plan::{Family, Plan};
use crate::routes::Map;
use crate::scenario::{Case, Experiment, Flow, Program, mixed};

/// The first port that the kernel gives to who opens a connection: `ip_local_port_range`.
const FIRST_CLIENT_PORT: u16 = 32_768;
/// Headers of IPv4 and UDP, as the simulator counts them.
const UDP_HEADER_BYTES: u32 = 28;
/// Samples of a flow, and of all flows of a run together, where the scenario gives no interval.
const SAMPLES_OF_A_FLOW: u64 = 1_000;
const SAMPLES_OF_A_RUN: u64 = 200_000;
const LEAST_SAMPLES: u64 = 10;
const LEAST_INTERVAL_NS: u64 = 1_000_000;
/// Linux gives up on a SYN that was sent seven times, after 1 + 2 + 4 + ... + 64 s (`tcp_syn_retries`).
const OPENING_NS: u64 = 127_000_000_000;

/// Why a case cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// What the file asks for is nothing that the simulator does: no case of it would be right.
    #[error("line {line}: {why}")]
    Line {
        /// Where the file asks for it.
        line: usize,
        /// What, in words.
        why: String,
    },
    /// A link, likewise.
    #[error("link {link}: {why}")]
    Link {
        /// Which.
        link: String,
        /// What, in words.
        why: String,
    },
    /// Anything that has no place in the file.
    #[error("{0}")]
    Whole(String),
    /// A host's settings, likewise.
    #[error("host {host}: {why}")]
    Host {
        /// Which.
        host: String,
        /// What, in words.
        why: String,
    },
    /// There is nothing to send.
    #[error(
        "the scenario sends nothing; write a [[flow]], or a [[program]] that is an iperf3 client"
    )]
    NoFlow,
    /// This case alone cannot be simulated; others of the scenario may.
    #[error("{flow}: {why}")]
    Case {
        /// The flow.
        flow: String,
        /// What, in words.
        why: String,
    },
    /// The policy is none.
    #[error("{file}: {why}")]
    Policy {
        /// Its file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A case as a simulation, and how its results belong to the case's flows.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) spec: Spec,
    /// The flows of the programs, then those of the file.
    pub(crate) flows: Vec<Flow>,
    /// Of each flow, where its first stream stands in the simulation.
    pub(crate) first_streams: Vec<usize>,
    /// Of each flow, the constant delays there and back.
    pub(crate) rtt_ns: Vec<u64>,
}

/// What decides the random numbers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Randomness {
    /// From 1.
    pub(crate) repeat: u32,
    /// Other ones than the scenario's.
    pub(crate) seed: Option<u64>,
}

impl Randomness {
    fn of_plan(self, plan: Plan) -> Plan {
        let plan = plan.of_run(self.repeat.saturating_sub(1));
        match self.seed {
            None => plan,
            Some(seed) => plan.of_seed(seed),
        }
    }

    fn of_sources(self) -> u64 {
        mixed(u64::from(self.repeat) ^ mixed(self.seed.unwrap_or(0)))
    }
}

impl Mapped {
    /// The simulation of a run of a case. `plan` is that of the lab; `policy` what its file says.
    ///
    /// # Errors
    /// See [`MapError`].
    pub(crate) fn of(
        case: &Case,
        plan: &Plan,
        policy: Option<&Policy>,
        experiment: &Experiment,
        random: Randomness,
    ) -> Result<Mapped, MapError> {
        let plan = &random.of_plan(plan.clone());
        let mapping = Mapping {
            case,
            plan,
            policy,
            map: Map::of(&plan.hosts, &plan.links),
            flows: flows(case, plan)?,
            hosts: hosts(plan)?,
        };
        let mapped = mapping.simulation(experiment, random.of_sources())?;
        let checked = mapped.spec.check();
        checked.map_err(|error| mapped.refused(error, plan, experiment))?;
        Ok(mapped)
    }

    /// What the simulator refuses, in the file's terms.
    fn refused(&self, error: SpecError, plan: &Plan, experiment: &Experiment) -> MapError {
        let why = error.to_string();
        match error {
            SpecError::Flow { flow, problem } => MapError::Line {
                line: self.flow_of_stream(flow).line,
                why: problem.to_string(),
            },
            SpecError::Link { link, problem } => MapError::Link {
                link: plan.links[link].name.clone(),
                why: problem,
            },
            SpecError::Samples => match experiment.sample_every_line {
                Some(line) => MapError::Line { line, why },
                None => MapError::Whole(why),
            },
            SpecError::Whole(_) => MapError::Whole(why),
        }
    }

    fn flow_of_stream(&self, stream: usize) -> &Flow {
        let after = self.first_streams.partition_point(|first| *first <= stream);
        &self.flows[after.saturating_sub(1)]
    }
}

/// The flows of a case: those that its programs make, then its own.
///
/// # Errors
/// For a program that is no iperf3, or one that asks for what is not simulated.
pub(crate) fn flows(case: &Case, plan: &Plan) -> Result<Vec<Flow>, MapError> {
    let (mut flows, mut servers) = (vec![], vec![]);
    for (index, program) in case.programs.iter().enumerate() {
        let at = |why| MapError::Line {
            line: program.line,
            why,
        };
        let words = plan.words(program).map_err(|error| at(error.to_string()))?;
        match command::iperf3(&words).map_err(at)? {
            Iperf3::Server(port) => servers.push((&program.host, port)),
            Iperf3::Client(client) => {
                let flow = of_client(*client, index, program, plan, &servers).map_err(at)?;
                flows.push(flow);
            }
        }
    }
    flows.extend(case.flows.iter().cloned());
    match flows.is_empty() {
        true => Err(MapError::NoFlow),
        false => Ok(flows),
    }
}

fn of_client(
    client: Client,
    index: usize,
    program: &Program,
    plan: &Plan,
    servers: &[(&String, u16)],
) -> Result<Flow, String> {
    let own = &program.host;
    let peer = plan
        .host_of(&client.server)
        .ok_or_else(|| format!("{}: is the address of no host", client.server))?;
    if peer == own {
        return Err("the simulator has no flows within a host".to_owned());
    }
    if !servers
        .iter()
        .any(|(host, port)| *host == peer && *port == client.port)
    {
        let port = client.port;
        return Err(format!(
            "no iperf3 before it listens on port {port} of {peer}"
        ));
    }
    let [from, to] = match client.reverse {
        true => [peer, own],
        false => [own, peer],
    };
    Ok(Flow {
        label: format!("{}-{own}-iperf3", index + 1),
        from: from.clone(),
        to: to.clone(),
        opened_by_receiver: client.reverse,
        ipv6: client.server.contains(':'),
        ports: (client.client_port, client.port),
        streams: client.streams,
        start: Duration::ZERO,
        lasts: client.lasts,
        time_limit: program.time_limit,
        source: client.source,
        wishes: client.wishes,
        line: program.line,
    })
}

fn hosts(plan: &Plan) -> Result<HashMap<&str, HostTcp>, MapError> {
    let of = |host: &'_ crate::scenario::Host| {
        HostTcp::of(&host.sysctls).map_err(|why| MapError::Host {
            host: host.name.clone(),
            why,
        })
    };
    let hosts = plan.hosts.iter();
    hosts
        .map(|host| Ok((host.name.as_str(), of(host)?)))
        .collect()
}

struct Mapping<'m> {
    case: &'m Case,
    plan: &'m Plan,
    policy: Option<&'m Policy>,
    map: Map,
    flows: Vec<Flow>,
    hosts: HashMap<&'m str, HostTcp>,
}

impl Mapping<'_> {
    fn simulation(self, experiment: &Experiment, seed: u64) -> Result<Mapped, MapError> {
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
        for flow in &self.flows {
            let way = self.way(flow, &mut spec)?;
            first_streams.push(spec.flows.len());
            rtt_ns.push(way.rtt_ns);
            for stream in 0..flow.streams {
                let connection = spec.flows.len();
                spec.flows.push(self.flow(flow, &way, stream, connection)?);
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
        let mut way = Way {
            from,
            to,
            rtt_ns: 0,
            mtu_bytes: u32::MAX,
        };
        for (here, there) in [(from, to), (to, from)] {
            let path = self.map.path(here, there).ok_or_else(|| MapError::Line {
                line: flow.line,
                why: format!("no way leads from {} to {}", flow.from, flow.to),
            })?;
            let mut at = here;
            for (link, end) in path {
                spec.routes[at][there].get_or_insert((link, end));
                way.pass(&spec.links[link], end);
                at = spec.links[link].between[1 - end];
            }
        }
        Ok(way)
    }

    fn flow(
        &self,
        flow: &Flow,
        way: &Way,
        stream: u32,
        connection: usize,
    ) -> Result<FlowSpec, MapError> {
        let start_ns = nanos(flow.start);
        let tcp = match flow.source {
            Source::ConstantRate { payload_bytes, .. } => {
                check_fits(flow, payload_bytes, way)?;
                Default::default()
            }
            _ => self.ends(flow, way, stream, connection)?,
        };
        Ok(FlowSpec {
            from: way.from,
            to: way.to,
            start_ns,
            stop_ns: None,
            lasts_ns: flow.lasts.map(nanos),
            source: flow.source.clone(),
            tcp,
        })
    }

    fn ends(
        &self,
        flow: &Flow,
        way: &Way,
        stream: u32,
        connection: usize,
    ) -> Result<fatpath_sim::TcpSpec, MapError> {
        let ends = Ends {
            flow,
            sender: &self.hosts[flow.from.as_str()],
            receiver: &self.hosts[flow.to.as_str()],
            policy: self.policy,
            names: &self.names(flow, stream, connection),
            path_mtu_bytes: way.mtu_bytes,
            connections: self.flows.iter().map(|flow| u64::from(flow.streams)).sum(),
        };
        ends.spec().map_err(|why| MapError::Case {
            flow: flow.label.clone(),
            why,
        })
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

/// What a flow's packets pass.
struct Way {
    from: usize,
    to: usize,
    rtt_ns: u64,
    mtu_bytes: u32,
}

impl Way {
    fn pass(&mut self, link: &LinkSpec, direction: usize) {
        self.mtu_bytes = self.mtu_bytes.min(link.mtu_bytes);
        for cell in &link.directions[direction].cells {
            match cell {
                CellSpec::Delay(delay) => self.rtt_ns += delay.delay_ns,
                // Who sends too much is told, and sends less (RFC 1191).
                CellSpec::Mtu(mtu) => self.mtu_bytes = self.mtu_bytes.min(mtu.mtu_bytes),
                _ => {}
            }
        }
    }
}

/// The simulator has no fragments.
fn check_fits(flow: &Flow, payload_bytes: u32, way: &Way) -> Result<(), MapError> {
    let most_bytes = way.mtu_bytes.saturating_sub(UDP_HEADER_BYTES);
    let why = format!(
        "datagrams with {payload_bytes} bytes of payload do not fit the MTU of {} bytes from {} to {}, and \
         fragments are not simulated; {most_bytes} bytes do",
        way.mtu_bytes, flow.from, flow.to
    );
    match payload_bytes <= most_bytes {
        true => Ok(()),
        false => Err(MapError::Line {
            line: flow.line,
            why,
        }),
    }
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

/// Reads a policy file as the daemon does.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn policy(file: &Path) -> Result<Policy, MapError> {
    let failed = |why: String| MapError::Policy {
        file: file.display().to_string(),
        why,
    };
    let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    fatpath_policy::parse_bytes(&bytes, None).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        failed(lines.join("\n"))
    })
}
