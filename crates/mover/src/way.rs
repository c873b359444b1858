// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which way the data go: UDP where it gets through, and else TCP. The end that calls tries, the called answers.

use crate::protocol::{Agreed, Carrier, Ready, Start};
use anyhow::{Context, Result, bail, ensure};
use fatpath_driver::tcp::{self, Connection, Listener, Role};
use fatpath_driver::{Answered, BindError, Bound, Ping, Pong, Socket, StepError};
use fatpath_transport::{Cipher, FlowSecret, Secret};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

/// How long a question to the path waits for its answer.
const ASK_WITHIN: Duration = Duration::from_secs(3);
/// What every path of IPv6 carries (RFC 8200, 5), less headers.
pub const BASE_DATAGRAM_BYTES: u16 = 1232;
/// What Ethernet carries, by IPv6.
pub const ETHERNET_DATAGRAM_BYTES: u16 = 1452;
/// Beside Ethernet's, sizes that are asked for before data go: the base, that of IPv4 by tunnels with an MTU of 1400, of IPv6
/// by jumbo frames.
const OTHER_DATAGRAM_BYTES: [u16; 3] = [BASE_DATAGRAM_BYTES, 1372, 8952];
/// What a round trip takes at least, as far as the transport reckons before it has measured.
const LEAST_RTT: Duration = Duration::from_micros(100);
/// How long the called end waits for a question before it looks at the control channel.
const ANSWER_WAIT: Duration = Duration::from_millis(5);
/// Flows of UDP, or connections of TCP, at most.
pub const MOST_FLOWS: u16 = 32;
/// Where nobody says how many: one has what the path carries.
const FLOWS_OF_UDP: u16 = 1;
/// Connections where nobody says how many: the kernel's largest buffers, 4 to 6 MB as it is installed, hold less than a
/// long path does.
const LONG_RTT: Duration = Duration::from_millis(5);
const FLOWS_OF_LONG_PATHS: u16 = 8;

/// What was found.
pub enum Way {
    Udp(Udp),
    Tcp(Vec<Connection>),
}

/// Datagrams get through.
pub struct Udp {
    pub flows: Vec<Flow>,
    pub rtt: Duration,
    pub datagram_bytes: u16,
    /// What the path let through of a short train in the direction of the data, bits of datagrams a second, if that could be
    /// told.
    pub train_bps: Option<u64>,
}

/// One flow of UDP.
pub struct Flow {
    pub secret: FlowSecret,
    pub socket: Socket,
    pub bound: Bound,
    /// Where the other end is; `None`: its first datagram will tell.
    pub peer: Option<SocketAddr>,
}

impl Way {
    pub fn carrier(&self) -> Carrier {
        match self {
            Way::Udp(_) => Carrier::Udp,
            Way::Tcp(_) => Carrier::Tcp,
        }
    }

    /// Flows, or connections.
    pub fn flows(&self) -> usize {
        match self {
            Way::Udp(udp) => udp.flows.len(),
            Way::Tcp(connections) => connections.len(),
        }
    }

    /// What the path let through of a short train, if it was asked and that could be told.
    pub fn train_bps(&self) -> Option<u64> {
        match self {
            Way::Udp(udp) => udp.train_bps,
            Way::Tcp(_) => None,
        }
    }

    /// What the first UDP socket got; others get as much.
    pub fn bound(&self) -> Option<&Bound> {
        match self {
            Way::Udp(udp) => udp.flows.first().map(|flow| &flow.bound),
            Way::Tcp(_) => None,
        }
    }
}

/// A secret for each thing that is sealed.
pub struct Keys {
    ping: FlowSecret,
    udp: Vec<FlowSecret>,
    tcp: Vec<FlowSecret>,
    pub cipher: Cipher,
    pub role: Role,
}

impl Keys {
    /// From both ends' random bytes; both ends draw in this order, whatever they will use.
    pub fn new(caller: &[u8; 32], called: &[u8; 32], cipher: Cipher, role: Role) -> Result<Keys> {
        let mut secret = Secret::agree(caller, called);
        let mut next = |count| {
            let flows = (0..count).map(|_| secret.next_flow());
            let flows: Option<Vec<_>> = flows.collect();
            flows.context("a new secret has flows")
        };
        Ok(Keys {
            ping: next(1)?.remove(0),
            udp: next(MOST_FLOWS)?,
            tcp: next(MOST_FLOWS)?,
            cipher,
            role,
        })
    }
}

