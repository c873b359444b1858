// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no simulation can be made of, said before it begins.

use fatpath_link::{CellSpec, ChainSpec, Service};

use crate::{FlowSpec, LinkSpec, Source, Spec, TcpSpec};

/// A [`Spec`] that asks for the impossible. Numbers are indexes into its lists.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A flow names a host that is not there.
    #[error("flow {flow}: there is no host {host}")]
    UnknownHost {
        /// The flow.
        flow: usize,
        /// What it names.
        host: usize,
    },
    /// A flow goes to where it comes from.
    #[error("flow {flow}: from a host to itself")]
    ToItself {
        /// The flow.
        flow: usize,
    },
    /// Packets of a flow, data or acknowledgements, find no way.
    #[error("flow {flow}: no way from host {from} to host {to}: none leads on from host {at}")]
    NoWay {
        /// The flow.
        flow: usize,
        /// Where the packets come from.
        from: usize,
        /// Where they are meant to go.
        to: usize,
        /// Where they are stranded.
        at: usize,
    },
    /// Packets of a flow go round and round.
    #[error("flow {flow}: the way from host {from} to host {to} is a loop")]
    Loop {
        /// The flow.
        flow: usize,
        /// Where the packets come from.
        from: usize,
        /// Where they are meant to go.
        to: usize,
    },
    /// Packets of a flow come and go in no time: it would go round for ever in one moment.
    #[error("flow {flow}: its round trip takes no time: give one of its links a delay or a rate")]
    NoTime {
        /// The flow.
        flow: usize,
    },
    /// Something else about a flow: what it is, and what is allowed.
    #[error("flow {flow}: {problem}")]
    Flow {
        /// The flow.
        flow: usize,
        /// The problem.
        problem: &'static str,
    },
    /// A link is out of range, or what it becomes is.
    #[error("link {link}: {problem}")]
    Link {
        /// The link.
        link: usize,
        /// The problem.
        problem: String,
    },
    /// Something about the whole.
    #[error("{0}")]
    Whole(&'static str),
}

/// So that sums of moments never overflow: 100 years.
const MAX_END_NS: u64 = 100 * 365 * 86_400_000_000_000;
/// Of all flows and links together; each takes 48 bytes at most. More is a mistaken unit.
const MAX_SAMPLES: u64 = 10_000_000;
/// A host's number has room in a route.
const MAX_HOSTS: usize = 1 << 20;

impl Spec {
    /// Says what is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_whole().map_err(SpecError::Whole)?;
        for (link, spec) in self.links.iter().enumerate() {
            let refuse = |problem| SpecError::Link { link, problem };
            self.check_link(spec).map_err(refuse)?;
        }
        self.check_changes()?;
        (0..self.flows.len()).try_for_each(|flow| self.check_flow(flow))
    }

    fn check_whole(&self) -> Result<(), &'static str> {
        let has_row_of_hosts = |row: &Vec<_>| row.len() == self.hosts;
        let rising = self.changes.is_sorted_by_key(|change| change.at_ns);
        unless(self.hosts <= MAX_HOSTS, "hosts: give at most a million")?;
        unless(
            self.routes.len() == self.hosts && self.routes.iter().all(has_row_of_hosts),
            "routes: give a row a host, and a place a destination in each",
        )?;
        unless(self.end_ns <= MAX_END_NS, "end: give at most 100 years")?;
        unless(
            self.samples().is_some_and(|samples| samples <= MAX_SAMPLES),
            "time between samples: give more than 0, and so that there are ten million at most, of all \
             flows and both directions of all links",
        )?;
        unless(rising, "changes: give times that do not fall")
    }

    /// How many there will be, if connections open at once; `None`: too many to tell.
    fn samples(&self) -> Option<u64> {
        let every_ns = match self.sample_every_ns {
            None => return Some(0),
            Some(every_ns) => every_ns,
        };
        let last_ns = |flow: &FlowSpec| flow.last_ns().min(self.end_ns);
        let of_link_ns = self.flows.iter().map(last_ns).max().unwrap_or(0);
        let of_links_ns = of_link_ns.checked_mul(2 * self.links.len() as u64)?;
        let mut of_flows_ns = self
            .flows
            .iter()
            .map(|flow| last_ns(flow).saturating_sub(flow.start_ns));
        let sampled_ns = of_flows_ns.try_fold(of_links_ns, u64::checked_add)?;
        sampled_ns.checked_div(every_ns)
    }

    fn check_link(&self, link: &LinkSpec) -> Result<(), String> {
        let [one, other] = link.between;
        unless(
            one != other && one.max(other) < self.hosts,
            "give two different hosts of those there are",
        )?;
        unless(
            (68..=65_535).contains(&link.mtu_bytes),
            "MTU: give 68 to 65535 bytes",
        )?;
        let mut directions = link.directions.iter();
        directions.try_for_each(|chain| chain.check().map_err(|error| error.to_string()))
    }

    fn check_changes(&self) -> Result<(), SpecError> {
        for change in &self.changes {
            let link = change.link;
            let refuse = |problem| SpecError::Link { link, problem };
            unless(
                link < self.links.len(),
                "a change of a link that is not there",
            )
            .map_err(|p| refuse(p.to_owned()))?;
            for chain in &change.directions {
                chain.check().map_err(|error| refuse(error.to_string()))?;
            }
        }
        Ok(())
    }

    fn check_flow(&self, flow: usize) -> Result<(), SpecError> {
        let spec = &self.flows[flow];
        if let Some(host) = [spec.from, spec.to]
            .into_iter()
            .find(|host| *host >= self.hosts)
        {
            return Err(SpecError::UnknownHost { flow, host });
        }
        if spec.from == spec.to {
            return Err(SpecError::ToItself { flow });
        }
        let there = self.check_way(flow, spec.from, spec.to)?;
        let back = self.check_way(flow, spec.to, spec.from)?;
        if !there && !back {
            return Err(SpecError::NoTime { flow });
        }
        spec.check()
            .map_err(|problem| SpecError::Flow { flow, problem })
    }

    /// Whether the way takes time.
    fn check_way(&self, flow: usize, from: usize, to: usize) -> Result<bool, SpecError> {
        let (mut at, mut takes_time) = (from, false);
        for _ in 0..self.hosts {
            if at == to {
                return Ok(takes_time);
            }
            let (link, direction) =
                self.next_link(at, to)
                    .ok_or(SpecError::NoWay { flow, from, to, at })?;
            takes_time |= self.takes_time(link, direction);
            at = self.links[link].between[1 - direction];
        }
        Err(SpecError::Loop { flow, from, to })
    }

    /// The link and direction that a route names, if it is a link of this host.
    fn next_link(&self, at: usize, to: usize) -> Option<(usize, usize)> {
        let (link, direction) = self.routes[at][to]?;
        let leaves = *self.links.get(link)?.between.get(direction)?;
        (leaves == at).then_some((link, direction))
    }

    /// Whether it does so at all times.
    fn takes_time(&self, link: usize, direction: usize) -> bool {
        let changes = self.changes.iter().filter(|change| change.link == link);
        takes_time(&self.links[link].directions[direction])
            && changes
                .map(|change| &change.directions[direction])
                .all(takes_time)
    }
}

