// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of the table as a terminal shows it: so many lines, of those that a filter lets pass, in an order.
//!
//! The daemon makes it, so that who looks at forty of 20,000 flows is told of forty. Start at [`listing()`].

use fatpath_api::{FlowView, Listing, ListingQuery, Shares};
use std::cmp::Reverse;

/// Lines in one answer.
const MAX_LINES: usize = 500;

/// A column: what it is called in a question, its heading, its text, and what it is sorted by.
pub struct Column {
    /// `by` of [`ListingQuery`].
    pub name: &'static str,
    /// As it stands over the column.
    pub heading: &'static str,
    /// As it stands in a line.
    pub text: fn(&FlowView) -> String,
    key: Key,
}

enum Key {
    Text,
    /// The largest first.
    Number(fn(&FlowView) -> f64),
}

/// The column that tables are sorted by at first.
const RATE: usize = 4;

/// From left to right.
pub const COLUMNS: [Column; 11] = [
    text("local", "LOCAL", |v| v.flow.local.to_string()),
    text("remote", "REMOTE", |v| v.flow.remote.to_string()),
    text("rule", "RULE", |v| {
        v.rule.clone().unwrap_or_else(|| "-".into())
    }),
    text("law", "LAW", |v| v.sample.law.to_string()),
    number(
        "rate",
        "Mb/s",
        |v| format!("{:.1}", rate_bps(v) / 1e6),
        rate_bps,
    ),
    number(
        "average",
        "AVERAGE",
        |v| format!("{:.1}", v.rates.average_bps / 1e6),
        |v| v.rates.average_bps,
    ),
    number("rtt", "RTT ms", |v| format!("{:.1}", rtt_ms(v)), rtt_ms),
    number(
        "cwnd",
        "CWND",
        |v| v.sample.cwnd_pkts.to_string(),
        |v| v.sample.cwnd_pkts.into(),
    ),
    number(
        "retransmitted",
        "RETR %",
        |v| format!("{:.2}", retransmitted(v)),
        retransmitted,
    ),
    text("held_by", "HELD BY", |v| held_by(&v.shares).to_owned()),
    text("findings", "FINDINGS", findings),
];

const fn text(name: &'static str, heading: &'static str, text: fn(&FlowView) -> String) -> Column {
    Column {
        name,
        heading,
        text,
        key: Key::Text,
    }
}

const fn number(
    name: &'static str,
    heading: &'static str,
    text: fn(&FlowView) -> String,
    value: fn(&FlowView) -> f64,
) -> Column {
    Column {
        name,
        heading,
        text,
        key: Key::Number(value),
    }
}

impl Column {
    /// The column of that name.
    pub fn named(name: &str) -> Option<&'static Column> {
        COLUMNS.iter().find(|column| column.name == name)
    }

    /// The column to sort by; by rate where `by` is no column's name.
    pub fn of(wanted: &ListingQuery) -> &'static Column {
        Column::named(&wanted.by).unwrap_or(&COLUMNS[RATE])
    }

    /// It stands to the right.
    pub fn is_number(&self) -> bool {
        matches!(self.key, Key::Number(_))
    }

    /// Sorts; flows that are equal stay as they are. A text is made once a flow, not once a comparison.
    fn sort(&self, views: &mut [FlowView], is_reversed: bool) {
        match (&self.key, is_reversed) {
            (Key::Text, false) => views.sort_by_cached_key(self.text),
            (Key::Text, true) => views.sort_by_cached_key(|view| Reverse((self.text)(view))),
            (Key::Number(value), false) => views.sort_by(|a, b| value(b).total_cmp(&value(a))),
            (Key::Number(value), true) => views.sort_by(|a, b| value(a).total_cmp(&value(b))),
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
    let largest = shares
        .named()
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1));
    largest.map_or("-", |(name, _)| name)
}

/// What is wanted, of these flows; `by` is no column's name: by rate.
pub fn listing(views: impl Iterator<Item = FlowView>, wanted: &ListingQuery) -> Listing {
    let filter = wanted.filter.to_lowercase();
    let mut known = 0;
    let mut views: Vec<FlowView> = views
        .inspect(|_| known += 1)
        .filter(|view| wanted.ended || !view.has_ended)
        .filter(|view| passes(view, &filter))
        .collect();
    sort(&mut views, wanted);
    let line = chosen_line(&views, wanted);
    let count = wanted.count.clamp(1, MAX_LINES);
    let passing = views.len();
    let first = first_line(wanted.first, count, line).min(passing.saturating_sub(count));
    Listing {
        known,
        passing,
        first,
        chosen: line.map(|line| views[line].flow.cookie),
        views: views.into_iter().skip(first).take(count).collect(),
    }
}

fn passes(view: &FlowView, filter: &str) -> bool {
    filter.is_empty() || line(view).to_lowercase().contains(filter)
}

