// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what a link's tables say to cells: made anew from a file, or changed while traffic runs.
//!
//! Pure. The order of one stage is that of [`Effect`]: large packets are refused before they queue,
//! and what waits, waits before it is lost or travels. Both ways go through the same functions, so a
//! change gives what the file would have given. Start with [`directions`] and [`change`].

use fatpath_link::{
    CellSpec, DelaySpec, Discipline, LossSpec, MtuSpec, QueueSpec, RateSpec, Service,
};

use super::effects::{DisciplineSpec, Stage, corrupt_cell, duplicate_cell};
use super::nominal_rate_bps;
use super::units::QueueLimit;

/// A queue that nobody sized never gets smaller than this: two super-packets of 64 KiB.
const LEAST_DEFAULT_QUEUE_BYTES: u64 = 131_072;
/// A queue in bdp holds one segment at least.
const LEAST_QUEUE_BYTES: u64 = 1_500;
/// What a limit in segments counts as where bytes are wanted.
const SEGMENT_BYTES: u64 = 1_500;

/// The kinds of cells in the order of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    PathMtu,
    Policer,
    Rate,
    Loss,
    Corrupt,
    Duplicate,
    Reorder,
    Delay,
}

/// How much memory a direction's cells take, in entries of a list: 8 to 24 bytes.
pub(super) fn entries(cells: &[CellSpec]) -> usize {
    /// A cell by itself is as large as so many.
    const OF_A_CELL: usize = 8;
    let of_lists = cells.iter().map(|cell| match cell {
        CellSpec::Rate(rate) => match &rate.service {
            Service::Steps { steps, .. } => steps.len(),
            Service::Opportunities { at_ms } => at_ms.len(),
            Service::Unlimited | Service::Constant { .. } => 0,
        },
        CellSpec::Loss(LossSpec::Packets { packets, .. }) => packets.len(),
        CellSpec::Loss(LossSpec::Windows { windows }) => windows.len(),
        _ => 0,
    });
    of_lists.map(|entries| OF_A_CELL + entries).sum()
}

/// What one direction does.
#[derive(Clone, Debug)]
pub(super) enum Course {
    /// One stage; cells that would do nothing are left out.
    Stage(Box<Stage>),
    /// Stages in the order in which packets pass them, idle cells too: they hold a place.
    Cells(Vec<Stage>),
}

impl Course {
    fn stages(&self) -> &[Stage] {
        match self {
            Course::Stage(stage) => std::slice::from_ref(stage),
            Course::Cells(stages) => stages,
        }
    }

    fn cells(&self, rtt_ns: u64) -> Result<Vec<CellSpec>, String> {
        let mut cells = vec![];
        for stage in self.stages() {
            let mut of_stage = vec![];
            stage.put_delay(&mut of_stage)?;
            stage.put_others(&mut of_stage, rtt_ns)?;
            cells.append(&mut of_stage);
        }
        if let Course::Stage(_) = self {
            cells.retain(|cell| !is_idle(cell));
        }
        Ok(cells)
    }
}

/// The cells of both directions.
///
/// # Errors
/// What is missing, without the place.
pub(super) fn directions(courses: &[Course; 2]) -> Result<[Vec<CellSpec>; 2], String> {
    let stages = courses.iter().flat_map(Course::stages);
    let rtt_ns = stages.filter_map(|stage| stage.delay_ns).sum();
    Ok([courses[0].cells(rtt_ns)?, courses[1].cells(rtt_ns)?])
}

/// Puts what stages say into the cells of a link's directions.
///
/// # Errors
/// Which effect has no one place.
pub(super) fn change(cells: [&mut Vec<CellSpec>; 2], stages: &[Stage; 2]) -> Result<(), String> {
    let [forward, backward] = cells;
    stages[0].put_delay(forward)?;
    stages[1].put_delay(backward)?;
    let rtt_ns = delay_ns(forward) + delay_ns(backward);
    stages[0].put_others(forward, rtt_ns)?;
    stages[1].put_others(backward, rtt_ns)
}

/// The constant delay of all of them.
pub(super) fn delay_ns(cells: &[CellSpec]) -> u64 {
    let delays = cells.iter().map(|cell| match cell {
        CellSpec::Delay(delay) => delay.delay_ns,
        _ => 0,
    });
    delays.sum()
}