/// The end that calls.
pub struct Caller<'a> {
    pub agreed: &'a Agreed,
    pub ready: &'a Ready,
    /// The other end's.
    pub address: IpAddr,
    /// Chooses where to look for a port first; it is known to both ends only, as ports are to everybody.
    pub random: &'a [u8; 32],
}

impl Caller<'_> {
    /// Tries what may carry the data, and says what to tell the other end.
    pub fn find(&self, keys: Keys) -> Result<(Way, Start)> {
        let Keys {
            ping,
            udp,
            tcp,
            cipher,
            role,
        } = keys;
        self.refuse_what_was_not_agreed()?;
        let at = |port| SocketAddr::new(self.address, port);
        let peers: Vec<_> = self.ready.udp_ports.iter().copied().map(at).collect();
        if let Some(way) = self.by_udp(&peers, Ping::new(ping, cipher), udp, role)? {
            let start = Start::Udp {
                rtt_us: u32::try_from(way.rtt.as_micros()).unwrap_or(u32::MAX),
                datagram_bytes: way.datagram_bytes,
                train_bps: way.train_bps,
            };
            return Ok((Way::Udp(way), start));
        }
        let Some(peer) = self.ready.tcp_port.map(at) else {
            bail!(
                "UDP does not get through to {} and back: open the UDP ports of --ports in firewalls at both ends, or give \
                 --address if the other end has another address, or let TCP carry the data: --carrier auto",
                self.address
            );
        };
        let connections = self.by_tcp(peer, tcp, role, cipher).with_context(|| {
            let what = match self.agreed.carrier {
                Carrier::Auto => "neither UDP nor TCP gets",
                _ => "TCP does not get",
            };
            format!(
                "{what} through to {peer}: open the ports of --ports in the firewall there, or give --address if the other end \
                 has another address"
            )
        })?;
        let count = connections.len() as u16;
        Ok((Way::Tcp(connections), Start::Tcp { connections: count }))
    }

    fn refuse_what_was_not_agreed(&self) -> Result<()> {
        let (udp, tcp) = (self.ready.udp_ports.len(), self.ready.tcp_port);
        let most = usize::from(self.agreed.flows.unwrap_or(FLOWS_OF_UDP));
        let is_agreed = match self.agreed.carrier {
            Carrier::Auto => udp <= most,
            Carrier::Udp => udp <= most && tcp.is_none(),
            Carrier::Tcp => udp == 0,
        };
        ensure!(
            is_agreed,
            "the other end offers another way for the data than was asked for"
        );
        Ok(())
    }

    /// A flow to each of `peers`; `None`: nothing comes back from the first.
    fn by_udp(
        &self,
        peers: &[SocketAddr],
        mut ping: Ping,
        secrets: Vec<FlowSecret>,
        role: Role,
    ) -> Result<Option<Udp>> {
        let ours = unspecified(self.address);
        let flows = peers.iter().zip(secrets).map(|(peer, secret)| {
            let (socket, bound) = bind(ours, self.agreed.ports, self.random)?;
            Ok(Flow {
                secret,
                socket,
                bound,
                peer: Some(*peer),
            })
        });
        let mut flows = flows.collect::<Result<Vec<_>>>()?;
        let (Some(first), Some(peer)) = (flows.first_mut(), peers.first()) else {
            return Ok(None);
        };
        let most = self.agreed.datagram_bytes;
        let (train, others) = sizes(most);
        let mut ask = |train, others: &[u16]| match ping.ask(
            &mut first.socket,
            *peer,
            train,
            others,
            ASK_WITHIN,
        ) {
            Err(StepError::TooLong(_)) => Ok(None),
            answered => answered,
        };
        let Some(answered) = ask(train, &others)? else {
            return Ok(None);
        };
        let datagram_bytes = answered.datagram_bytes;
        // A train that was too long tells no rate.
        let by_train = match datagram_bytes < train {
            true => ask(datagram_bytes, &[])?.unwrap_or(answered),
            false => answered,
        };
        Ok(Some(Udp {
            flows,
            rtt: answered.rtt.max(LEAST_RTT),
            datagram_bytes,
            train_bps: of_data(&by_train, role),
        }))
    }

    /// The first connection shows how long the path is, and with it how many there are to be.
    fn by_tcp(
        &self,
        peer: SocketAddr,
        flows: Vec<FlowSecret>,
        role: Role,
        cipher: Cipher,
    ) -> Result<Vec<Connection>> {
        let connect = |flow| tcp::connect(peer, flow, role, cipher, ASK_WITHIN);
        let mut flows = flows.into_iter();
        let first = connect(flows.next().context("a new secret has flows")?)?;
        let count = self.agreed.flows.unwrap_or(match first.rtt() >= LONG_RTT {
            true => FLOWS_OF_LONG_PATHS,
            false => 1,
        });
        let others = flows.take(usize::from(count) - 1);
        let others: io::Result<Vec<_>> = thread::scope(|scope| {
            let others: Vec<_> = others
                .map(|flow| scope.spawn(move || connect(flow)))
                .collect();
            let joined = others.into_iter().map(|other| other.join());
            joined
                .map(|other| other.unwrap_or_else(|_| Err(io::Error::other("a thread has failed"))))
                .collect()
        });
        Ok(std::iter::once(first).chain(others?).collect())
    }
}

