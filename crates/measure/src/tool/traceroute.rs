// SPDX-License-Identifier: MIT OR Apache-2.0
//! The routers of the path, by the system's `traceroute`.

use super::{ReadError, Values, values, words};
use serde::Serialize;

/// `tool = "traceroute"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traceroute {
    /// `udp`, `icmp` or `tcp`; the last two need root.
    pub method: String,
    /// At most so many routers.
    pub max_hops: u64,
}

impl Traceroute {
    pub(super) fn command(&self, to: &str) -> Vec<String> {
        let (method, max_hops) = (
            format!("--module={}", self.module()),
            self.max_hops.to_string(),
        );
        words(&[
            "traceroute",
            "-n",
            "-q",
            "1",
            "-w",
            "2",
            &method,
            "-m",
            &max_hops,
            "--",
            to,
        ])
    }

    /// Its UDP with a port of its own for each packet, as routers expect it, has the name `default`.
    fn module(&self) -> &str {
        match self.method.as_str() {
            "udp" => "default",
            other => other,
        }
    }
}

/// As many as a time to live can be.
const MOST_HOPS: usize = u8::MAX as usize;

/// Reads lines such as ` 2  192.0.2.1  1.234 ms` and ` 3  *`: the number of hops, and of the last that answered the
/// round-trip time. Addresses of routers are numbers of no unit, so the round-trip time of each hop stands under
/// `hop_NN ADDRESS`.
pub(super) fn read(output: &str) -> Result<Values, ReadError> {
    let hops = output.lines().filter_map(hop).take(MOST_HOPS);
    let hops: Vec<(u8, Option<(&str, f64)>)> = hops.collect();
    let last = hops
        .last()
        .ok_or_else(|| ReadError::Missing("hop".into()))?;
    let answered = hops.iter().filter(|(_, answer)| answer.is_some()).count();
    let mut read = values([
        ("hops", last.0.into(), "hops"),
        ("hops_answered", answered as f64, "hops"),
    ]);
    for (number, answer) in &hops {
        if let Some((address, rtt_ms)) = answer {
            let name = format!("hop_{number:02} {address}");
            read.insert(name, (*rtt_ms, "ms".to_owned()));
        }
    }
    Ok(read)
}

/// The time to live of a packet is a byte, and so is the number of a hop.
fn hop(line: &str) -> Option<(u8, Option<(&str, f64)>)> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let address = words.next()?;
    let rtt_ms = words.next().and_then(|word| word.parse().ok());
    Some((number, rtt_ms.map(|rtt_ms| (address, rtt_ms))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_read() {
        let output = "traceroute to 192.0.2.9 (192.0.2.9), 30 hops max, 60 byte packets\n 1  10.0.0.1  0.512 ms\n \
            2  *\n 3  192.0.2.9  20.5 ms !X\n";
        let read = read(output).unwrap();
        assert_eq!((read["hops"].0, read["hops_answered"].0), (3.0, 2.0));
        assert_eq!(read["hop_03 192.0.2.9"], (20.5, "ms".to_owned()));
    }

    #[test]
    fn no_hop_is_an_error() {
        assert!(read("").is_err());
    }
}
