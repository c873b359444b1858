// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making a policy live: it is written into the slot that is not live, and one write switches over.
//!
//! A flow refers to its rule by a stable id, so that a rule that keeps its name keeps
//! its flows and new parameters reach them at their next ACK. Ids of rules that are
//! gone are freed after a walk has taken every flow off them.

use crate::abi;
use crate::cgroup::cgroup_id;
use crate::handle::Kernel;
use crate::hooks::OVERRIDES;
use crate::maps::Table;
use crate::pod::{field_of, text_of};
use crate::tune::flow::tick_us;
use crate::tune::rule::rules_of;
use crate::tune::walk::Mode;
use crate::{KernelError, Walked};
use fatpath_policy::{Classifier, Policy, Prefix, Rule, Setting, Stage};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys as sys};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use zerocopy::IntoBytes;

/// Ids of the rules of policies.
const IDS: Range<u32> = 0..abi::FP_MAX_RULE_IDS;

/// What a publication did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Cgroups that rules name and that do not exist now: those rules match nothing yet.
    pub absent_cgroups: Vec<String>,
    /// Users of `rude_users` that this host does not know: nobody is permitted by them.
    pub absent_users: Vec<String>,
    /// The live flows that met the new policy.
    pub walked: Walked,
    /// What did not work after the switch: the new policy is live all the same.
    pub problems: Vec<String>,
}

/// Rules that were written: their ids in file order, and what stood at each id before.
#[derive(Default)]
pub(crate) struct Written {
    ids: Vec<u32>,
    before: Vec<(u32, [abi::fp_rule; 2], abi::fp_name)>,
}

/// A policy that is in the maps, and live once `control` is written.
pub(crate) struct Prepared {
    pub(crate) control: abi::fp_control,
    absent_cgroups: Vec<String>,
    absent_users: Vec<String>,
}

impl Kernel {
    /// Makes `policy` the live one and lets every live flow meet it. `tables` are the policy's own.
    ///
    /// # Errors
    /// When a map cannot be written; the previous policy stays in force. What fails after the switch
    /// is in [`Published::problems`].
    pub fn publish(&self, policy: &Policy, tables: &Classifier) -> Result<Published, KernelError> {
        let mut written = Written::default();
        let users_before = self.rude_users()?;
        let switched = self
            .prepare(policy, tables, &mut written)
            .and_then(|prepared| {
                self.table("fp_control")?.set(0, &prepared.control)?;
                Ok(prepared)
            });
        let prepared = switched.inspect_err(|_| {
            self.unwrite(&written);
            let _ = self.set_rude_users(&users_before);
        })?;
        let rude_option = self.attach_rude_option();
        let walked = self.walk(Mode::Meet);
        self.note_divided(&policy.rules, &written.ids);
        let shared = self.share_again().map(drop);
        // A rule that a flow may still be on keeps its id: a walk misses those of namespaces that cannot be found.
        let tidied = walked.is_ok().then(|| self.free_rules_but(&written.ids));
        let detached = (!overrides(policy)).then(|| self.detach_hooks(OVERRIDES));
        let after = [tidied, detached, Some(rude_option), Some(shared)]
            .into_iter()
            .flatten()
            .filter_map(Result::err);
        let mut problems: Vec<String> = after.map(|error| error.to_string()).collect();
        problems.extend(
            walked
                .as_ref()
                .err()
                .map(|error| format!("live flows: {error}")),
        );
        Ok(Published {
            absent_cgroups: prepared.absent_cgroups,
            absent_users: prepared.absent_users,
            walked: walked.unwrap_or_default(),
            problems,
        })
    }