impl Stage {
    fn put_delay(&self, cells: &mut Vec<CellSpec>) -> Result<(), String> {
        if self.delay_ns.is_none() && self.jitter.is_none() {
            return Ok(());
        }
        let place = place(cells, Effect::Delay)?;
        let mut delay = match place.of(cells) {
            Some(CellSpec::Delay(delay)) => delay.clone(),
            _ => DelaySpec::default(),
        };
        delay.delay_ns = self.delay_ns.unwrap_or(delay.delay_ns);
        delay.jitter = self.jitter.unwrap_or(delay.jitter);
        place.put(cells, [CellSpec::Delay(delay)]);
        Ok(())
    }

    fn put_others(&self, cells: &mut Vec<CellSpec>, rtt_ns: u64) -> Result<(), String> {
        self.put_rate(cells, rtt_ns)?;
        let mtu = self
            .path_mtu_bytes
            .map(|mtu_bytes| CellSpec::Mtu(MtuSpec { mtu_bytes }));
        let others = [
            (Effect::PathMtu, mtu),
            (Effect::Policer, self.policer.map(CellSpec::Policer)),
            (Effect::Corrupt, self.corrupt.map(corrupt_cell)),
            (Effect::Duplicate, self.duplicate.map(duplicate_cell)),
            (Effect::Reorder, self.reorder.map(CellSpec::Reorder)),
        ];
        for (effect, cell) in others {
            if let Some(cell) = cell {
                place(cells, effect)?.put(cells, [cell]);
            }
        }
        if let Some(losses) = &self.losses {
            let losses = losses.iter().cloned().map(CellSpec::Loss);
            place(cells, Effect::Loss)?.put(cells, losses);
        }
        Ok(())
    }

    fn put_rate(&self, cells: &mut Vec<CellSpec>, rtt_ns: u64) -> Result<(), String> {
        let queue_key = self.queue_key();
        if self.service.is_none() && queue_key.is_none() {
            return Ok(());
        }
        let place = place(cells, Effect::Rate)?;
        let old = match place.of(cells) {
            Some(CellSpec::Rate(rate)) => Some(rate.clone()),
            _ => None,
        };
        let service = self
            .service
            .clone()
            .or(old.as_ref().map(|rate| rate.service.clone()));
        let Some(service) = service else {
            let key = queue_key.unwrap_or("queue");
            return Err(format!("{key}: needs a rate, which is what makes a queue"));
        };
        let bdp_bytes = nominal_rate_bps(&service).map(|rate_bps| bdp_bytes(rate_bps, rtt_ns));
        let overhead_bytes = old.as_ref().map_or(0, |rate| rate.overhead_bytes);
        let cell = RateSpec {
            service,
            queue: self.queue(old.map(|rate| rate.queue), bdp_bytes),
            overhead_bytes: self.overhead_bytes.unwrap_or(overhead_bytes),
        };
        place.put(cells, [CellSpec::Rate(cell)]);
        Ok(())
    }

    /// The queue, from what was there before; `bdp_bytes` is `None` for an unlimited rate.
    fn queue(&self, old: Option<QueueSpec>, bdp_bytes: Option<f64>) -> QueueSpec {
        let mut queue = match (self.queue, old) {
            (None, Some(old)) => old,
            (limit, old) => QueueSpec {
                limit_bytes: limit_bytes(limit, bdp_bytes),
                limit_packets: match limit {
                    Some(QueueLimit::Packets(packets)) => Some(packets),
                    _ => None,
                },
                ..old.unwrap_or_default()
            },
        };
        if let Some(discipline) = self.discipline {
            queue.discipline = discipline.with_limit(&queue);
        }
        if let Some(depth) = self.mark_above {
            queue.mark_above_bytes = match depth {
                QueueLimit::Bdp(times) => bdp_bytes.map(|bdp| (bdp * times).round() as u64),
                QueueLimit::Bytes(bytes) => Some(bytes),
                QueueLimit::Packets(packets) => Some(packets * SEGMENT_BYTES),
            };
        }
        queue
    }
}

fn bdp_bytes(rate_bps: u64, rtt_ns: u64) -> f64 {
    rate_bps as f64 / 8.0 * (rtt_ns as f64 / 1e9)
}

fn limit_bytes(limit: Option<QueueLimit>, bdp_bytes: Option<f64>) -> Option<u64> {
    match limit {
        Some(QueueLimit::Bytes(bytes)) => Some(bytes),
        Some(QueueLimit::Packets(_)) => None,
        Some(QueueLimit::Bdp(times)) => {
            Some(((bdp_bytes? * times).round() as u64).max(LEAST_QUEUE_BYTES))
        }
        None => Some((bdp_bytes?.round() as u64).max(LEAST_DEFAULT_QUEUE_BYTES)),
    }
}

