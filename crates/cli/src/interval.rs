// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often something is read, on a command line.

/// Seconds between two readings.
pub fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "give a number of seconds, such as 1".to_owned())?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("give 0.1 to 3600 seconds".to_owned()),
    }
}
