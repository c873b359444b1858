// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table as it is drawn: flows above, the chosen one's findings below.

use super::columns::fitting;
use super::list::List;
use crate::why;
use fatpath_api::{FlowView, Severity};
use fatpath_estats::listing::Column;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState, Wrap};

/// Lines of the screen that are no flow's: two headings.
const HEADINGS: u16 = 2;

/// Lines for the chosen flow's findings.
const DETAIL: u16 = 10;

/// Flows that a screen of this height has lines for.
pub fn lines(height: u16, list: &List) -> usize {
    let below = below(list);
    height.saturating_sub(HEADINGS + below).max(1).into()
}

pub fn draw(frame: &mut Frame, list: &List) {
    let below = below(list);
    let parts = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(below),
    ];
    let [head, table, detail] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(heading(list), head);
    let mut state = TableState::new().with_selected(list.chosen_line());
    frame.render_stateful_widget(flows(list, table.width), table, &mut state);
    if list.shows_keys {
        frame.render_widget(keys(), detail);
    } else if let Some(view) = list.chosen() {
        frame.render_widget(findings(view), detail);
    }
}

fn below(list: &List) -> u16 {
    match list.shows_keys || list.came.chosen.is_some() {
        true => DETAIL,
        false => 0,
    }
}

fn keys() -> Paragraph<'static> {
    Paragraph::new(super::HELP)
        .wrap(Wrap { trim: false })
        .block(Block::new().borders(Borders::TOP).title(" keys "))
}

fn heading(list: &List) -> Line<'static> {
    let (shown, known) = (list.came.passing, list.came.known);
    let filter = match (list.is_typing, list.filter()) {
        (true, text) => format!("  filter: {text}_"),
        (false, "") => String::new(),
        (false, text) => format!("  filter: {text}"),
    };
    let by = list.sorted_by().heading;
    Line::from(format!(
        "{shown} of {known} flows, by {by}{filter}  (? keys, q end)"
    ))
}

fn flows(list: &List, width: u16) -> Table<'static> {
    let columns = fitting(width, &list.came.views);
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    let heads = columns.iter().map(|(column, _)| {
        let style = if column.name == list.sorted_by().name {
            Style::new().reversed()
        } else {
            Style::new().bold()
        };
        Cell::from(aligned(column, column.heading.to_owned())).style(style)
    });
    let rows = list.came.views.iter().map(|view| row(view, &columns));
    Table::new(rows, widths)
        .header(Row::new(heads))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

fn row(view: &FlowView, columns: &[(&Column, u16)]) -> Row<'static> {
    let cells = columns
        .iter()
        .map(|(column, _)| Cell::from(aligned(column, (column.text)(view))));
    let gravest = view.findings.iter().map(|finding| finding.severity).max();
    let style = match gravest {
        _ if view.has_ended => Style::new().dim(),
        Some(Severity::Problem) => Style::new().red(),
        Some(Severity::Warning) => Style::new().yellow(),
        _ => Style::new(),
    };
    Row::new(cells).style(style)
}

/// Text to the left, numbers to the right.
fn aligned(column: &Column, text: String) -> Text<'static> {
    let side = match column.is_number() {
        true => Alignment::Right,
        false => Alignment::Left,
    };
    Text::from(text).alignment(side)
}

fn findings(view: &FlowView) -> Paragraph<'static> {
    let text = match view.findings.is_empty() {
        true => "no finding".to_owned(),
        false => view.findings.iter().map(why::finding_text).collect(),
    };
    let ends = format!(" {} to {} ", view.flow.local, view.flow.remote);
    Paragraph::new(text)
        .wrap(Wrap { trim: false })
        .block(Block::new().borders(Borders::TOP).title(ends))
}