/// The end that is called, while the other one tries.
pub struct Called {
    pong: Pong,
    /// The first is asked by datagrams.
    flows: Vec<Flow>,
    listener: Option<Listener>,
}

impl Called {
    /// Opens what may carry the data, on the address `at`, or on all that the host has.
    pub fn open(
        agreed: &Agreed,
        keys: Keys,
        random: &[u8; 32],
        at: Option<IpAddr>,
    ) -> Result<Called> {
        let count = match agreed.carrier {
            Carrier::Tcp => 0,
            _ => usize::from(agreed.flows.unwrap_or(FLOWS_OF_UDP)),
        };
        let flows = keys.udp.into_iter().take(count).map(|secret| {
            let (socket, bound) = bind_at(at, |address| bind(address, agreed.ports, random))?;
            Ok(Flow {
                secret,
                socket,
                bound,
                peer: None,
            })
        });
        let flows = flows.collect::<Result<Vec<_>>>()?;
        let (ports, first) = (agreed.ports.0..=agreed.ports.1, seek(random));
        let listener = match agreed.carrier {
            Carrier::Udp => None,
            _ => {
                let bind = |address| Listener::bind(address, ports.clone(), first);
                Some(bind_at(at, bind)?.expecting(keys.tcp, keys.role, keys.cipher))
            }
        };
        Ok(Called {
            pong: Pong::new(keys.ping, keys.cipher),
            flows,
            listener,
        })
    }

    /// Where the UDP sockets are, and where it listens for TCP.
    pub fn ports(&self) -> Result<(Vec<u16>, Option<u16>)> {
        let udp = self.flows.iter().map(|flow| flow.bound.address.port());
        let udp = udp.collect();
        let tcp = self.listener.as_ref().map(Listener::port).transpose()?;
        Ok((udp, tcp))
    }

    /// Answers what has come, and waits a little for more. Says whether the other end was heard.
    pub fn answer(&mut self) -> Result<bool> {
        let mut is_heard = false;
        match self.flows.first_mut() {
            Some(first) => {
                if let Some(asked_by) = self.pong.answer(&mut first.socket, ANSWER_WAIT)? {
                    (first.peer, is_heard) = (Some(asked_by), true);
                }
            }
            None => thread::sleep(ANSWER_WAIT),
        }
        if let Some(listener) = &mut self.listener {
            listener.poll()?;
        }
        Ok(is_heard)
    }

