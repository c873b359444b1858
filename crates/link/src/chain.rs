// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a link: cells in a row, which is a cell again.
//!
//! Each packet enters the next cell at the very moment at which it left the last one, even when the
//! caller asks late. So lateness of the caller never adds up along the chain.

use crate::alignment::{Step, align};
use crate::departures::Departures;
use crate::random::Random;
use crate::{Cell, CellSpec, ChainSpec, Count, Counters, Departure, Packet, SpecError};

/// Never.
const NEVER: u64 = u64::MAX;

/// Cells in a row. A chain of none passes everything at once.
pub struct Chain<P> {
    stages: Vec<Stage<P>>,
    /// When each cell is due, kept beside them since it is looked at far more often than it changes.
    dues: Vec<Due>,
    /// Cells ever made, which numbers their random streams.
    made: u64,
    passed: Departures<P>,
    arrived: Count,
    left: Count,
}

#[derive(Clone, Copy)]
struct Due {
    at_ns: u64,
    /// The least that a packet which leaves this cell takes until anything of it shows outside.
    behind_ns: u64,
}

struct Stage<P> {
    cell: Box<dyn Cell<P>>,
    spec: CellSpec,
    /// Named by the spec that was adopted last; if not, it does nothing.
    active: bool,
}

impl ChainSpec {
    /// The chain. A chain of no cells passes everything at once.
    pub fn build<P: Packet + 'static>(&self) -> Result<Chain<P>, SpecError> {
        let mut chain = Chain::empty();
        chain.adopt(0, self)?;
        Ok(chain)
    }
}

impl<P: Packet + 'static> Chain<P> {
    pub(crate) fn empty() -> Self {
        Chain {
            stages: Vec::new(),
            dues: Vec::new(),
            made: 0,
            passed: Departures::new(),
            arrived: Count::default(),
            left: Count::default(),
        }
    }

    /// Takes on `spec` from `now_ns` on: cells of the same effects, in the same order, take on its
    /// parameters and keep what they hold; cells that `spec` has beside them are put in; cells that it
    /// has no more do nothing from then on, and stay. Of the ways to match cells, the one is taken
    /// that keeps most of them.
    ///
    /// Fails, and changes nothing, if the spec is out of range.
    pub fn adopt(&mut self, now_ns: u64, spec: &ChainSpec) -> Result<(), SpecError> {
        spec.check()?;
        self.advance(now_ns);
        let known: Vec<_> = self
            .stages
            .iter()
            .map(|stage| (&stage.spec, stage.active))
            .collect();
        let steps = align(&known, &spec.cells);
        let mut stages = std::mem::take(&mut self.stages).into_iter();
        let mut specs = spec.cells.iter();
        for step in steps {
            let next = match step {
                Step::Change => stages
                    .next()
                    .zip(specs.next())
                    .map(|(stage, spec)| stage.take_on(now_ns, spec.clone(), true)),
                Step::Neutralise => stages.next().map(|stage| {
                    let neutral = stage.spec.neutral();
                    stage.take_on(now_ns, neutral, false)
                }),
                Step::Insert => specs.next().map(|cell| self.make(cell, spec.seed)),
            };
            self.stages.extend(next);
        }
        self.look_again();
        Ok(())
    }

    fn look_again(&mut self) {
        let mut behind_ns = 0;
        self.dues.clear();
        for stage in self.stages.iter().rev() {
            let at_ns = stage.cell.next_due_ns().unwrap_or(NEVER);
            self.dues.push(Due { at_ns, behind_ns });
            behind_ns = stage.spec.least_ns(behind_ns);
        }
        self.dues.reverse();
    }

    fn make(&mut self, spec: &CellSpec, seed: u64) -> Stage<P> {
        let random = Random::stream(seed, self.made);
        self.made += 1;
        Stage {
            cell: spec.build(random),
            spec: spec.clone(),
            active: true,
        }
    }
}

