// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `tool = "single_ended"`.

use super::peers::most_rate;
use crate::SingleEnded;
use fatpath_toml::Section;

pub(super) fn read(section: &mut Section) -> SingleEnded {
    let is_tcp = section.read("method", |value| {
        value.parsed(|name| match name {
            "icmp" => Ok(false),
            "tcp" => Ok(true),
            _ => Err("\"icmp\" or \"tcp\""),
        })
    });
    let tcp_port = is_tcp.unwrap_or(false).then(|| {
        let port = section.read("port", |value| value.integer(1..=65_535));
        port.map_or(SingleEnded::PORT, |port| port as u16)
    });
    let size_bytes = section.read("size", |value| value.integer(576..=9000));
    let most_rate_bps = section.read("most_rate", most_rate);
    SingleEnded {
        tcp_port,
        size_bytes: size_bytes.unwrap_or(SingleEnded::SIZE_BYTES),
        most_rate_bps: most_rate_bps.unwrap_or(SingleEnded::MOST_RATE_BPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tool, parse};

    const FILE: &str = "[[test]]\nname = 'a'\ntool = 'single_ended'\nto = 'h'\nevery = '2h'\n";

    fn tool(more: &str) -> Result<SingleEnded, String> {
        let plan = parse(&format!("{FILE}{more}")).map_err(|problems| problems[0].to_string())?;
        match &plan.tests[0].tool {
            Tool::SingleEnded(single_ended) => Ok(single_ended.clone()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn it_is_read_with_its_defaults() {
        let usual = SingleEnded {
            tcp_port: None,
            size_bytes: 1500,
            most_rate_bps: 10_000_000_000,
        };
        assert_eq!(tool(""), Ok(usual));
        assert_eq!(tool("method = 'tcp'\n").map(|it| it.tcp_port), Ok(Some(9)));
        let more = "method = 'tcp'\nport = 443\nsize = 1400\nmost_rate = '1gbit'\n";
        let wanted = SingleEnded {
            tcp_port: Some(443),
            size_bytes: 1400,
            most_rate_bps: 1_000_000_000,
        };
        assert_eq!(tool(more), Ok(wanted));
    }

    #[test]
    fn what_it_may_not_be_is_said() {
        for (more, said) in [
            ("method = 'udp'\n", "\"icmp\" or \"tcp\""),
            ("port = 9\n", "unknown key `port`"),
            ("method = 'tcp'\nport = 0\n", "7:8: port"),
            ("size = 100\n", "576"),
            ("most_rate = '1kbit'\n", "1mbit to 100gbit"),
            (
                "duration = '61min'\n",
                "1s to 1h for a test of `single_ended`",
            ),
        ] {
            let found = tool(more).unwrap_err();
            assert!(found.contains(said), "{more}: {found}");
        }
    }
}
