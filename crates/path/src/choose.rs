// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what is known of a path to what its flows get, each setting with its reason.

use crate::estimate::{Estimate, Rate};
use crate::evidence::{Limit, Loss};
use crate::key::PathKey;
use crate::profile::{Law, Profile, finely_stepped_down, stepped, stepped_down};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Buffers are so many bandwidth-delay products: one in flight, one while a loss is repaired.
const BUFFER_BDPS: f64 = 2.0;

/// `fp_bbr` has up to 2.25 in flight, and goes on sending while losses are repaired (docs/bbr.md).
const BBR_BUFFER_BDPS: f64 = 6.0;

/// A receiver does not know which law the sender has.
const RECEIVE_BDPS: f64 = BBR_BUFFER_BDPS;

/// While buffers, or losses that are not of a long queue, held flows back, the path's rate may be so many times the one that is known.
const GROWTH: f64 = 4.0;

/// Of the kernel's largest buffer about half is payload; the rest is its own overhead.
const PAYLOAD_SHARE: f64 = 0.5;

/// On a shorter path the host's settings do well, and another law may harm its neighbours.
const LONG_US: f64 = 5_000.0;

/// Where more is lost without a queue, many senders may be filling a very short one, and a law that does not answer to
/// losses would make it worse. `fp_bbr` itself loses up to 2 % of a round trip (draft-ietf-ccwg-bbr-06, BBR.LossThresh)
/// when it looks for more, which is part of what flows show.
const MOST_LOST: f64 = 0.05;

/// A flow starts at this share of the rate that is known, where no more than so much is lost (RFC 9959: half).
const START_SHARE: f64 = 0.5;
const MOST_LOST_TO_START: f64 = 0.01;
/// A start at less is no faster than ten segments at once.
const LEAST_START_PKTS: f64 = 20.0;

/// Of the rate that was found, so much is used: rates over a second vary by some hundredths.
const PACED_SHARE: f64 = 0.97;

/// Half a step more, so that no threshold is a step too low: CUBIC takes many round trips for the rest of a long path.
const BEYOND_BDP: f64 = 1.19;

/// Bound of the policy's setting.
const MOST_PACING_BPS: f64 = 34e9;

/// Thresholds below this would end slow start where it does no harm.
const LEAST_SSTHRESH_PKTS: u64 = 64;
/// Bounds of the policy's settings.
const MOST_SSTHRESH_PKTS: u64 = 1 << 20;
const LEAST_BUFFER_BYTES: f64 = 4096.0;
const MOST_BUFFER_BYTES: u64 = (1 << 30) - 1;
const MOST_RATE_BPS: u64 = 1_000_000_000_000;

/// What cures it where programs' own buffers hold a path back.
const SMALL_BUFFERS: &str = "buffers that programs set held flows back: override_application = true under [auto], or in a rule \
     with buffers for these flows, replaces them";

/// What the host does by itself, what it can bear, and what its policy allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its law: `net.ipv4.tcp_congestion_control`.
    pub law: String,
    /// To how many bytes the kernel grows a send buffer: the third number of `net.ipv4.tcp_wmem`.
    pub send_autotuned_bytes: u64,
    /// The same of a receive buffer: of `net.ipv4.tcp_rmem`.
    pub receive_autotuned_bytes: u64,
    /// Largest buffer that one flow may be given, bytes.
    pub most_buffer_bytes: u64,
    /// Smaller buffers that programs set are replaced.
    pub overrides: bool,
    /// Peers to which the paths are the site's own.
    pub private: Vec<IpNet>,
}

/// Who else uses a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Anybody: its flows take no more of it than flows of the host's law would.
    Shared,
    /// It is the site's own: only its own flows lose what one takes of another.
    Private,
}

impl Host {
    /// Who else uses the path, by the policy: a private prefix holds all peers of a private path.
    pub fn trust(&self, key: &PathKey) -> Trust {
        match self.private.iter().any(|own| own.contains(&key.prefix)) {
            true => Trust::Private,
            false => Trust::Shared,
        }
    }
}

