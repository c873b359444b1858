// SPDX-License-Identifier: MIT OR Apache-2.0
//! An observation by longer intervals, for one link, for a part of its time.
//!
//! Pure: records in, bins and totals out, one at a time; the file may be larger than memory. Start
//! with [`Selection`] and [`bins`].

use std::collections::BTreeMap;

use fatpath_link::{Count, DropCause, Flow};

use super::figures::{Depths, DirectionFigures};
use super::{DirectionName, Header, ReadError, Record};

/// What of an observation is wanted. The default: all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only this link.
    pub link: Option<String>,
    /// From then on, nanoseconds since the observation began.
    pub from_ns: Option<u64>,
    /// Until then, likewise.
    pub until_ns: Option<u64>,
    /// Each flow by itself too.
    pub flows: bool,
}

impl Selection {
    /// Whether a record's interval is wanted. One of which a part is wanted is wanted whole.
    pub fn takes(&self, header: &Header, record: &Record) -> bool {
        let begin_ns = record.interval.saturating_mul(header.interval_ns);
        let end_ns = begin_ns.saturating_add(header.interval_ns);
        let link = &header.directions[record.direction].link;
        self.link.as_ref().is_none_or(|wanted| wanted == link)
            && self.from_ns.is_none_or(|from_ns| end_ns > from_ns)
            && self.until_ns.is_none_or(|until_ns| begin_ns < until_ns)
    }

    /// From the begin of the first interval that is wanted to the end of the last. Where nothing is
    /// said, those of `recorded_ns`.
    pub fn span_ns(&self, header: &Header, recorded_ns: (u64, u64)) -> (u64, u64) {
        let length_ns = header.interval_ns;
        let from_ns = self.from_ns.map(|from_ns| from_ns / length_ns);
        let until_ns = self.until_ns.map(|until_ns| until_ns.div_ceil(length_ns));
        let whole = |intervals: u64| intervals.saturating_mul(length_ns);
        (
            from_ns.map_or(recorded_ns.0, whole),
            until_ns.map_or(recorded_ns.1, whole),
        )
    }
}

/// What passed one direction in one or several intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bin {
    /// Place in [`Header::directions`].
    pub direction: usize,
    /// Its number: it begins at this times the length of bins.
    pub index: u64,
    /// Entered.
    pub arrived: Count,
    /// Left.
    pub left: Count,
    /// The deepest queue.
    pub peak_queue_bytes: u64,
    /// Dropped, in the order of [`DropCause::ALL`].
    pub dropped: [Count; DropCause::ALL.len()],
    /// Marked.
    pub marked: Count,
    /// Duplicates, made in addition to what entered.
    pub duplicated: Count,
    /// Damaged.
    pub corrupted: Count,
    /// What fragments are more than the packets that they were.
    pub fragmented: Count,
    /// Entered and left, of each flow by its name, if [`Selection::flows`].
    pub flows: BTreeMap<String, [Count; 2]>,
}

impl Bin {
    fn empty(direction: usize, index: u64) -> Bin {
        Bin {
            direction,
            index,
            ..Bin::default()
        }
    }

    fn add(&mut self, record: &Record) {
        self.arrived += record.arrived;
        self.left += record.left;
        self.peak_queue_bytes = self.peak_queue_bytes.max(record.peak_queue_bytes);
        let causes = self.dropped.iter_mut().zip(record.dropped);
        causes.for_each(|(mine, theirs)| *mine += theirs);
        self.marked += record.marked;
        self.duplicated += record.duplicated;
        self.corrupted += record.corrupted;
        self.fragmented += record.fragmented;
    }

    fn add_flows(&mut self, record: &Record) {
        for one in &record.flows {
            let counts = self.flows.entry(name_of(&one.flow)).or_default();
            counts[0] += one.arrived;
            counts[1] += one.left;
        }
    }

    /// Segments dropped for any cause.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.iter().map(|count| count.packets).sum()
    }
}

/// Such as `tcp 10.77.0.1:40000 > 10.77.0.2:5201`.
fn name_of(flow: &Flow) -> String {
    let protocol = match flow.protocol {
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        number => number.to_string(),
    };
    format!("{protocol} {} > {}", flow.source, flow.destination)
}

