// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow asks of TCP, as the ends of a connection have it: of the transport over UDP, and of a simulated one.
//!
//! Pure. The simulator runs what [`spec`] gives the transport as TCP segments of the same length ([`simulated`]), so that
//! a flow is the same connection in both. Start with [`spec`].

use fatpath_tcp::{DelayedAcks as TcpDelayedAcks, Detection, TcpSpec, WindowReduction};
use fatpath_transport::Spec;

use super::flow::{DelayedAcks, EndSettings, Requests};
use super::law;

/// The law of a flow over UDP that asks for none, as of `fatpath send`.
const LAW: &str = "fp_bbr";

/// The connection of a flow over UDP, in datagrams of `most_datagram_bytes` of UDP payload at most, which the path carries
/// whole, unless longer ones are asked for and IP may fragment them.
///
/// # Errors
/// In words: what the transport has not, or what is out of range.
pub fn spec(requests: &Requests, most_datagram_bytes: u16) -> Result<Spec, String> {
    if requests.window_bytes.is_some() {
        return Err("window: is of the kernel's sockets; give receive_buffer".to_owned());
    }
    if requests.ends.rude.is_some() {
        return Err(
            "rude: over UDP, `fatpath send --rate` alone has no congestion control".to_owned(),
        );
    }
    let plain = Spec::default();
    let law = law::named(LAW)?;
    let mut tcp = TcpSpec { law, ..plain.tcp };
    tcp.start.hystart = law.spec().hystart;
    requests.give(&mut tcp)?;
    let most_bytes = match requests.ends.fragment {
        Some(true) => *Spec::DATAGRAM_BYTES.end(),
        _ => most_datagram_bytes,
    };
    let datagram_bytes = match requests.mss_bytes {
        Some(mss_bytes) => datagram_bytes(mss_bytes).min(most_bytes),
        None => most_datagram_bytes,
    };
    let least_bytes = *Spec::DATAGRAM_BYTES.start();
    if datagram_bytes < least_bytes {
        let least_bytes = least_bytes - Spec::OVERHEAD_BYTES;
        return Err(format!("mss: give {least_bytes} bytes or more"));
    }
    let window_bytes = window_bytes(&requests.ends, datagram_bytes).unwrap_or(plain.window_bytes);
    let spec = Spec {
        tcp,
        datagram_bytes,
        window_bytes,
        ..plain
    };
    spec.check().map_err(|error| error.to_string())?;
    Ok(spec)
}

/// Payload of a full datagram: bytes of what is sent.
pub fn mss_bytes(spec: &Spec) -> u32 {
    u32::from(spec.datagram_bytes) - u32::from(Spec::OVERHEAD_BYTES)
}

