// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which connections are listed, and in which order; how many are kept.

use clap::ValueEnum;
use fatpath_capture::{Connection, Direction};
use fatpath_policy::Prefix;
use fatpath_record::{CapturedFile, RecordError};
use std::net::IpAddr;
use std::str::FromStr;

/// About 2 kB each. More lines than this nobody reads; a scan of ports would make millions.
const MOST: usize = 50_000;

/// Key of the order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Number: the order of first segments
    Flow,
    /// Data acknowledged
    Bytes,
    /// Data acknowledged by time
    Goodput,
    /// Median round-trip time
    Rtt,
    /// Segments sent again
    Retransmissions,
    /// Time from first to last segment
    Duration,
}

/// What a connection must have.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    Port(u16),
    Prefix(Prefix),
    Finding(String),
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let upper = text.to_ascii_uppercase();
        if upper.starts_with("FP-") {
            return Ok(Filter::Finding(upper));
        }
        if let Ok(port) = text.parse() {
            return Ok(Filter::Port(port));
        }
        let prefix = match text.parse::<IpAddr>() {
            Ok(address) => Prefix::holding(address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) => text.parse().ok(),
        };
        let prefix = prefix.map(Filter::Prefix);
        prefix.ok_or("give an address, a prefix, a port or a finding such as FP-RWND".to_owned())
    }
}

impl Filter {
    fn fits(&self, connection: &Connection) -> bool {
        let ends = [connection.client, connection.server].map(|end| end.socket());
        match self {
            Filter::Port(port) => ends.iter().any(|end| end.port() == *port),
            Filter::Prefix(prefix) => ends.iter().any(|end| prefix.contains(end.ip())),
            Filter::Finding(id) => connection.findings.iter().any(|found| found.id == id),
        }
    }
}

/// The connections that are listed.
pub struct Chosen {
    sort: Sort,
    filters: Vec<Filter>,
    /// All, if empty.
    flows: Vec<u64>,
    pub connections: Vec<Connection>,
    /// That fit, and had no room.
    pub left_out: u64,
    /// All that fit are written to it, however many.
    file: Option<CapturedFile>,
}

impl Chosen {
    pub fn new(sort: Sort, filters: Vec<Filter>, flows: &[u64]) -> Chosen {
        Chosen {
            sort,
            filters,
            flows: flows.to_vec(),
            connections: Vec::new(),
            left_out: 0,
            file: None,
        }
    }

    /// Writes them to a file, too, as they end.
    #[must_use]
    pub fn writing(mut self, file: CapturedFile) -> Chosen {
        self.file = Some(file);
        self
    }

    /// The bytes of the file, now that nothing more comes.
    pub fn finish_file(&mut self) -> Result<Option<u64>, RecordError> {
        self.file.take().map(CapturedFile::finish).transpose()
    }

    /// Takes those that fit; of too many those that come first.
    pub fn extend(&mut self, connections: Vec<Connection>) -> Result<(), RecordError> {
        for connection in connections {
            let is_asked = self.flows.is_empty() || self.flows.contains(&connection.flow);
            if is_asked && self.filters.iter().all(|filter| filter.fits(&connection)) {
                if let Some(file) = &mut self.file {
                    file.take(connection.clone())?;
                }
                self.connections.push(connection);
            }
            if self.connections.len() >= 2 * MOST {
                self.order();
            }
        }
        Ok(())
    }

    /// Sorts, and keeps no more than are listed.
    pub fn order(&mut self) {
        let key = |c: &Connection| match self.sort {
            Sort::Flow => 0.0,
            Sort::Bytes => -(busier(c).acked_bytes as f64),
            Sort::Goodput => -busier(c).goodput_bps,
            Sort::Rtt => -busier(c).rtt.map_or(0.0, |rtt| rtt.median_us),
            Sort::Retransmissions => {
                let ways = [&c.from_client, &c.from_server];
                -(ways
                    .map(|way| way.retransmitted_packets)
                    .iter()
                    .sum::<u64>() as f64)
            }
            Sort::Duration => -c.duration_us,
        };
        self.connections
            .sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.flow.cmp(&b.flow)));
        self.left_out += self.connections.len().saturating_sub(MOST) as u64;
        self.connections.truncate(MOST);
    }
}

/// The direction with more data.
pub fn busier(connection: &Connection) -> &Direction {
    match is_from_client(connection) {
        true => &connection.from_client,
        false => &connection.from_server,
    }
}

/// Whether the client sent more than it got.
pub fn is_from_client(connection: &Connection) -> bool {
    connection.from_client.unique_bytes >= connection.from_server.unique_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_by_its_form() {
        assert_eq!("443".parse(), Ok(Filter::Port(443)));
        assert_eq!("fp-rwnd".parse(), Ok(Filter::Finding("FP-RWND".to_owned())));
        for prefix in ["10.0.0.1", "10.0.0.0/8", "2001:db8::1"] {
            assert!(matches!(prefix.parse(), Ok(Filter::Prefix(_))), "{prefix}");
        }
        for wrong in ["", "host", "70000", "10.0.0.0/40"] {
            assert!(wrong.parse::<Filter>().is_err(), "{wrong}");
        }
    }
}