fn takes_time(chain: &ChainSpec) -> bool {
    chain.cells.iter().any(|cell| match cell {
        CellSpec::Delay(delay) => delay.delay_ns > 0,
        CellSpec::Rate(rate) => rate.service != Service::Unlimited,
        _ => false,
    })
}

impl FlowSpec {
    fn check(&self) -> Result<(), &'static str> {
        unless(self.start_ns <= MAX_END_NS, "start: give at most 100 years")?;
        unless(
            self.stop_ns.is_none_or(|stop_ns| stop_ns >= self.start_ns),
            "stop: give a time after the start",
        )?;
        self.source.check()?;
        match self.source {
            Source::ConstantRate { .. } => Ok(()),
            _ => self.tcp.check(),
        }
    }
}

impl Source {
    fn check(&self) -> Result<(), &'static str> {
        match *self {
            Source::Bulk { bytes, .. } => unless(bytes != Some(0), "bytes: give more than 0"),
            Source::Chunks {
                chunk_bytes,
                every_ns,
                count,
            } => {
                unless(chunk_bytes > 0, "chunk: give more than 0 bytes")?;
                unless(
                    every_ns <= MAX_END_NS,
                    "chunk: give at most 100 years to the next",
                )?;
                unless(count != Some(0), "chunks: give more than 0")
            }
            Source::Web {
                users,
                mean_object_bytes,
                shape,
                objects_per_page,
                mean_think_ns,
            } => {
                unless(users > 0, "users: give more than 0")?;
                unless(
                    (1.0..=1e15).contains(&mean_object_bytes),
                    "objects: give a mean of 1 byte to a petabyte",
                )?;
                unless(
                    shape > 1.0 && shape.is_finite(),
                    "objects: give a Pareto shape above 1, or there is no mean",
                )?;
                unless(objects_per_page > 0, "objects a page: give more than 0")?;
                unless(
                    mean_think_ns <= MAX_END_NS,
                    "think time: give at most 100 years",
                )
            }
            Source::ConstantRate {
                rate_bps,
                payload_bytes,
            } => {
                unless(
                    Service::RANGE_BPS.contains(&rate_bps),
                    "rate: give 1 kb/s to 1 Tb/s",
                )?;
                unless(
                    payload_bytes <= MAX_PACKET_BYTES - crate::datagrams::HEADER_BYTES,
                    "datagrams: give at most 65507 bytes",
                )
            }
        }
    }
}

/// RFC 791: the length is 16 bits.
const MAX_PACKET_BYTES: u32 = 65_535;
/// Beside the headers, the most SACK blocks.
const MAX_OPTION_BYTES: u32 = 40;

impl TcpSpec {
    fn check(&self) -> Result<(), &'static str> {
        unless(self.mss_bytes > 0, "MSS: give more than 0 bytes")?;
        let lengths = [self.mss_bytes, MAX_OPTION_BYTES];
        let packet = lengths.map(|bytes| bytes.checked_add(self.header_bytes));
        unless(
            packet
                .iter()
                .all(|bytes| bytes.is_some_and(|bytes| bytes <= MAX_PACKET_BYTES)),
            "MSS: with headers, give at most 65535 bytes",
        )?;
        unless(
            self.initial_window_pkts > 0,
            "initial window: give more than 0 segments",
        )?;
        unless(
            self.cwnd_clamp_pkts > 0,
            "largest window: give more than 0 segments",
        )?;
        unless(self.dupthresh > 0, "duplicate ACKs: give more than 0")?;
        unless(
            self.pacing_rate_bps != Some(0),
            "pacing: give more than 0 bit/s",
        )?;
        let is_still = self.rude.is_some_and(|rude| rude.share_bps == Some(0));
        unless(!is_still, "share: give more than 0 bit/s")?;
        unless(self.rto_min_ns > 0, "least RTO: give more than 0")
    }
}

fn unless(is_right: bool, problem: &'static str) -> Result<(), &'static str> {
    match is_right {
        true => Ok(()),
        false => Err(problem),
    }
}
