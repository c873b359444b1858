// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the models expect of a law in the long run on a path.

use crate::{Model, Outside, Path, Quantity};
use crate::{aimd, bbr, cubic, highspeed, loss_of_window, mathis, pftk, scalable, streams, tfrc};
use fatpath_cc::Law;
use serde::Serialize;

/// What one model expects, of one flow or of parallel ones together.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The model.
    pub model: &'static Model,
    /// Mean segments sent in a round trip, by loss alone; infinite without loss.
    pub window_pkts: f64,
    /// Bits of data a second, at most what the bottleneck and the largest window give; `None`: nothing limits it.
    pub rate_bps: Option<f64>,
    /// What limits it.
    pub limit: Limit,
    /// Where the model was asked outside of its range.
    pub outside: Vec<Outside>,
}

/// What limits a flow in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Loss, and how the law answers it.
    Loss,
    /// The bottleneck.
    Rate,
    /// Buffers.
    Window,
    /// Nothing that is known.
    None,
}

/// A model of a law's mean window.
struct LongRun {
    law: &'static str,
    model: &'static Model,
    window_pkts: fn(&Law, &Path) -> f64,
}

const LONG_RUN: [LongRun; 10] = [
    LongRun {
        law: "reno",
        model: &mathis::MODEL,
        window_pkts: |_, path| mathis::window_pkts(mathis::C_REGULAR, path.loss),
    },
    LongRun {
        law: "reno",
        model: &mathis::RANDOM_MODEL,
        window_pkts: |_, path| mathis::window_pkts(mathis::C_RANDOM, path.loss),
    },
    LongRun {
        law: "reno",
        model: &mathis::DELAYED_ACK_MODEL,
        window_pkts: |_, path| mathis::window_pkts(mathis::C_REGULAR_DELAYED_ACK, path.loss),
    },
    LongRun {
        law: "reno",
        model: &pftk::MODEL,
        window_pkts: |_, path| pftk::window_pkts(path, &pftk::Parameters::linux(path.rtt_s)),
    },
    LongRun {
        law: "reno",
        model: &tfrc::MODEL,
        window_pkts: |_, path| tfrc::window_pkts(path.loss),
    },
    LongRun {
        law: "aimd",
        model: &aimd::MODEL,
        window_pkts: |law, path| aimd::regular_pkts(law.number("a"), law.number("b"), path.loss),
    },
    LongRun {
        law: "aimd",
        model: &aimd::RANDOM_MODEL,
        window_pkts: |law, path| aimd::random_pkts(law.number("a"), law.number("b"), path.loss),
    },
    LongRun {
        law: "scalable",
        model: &scalable::MODEL,
        window_pkts: |law, path| scalable::window_pkts(law.number("a"), law.number("b"), path.loss),
    },
    LongRun {
        law: "highspeed",
        model: &highspeed::MODEL,
        window_pkts: |law, path| highspeed::window_pkts(law, path.loss),
    },
    LongRun {
        law: "cubic",
        model: &cubic::MODEL,
        window_pkts: |law, path| {
            cubic::window_pkts(law.number("c"), law.number("beta"), path.rtt_s, path.loss)
        },
    },
];

/// What each model of the law expects of `streams` flows together, at least 1; none for a law that no model is of. BBR's
/// bound needs the path's rate. Each flow has the path's largest window.
pub fn of_law(law: &Law, path: &Path, streams: u32) -> Vec<Expected> {
    let models = models_of(law);
    let mut expected: Vec<Expected> = models.map(|one| one.expect(law, path, streams)).collect();
    expected.extend(bbr_bound(law, path, streams));
    expected
}

/// The loss rate at which each model of the law gives this window.
pub fn losses_of_window(
    law: &Law,
    path: &Path,
    window_pkts: f64,
) -> Vec<(&'static Model, Option<f64>)> {
    let loss_of = |one: &LongRun| {
        let window_of = |loss| (one.window_pkts)(law, &Path { loss, ..*path });
        (one.model, loss_of_window(window_pkts, window_of))
    };
    models_of(law).map(loss_of).collect()
}

fn models_of(law: &Law) -> impl Iterator<Item = &'static LongRun> {
    let name = law.spec().name;
    LONG_RUN.iter().filter(move |one| one.law == name)
}

impl LongRun {
    fn expect(&self, law: &Law, path: &Path, streams: u32) -> Expected {
        let window_pkts = match path.loss > 0.0 {
            true => (self.window_pkts)(law, path),
            false => f64::INFINITY,
        };
        let timeout_s = pftk::Parameters::linux(path.rtt_s).timeout_s;
        let asked = [
            (Quantity::Loss, path.loss),
            (Quantity::WindowPkts, window_pkts),
            (Quantity::TimeoutRtt, timeout_s / path.rtt_s),
        ];
        // Without loss nothing is asked of the model.
        let count = if path.loss > 0.0 { asked.len() } else { 0 };
        let together_pkts = streams::together_pkts(streams, window_pkts);
        let (rate_bps, limit) = limited(path, together_pkts, streams);
        Expected {
            model: self.model,
            window_pkts: together_pkts,
            rate_bps,
            limit,
            outside: self.model.outside(&asked[..count]),
        }
    }
}

