// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that is exported as metrics, at one moment: one form for Prometheus and OpenTelemetry. What
//! there is to sum is said in `fatpath_estats::tally`.

use super::Instruments;
use fatpath_api::SampleCounts;
use fatpath_estats::tally::{HISTOGRAMS, Histogram, OneSeries, SUMS, Series};

/// One metric with all its series.
#[derive(Clone, Debug)]
pub(crate) struct Metric {
    /// Words are joined by `_`, the unit last.
    pub(crate) name: String,
    pub(crate) help: &'static str,
    /// As in UCUM.
    pub(crate) unit: &'static str,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    Gauge,
    /// With the upper ends of its buckets.
    Histogram(&'static [f64]),
}

/// One series.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) labels: Vec<(&'static str, String)>,
    /// By the clock of samples, ns.
    pub(crate) since_ns: u64,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Histogram),
}

/// What the daemon's own metrics are now.
pub(crate) fn measure(instruments: &Instruments) -> Vec<Metric> {
    metrics(&instruments.series(), instruments.counts())
}

fn metrics(series: &Series, counts: Option<SampleCounts>) -> Vec<Metric> {
    let mut metrics = counts.map_or(vec![], of_the_kernel);
    for (label, series) in [("rule", &series.rules), ("prefix", &series.prefixes)] {
        metrics.extend(flows(label, series));
        metrics.extend(sums(label, series));
        metrics.extend(histograms(label, series));
    }
    metrics
}

/// What the kernel half counted of itself.
fn of_the_kernel(counts: SampleCounts) -> Vec<Metric> {
    let sampled = "Flows that are sampled now";
    let samples = "Samples of flows handed over by the kernel half";
    let lost = "Samples lost because nobody read them in time";
    let beyond = "Flows not sampled because of max_flows or max_flows_per_prefix";
    let without = "Flows not sampled because their socket had no memory for it";
    [
        ("flows_sampled", sampled, Kind::Gauge, counts.flows_sampled),
        ("samples", samples, Kind::Counter, counts.samples),
        ("samples_lost", lost, Kind::Counter, counts.samples_lost),
        (
            "flows_beyond_bounds",
            beyond,
            Kind::Counter,
            counts.flows_beyond_bounds,
        ),
        (
            "flows_without_storage",
            without,
            Kind::Counter,
            counts.flows_without_storage,
        ),
        (
            "events_unsampled",
            "Events without a sample of their own because of the budget of samples",
            Kind::Counter,
            counts.events_unsampled,
        ),
        (
            "samples_per_second_max",
            "The budget of samples",
            Kind::Gauge,
            counts.samples_per_s_max.into(),
        ),
    ]
    .map(|(name, help, kind, value)| Metric {
        name: name.to_owned(),
        help,
        unit: "",
        kind,
        points: vec![Point {
            labels: vec![],
            // Since the load, which is not the daemon's start.
            since_ns: 0,
            value: Value::Whole(value),
        }],
    })
    .into()
}

fn flows(label: &'static str, all: &[OneSeries]) -> [Metric; 3] {
    let live = "Flows that have begun and not ended";
    let metric = |name: &str, help, kind, value: fn(&OneSeries) -> u64| Metric {
        name: format!("{label}_{name}"),
        help,
        unit: "{flow}",
        kind,
        points: points(label, all, |one| Value::Whole(value(one))),
    };
    [
        metric("flows", live, Kind::Gauge, |one| one.live),
        metric(
            "flows_begun",
            "Flows seen for the first time",
            Kind::Counter,
            |one| one.group.flows_begun,
        ),
        metric("flows_ended", "Flows that ended", Kind::Counter, |one| {
            one.group.flows_ended
        }),
    ]
}

fn points(
    label: &'static str,
    all: &[OneSeries],
    value: impl Fn(&OneSeries) -> Value,
) -> Vec<Point> {
    let point = |one: &OneSeries| Point {
        labels: vec![(label, one.label.clone())],
        since_ns: one.since_ns,
        value: value(one),
    };
    all.iter().map(point).collect()
}

/// Sums of one name are one metric, split by the label `by`.
fn sums(label: &'static str, all: &[OneSeries]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for (place, sum) in SUMS.iter().enumerate() {
        let value = |one: &OneSeries| Value::Real(one.group.sums[place] as f64 / sum.per_unit);
        let mut points = points(label, all, value);
        for point in &mut points {
            point.labels.extend(sum.by.map(|by| ("by", by.to_owned())));
        }
        let name = format!("{label}_{}", sum.name);
        match metrics.last_mut().filter(|metric| metric.name == name) {
            Some(metric) => metric.points.extend(points),
            None => metrics.push(Metric {
                name,
                help: sum.help,
                unit: sum.unit,
                kind: Kind::Counter,
                points,
            }),
        }
    }
    metrics
}

fn histograms(label: &'static str, all: &[OneSeries]) -> Vec<Metric> {
    let metric = |(place, of): (usize, &fatpath_estats::tally::HistogramOf)| Metric {
        name: format!("{label}_{}", of.name),
        help: of.help,
        unit: of.unit,
        kind: Kind::Histogram(of.bounds),
        points: points(label, all, |one| {
            let mut histogram = one.group.histograms[place].clone();
            // Nothing was observed yet.
            histogram.buckets.resize(of.bounds.len() + 1, 0);
            Value::Histogram(histogram)
        }),
    };
    HISTOGRAMS.iter().enumerate().map(metric).collect()
}

/// Metrics as a busy daemon has them, for the tests of both forms.
#[cfg(test)]
pub(crate) fn some_metrics() -> Vec<Metric> {
    use fatpath_estats::tally::Group;
    let mut group = Group {
        flows_begun: 3,
        flows_ended: 1,
        ..Group::default()
    };
    group.sums = std::array::from_fn(|n| n as u64 * 1_500_000);
    group.histograms[0] = Histogram {
        buckets: vec![0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0, 1],
        sum: 3.5,
    };
    let one = |label: &str| OneSeries {
        label: label.into(),
        since_ns: 5_000_000_000,
        live: 2,
        group: group.clone(),
    };
    let series = Series {
        rules: vec![one("far \"west\" \\ \n"), one("(other)")],
        prefixes: vec![one("2001:db8::/64"), one("(other)")],
    };
    let counts = SampleCounts {
        flows_sampled: 4,
        samples: 1 << 60,
        samples_lost: 7,
        ..SampleCounts::default()
    };
    metrics(&series, Some(counts))
}
