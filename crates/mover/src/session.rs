// SPDX-License-Identifier: MIT OR Apache-2.0
//! The beginning of a session: random bytes from both ends, what both are set to, and the way of the data.

use crate::arrivals::{Ends, RecvEnd};
use crate::carrier::{Logged, SendEnd};
use crate::control::Control;
use crate::knobs::knobs;
use crate::protocol::{Agreed, Hello, Message, Part, Ready, Start, VERSION};
use crate::remote::{Place, Reach, ssh_reached};
use crate::way::{
    BASE_DATAGRAM_BYTES, Called, Caller, ETHERNET_DATAGRAM_BYTES, Keys, MOST_FLOWS, Way,
};
use anyhow::{Context, Result, bail, ensure};
use fatpath_cc::Law;
use fatpath_driver::tcp::{self, Role};
use fatpath_driver::{self as udp, RecvFlows, SendFlows};
use fatpath_flow::rude::{Permission, Rudely};
use fatpath_flow::{Connection, Log};
use fatpath_scenario::transport::mss_bytes;
use fatpath_tcp::TcpSpec;
use fatpath_transport::Spec;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A session that has begun.
pub struct Session {
    pub control: Control,
    way: Way,
    spec: Spec,
    agreed: Agreed,
    /// What happens to the flows is written to files of this folder.
    log: Option<PathBuf>,
    /// To send without congestion control.
    permission: Option<Permission>,
}

impl Session {
    /// Starts fatpath at `place`, to do `part` there; to send to it without congestion control, where that is asked for.
    ///
    /// # Errors
    /// What the other end, the shell or a socket says, and that this host does not permit it.
    pub fn call(
        reach: &Reach,
        place: &Place,
        address: Option<IpAddr>,
        agreed: Agreed,
        part: Part,
        rudely: Option<Rudely>,
    ) -> Result<Session> {
        let mut spec = spec_of(&agreed)?;
        let (verb, role) = match part {
            Part::Send(_) => ("send", Role::Receives),
            Part::Receive(_) => ("recv", Role::Sends),
        };
        let (mut control, connected) = reach.call(place, verb)?;
        let random = random()?;
        control.say(Message::Hello(Hello {
            version: VERSION,
            random,
            agreed: agreed.clone(),
            part,
        }));
        let silence = Duration::from_nanos(spec.silence_ns);
        let Message::Ready(ready) = control.first_answer(silence)? else {
            bail!("the other end does not begin as fatpath does");
        };
        control.limit_silence(silence);
        let address = match address.or(connected) {
            Some(address) => address,
            None => reach.shell.address(place, ready.address)?,
        };
        let ports = ready.udp_ports.iter();
        let destinations = ports.map(|port| SocketAddr::new(address, *port)).collect();
        let permission = rudely
            .map(|rudely| rudely.begin(destinations))
            .transpose()?;
        let keys = Keys::new(&random, &ready.random, spec.cipher, role)?;
        let caller = Caller {
            agreed: &agreed,
            ready: &ready,
            address,
            random: &random,
        };
        let (way, start) = caller.find(keys)?;
        spec = begun(spec, &start)?;
        if let Some(permission) = &permission {
            permission.give(&mut spec, address.to_canonical().is_ipv4());
        }
        control.say(Message::Start(start));
        Ok(Session {
            control,
            way,
            spec,
            agreed,
            log: None,
            permission,
        })
    }

    /// Is called: over standard input and output, for data to the address `at`, or to all that the host has. Gives what is to be
    /// done, as `permits` leaves it.
    ///
    /// # Errors
    /// What the caller says is out of range or not permitted, or a socket's.
    pub fn be_called(
        mut control: Control,
        at: Option<IpAddr>,
        permits: impl FnOnce(&mut Hello) -> Result<()>,
    ) -> Result<(Session, Part)> {
        match begin_called(&mut control, at, permits) {
            Ok((way, spec, hello)) => {
                let session = Session {
                    control,
                    way,
                    spec,
                    agreed: hello.agreed,
                    log: None,
                    permission: None,
                };
                Ok((session, hello.part))
            }
            Err(error) => {
                control.end(Some(Message::Failure(format!("{error:#}"))));
                Err(error)
            }
        }
    }

    /// What the data go by.
    pub fn way(&self) -> &Way {
        &self.way
    }

    /// The most that is on its way, or waits behind a hole.
    pub fn window_bytes(&self) -> u64 {
        self.spec.window_bytes
    }

    /// The most that the sender sends, bits a second.
    pub fn limit_bps(&self) -> Option<u64> {
        self.agreed.limit_bps
    }

    /// What happens to the flows is to be written to files of this folder.
    pub fn log_to(&mut self, folder: &Path) {
        self.log = Some(folder.to_owned());
    }