    /// Writes the rules, and the slot that is not live.
    pub(crate) fn prepare(
        &self,
        policy: &Policy,
        tables: &Classifier,
        written: &mut Written,
    ) -> Result<Prepared, KernelError> {
        if overrides(policy) {
            self.attach_hooks(OVERRIDES)?;
        }
        self.write_rules(&policy.rules, written)?;
        let absent_users = self.permit_rude_users(&policy.rules, &written.ids)?;
        let live: abi::fp_control = self.table("fp_control")?.get(0)?;
        let slot = 1 - (live.live_slot & 1);
        self.write_addresses("fp_destinations", slot, tables, &tables.destination)?;
        self.write_addresses("fp_sources", slot, tables, &tables.source)?;
        self.write_sets(slot, tables)?;
        let absent_cgroups = self.write_cgroups(slot, tables)?;
        self.write_slot(slot, tables, &written.ids)?;
        let host = abi::fp_host {
            tick_us: tick_us() as u32,
            pad: 0,
        };
        self.table("fp_host")?.set(0, &host)?;
        let control = abi::fp_control {
            live_slot: slot,
            generation: live.generation.wrapping_add(1).max(1),
            send_buffer_max_bytes: buffer_max("wmem_max"),
            receive_buffer_max_bytes: buffer_max("rmem_max"),
            flags: match policy.auto.overrides() || policy.rules.iter().any(shapes_syn) {
                true => abi::FP_BEFORE_SYN_TOO,
                false => 0,
            },
            tcp_mem_share_milli: policy.host.tcp_mem_share_milli(),
        };
        Ok(Prepared {
            control,
            absent_cgroups,
            absent_users,
        })
    }

    fn write_addresses(
        &self,
        outer: &str,
        slot: u32,
        tables: &Classifier,
        prefixes: &[(Prefix, u32)],
    ) -> Result<(), KernelError> {
        let key_size = size_of::<abi::fp_address_key>() as u32;
        let trie = create(
            MapType::LpmTrie,
            key_size,
            4,
            prefixes.len(),
            sys::BPF_F_NO_PREALLOC,
        )?;
        for (prefix, class) in prefixes {
            let key = abi::fp_address_key {
                prefix_len: u32::from(prefix.key_bits()),
                address: prefix.key(),
            };
            let is_empty = tables.sets[*class as usize].first().is_none();
            let set = if is_empty { abi::FP_NO_SET } else { *class };
            put(&trie, key.as_bytes(), set.as_bytes())?;
        }
        self.set_inner(outer, slot, &trie)
    }

    fn write_sets(&self, slot: u32, tables: &Classifier) -> Result<(), KernelError> {
        let value_size = size_of::<abi::fp_rule_set>() as u32;
        let flags = sys::BPF_F_INNER_MAP;
        let sets = create(MapType::Array, 4, value_size, tables.sets.len(), flags)?;
        for (index, set) in (0u32..).zip(&tables.sets) {
            put(
                &sets,
                index.as_bytes(),
                abi::fp_rule_set { words: set.0 }.as_bytes(),
            )?;
        }
        self.set_inner("fp_rule_sets", slot, &sets)
    }

    /// Answers the paths that do not exist.
    fn write_cgroups(&self, slot: u32, tables: &Classifier) -> Result<Vec<String>, KernelError> {
        let map = create(MapType::Hash, 8, 4, tables.cgroups.len(), 0)?;
        let mut absent = Vec::new();
        for (path, class) in tables.cgroups.iter().filter(|(path, _)| path != "/") {
            match cgroup_id(path) {
                Some(id) => put(&map, id.as_bytes(), class.as_bytes())?,
                None => absent.push(path.clone()),
            }
        }
        self.set_inner("fp_cgroups", slot, &map)?;
        Ok(absent)
    }

    fn set_inner(&self, outer: &str, slot: u32, inner: &MapHandle) -> Result<(), KernelError> {
        self.table(outer)?
            .set(slot, &(inner.as_fd().as_raw_fd() as u32))
    }

    fn write_slot(&self, slot: u32, tables: &Classifier, ids: &[u32]) -> Result<(), KernelError> {
        self.table("fp_slots")?
            .set_bytes(slot, &slot_bytes(tables, ids))
    }

    /// Gives every rule an id, that of its namesake if there is one, and writes its settings.
    fn write_rules(&self, rules: &[Rule], written: &mut Written) -> Result<(), KernelError> {
        let (names, settings) = (self.table("fp_names")?, self.table("fp_rules")?);
        let in_phases = self.table("fp_phase_rules")?;
        let mut known = named_ids(&names, IDS)?;
        let mut free = free_ids(&known);
        for rule in rules {
            let id = match known.get(&rule.name) {
                Some(id) => *id,
                None => free
                    .next()
                    .ok_or(KernelError::NoRuleId(abi::FP_MAX_RULE_IDS as usize))?,
            };
            let before = [settings.get(id)?, in_phases.get(id)?];
            written.before.push((id, before, names.get(id)?));
            let (other, collective) = rules_of(rule);
            in_phases.set(id, &collective)?;
            settings.set(id, &other)?;
            names.set(
                id,
                &abi::fp_name {
                    text: field_of(&rule.name),
                },
            )?;
            known.insert(rule.name.clone(), id);
            written.ids.push(id);
        }
        Ok(())
    }