/// What the flows of a path get, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The settings.
    pub profile: Profile,
    /// For people, one a setting, or why there is none.
    pub reasons: Vec<String>,
}

impl Choice {
    fn none(reason: impl Into<String>) -> Choice {
        Choice {
            profile: Profile::default(),
            reasons: vec![reason.into()],
        }
    }

    fn because(&mut self, reason: String) {
        self.reasons.push(reason);
    }
}

/// What the flows of a path get.
pub fn choose(estimate: &Estimate, host: &Host, trust: Trust) -> Choice {
    let rtt_us = estimate.base_rtt_us.value;
    if estimate.is_mixed {
        return Choice::none("its peers are at different distances: no one setting suits them");
    }
    if rtt_us < LONG_US {
        let ms = rtt_us / 1e3;
        return Choice::none(format!(
            "a round trip of {ms:.1} ms is short: the host's own settings are enough"
        ));
    }
    let Some(rate) = estimate.rate else {
        return Choice::none("no flow lasted long enough to show its rate");
    };
    let mut choice = Choice::default();
    set_law(&mut choice, estimate, rate, host, trust);
    set_buffers(&mut choice, estimate, rate, host);
    if choice.reasons.is_empty() {
        choice.because("the host's settings carry its rate".to_owned());
    }
    choice
}

fn set_law(choice: &mut Choice, estimate: &Estimate, rate: Rate, host: &Host, trust: Trust) {
    let holds_back = estimate.loss.is_some_and(Loss::holds_back);
    if !holds_back || estimate.retransmitted_share > MOST_LOST {
        set_start(choice, estimate, rate, host, trust);
    } else if !set_pace(choice, estimate, rate, host) {
        choice.profile.law = Some(Law::Bbr);
        let reason = match estimate.loss {
            Some(Loss::Policed) => {
                "fp_bbr: what exceeds a rate is dropped without a queue, and fp_bbr finds that rate"
            }
            _ => "fp_bbr: segments are lost although no long queue delays them",
        };
        choice.because(reason.to_owned());
        if let (Some(Loss::Random | Loss::ShortQueue), Some(bdp_bytes)) =
            (estimate.loss, estimate.bdp_bytes())
        {
            set_rate(choice, estimate, rate, bdp_bytes);
        }
    }
}

/// Once `fp_bbr` has found the rate, a flow below it loses nothing where losses come of exceeding it: at a policer, a short
/// queue, or one that an AQM keeps short. Its law answers to losses, so it makes way for others. A flow that loses segments
/// without a queue all the same shows that they are lost at any rate. Answers whether the path gets this.
fn set_pace(choice: &mut Choice, estimate: &Estimate, rate: Rate, host: &Host) -> bool {
    let bdp_bytes = estimate.bdp_bytes().unwrap_or_default();
    let pkts = ssthresh_pkts(estimate, bdp_bytes);
    let bps = rate.bps.value * PACED_SHARE;
    let is_known = estimate.is_found && rate.limit.is_none() && bps <= MOST_PACING_BPS;
    if estimate.loses_paced || !is_known || host.law != "cubic" || pkts < LEAST_SSTHRESH_PKTS {
        return false;
    }
    let bps = finely_stepped_down(bps);
    choice.profile.law = Some(Law::Cubic);
    choice.profile.initial_ssthresh_pkts = Some(pkts.min(MOST_SSTHRESH_PKTS));
    choice.profile.pacing_rate_bps = Some(bps);
    choice.because(format!(
        "fp_cubic, paced at {:.1} Mb/s, below the {:.1} that fp_bbr found: where losses come of exceeding the rate there \
         are none",
        bps as f64 / 1e6,
        rate.bps.value / 1e6
    ));
    set_rate(choice, estimate, rate, bdp_bytes);
    true
}

