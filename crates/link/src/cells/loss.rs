// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss on the way, by any of several patterns, which each have a file of their own. Takes no time and
//! keeps order.

mod gilbert_elliott;
mod listed;
mod periodic;
mod windows;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cells::at_once::{Effect, Outcome};
use crate::cells::{is_drawn, percent};
use crate::random::{Picker, Random, Stretch};
use crate::{CellSpec, DropCause, Packet, SpecError};

use gilbert_elliott::GilbertElliott;
use listed::Listed;
use periodic::Periodic;
use windows::Windows;

/// Which segments get lost. Segments count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// Each with the same probability, whatever befell the others.
    Independent {
        /// 0 to 1.
        probability: f64,
    },
    /// In bursts: a chain of two states, which steps after every segment (Gilbert 1960, Elliott 1963).
    /// The first segment meets the good state.
    GilbertElliott {
        /// Probability of a step from good to bad.
        to_bad: f64,
        /// Probability of a step from bad to good.
        to_good: f64,
        /// Probability of loss in the good state; 0 in Gilbert's model.
        loss_in_good: f64,
        /// Probability of loss in the bad state; 1 in the simplest model.
        loss_in_bad: f64,
    },
    /// Exactly these data segments of a flow, as they come (retransmitted, they count again).
    Packets {
        /// Which flow, counted from 1 in the order of their first data segments; `None`: of every flow.
        flow: Option<u32>,
        /// Numbers of data segments, rising.
        packets: Vec<u64>,
    },
    /// Every so many segments, one.
    Periodic {
        /// The period, at least 1.
        every: u64,
        /// The first that is lost, 1 to `every`.
        first: u64,
    },
    /// With a probability, but only during these times.
    Windows {
        /// The windows, in order, not overlapping.
        windows: Vec<LossWindow>,
    },
}

/// A time in which segments get lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossWindow {
    /// Since the chain was made.
    pub from_ns: u64,
    /// Likewise; not in the window any more.
    pub until_ns: u64,
    /// 0 to 1.
    pub probability: f64,
}

impl LossSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        match self {
            LossSpec::Independent { probability } => loss_probability(*probability),
            LossSpec::GilbertElliott {
                to_bad,
                to_good,
                loss_in_good,
                loss_in_bad,
            } => [
                ("step from good to bad", to_bad),
                ("step from bad to good", to_good),
                ("loss in the good state", loss_in_good),
                ("loss in the bad state", loss_in_bad),
            ]
            .into_iter()
            .try_for_each(|(what, value)| SpecError::unless_probability(what, *value)),
            LossSpec::Packets { flow, packets } => listed::check(*flow, packets),
            LossSpec::Periodic { every, first } => periodic::check(*every, *first),
            LossSpec::Windows { windows } => windows::check(windows),
        }
    }

    pub(crate) fn is_random(&self) -> bool {
        match self {
            LossSpec::Independent { probability } => is_drawn(*probability),
            LossSpec::GilbertElliott {
                to_bad,
                to_good,
                loss_in_good,
                loss_in_bad,
            } => [to_bad, to_good, loss_in_good, loss_in_bad]
                .into_iter()
                .any(|probability| is_drawn(*probability)),
            LossSpec::Packets { .. } | LossSpec::Periodic { .. } => false,
            LossSpec::Windows { windows } => {
                let mut windows = windows.iter();
                windows.any(|window| is_drawn(window.probability))
            }
        }
    }
}

fn loss_probability(probability: f64) -> Result<(), SpecError> {
    SpecError::unless_probability("loss", probability)
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LossSpec::Independent { probability } => write!(f, "loss {}", percent(*probability)),
            LossSpec::GilbertElliott { .. } => f.write_str("loss in bursts"),
            LossSpec::Packets { packets, .. } => {
                write!(f, "loss of {} exact packets", packets.len())
            }
            LossSpec::Periodic { every, .. } => write!(f, "loss of one in {every}"),
            LossSpec::Windows { windows } => write!(f, "loss in {} windows of time", windows.len()),
        }
    }
}

/// The effect of a [`LossSpec`].
#[derive(Debug)]
pub(crate) struct Loss {
    spec: LossSpec,
    pattern: Pattern,
    random: Random,
}

#[derive(Debug)]
enum Pattern {
    Independent(Picker),
    GilbertElliott(GilbertElliott),
    Listed(Listed),
    Periodic(Periodic),
    Windows(Windows),
}

impl Loss {
    pub(crate) fn new(spec: LossSpec, mut random: Random) -> Loss {
        Loss {
            pattern: Pattern::new(&spec, &mut random),
            spec,
            random,
        }
    }
}

impl<P: Packet> Effect<P> for Loss {
    fn meet(&mut self, now_ns: u64, packet: P, out: &mut Outcome<P>) {
        let Loss {
            pattern, random, ..
        } = self;
        let next = |packet: &P| pattern.next(now_ns, packet, random);
        out.sift(now_ns, packet, next, |lost, out| {
            out.drop(DropCause::Loss, lost)
        });
    }

    fn change(&mut self, spec: &CellSpec) -> bool {
        let CellSpec::Loss(spec) = spec else {
            return false;
        };
        if *spec != self.spec {
            self.pattern.change(spec, &mut self.random);
            self.spec = spec.clone();
        }
        true
    }
}

impl Pattern {
    fn new(spec: &LossSpec, random: &mut Random) -> Pattern {
        match spec {
            LossSpec::Independent { probability } => {
                Pattern::Independent(Picker::new(*probability, random))
            }
            LossSpec::GilbertElliott {
                to_bad,
                to_good,
                loss_in_good,
                loss_in_bad,
            } => Pattern::GilbertElliott(GilbertElliott::new(
                [*to_bad, *to_good],
                [*loss_in_good, *loss_in_bad],
                random,
            )),
            LossSpec::Packets { flow, packets } => {
                Pattern::Listed(Listed::new(*flow, packets.clone()))
            }
            LossSpec::Periodic { every, first } => Pattern::Periodic(Periodic::new(*every, *first)),
            LossSpec::Windows { windows } => Pattern::Windows(Windows::new(windows.clone())),
        }
    }

    /// What becomes of the next segments of `packet`.
    fn next<P: Packet>(&mut self, now_ns: u64, packet: &P, random: &mut Random) -> Stretch {
        let limit = packet.wire().segments;
        match self {
            Pattern::Independent(picker) => picker.next(limit, random),
            Pattern::GilbertElliott(chain) => chain.next(limit, random),
            Pattern::Listed(listed) => listed.next(packet),
            Pattern::Periodic(periodic) => periodic.next(limit),
            Pattern::Windows(windows) => windows.next(now_ns, limit, random),
        }
    }

    /// Flows known and their counts stay for another list; a period begins anew.
    fn change(&mut self, spec: &LossSpec, random: &mut Random) {
        match (self, spec) {
            (Pattern::Independent(picker), LossSpec::Independent { probability }) => {
                picker.change(*probability, random);
            }
            (Pattern::Listed(listed), LossSpec::Packets { flow, packets }) => {
                listed.change(*flow, packets.clone());
            }
            (pattern, spec) => *pattern = Pattern::new(spec, random),
        }
    }
}
