// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no simulation can be made of, said before it begins.

use fatpath_link::{CellSpec, ChainSpec, Service};

use crate::{FlowSpec, LinkSpec, Source, Spec};
use fatpath_link::headers::UDP_BYTES;

/// A [`Spec`] that asks for the impossible. Numbers are indexes into its lists.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A flow cannot be.
    #[error("flow {flow}: {problem}")]
    Flow {
        /// The flow.
        flow: usize,
        /// Why.
        problem: FlowProblem,
    },
    /// A link is out of range, or what it becomes is.
    #[error("link {link}: {problem}")]
    Link {
        /// The link.
        link: usize,
        /// The problem.
        problem: String,
    },
    /// More samples than there is memory for.
    #[error(
        "time between samples: give more than 0, and so that there are ten million at most, of all flows and \
         both directions of all links"
    )]
    Samples,
    /// Something else about the whole.
    #[error("{0}")]
    Whole(&'static str),
}

/// Why a flow cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowProblem {
    /// It names a host that is not there.
    #[error("no such host: {0}")]
    UnknownHost(usize),
    /// It goes to where it comes from.
    #[error("from a host to itself")]
    ToItself,
    /// Its packets, data or acknowledgements, find no way.
    #[error("no route from host {from} to host {to}: packets stop at host {at}")]
    NoWay {
        /// Where the packets come from.
        from: usize,
        /// Where they are meant to go.
        to: usize,
        /// Where they are stranded.
        at: usize,
    },
    /// Its packets go round and round.
    #[error("the route from host {from} to host {to} is a loop")]
    Loop {
        /// Where the packets come from.
        from: usize,
        /// Where they are meant to go.
        to: usize,
    },
    /// Its packets come and go in no time: it would go round for ever in one moment.
    #[error("its round trip takes no time: give one of its links a delay or a rate")]
    NoTime,
    /// A value is out of range: which, and what is allowed.
    #[error("{0}")]
    Range(&'static str),
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
        if self.samples().is_none_or(|samples| samples > MAX_SAMPLES) {
            return Err(SpecError::Samples);
        }
        for (link, spec) in self.links.iter().enumerate() {
            let refuse = |problem| SpecError::Link { link, problem };
            self.check_link(spec).map_err(refuse)?;
        }
        self.check_changes()?;
        for (flow, spec) in self.flows.iter().enumerate() {
            let refuse = |problem| SpecError::Flow { flow, problem };
            self.check_flow(spec).map_err(refuse)?;
        }
        Ok(())
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

    fn check_flow(&self, flow: &FlowSpec) -> Result<(), FlowProblem> {
        let mut ends = [flow.from, flow.to].into_iter();
        if let Some(host) = ends.find(|host| *host >= self.hosts) {
            return Err(FlowProblem::UnknownHost(host));
        }
        if flow.from == flow.to {
            return Err(FlowProblem::ToItself);
        }
        let there = self.check_way(flow.from, flow.to)?;
        let back = self.check_way(flow.to, flow.from)?;
        if !there && !back {
            return Err(FlowProblem::NoTime);
        }
        flow.check().map_err(FlowProblem::Range)
    }

    /// Whether the way takes time.
    fn check_way(&self, from: usize, to: usize) -> Result<bool, FlowProblem> {
        let (mut at, mut takes_time) = (from, false);
        for _ in 0..self.hosts {
            if at == to {
                return Ok(takes_time);
            }
            let next = self.next_link(at, to);
            let (link, direction) = next.ok_or(FlowProblem::NoWay { from, to, at })?;
            takes_time |= self.takes_time(link, direction);
            at = self.links[link].between[1 - direction];
        }
        Err(FlowProblem::Loop { from, to })
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
        unless(
            self.shared_rate.is_none_or(|rate| rate.bps >= 8),
            "shared rate: give 8 bit/s or more",
        )?;
        match self.source {
            Source::ConstantRate { .. } => Ok(()),
            _ => self.tcp.check().map_err(|wrong| wrong.0),
        }
    }
}

impl Source {
    fn check(&self) -> Result<(), &'static str> {
        match *self {
            Source::Bulk { bytes, .. } => unless(bytes != Some(0), "bytes: give more than 0"),
            Source::Chunks {
                chunk_bytes,
                first_chunk_bytes,
                every_ns,
                count,
            } => {
                let least_bytes = chunk_bytes.min(first_chunk_bytes.unwrap_or(chunk_bytes));
                check_chunks(least_bytes, every_ns, count)
            }
            Source::Web { .. } => self.check_web(),
            Source::ConstantRate {
                rate_bps,
                payload_bytes,
            } => check_datagrams(rate_bps, payload_bytes),
        }
    }

    fn check_web(&self) -> Result<(), &'static str> {
        let Source::Web {
            users,
            mean_object_bytes,
            shape,
            objects_per_page,
            mean_think_ns,
        } = *self
        else {
            return Ok(());
        };
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
}

fn check_chunks(least_bytes: u64, every_ns: u64, count: Option<u64>) -> Result<(), &'static str> {
    unless(least_bytes > 0, "chunk: give more than 0 bytes")?;
    unless(
        every_ns <= MAX_END_NS,
        "chunk: give at most 100 years to the next",
    )?;
    unless(count != Some(0), "chunks: give more than 0")
}

fn check_datagrams(rate_bps: u64, payload_bytes: u32) -> Result<(), &'static str> {
    unless(
        Service::RANGE_BPS.contains(&rate_bps),
        "rate: give 1 kb/s to 1 Tb/s",
    )?;
    unless(
        payload_bytes <= MAX_PACKET_BYTES - UDP_BYTES,
        "datagrams: give at most 65507 bytes",
    )
}

/// RFC 791: the length is 16 bits.
const MAX_PACKET_BYTES: u32 = 65_535;

fn unless(is_right: bool, problem: &'static str) -> Result<(), &'static str> {
    match is_right {
        true => Ok(()),
        false => Err(problem),
    }
}
