// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was learned of paths, for flows that no rule of the policy file matches: each path has the id of a rule, which
//! is written here, too, beyond the ids of the policy's rules.
//!
//! One path is changed without a look at any other and at any flow: flows that live follow at their next round trip.

use crate::abi;
use crate::handle::Kernel;
use crate::pod::{field_of, value_of};
use crate::tune::publish::{buffer_max, named_ids};
use crate::tune::rule::{PATH_RULE_IDS, rule_of};
use crate::tune::walk::Mode;
use crate::{KernelError, Walked};
use fatpath_clock::monotonic_ns;
use fatpath_policy::{Prefix, Rule};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use zerocopy::IntoBytes;

/// From an address of this host to its peers of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathAddresses {
    /// This host's.
    pub local: IpAddr,
    /// The peers'.
    pub peers: Prefix,
}

impl PathAddresses {
    fn key(&self) -> abi::fp_path_key {
        let mapped = match self.local.to_canonical() {
            IpAddr::V4(local) => local.to_ipv6_mapped(),
            IpAddr::V6(local) => local,
        };
        abi::fp_path_key {
            prefix_len: 128 + u32::from(self.peers.key_bits()),
            local: mapped.octets(),
            remote: self.peers.key(),
        }
    }
}

/// What flows of a path get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRule<'a> {
    /// Name of the rule.
    pub rule: &'a str,
    /// What flows go by; none: nothing is known, and none starts at the rule's `initial_rate`.
    pub known: Option<KnownPath>,
}

/// What was learned of a path. Flows start at the rule's `initial_rate` one at a time, while their handshakes meet no queue, and
/// make way for others where these fill the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// Round-trip time without queues, µs.
    pub base_rtt_us: u32,
    /// What the path holds then, bytes; 0: unknown.
    pub bdp_bytes: u64,
    /// Until then it counts, on CLOCK_MONOTONIC; 0: not any more.
    pub until_ns: u64,
}

impl PathRule<'_> {
    fn value(&self, rule_id: u32) -> abi::fp_path {
        let known = self.known;
        abi::fp_path {
            rule_id,
            base_rtt_us: known.map_or(0, |known| known.base_rtt_us),
            bdp_bytes: known.map_or(0, |known| known.bdp_bytes),
            known_until_ns: known.map_or(0, |known| known.until_ns),
            started_ns: 0,
        }
    }
}

/// When a flow of the path started at its rate last: the next one waits, whatever is known of the path meanwhile.
fn started_ns(paths: &MapHandle, key: &[u8]) -> Result<u64, KernelError> {
    let value = paths.lookup(key, MapFlags::ANY);
    let value = value.map_err(KernelError::bpf("read a learned path"))?;
    let path = value.and_then(|value| value_of::<abi::fp_path>(&value));
    Ok(path.map_or(0, |path| path.started_ns))
}

/// A path, and what its flows get; none: nothing any more.
pub type PathChange<'a> = (PathAddresses, Option<PathRule<'a>>);