impl DisciplineSpec {
    /// RED without thresholds of its own begins at a sixth of the limit and drops all from half of it
    /// on: the factor of three between them is Floyd's recommendation, and half leaves room for bursts.
    fn with_limit(self, queue: &QueueSpec) -> Discipline {
        match self {
            DisciplineSpec::DropTail => Discipline::DropTail,
            DisciplineSpec::DropHead => Discipline::DropHead,
            DisciplineSpec::Codel {
                target_ns,
                interval_ns,
                ecn,
            } => Discipline::Codel {
                target_ns,
                interval_ns,
                ecn,
            },
            DisciplineSpec::Red {
                min_bytes,
                max_bytes,
                max_probability,
                weight,
                ecn,
            } => {
                let of_packets = queue.limit_packets.map(|packets| packets * SEGMENT_BYTES);
                let limit_bytes = queue.limit_bytes.or(of_packets);
                let limit_bytes = limit_bytes.unwrap_or(LEAST_DEFAULT_QUEUE_BYTES);
                let max_bytes = max_bytes.unwrap_or(limit_bytes / 2);
                Discipline::Red {
                    min_bytes: min_bytes.unwrap_or(max_bytes / 3),
                    max_bytes,
                    max_probability,
                    weight,
                    ecn,
                }
            }
        }
    }
}

/// Where the cell of an effect is, or would be.
#[derive(Clone, Copy)]
enum Place {
    At(usize),
    Before(usize),
}

impl Place {
    fn of(self, cells: &[CellSpec]) -> Option<&CellSpec> {
        match self {
            Place::At(index) => cells.get(index),
            Place::Before(_) => None,
        }
    }

    fn put(self, cells: &mut Vec<CellSpec>, new: impl IntoIterator<Item = CellSpec>) {
        match self {
            Place::At(index) => cells.splice(index..=index, new),
            Place::Before(index) => cells.splice(index..index, new),
        };
    }
}

fn place(cells: &[CellSpec], effect: Effect) -> Result<Place, String> {
    let is_of = |cell: &CellSpec| Effect::of(cell) == effect;
    let mut places = (0..cells.len()).filter(|index| is_of(&cells[*index]));
    match (places.next(), places.count()) {
        (Some(index), 0) => Ok(Place::At(index)),
        (Some(_), more) => Err(format!(
            "{}: there are {} such cells, so it is ambiguous which one to change",
            effect.key(),
            more + 1
        )),
        (None, _) if cells.is_sorted_by_key(Effect::of) => {
            let later = cells.iter().position(|cell| Effect::of(cell) > effect);
            Ok(Place::Before(later.unwrap_or(cells.len())))
        }
        (None, _) => Err(format!(
            "{}: there is no such cell, and the cells are in an order of their own; give the scenario's \
             `cells` one, if only with an effect of 0",
            effect.key()
        )),
    }
}

impl Effect {
    fn of(cell: &CellSpec) -> Effect {
        match cell {
            CellSpec::Mtu(_) => Effect::PathMtu,
            CellSpec::Policer(_) => Effect::Policer,
            CellSpec::Rate(_) => Effect::Rate,
            CellSpec::Loss(_) => Effect::Loss,
            CellSpec::Corrupt(_) => Effect::Corrupt,
            CellSpec::Duplicate(_) => Effect::Duplicate,
            CellSpec::Reorder(_) => Effect::Reorder,
            CellSpec::Delay(_) => Effect::Delay,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Effect::PathMtu => "path_mtu",
            Effect::Policer => "policer",
            Effect::Rate => "rate",
            Effect::Loss => "loss",
            Effect::Corrupt => "corrupt",
            Effect::Duplicate => "duplicate",
            Effect::Reorder => "reorder",
            Effect::Delay => "delay",
        }
    }
}

/// Whether a cell does nothing. One that was written down with an effect of 0 is left out, which
/// costs nothing; a change puts it there when it does something.
fn is_idle(cell: &CellSpec) -> bool {
    match cell {
        CellSpec::Delay(delay) => delay.delay_ns == 0 && delay.jitter.is_none(),
        CellSpec::Rate(rate) => {
            rate.service == Service::Unlimited && rate.queue == QueueSpec::default()
        }
        CellSpec::Loss(LossSpec::Independent { probability }) => *probability == 0.0,
        CellSpec::Loss(_) | CellSpec::Mtu(_) => false,
        CellSpec::Reorder(reorder) => reorder.probability == 0.0,
        CellSpec::Duplicate(duplicate) => duplicate.probability == 0.0,
        CellSpec::Corrupt(corrupt) => corrupt.probability == 0.0,
        CellSpec::Policer(policer) => policer.burst_bytes.is_none(),
    }
}
