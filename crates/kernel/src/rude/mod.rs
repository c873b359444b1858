// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP's gate, its users, the cgroups of `fatpath rude run`, and which flows are rude.
//!
//! Permission is asked in the kernel half (bpf/include/rude.h); here is written what it reads.
//! Start at [`Kernel::open_rude_gate`].

pub(crate) mod mark;
mod tunnel;

use crate::KernelError;
use crate::abi::{self, fp_rude_gate, fp_rude_user};
use crate::cgroup::{cgroup_directory, cgroup_path};
use crate::handle::Kernel;
use crate::hooks::RUDE_OPTION;
use crate::pod::value_of;
use crate::tune::walk::Mode;
use crate::users::account;
use fatpath_api::{Gated, RudeGate, RudeMark, RudeStatus};
use fatpath_policy::{Rule, User};
use libbpf_rs::{MapCore, MapFlags};
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use zerocopy::IntoBytes;

impl Kernel {
    /// Opens the gate: flows of rules that want it are rude from now on, others may ask. The network
    /// namespaces in `named` (as of `ip netns`) mark from now on; where none is, the calling thread's.
    ///
    /// # Errors
    /// When a namespace or a map cannot be used: the gate stays as it was.
    pub fn open_rude_gate(&self, mark: RudeMark, named: &[String]) -> Result<Gated, KernelError> {
        self.attach_hooks(RUDE_OPTION)?;
        let marks_here = named.is_empty();
        let mut unmarked = match marks_here {
            true => self.mark_here()?.unmarked,
            false => Vec::new(),
        };
        for name in named {
            let path = Path::new("/run/netns").join(name);
            let step = format!("open {}", path.display());
            let namespace = File::open(path).map_err(KernelError::io(step))?;
            let marking = self.mark_in(&namespace)?;
            unmarked.extend(marking.unmarked);
        }
        self.set_gate(RudeGate {
            is_open: true,
            mark,
            marks_here,
        })?;
        Ok(Gated {
            flows_changed: self.walk(Mode::Rude)?.changed,
            unmarked,
        })
    }

    /// Shuts the gate: whoever is rude is polite from now on, and nothing marks any more.
    ///
    /// # Errors
    /// When a map cannot be written, or a walk fails: the flow is polite at its next ACK then.
    pub fn close_rude_gate(&self) -> Result<Gated, KernelError> {
        self.set_gate(RudeGate {
            is_open: false,
            marks_here: false,
            ..self.rude_gate()?
        })?;
        let flows_changed = self.walk(Mode::Rude)?.changed;
        self.unmark()?;
        self.attach_rude_option()?;
        Ok(Gated {
            flows_changed,
            unmarked: Vec::new(),
        })
    }

