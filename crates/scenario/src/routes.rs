// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who reaches whom: shortest ways through routers, by the number of links.
//!
//! Pure. Only routers carry packets of others. Of ways of equal length the one over the link that
//! comes first in the file is taken, at every host by itself, as the kernels of the hosts will do.
//! It knows no addresses. Start with [`Map::of`].

use std::collections::{HashMap, VecDeque};

use super::{Host, Link};

/// Hosts and the links between them, by index.
pub struct Map {
    is_router: Vec<bool>,
    index: HashMap<String, usize>,
    ends: Vec<[usize; 2]>,
    /// For each host the links it is on, in order, with the neighbour.
    at: Vec<Vec<Hop>>,
}

/// A step from a host to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link, by its index.
    pub link: usize,
    /// The neighbour, by its index.
    pub to: usize,
}

/// The shortest ways from one host to all others.
pub struct Ways {
    found: Vec<Option<Way>>,
}

#[derive(Clone, Copy)]
struct Way {
    links: u32,
    /// `None` at the host itself.
    first: Option<Hop>,
    last: Option<usize>,
}

impl Map {
    /// The map of a case. Every link's hosts must be among `hosts`.
    pub fn of(hosts: &[Host], links: &[Link]) -> Map {
        let names = hosts.iter().enumerate();
        let index: HashMap<String, usize> =
            names.map(|(at, host)| (host.name.clone(), at)).collect();
        let ends: Vec<[usize; 2]> = links
            .iter()
            .map(|link| [0, 1].map(|end| index[&link.between[end]]))
            .collect();
        let mut at = vec![vec![]; hosts.len()];
        for (link, &[one, other]) in ends.iter().enumerate() {
            at[one].push(Hop { link, to: other });
            at[other].push(Hop { link, to: one });
        }
        let is_router = hosts.iter().map(|host| host.router).collect();
        Map {
            is_router,
            index,
            ends,
            at,
        }
    }

    /// A host's index; `None` if there is none of that name.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Whether a host forwards packets of others.
    pub fn is_router(&self, host: usize) -> bool {
        self.is_router[host]
    }

    /// The first link a host is on.
    pub fn first_link(&self, host: usize) -> Option<usize> {
        self.at[host].first().map(|hop| hop.link)
    }

    /// Which end of a link a host is, 0 or 1.
    pub fn end(&self, link: usize, host: usize) -> Option<usize> {
        self.ends[link].iter().position(|end| *end == host)
    }

    /// The shortest ways from a host.
    pub fn ways(&self, from: usize) -> Ways {
        let mut found = vec![None; self.at.len()];
        found[from] = Some(Way {
            links: 0,
            first: None,
            last: None,
        });
        let mut reached = VecDeque::from([from]);
        while let Some(host) = reached.pop_front() {
            if host != from && !self.is_router[host] {
                continue;
            }
            let Some(way) = found[host] else { continue };
            for hop in &self.at[host] {
                if found[hop.to].is_none() {
                    found[hop.to] = Some(way.and(*hop));
                    reached.push_back(hop.to);
                }
            }
        }
        Ways { found }
    }

    /// The first step towards a link's prefix; `None` if the host is on it, or does not reach it.
    /// An end that is a router is preferred: beyond another, only that end itself is reached.
    pub fn towards(&self, ways: &Ways, link: usize) -> Option<Hop> {
        let ends = self.ends[link];
        let ways_of = |of_routers: bool| {
            let ends = ends.into_iter();
            ends.filter(move |end| !of_routers || self.is_router[*end])
                .filter_map(|end| ways.found[end])
        };
        if ways_of(false).any(|way| way.links == 0) {
            return None;
        }
        let nearest = ways_of(true).min_by_key(|way| way.links);
        nearest
            .or_else(|| ways_of(false).min_by_key(|way| way.links))?
            .first
    }

    /// The links that a packet passes from one host to another, each with the end (0 or 1) at which it
    /// enters; `None` if none gets there.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<(usize, usize)>> {
        let last = self.ways(from).last_link(to)?;
        let mut path = vec![];
        let mut host = from;
        while host != to {
            let hop = match self.end(last, host) {
                Some(_) => Hop { link: last, to },
                None => self.towards(&self.ways(host), last)?,
            };
            path.push((hop.link, self.end(hop.link, host)?));
            host = hop.to;
        }
        Some(path)
    }
}

impl Ways {
    /// Whether packets get to a host.
    pub fn reach(&self, host: usize) -> bool {
        self.found[host].is_some()
    }

    /// The number of links to a host; `None` where no way leads.
    #[cfg(test)]
    pub fn distance(&self, host: usize) -> Option<u32> {
        Some(self.found[host]?.links)
    }

    /// The link over which packets come to a host; `None` where the ways begin, and where none leads.
    pub fn last_link(&self, host: usize) -> Option<usize> {
        self.found[host]?.last
    }
}

impl Way {
    fn and(self, hop: Hop) -> Way {
        Way {
            links: self.links + 1,
            first: self.first.or(Some(hop)),
            last: Some(hop.link),
        }
    }
}
