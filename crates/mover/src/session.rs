// SPDX-License-Identifier: MIT OR Apache-2.0
//! The beginning of a session: random bytes from both ends, sockets, and the round-trip time.

use crate::control::Control;
use crate::protocol::{Agreed, Hello, Message, Part, Ready, VERSION};
use crate::remote::{Place, Shell, ssh_reached};
use anyhow::{Context, Result, bail, ensure};
use fatpath_cc::Law;
use fatpath_driver::{BindError, Bound, Ping, Pong, RecvEnd, SendEnd, Socket, StepError};
use fatpath_tcp::TcpSpec;
use fatpath_transport::{FlowSecret, Secret, Spec};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A session that has begun.
pub struct Session {
    pub control: Control,
    flow: FlowSecret,
    socket: Socket,
    /// What the socket got.
    pub bound: Bound,
    /// Where the other end is.
    peer: SocketAddr,
    rtt: Duration,
    spec: Spec,
}

impl Session {
    /// Starts fatpath at `place`, to do `part` there.
    ///
    /// # Errors
    /// What the other end, the shell or a socket says.
    pub fn call(
        shell: &Shell,
        place: &Place,
        address: Option<IpAddr>,
        agreed: Agreed,
        part: Part,
    ) -> Result<Session> {
        let mut spec = spec_of(&agreed)?;
        let verb = match part {
            Part::Send(_) => "send",
            Part::Receive(_) => "recv",
        };
        let mut control = Control::start(&shell.words(place, verb))?;
        let random = random()?;
        let ports = agreed.ports;
        control.say(Message::Hello(Hello {
            version: VERSION,
            random,
            agreed,
            part,
        }));
        let Message::Ready(ready) = control.first_answer()? else {
            bail!("the other end does not begin as fatpath does");
        };
        check_version(ready.version)?;
        control.limit_silence(Duration::from_nanos(spec.silence_ns));
        let address = match address {
            Some(address) => address,
            None => shell.address(place, ready.address)?,
        };
        let (mut socket, bound) = bind(unspecified(address), ports, &random)?;
        let peer = SocketAddr::new(address, ready.port);
        let (pings, flow) = flows(&random, &ready.random)?;
        let mut ping = Ping::new(pings, spec.cipher);
        let (rtt, datagram_bytes) = ask_path(&mut ping, &mut socket, peer, spec.datagram_bytes)?;
        spec.datagram_bytes = datagram_bytes;
        let rtt = rtt.max(LEAST_RTT);
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        control.say(Message::Start {
            rtt_us,
            datagram_bytes,
        });
        Ok(Session {
            control,
            flow,
            socket,
            bound,
            peer,
            rtt,
            spec,
        })
    }

    /// Is called: over standard input and output. Gives what is to be done.
    ///
    /// # Errors
    /// What the caller says is out of range, or a socket's.
    pub fn be_called(mut control: Control) -> Result<(Session, Part)> {
        let begun = begin_called(&mut control);
        match begun {
            Ok(begun) => {
                let session = Session {
                    control,
                    flow: begun.flow,
                    socket: begun.socket,
                    bound: begun.bound,
                    peer: begun.peer,
                    rtt: begun.rtt,
                    spec: begun.spec,
                };
                Ok((session, begun.part))
            }
            Err(error) => {
                control.end(Some(Message::Failure(format!("{error:#}"))));
                Err(error)
            }
        }
    }

    /// The most that is on its way, or waits behind a hole.
    pub fn window_bytes(&self) -> u64 {
        self.spec.window_bytes
    }

    /// The sender of the data.
    ///
    /// # Errors
    /// The specification is out of range.
    pub fn into_sender(self) -> Result<(Control, SendEnd)> {
        let mut spec = self.spec;
        spec.tcp.initial_window_pkts = first_window_pkts(&spec, self.rtt);
        let end = SendEnd::new(self.socket, &spec, self.flow, Some(self.peer), self.rtt)?;
        Ok((self.control, end))
    }

    /// Who receives them.
    ///
    /// # Errors
    /// The specification is out of range.
    pub fn into_receiver(self) -> Result<(Control, RecvEnd)> {
        let end = RecvEnd::new(
            self.socket,
            &self.spec,
            self.flow,
            Some(self.peer),
            self.rtt,
        )?;
        Ok((self.control, end))
    }
}