    /// Puts back what stood there before; the error that led here is the one that counts.
    fn unwrite(&self, written: &Written) {
        let tables = ["fp_names", "fp_rules", "fp_phase_rules"].map(|name| self.table(name));
        let [Ok(names), Ok(settings), Ok(in_phases)] = tables else {
            return;
        };
        for (id, [other, collective], name) in &written.before {
            let _ = in_phases.set(*id, collective);
            let _ = settings.set(*id, other).and_then(|()| names.set(*id, name));
        }
    }

    /// Those on which no flow is any more, either.
    fn free_rules_but(&self, ids: &[u32]) -> Result<(), KernelError> {
        let names = self.table("fp_names")?;
        let mut kept: HashSet<u32> = ids.iter().copied().collect();
        let named: Vec<u32> = named_ids(&names, IDS)?.into_values().collect();
        if named.iter().all(|id| kept.contains(id)) {
            return Ok(());
        }
        kept.extend(self.rules_of_flows()?);
        let (settings, shares) = (self.table("fp_rules")?, self.table("fp_shares")?);
        let rude_shares = self.table("fp_rude_shares")?;
        for id in named.into_iter().filter(|id| !kept.contains(id)) {
            settings.set(id, &abi::fp_rule::default())?;
            shares.set(id, &abi::fp_share::default())?;
            rude_shares.set(id, &abi::fp_share::default())?;
            names.set(id, &abi::fp_name::default())?;
        }
        Ok(())
    }

    /// The names of the rules by their ids, of those for learned paths, too.
    pub fn rule_names(&self) -> Result<HashMap<u32, String>, KernelError> {
        let ids = named_ids(&self.table("fp_names")?, 0..abi::FP_ALL_RULE_IDS)?;
        Ok(ids.into_iter().map(|(name, id)| (id, name)).collect())
    }
}

/// The window scale follows the receive buffer, or that of the program that an override keeps.
fn shapes_syn(rule: &Rule) -> bool {
    let syn = |setting: &Setting| setting.spec().stage == Stage::BeforeSyn;
    let mut before_syn = Setting::ALL.into_iter().filter(syn);
    before_syn.any(|setting| rule.settings.gives(setting))
}

/// Whether buffers that programs set are kept from the kernel until their flows meet a rule, or what is learned.
fn overrides(policy: &Policy) -> bool {
    let buffers = [Setting::SendBuffer, Setting::ReceiveBuffer];
    let gives_buffer = |rule: &Rule| buffers.into_iter().any(|b| rule.settings.gives(b));
    let mut rules = policy.rules.iter();
    policy.auto.overrides()
        || rules.any(|rule| rule.settings.is_on(Setting::OverrideApplication) && gives_buffer(rule))
}

/// What setsockopt takes at most; without a limit when it cannot be read.
pub(crate) fn buffer_max(sysctl: &str) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{sysctl}"));
    let bytes = text.ok().and_then(|text| text.trim().parse().ok());
    bytes.unwrap_or(i32::MAX as u32 / 2)
}

pub(crate) fn named_ids(
    names: &Table,
    among: Range<u32>,
) -> Result<HashMap<String, u32>, KernelError> {
    let names: Vec<abi::fp_name> = names.all()?;
    let named = (0..)
        .zip(&names)
        .filter(|(id, name)| among.contains(id) && name.text[0] != 0);
    Ok(named.map(|(id, name)| (text_of(&name.text), id)).collect())
}

fn free_ids(known: &HashMap<String, u32>) -> impl Iterator<Item = u32> + use<> {
    let taken: HashSet<u32> = known.values().copied().collect();
    IDS.filter(move |id| !taken.contains(id))
}

