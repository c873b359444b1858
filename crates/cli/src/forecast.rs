// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `fatpath-doctor` forecasts of a path from what the daemon learned of it, on this host.

use fatpath_api::LearnedPath;
use fatpath_daemon::defaults_of_host;
use fatpath_doctor::path::{Forecast, PathFacts, forecast};
use fatpath_path::{Host, Limit, Loss, Rate, Value};
use std::path::Path;

/// Without what the daemon of this directory changed. In a namespace of its own tcp_mem cannot be seen; then the policy's
/// own bound is the only one.
pub fn host(run_dir: &Path) -> Host {
    let host = defaults_of_host(run_dir);
    let most_buffer_bytes = match host.most_buffer_bytes {
        0 => u64::MAX,
        most => most,
    };
    Host {
        most_buffer_bytes,
        ..host
    }
}

/// What the models expect of a learned path. Its MTU is not kept: Ethernet's.
pub fn forecast_of(path: &LearnedPath, host: &Host) -> Forecast {
    let mut facts = PathFacts {
        rtt_us: path.base_rtt_us,
        mtu_bytes: 1500,
        is_ipv6: path.local.is_ipv6(),
        rate: None,
        loss: 0.0,
        loss_kind: None,
    };
    learn(&mut facts, path);
    forecast(&facts, host)
}

/// A rate that nothing doubts.
pub fn known(bps: f64, limit: Option<Limit>) -> Rate {
    Rate {
        bps: Value {
            value: bps,
            doubt: 0.0,
        },
        limit,
    }
}

/// Adds what was learned.
pub fn learn(facts: &mut PathFacts, path: &LearnedPath) {
    let limits = [
        Limit::Application,
        Limit::OwnBuffer,
        Limit::ProgramBuffer,
        Limit::PeerWindow,
        Limit::Loss,
    ];
    let limit = path.rate_limit.as_deref();
    let limit = limits.into_iter().find(|it| Some(it.name()) == limit);
    facts.rate = path.rate_bps.map(|bps| known(bps, limit));
    facts.loss = path.retransmitted_share;
    let kind = path.loss.as_deref();
    facts.loss_kind = Loss::ALL.into_iter().find(|it| Some(it.name()) == kind);
}