struct Begun {
    flow: FlowSecret,
    socket: Socket,
    bound: Bound,
    peer: SocketAddr,
    rtt: Duration,
    spec: Spec,
    part: Part,
}

fn begin_called(control: &mut Control) -> Result<Begun> {
    let Message::Hello(hello) = control.answer()? else {
        bail!("the caller does not begin as fatpath does");
    };
    check_version(hello.version)?;
    let mut spec = spec_of(&hello.agreed)?;
    control.limit_silence(Duration::from_nanos(spec.silence_ns));
    let random = random()?;
    let ports = hello.agreed.ports;
    // Both families, where the host has IPv6.
    let bound = bind(Ipv6Addr::UNSPECIFIED.into(), ports, &random);
    let (mut socket, bound) = match bound {
        Err(BindError::Io(..)) => bind(Ipv4Addr::UNSPECIFIED.into(), ports, &random),
        bound => bound,
    }?;
    control.say(Message::Ready(Ready {
        version: VERSION,
        random,
        port: bound.address.port(),
        address: ssh_reached(),
    }));
    let (pings, flow) = flows(&hello.random, &random)?;
    let mut pong = Pong::new(pings, spec.cipher);
    let mut peer = None;
    let (rtt_us, datagram_bytes) = loop {
        if let Some(asked) = pong.answer(&mut socket, ANSWER_WAIT)? {
            peer = Some(asked);
            control.heard(Instant::now());
        }
        match control.poll()? {
            None => {}
            Some(Message::Start {
                rtt_us,
                datagram_bytes,
            }) => break (rtt_us, datagram_bytes),
            Some(_) => bail!("the caller does not go on as fatpath does"),
        }
    };
    spec.datagram_bytes = allowed_datagram(datagram_bytes)?;
    Ok(Begun {
        flow,
        socket,
        bound,
        peer: peer.context("the caller says that UDP gets through, and nothing came")?,
        rtt: Duration::from_micros(rtt_us.into()).max(LEAST_RTT),
        spec,
        part: hello.part,
    })
}

/// An end with nothing to say is heard four times in this, scheduler and shell willing.
const LEAST_SILENCE_NS: u64 = 1_000_000_000;
/// 10 Gb/s by 3.4 s. What the caller wants of the called has a bound: some 100 bytes of memory for each datagram on its way.
const MOST_WINDOW_BYTES: u64 = 4 << 30;
/// A transfer begins at this rate, spread over the first round trip, where that is more than 10 segments (RFC 6928): over
/// 268 ms and 1 Gb/s, doubling from 10 would take a second longer.
const FIRST_RATE_BPS: u64 = 30_000_000;
const LEAST_FIRST_PKTS: u64 = 10;
const MOST_FIRST_PKTS: u64 = 1000;
/// How long the called end waits for a question before it looks at the control channel.
const ANSWER_WAIT: Duration = Duration::from_millis(5);
/// How long a question to the path waits for its answer.
const ASK_WITHIN: Duration = Duration::from_secs(3);
/// What every path of IPv6 carries (RFC 8200, 5), less headers.
const LEAST_DATAGRAM_BYTES: u16 = 1232;
/// What a round trip takes at least, as far as the transport reckons before it has measured.
const LEAST_RTT: Duration = Duration::from_micros(100);

