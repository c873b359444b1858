// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws by the names that scenarios, sysctls and policies give them.
//!
//! Pure. The kernel's own `reno` is simulated as `fp_reno`, its `cubic` as `fp_cubic`; of its other laws the
//! simulator has none. Start with [`of_request`].

use fatpath_cc::{Law, laws};

use super::flow::LawRequest;

/// The law with its parameters.
///
/// # Errors
/// In words, with the laws that there are, or what the parameter may be.
pub fn of_request(request: &LawRequest) -> Result<Law, String> {
    let parameters = request.parameters.iter();
    let parameters: Vec<(&str, f64)> = parameters.map(|(key, value)| (&key[..], *value)).collect();
    let law = with_parameters(&request.name, &parameters)?;
    let specs = &law.spec().parameters;
    for (key, value) in parameters {
        let spec = specs.iter().find(|spec| spec.key == key);
        if let Some(spec) = spec.filter(|spec| spec.exactly(value).is_none()) {
            return Err(format!("{key} = {value} is not {}", spec.allowed()));
        }
    }
    Ok(law)
}

/// The law of that name with its default parameters.
///
/// # Errors
/// In words, with the laws that there are.
pub fn named(name: &str) -> Result<Law, String> {
    with_parameters(name, &[])
}

fn with_parameters(name: &str, parameters: &[(&str, f64)]) -> Result<Law, String> {
    let law = Law::named(name).ok_or_else(|| unknown(name))?;
    let (law, _) = law
        .with_given(parameters)
        .map_err(|error| error.to_string())?;
    Ok(law)
}

fn unknown(name: &str) -> String {
    let known: Vec<String> = laws()
        .iter()
        .map(|law| format!("fp_{}", law.name))
        .collect();
    format!(
        "the simulator does not have law {name}; it has {} (and reno and cubic, which are fp_reno and fp_cubic)",
        known.join(", ")
    )
}
