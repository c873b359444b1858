// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy as tables that the kernel searches: bit-vector classification.
//!
//! Rule `i` is bit `i` of a [`RuleSet`]. Each of the five dimensions (two addresses, two ports, the
//! cgroup) maps its key to the set of rules that it does not rule out. The AND of the five sets is
//! the set of rules that match; its lowest bit is the first of them in file order. So a flow costs
//! five look-ups, whatever the number of rules.
//!
//! The work is done here, at build time: the set of a prefix already holds the rules of all prefixes
//! that cover it, so a longest-prefix trie needs no walk up; equal sets are kept once and named by
//! their [`Class`]. The families share one key space (IPv4 is `::ffff:a.b.c.d`) but not their rules:
//! the two defaults, `::/0` and `::ffff:0:0/96`, are always there and keep them apart.
//!
//! Start at [`Classifier::build`]; [`Classifier::lookup`] does what the kernel does.

use crate::{MAX_RULES, Match, Policy, PortRange, Prefix, Rule};
use serde::Serialize;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::{BitAnd, BitOr};

/// An index into [`Classifier::sets`].
pub type Class = u32;

/// A set of rules: bit `i % 64` of word `i / 64` is the rule of index `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct RuleSet(pub [u64; MAX_RULES / 64]);

/// The tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Classifier {
    /// The distinct sets; a [`Class`] is an index into them.
    pub sets: Vec<RuleSet>,
    /// Longest-prefix table of the peer's address, sorted, no prefix twice, with both defaults.
    pub destination: Vec<(Prefix, Class)>,
    /// Longest-prefix table of this host's address, likewise.
    pub source: Vec<(Prefix, Class)>,
    /// Sorted first ports of the peer's port; each class holds up to the next. The first is port 0.
    pub destination_ports: Vec<(u16, Class)>,
    /// This host's port, likewise.
    pub source_ports: Vec<(u16, Class)>,
    /// Sorted cgroup paths, always with the default `/`; the longest path that is the flow's or above it counts.
    pub cgroups: Vec<(String, Class)>,
}

impl RuleSet {
    /// Adds the rule of an index.
    ///
    /// # Panics
    /// When the index is [`MAX_RULES`] or more.
    pub fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    /// Takes the rule of an index out. The same panics.
    pub fn remove(&mut self, rule: usize) {
        self.0[rule / 64] &= !(1 << (rule % 64));
    }

    /// The lowest index, which is the first rule in file order.
    pub fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// The rules for which `wanted` holds.
    pub(crate) fn of_rules(rules: &[Rule], wanted: impl Fn(&Rule) -> bool) -> Self {
        rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| wanted(rule))
            .map(|(index, _)| index)
            .collect()
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(rules: I) -> Self {
        let mut set = RuleSet::default();
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}

impl BitAnd for RuleSet {
    type Output = RuleSet;

    fn bitand(mut self, other: RuleSet) -> RuleSet {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(word, other)| *word &= other);
        self
    }
}

impl BitOr for RuleSet {
    type Output = RuleSet;

    fn bitor(mut self, other: RuleSet) -> RuleSet {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(word, other)| *word |= other);
        self
    }
}

impl Classifier {
    /// Builds the tables of a policy. Linear in prefixes and ports, apart from their sorting.
    ///
    /// # Panics
    /// When the policy has more than [`MAX_RULES`] rules, which [`parse`](crate::parse) never makes.
    pub fn build(policy: &Policy) -> Classifier {
        let rules = &policy.rules;
        let mut sets = SetTable::default();
        Classifier {
            destination: prefix_table(rules, |matches| &matches.destination, &mut sets),
            source: prefix_table(rules, |matches| &matches.source, &mut sets),
            destination_ports: port_table(rules, |matches| &matches.destination_ports, &mut sets),
            source_ports: port_table(rules, |matches| &matches.source_ports, &mut sets),
            cgroups: cgroup_table(rules, &mut sets),
            sets: sets.sets,
        }
    }

    /// The index of the rule that a flow meets, as the kernel finds it. Both addresses are of one family.
    pub fn lookup(
        &self,
        destination: SocketAddr,
        source: SocketAddr,
        cgroup: &str,
    ) -> Option<usize> {
        let classes = [
            longest_prefix(&self.destination, destination),
            longest_prefix(&self.source, source),
            port_class(&self.destination_ports, destination.port()),
            port_class(&self.source_ports, source.port()),
            self.cgroup_class(cgroup),
        ];
        let sets = classes.map(|class| self.sets[class as usize]);
        sets.into_iter()
            .reduce(|all, set| all & set)
            .and_then(|all| all.first())
    }

    /// The class of a cgroup-2 path: that of the path itself, or of the nearest above it.
    pub fn cgroup_class(&self, path: &str) -> Class {
        and_above(path)
            .find_map(|path| exact(&self.cgroups, path))
            .expect("`/` is always there")
    }

    /// The set of a prefix that is in the table.
    pub(crate) fn set_of(&self, table: &[(Prefix, Class)], prefix: &Prefix) -> Option<RuleSet> {
        table
            .binary_search_by_key(prefix, |(key, _)| *key)
            .ok()
            .map(|index| self.sets[table[index].1 as usize])
    }
}