/// The round-trip time, and the size of datagrams that the path carries: what is wanted, or the least.
fn ask_path(
    ping: &mut Ping,
    socket: &mut Socket,
    peer: SocketAddr,
    wanted: u16,
) -> Result<(Duration, u16)> {
    for datagram_bytes in [wanted, wanted.min(LEAST_DATAGRAM_BYTES)] {
        match ping.ask(socket, peer, datagram_bytes, ASK_WITHIN) {
            Ok(Some(rtt)) => return Ok((rtt, datagram_bytes)),
            Ok(None) | Err(StepError::TooLong(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!(
        "UDP does not get through to {peer} and back: open the UDP ports of --ports in firewalls at both ends, or give \
         --address if the other end has another address"
    )
}

fn check_version(version: u32) -> Result<()> {
    ensure!(
        version == VERSION,
        "the other end speaks version {version} of the protocol, this one {VERSION}: install the same fatpath at both"
    );
    Ok(())
}

/// The flow that asks the path, and the one of the data.
fn flows(caller: &[u8; 32], called: &[u8; 32]) -> Result<(FlowSecret, FlowSecret)> {
    let mut secret = Secret::agree(caller, called);
    let flows = secret.next_flow().zip(secret.next_flow());
    flows.context("a new secret has flows")
}

fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the kernel gives no random bytes")?;
    Ok(bytes)
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// `random` chooses where to look first; it is known to both ends only, as ports are to everybody.
fn bind(
    address: IpAddr,
    (first, last): (u16, u16),
    random: &[u8; 32],
) -> Result<(Socket, Bound), BindError> {
    let seek = blake3::hash(random);
    let seek = u16::from_le_bytes([seek.as_bytes()[0], seek.as_bytes()[1]]);
    Socket::bind(address, first..=last, seek)
}

fn spec_of(agreed: &Agreed) -> Result<Spec> {
    let silence_ns = u64::from(agreed.silence_ms) * 1_000_000;
    ensure!(silence_ns >= LEAST_SILENCE_NS, "--timeout: give 1s or more");
    ensure!(
        agreed.ports.0 > 0 && agreed.ports.0 <= agreed.ports.1,
        "--ports: give FIRST-LAST"
    );
    ensure!(
        agreed.window_bytes <= MOST_WINDOW_BYTES,
        "--window: give 4GiB at most"
    );
    let law = law(&agreed.law)?;
    let default = Spec::default();
    let spec = Spec {
        tcp: TcpSpec {
            law,
            pacing: true,
            pacing_rate_bps: agreed.limit_bps,
            knows_sending: true,
            tells_losses_apart: true,
            ecn: agreed.ecn,
            ..default.tcp
        },
        datagram_bytes: allowed_datagram(agreed.datagram_bytes)?,
        window_bytes: agreed.window_bytes,
        silence_ns,
        ..default
    };
    Ok(spec)
}

fn allowed_datagram(bytes: u16) -> Result<u16> {
    ensure!(
        Spec::DATAGRAM_BYTES.contains(&bytes),
        "--datagram-bytes: give 512 to 65507"
    );
    Ok(bytes)
}

fn first_window_pkts(spec: &Spec, rtt: Duration) -> u32 {
    let rate_bps = spec
        .tcp
        .pacing_rate_bps
        .unwrap_or(u64::MAX)
        .min(FIRST_RATE_BPS);
    let bytes = rate_bps / 8 * rtt.as_micros().min(1_000_000) as u64 / 1_000_000;
    let pkts = bytes / u64::from(spec.datagram_bytes);
    pkts.clamp(LEAST_FIRST_PKTS, MOST_FIRST_PKTS) as u32
}

/// `fp_bbr`, or `fp_aimd,a=8,b=0.125`.
pub fn law(text: &str) -> Result<Law> {
    let mut words = text.split(',');
    let name = words.next().unwrap_or_default();
    let law = Law::named(name).with_context(|| {
        format!("--law: there is no law {name}; docs/bbr.md and docs/policy.md list them")
    })?;
    let parameters = words.map(|word| {
        let (key, value) = word.split_once('=')?;
        Some((key, value.parse().ok()?))
    });
    let parameters: Option<Vec<(&str, f64)>> = parameters.collect();
    let parameters = parameters.context("--law: give NAME,PARAMETER=VALUE,…")?;
    Ok(law.with_all(&parameters)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_is_a_first_rate() {
        let first = |rtt_ms: u64, limit_bps: Option<u64>| {
            let mut spec = Spec::default();
            spec.tcp.pacing_rate_bps = limit_bps;
            first_window_pkts(&spec, Duration::from_millis(rtt_ms))
        };
        assert_eq!(first(1, None), 10);
        assert_eq!(first(100, None), 258);
        assert_eq!(first(100, Some(3_000_000)), 25);
        assert_eq!(first(2000, None), 1000);
    }

    #[test]
    fn datagrams_of_a_size_that_none_can_have_are_refused() {
        let spec = |datagram_bytes| {
            spec_of(&Agreed {
                datagram_bytes,
                window_bytes: 1 << 20,
                silence_ms: 1000,
                law: "fp_bbr".to_owned(),
                ecn: true,
                limit_bps: None,
                ports: (50_000, 51_000),
            })
        };
        assert!(spec(512).is_ok());
        for wrong in [0, 511, 65_508] {
            let refused = spec(wrong).unwrap_err().to_string();
            assert!(refused.contains("--datagram-bytes"), "{refused}");
        }
    }
}