fn limited(path: &Path, window_pkts: f64, streams: u32) -> (Option<f64>, Limit) {
    let by_loss = (window_pkts.is_finite()).then(|| path.rate_of_window_bps(window_pkts));
    let by_window = window_limit_bps(path, streams);
    let limits = [
        (by_loss, Limit::Loss),
        (path.data_rate_bps(), Limit::Rate),
        (by_window, Limit::Window),
    ];
    let known = limits
        .into_iter()
        .filter_map(|(bps, limit)| Some((bps?, limit)));
    let least = known.min_by(|one, other| one.0.total_cmp(&other.0));
    least.map_or((None, Limit::None), |(bps, limit)| (Some(bps), limit))
}

fn window_limit_bps(path: &Path, streams: u32) -> Option<f64> {
    let most_pkts = streams::together_pkts(streams, path.max_window_pkts?);
    Some(path.rate_of_window_bps(most_pkts))
}

fn bbr_bound(law: &Law, path: &Path, streams: u32) -> Option<Expected> {
    if law.spec().name != "bbr" {
        return None;
    }
    let data_bps = path.data_rate_bps()?;
    let bound_bps = bbr::rate_bps(law, data_bps, path.rtt_s, path.loss);
    let window_bps = window_limit_bps(path, streams);
    let rate_bps = bound_bps.map(|bound| window_bps.map_or(bound, |most| bound.min(most)));
    Some(Expected {
        model: &bbr::MODEL,
        window_pkts: path.window_of_rate_pkts(rate_bps.unwrap_or(0.0)),
        rate_bps,
        limit: match rate_bps {
            None => Limit::Loss,
            _ if rate_bps == window_bps => Limit::Window,
            _ => Limit::Rate,
        },
        outside: bbr::MODEL.outside(&[(Quantity::Loss, path.loss)]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(name: &str) -> Law {
        Law::named(name).unwrap()
    }

    #[test]
    fn every_law_of_the_table_has_a_model_but_those_it_lacks() {
        let mut path = Path::new(0.1, 1e-4);
        path.rate_bps = Some(1e9);
        for spec in fatpath_cc::laws() {
            assert!(
                !of_law(&law(spec.name), &path, 1).is_empty(),
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn the_least_limit_counts() {
        let mut path = Path::new(0.1, 1e-4);
        let limit = |path: &Path| of_law(&law("reno"), path, 1)[0].limit;
        assert_eq!(limit(&path), Limit::Loss);
        path.rate_bps = Some(10e6);
        assert_eq!(limit(&path), Limit::Rate);
        path.max_window_pkts = Some(10.0);
        assert_eq!(limit(&path), Limit::Window);
    }

    #[test]
    fn streams_add_up_to_the_rate_of_the_path() {
        let mut path = Path::new(0.1, 1e-4);
        path.rate_bps = Some(50e6);
        let [one, two, ten] = [1, 2, 10].map(|n| of_law(&law("reno"), &path, n)[0].clone());
        assert_eq!(two.rate_bps.unwrap(), 2.0 * one.rate_bps.unwrap());
        assert_eq!(
            (ten.rate_bps, ten.limit),
            (path.data_rate_bps(), Limit::Rate)
        );
    }

    #[test]
    fn without_loss_only_the_rate_limits() {
        let mut path = Path::new(0.1, 0.0);
        let expected = &of_law(&law("scalable"), &path, 1)[0];
        assert_eq!((expected.rate_bps, expected.limit), (None, Limit::None));
        path.rate_bps = Some(1e9);
        let expected = &of_law(&law("scalable"), &path, 1)[0];
        assert_eq!(expected.rate_bps, path.data_rate_bps());
        assert!(expected.outside.is_empty());
    }

    #[test]
    fn the_loss_of_a_window_gives_it_back() {
        let path = Path::new(0.1, 0.0);
        for name in ["reno", "aimd", "scalable", "highspeed", "cubic"] {
            for (model, loss) in losses_of_window(&law(name), &path, 500.0) {
                let path = Path {
                    loss: loss.unwrap(),
                    ..path
                };
                let all = of_law(&law(name), &path, 1);
                let same = all.iter().find(|one| one.model == model).unwrap();
                assert!(
                    (same.window_pkts / 500.0 - 1.0).abs() < 1e-6,
                    "{}",
                    model.name
                );
            }
        }
    }
}
