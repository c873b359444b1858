// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /metrics`: the daemon's metrics in the text form of OpenMetrics 1.0, which Prometheus reads.

use super::Instruments;
use super::measured::{Kind, Metric, Value, measure};
use crate::answer::Failure;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /metrics`
pub(crate) async fn metrics(
    State(instruments): State<Arc<Instruments>>,
) -> Result<Response, Failure> {
    let show = move || text(measure(&instruments));
    let text = tokio::task::spawn_blocking(show).await;
    let text = text.map_err(anyhow::Error::from)?;
    let text = text.map_err(anyhow::Error::from)?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

fn text(metrics: Vec<Metric>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("fatpath");
    registry.register_collector(Box::new(Shown(metrics)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Shown(Vec<Metric>);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for metric in &self.0 {
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram(_) => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(&metric.name, metric.help, None, kind)?;
            for point in &metric.points {
                if point.labels.is_empty() {
                    encode_value(&mut family, metric.kind, &point.value)?;
                } else {
                    let mut series = family.encode_family(&point.labels)?;
                    encode_value(&mut series, metric.kind, &point.value)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_value(series: &mut MetricEncoder, kind: Kind, value: &Value) -> fmt::Result {
    match (kind, value) {
        (Kind::Gauge, Value::Whole(value)) => series.encode_gauge(value),
        (Kind::Gauge, Value::Real(value)) => series.encode_gauge(value),
        (_, Value::Whole(value)) => series.encode_counter::<NoLabelSet, _, u64>(value, None),
        (_, Value::Real(value)) => series.encode_counter::<NoLabelSet, _, u64>(value, None),
        (Kind::Histogram(bounds), Value::Histogram(histogram)) => {
            let bounds = bounds.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(histogram.buckets.iter().copied()).collect();
            let (sum, count) = (histogram.sum, histogram.count());
            series.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        }
        (_, Value::Histogram(_)) => Err(fmt::Error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::some_metrics;
    use super::text;
    use prometheus_parse::{Scrape, Value};
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    fn value(scrape: &Scrape, name: &str, labels: &[(&str, &str)]) -> Value {
        let is_it = |sample: &&prometheus_parse::Sample| {
            sample.metric == name
                && labels.len() == sample.labels.len()
                && labels
                    .iter()
                    .all(|(key, value)| sample.labels.get(key) == Some(value))
        };
        let found: Vec<_> = scrape.samples.iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
        found[0].value.clone()
    }

    #[test]
    fn a_parser_reads_every_series() {
        let text = text(some_metrics()).unwrap();
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let scrape = Scrape::parse(lines).unwrap();
        let untyped = |name, labels: &[(&str, &str)]| match value(&scrape, name, labels) {
            Value::Untyped(value) | Value::Counter(value) | Value::Gauge(value) => value,
            other => panic!("{name}: {other:?}"),
        };
        let prefix = ("prefix", "2001:db8::/64");
        assert_eq!(untyped("fatpath_samples_lost_total", &[]), 7.0);
        assert_eq!(untyped("fatpath_flows_sampled", &[]), 4.0);
        assert_eq!(untyped("fatpath_prefix_flows", &[prefix]), 2.0);
        assert_eq!(untyped("fatpath_prefix_flows_ended_total", &[prefix]), 1.0);
        assert_eq!(
            untyped("fatpath_prefix_acked_bytes_total", &[prefix]),
            1_500_000.0
        );
        let by = [prefix, ("by", "network")];
        assert_eq!(untyped("fatpath_prefix_limited_seconds_total", &by), 16.5);
        let Value::Histogram(rtt) = value(&scrape, "fatpath_prefix_rtt_seconds", &[prefix]) else {
            panic!("no histogram")
        };
        let counts: Vec<f64> = rtt.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [0., 0., 0., 2., 2., 2., 2., 7., 7., 7., 7., 7., 8.]);
    }

    /// Prometheus's own check, and the reference parser of OpenMetrics, where they are installed
    /// (packaging/setup.sh tests puts them into target/py).
    #[test]
    fn prometheus_takes_it() {
        let text = text(some_metrics()).unwrap();
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let unpacked = target.join("py/bin/promtool");
        let mut promtool = match unpacked.exists() {
            true => Command::new(unpacked),
            false => Command::new("promtool"),
        };
        promtool.args(["check", "metrics"]);
        judge(promtool, &text, "promtool");
        let mut python = Command::new("python3");
        let parse = "import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    sys.exit(77)
families = list(parse(sys.stdin.read()))
assert any(s.labels.get('rule') == 'far \"west\" \\\\ \\n' for f in families for s in f.samples)";
        python
            .args(["-c", parse])
            .env("PYTHONPATH", target.join("py"));
        judge(python, &text, "Python's prometheus_client");
    }

    fn judge(mut command: Command, text: &str, name: &str) {
        let started = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            println!("skipped: {name} is not installed");
            return;
        };
        // One that exits without reading closes the pipe.
        let _ = child
            .stdin
            .take()
            .map(|mut input| input.write_all(text.as_bytes()));
        let output = child.wait_with_output().unwrap();
        if output.status.code() == Some(77) {
            println!("skipped: {name} is not installed");
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        // promtool reads the older form, in which a counter's help is under its name with _total.
        let is_of_form = |line: &str| line.is_empty() || line.ends_with("_total no help text");
        let is_fine = output.status.success() || output.status.code() == Some(3);
        assert!(is_fine && said.lines().all(is_of_form), "{name}: {said}");
    }
}
