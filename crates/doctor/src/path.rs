// SPDX-License-Identifier: MIT OR Apache-2.0
//! What TCP makes of a path with the kernel's defaults, and with what fatpath gives. Start at [`forecast`].
//!
//! Rates are the models' of `crates/model`; settings are chosen as for learned paths (`crates/path`). Both speak of one
//! flow that sends from this host, and has the path for itself.

use crate::write_wrapped;
use fatpath_cc::Law;
use fatpath_model::Path;
use fatpath_model::throughput::{Expected, Limit, of_law};
use fatpath_path::{Choice, Estimate, Host, Loss, Rate, Trust, Value, choose};
use fatpath_units::{show_bytes, show_rate};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// Of a buffer that the kernel sizes, about half is payload; the rest is its own overhead.
const PAYLOAD_SHARE: f64 = 0.5;

/// The third number of Linux's own `net.ipv4.tcp_rmem`: what a peer has that nobody tuned.
const PEER_BUFFER_BYTES: u64 = 6 << 20;

/// IPv4 or IPv6, TCP, and its timestamps: what a packet has besides data.
const HEADERS_BYTES: [u32; 2] = [20 + 20 + 12, 40 + 20 + 12];

/// What was seen of a path.
#[derive(Clone, Debug)]
pub struct PathFacts {
    /// The least round trip, µs.
    pub rtt_us: f64,
    /// The largest packet that the kernel sends.
    pub mtu_bytes: u32,
    /// The peer's address is one of IPv6.
    pub is_ipv6: bool,
    /// Bits of data a second; none: not known.
    pub rate: Option<Rate>,
    /// Share of the segments that are lost, and when they are.
    pub loss: f64,
    /// None where it cannot be told.
    pub loss_kind: Option<Loss>,
}

/// What is to be expected of a path.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// Data in a segment, bytes.
    pub mss_bytes: u32,
    /// With the kernel's defaults.
    pub defaults: Sending,
    /// The same of what arrives here: bits of data a second that this host's receive buffer allows.
    pub receive_bps: f64,
    /// With these settings; none while the path's rate is not known.
    pub tuned: Option<Sending>,
    /// What the path carries at least, where something else held back what showed it; bits of data a second.
    pub at_least_bps: Option<f64>,
    /// What a peer takes that has Linux's own buffers.
    pub peer_default_bps: f64,
    /// Keys of a rule, a line each; empty: the host's settings do.
    pub settings: String,
    /// Why.
    pub reasons: Vec<String>,
}

/// A flow from this host.
#[derive(Clone, Debug, Serialize)]
pub struct Sending {
    /// The law, as the kernel names it.
    pub law: String,
    /// Largest window that its send buffer allows, bytes of data.
    pub window_bytes: u64,
    /// Bits of data a second.
    pub rate_bps: f64,
    /// What limits it: loss, rate or window; none of a law that no model is of.
    pub limit: Limit,
}

/// What a flow gets on this path by default and from fatpath, and the rate that follows.
pub fn forecast(facts: &PathFacts, host: &Host) -> Forecast {
    let path = path_of(facts);
    let default_bytes = (host.send_autotuned_bytes as f64 * PAYLOAD_SHARE) as u64;
    let choice = facts
        .rate
        .map(|rate| choose(&estimate(facts, rate), host, Trust::Shared));
    let is_known = path.rate_bps.is_some();
    let known = choice.as_ref().filter(|_| is_known);
    let tuned = known.map(|choice| tuned(choice, &path, host, default_bytes));
    let choice = choice.unwrap_or_default();
    let bytes_per_rtt = |bytes: f64| bytes * 8.0 / path.rtt_s;
    Forecast {
        mss_bytes: path.mss_bytes,
        defaults: sending(&host.law, &path, default_bytes),
        receive_bps: bytes_per_rtt(host.receive_autotuned_bytes as f64 * PAYLOAD_SHARE),
        tuned,
        at_least_bps: facts.rate.filter(|_| !is_known).map(|rate| rate.bps.value),
        peer_default_bps: bytes_per_rtt(PEER_BUFFER_BYTES as f64 * PAYLOAD_SHARE),
        settings: choice.profile.to_string(),
        reasons: choice.reasons,
    }
}