    /// While the gate is open: interfaces that came since mark too, and those that went are forgotten.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn follow_marks(&self) -> Result<(), KernelError> {
        let gate = self.rude_gate()?;
        if !gate.is_open {
            return Ok(());
        }
        self.forget_gone_namespaces()?;
        let here = match gate.marks_here {
            true => self.mark_here().map(drop),
            false => Ok(()),
        };
        here.and(self.mark_again())
    }

    /// The gate as it is.
    ///
    /// # Errors
    /// When its map cannot be read.
    pub fn rude_gate(&self) -> Result<RudeGate, KernelError> {
        let gate: fp_rude_gate = self.table("fp_rude_gate")?.get(0)?;
        let mark = match (gate.mark_bits, gate.mark_dscp) {
            (0, 0) => RudeMark::default(),
            (0, dscp) => RudeMark::Dscp(dscp as u8),
            (bits, _) => RudeMark::TcpBit(bits as u16),
        };
        Ok(RudeGate {
            is_open: gate.is_open != 0,
            mark,
            marks_here: gate.marks_here != 0,
        })
    }

    fn set_gate(&self, gate: RudeGate) -> Result<(), KernelError> {
        let (mark_bits, mark_dscp) = match gate.mark {
            RudeMark::TcpBit(bit) => (bit.into(), 0),
            RudeMark::Dscp(dscp) => (0, dscp.into()),
        };
        let gate = fp_rude_gate {
            is_open: gate.is_open.into(),
            mark_bits,
            mark_dscp,
            marks_here: gate.marks_here.into(),
        };
        self.table("fp_rude_gate")?.set(0, &gate)
    }

    /// The gate, the marks, and who is rude.
    ///
    /// # Errors
    /// When a map or the list of flows cannot be read.
    pub fn rude_status(&self) -> Result<RudeStatus, KernelError> {
        let mut flows = self.flows()?;
        flows.retain(|flow| flow.rude.is_some());
        Ok(RudeStatus {
            gate: self.rude_gate()?,
            marked_namespaces: self.marked_namespaces()?,
            flows_unmarked: self.counts()?.rude_flows_unmarked,
            flows,
        })
    }

    /// Whether segments are marked in the network namespace with this inode.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn marks_in(&self, netns: u32) -> Result<bool, KernelError> {
        let marked = self.marked_namespaces()?;
        Ok(marked
            .into_iter()
            .any(|(marked, interfaces)| marked == netns && interfaces > 0))
    }

    fn marked_namespaces(&self) -> Result<Vec<(u32, u32)>, KernelError> {
        let table = self.table("fp_marked_netns")?;
        let keys = table.handle().keys().filter_map(|key| value_of(&key));
        let marked = |netns| {
            table
                .get(netns)
                .map(|marked: abi::fp_marked| marked.interfaces)
        };
        keys.map(|netns| Ok((netns, marked(netns)?))).collect()
    }

    /// The option is there while somebody could become rude, or could be told that he may not.
    pub(crate) fn attach_rude_option(&self) -> Result<(), KernelError> {
        let gate: fp_rude_gate = self.table("fp_rude_gate")?.get(0)?;
        match gate.is_open != 0 || self.some_rule_is_of_rudeness()? {
            true => self.attach_hooks(RUDE_OPTION),
            false => self.detach_hooks(RUDE_OPTION),
        }
    }

    fn some_rule_is_of_rudeness(&self) -> Result<bool, KernelError> {
        let rules = self.table("fp_rules")?;
        for id in self.rule_names()?.into_keys() {
            let rule: abi::fp_rule = rules.get(id)?;
            if rule.value[abi::FP_RUDENESS as usize] != u64::from(abi::FP_RUDE_NEVER) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Flows of programs in this cgroup and below ask to be rude when they are established.
    ///
    /// # Errors
    /// When the map is full or cannot be written.
    ///
    /// The cgroup must have a process already, or [`tidy_rude_runs`](Self::tidy_rude_runs) may take it.
    pub fn run_rude(&self, cgroup_id: u64) -> Result<(), KernelError> {
        self.table("fp_rude_cgroups")?
            .handle()
            .update(cgroup_id.as_bytes(), 1u32.as_bytes(), MapFlags::ANY)
            .map_err(KernelError::bpf("note the cgroup of the command"))
    }

    /// Removes the cgroups of [`run_rude`](Self::run_rude) in which nothing runs any more.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn tidy_rude_runs(&self) -> Result<(), KernelError> {
        let table = self.table("fp_rude_cgroups")?;
        let ids: Vec<u64> = table
            .handle()
            .keys()
            .filter_map(|key| value_of(&key))
            .collect();
        for id in ids {
            let directory = cgroup_path(id).and_then(|path| cgroup_directory(&path).ok());
            // A cgroup with processes refuses.
            if directory.is_none_or(|directory| std::fs::remove_dir(directory).is_ok()) {
                let _ = table.handle().delete(id.as_bytes());
            }
        }
        Ok(())
    }

    /// Answers the names that this host does not know.
    pub(crate) fn permit_rude_users(
        &self,
        rules: &[Rule],
        ids: &[u32],
    ) -> Result<Vec<String>, KernelError> {
        let mut absent = Vec::new();
        let mut wanted = HashSet::new();
        for (rule, rule_id) in rules.iter().zip(ids) {
            for user in rule.settings.rude_users().into_iter().flatten() {
                match user_number(user) {
                    Some(user) => drop(wanted.insert((*rule_id, user))),
                    None => absent.push(user.to_string()),
                }
            }
        }
        self.set_rude_users(&wanted)?;
        Ok(absent)
    }

    /// Pairs of a rule's id and a user's number.
    pub(crate) fn rude_users(&self) -> Result<HashSet<(u32, u32)>, KernelError> {
        let table = self.table("fp_rude_users")?;
        let keys = table.handle().keys();
        let pair = |key: fp_rude_user| (key.rule_id, key.user);
        Ok(keys.filter_map(|key| value_of(&key)).map(pair).collect())
    }

    /// Whoever is not wanted goes first.
    pub(crate) fn set_rude_users(&self, wanted: &HashSet<(u32, u32)>) -> Result<(), KernelError> {
        let table = self.table("fp_rude_users")?;
        let permitted = self.rude_users()?;
        let key = |(rule_id, user): &(u32, u32)| fp_rude_user {
            rule_id: *rule_id,
            user: *user,
        };
        let failed = || KernelError::bpf("write the users who may be rude");
        for gone in permitted.difference(wanted) {
            table
                .handle()
                .delete(key(gone).as_bytes())
                .map_err(failed())?;
        }
        for new in wanted.difference(&permitted) {
            table
                .handle()
                .update(key(new).as_bytes(), 1u32.as_bytes(), MapFlags::ANY)
                .map_err(failed())?;
        }
        Ok(())
    }
}

/// The number of a user; `None`: this host knows no such name.
pub fn user_number(user: &User) -> Option<u32> {
    match user {
        User::Id(number) => Some(*number),
        User::Name(name) => account(name).map(|account| account.user),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_numbers() {
        assert_eq!(user_number(&User::Name("root".into())), Some(0));
        assert_eq!(user_number(&User::Id(77)), Some(77));
        assert_eq!(user_number(&User::Name("no-such-user".into())), None);
    }

    #[test]
    fn marks_are_read_as_they_are_shown() {
        for text in ["0x100", "0x800", "dscp=1", "dscp=63"] {
            let mark: RudeMark = text.parse().expect("it is a mark");
            assert_eq!(mark.to_string(), text);
        }
        for text in [
            "", "0x", "0x300", "0x80", "dscp=0", "dscp=64", "512", "dscp=",
        ] {
            assert!(text.parse::<RudeMark>().is_err(), "{text}");
        }
        assert_eq!(RudeMark::default().to_string(), "0x200");
    }
}
