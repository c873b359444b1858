// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which flows the table shows, in which order, and which one is chosen.

use fatpath_estats::{FlowView, Shares};
use std::cmp::Ordering;

/// A column: its heading, its text, and what it is sorted by.
pub struct Column {
    pub heading: &'static str,
    pub width: u16,
    pub text: fn(&FlowView) -> String,
    key: Key,
}

enum Key {
    Text,
    Number(fn(&FlowView) -> f64),
}

/// From left to right.
pub const COLUMNS: [Column; 11] = [
    text("LOCAL", 21, |v| v.flow.local.to_string()),
    text("REMOTE", 21, |v| v.flow.remote.to_string()),
    text("RULE", 12, |v| v.rule.clone().unwrap_or_else(|| "-".into())),
    text("LAW", 10, |v| v.sample.law.to_string()),
    number("Mb/s", 8, |v| format!("{:.1}", rate_bps(v) / 1e6), rate_bps),
    number(
        "AVERAGE",
        8,
        |v| format!("{:.1}", v.rates.average_bps / 1e6),
        |v| v.rates.average_bps,
    ),
    number("RTT ms", 7, |v| format!("{:.1}", rtt_ms(v)), rtt_ms),
    number(
        "CWND",
        6,
        |v| v.sample.cwnd_pkts.to_string(),
        |v| v.sample.cwnd_pkts.into(),
    ),
    number(
        "RETR %",
        6,
        |v| format!("{:.2}", retransmitted(v)),
        retransmitted,
    ),
    text("HELD BY", 11, |v| held_by(&v.shares).to_owned()),
    text("FINDINGS", 30, findings),
];

/// The column that the table begins with: the fastest first.
const RATE: usize = 4;

const fn text(heading: &'static str, width: u16, text: fn(&FlowView) -> String) -> Column {
    Column {
        heading,
        width,
        text,
        key: Key::Text,
    }
}

const fn number(
    heading: &'static str,
    width: u16,
    text: fn(&FlowView) -> String,
    value: fn(&FlowView) -> f64,
) -> Column {
    Column {
        heading,
        width,
        text,
        key: Key::Number(value),
    }
}

impl Column {
    pub fn is_number(&self) -> bool {
        matches!(self.key, Key::Number(_))
    }

    fn order(&self, a: &FlowView, b: &FlowView) -> Ordering {
        match self.key {
            Key::Text => (self.text)(a).cmp(&(self.text)(b)),
            Key::Number(value) => value(b).total_cmp(&value(a)),
        }
    }
}

fn rate_bps(view: &FlowView) -> f64 {
    view.rates.goodput_bps.max(view.rates.received_bps)
}

fn rtt_ms(view: &FlowView) -> f64 {
    f64::from(view.sample.srtt_us) / 1000.0
}

fn retransmitted(view: &FlowView) -> f64 {
    view.rates.retransmitted_share * 100.0
}

fn findings(view: &FlowView) -> String {
    let ids: Vec<&str> = view
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect();
    ids.join(" ")
}

/// The largest share.
fn held_by(shares: &Shares) -> &'static str {
    let named = [
        ("application", shares.application),
        ("send buffer", shares.send_buffer),
        ("receiver", shares.receiver),
        ("timer", shares.timeout),
        ("network", shares.network),
    ];
    let largest = named.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    largest.map_or("-", |(name, _)| name)
}

/// The table's state.
pub struct List {
    views: Vec<FlowView>,
    /// Indices of those that are shown, in order.
    shown: Vec<usize>,
    pub filter: String,
    pub is_typing: bool,
    pub sort: usize,
    is_reversed: bool,
    has_ended: bool,
    /// Its number, for it stays chosen wherever sorting puts it.
    chosen: Option<u64>,
}

impl Default for List {
    fn default() -> List {
        List {
            views: Vec::new(),
            shown: Vec::new(),
            filter: String::new(),
            is_typing: false,
            sort: RATE,
            is_reversed: false,
            has_ended: false,
            chosen: None,
        }
    }
}

impl List {
    pub fn set(&mut self, views: Vec<FlowView>) {
        self.views = views;
        self.arrange();
    }

    pub fn filter_by(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.arrange();
    }

    /// The next column, or the one before.
    pub fn sort_by(&mut self, step: isize) {
        let columns = COLUMNS.len() as isize;
        self.sort = (self.sort as isize + step).rem_euclid(columns) as usize;
        self.arrange();
    }

    pub fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.arrange();
    }

    pub fn show_ended(&mut self) {
        self.has_ended = !self.has_ended;
        self.arrange();
    }

    /// Moves the choice by so many lines.
    pub fn choose(&mut self, lines: isize) {
        let at = self.chosen_line().map_or(0, |line| line as isize + lines);
        let at = at.clamp(0, self.shown.len().saturating_sub(1) as isize);
        let view = self.shown.get(at as usize).map(|index| &self.views[*index]);
        self.chosen = view.map(|view| view.flow.cookie);
    }

    pub fn shown(&self) -> impl Iterator<Item = &FlowView> {
        self.shown.iter().map(|index| &self.views[*index])
    }

    /// Of all that are known.
    pub fn counts(&self) -> (usize, usize) {
        (self.shown.len(), self.views.len())
    }

    pub fn chosen_line(&self) -> Option<usize> {
        self.shown()
            .position(|view| Some(view.flow.cookie) == self.chosen)
    }

    pub fn chosen(&self) -> Option<&FlowView> {
        self.shown()
            .find(|view| Some(view.flow.cookie) == self.chosen)
    }

    fn arrange(&mut self) {
        let wanted = self.filter.to_lowercase();
        let is_shown = |view: &FlowView| {
            (self.has_ended || !view.has_ended)
                && (wanted.is_empty() || line(view).to_lowercase().contains(&wanted))
        };
        let mut shown: Vec<usize> = (0..self.views.len())
            .filter(|index| is_shown(&self.views[*index]))
            .collect();
        let column = &COLUMNS[self.sort];
        shown.sort_by(|a, b| {
            let (a, b) = (&self.views[*a], &self.views[*b]);
            let order = column.order(a, b);
            let order = if self.is_reversed {
                order.reverse()
            } else {
                order
            };
            order.then(a.flow.cookie.cmp(&b.flow.cookie))
        });
        self.shown = shown;
    }
}

fn line(view: &FlowView) -> String {
    COLUMNS.map(|column| (column.text)(view)).join(" ")
}