    /// The sender of the data, and its permission where it has no congestion control: it is to be made polite when that ends.
    ///
    /// # Errors
    /// The specification is out of range, the kernel's, or of the folder of the log.
    pub fn into_sender(self) -> Result<(Control, SendEnd, Option<Permission>)> {
        let logged = self.log.as_ref().map(|folder| self.logged(folder));
        let logged = logged.transpose()?;
        let spec = self.spec;
        let end = match self.way {
            Way::Udp(udp) => {
                let count = udp.flows.len();
                let mut spec = shared(spec, count);
                if knobs(&self.agreed.tcp)?.initial_window_pkts.is_none() {
                    spec.tcp.initial_window_pkts =
                        first_window_pkts(&spec, udp.rtt, udp.train_bps, count);
                }
                let flows = udp.flows.into_iter().map(|flow| {
                    udp::SendEnd::new(flow.socket, &spec, flow.secret, flow.peer, udp.rtt)
                });
                let mut flows = SendFlows::new(flows.collect::<Result<_, _>>()?);
                if let Some(permission) = &self.permission {
                    flows.mark(permission.dscp());
                }
                SendEnd::Udp(flows, logged)
            }
            Way::Tcp(connections) => {
                let silence = Duration::from_nanos(spec.silence_ns);
                let limit_bps = spec.tcp.pacing_rate_bps;
                let law = self.agreed.law.split(',').next().unwrap_or_default();
                SendEnd::Tcp(tcp::SendEnd::new(connections, silence, limit_bps, law)?)
            }
        };
        Ok((self.control, end, self.permission))
    }

    fn logged(&self, folder: &Path) -> Result<Box<Logged>> {
        let Way::Udp(udp) = &self.way else {
            bail!("--log: the data go by the kernel's TCP, of which `fatpath trace` tells");
        };
        let first = udp.flows.first().context("a transfer has a flow")?;
        let here = first.bound.address;
        let connection = Connection {
            number: 1,
            ends: [here, first.peer.unwrap_or(here)],
            law: format!("fp_{}", self.spec.tcp.law.spec().name),
            mss_bytes: mss_bytes(&self.spec),
        };
        Ok(Logged::by(Log::begin(folder, connection)?))
    }

    /// Who receives them.
    ///
    /// # Errors
    /// The specification is out of range.
    pub fn into_receiver(self) -> Result<(Control, RecvEnd)> {
        let count = self.way.flows();
        let mut most_held_bytes = self.spec.window_bytes;
        let ends = match self.way {
            Way::Udp(udp) => {
                let spec = shared(self.spec, count);
                let flows = udp.flows.into_iter().map(|flow| {
                    udp::RecvEnd::new(flow.socket, &spec, flow.secret, flow.peer, udp.rtt)
                });
                Ends::Udp(RecvFlows::new(flows.collect::<Result<_, _>>()?))
            }
            Way::Tcp(connections) => {
                let end = tcp::RecvEnd::new(connections).holding(self.spec.window_bytes);
                most_held_bytes = end.most_held_bytes();
                Ends::Tcp(end)
            }
        };
        Ok((self.control, RecvEnd::start(ends, count, most_held_bytes)))
    }
}

fn begin_called(
    control: &mut Control,
    at: Option<IpAddr>,
    permits: impl FnOnce(&mut Hello) -> Result<()>,
) -> Result<(Way, Spec, Hello)> {
    let Message::Hello(mut hello) = control.answer()? else {
        bail!("the caller does not begin as fatpath does");
    };
    permits(&mut hello)?;
    let mut spec = spec_of(&hello.agreed)?;
    control.limit_silence(Duration::from_nanos(spec.silence_ns));
    let role = match hello.part {
        Part::Send(_) => Role::Sends,
        Part::Receive(_) => Role::Receives,
    };
    let random = random()?;
    let keys = Keys::new(&hello.random, &random, spec.cipher, role)?;
    let mut called = Called::open(&hello.agreed, keys, &random, at)?;
    let (udp_ports, tcp_port) = called.ports()?;
    control.say(Message::Ready(Ready {
        version: VERSION,
        random,
        udp_ports,
        tcp_port,
        address: ssh_reached(),
    }));
    let start = loop {
        if called.answer()? {
            control.heard(Instant::now());
        }
        match control.poll()? {
            None => {}
            Some(Message::Start(start)) => break start,
            Some(_) => bail!("the caller does not go on as fatpath does"),
        }
    };
    spec = begun(spec, &start)?;
    Ok((called.start(&start)?, spec, hello))
}