/// Slow start ends where the path is full. The host's law stays CUBIC, in the form that heeds the threshold. On a path of the
/// site's own Scalable TCP takes its place: it is back at its window within 14 round trips whatever the path's size, where
/// CUBIC takes the longer the larger the window was.
fn set_start(choice: &mut Choice, estimate: &Estimate, rate: Rate, host: &Host, trust: Trust) {
    let Some(bdp_bytes) = estimate.bdp_bytes() else {
        return;
    };
    let pkts = ssthresh_pkts(estimate, bdp_bytes);
    if host.law != "cubic" || rate.limit.is_some() || pkts < LEAST_SSTHRESH_PKTS {
        return;
    }
    let pkts = pkts.min(MOST_SSTHRESH_PKTS);
    let meets_queue = matches!(estimate.loss, Some(Loss::None | Loss::Queue));
    let (law, why) = match trust {
        Trust::Private if meets_queue => (Law::Scalable, " on a path of the site's own"),
        _ => (Law::Cubic, ""),
    };
    choice.profile.law = Some(law);
    choice.profile.initial_ssthresh_pkts = Some(pkts);
    choice.because(format!(
        "{}{why}, with slow start up to {pkts} segments: {:.1} Mb/s x {:.1} ms",
        law.name(),
        rate.bps.value / 1e6,
        estimate.base_rtt_us.value / 1e3
    ));
    set_rate(choice, estimate, rate, bdp_bytes);
}

fn ssthresh_pkts(estimate: &Estimate, bdp_bytes: f64) -> u64 {
    stepped(bdp_bytes / f64::from(estimate.mss_bytes.max(1)) * BEYOND_BDP)
}

/// Slow start takes a round trip for each doubling: a flow that begins at half of the rate saves most of them.
fn set_rate(choice: &mut Choice, estimate: &Estimate, rate: Rate, bdp_bytes: f64) {
    // Slow start on the path while it was unknown tells nothing of a start below its rate.
    let given = estimate.given_retransmitted_share;
    let share = match estimate.loss {
        Some(Loss::None | Loss::Queue) => Some(given.unwrap_or(estimate.retransmitted_share)),
        // Where losses tell nothing of a queue, only flows with learned settings tell what a start costs.
        Some(Loss::Random | Loss::ShortQueue) => given,
        _ => None,
    };
    let is_clean = share.is_some_and(|share| share <= MOST_LOST_TO_START);
    let start_pkts = START_SHARE * bdp_bytes / f64::from(estimate.mss_bytes.max(1));
    if !is_clean || start_pkts < LEAST_START_PKTS {
        return;
    }
    let bps = stepped_down(START_SHARE * rate.bps.value).min(MOST_RATE_BPS);
    choice.profile.initial_rate_bps = Some(bps);
    choice.because(format!(
        "a start paced at {:.1} Mb/s, at most half of the known rate, for an hour after a flow had it",
        bps as f64 / 1e6
    ));
}

fn set_buffers(choice: &mut Choice, estimate: &Estimate, rate: Rate, host: &Host) {
    let rtt_us = estimate.high_rtt_us.min(2.0 * estimate.base_rtt_us.value);
    let growth = match rate.limit {
        Some(Limit::OwnBuffer | Limit::ProgramBuffer | Limit::Loss) => GROWTH,
        _ => 1.0,
    };
    let bdp_bytes = rate.bps.value * rtt_us / 8e6;
    // A flow that goes from fp_bbr to a pace keeps its buffers.
    let is_paced = choice.profile.pacing_rate_bps.is_some();
    let send_bdps = match choice.profile.law {
        Some(Law::Bbr) => BBR_BUFFER_BDPS,
        _ if is_paced => BBR_BUFFER_BDPS,
        _ => BUFFER_BDPS,
    };
    // A buffer that takes a program's place is given to all flows of the path, also to those whose buffer the kernel would
    // grow: it is about what the kernel grows it to, or more.
    let replaces = estimate.has_small_buffers && host.overrides;
    let most = host.most_buffer_bytes.min(MOST_BUFFER_BYTES);
    let by_path = |bdps: f64| bdps * growth * bdp_bytes;
    let least = |autotuned: u64| match replaces {
        true => autotuned.min(most) as f64,
        false => LEAST_BUFFER_BYTES,
    };
    let given = |bdps: f64, autotuned: u64| {
        let bytes = by_path(bdps).max(least(autotuned));
        let suffices = bytes <= autotuned as f64 * PAYLOAD_SHARE || most <= autotuned;
        (replaces || !suffices).then(|| stepped(bytes).min(most))
    };
    let grown = match growth > 1.0 {
        true => ", four times: its rate may be higher than flows could show",
        false => "",
    };
    let sides = [
        ("send", send_bdps, host.send_autotuned_bytes),
        ("receive", RECEIVE_BDPS, host.receive_autotuned_bytes),
    ];
    for (name, bdps, autotuned) in sides {
        let Some(bytes) = given(bdps, autotuned) else {
            continue;
        };
        let mb = bytes as f64 / 1e6;
        let (mbps, ms) = (rate.bps.value / 1e6, rtt_us / 1e3);
        choice.because(match replaces && by_path(bdps) < least(autotuned) {
            true => format!(
                "{name} buffer of {mb:.1} MB, as the kernel grows it: programs set smaller ones"
            ),
            false => {
                format!("{name} buffer of {mb:.1} MB: {bdps} x {mbps:.1} Mb/s x {ms:.1} ms{grown}")
            }
        });
    }
    let [send, receive] = sides.map(|(_, bdps, autotuned)| given(bdps, autotuned));
    choice.profile.send_buffer_bytes = send;
    choice.profile.receive_buffer_bytes = receive;
    set_override(choice, estimate, host);
    if rate.limit == Some(Limit::PeerWindow) {
        choice.because("the peer's window holds flows back: only the peer can raise it".to_owned());
    }
}