fn line(view: &FlowView) -> String {
    COLUMNS.map(|column| (column.text)(view)).join(" ")
}

/// Flows that ended stand below those that live, whatever the order: a host's many short connections
/// would otherwise push them off the screen.
fn sort(views: &mut [FlowView], wanted: &ListingQuery) {
    let column = Column::of(wanted);
    views.sort_by_key(|view| view.flow.cookie);
    column.sort(views, wanted.reversed);
    views.sort_by_key(|view| view.has_ended);
}

/// The chosen flow stays chosen wherever sorting puts it.
fn chosen_line(views: &[FlowView], wanted: &ListingQuery) -> Option<usize> {
    let is_it = |view: &FlowView| Some(view.flow.cookie) == wanted.chosen;
    let last = views.len().checked_sub(1)?;
    match views.iter().position(is_it) {
        Some(line) => Some(line.saturating_add_signed(wanted.step as isize).min(last)),
        None => (wanted.step != 0).then_some(0),
    }
}

fn first_line(first: usize, count: usize, chosen: Option<usize>) -> usize {
    match chosen {
        Some(line) => first.clamp((line + 1).saturating_sub(count), line),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use crate::{Bounds, FlowTable};
    use fatpath_api::{Sample, SampleKind};

    /// Flows 1 to n, each with a window of its number.
    fn table(n: u64) -> FlowTable {
        let mut table = FlowTable::new(Bounds::default());
        for cookie in 1..=n {
            table.take(Sample {
                cwnd_pkts: cookie as u32,
                law: if cookie % 2 == 0 { "even" } else { "odd" }.into(),
                ..sample(cookie, SampleKind::Interval, 0)
            });
        }
        table
    }

    fn by_cwnd() -> ListingQuery {
        ListingQuery {
            by: "cwnd".into(),
            count: 3,
            ..ListingQuery::default()
        }
    }

    fn listed(table: &FlowTable, wanted: &ListingQuery) -> (Vec<u64>, Option<u64>) {
        let listing = listing(table.views(), wanted);
        let cookies = listing.views.iter().map(|view| view.flow.cookie);
        (cookies.collect(), listing.chosen)
    }

    #[test]
    fn only_the_lines_that_are_wanted_come_in_their_order() {
        let table = table(10);
        assert_eq!(listed(&table, &by_cwnd()), (vec![10, 9, 8], None));
        let reversed = ListingQuery {
            reversed: true,
            first: 2,
            ..by_cwnd()
        };
        assert_eq!(listed(&table, &reversed).0, [3, 4, 5]);
        let past_the_end = ListingQuery {
            first: 1000,
            ..by_cwnd()
        };
        assert_eq!(listed(&table, &past_the_end).0, [3, 2, 1]);
        let all = ListingQuery {
            count: usize::MAX,
            ..by_cwnd()
        };
        assert_eq!(listed(&self::table(600), &all).0.len(), MAX_LINES);
    }

    #[test]
    fn a_filter_is_any_text_of_a_line() {
        let table = table(10);
        let even = ListingQuery {
            filter: "EVEN".into(),
            ..by_cwnd()
        };
        let listing = listing(table.views(), &even);
        assert_eq!((listing.known, listing.passing), (10, 5));
        let none = ListingQuery {
            filter: "nowhere".into(),
            step: 1,
            ..by_cwnd()
        };
        assert_eq!(listed(&table, &none), (vec![], None));
    }

    #[test]
    fn the_lines_follow_the_chosen_flow() {
        let table = table(10);
        let choose = |chosen, step, first| ListingQuery {
            chosen,
            step,
            first,
            ..by_cwnd()
        };
        assert_eq!(
            listed(&table, &choose(None, 1, 0)),
            (vec![10, 9, 8], Some(10))
        );
        assert_eq!(
            listed(&table, &choose(Some(8), 1, 0)),
            (vec![9, 8, 7], Some(7))
        );
        assert_eq!(
            listed(&table, &choose(Some(8), -1, 2)),
            (vec![9, 8, 7], Some(9))
        );
        assert_eq!(
            listed(&table, &choose(Some(8), 99, 0)),
            (vec![3, 2, 1], Some(1))
        );
        assert_eq!(
            listed(&table, &choose(Some(8), -99, 0)),
            (vec![10, 9, 8], Some(10))
        );
        assert_eq!(listed(&table, &choose(Some(77), 0, 0)).1, None);
    }

    #[test]
    fn ended_flows_come_when_wanted_and_below_those_that_live() {
        let mut table = table(2);
        table.take(Sample {
            cwnd_pkts: 9,
            ..sample(2, SampleKind::End, 1)
        });
        assert_eq!(listed(&table, &by_cwnd()).0, [1]);
        let ended = ListingQuery {
            ended: true,
            ..by_cwnd()
        };
        assert_eq!(listed(&table, &ended).0, [1, 2]);
    }
}
