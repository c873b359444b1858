// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--tcp`: what else is asked of the transport's TCP, with the keys that a flow of a scenario has.

use anyhow::{Error, Result, ensure};
use fatpath_scenario::{EndSettings, Requests};

/// What `texts` ask for.
///
/// # Errors
/// Something is out of range, or has an option of its own.
pub fn knobs(texts: &[String]) -> Result<EndSettings> {
    let asked = Requests::of_texts(texts).map_err(|why| Error::msg(format!("--tcp: {why}")))?;
    let ends = &asked.ends;
    let of_options = [
        ("law", asked.law.is_some(), "--law"),
        ("mss", asked.mss_bytes.is_some(), "--datagram-bytes"),
        ("window", asked.window_bytes.is_some(), "--window"),
        ("send_buffer", ends.send_buffer_bytes.is_some(), "--window"),
        (
            "receive_buffer",
            ends.receive_buffer_bytes.is_some(),
            "--window",
        ),
        ("pacing_rate", asked.pacing_rate_bps.is_some(), "--limit"),
    ];
    for (key, is_given, option) in of_options {
        ensure!(!is_given, "--tcp {key}: give {option}");
    }
    ensure!(
        ends.rude.is_none(),
        "--tcp rude: give --rate, for which the daemon of this host is asked"
    );
    ensure!(
        ends.fragment.is_none(),
        "--tcp fragment: the path's MTU is searched; `fatpath flow send` has it"
    );
    Ok(asked.ends)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;

    #[test]
    fn what_has_an_option_of_its_own_or_is_out_of_range_is_refused() {
        let of = |text: &str| knobs(&[text.to_owned()]).map_err(|error| error.to_string());
        assert_eq!(of("dupthresh=9,drop=[20]").unwrap().dupthresh, Some(9));
        for (text, told) in [
            ("law=fp_reno", "--tcp law: give --law"),
            ("receive_buffer=1MB", "--tcp receive_buffer: give --window"),
            ("pacing_rate=1mbit", "--tcp pacing_rate: give --limit"),
            (
                "rude={}",
                "--tcp rude: give --rate, for which the daemon of this host is asked",
            ),
            (
                "fragment=true",
                "--tcp fragment: the path's MTU is searched; `fatpath flow send` has it",
            ),
            (
                "dupthresh=0",
                "--tcp: dupthresh: found 0; allowed: a whole number from 1 to 1073741824",
            ),
        ] {
            assert_eq!(of(text).unwrap_err(), told);
        }
    }
}