/// Programs that set buffers themselves keep them, unless the administrator says otherwise.
fn set_override(choice: &mut Choice, estimate: &Estimate, host: &Host) {
    let profile = &mut choice.profile;
    let gives_buffer =
        profile.send_buffer_bytes.is_some() || profile.receive_buffer_bytes.is_some();
    if gives_buffer && host.overrides {
        profile.override_application = true;
        choice.because(
            "smaller buffers that programs set are replaced: override_application under [auto]"
                .to_owned(),
        );
    } else if estimate.has_small_buffers && !host.overrides {
        choice.because(SMALL_BUFFERS.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Value;
    use Trust::{Private, Shared};
    use proptest::prelude::*;

    fn host() -> Host {
        Host {
            law: "cubic".into(),
            send_autotuned_bytes: 4 << 20,
            receive_autotuned_bytes: 32 << 20,
            most_buffer_bytes: 512 << 20,
            overrides: false,
            private: Vec::new(),
        }
    }

    fn path(rate_bps: f64, rtt_us: f64, loss: Loss) -> Estimate {
        let value = |value| Value { value, doubt: 0.02 };
        Estimate {
            flows: 10,
            seen_us: 0,
            base_rtt_us: value(rtt_us),
            high_rtt_us: rtt_us * 1.2,
            rate: Some(Rate {
                bps: value(rate_bps),
                limit: None,
            }),
            loss: Some(loss),
            is_found: false,
            loses_paced: false,
            retransmitted_share: 1e-4,
            given_retransmitted_share: None,
            has_small_buffers: false,
            is_mixed: false,
            mss_bytes: 1448,
        }
    }

    #[test]
    fn a_long_fat_path_gets_buffers_and_the_end_of_slow_start() {
        let choice = choose(&path(1e9, 100e3, Loss::Queue), &host(), Shared);
        // 2 x 1 Gb/s x 120 ms = 30 MB, 6 times 90 MB; 12.5 MB are 8,633 segments.
        assert_eq!(choice.profile.send_buffer_bytes, Some(33_554_432));
        assert_eq!(choice.profile.receive_buffer_bytes, Some(94_906_266));
        assert_eq!(choice.profile.law, Some(Law::Cubic));
        assert_eq!(choice.profile.initial_ssthresh_pkts, Some(11_585));
        let rate = choice.profile.initial_rate_bps.unwrap();
        assert!((350_000_000..=500_000_000).contains(&rate), "{rate}");
        assert_eq!(choice.reasons.len(), 4, "{choice:?}");
    }

    #[test]
    fn what_slow_start_lost_on_the_unknown_path_ends_no_start_at_its_rate() {
        let lossy = Estimate {
            retransmitted_share: 0.04,
            ..path(200e6, 300e3, Loss::Queue)
        };
        let rate_of = |known: &Estimate| choose(known, &host(), Shared).profile.initial_rate_bps;
        assert_eq!(rate_of(&lossy), None);
        let given = |share| Estimate {
            given_retransmitted_share: Some(share),
            ..lossy.clone()
        };
        assert!(rate_of(&given(0.0)).is_some());
        assert_eq!(rate_of(&given(0.02)), None);
    }

    #[test]
    fn losses_without_a_queue_ask_for_bbr() {
        let random = choose(&path(1e9, 100e3, Loss::Random), &host(), Shared).profile;
        assert_eq!(random.law, Some(Law::Bbr));
        assert_eq!(
            random.initial_rate_bps, None,
            "nobody knows what a start costs"
        );
        let rate_of = |loss, share| {
            let tried = Estimate {
                loss,
                given_retransmitted_share: Some(share),
                ..path(1e9, 100e3, Loss::Random)
            };
            choose(&tried, &host(), Shared).profile.initial_rate_bps
        };
        let started = rate_of(Some(Loss::Random), 0.005);
        assert!(started.is_some_and(|bps| bps <= 500_000_000));
        assert_eq!(rate_of(Some(Loss::Random), 0.02), None);
        assert!(rate_of(Some(Loss::ShortQueue), 0.005).is_some());
        assert_eq!(rate_of(Some(Loss::Policed), 0.0), None);
        assert_eq!(rate_of(None, 0.0), None);
        assert_eq!(random.initial_ssthresh_pkts, None);
        assert_eq!(random.send_buffer_bytes, random.receive_buffer_bytes);
        let heavy = Estimate {
            retransmitted_share: 0.06,
            ..path(1e9, 100e3, Loss::Random)
        };
        let heavy = choose(&heavy, &host(), Shared).profile;
        assert_eq!(
            (heavy.law, heavy.initial_rate_bps),
            (Some(Law::Cubic), None)
        );
        let policed = choose(&path(20e6, 20e3, Loss::Policed), &host(), Shared).profile;
        assert_eq!(policed.law, Some(Law::Bbr));
        assert_eq!(policed.initial_ssthresh_pkts, None);
        assert_eq!(policed.initial_rate_bps, None);
    }

    #[test]
    fn buffers_that_hold_back_grow_fourfold() {
        let mut held = path(100e6, 100e3, Loss::None);
        held.rate = held.rate.map(|rate| Rate {
            limit: Some(Limit::OwnBuffer),
            ..rate
        });
        let choice = choose(&held, &host(), Shared);
        // 2 x 4 x 100 Mb/s x 120 ms = 12 MB, and three times as much to receive.
        assert_eq!(choice.profile.send_buffer_bytes, Some(11_863_283));
        assert_eq!(choice.profile.receive_buffer_bytes, Some(33_554_432));
        assert_eq!(choice.profile.law, None, "its rate is not known");
    }

    #[test]
    fn buffers_that_programs_set_are_replaced_only_where_that_is_allowed() {
        let held = Estimate {
            has_small_buffers: true,
            rate: Some(Rate {
                bps: path(10e6, 20e3, Loss::None).rate.unwrap().bps,
                limit: Some(Limit::ProgramBuffer),
            }),
            ..path(10e6, 20e3, Loss::None)
        };
        let kept = choose(&held, &host(), Shared);
        assert!(kept.profile.is_empty(), "the kernel's own would do");
        assert!(kept.reasons[0].contains("override_application = true under [auto]"));
        let allowing = Host {
            overrides: true,
            ..host()
        };
        let replaced = choose(&held, &allowing, Shared).profile;
        assert_eq!(replaced.send_buffer_bytes, Some(4 << 20));
        assert_eq!(replaced.receive_buffer_bytes, Some(32 << 20));
        assert!(replaced.override_application);
        for limit in [None, Some(Limit::Application), Some(Limit::PeerWindow)] {
            let rate = held.rate.map(|rate| Rate { limit, ..rate });
            let other = Estimate {
                rate,
                ..held.clone()
            };
            let other = choose(&other, &allowing, Shared).profile;
            let bytes = (other.send_buffer_bytes, other.receive_buffer_bytes);
            assert_eq!(bytes, (Some(4 << 20), Some(32 << 20)), "{limit:?}");
        }
        let unheld = choose(&path(10e6, 20e3, Loss::None), &allowing, Shared).profile;
        assert!(unheld.is_empty(), "{unheld:?}");
        let fat = choose(&path(1e9, 100e3, Loss::Queue), &allowing, Shared).profile;
        assert!(fat.override_application);
        assert_ne!(
            fat,
            choose(&path(1e9, 100e3, Loss::Queue), &host(), Shared).profile
        );
    }

    #[test]
    fn a_path_of_the_sites_own_gets_a_stronger_law_where_losses_meet_a_queue() {
        let of = |estimate: &Estimate, trust| choose(estimate, &host(), trust).profile;
        let queued = path(1e9, 100e3, Loss::Queue);
        let (private, shared) = (of(&queued, Private), of(&queued, Shared));
        assert_eq!(private.law, Some(Law::Scalable));
        let but_for_law = Profile {
            law: Some(Law::Cubic),
            ..private
        };
        assert_eq!(but_for_law, shared);
        for loss in [Loss::Random, Loss::Policed] {
            let other = path(1e9, 100e3, loss);
            assert_eq!(of(&other, Private), of(&other, Shared));
        }
        let reno = Host {
            law: "reno".into(),
            ..host()
        };
        assert_eq!(choose(&queued, &reno, Private).profile.law, None);
    }

    #[test]
    fn a_private_prefix_holds_all_peers_of_the_path() {
        let trust = |private: &str| {
            let host = Host {
                private: vec![private.parse().unwrap()],
                ..host()
            };
            let local = "198.51.100.1".parse().unwrap();
            host.trust(&PathKey::new(local, "192.0.2.7".parse().unwrap()))
        };
        assert_eq!(
            (trust("192.0.2.0/24"), trust("192.0.0.0/16")),
            (Private, Private)
        );
        for other in ["192.0.2.7/32", "192.0.3.0/24", "::/0"] {
            assert_eq!(trust(other), Shared, "{other}");
        }
    }

    #[test]
    fn what_needs_nothing_gets_nothing() {
        let near = choose(&path(10e9, 200.0, Loss::Queue), &host(), Shared);
        let thin = choose(&path(5e6, 20e3, Loss::Queue), &host(), Shared);
        let mixed = Estimate {
            is_mixed: true,
            ..path(1e9, 100e3, Loss::Queue)
        };
        let unknown = Estimate {
            rate: None,
            ..path(1e9, 100e3, Loss::Queue)
        };
        for choice in [
            near,
            thin,
            choose(&mixed, &host(), Shared),
            choose(&unknown, &host(), Shared),
        ] {
            assert!(choice.profile.is_empty(), "{choice:?}");
            assert_eq!(choice.reasons.len(), 1, "{choice:?}");
        }
    }

    proptest! {
        #[test]
        fn settings_are_within_their_bounds(
            rate_bps in 1e3..1e13_f64, rtt_us in 1.0..60e6_f64, queue in 1.0..100.0_f64, loss in proptest::sample::select(&Loss::ALL[..]),
            most in 0..1_u64 << 40,
        ) {
            let estimate = Estimate { high_rtt_us: rtt_us * queue, ..path(rate_bps, rtt_us, loss) };
            let host = Host { most_buffer_bytes: most, ..host() };
            let profile = choose(&estimate, &host, Shared).profile;
            for bytes in [profile.send_buffer_bytes, profile.receive_buffer_bytes].into_iter().flatten() {
                prop_assert!(bytes <= most.min(MOST_BUFFER_BYTES) && bytes >= 4096);
            }
            let pkts = profile.initial_ssthresh_pkts.unwrap_or(LEAST_SSTHRESH_PKTS);
            prop_assert!((LEAST_SSTHRESH_PKTS..=MOST_SSTHRESH_PKTS).contains(&pkts));
        }
    }
}
