// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that divide their buffers: their flows are counted, and each is given its share.
//!
//! The kernel half adds a flow that begins and takes off one that ends. Flows that are idle, or whose end it cannot
//! hear of (those that it adopted, before Linux 6.12), are known by counting all.

use crate::abi::{self, fp_divided};
use crate::handle::Kernel;
use crate::pins::LINK_LIST_DIVIDED;
use crate::pod::value_of;
use crate::tune::flow::tick_us;
use crate::tune::walk::Mode;
use crate::{KernelError, Walked};
use fatpath_policy::{Rule, Setting};
use std::collections::HashSet;
use std::sync::PoisonError;

/// A flow that carried no data for so long takes no share.
const IDLE_AFTER_US: u64 = 5_000_000;

impl Kernel {
    /// Counts the flows of the rules that divide, and gives each its present share. Where no rule of the policy that
    /// was published last divides, nothing is done.
    ///
    /// # Errors
    /// When the maps or links are gone.
    pub fn share_again(&self) -> Result<Walked, KernelError> {
        let divided = self.divided_rules();
        if divided.is_empty() {
            return Ok(Walked::default());
        }
        let flows = self.count_divided()?;
        self.set_shares(&divided, &flows)?;
        let namespaces: HashSet<u32> = flows.iter().map(|flow| flow.netns).collect();
        self.walk_some(Mode::Share, |netns| namespaces.contains(&netns))
    }

    /// To be called when these rules are live; `ids` are theirs.
    pub(crate) fn note_divided(&self, rules: &[Rule], ids: &[u32]) {
        let divides = |rule: &Rule| rule.settings.is_on(Setting::Divide);
        let divided = rules.iter().zip(ids).filter(|(rule, _)| divides(rule));
        let divided = divided.map(|(_, id)| *id).collect();
        *self.divided.lock().unwrap_or_else(PoisonError::into_inner) = divided;
    }

    fn divided_rules(&self) -> HashSet<u32> {
        let divided = self.divided.lock();
        divided.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count_divided(&self) -> Result<Vec<fp_divided>, KernelError> {
        let idle_ticks = (IDLE_AFTER_US / tick_us()) as u32;
        self.table("fp_idle_ticks")?.set(0, &idle_ticks)?;
        let written = self.list(LINK_LIST_DIVIDED)?;
        let records = written.chunks_exact(size_of::<fp_divided>());
        Ok(records.filter_map(value_of).collect())
    }

    /// A flow that begins or ends meanwhile is counted wrongly until the next time, which its event brings about.
    fn set_shares(&self, divided: &HashSet<u32>, flows: &[fp_divided]) -> Result<(), KernelError> {
        let shares = self.table("fp_shares")?;
        for rule_id in divided {
            let counted = |flow: &&fp_divided| flow.rule_id == *rule_id && flow.is_counted != 0;
            let flows = flows.iter().filter(counted).count() as u64;
            shares.set(*rule_id, &abi::fp_share { flows })?;
        }
        Ok(())
    }
}
