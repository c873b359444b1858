// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the models expect of a law in the long run on a path.

use crate::{Model, Outside, Path, Quantity};
use crate::{aimd, bbr, cubic, highspeed, loss_of_window, mathis, pftk, scalable, tfrc};
use fatpath_cc::Law;

/// What one model expects.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What each model of the law expects; none for a law that no model is of. BBR's bound needs the path's rate.
pub fn of_law(law: &Law, path: &Path) -> Vec<Expected> {
    let models = models_of(law);
    let mut expected: Vec<Expected> = models.map(|one| one.expect(law, path)).collect();
    expected.extend(bbr_bound(law, path));
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
    fn expect(&self, law: &Law, path: &Path) -> Expected {
        let window_pkts = match path.loss > 0.0 {
            true => (self.window_pkts)(law, path),
            false => f64::INFINITY,
        };
        let asked = [
            (Quantity::Loss, path.loss),
            (Quantity::WindowPkts, window_pkts),
        ];
        // Without loss nothing is asked of the model.
        let count = if path.loss > 0.0 { asked.len() } else { 0 };
        let (rate_bps, limit) = limited(path, window_pkts);
        Expected {
            model: self.model,
            window_pkts,
            rate_bps,
            limit,
            outside: self.model.outside(&asked[..count]),
        }
    }
}

fn limited(path: &Path, window_pkts: f64) -> (Option<f64>, Limit) {
    let by_loss = (window_pkts.is_finite()).then(|| path.rate_of_window_bps(window_pkts));
    let by_window = path
        .max_window_pkts
        .map(|most| path.rate_of_window_bps(most));
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

fn bbr_bound(law: &Law, path: &Path) -> Option<Expected> {
    if law.spec().name != "bbr" {
        return None;
    }
    let data_bps = path.data_rate_bps()?;
    let bound_bps = bbr::rate_bps(law, data_bps, path.rtt_s, path.loss);
    let window_bps = path
        .max_window_pkts
        .map(|most| path.rate_of_window_bps(most));
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
            assert!(!of_law(&law(spec.name), &path).is_empty(), "{}", spec.name);
        }
    }

    #[test]
    fn the_least_limit_counts() {
        let mut path = Path::new(0.1, 1e-4);
        let limit = |path: &Path| of_law(&law("reno"), path)[0].limit;
        assert_eq!(limit(&path), Limit::Loss);
        path.rate_bps = Some(10e6);
        assert_eq!(limit(&path), Limit::Rate);
        path.max_window_pkts = Some(10.0);
        assert_eq!(limit(&path), Limit::Window);
    }

    #[test]
    fn without_loss_only_the_rate_limits() {
        let mut path = Path::new(0.1, 0.0);
        let expected = &of_law(&law("scalable"), &path)[0];
        assert_eq!((expected.rate_bps, expected.limit), (None, Limit::None));
        path.rate_bps = Some(1e9);
        let expected = &of_law(&law("scalable"), &path)[0];
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
                let all = of_law(&law(name), &path);
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
