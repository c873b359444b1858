// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round-trip time and loss by the system's `ping` (iputils).

use super::{ReadError, Values, seconds, values, words};
use serde::Serialize;

/// `tool = "ping"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ping {
    /// From one request to the next.
    pub interval_us: u64,
    /// ICMP data of a request.
    pub size_bytes: u64,
}

impl Ping {
    pub(super) fn command(&self, to: &str, duration_us: u64) -> Vec<String> {
        let count = (duration_us / self.interval_us).max(1).to_string();
        let (interval, size) = (seconds(self.interval_us), self.size_bytes.to_string());
        words(&[
            "ping", "-n", "-q", "-c", &count, "-i", &interval, "-s", &size, "--", to,
        ])
    }
}

/// Reads the two lines that `ping -q` ends with.
pub(super) fn read(output: &str) -> Result<Values, ReadError> {
    let counts = output
        .lines()
        .find(|line| line.contains("packets transmitted"));
    let counts = counts.ok_or_else(|| ReadError::Missing("line of counts".into()))?;
    let number_before = |what: &str| {
        let field = counts.split(", ").find(|field| field.contains(what))?;
        field.split_whitespace().next()?.parse::<f64>().ok()
    };
    let (sent, received) = (number_before("transmitted"), number_before("received"));
    let (Some(sent), Some(received)) = (sent, received) else {
        return Err(ReadError::Missing("count of packets".into()));
    };
    let loss = if sent > 0.0 {
        (1.0 - received / sent).max(0.0)
    } else {
        0.0
    };
    let mut read = values([("sent", sent, "packets"), ("loss", loss, "1")]);
    if received == 0.0 {
        return Err(ReadError::Tool(format!(
            "none of {sent} packets was answered"
        )));
    }
    if let Some([min, avg, max, mdev]) = round_trips(output) {
        read.extend(values([
            ("rtt_min", min, "ms"),
            ("rtt_avg", avg, "ms"),
            ("rtt_max", max, "ms"),
            ("rtt_mdev", mdev, "ms"),
        ]));
    }
    Ok(read)
}

/// `rtt min/avg/max/mdev = 0.020/0.025/0.031/0.004 ms`
fn round_trips(output: &str) -> Option<[f64; 4]> {
    let line = output.lines().find(|line| line.contains("min/avg/max"))?;
    let numbers = line.split_once("= ")?.1.split_once(" ms")?.0;
    let numbers: Vec<f64> = numbers.split('/').flat_map(str::parse).collect();
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n\n--- 10.0.0.1 ping statistics ---\n\
        10 packets transmitted, 9 received, 10% packet loss, time 1826ms\n\
        rtt min/avg/max/mdev = 20.031/25.044/31.105/4.002 ms\n";

    #[test]
    fn the_statistics_are_read() {
        let read = read(OUTPUT).unwrap();
        assert_eq!(read["rtt_avg"], (25.044, "ms".to_owned()));
        assert_eq!(read["rtt_mdev"].0, 4.002);
        assert!((read["loss"].0 - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_peer_that_answers_nothing_is_an_error() {
        let output = "3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2ms\n";
        assert_eq!(
            read(output),
            Err(ReadError::Tool("none of 3 packets was answered".into()))
        );
        assert!(read("").is_err());
    }

    #[test]
    fn as_many_requests_as_fit() {
        let ping = Ping {
            interval_us: 200_000,
            size_bytes: 56,
        };
        let command = ping.command("h", 2_000_000).join(" ");
        assert_eq!(command, "ping -n -q -c 10 -i 0.2 -s 56 -- h");
    }
}
