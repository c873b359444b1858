// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest events of a flow. What is seldom outlives what is frequent.

use fatpath_api::Finding;
use fatpath_api::{Event, EventKind};
use fatpath_api::{Sample, SampleKind};
use std::collections::VecDeque;

/// A bounded list.
#[derive(Debug)]
pub(crate) struct Events {
    max: usize,
    list: VecDeque<Event>,
}

impl Events {
    pub(crate) fn new(max: usize) -> Events {
        Events {
            max,
            list: VecDeque::new(),
        }
    }

    /// From the next event on.
    pub(crate) fn bound(&mut self, max: usize) {
        self.max = max;
    }

    pub(crate) fn to_vec(&self) -> Vec<Event> {
        self.list.iter().cloned().collect()
    }

    pub(crate) fn begin(&mut self, s: &Sample, rule: Option<&str>) {
        let who = match s.flow.is_adopted {
            true => "was there before fatpath",
            false if s.flow.is_passive => "opened by the peer",
            false => "opened here",
        };
        let law = format!("{who}, {}", s.law);
        self.push(0.0, EventKind::Begin, law);
        if let Some(rule) = rule {
            self.push(0.0, EventKind::Tuned, format!("matched rule {rule}"));
        }
    }

    /// What changed from one sample to the next.
    pub(crate) fn compare(&mut self, before: &Sample, s: &Sample, rule: Option<&str>) {
        let t_s = s.elapsed_s();
        for text in tunings(before, s, rule) {
            self.push(t_s, EventKind::Tuned, text);
        }
        let ends = |s: &Sample| u64::from(s.timeouts) + u64::from(s.subsequent_timeouts);
        let timeouts = ends(s).saturating_sub(ends(before));
        let signals = s.cong_signals.saturating_sub(before.cong_signals);
        let again = s.segs_retrans.saturating_sub(before.segs_retrans);
        if timeouts > 0 {
            let text = format!("{timeouts} after {:.0} ms", f64::from(s.rto_us) / 1000.0);
            self.push(t_s, EventKind::Timeout, text);
        }
        if signals > 0 {
            let text = format!("cwnd {} to {} segments", before.cwnd_pkts, s.cwnd_pkts);
            self.push(t_s, EventKind::Congestion, text);
        }
        if again > 0 {
            self.push(t_s, EventKind::Retransmission, format!("{again} segments"));
        }
        if s.kind == SampleKind::End {
            let text = format!(
                "{} bytes acknowledged, {} received",
                s.bytes_acked, s.bytes_received
            );
            self.push(t_s, EventKind::End, text);
        }
    }

    /// Findings that were not there at the last look.
    pub(crate) fn findings(&mut self, s: &Sample, before: &[Finding], now: &[Finding]) {
        for finding in now {
            if before.iter().all(|known| known.id != finding.id) {
                let text = format!("{}: {}", finding.id, finding.title);
                self.push(s.elapsed_s(), EventKind::Finding, text);
            }
        }
    }

    fn push(&mut self, t_s: f64, kind: EventKind, text: String) {
        while self.list.len() >= self.max.max(1) {
            let frequent = self.list.iter().position(|event| is_frequent(event.kind));
            self.list.remove(frequent.unwrap_or(0));
        }
        self.list.push_back(Event { t_s, kind, text });
    }
}

fn is_frequent(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Congestion | EventKind::Retransmission | EventKind::Timeout
    )
}

/// Changes that a rule, the administrator or the program made: the kernel's own tuning locks no buffer.
fn tunings(before: &Sample, s: &Sample, rule: Option<&str>) -> Vec<String> {
    let mut texts = Vec::new();
    if s.flow.rule_id != before.flow.rule_id {
        texts.push(match rule {
            Some(rule) => format!("matched rule {rule}"),
            None => "its rule is gone".to_owned(),
        });
    }
    if s.law != before.law {
        texts.push(format!("{} instead of {}", s.law, before.law));
    }
    if s.send_buffer_is_locked && s.send_buffer_bytes != before.send_buffer_bytes {
        texts.push(format!("send buffer {} bytes", s.send_buffer_bytes));
    }
    if s.receive_buffer_is_locked && s.receive_buffer_bytes != before.receive_buffer_bytes {
        texts.push(format!("receive buffer {} bytes", s.receive_buffer_bytes));
    }
    if s.cwnd_clamp_pkts != before.cwnd_clamp_pkts {
        texts.push(format!("cwnd of {} segments at most", s.cwnd_clamp_pkts));
    }
    if s.is_rude != before.is_rude {
        texts.push(if s.is_rude { "rude" } else { "polite" }.to_owned());
    }
    texts
}
