// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case of a scenario as a simulation: the same links with the same random numbers, the same ways, the
//! flows that its programs make.
//!
//! Pure but for the policy file. Start with [`Mapped::of`].

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use fatpath_policy::Policy;
use fatpath_scenario::plan::Plan;
use fatpath_scenario::routes::Map;
use fatpath_scenario::{Case, Experiment, Flow, Program, Transport, mixed};
use fatpath_sim::SpecError;

use super::command::{self, Client, Iperf3};
use super::host::HostTcp;
use super::mapped::{MapError, Mapped};
use super::mapping::Mapping;

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
        transport: Transport::Tcp,
        source: client.source,
        requests: client.requests,
        line: program.line,
    })
}

fn hosts(plan: &Plan) -> Result<HashMap<&str, HostTcp>, MapError> {
    let of = |host: &'_ fatpath_scenario::Host| {
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
