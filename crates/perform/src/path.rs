// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a path is like from here.

use crate::perform;
use anyhow::{Context, Result, bail};
use fatpath_measure::{Iperf3, Protocol, Test, Tool};
use rustix::net::sockopt;
use serde::Serialize;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// Handshakes with a port that answers.
const HANDSHAKES: usize = 5;

/// Longer than a SYN, and its first retransmission a second later, take to the other side of the world.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ports that hosts often have: HTTPS, SSH.
pub const PORTS: [u16; 2] = [443, 22];

/// The peer's answers to a SYN.
#[derive(Debug, Serialize)]
pub struct Handshakes {
    /// The port that was asked.
    pub port: u16,
    /// It refused: a round trip all the same.
    pub refused: bool,
    /// The least time from SYN to answer.
    pub least_us: f64,
    /// The most.
    pub most_us: f64,
    /// So many.
    pub count: usize,
}

/// What a transfer showed.
#[derive(Debug, Serialize)]
pub struct Transfer {
    /// Bits of data a second that arrived.
    pub goodput_bps: f64,
    /// Segments sent again, of those sent.
    pub retransmitted_share: f64,
    /// How long it lasted.
    pub seconds: u32,
}

/// The destination's first address, and the port that it names.
pub fn resolve(destination: &str) -> Result<(IpAddr, Option<u16>)> {
    if let Ok(address) = destination.parse::<IpAddr>() {
        return Ok((address, None));
    }
    if let Ok(end) = destination.parse::<SocketAddr>() {
        return Ok((end.ip(), Some(end.port())));
    }
    let (name, port) = match destination.split_once(':') {
        Some((name, port)) => (name, Some(port_of(port)?)),
        None => (destination, None),
    };
    let mut addresses = (name, port.unwrap_or_default())
        .to_socket_addrs()
        .with_context(|| format!("'{name}' cannot be resolved"))?;
    let address = addresses.next();
    let address = address.with_context(|| format!("'{name}' has no address"))?;
    Ok((address.ip(), port))
}

fn port_of(text: &str) -> Result<u16> {
    let port = text.parse();
    port.with_context(|| {
        format!(
            "'{text}' is not a TCP port: give a number, such as {}",
            PORTS[0]
        )
    })
}

/// Handshakes with the first of these ports that answers, by accepting or by refusing.
pub fn handshakes(address: IpAddr, ports: &[u16]) -> Result<Handshakes> {
    let mut silent = Vec::new();
    for port in ports {
        let end = SocketAddr::new(address, *port);
        match handshake(end) {
            Ok(first) => return Ok(repeated(end, first)),
            Err(error) => silent.push(format!("port {port}: {error}")),
        }
    }
    bail!(
        "{address} does not answer ({}); name a TCP port that does: --port",
        silent.join("; ")
    )
}

fn repeated(end: SocketAddr, first: (Duration, bool)) -> Handshakes {
    let (first, refused) = first;
    let more = (1..HANDSHAKES).filter_map(|_| handshake(end).ok());
    let times: Vec<f64> = std::iter::once(first)
        .chain(more.map(|(time, _)| time))
        .map(|time| time.as_secs_f64() * 1e6)
        .collect();
    Handshakes {
        port: end.port(),
        refused,
        least_us: times.iter().copied().fold(f64::INFINITY, f64::min),
        most_us: times.iter().copied().fold(0.0, f64::max),
        count: times.len(),
    }
}

/// How long the answer took, and whether it was a refusal.
fn handshake(end: SocketAddr) -> std::io::Result<(Duration, bool)> {
    let begun = Instant::now();
    match TcpStream::connect_timeout(&end, PATIENCE) {
        Ok(_) => Ok((begun.elapsed(), false)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok((begun.elapsed(), true)),
        Err(error) => Err(error),
    }
}

/// How this host's kernel sends there.
pub struct Route {
    /// This host's address.
    pub local: IpAddr,
    /// The largest packet, by the route and by what routers have told.
    pub mtu_bytes: u32,
}

/// The kernel's route. No packet is sent.
pub fn route(address: IpAddr) -> Result<Route> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket
        .connect((address, PORTS[0]))
        .with_context(|| format!("no route to {address}"))?;
    let mtu_bytes = match address {
        IpAddr::V4(_) => sockopt::ip_mtu(&socket)?,
        IpAddr::V6(_) => sockopt::ipv6_mtu(&socket)?,
    };
    let local = socket.local_addr()?.ip();
    Ok(Route { local, mtu_bytes })
}

/// Sends for so long to an iperf3 server there.
pub fn transfer(address: IpAddr, port: u16, seconds: u32, mss_bytes: u32) -> Result<Transfer> {
    let duration_us = u64::from(seconds) * 1_000_000;
    let test = Test {
        name: "iperf3".to_owned(),
        to: Some(address.to_string()),
        every_us: duration_us,
        duration_us,
        jitter: 0.0,
        resources: Vec::new(),
        passive_first: false,
        tool: Tool::Iperf3(Iperf3 {
            port,
            protocol: Protocol::Tcp,
            streams: 1,
            congestion_control: None,
            rate_bps: None,
            window_bytes: None,
            reverse: false,
        }),
    };
    let outcome = perform(&test, None, || true);
    if let Some(note) = outcome.note {
        bail!("iperf3: {}", note.message);
    }
    let value = |name: &str| outcome.values.get(name).map(|(value, _)| *value);
    let goodput_bps = value("goodput").context("the output of iperf3 has no rate")?;
    let sent = value("bytes").unwrap_or_default() / f64::from(mss_bytes.max(1));
    Ok(Transfer {
        goodput_bps,
        retransmitted_share: value("retransmits").unwrap_or_default() / sent.max(1.0),
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn destinations_are_names_addresses_and_ends() {
        let port = |text: &str| resolve(text).unwrap();
        assert_eq!(port("192.0.2.7").1, None);
        assert_eq!(port("192.0.2.7:2811").1, Some(2811));
        assert_eq!(port("[2001:db8::7]:22").1, Some(22));
        assert!(port("2001:db8::7").0.is_ipv6());
        assert_eq!(port("localhost:80").1, Some(80));
        assert!(resolve("no.such.host.invalid").is_err());
        assert!(resolve("localhost:http").is_err());
    }

    #[test]
    fn a_port_that_listens_and_one_that_refuses_both_show_a_round_trip() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let seen = handshakes(open.ip(), &[open.port()]).unwrap();
        assert_eq!((seen.refused, seen.count), (false, HANDSHAKES));
        assert!(seen.least_us > 0.0 && seen.least_us <= seen.most_us);
        drop(listener);
        let seen = handshakes(open.ip(), &[open.port()]).unwrap();
        assert!(seen.refused);
        let route = route(open.ip()).unwrap();
        assert!(route.mtu_bytes > 1500 && route.local == open.ip());
    }
}
