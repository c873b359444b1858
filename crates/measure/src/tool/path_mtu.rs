// SPDX-License-Identifier: MIT OR Apache-2.0
//! The largest packet that passes, by the system's `tracepath` (iputils), which needs no privilege.

use super::{ReadError, Values, values, words};

pub(super) fn command(to: &str) -> Vec<String> {
    words(&["tracepath", "-n", to])
}

/// Reads its last line, `Resume: pmtu 1500 hops 3 back 3`.
pub(super) fn read(output: &str) -> Result<Values, ReadError> {
    let line = output.lines().rev().find(|line| line.contains("Resume:"));
    let missing = || ReadError::Missing("line `Resume:`".into());
    let words: Vec<&str> = line.ok_or_else(missing)?.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse::<f64>().ok()
    };
    let mut read = values([("path_mtu", after("pmtu").ok_or_else(missing)?, "B")]);
    read.extend(
        after("hops")
            .into_iter()
            .flat_map(|hops| values([("hops", hops, "hops")])),
    );
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resume_is_read() {
        let output = " 1?: [LOCALHOST]  pmtu 1500\n 1:  10.0.0.1  0.5ms pmtu 1400\n     Resume: pmtu 1400 hops 3 back 3\n";
        let found = read(output).unwrap();
        assert_eq!((found["path_mtu"].0, found["hops"].0), (1400.0, 3.0));
        assert!(read(" 1?: [LOCALHOST] pmtu 1500\n").is_err());
        // A peer that was not reached: the number of hops is not known.
        assert_eq!(read("     Resume: pmtu 1500 \n").unwrap().len(), 1);
    }
}
