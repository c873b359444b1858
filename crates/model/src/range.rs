// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a model: formula, source, where it holds, how far from the simulator it may be.

use serde::Serialize;
use std::fmt;

/// What is known of a model.
#[derive(Debug, PartialEq, Serialize)]
pub struct Model {
    /// Its name on the command line and in docs/model.md; unique.
    pub name: &'static str,
    /// In the words of the field: W in segments, p the loss rate, R the round-trip time.
    pub formula: &'static str,
    /// Paper or RFC with equation or section.
    pub source: &'static str,
    /// Which losses it is made for.
    pub losses: Losses,
    /// Where it holds.
    pub range: &'static [Bound],
    /// Its greatest relative error against the simulator in that range; `None`: plain arithmetic, or nothing that the
    /// simulator could contradict.
    pub sim_error: Option<f64>,
}

/// How losses are spread, which changes the mean rate at the same loss rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Losses {
    /// One after every 1/p segments.
    Regular,
    /// Each segment is lost with the same probability, whatever became of others.
    Random,
    /// Either gives the same.
    Any,
    /// The first loss of a round trip takes the rest of it with it.
    Bursts,
    /// It does not depend on loss.
    None,
}

/// A range in which a model holds.
#[derive(Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Of what.
    pub of: Quantity,
    /// From.
    pub min: f64,
    /// To.
    pub max: f64,
    /// What the model leaves out that counts beyond it.
    pub why: &'static str,
}

/// What ranges are stated of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Share of segments, 0 to 1.
    Loss,
    /// The window that the model gives or is given, segments.
    WindowPkts,
    /// Flows that share a link.
    Flows,
    /// The fraction of the window that a loss takes, 0 to 1.
    GivenUp,
    /// A queue, in bandwidth-delay products.
    QueueBdp,
    /// Data of a transfer, in segments.
    TransferPkts,
    /// Lost segments of a transfer in the mean.
    LossesOfTransfer,
    /// The retransmission timeout, in round-trip times.
    TimeoutRtt,
}

/// A model was asked outside of its range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outside {
    /// Which model.
    pub model: &'static str,
    /// Of what.
    pub of: Quantity,
    /// What it was asked.
    pub value: f64,
    /// From.
    pub min: f64,
    /// To.
    pub max: f64,
    /// What the model leaves out there.
    pub why: &'static str,
}

impl Model {
    /// The bounds that the values are outside of; a quantity that is not among the values is not checked.
    pub fn outside(&self, values: &[(Quantity, f64)]) -> Vec<Outside> {
        let mut found = Vec::new();
        for bound in self.range {
            let asked = values.iter().filter(|(of, _)| *of == bound.of);
            let beyond = asked.filter(|(_, value)| !(bound.min..=bound.max).contains(value));
            found.extend(beyond.map(|(of, value)| Outside {
                model: self.name,
                of: *of,
                value: *value,
                min: bound.min,
                max: bound.max,
                why: bound.why,
            }));
        }
        found
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Losses::Regular => "regular",
            Losses::Random => "random",
            Losses::Any => "any",
            Losses::Bursts => "bursts",
            Losses::None => "-",
        })
    }
}

impl Quantity {
    /// A value as people read it.
    pub fn text(self, value: f64) -> String {
        match self {
            Quantity::Loss | Quantity::GivenUp => format!("{} %", significant(100.0 * value)),
            Quantity::WindowPkts | Quantity::TransferPkts => {
                format!("{} segments", significant(value))
            }
            Quantity::Flows => format!("{} flows", significant(value)),
            Quantity::QueueBdp => format!("{} bdp", significant(value)),
            Quantity::LossesOfTransfer => format!("{} losses", significant(value)),
            Quantity::TimeoutRtt => format!("{} round trips", significant(value)),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Quantity::Loss => "a loss of",
            Quantity::GivenUp => "giving up",
            Quantity::WindowPkts => "a window of",
            Quantity::TransferPkts => "a transfer of",
            Quantity::Flows => "for",
            Quantity::QueueBdp => "a queue of",
            Quantity::LossesOfTransfer => "a transfer with",
            Quantity::TimeoutRtt => "a timeout of",
        }
    }
}

/// Three digits, without an exponent where people can read it without.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    match digits {
        ..=0 => format!("{value:.0}"),
        1..=8 => {
            let text = format!("{value:.*}", digits as usize);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.0e}"),
    }
}

/// `pftk: a loss of 20 % is outside of 0.01 % to 5 %: ...`
impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, value) = (self.of.noun(), self.of.text(self.value));
        write!(f, "{}: {noun} {value} is ", self.model)?;
        match self.value < self.min {
            true => write!(f, "below {}", self.of.text(self.min))?,
            false => write!(f, "above {}", self.of.text(self.max))?,
        }
        write!(f, ": {}", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model {
        name: "m",
        formula: "",
        source: "",
        losses: Losses::Any,
        range: &[Bound {
            of: Quantity::Loss,
            min: 1e-6,
            max: 0.02,
            why: "timeouts",
        }],
        sim_error: None,
    };

    #[test]
    fn a_value_outside_is_named_with_the_reason() {
        let values = |loss| [(Quantity::Loss, loss), (Quantity::Flows, 1e9)];
        assert_eq!(MODEL.outside(&values(0.02)), []);
        let text = |loss| MODEL.outside(&values(loss))[0].to_string();
        assert_eq!(text(0.05), "m: a loss of 5 % is above 2 %: timeouts");
        assert_eq!(
            text(1.234e-8),
            "m: a loss of 0.00000123 % is below 0.0001 %: timeouts"
        );
    }
}
