// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--rate`: datagrams without congestion control, while this host permits it.
//!
//! A thread asks each second, so that a daemon that does not answer holds up nothing: when the newest permission has run out, or
//! one is refused or has narrower terms, the sender goes on with congestion control, and stays so. Start at [`Rudely::begin`].

use anyhow::{Context, Error, Result, anyhow};
use fatpath_api::{RudePermission, RudePermit};
use fatpath_tcp::{RudeRate, RudeSpec};
use fatpath_transport::Spec;
use fatpath_units::show_rate;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Asks this host whether datagrams may go there; an error says why it could not be asked.
pub type Ask = Arc<dyn Fn(SocketAddr) -> Result<RudePermission> + Send + Sync>;

/// A permission lasts three times as long.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Before anything is sent; and how long a permission lasts at most, whatever the daemon says.
const MOST_WAIT: Duration = Duration::from_secs(3);
/// Headers of IP and UDP, bytes.
const IPV4_UDP_BYTES: u64 = 28;
const IPV6_UDP_BYTES: u64 = 48;
/// As `rude_converged` is by default; nothing goes polite gradually here.
const CONVERGED_MILLI: u32 = 10;

/// What `--rate` asks for.
#[derive(Clone)]
pub struct Rudely {
    /// Of all flows together, bits of IP packets a second.
    pub rate_bps: u64,
    /// Who is asked.
    pub ask: Ask,
}

/// The permission of this host, which may end.
pub struct Permission {
    terms: Terms,
    held: Arc<Mutex<Held>>,
}

/// How datagrams may be sent: to all places by the same mark, at the least of their rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    rate_bps: u64,
    dscp: u8,
}

/// Until when it is permitted, and why no longer.
#[derive(Debug)]
struct Held {
    until: Instant,
    refused: Option<String>,
}

impl Rudely {
    /// Asks for permission to send to `destinations`, and goes on asking while the permission is kept.
    ///
    /// # Errors
    /// It is refused, or the daemon does not answer.
    pub fn begin(&self, destinations: Vec<SocketAddr>) -> Result<Permission> {
        let refused = "--rate: this host does not permit to send without congestion control";
        let (begun, begins) = mpsc::channel();
        let ask = self.ask.clone();
        let wanted_bps = self.rate_bps;
        thread::spawn(move || follow(&ask, &destinations, wanted_bps, &begun));
        let silent = "its daemon does not answer: `systemctl status fatpath` says how it is";
        let answer = begins.recv_timeout(MOST_WAIT);
        answer
            .unwrap_or_else(|_| Err(anyhow!(silent)))
            .context(refused)
    }
}

