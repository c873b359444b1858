// SPDX-License-Identifier: MIT OR Apache-2.0
//! A congestion-control law as a rule chooses it.
//!
//! The laws of bpf/cc, their parameters and ranges come from `fatpath-cc`; the kernel has them under
//! [`OUR_PREFIX`]. Another law may be chosen by name, without parameters. Whether a law is registered
//! is not known here.

use fatpath_cc::ParameterSpec;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;

/// What the names of our laws begin with in the kernel: modules own the bare names.
pub const OUR_PREFIX: &str = "fp_";

/// What a rude flow runs: no law of congestion control, and not to be chosen as one.
pub const RUDE_LAW: &str = "fp_rude";

/// A congestion-control law as a rule chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law {
    name: String,
    ours: Option<fatpath_cc::Law>,
}

/// A parameter's value, in the unit of its key.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Parameter {
    /// Its key in the policy file.
    pub key: &'static str,
    /// Its value as people write it.
    pub value: f64,
}

/// Our laws by the kernel's names.
pub fn our_laws() -> impl Iterator<Item = String> {
    fatpath_cc::laws()
        .iter()
        .map(|spec| format!("{OUR_PREFIX}{}", spec.name))
}

/// Those that set the window alone: the kernel's recovery, the settings of the start-up and Rude TCP's fair window
/// are made for them.
pub fn our_window_laws() -> impl Iterator<Item = String> {
    fatpath_cc::window_laws().map(|spec| format!("{OUR_PREFIX}{}", spec.name))
}

impl Law {
    /// The law of that name, 1 to 15 bytes; ours with every parameter at its initial value.
    pub(crate) fn named(name: &str) -> Law {
        let ours = name.strip_prefix(OUR_PREFIX);
        Law {
            name: name.to_owned(),
            ours: ours.and_then(fatpath_cc::Law::named),
        }
    }

    /// The name under which it is registered with the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The law of `fatpath-cc`, with its parameters; `None` for a law of the kernel's own.
    pub fn ours(&self) -> Option<fatpath_cc::Law> {
        self.ours
    }

    /// One of [`our_window_laws`].
    pub(crate) fn is_our_window_law(&self) -> bool {
        self.kind() == Some(fatpath_cc::Kind::Window)
    }

    /// One that goes by samples of the delivery rate, and paces by them.
    pub(crate) fn is_our_rate_law(&self) -> bool {
        self.kind() == Some(fatpath_cc::Kind::Rate)
    }

    fn kind(&self) -> Option<fatpath_cc::Kind> {
        self.ours.map(|law| law.spec().kind)
    }

    /// Its place among the laws of `fatpath-cc`, as the kernel half counts them; `None` as in [`ours`](Self::ours).
    pub fn number(&self) -> Option<u32> {
        our_laws()
            .position(|law| law == self.name)
            .and_then(|number| u32::try_from(number).ok())
    }

    /// Every parameter in the order in which the law reads them; empty for a law without any.
    pub fn parameters(&self) -> Vec<Parameter> {
        let ours = self.ours.iter();
        let pairs = ours.flat_map(|law| law.spec().parameters.iter().zip(law.values()));
        let parameter = |(spec, value): (&ParameterSpec, &u32)| Parameter {
            key: spec.key,
            value: spec.to_number(*value),
        };
        pairs.map(parameter).collect()
    }
}

impl From<fatpath_cc::Law> for Law {
    fn from(law: fatpath_cc::Law) -> Law {
        Law {
            name: format!("{OUR_PREFIX}{}", law.spec().name),
            ours: Some(law),
        }
    }
}

/// `fp_aimd(a = 6, b = 0.3)`.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ours {
            Some(law) => write!(f, "{OUR_PREFIX}{law}"),
            None => f.write_str(&self.name),
        }
    }
}

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut law = serializer.serialize_struct("Law", 2)?;
        law.serialize_field("name", &self.name)?;
        law.serialize_field("parameters", &self.parameters())?;
        law.end()
    }
}