impl<P: Packet> Stage<P> {
    fn take_on(mut self, now_ns: u64, spec: CellSpec, active: bool) -> Self {
        self.cell.change(now_ns, &spec);
        Stage {
            spec,
            active,
            ..self
        }
    }
}

impl<P: Packet> Chain<P> {
    /// The counters of each cell, in order: of those of the spec that the chain was built from, and
    /// whatever it adopted since.
    pub fn cell_counters(&self) -> impl Iterator<Item = Counters> {
        self.stages.iter().map(|stage| stage.cell.counters())
    }

    /// Hands every packet that is due by `now_ns` on from cell to cell, in order of time. No cell is
    /// let ahead of the others: what it meets later may still be on its way to it.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        while let Some(departure) = self.next_to_leave(now_ns) {
            self.passed.push(departure.at_ns, departure.packet);
        }
    }

    /// Lets packets go on until one that is due by `now_ns` leaves the last cell.
    #[inline]
    fn next_to_leave(&mut self, now_ns: u64) -> Option<Departure<P>> {
        while let Some((due_ns, index)) = self.next_cell().filter(|next| next.0 <= now_ns) {
            let departure = self.stages[index].cell.pop(due_ns);
            self.look_at(index);
            match departure {
                Some(departure) if index + 1 == self.stages.len() => return Some(departure),
                Some(departure) => self.enter(index + 1, departure.at_ns, departure.packet),
                None => {}
            }
        }
        None
    }

    fn enter(&mut self, index: usize, now_ns: u64, packet: P) {
        match self.stages.get_mut(index) {
            Some(stage) => {
                stage.cell.push(now_ns, packet);
                self.look_at(index);
            }
            None => self.passed.push(now_ns, packet),
        }
    }

    fn look_at(&mut self, index: usize) {
        self.dues[index].at_ns = self.stages[index].cell.next_due_ns().unwrap_or(NEVER);
    }

    /// The moment and the index of the cell that is due first; of several, the last in the chain, so
    /// that what leaves a cell at some moment has left it before something arrives there.
    #[inline]
    fn next_cell(&self) -> Option<(u64, usize)> {
        let mut next = (NEVER, 0);
        for (index, due) in self.dues.iter().enumerate() {
            if due.at_ns <= next.0 {
                next = (due.at_ns, index);
            }
        }
        (next.0 < NEVER).then_some(next)
    }
}

impl<P: Packet> Cell<P> for Chain<P> {
    fn push(&mut self, now_ns: u64, packet: P) {
        self.advance(now_ns);
        self.arrived.add(packet.wire());
        self.enter(0, now_ns, packet);
    }

    /// Before a cell in the middle is due, but a delay behind it that nothing gets around, the caller
    /// need not come.
    fn next_due_ns(&self) -> Option<u64> {
        let shows_ns = |due: &Due| due.at_ns.saturating_add(due.behind_ns);
        let cells_ns = || self.dues.iter().map(shows_ns).min();
        let next_ns = self.passed.next_due_ns().or_else(cells_ns)?;
        (next_ns < NEVER).then_some(next_ns)
    }

    fn pop(&mut self, now_ns: u64) -> Option<Departure<P>> {
        let departure = match self.passed.pop(now_ns) {
            Some(departure) => departure,
            None => self.next_to_leave(now_ns)?,
        };
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
        self.stages
            .iter()
            .for_each(|stage| held += stage.cell.held());
        held
    }

    /// A chain is no single effect; see [`Chain::adopt`].
    fn change(&mut self, _now_ns: u64, _spec: &CellSpec) -> bool {
        false
    }

    /// Of its deepest queue.
    fn take_peak_bytes(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        let peaks = self.stages.iter_mut();
        let peaks = peaks.map(|stage| stage.cell.take_peak_bytes(now_ns));
        peaks.max().unwrap_or_default()
    }

    fn pop_reply(&mut self) -> Option<P> {
        let mut stages = self.stages.iter_mut();
        stages.find_map(|stage| stage.cell.pop_reply())
    }
}