/// The distinct sets in the order of their first use.
#[derive(Default)]
struct SetTable {
    sets: Vec<RuleSet>,
    classes: HashMap<RuleSet, Class>,
}

impl SetTable {
    fn class_of(&mut self, set: RuleSet) -> Class {
        *self.classes.entry(set).or_insert_with(|| {
            self.sets.push(set);
            (self.sets.len() - 1) as Class
        })
    }
}

fn prefix_table(
    rules: &[Rule],
    side: impl Fn(&Match) -> &Vec<Prefix>,
    sets: &mut SetTable,
) -> Vec<(Prefix, Class)> {
    let everywhere = RuleSet::of_rules(rules, |rule| side(&rule.matches).is_empty());
    let mut table = Vec::new();
    let mut covering: Vec<(Prefix, RuleSet)> = Vec::new();
    for (prefix, own) in own_sets(rules, side) {
        while covering
            .last()
            .is_some_and(|(above, _)| !above.covers(&prefix))
        {
            covering.pop();
        }
        let set = own | covering.last().map_or(everywhere, |(_, set)| *set);
        table.push((prefix, sets.class_of(set)));
        covering.push((prefix, set));
    }
    table
}

/// Each prefix with the rules that name it, and the two defaults; sorted, so that a prefix follows
/// those that cover it.
fn own_sets(rules: &[Rule], side: impl Fn(&Match) -> &Vec<Prefix>) -> Vec<(Prefix, RuleSet)> {
    let named = rules.iter().enumerate().flat_map(|(index, rule)| {
        side(&rule.matches)
            .iter()
            .map(move |prefix| (*prefix, Some(index)))
    });
    let mut all: Vec<_> = named
        .chain([(Prefix::ANY_V4, None), (Prefix::ANY_V6, None)])
        .collect();
    all.sort_unstable();
    all.chunk_by(|one, next| one.0 == next.0)
        .map(|same| {
            (
                same[0].0,
                same.iter().filter_map(|(_, rule)| *rule).collect(),
            )
        })
        .collect()
}

fn port_table(
    rules: &[Rule],
    side: impl Fn(&Match) -> &Vec<PortRange>,
    sets: &mut SetTable,
) -> Vec<(u16, Class)> {
    let mut set = RuleSet::of_rules(rules, |rule| side(&rule.matches).is_empty());
    let mut table = vec![(0, sets.class_of(set))];
    for same_port in port_events(rules, side).chunk_by(|one, next| one.0 == next.0) {
        for &(_, begins, rule) in same_port {
            if begins {
                set.insert(rule)
            } else {
                set.remove(rule)
            }
        }
        table.push((same_port[0].0, sets.class_of(set)));
    }
    table
}

/// Where a rule's range begins (true) and where it has ended (false), by port; an end comes before a
/// beginning at the same port, for a rule's ranges may touch.
fn port_events(
    rules: &[Rule],
    side: impl Fn(&Match) -> &Vec<PortRange>,
) -> Vec<(u16, bool, usize)> {
    let mut events = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        for range in side(&rule.matches) {
            events.push((range.first, true, index));
            events.extend(range.last.checked_add(1).map(|after| (after, false, index)));
        }
    }
    events.sort_unstable();
    events
}

fn cgroup_table(rules: &[Rule], sets: &mut SetTable) -> Vec<(String, Class)> {
    let everywhere = RuleSet::of_rules(rules, |rule| rule.matches.cgroup.is_none());
    let mut own: HashMap<&str, RuleSet> = HashMap::from([("/", RuleSet::default())]);
    for (index, rule) in rules.iter().enumerate() {
        rule.matches
            .cgroup
            .iter()
            .for_each(|path| own.entry(path).or_default().insert(index));
    }
    let whole = |path| {
        and_above(path)
            .filter_map(|path| own.get(path))
            .fold(everywhere, |all, set| all | *set)
    };
    let mut paths: Vec<&str> = own.keys().copied().collect();
    paths.sort_unstable();
    paths
        .into_iter()
        .map(|path| (path.to_owned(), sets.class_of(whole(path))))
        .collect()
}

/// A cgroup path and those above it, up to `/`.
fn and_above(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.rmatch_indices('/').map(|(at, _)| at);
    std::iter::once(path.len())
        .chain(slashes)
        .map(|end| &path[..end])
        .filter(|path| !path.is_empty())
        .chain(["/"])
}

fn exact(table: &[(String, Class)], path: &str) -> Option<Class> {
    table
        .binary_search_by(|(key, _)| key.as_str().cmp(path))
        .ok()
        .map(|index| table[index].1)
}

fn port_class(table: &[(u16, Class)], port: u16) -> Class {
    table[table.partition_point(|(first, _)| *first <= port) - 1].1
}

fn longest_prefix(table: &[(Prefix, Class)], peer: SocketAddr) -> Class {
    let address = peer.ip().to_canonical();
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (0..=longest)
        .rev()
        .filter_map(|bits| Prefix::holding(address, bits))
        .find_map(|prefix| table.binary_search_by_key(&prefix, |(key, _)| *key).ok())
        .map(|index| table[index].1)
        .expect("both defaults are always there")
}