/// Gives every bin of `length_ns` (at least the file's interval, and made a multiple of it) to
/// `take`, those of one direction in order of time and without gaps between its first and last.
///
/// # Errors
/// Those of the records, and of `take`.
pub fn bins<E: From<ReadError>>(
    header: &Header,
    records: impl Iterator<Item = Result<Record, ReadError>>,
    selection: &Selection,
    length_ns: u64,
    mut take: impl FnMut(&Bin) -> Result<(), E>,
) -> Result<(), E> {
    let per_bin = intervals_per_bin(header, length_ns);
    let mut open: Vec<Option<Bin>> = vec![None; header.directions.len()];
    for record in records {
        let record = record?;
        if !selection.takes(header, &record) {
            continue;
        }
        let index = record.interval / per_bin;
        let bin = open[record.direction].get_or_insert(Bin::empty(record.direction, index));
        if bin.index < index {
            take(bin)?;
            for idle in bin.index + 1..index {
                take(&Bin::empty(record.direction, idle))?;
            }
            *bin = Bin::empty(record.direction, index);
        }
        bin.add(&record);
        if selection.flows {
            bin.add_flows(&record);
        }
    }
    open.iter().flatten().try_for_each(take)
}

/// How many intervals of the file a bin of about this length holds.
pub fn intervals_per_bin(header: &Header, length_ns: u64) -> u64 {
    length_ns.div_ceil(header.interval_ns).max(1)
}

/// What passed each direction in all.
#[derive(Clone, Debug)]
pub struct Totals {
    names: Vec<DirectionName>,
    interval_ns: u64,
    sums: Vec<Bin>,
    /// Of the peaks of all intervals, so that their mean can be told.
    queue_bytes: Vec<u128>,
    depths: Vec<Depths>,
    /// The first interval with a record, and the one after the last.
    span: Option<(u64, u64)>,
    /// The one after the last of the whole file.
    end: u64,
}

impl Totals {
    /// Nothing yet.
    pub fn new(header: &Header) -> Totals {
        let directions = header.directions.len();
        Totals {
            names: header.directions.clone(),
            interval_ns: header.interval_ns,
            sums: (0..directions).map(|place| Bin::empty(place, 0)).collect(),
            queue_bytes: vec![0; directions],
            depths: vec![Depths::default(); directions],
            span: None,
            end: 0,
        }
    }

    /// Adds a record, if it is `wanted`.
    pub fn add(&mut self, record: &Record, wanted: bool) {
        self.end = self.end.max(record.interval.saturating_add(1));
        if !wanted {
            return;
        }
        let sum = &mut self.sums[record.direction];
        sum.add(record);
        self.queue_bytes[record.direction] += u128::from(record.peak_queue_bytes);
        self.depths[record.direction].note(record.peak_queue_bytes);
        let (first, end) = self.span.unwrap_or((u64::MAX, 0));
        self.span = Some((
            first.min(record.interval),
            end.max(record.interval.saturating_add(1)),
        ));
    }

    /// From the first record to the last, in nanoseconds since the observation began.
    pub fn span_ns(&self) -> (u64, u64) {
        let (first, end) = self.span.unwrap_or_default();
        let at = |interval: u64| interval.saturating_mul(self.interval_ns);
        (at(first), at(end))
    }

    /// Where the file ends, wanted or not, likewise.
    pub fn end_ns(&self) -> u64 {
        self.end.saturating_mul(self.interval_ns)
    }

    /// The figures of each direction over so many seconds (above 0). `utilisation` is the
    /// share that what left a direction took of its rate.
    pub fn figures(
        &self,
        duration_s: f64,
        utilisation: impl Fn(&DirectionName, Count) -> Option<f64>,
    ) -> Vec<DirectionFigures> {
        let intervals = (duration_s * 1e9 / self.interval_ns as f64).max(1.0);
        let queues = self.queue_bytes.iter().zip(&self.depths);
        let directions = self.names.iter().zip(&self.sums).zip(queues);
        directions
            .map(|((name, sum), (queue_bytes, depths))| {
                let left_bps = sum.left.bytes as f64 * 8.0 / duration_s;
                DirectionFigures {
                    link: name.link.clone(),
                    from: name.from.clone(),
                    to: name.to.clone(),
                    left_mbps: (left_bps / 1e3).round() / 1e3,
                    utilisation: utilisation(name, sum.left),
                    mean_queue_bytes: (*queue_bytes as f64 / intervals).round(),
                    p95_queue_bytes: depths.quantile(0.95, intervals as u64),
                    peak_queue_bytes: sum.peak_queue_bytes,
                    dropped: by_cause(&sum.dropped),
                    marked: sum.marked.packets,
                }
            })
            .collect()
    }
}