fn datagram_bytes(mss_bytes: u32) -> u16 {
    let bytes = mss_bytes + u32::from(Spec::OVERHEAD_BYTES);
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// The sender keeps no data, so what either end may hold bounds what is on its way. The transport counts the headers of
/// what it carries with it.
fn window_bytes(ends: &EndSettings, datagram_bytes: u16) -> Option<u64> {
    let buffers = [ends.send_buffer_bytes, ends.receive_buffer_bytes];
    let data_bytes = buffers.into_iter().flatten().min()?;
    let payload = u64::from(datagram_bytes.saturating_sub(Spec::OVERHEAD_BYTES)).max(1);
    let pkts = data_bytes.div_ceil(payload);
    Some(data_bytes + pkts * u64::from(Spec::RUN_HEADER_BYTES))
}

/// The same connection by TCP segments in IP packets as long as those of the datagrams, which have `network_bytes` of IP and
/// UDP headers.
pub fn simulated(spec: &Spec, network_bytes: u32) -> TcpSpec {
    let tcp = spec.as_tcp(network_bytes);
    let run_bytes = u32::from(Spec::RUN_HEADER_BYTES);
    TcpSpec {
        mss_bytes: tcp.mss_bytes - run_bytes,
        header_bytes: tcp.header_bytes + run_bytes,
        ..tcp
    }
}

impl Requests {
    /// Puts what is asked for in the place of what `tcp` has: its law, its pacing rate and its ends but for buffers, segment
    /// size and rudeness, which are not one thing in all that has such ends.
    ///
    /// # Errors
    /// In words, for a law that there is not.
    pub fn give(&self, tcp: &mut TcpSpec) -> Result<(), String> {
        if let Some(request) = &self.law {
            tcp.law = law::of_request(request)?;
            tcp.start.hystart = tcp.law.spec().hystart;
        }
        if self.pacing_rate_bps.is_some() {
            tcp.pacing_rate_bps = self.pacing_rate_bps;
        }
        self.ends.give(tcp);
        Ok(())
    }
}

impl EndSettings {
    /// The same for what only the ends know.
    pub fn give(&self, tcp: &mut TcpSpec) {
        put(&mut tcp.initial_window_pkts, self.initial_window_pkts);
        put(&mut tcp.cwnd_clamp_pkts, self.cwnd_clamp_pkts);
        if let Some(detection) = self.detection {
            tcp.detection = detection;
            tcp.reduction = usual_reduction(detection);
        }
        put(&mut tcp.dupthresh, self.dupthresh);
        put(&mut tcp.sack_blocks, self.sack_blocks);
        put(&mut tcp.reduction, self.reduction);
        put(&mut tcp.growth, self.growth);
        put(&mut tcp.max_burst_pkts, self.max_burst_pkts);
        put(&mut tcp.pacing, self.pacing);
        put(&mut tcp.pacing_quantum_ns, self.pacing_quantum_ns);
        tcp.drops.extend(&self.drops);
        put(&mut tcp.rto_min_ns, self.rto_min_ns);
        put(&mut tcp.delayed_ack_pkts, self.delayed_ack_pkts);
        tcp.delayed_acks = self.delayed_acks(tcp.delayed_acks);
        put(&mut tcp.tail_loss_probe, self.tail_loss_probe);
        let start = &mut tcp.start;
        put(&mut start.max_ssthresh_pkts, self.max_ssthresh_pkts);
        put(&mut start.initial_ssthresh_pkts, self.initial_ssthresh_pkts);
        put(&mut start.initial_rate_bps, self.initial_rate_bps);
        put(&mut start.idle, self.idle);
        put(&mut start.hystart, self.hystart);
    }

    fn delayed_acks(&self, given: TcpDelayedAcks) -> TcpDelayedAcks {
        let asked = self.delayed_acks.unwrap_or(match given {
            TcpDelayedAcks::Off => DelayedAcks::Off,
            TcpDelayedAcks::On { .. } => DelayedAcks::On,
            TcpDelayedAcks::QuickAtStart { .. } => DelayedAcks::QuickAtStart,
        });
        let max_ns = self.delayed_ack_max_ns.unwrap_or(TcpDelayedAcks::MAX_NS);
        match asked {
            DelayedAcks::Off => TcpDelayedAcks::Off,
            DelayedAcks::On => TcpDelayedAcks::On { max_ns },
            DelayedAcks::QuickAtStart => TcpDelayedAcks::QuickAtStart { max_ns },
        }
    }
}

fn put<T: Copy>(place: &mut T, asked: Option<T>) {
    *place = asked.unwrap_or(*place);
}

/// Linux's; RFC 5681 and RFC 6582 halve the window at once.
fn usual_reduction(detection: Detection) -> WindowReduction {
    match detection.uses_sack() {
        true => WindowReduction::Prr,
        false => WindowReduction::AtOnce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &str) -> Result<Spec, String> {
        spec(&Requests::of_texts(&[texts])?, 1472)
    }

    #[test]
    fn what_a_flow_asks_for_is_what_the_transport_and_the_simulator_have() {
        let spec = of("law=fp_cubic,receive_buffer=1MB,send_buffer=8MB,sack_blocks=4,detection=newreno,pacing=true").unwrap();
        assert_eq!((spec.datagram_bytes, mss_bytes(&spec)), (1472, 1418));
        assert_eq!((spec.tcp.sack_blocks, spec.tcp.pacing), (4, true));
        assert_eq!(spec.tcp.reduction, WindowReduction::AtOnce);
        // A window of 1 MB of data: 706 datagrams, of which each has a header of 14 bytes in it.
        assert_eq!(spec.window_bytes, 1_000_000 + 706 * 14);
        let tcp = simulated(&spec, 28);
        assert_eq!((tcp.mss_bytes, tcp.header_bytes), (1418, 82));
        assert_eq!((tcp.law, tcp.sack_blocks), (spec.tcp.law, 4));
        let small = of("mss=1000").unwrap();
        assert_eq!((small.datagram_bytes, mss_bytes(&small)), (1054, 1000));
        assert_eq!(of("mss=9000").unwrap().datagram_bytes, 1472);
        let fragmented = of("mss=9000,fragment=true").unwrap();
        assert_eq!(fragmented.datagram_bytes, 9054);
        assert_eq!(of("fragment=true").unwrap().datagram_bytes, 1472);
    }

    #[test]
    fn what_asks_for_nothing_is_as_the_movers() {
        let spec = of("initial_window=10").unwrap();
        assert_eq!(spec.tcp.law.spec().name, "bbr");
        assert_eq!(spec.window_bytes, Spec::default().window_bytes);
        assert_eq!(of("mss=457").unwrap_err(), "mss: give 458 bytes or more");
        assert!(of("delayed_acks=on,delayed_ack_max=7ms").is_ok_and(|spec| {
            spec.tcp.delayed_acks == TcpDelayedAcks::On { max_ns: 7_000_000 }
        }));
    }
}
