// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics to an OpenTelemetry collector: OTLP 1 over HTTP, as protobuf.
//!
//! Sums are cumulative, so nothing is kept for a collector that does not answer: the next message says it
//! all. There is no TLS here: the way to another host is a collector's on this one. Start at [`export`].

use super::Instruments;
use super::measured::{self, Kind, Value, measure};
use crate::collector::Collector;
use anyhow::{Context, Result, bail, ensure};
use fatpath_clock::{steady_unix_ns, unix_ns};
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What OTEL_EXPORTER_OTLP_TIMEOUT defaults to.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An answer says how many points were refused, and why.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends the metrics again and again, as long as the daemon runs. A collector that does not take them is logged
/// when that begins and ends.
///
/// # Errors
/// When the metrics cannot be put together.
pub(crate) async fn export(
    instruments: Arc<Instruments>,
    collector: Collector,
    interval: Duration,
    shutdown: CancellationToken,
) -> Result<()> {
    let endless = export_without_end(instruments, collector, interval);
    shutdown
        .run_until_cancelled(endless)
        .await
        .unwrap_or(Ok(()))
}

async fn export_without_end(
    instruments: Arc<Instruments>,
    collector: Collector,
    interval: Duration,
) -> Result<()> {
    let mut has_failed = false;
    loop {
        tokio::time::sleep(interval).await;
        let source = Arc::clone(&instruments);
        let metrics = tokio::task::spawn_blocking(move || measure(&source)).await?;
        match (send(&collector, request(metrics)).await, has_failed) {
            (Err(error), false) => {
                tracing::error!("OpenTelemetry: {error:#}; trying again every {interval:?}");
                has_failed = true;
            }
            (Ok(()), true) => {
                tracing::info!("OpenTelemetry: {} answers again", collector.url);
                has_failed = false;
            }
            _ => {}
        }
    }
}

async fn send(collector: &Collector, message: ExportMetricsServiceRequest) -> Result<()> {
    let exchange = exchange(collector, message.encode_to_vec());
    match tokio::time::timeout(TIMEOUT, exchange).await {
        Ok(done) => done.with_context(|| collector.url.to_string()),
        Err(_) => bail!("{}: no answer in {TIMEOUT:?}", collector.url),
    }
}

async fn exchange(collector: &Collector, message: Vec<u8>) -> Result<()> {
    let request = Request::post(collector.url.clone())
        .header("content-type", "application/x-protobuf")
        .body(Full::new(Bytes::from(message)))?;
    // A connection of its own for each message: minutes pass between two.
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
    let answer = body
        .collect()
        .await
        .map_err(anyhow::Error::from_boxed)?
        .to_bytes();
    ensure!(status.is_success(), "the collector answered {status}");
    let answer = ExportMetricsServiceResponse::decode(answer).context("the collector's answer")?;
    match answer.partial_success {
        Some(refused) if refused.rejected_data_points > 0 => {
            bail!(
                "{} points refused: {}",
                refused.rejected_data_points,
                refused.error_message
            )
        }
        _ => Ok(()),
    }
}