fn tuned(choice: &Choice, path: &Path, host: &Host, default_bytes: u64) -> Sending {
    let law = choice
        .profile
        .law
        .map_or(host.law.as_str(), |law| law.name());
    let given = choice.profile.send_buffer_bytes;
    sending(law, path, given.unwrap_or(default_bytes))
}

fn path_of(facts: &PathFacts) -> Path {
    let headers_bytes = HEADERS_BYTES[usize::from(facts.is_ipv6)];
    let mss_bytes = facts.mtu_bytes.saturating_sub(headers_bytes).max(1);
    let packets = 1.0 + f64::from(headers_bytes) / f64::from(mss_bytes);
    // What something else held back is no rate of the path.
    let known = facts.rate.filter(|rate| rate.limit.is_none());
    Path {
        mss_bytes,
        rate_bps: known.map(|rate| rate.bps.value * packets),
        ..Path::new(facts.rtt_us / 1e6, facts.loss)
    }
}

fn estimate(facts: &PathFacts, rate: Rate) -> Estimate {
    Estimate {
        flows: 1,
        seen_us: 0,
        base_rtt_us: Value {
            value: facts.rtt_us,
            doubt: 0.0,
        },
        high_rtt_us: facts.rtt_us,
        rate: Some(rate),
        loss: facts.loss_kind,
        is_found: false,
        loses_paced: false,
        retransmitted_share: facts.loss,
        given_retransmitted_share: None,
        has_small_buffers: false,
        is_mixed: false,
        mss_bytes: path_of(facts).mss_bytes,
    }
}

fn sending(law: &str, path: &Path, window_bytes: u64) -> Sending {
    let window_pkts = window_bytes as f64 / f64::from(path.mss_bytes);
    let path = Path {
        max_window_pkts: Some(window_pkts),
        ..*path
    };
    let expected = Law::named(law).map_or(Vec::new(), |law| of_law(&law, &path, 1));
    // Of several models the most careful one.
    let (rate_bps, limit) = expected
        .iter()
        .filter_map(|one: &Expected| Some((one.rate_bps?, one.limit)))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .unwrap_or((path.rate_of_window_bps(window_pkts), Limit::Window));
    Sending {
        law: law.to_owned(),
        window_bytes,
        rate_bps,
        limit,
    }
}

/// For people, in 80 columns.
impl Display for Forecast {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let receives = rough_rate(self.receive_bps);
        let defaults = format!("{}; it receives up to {receives}", self.defaults);
        write_wrapped(f, "defaults       ", &defaults)?;
        if let Some(bps) = self.at_least_bps {
            let least = format!(
                "lifts what holds flows back: the path carries at least {}",
                rough_rate(bps)
            );
            write_wrapped(f, "fatpath        ", &least)?;
            return self.write_reasons(f);
        }
        let Some(tuned) = &self.tuned else {
            let how = "give it (--rate), measure it (--iperf3), or let the daemon learn it";
            let unknown = format!("the path's rate is not known: {how}");
            return write_wrapped(f, "fatpath        ", &unknown);
        };
        match self.settings.is_empty() {
            true => write_wrapped(f, "fatpath        ", "leaves it to the host")?,
            false => write_wrapped(f, "fatpath        ", &tuned.to_string())?,
        }
        self.write_reasons(f)?;
        if tuned.rate_bps <= self.peer_default_bps {
            return Ok(());
        }
        let most = rough_rate(self.peer_default_bps);
        let peer = format!("takes {most} at most with Linux's own tcp_rmem: tune it, too");
        write_wrapped(f, "peer           ", &peer)
    }
}

impl Forecast {
    fn write_reasons(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut reasons = self.reasons.iter();
        reasons.try_for_each(|reason| write_wrapped(f, "  because      ", reason))
    }
}