/// `struct fp_slot`, which is too large for a value on the stack.
fn slot_bytes(tables: &Classifier, ids: &[u32]) -> Vec<u8> {
    let root = tables.cgroup_class("/");
    let mut bytes = Vec::with_capacity(size_of::<abi::fp_slot>());
    bytes.extend(looks_at(tables).to_ne_bytes());
    bytes.extend(root.to_ne_bytes());
    let all_ids = ids
        .iter()
        .copied()
        .chain(std::iter::repeat(abi::FP_NO_RULE));
    bytes.extend(
        all_ids
            .take(abi::FP_MAX_RULES as usize)
            .flat_map(u32::to_ne_bytes),
    );
    for cuts in [&tables.destination_ports, &tables.source_ports] {
        let used = cuts
            .iter()
            .map(|(first, class)| [u32::from(*first), *class]);
        let all = used.chain(std::iter::repeat([abi::FP_NO_PORT, 0]));
        let fields = all.take(abi::FP_MAX_PORT_CUTS as usize).flatten();
        bytes.extend(fields.flat_map(u32::to_ne_bytes));
    }
    bytes
}

/// A dimension that tells no two flows apart is not looked at. Addresses always have two
/// defaults, so what counts is whether their classes differ.
fn looks_at(tables: &Classifier) -> u32 {
    let sources: HashSet<u32> = tables.source.iter().map(|(_, class)| *class).collect();
    let any_rule = tables.sets.iter().any(|set| set.first().is_some());
    let dimensions = [
        (any_rule, abi::FP_BY_DESTINATION),
        (sources.len() > 1, abi::FP_BY_SOURCE),
        (
            tables.destination_ports.len() > 1,
            abi::FP_BY_DESTINATION_PORT,
        ),
        (tables.source_ports.len() > 1, abi::FP_BY_SOURCE_PORT),
        (tables.cgroups.len() > 1, abi::FP_BY_CGROUP),
    ];
    dimensions
        .iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, bit)| bit)
        .sum()
}

fn create(
    kind: MapType,
    key_size: u32,
    value_size: u32,
    entries: usize,
    flags: u32,
) -> Result<MapHandle, KernelError> {
    let options = sys::bpf_map_create_opts {
        sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
        map_flags: flags,
        ..Default::default()
    };
    let entries = entries.max(1) as u32;
    MapHandle::create(
        kind,
        Some("fp_inner"),
        key_size,
        value_size,
        entries,
        &options,
    )
    .map_err(KernelError::bpf("make a map"))
}

fn put(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), KernelError> {
    map.update(key, value, MapFlags::ANY)
        .map_err(KernelError::bpf("fill a map"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> (Classifier, usize) {
        let policy = fatpath_policy::parse(text, None).unwrap();
        (Classifier::build(&policy), policy.rules.len())
    }

    #[test]
    fn slot_has_the_size_of_its_struct_and_names_its_cuts() {
        let (tables, _) = tables(
            "[[rule]]\nname='a'\ndestination=['10.0.0.0/8']\nsource_ports=[80]\nnotsent_lowat=16384\n",
        );
        let bytes = slot_bytes(&tables, &[7]);
        assert_eq!(bytes.len(), size_of::<abi::fp_slot>());
        let word = |i: usize| u32::from_ne_bytes(bytes[i * 4..i * 4 + 4].try_into().unwrap());
        assert_eq!(word(0), abi::FP_BY_DESTINATION | abi::FP_BY_SOURCE_PORT);
        assert_eq!((word(2), word(3)), (7, abi::FP_NO_RULE));
        let source_ports = 2 + abi::FP_MAX_RULES as usize + 2 * abi::FP_MAX_PORT_CUTS as usize;
        let firsts: Vec<u32> = (0..4).map(|i| word(source_ports + 2 * i)).collect();
        assert_eq!(firsts, [0, 80, 81, abi::FP_NO_PORT]);
    }

    #[test]
    fn no_rule_looks_at_nothing() {
        assert_eq!(looks_at(&tables("[instruments]\nflows='none'\n").0), 0);
    }

    #[test]
    fn free_ids_leave_out_those_in_use() {
        let known = HashMap::from([("a".to_owned(), 0), ("b".to_owned(), 2)]);
        assert_eq!(free_ids(&known).take(3).collect::<Vec<_>>(), [1, 3, 4]);
    }
}