    /// The other end has chosen.
    pub fn start(self, start: &Start) -> Result<Way> {
        match *start {
            Start::Udp {
                rtt_us,
                datagram_bytes,
                train_bps,
            } => {
                let first = self.flows.first();
                ensure!(
                    first.is_some_and(|first| first.peer.is_some()),
                    "the caller says that UDP gets through, and nothing came"
                );
                Ok(Way::Udp(Udp {
                    flows: self.flows,
                    rtt: Duration::from_micros(rtt_us.into()).max(LEAST_RTT),
                    datagram_bytes,
                    train_bps,
                }))
            }
            Start::Tcp { connections } => {
                let mut listener = self
                    .listener
                    .context("the caller goes by TCP, which it did not want")?;
                ensure!(
                    connections > 0 && listener.poll()? == usize::from(connections),
                    "the caller says that TCP gets through, and has other connections"
                );
                Ok(Way::Tcp(listener.into_connections()))
            }
        }
    }
}

/// Sizes of datagrams up to `most` that a path is asked for: by a train, and by one of each.
fn sizes(most: u16) -> (u16, Vec<u16>) {
    let train = most.min(ETHERNET_DATAGRAM_BYTES);
    let others = OTHER_DATAGRAM_BYTES.into_iter().chain([most]);
    let mut others: Vec<_> = others
        .filter(|size| *size <= most && *size != train)
        .collect();
    others.dedup();
    (train, others)
}

/// In the direction of the data, of the end that asked.
fn of_data(answered: &Answered, role: Role) -> Option<u64> {
    match role {
        Role::Sends => answered.there_bps,
        Role::Receives => answered.back_bps,
    }
}

/// Without an address on IPv6 and IPv4, where the host has IPv6.
fn bind_at<T>(
    at: Option<IpAddr>,
    mut bind: impl FnMut(IpAddr) -> Result<T, BindError>,
) -> Result<T, BindError> {
    if let Some(address) = at {
        return bind(address);
    }
    match bind(Ipv6Addr::UNSPECIFIED.into()) {
        Err(BindError::Io(..)) => bind(Ipv4Addr::UNSPECIFIED.into()),
        bound => bound,
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn seek(random: &[u8; 32]) -> u16 {
    let seek = blake3::hash(random);
    u16::from_le_bytes([seek.as_bytes()[0], seek.as_bytes()[1]])
}

fn bind(
    address: IpAddr,
    (first, last): (u16, u16),
    random: &[u8; 32],
) -> Result<(Socket, Bound), BindError> {
    Socket::bind(address, first..=last, seek(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the caller goes on, which asked for this, when the called offers so many flows of UDP, and TCP or not.
    fn is_taken(carrier: Carrier, flows: Option<u16>, udp: u16, tcp: bool) -> bool {
        let agreed = Agreed {
            carrier,
            flows,
            ..Agreed::of_tests()
        };
        let ready = Ready {
            version: crate::protocol::VERSION,
            random: [0; 32],
            udp_ports: (50_000..50_000 + udp).collect(),
            tcp_port: tcp.then_some(50_000),
            address: None,
        };
        let caller = Caller {
            agreed: &agreed,
            ready: &ready,
            address: Ipv4Addr::LOCALHOST.into(),
            random: &[0; 32],
        };
        caller.refuse_what_was_not_agreed().is_ok()
    }

    #[test]
    fn a_path_is_asked_for_each_size_once() {
        let sizes = |most, train, others: &[u16]| assert_eq!(sizes(most), (train, others.to_vec()));
        sizes(8952, 1452, &[1232, 1372, 8952]);
        sizes(60_000, 1452, &[1232, 1372, 8952, 60_000]);
        sizes(3000, 1452, &[1232, 1372, 3000]);
        sizes(1452, 1452, &[1232, 1372]);
        sizes(1372, 1372, &[1232]);
        sizes(600, 600, &[]);
    }

    #[test]
    fn a_way_that_was_not_agreed_is_refused() {
        use Carrier::{Auto, Tcp, Udp};
        assert!(is_taken(Auto, None, 1, true));
        assert!(is_taken(Auto, Some(4), 4, true));
        assert!(!is_taken(Auto, None, 2, true), "more flows than one");
        assert!(!is_taken(Auto, Some(4), 5, true));
        assert!(is_taken(Udp, None, 1, false));
        assert!(!is_taken(Udp, None, 1, true), "TCP, unasked");
        assert!(!is_taken(Udp, Some(2), 3, false));
        assert!(is_taken(Tcp, Some(8), 0, true));
        assert!(!is_taken(Tcp, Some(8), 1, true), "UDP, unasked");
    }
}
