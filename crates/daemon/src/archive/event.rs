// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes an event of the archive.

use super::Archive;
use fatpath_api::{Applied, FlowLogLine, TuneQuery};
use fatpath_archive::{Event, Kind};
use fatpath_clock::now_us;
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::Ordering;

impl Archive {
    /// A tuned flow ended. Of the flows that moved little, one in so many is kept, and stands for all of them.
    pub(crate) fn put_flow(&self, line: &FlowLogLine) {
        let Some(settings) = self.settings() else {
            return;
        };
        let measures = &line.flow.measures;
        let bytes = measures.bytes_acked.max(measures.bytes_received);
        let weight = match bytes >= settings.every_flow_bytes {
            true => 1,
            false => settings.one_in,
        };
        let is_chosen = || {
            self.small_flows
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(weight)
        };
        if weight > 1 && !is_chosen() {
            return;
        }
        let mut event = event_now("flow.end", line);
        event.peer = Some(line.flow.flow.remote.ip());
        event.rule.clone_from(&line.flow.rule);
        event.value = Some(bytes as f64);
        event.weight = weight;
        self.put(Kind::Flow, event);
    }
}

pub(crate) fn event_now(name: &str, body: &impl Serialize) -> Event {
    Event {
        time_us: now_us(),
        name: name.to_owned(),
        peer: None,
        rule: None,
        value: None,
        weight: 1,
        // What the daemon describes has nothing that JSON cannot say.
        body: serde_json::to_string(body).unwrap_or_default(),
    }
}

/// A policy became live: what flows get is another from now on.
pub(crate) fn policy_applied(file: &str, applied: &Applied) -> Event {
    let mut event = event_now(
        "policy.applied",
        &json!({ "file": file, "applied": applied }),
    );
    event.value = Some(applied.rules as f64);
    event
}

/// A live flow was given settings by hand, or has its rule's again.
pub(crate) fn flow_tuned(asked: &TuneQuery) -> Event {
    let mut event = event_now("flow.tuned", asked);
    event.peer = Some(asked.remote.ip());
    event
}

/// What was learned of paths became live: other rules than before. `paths` have changed with it.
pub(crate) fn learned_applied(rules: &[&str], paths: usize) -> Event {
    let body = json!({ "rules": rules, "paths": paths });
    let mut event = event_now("paths.applied", &body);
    event.value = Some(rules.len() as f64);
    event
}