impl Permission {
    /// The mark of the datagrams.
    pub fn dscp(&self) -> u8 {
        self.terms.dscp
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<String> {
        locked(&self.held).ended(Instant::now())
    }

    /// The flows that are made of `spec` have no congestion control, and together send no more than is permitted to an
    /// address of this kind.
    pub fn give(&self, spec: &mut Spec, is_ipv4: bool) {
        let rate_bps = self.terms.payload_bps(is_ipv4);
        spec.tcp.pacing_rate_bps = Some(rate_bps);
        spec.tcp.rude = Some(RudeSpec {
            // The pacing rate, which several flows divide, is what bounds each.
            rate: RudeRate::Share(rate_bps),
            off: None,
            converged_milli: CONVERGED_MILLI,
        });
    }
}

/// What the host said: for how long the terms hold, or why there are none.
type Answer = Result<(Terms, Duration), String>;

/// The permissions of all of `destinations`, or why one of them was refused.
fn permits(ask: &Ask, destinations: &[SocketAddr]) -> Result<Result<Vec<RudePermit>, String>> {
    let mut permits = vec![];
    for destination in destinations {
        match ask(*destination)? {
            RudePermission::Granted(permit) => permits.push(permit),
            RudePermission::Refused(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(permits))
}

impl Terms {
    /// What holds for datagrams to all of `destinations`.
    ///
    /// # Errors
    /// The host could not be asked.
    fn ask(ask: &Ask, destinations: &[SocketAddr], wanted_bps: u64) -> Result<Answer> {
        let permits = match permits(ask, destinations)? {
            Ok(permits) => permits,
            Err(why) => return Ok(Err(why)),
        };
        let first = permits.first().context("there is no flow of UDP")?;
        if permits.iter().any(|permit| permit.dscp != first.dscp) {
            let why = "the mark has changed meanwhile: give the command again";
            return Ok(Err(why.to_owned()));
        }
        let rates = permits.iter().map(|permit| permit.rate_bps);
        let good_for_ms = permits.iter().map(|permit| permit.good_for_ms).min();
        let terms = Terms {
            rate_bps: rates.fold(wanted_bps, u64::min),
            dscp: first.dscp,
        };
        let good_for = Duration::from_millis(good_for_ms.unwrap_or_default().into());
        Ok(Ok((terms, good_for.min(MOST_WAIT))))
    }

    /// What is sent by the terms that were `used` may be sent by these.
    fn hold(self, used: Terms) -> bool {
        self.dscp == used.dscp && self.rate_bps >= used.rate_bps
    }

    /// The rate of UDP payload. The path may turn out to carry the shortest datagrams alone, of which headers are the largest
    /// part.
    fn payload_bps(self, is_ipv4: bool) -> u64 {
        let payload_bytes = u64::from(*Spec::DATAGRAM_BYTES.start());
        let header_bytes = match is_ipv4 {
            true => IPV4_UDP_BYTES,
            false => IPV6_UDP_BYTES,
        };
        let bits = u128::from(self.rate_bps) * u128::from(payload_bytes);
        (bits / u128::from(payload_bytes + header_bytes)).max(1) as u64
    }
}

impl Held {
    fn ended(&self, now: Instant) -> Option<String> {
        let run_out = || "the daemon of this host does not answer any more".to_owned();
        let refused = self.refused.clone();
        refused.or_else(|| (now >= self.until).then(run_out))
    }

    /// What was asked at `asked` is answered. A refusal is for ever; without an answer the permission runs out.
    fn note(&mut self, asked: Instant, used: Terms, answer: Result<Answer>) {
        match answer {
            Ok(Ok((terms, good_for))) if terms.hold(used) => self.until = asked + good_for,
            Ok(Ok(_)) => {
                self.refused = Some("its rate is lower now, or its mark another".to_owned());
            }
            Ok(Err(why)) => self.refused = Some(why),
            Err(_) => {}
        }
    }
}

/// Asks, gives the first answer to `begun`, and asks again until the permission was dropped or has ended.
fn follow(
    ask: &Ask,
    destinations: &[SocketAddr],
    wanted_bps: u64,
    begun: &Sender<Result<Permission>>,
) {
    let asked = Instant::now();
    let answer = Terms::ask(ask, destinations, wanted_bps);
    let (terms, good_for) = match answer.and_then(|answer| answer.map_err(Error::msg)) {
        Ok(answer) => answer,
        Err(why) => return drop(begun.send(Err(why))),
    };
    if terms.rate_bps < wanted_bps {
        let rate = show_rate(terms.rate_bps);
        eprintln!(
            "fatpath: --rate: the policy of this host allows {rate}, and the data go at that"
        );
    }
    let held = Arc::new(Mutex::new(Held {
        until: asked + good_for,
        refused: None,
    }));
    let weak = Arc::downgrade(&held);
    drop(begun.send(Ok(Permission { terms, held })));
    let answer = || Terms::ask(ask, destinations, wanted_bps);
    while keep(&weak, terms, &answer) {}
}

/// Says whether to ask again.
fn keep(held: &Weak<Mutex<Held>>, used: Terms, answer: &impl Fn() -> Result<Answer>) -> bool {
    thread::sleep(ASK_EVERY);
    if held.strong_count() == 0 {
        return false;
    }
    let (asked, answer) = (Instant::now(), answer());
    held.upgrade().is_some_and(|held| {
        let mut held = locked(&held);
        held.note(asked, used, answer);
        held.ended(Instant::now()).is_none()
    })
}

fn locked(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use anyhow::bail;

    const TERMS: Terms = Terms {
        rate_bps: 900_000_000,
        dscp: 44,
    };
    const GOOD_FOR: Duration = Duration::from_secs(3);

    fn permit(rate_bps: u64, dscp: u8) -> RudePermission {
        RudePermission::Granted(RudePermit {
            rule: "lent".to_owned(),
            rate_bps,
            dscp,
            good_for_ms: 3000,
        })
    }

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn begin(rate_bps: u64, ports: &[u16], ask: Ask) -> Result<Permission> {
        let destinations = ports.iter().map(|port| to(*port)).collect();
        Rudely { rate_bps, ask }.begin(destinations)
    }

    #[test]
    fn the_least_of_what_is_asked_for_and_allowed_holds() {
        let ask: Ask = Arc::new(|to| Ok(permit(u64::from(to.port()) * 1_000_000, 44)));
        let rate_bps = |rate_bps, ports: &[u16]| {
            let permission = begin(rate_bps, ports, ask.clone()).unwrap();
            permission.terms.rate_bps
        };
        assert_eq!(rate_bps(1_000_000, &[5, 7]), 1_000_000);
        assert_eq!(rate_bps(9_000_000, &[5, 7]), 5_000_000);
        assert_eq!(rate_bps(9_000_000, &[7, 5]), 5_000_000);
    }

    #[test]
    fn what_is_refused_for_one_flow_is_refused() {
        let ask: Ask = Arc::new(|to| match to.port() {
            5 => Ok(permit(1, 44)),
            6 => Ok(permit(1, 45)),
            8 => bail!("the daemon does not run"),
            _ => Ok(RudePermission::Refused(
                "the gate is closed: open it".to_owned(),
            )),
        });
        for (ports, told) in [
            (&[5, 7], "the gate is closed"),
            (&[5, 6], "mark"),
            (&[5, 8], "does not run"),
        ] {
            let refused = begin(1, ports, ask.clone()).err().unwrap();
            let refused = format!("{refused:#}");
            assert!(
                refused.starts_with("--rate: ") && refused.contains(told),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_daemon_that_never_answers_permits_nothing() {
        let ask: Ask = Arc::new(|_: SocketAddr| -> Result<RudePermission> {
            loop {
                thread::park();
            }
        });
        let refused = begin(1, &[5], ask).err().unwrap();
        assert!(
            format!("{refused:#}").contains("does not answer"),
            "{refused:#}"
        );
    }

    #[test]
    fn a_permission_lasts_from_the_question_and_narrower_terms_end_it() {
        let begun = Instant::now();
        let held = || Held {
            until: begun + GOOD_FOR,
            refused: None,
        };
        let mut kept = held();
        assert_eq!(kept.ended(begun + GOOD_FOR / 2), None);
        assert!(kept.ended(begun + GOOD_FOR).is_some());
        let higher = Terms {
            rate_bps: TERMS.rate_bps + 1,
            ..TERMS
        };
        kept.note(begun + GOOD_FOR / 3, TERMS, Ok(Ok((higher, GOOD_FOR))));
        kept.note(begun + GOOD_FOR, TERMS, Err(anyhow!("the daemon restarts")));
        assert_eq!(kept.ended(begun + GOOD_FOR), None);
        assert!(kept.ended(begun + GOOD_FOR * 4 / 3).is_some());
        let lower = Terms {
            rate_bps: 1,
            ..TERMS
        };
        let other = Terms { dscp: 1, ..TERMS };
        for answer in [
            Ok((lower, GOOD_FOR)),
            Ok((other, GOOD_FOR)),
            Err("the gate is closed".to_owned()),
        ] {
            let mut ended = held();
            ended.note(begun, TERMS, Ok(answer));
            assert!(ended.ended(begun).is_some());
            ended.note(begun, TERMS, Ok(Ok((TERMS, GOOD_FOR))));
            assert!(ended.ended(begun).is_some(), "it does not come back");
        }
    }

    /// Of IP packets, whatever their size will be.
    #[test]
    fn no_size_of_datagrams_exceeds_the_rate() {
        for is_ipv4 in [true, false] {
            let header_bytes = if is_ipv4 { 28 } else { 48 };
            let payload_bps = TERMS.payload_bps(is_ipv4);
            for bytes in [512, 1232, 1452, 8952, 65_000] {
                let packets_bps = payload_bps * (bytes + header_bytes) / bytes;
                assert!(packets_bps <= TERMS.rate_bps, "{bytes}");
                assert!(packets_bps > TERMS.rate_bps * 9 / 10, "{bytes}");
            }
        }
    }
}