impl Kernel {
    /// Changes what the flows of some paths get. `rules` are all that any path has then.
    ///
    /// # Errors
    /// When a map cannot be written: some of the changes may have been made.
    pub fn change_paths(
        &self,
        rules: &[Rule],
        changes: &[PathChange<'_>],
    ) -> Result<(), KernelError> {
        let ids = self.write_profiles(rules)?;
        let table = self.table("fp_paths")?;
        let paths = table.handle();
        // What is gone makes room.
        for (path, _) in changes.iter().filter(|(_, rule)| rule.is_none()) {
            remove(paths, path.key().as_bytes())?;
        }
        let given = changes.iter().filter_map(|(path, rule)| {
            let rule = rule.as_ref()?;
            Some((path.key(), rule.value(*ids.get(rule.rule)?)))
        });
        for (key, mut value) in given {
            value.started_ns = started_ns(paths, key.as_bytes())?;
            let put = paths.update(key.as_bytes(), value.as_bytes(), MapFlags::ANY);
            put.map_err(KernelError::bpf("write a learned path"))?;
        }
        self.have_paths_looked_up(paths.keys().next().is_some())?;
        self.note_buffer_maxima()?;
        self.free_profiles(&ids)
    }

    /// The same for all paths: those that are not named get nothing any more.
    ///
    /// # Errors
    /// As of [`Kernel::change_paths`].
    pub fn set_paths(&self, rules: &[Rule], paths: &[PathChange<'_>]) -> Result<(), KernelError> {
        let wanted: HashSet<Vec<u8>> = paths
            .iter()
            .filter(|(_, rule)| rule.is_some())
            .map(|(path, _)| path.key().as_bytes().to_vec())
            .collect();
        self.remove_paths(|key| !wanted.contains(key))?;
        self.change_paths(rules, paths)
    }

    /// No path is known any more, and live flows have what they would have had.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn forget_paths(&self) -> Result<Walked, KernelError> {
        let was_known: u64 = self.table("fp_paths_version")?.get(0)?;
        self.have_paths_looked_up(false)?;
        self.remove_paths(|_| true)?;
        if was_known == 0 {
            return Ok(Walked::default());
        }
        let walked = self.walk(Mode::Meet)?;
        self.clear_profiles(&HashMap::new())?;
        Ok(walked)
    }

    fn remove_paths(&self, is_gone: impl Fn(&Vec<u8>) -> bool) -> Result<(), KernelError> {
        let table = self.table("fp_paths")?;
        let paths = table.handle();
        let gone: Vec<Vec<u8>> = paths.keys().filter(is_gone).collect();
        gone.iter().try_for_each(|key| remove(paths, key))
    }

    /// What processors keep of paths is of another version from now on.
    fn have_paths_looked_up(&self, are_known: bool) -> Result<(), KernelError> {
        let version = if are_known { monotonic_ns() } else { 0 };
        self.table("fp_paths_version")?.set(0, &version)
    }

    /// What the rules need of the host may have raised them.
    fn note_buffer_maxima(&self) -> Result<(), KernelError> {
        let table = self.table("fp_control")?;
        let live: abi::fp_control = table.get(0)?;
        let control = abi::fp_control {
            send_buffer_max_bytes: buffer_max("wmem_max"),
            receive_buffer_max_bytes: buffer_max("rmem_max"),
            ..live
        };
        match control == live || live.generation == 0 {
            true => Ok(()),
            false => table.set(0, &control),
        }
    }

    /// The ids of the rules by their names. A rule that keeps its name keeps its id.
    fn write_profiles(&self, rules: &[Rule]) -> Result<HashMap<String, u32>, KernelError> {
        let (names, settings) = (self.table("fp_names")?, self.table("fp_rules")?);
        let known = named_ids(&names, PATH_RULE_IDS)?;
        let taken: HashSet<u32> = known.values().copied().collect();
        let mut free = PATH_RULE_IDS.filter(|id| !taken.contains(id));
        let mut ids = HashMap::new();
        for rule in rules {
            let id = known.get(&rule.name).copied().or_else(|| free.next());
            let id = id.ok_or(KernelError::NoRuleId(abi::FP_MAX_PROFILES as usize))?;
            settings.set(id, &rule_of(&rule.settings))?;
            let text = field_of(&rule.name);
            names.set(id, &abi::fp_name { text })?;
            ids.insert(rule.name.clone(), id);
        }
        Ok(ids)
    }

    /// Rules that no path has any more keep their ids while there are enough: flows that were silent since may be on them.
    fn free_profiles(&self, used: &HashMap<String, u32>) -> Result<(), KernelError> {
        let named = named_ids(&self.table("fp_names")?, PATH_RULE_IDS)?;
        if named.len() <= abi::FP_MAX_PROFILES as usize / 2 {
            return Ok(());
        }
        self.walk(Mode::Meet)?;
        self.clear_profiles(used)
    }

    fn clear_profiles(&self, used: &HashMap<String, u32>) -> Result<(), KernelError> {
        let (names, settings) = (self.table("fp_names")?, self.table("fp_rules")?);
        for (name, id) in named_ids(&names, PATH_RULE_IDS)? {
            if !used.contains_key(&name) {
                settings.set(id, &abi::fp_rule::default())?;
                names.set(id, &abi::fp_name::default())?;
            }
        }
        Ok(())
    }
}

/// One that is not there is no error.
fn remove(paths: &impl MapCore, key: &[u8]) -> Result<(), KernelError> {
    match paths.delete(key) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(KernelError::bpf("remove a learned path")(error))
        }
        _ => Ok(()),
    }
}
