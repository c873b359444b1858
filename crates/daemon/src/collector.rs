// SPDX-License-Identifier: MIT OR Apache-2.0
//! The collector of OpenTelemetry to which the metrics are sent, as an option of the command line names it.

use hyper::Uri;
use std::str::FromStr;

/// Port of OTLP over HTTP.
const PORT: u16 = 4318;

/// A collector: `http://HOST[:PORT][/PATH]`, to which `/v1/metrics` is added.
#[derive(Clone, Debug)]
pub struct Collector {
    pub(crate) url: Uri,
}

impl FromStr for Collector {
    type Err = String;

    fn from_str(url: &str) -> Result<Collector, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let (Some("http"), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(
                "give http://HOST[:PORT]; for TLS, run a collector on this host that forwards"
                    .into(),
            );
        };
        let port = uri.port_u16().unwrap_or(PORT);
        let path = uri.path().trim_end_matches('/');
        let url = format!("http://{host}:{port}{path}/v1/metrics").parse();
        let url = url.map_err(|error| format!("{error}"))?;
        Ok(Collector { url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_url() {
        let parsed: Collector = "http://[::1]".parse().unwrap();
        assert_eq!(parsed.url, "http://[::1]:4318/v1/metrics");
        let parsed: Collector = "http://collector:80/otel/".parse().unwrap();
        assert_eq!(parsed.url, "http://collector:80/otel/v1/metrics");
        assert!(
            "https://collector:4318"
                .parse::<Collector>()
                .unwrap_err()
                .contains("TLS")
        );
        assert!("collector".parse::<Collector>().is_err());
    }
}