fn request(metrics: Vec<measured::Metric>) -> ExportMetricsServiceRequest {
    let now_ns = unix_ns(fatpath_clock::monotonic_ns());
    let metrics = metrics.into_iter().map(|one| metric(one, now_ns)).collect();
    let uname = rustix::system::uname();
    let resource = Resource {
        attributes: vec![
            attribute("service.name", "fatpath"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
            attribute("host.name", &uname.nodename().to_string_lossy()),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "fatpath".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

fn metric(metric: measured::Metric, now_ns: u64) -> Metric {
    let aggregation_temporality = AggregationTemporality::Cumulative as i32;
    let points = metric.points;
    let data = match metric.kind {
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: points
                .into_iter()
                .map(|point| number(point, now_ns))
                .collect(),
        }),
        Kind::Counter => Data::Sum(Sum {
            data_points: points
                .into_iter()
                .map(|point| number(point, now_ns))
                .collect(),
            aggregation_temporality,
            is_monotonic: true,
        }),
        Kind::Histogram(bounds) => Data::Histogram(Histogram {
            data_points: points
                .into_iter()
                .filter_map(|point| distribution(point, bounds, now_ns))
                .collect(),
            aggregation_temporality,
        }),
    };
    Metric {
        name: format!("fatpath.{}", metric.name),
        description: metric.help.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn number(point: measured::Point, now_ns: u64) -> NumberDataPoint {
    let value = match point.value {
        Value::Whole(value) => Some(number_data_point::Value::AsInt(value as i64)),
        Value::Real(value) => Some(number_data_point::Value::AsDouble(value)),
        Value::Histogram(_) => None,
    };
    NumberDataPoint {
        attributes: attributes(&point.labels),
        start_time_unix_nano: began(point.since_ns, now_ns),
        time_unix_nano: now_ns,
        value,
        ..NumberDataPoint::default()
    }
}

fn distribution(point: measured::Point, bounds: &[f64], now_ns: u64) -> Option<HistogramDataPoint> {
    let Value::Histogram(histogram) = point.value else {
        return None;
    };
    Some(HistogramDataPoint {
        attributes: attributes(&point.labels),
        start_time_unix_nano: began(point.since_ns, now_ns),
        time_unix_nano: now_ns,
        count: histogram.count(),
        sum: Some(histogram.sum),
        bucket_counts: histogram.buckets,
        explicit_bounds: bounds.to_vec(),
        ..HistogramDataPoint::default()
    })
}

/// 0 means that it is not known. Another begin is another series to a collector, so it stays the same; only a clock
/// that was set to before it moves it.
fn began(since_ns: u64, now_ns: u64) -> u64 {
    match since_ns {
        0 => 0,
        since_ns => steady_unix_ns(since_ns).min(now_ns),
    }
}

fn attributes(labels: &[(&'static str, String)]) -> Vec<KeyValue> {
    let one = |(key, value): &(&'static str, String)| attribute(key, value);
    labels.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::measured::some_metrics;
    use super::*;
    use axum::Router;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;
    use std::sync::Mutex;

    /// A collector on 127.0.0.1 that gives this answer, and what it was sent.
    async fn receiver(answer: (StatusCode, Vec<u8>)) -> (Collector, Arc<Mutex<Vec<Bytes>>>) {
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        let take = move |headers: HeaderMap, body: Bytes| async move {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            kept.lock().unwrap().push(body);
            answer
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/otel", listener.local_addr().unwrap());
        let router = Router::new().route("/otel/v1/metrics", post(take));
        tokio::spawn(async { axum::serve(listener, router).await });
        (url.parse().unwrap(), received)
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test)
    }

    #[test]
    fn a_collector_decodes_what_is_sent() {
        let received = run(async {
            let (collector, received) = receiver((StatusCode::OK, vec![])).await;
            send(&collector, request(some_metrics())).await.unwrap();
            received.lock().unwrap().remove(0)
        });
        let message = ExportMetricsServiceRequest::decode(received).unwrap();
        let resource = message.resource_metrics[0].resource.clone().unwrap();
        assert_eq!(resource.attributes[0], attribute("service.name", "fatpath"));
        let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
        let named = |name| metrics.iter().find(|metric| metric.name == name).unwrap();

        let limited = named("fatpath.prefix_limited_seconds");
        assert_eq!(limited.unit, "s");
        let Some(Data::Sum(sum)) = &limited.data else {
            panic!("no sum: {limited:?}")
        };
        assert!(sum.is_monotonic);
        assert_eq!(
            sum.aggregation_temporality,
            AggregationTemporality::Cumulative as i32
        );
        let wanted = [
            attribute("prefix", "2001:db8::/64"),
            attribute("by", "network"),
        ];
        let point = sum
            .data_points
            .iter()
            .find(|point| point.attributes == wanted)
            .unwrap();
        assert_eq!(point.value, Some(number_data_point::Value::AsDouble(16.5)));
        assert!(
            0 < point.start_time_unix_nano && point.start_time_unix_nano < point.time_unix_nano
        );

        let Some(Data::Histogram(rtt)) = &named("fatpath.rule_rtt_seconds").data else {
            panic!("no histogram")
        };
        let point = &rtt.data_points[0];
        assert_eq!((point.count, point.sum), (8, Some(3.5)));
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    }

    #[test]
    fn a_series_begins_at_one_time_in_every_message() {
        let begins = || {
            let request = request(some_metrics());
            let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
            let of_sums = metrics.iter().filter_map(|metric| match &metric.data {
                Some(Data::Sum(sum)) => Some(sum.data_points[0].start_time_unix_nano),
                _ => None,
            });
            of_sums.collect::<Vec<u64>>()
        };
        let first = begins();
        assert!(first.iter().any(|begin| *begin > 0));
        (0..100).for_each(|_| assert_eq!(begins(), first));
    }

    #[test]
    fn what_a_collector_refuses_is_said() {
        let refused = ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points: 3,
                error_message: "too old".into(),
            }),
        };
        let answers = [
            (
                (StatusCode::OK, refused.encode_to_vec()),
                "3 points refused: too old",
            ),
            ((StatusCode::SERVICE_UNAVAILABLE, vec![]), "answered 503"),
            (
                (StatusCode::OK, vec![0; MAX_ANSWER_BYTES + 1]),
                "length limit",
            ),
        ];
        for (answer, said) in answers {
            let error = run(async {
                let (collector, _) = receiver(answer).await;
                send(&collector, request(some_metrics())).await.unwrap_err()
            });
            assert!(format!("{error:#}").contains(said), "{error:#}");
        }
    }
}
