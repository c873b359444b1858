// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a link: cells in a row, which is a cell again.
//!
//! Each packet enters the next cell at the very moment at which it left the last one, even when the
//! caller asks late. So lateness of the caller never adds up along the chain.

use crate::departures::Departures;
use crate::{Cell, CellSpec, ChainSpec, Count, Counters, Departure, Packet, SpecError};

/// Cells in a row. A chain of none passes everything at once.
pub struct Chain<P> {
    cells: Vec<Box<dyn Cell<P>>>,
    passed: Departures<P>,
    arrived: Count,
    left: Count,
}

impl<P: Packet> Chain<P> {
    /// A chain of `cells`, which packets pass in that order.
    pub fn new(cells: Vec<Box<dyn Cell<P>>>) -> Self {
        Chain {
            cells,
            passed: Departures::new(),
            arrived: Count::default(),
            left: Count::default(),
        }
    }

    /// The counters of each cell, in order.
    pub fn cell_counters(&self) -> impl Iterator<Item = Counters> {
        self.cells.iter().map(|cell| cell.counters())
    }

    /// Takes on `spec` from `now_ns` on: cells of the same effects, in the same order, take on its
    /// parameters and keep what they hold; cells that `spec` has beside them are put in; cells that it
    /// has no more do nothing from then on.
    pub fn adopt(&mut self, now_ns: u64, spec: &ChainSpec) -> Result<(), SpecError> {
        spec.check()?;
        self.advance(now_ns);
        for (cell, spec) in self.cells.iter_mut().zip(&spec.cells) {
            cell.change(now_ns, spec);
        }
        Ok(())
    }

    /// Hands every packet that is due by `now_ns` on from cell to cell, in order of time.
    fn advance(&mut self, now_ns: u64) {
        while let Some(index) = self
            .next_cell()
            .filter(|next| next.0 <= now_ns)
            .map(|next| next.1)
        {
            if let Some(departure) = self.cells[index].pop(now_ns) {
                self.enter(index + 1, departure.at_ns, departure.packet);
            }
        }
    }

    fn enter(&mut self, index: usize, now_ns: u64, packet: P) {
        match self.cells.get_mut(index) {
            Some(cell) => cell.push(now_ns, packet),
            None => self.passed.push(now_ns, packet),
        }
    }

    /// The moment and the index of the cell that is due first; of several, the last in the chain, so
    /// that what leaves a cell at some moment has left it before something arrives there.
    fn next_cell(&self) -> Option<(u64, usize)> {
        let due = |index: usize| Some((self.cells[index].next_due_ns()?, index));
        (0..self.cells.len())
            .rev()
            .filter_map(due)
            .min_by_key(|next| next.0)
    }
}

impl<P: Packet> Cell<P> for Chain<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.advance(now_ns);
        self.arrived.add(packet.wire());
        self.enter(0, now_ns, packet);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.passed
            .next_due_ns()
            .or_else(|| self.next_cell().map(|next| next.0))
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        self.advance(now_ns);
        let departure = self.passed.pop(now_ns)?;
        self.left.add(departure.packet.wire());
        Some(departure)
    }

    fn counters(&self) -> Counters {
        let mut total = Counters::passed(self.arrived, self.left);
        self.cell_counters()
            .for_each(|cell| total.add_effects(&cell));
        total
    }

    fn held(&self) -> Count {
        let mut held = self.passed.held();
        self.cells.iter().for_each(|cell| held += cell.held());
        held
    }

    /// A chain is no single effect; see [`Chain::adopt`].
    fn change(&mut self, _now_ns: u64, _spec: &CellSpec) -> bool {
        false
    }
}