/// An end with nothing to say is heard four times in this, scheduler and shell willing.
const LEAST_SILENCE_NS: u64 = 1_000_000_000;
/// 10 Gb/s by 3.4 s. What the caller wants of the called has a bound: some 100 bytes of memory for each datagram on its way.
const MOST_WINDOW_BYTES: u64 = 4 << 30;
/// A transfer begins with what this share of the rate that its train had (1/4) brings in a round trip, spread over it: a
/// queue of others' packets passes a train faster than it leaves room for.
const TRAIN_SHARE: u64 = 4;
/// Where the train told nothing. Over 268 ms and 1 Gb/s, doubling from 10 segments would take a second longer.
const FIRST_RATE_BPS: u64 = 30_000_000;
/// RFC 6928: ten segments, two where they are long, and about so many bytes.
const LEAST_FIRST_BYTES: u64 = 14_600;
/// Longer datagrams than Ethernet's are so many in a window at least, and leave so often below `--limit`.
const LEAST_OF_WINDOW: u64 = 64;
const LEAST_A_SECOND: u64 = 1000;
/// The other end may say anything of the train.
const MOST_FIRST_PKTS: u64 = 10_000;

fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the kernel gives no random bytes")?;
    Ok(bytes)
}

fn spec_of(agreed: &Agreed) -> Result<Spec> {
    let silence_ns = u64::from(agreed.silence_ms) * 1_000_000;
    ensure!(silence_ns >= LEAST_SILENCE_NS, "--timeout: give 1s or more");
    ensure!(
        agreed.ports.0 > 0 && agreed.ports.0 <= agreed.ports.1,
        "--ports: give FIRST-LAST"
    );
    ensure!(
        agreed
            .flows
            .is_none_or(|flows| (1..=MOST_FLOWS).contains(&flows)),
        "--flows: give 1 to {MOST_FLOWS}"
    );
    ensure!(
        agreed.window_bytes <= MOST_WINDOW_BYTES,
        "--window: give 4GiB at most"
    );
    let law = law(&agreed.law)?;
    let default = Spec::default();
    let mut tcp = TcpSpec {
        law,
        pacing: true,
        pacing_rate_bps: agreed.limit_bps,
        knows_sending: true,
        tells_losses_apart: true,
        ecn: agreed.ecn,
        ..default.tcp
    };
    knobs(&agreed.tcp)?.give(&mut tcp);
    let spec = Spec {
        tcp,
        datagram_bytes: allowed_datagram(agreed.datagram_bytes)?,
        window_bytes: agreed.window_bytes,
        lost_last: agreed.lost_last,
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

/// Data begin to go: datagrams are as long as the path was found to carry, and longer ones are looked for.
fn begun(mut spec: Spec, start: &Start) -> Result<Spec> {
    if let Some(found_bytes) = start.datagram_bytes() {
        let most = spec.datagram_bytes;
        spec.datagram_bytes = allowed_datagram(found_bytes)?.min(most);
        let base = BASE_DATAGRAM_BYTES.min(spec.datagram_bytes);
        spec.search = Some(base..=most);
    }
    Ok(spec)
}

/// What so many flows have together.
fn shared(mut spec: Spec, flows: usize) -> Spec {
    let flows = flows as u64;
    spec.window_bytes /= flows;
    spec.tcp.pacing_rate_bps = spec.tcp.pacing_rate_bps.map(|rate_bps| rate_bps / flows);
    if let Some(search) = &mut spec.search {
        let most_bytes =
            (*search.end()).min(smooth_datagram(spec.window_bytes, spec.tcp.pacing_rate_bps));
        spec.datagram_bytes = spec.datagram_bytes.min(most_bytes);
        *search = *search.start()..=most_bytes;
        spec.window_bytes = spec.window_bytes.max(2 * u64::from(most_bytes));
    }
    spec
}

/// UDP payload of the longest datagram that is neither much of this window nor much of this rate at once.
fn smooth_datagram(window_bytes: u64, limit_bps: Option<u64>) -> u16 {
    let of_limit = limit_bps.map_or(u64::MAX, |limit_bps| limit_bps / 8 / LEAST_A_SECOND);
    let most = of_limit.min(window_bytes / LEAST_OF_WINDOW);
    u16::try_from(most)
        .unwrap_or(u16::MAX)
        .max(ETHERNET_DATAGRAM_BYTES)
}

/// Of each of so many flows, which share the first rate.
fn first_window_pkts(spec: &Spec, rtt: Duration, train_bps: Option<u64>, flows: usize) -> u32 {
    let first_bps = train_bps.map_or(FIRST_RATE_BPS, |train_bps| train_bps / TRAIN_SHARE);
    let limit_bps = spec.tcp.pacing_rate_bps.unwrap_or(u64::MAX);
    let rate_bps = limit_bps.min(first_bps / flows as u64);
    let bytes = u128::from(rate_bps / 8) * rtt.as_micros().min(1_000_000) / 1_000_000;
    let pkts = bytes / u128::from(spec.datagram_bytes);
    let least = (LEAST_FIRST_BYTES / u64::from(spec.datagram_bytes)).clamp(2, 10);
    pkts.clamp(least.into(), MOST_FIRST_PKTS.into()) as u32
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
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use crate::by_key::{KeyFiles, PROTOCOL};
    use crate::protocol::Receives;
    use crate::remote::Shell;
    use fatpath_peer::{Key, accept, add};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    fn agreed(datagram_bytes: u16) -> Agreed {
        Agreed {
            datagram_bytes,
            ..Agreed::of_tests()
        }
    }

    /// It knows the caller, and then says nothing, as one whose host stops.
    #[test]
    fn a_listener_that_does_not_answer_is_given_up() {
        const WITHIN: Duration = Duration::from_secs(20);
        let folder = tempfile::tempdir().unwrap();
        let file = |name| folder.path().join(name);
        let key = Key::make(&file("listener")).unwrap();
        Key::make(&file("caller")).unwrap();
        add(&file("trusted"), &key.public(), "127.0.0.1").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (given_up, is_given_up) = mpsc::channel::<()>();
        let silent = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let _peer = accept(socket, &key, PROTOCOL, |_| true, WITHIN).unwrap();
            let _ = is_given_up.recv(); // that nobody can say it any more
        });
        let reach = Reach {
            shell: Shell {
                rsh: None,
                fatpath: String::new(),
            },
            keys: KeyFiles {
                key: Some(file("caller")),
                trust: Some(file("trusted")),
            },
        };
        let place = Place::parse(&format!("fatpath://127.0.0.1:{port}")).unwrap();
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            let part = Part::Receive(Receives::default());
            let session = Session::call(&reach, &place, None, agreed(1452), part, None);
            say.send(session.err().map(|error| error.to_string()))
        });
        let why = said.recv_timeout(WITHIN).unwrap().unwrap();
        assert!(why.contains("does not answer"), "{why}");
        drop(given_up);
        silent.join().unwrap();
    }

    #[test]
    fn the_first_window_is_a_share_of_what_the_train_had() {
        let first = |rtt_ms: u64, limit_bps: Option<u64>, train_bps: Option<u64>| {
            let mut spec = Spec::default();
            spec.tcp.pacing_rate_bps = limit_bps;
            first_window_pkts(&spec, Duration::from_millis(rtt_ms), train_bps, 1)
        };
        assert_eq!(first(1, None, None), 10);
        assert_eq!(first(100, None, None), 258);
        assert_eq!(first(100, Some(3_000_000), None), 25);
        assert_eq!(first(100, None, Some(4_000_000)), 10);
        assert_eq!(first(100, None, Some(1_000_000_000)), 2152);
        assert_eq!(first(100, Some(3_000_000), Some(1_000_000_000)), 25);
        assert_eq!(first(2000, None, Some(u64::MAX)), 10_000);
        let jumbo = Spec {
            datagram_bytes: 8952,
            ..Spec::default()
        };
        assert_eq!(
            first_window_pkts(&jumbo, Duration::from_millis(1), None, 1),
            2
        );
    }

    #[test]
    fn long_datagrams_are_a_small_part_of_window_and_rate() {
        let longest = |window_bytes: u64, limit_bps: Option<u64>, flows: usize| {
            let mut spec = Spec {
                datagram_bytes: 8952,
                window_bytes,
                search: Some(1232..=60_000),
                ..Spec::default()
            };
            spec.tcp.pacing_rate_bps = limit_bps;
            let spec = shared(spec, flows);
            let search = spec.search.unwrap();
            assert_eq!(spec.datagram_bytes, (*search.end()).min(8952));
            assert!(spec.window_bytes >= 2 * u64::from(*search.end()));
            *search.end()
        };
        assert_eq!(longest(256 << 20, None, 1), 60_000);
        assert_eq!(longest(1 << 20, None, 1), 16_384);
        assert_eq!(longest(1 << 20, None, 4), 4096);
        assert_eq!(longest(1000, None, 1), 1452);
        assert_eq!(longest(256 << 20, Some(100_000_000), 1), 12_500);
        assert_eq!(longest(256 << 20, Some(100_000_000), 2), 6250);
        assert_eq!(longest(256 << 20, Some(1_000_000), 1), 1452);
    }

    #[test]
    fn datagrams_of_a_size_that_none_can_have_are_refused() {
        let spec = |datagram_bytes| spec_of(&agreed(datagram_bytes));
        assert!(spec(512).is_ok());
        for wrong in [0, 511, 65_508] {
            let refused = spec(wrong).unwrap_err().to_string();
            assert!(refused.contains("--datagram-bytes"), "{refused}");
        }
    }
}