impl Display for Sending {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let limit = match self.limit {
            Limit::Loss => "its answer to losses",
            Limit::Rate => "the path's rate",
            Limit::Window => "its send buffer",
            Limit::None => "nothing known",
        };
        let (law, rate) = (&self.law, rough_rate(self.rate_bps));
        let window = show_bytes(self.window_bytes);
        write!(
            f,
            "{law} sends up to {rate}, limited by {limit}, with a window of {window}"
        )
    }
}

/// Three digits: no forecast is better.
pub fn rough_rate(bps: f64) -> String {
    let magnitude = 10_f64.powf((bps.max(1.0).log10().floor() - 2.0).max(0.0));
    show_rate(((bps / magnitude).round() * magnitude) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            law: "cubic".into(),
            send_autotuned_bytes: 4 << 20,
            receive_autotuned_bytes: 6 << 20,
            most_buffer_bytes: 512 << 20,
            overrides: false,
            private: Vec::new(),
        }
    }

    fn facts(rate_bps: Option<f64>) -> PathFacts {
        let value = |value| Value { value, doubt: 0.0 };
        PathFacts {
            rtt_us: 100_000.0,
            mtu_bytes: 1500,
            is_ipv6: false,
            rate: rate_bps.map(|bps| Rate {
                bps: value(bps),
                limit: None,
            }),
            loss: 0.0,
            loss_kind: None,
        }
    }

    #[test]
    fn the_defaults_are_bounded_by_half_of_the_buffer_a_round_trip() {
        let forecast = forecast(&facts(None), &host());
        // 2 MiB each 100 ms.
        assert!((forecast.defaults.rate_bps / 167.77e6 - 1.0).abs() < 0.01);
        assert_eq!(forecast.defaults.limit, Limit::Window);
        assert!((forecast.receive_bps / 251.66e6 - 1.0).abs() < 0.01);
        assert!(forecast.tuned.is_none() && forecast.settings.is_empty());
        assert!(forecast.to_string().contains("--iperf3"));
    }

    #[test]
    fn a_known_rate_gives_settings_that_reach_it() {
        let forecast = forecast(&facts(Some(900e6)), &host());
        let tuned = forecast.tuned.as_ref().unwrap();
        assert!((tuned.rate_bps / 900e6 - 1.0).abs() < 0.01, "{tuned:?}");
        assert_eq!(tuned.limit, Limit::Rate);
        assert!(forecast.settings.contains("send_buffer = "));
        assert!(forecast.to_string().contains("peer "));
        assert!(forecast.to_string().lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn losses_without_a_queue_limit_cubic_and_not_fp_bbr() {
        let lossy = PathFacts {
            loss: 0.001,
            loss_kind: Some(Loss::Random),
            ..facts(Some(900e6))
        };
        let forecast = forecast(&lossy, &host());
        assert_eq!(forecast.defaults.limit, Limit::Loss);
        assert!(forecast.defaults.rate_bps < 50e6, "{forecast:?}");
        let tuned = forecast.tuned.unwrap();
        assert_eq!(tuned.law, "fp_bbr");
        assert!(tuned.rate_bps > 700e6, "{tuned:?}");
    }

    #[test]
    fn a_rate_that_a_buffer_held_back_is_no_rate_of_the_path() {
        let mut held = facts(Some(160e6));
        held.rate.as_mut().unwrap().limit = Some(fatpath_path::Limit::OwnBuffer);
        let forecast = forecast(&held, &host());
        assert_eq!(forecast.defaults.limit, Limit::Window);
        assert!(forecast.tuned.is_none() && forecast.settings.contains("send_buffer"));
        assert!(forecast.to_string().contains("at least 160 Mb/s"));
    }

    #[test]
    fn a_short_path_is_left_to_the_host() {
        let near = PathFacts {
            rtt_us: 500.0,
            ..facts(Some(900e6))
        };
        let forecast = forecast(&near, &host());
        assert!(forecast.settings.is_empty());
        assert!(forecast.to_string().contains("leaves it to the host"));
    }

    #[test]
    fn a_law_without_a_model_is_bounded_by_its_window() {
        let host = Host {
            law: "vegas".into(),
            ..host()
        };
        assert_eq!(forecast(&facts(None), &host).defaults.limit, Limit::Window);
    }
}