fn by_cause(dropped: &[Count; DropCause::ALL.len()]) -> BTreeMap<String, u64> {
    let causes = DropCause::ALL.iter().zip(dropped);
    let named = causes.map(|(cause, count)| (cause.name().to_owned(), count.packets));
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        let direction = |link: &str| DirectionName {
            link: link.into(),
            from: "a".into(),
            to: "b".into(),
        };
        Header {
            interval_ns: 1_000_000,
            begun_unix_ns: 0,
            directions: vec![direction("wan"), direction("lan")],
            per_flow: false,
        }
    }

    fn record(direction: usize, interval: u64, packets: u64) -> Record {
        Record {
            direction,
            interval,
            left: Count {
                packets,
                bytes: packets * 1500,
            },
            peak_queue_bytes: packets * 100,
            ..Record::default()
        }
    }

    fn all(records: &[Record], selection: &Selection, length_ns: u64) -> Vec<Bin> {
        let mut found = vec![];
        bins(
            &header(),
            records.iter().cloned().map(Ok),
            selection,
            length_ns,
            |bin| {
                found.push(bin.clone());
                Ok::<_, ReadError>(())
            },
        )
        .unwrap();
        found
    }

    #[test]
    fn gaps_are_filled_and_a_part_can_be_had() {
        let records = [record(0, 3, 1), record(1, 4, 1), record(0, 6, 2)];
        let found = all(&records, &Selection::default(), 0);
        let seen: Vec<_> = found
            .iter()
            .map(|bin| (bin.direction, bin.index, bin.left.packets))
            .collect();
        assert_eq!(
            seen,
            [(0, 3, 1), (0, 4, 0), (0, 5, 0), (0, 6, 2), (1, 4, 1)]
        );
        let part = Selection {
            link: Some("wan".into()),
            from_ns: Some(4_000_000),
            ..Selection::default()
        };
        assert_eq!(all(&records, &part, 0).len(), 1);
    }

    #[test]
    fn the_means_are_over_the_whole_time() {
        let mut totals = Totals::new(&header());
        totals.add(&record(0, 0, 10), true);
        totals.add(&record(0, 9, 10), true);
        totals.add(&record(0, 20, 10), false);
        assert_eq!(totals.span_ns(), (0, 10_000_000));
        assert_eq!(totals.end_ns(), 21_000_000);
        let utilisation =
            |_: &DirectionName, left: Count| Some(left.bytes as f64 * 8.0 / 480_000.0);
        let wan = &totals.figures(0.01, utilisation)[0];
        assert_eq!(wan.left_mbps, 24.0);
        assert_eq!(wan.utilisation, Some(0.5));
        assert_eq!((wan.mean_queue_bytes, wan.peak_queue_bytes), (200.0, 1000));
        assert_eq!(wan.p95_queue_bytes, 1000);
    }

    proptest! {
        #[test]
        fn what_is_taken_lies_in_the_span_and_fills_it(from_ns in 0..9_000_000u64, length_ns in 1..9_000_000u64) {
            let selection = Selection {
                from_ns: Some(from_ns),
                until_ns: Some(from_ns + length_ns),
                ..Selection::default()
            };
            let taken = (0..30).filter(|interval| selection.takes(&header(), &record(0, *interval, 1)));
            let (begin_ns, end_ns) = selection.span_ns(&header(), (0, 0));
            prop_assert_eq!(taken.count() as u64 * 1_000_000, end_ns - begin_ns);
            prop_assert!(begin_ns <= from_ns && from_ns + length_ns <= end_ns);
        }

        #[test]
        fn no_packet_is_lost_by_joining_intervals(
            steps in prop::collection::vec((0..2usize, 0..50u64, 1..9u64), 0..40),
            length_ns in 0..20_000_000u64,
        ) {
            let mut at = [0; 2];
            let records: Vec<Record> = steps.iter().map(|(direction, step, packets)| {
                at[*direction] += step + 1;
                record(*direction, at[*direction], *packets)
            }).collect();
            let found = all(&records, &Selection::default(), length_ns);
            let sum = |of: &mut dyn Iterator<Item = u64>| of.sum::<u64>();
            prop_assert_eq!(
                sum(&mut found.iter().map(|bin| bin.left.packets)),
                sum(&mut records.iter().map(|record| record.left.packets))
            );
            for direction in 0..2 {
                let of: Vec<_> = found.iter().filter(|bin| bin.direction == direction).collect();
                prop_assert!(of.windows(2).all(|two| two[0].index + 1 == two[1].index));
            }
        }
    }
}
