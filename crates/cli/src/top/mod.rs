// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath top`: the live table of flows in the terminal. The daemon sorts and filters, and sends the lines that
//! are seen; [`list`] asks for them, [`screen`] draws them.

mod columns;
mod list;
mod screen;

use crate::interval::interval;
use crate::not_running::not_running;
use crate::observed::Observed;
use anyhow::{Context, Result, ensure};
use clap::Args;
use fatpath_api::endpoint::GetListing;
use fatpath_daemon::{Instance, client};
use list::List;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::{IsTerminal, stdin, stdout};
use std::time::{Duration, Instant};

pub const HELP: &str = "\
Keys: arrows, Page Up and Page Down choose a flow, and its findings are shown
below the table; s and S change the column to sort by, r reverses the order; /
filters by any text of a line (address, rule, law, finding), Esc clears the
filter; e shows ended flows too; ? shows the keys; q quits. A narrow terminal
gets fewer columns; both addresses stay.";

#[derive(Args)]
pub struct Arguments {
    /// Seconds between two readings
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub interval: f64,
    #[command(flatten)]
    pub of: Observed,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        stdin().is_terminal() && stdout().is_terminal(),
        "top needs a terminal; without one use `fatpath why` or `fatpath flows`"
    );
    let instance = arguments.of.instance()?;
    let mut list = List::default();
    read(&mut list, &instance, 1)?;
    let interval = Duration::from_secs_f64(arguments.interval);
    let mut terminal = ratatui::try_init()?;
    let followed = follow(&mut terminal, &mut list, &instance, interval);
    ratatui::try_restore()?;
    followed
}

fn read(list: &mut List, instance: &Instance, lines: usize) -> Result<()> {
    let listing = client::ask::<GetListing>(&instance.socket(), &list.query(lines))?
        .with_context(|| not_running(instance))?;
    list.set(listing);
    Ok(())
}

fn follow(
    terminal: &mut DefaultTerminal,
    list: &mut List,
    instance: &Instance,
    interval: Duration,
) -> Result<()> {
    loop {
        let lines = screen::lines(terminal.size()?.height, list);
        read(list, instance, lines)?;
        let was_read = Instant::now();
        terminal.draw(|frame| screen::draw(frame, list))?;
        // Until the next reading is due, or a key asks for another one.
        while event::poll(interval.saturating_sub(was_read.elapsed()))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if !press(list, key) {
                        return Ok(());
                    }
                    break;
                }
                Event::Resize(..) => break,
                _ => {}
            }
        }
    }
}

/// Answers whether to go on.
fn press(list: &mut List, key: KeyEvent) -> bool {
    let is_control_c = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    if is_control_c {
        return false;
    }
    match (list.is_typing, key.code) {
        (true, KeyCode::Char(c)) => list.filter_by(|filter| filter.push(c)),
        (true, KeyCode::Backspace) => list.filter_by(pop),
        (true, KeyCode::Enter) => list.is_typing = false,
        (_, KeyCode::Esc) => {
            (list.is_typing, list.shows_keys) = (false, false);
            list.filter_by(String::clear);
        }
        (_, KeyCode::Up) => list.choose(-1),
        (_, KeyCode::Down) => list.choose(1),
        (_, KeyCode::PageUp) => list.choose(-20),
        (_, KeyCode::PageDown) => list.choose(20),
        (false, KeyCode::Char('/')) => list.is_typing = true,
        (false, KeyCode::Char('s')) => list.sort_by(1),
        (false, KeyCode::Char('S')) => list.sort_by(-1),
        (false, KeyCode::Char('r')) => list.reverse(),
        (false, KeyCode::Char('e')) => list.show_ended(),
        (false, KeyCode::Char('?')) => list.shows_keys = !list.shows_keys,
        (false, KeyCode::Char('q')) => return false,
        _ => {}
    }
    true
}

fn pop(filter: &mut String) {
    filter.pop();
}
