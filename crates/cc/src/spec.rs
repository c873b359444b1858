// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of laws and their parameters, as the C of bpf/cc states it.

use crate::raw::{self, RawLaw, RawParam};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// A law and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawSpec {
    /// Its name; the kernel's begins with `fp_`.
    pub name: &'static str,
    /// What it sets, and by what it goes.
    pub kind: Kind,
    /// In the order of the values that the law reads.
    pub parameters: Vec<ParameterSpec>,
    /// Whether its flows have HyStart++ (RFC 9406) where nobody says.
    pub hystart: bool,
}

/// What a law sets, and by what it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The window, by acknowledgements and congestion events: [`crate::Control`].
    Window,
    /// The window and the pacing rate, by samples of the delivery rate: [`crate::RateControl`].
    Rate,
}

/// One parameter. Numbers are integers in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Its name in policies and scenarios: that of the C without the unit.
    pub key: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// The least value.
    pub min: u32,
    /// The greatest value.
    pub max: u32,
    /// The value when none is given.
    pub initial: u32,
    /// What 1 is.
    pub unit: Unit,
}

/// What 1 is in a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 1, for example one segment.
    Whole,
    /// 1/1000.
    Milli,
    /// 10⁻⁶.
    Micro,
    /// 10⁻¹².
    Pico,
}

/// Suffixes of the C names and what they mean; a key is the name without its suffix.
const SUFFIXES: [(&str, Unit); 4] = [
    ("_pkts", Unit::Whole),
    ("_milli", Unit::Milli),
    ("_micro", Unit::Micro),
    ("_pico", Unit::Pico),
];

/// The laws of [`Kind::Window`], which come first.
pub fn window_laws() -> impl Iterator<Item = &'static LawSpec> {
    laws().iter().filter(|law| law.kind == Kind::Window)
}

/// Every law, in the order of `CC_ALL_LAWS`.
pub fn laws() -> &'static [LawSpec] {
    static LAWS: OnceLock<Vec<LawSpec>> = OnceLock::new();
    LAWS.get_or_init(read_table)
}

impl Unit {
    /// How many make 1.
    pub fn per_one(self) -> u64 {
        match self {
            Unit::Whole => 1,
            Unit::Milli => 1_000,
            Unit::Micro => 1_000_000,
            Unit::Pico => 1_000_000_000_000,
        }
    }
}

impl ParameterSpec {
    /// A value of this parameter as people write it.
    pub fn to_number(&self, value: u32) -> f64 {
        f64::from(value) / self.unit.per_one() as f64
    }

    /// The nearest value to what a person wrote; `None` outside of the range.
    pub fn from_number(&self, number: f64) -> Option<u32> {
        let value = (number * self.unit.per_one() as f64).round();
        let is_in_range = value >= f64::from(self.min) && value <= f64::from(self.max);
        is_in_range.then_some(value as u32)
    }

    /// A number in its range that the law's integers hold exactly.
    pub fn exactly(&self, number: f64) -> Option<f64> {
        let value = self.to_number(self.from_number(number)?);
        // A decimal fraction is no binary one.
        ((value - number).abs() <= 1e-9 * value).then_some(value)
    }

    /// Its range and its meaning, for people.
    pub fn allowed(&self) -> String {
        let (min, max) = (self.to_number(self.min), self.to_number(self.max));
        let decimals = match self.unit.per_one().ilog10() {
            0 => String::new(),
            3 => " with at most three decimals".to_owned(),
            count => format!(" with at most {count} decimals"),
        };
        format!("{min} to {max}{decimals} ({})", self.meaning)
    }
}

fn read_table() -> Vec<LawSpec> {
    // SAFETY: the table of host.c is constant and ends with a null name.
    let laws = unsafe { until_null(raw::fatpath_laws(), |law: &RawLaw| law.name) };
    laws.iter().zip(0..).map(read_law).collect()
}

fn read_law((law, number): (&RawLaw, u32)) -> LawSpec {
    // SAFETY: a law's parameters are constant and end with a null name; names are C strings.
    let (params, name) = unsafe {
        (
            until_null(law.params, |param: &RawParam| param.name),
            text(law.name),
        )
    };
    LawSpec {
        name,
        kind: kind_of(number),
        parameters: params.iter().map(read_param).collect(),
        hystart: law.hystart != 0,
    }
}

fn kind_of(number: u32) -> Kind {
    // SAFETY: compares two numbers.
    let is_window = unsafe { raw::fatpath_is_window_law(number) != 0 };
    if is_window { Kind::Window } else { Kind::Rate }
}

fn read_param(param: &RawParam) -> ParameterSpec {
    // SAFETY: both are C strings that live for ever.
    let (name, meaning) = unsafe { (text(param.name), text(param.meaning)) };
    let (key, unit) = SUFFIXES
        .iter()
        .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))
        .unwrap_or((name, Unit::Whole));
    ParameterSpec {
        key,
        meaning,
        min: param.least,
        max: param.most,
        initial: param.initial,
        unit,
    }
}

/// # Safety
/// `first` begins a constant array that ends with an entry whose name is null.
unsafe fn until_null<T>(first: *const T, name: fn(&T) -> *const c_char) -> &'static [T] {
    // SAFETY: all entries up to the null one exist.
    unsafe {
        let mut count = 0;
        while !name(&*first.add(count)).is_null() {
            count += 1;
        }
        std::slice::from_raw_parts(first, count)
    }
}

/// # Safety
/// `text` is a C string that lives for ever.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .expect("the table of laws is ASCII")
}
