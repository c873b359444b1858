// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives the packets of a train with the kernel's timestamps.

use crate::Secret;
use crate::packet::Header;
use fatpath_train::{Arrival, Train};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Room for what arrives while the receiver does not run: 30 ms at 5 Gb/s, with the kernel's own cost of a packet.
const RECEIVE_BUFFER_BYTES: usize = 64 << 20;

/// What the kernel gives at once: a whole GRO packet.
const LARGEST_BYTES: usize = 1 << 16;

/// How long to wait for packets.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the first.
    pub first: Duration,
    /// For the next, from the last that came.
    pub next: Duration,
    /// For all of them.
    pub all: Duration,
}

/// What is known of a train at its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// In order of arrival, each packet once.
    pub arrivals: Vec<Arrival>,
    /// Packets that arrived and that the kernel dropped, because they were not read in time. Those after the last that was
    /// read count to the next train.
    pub overrun: u32,
}

/// Says which packet of the train of that number a datagram is, if it is proved to be one.
type Open = Box<dyn Fn(&[u8], u32) -> Option<u32> + Send>;

/// A socket that receives trains of one test.
pub struct Receiver {
    socket: OwnedFd,
    /// What the kernel has dropped since the socket was made.
    dropped: u32,
    open: Open,
    buffer: Vec<u8>,
    control: Vec<u8>,
}

/// What one call of the kernel's gave.
struct Received {
    at_ns: u64,
    bytes: usize,
    /// Of each datagram but the last.
    datagram_bytes: usize,
    /// Before it, since the socket was made; none: nothing.
    dropped: Option<u32>,
}

impl Receiver {
    /// Takes a bound socket for the test of `secret`.
    ///
    /// # Errors
    /// The kernel's, where it refuses timestamps.
    pub fn new(socket: UdpSocket, secret: Secret) -> io::Result<Receiver> {
        // Before Linux 5.0 each datagram comes by itself.
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        let open = move |datagram: &[u8], number| {
            let header = Header::opened(datagram, number, &secret)?;
            Some(header.sequence)
        };
        Receiver::opening(socket.into(), Box::new(open))
    }

    /// Takes a socket whose datagrams, or packets, `open` knows.
    pub(crate) fn opening(socket: OwnedFd, open: Open) -> io::Result<Receiver> {
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
        }
        Ok(Receiver {
            socket,
            dropped: 0,
            open,
            buffer: vec![0; LARGEST_BYTES],
            control: nix::cmsg_space!(nix::sys::time::TimeSpec, i32, u32),
        })
    }

    /// The packets of `train`, number `number` of the test; until all have come or patience ends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(
        &mut self,
        number: u32,
        train: &Train,
        patience: Patience,
    ) -> io::Result<Record> {
        let dropped = self.dropped;
        let mut arrivals = Arrivals::of(train);
        let begun = Instant::now();
        let last = begun + patience.all;
        let mut end = begun + patience.first;
        while arrivals.missing > 0 && Instant::now() < last {
            let left = end.min(last).saturating_duration_since(Instant::now());
            let received = match self.read_within(left) {
                Ok(received) => received,
                Err(error) if is_time_out(&error) => break,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            self.dropped = received.dropped.unwrap_or(self.dropped);
            if self.take(number, &received, &mut arrivals) {
                end = Instant::now() + patience.next;
            }
        }
        Ok(Record {
            arrivals: arrivals.runs,
            overrun: self.dropped.wrapping_sub(dropped),
        })
    }

    /// In a burst one call of the kernel's gives each, and no time is set. What is there is read even if no time is left: it
    /// came while this host did something else.
    fn read_within(&mut self, most: Duration) -> io::Result<Received> {
        match self.read(MsgFlags::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !most.is_zero() => {
                let most = TimeVal::microseconds((most.as_micros() as i64).max(1));
                setsockopt(&self.socket, sockopt::ReceiveTimeout, &most)?;
                self.read(MsgFlags::empty())
            }
            read => read,
        }
    }

    fn read(&mut self, flags: MsgFlags) -> io::Result<Received> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let control = Some(&mut self.control[..]);
        let message = recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, control, flags)?;
        let mut received = Received {
            at_ns: 0,
            bytes: message.bytes,
            datagram_bytes: message.bytes,
            dropped: None,
        };
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(at) => {
                    received.at_ns = Duration::from(at).as_nanos() as u64;
                }
                ControlMessageOwned::UdpGroSegments(bytes) if bytes > 0 => {
                    received.datagram_bytes = bytes as usize;
                }
                ControlMessageOwned::RxqOvfl(dropped) => received.dropped = Some(dropped),
                _ => {}
            }
        }
        if received.at_ns == 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            received.at_ns = now.unwrap_or_default().as_nanos() as u64;
        }
        Ok(received)
    }

    /// Notes the packets of the train; says whether there was one.
    fn take(&self, number: u32, received: &Received, arrivals: &mut Arrivals) -> bool {
        let missing = arrivals.missing;
        let datagrams = self.buffer[..received.bytes].chunks(received.datagram_bytes.max(1));
        let opened = datagrams.filter_map(|it| (self.open)(it, number));
        opened.for_each(|sequence| arrivals.note(received.at_ns, sequence));
        arrivals.missing < missing
    }
}

/// ICMP errors may be of what went before, or made up by others: a connected socket reports each once.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// The packets of a train that have come.
struct Arrivals {
    runs: Vec<Arrival>,
    has_come: Vec<bool>,
    missing: usize,
}

impl Arrivals {
    fn of(train: &Train) -> Arrivals {
        Arrivals {
            runs: vec![],
            has_come: vec![false; train.packets as usize],
            missing: train.packets as usize,
        }
    }

    /// A packet that came before, or is none of the train's, is left out.
    fn note(&mut self, at_ns: u64, sequence: u32) {
        let Some(has_come @ false) = self.has_come.get_mut(sequence as usize) else {
            return;
        };
        *has_come = true;
        self.missing -= 1;
        // The clock of the day may be set back; the order of arrival stays.
        let at_ns = at_ns.max(self.runs.last().map_or(0, |run| run.at_ns));
        match self.runs.last_mut() {
            Some(run) if run.at_ns == at_ns && run.first + run.packets == sequence => {
                run.packets += 1
            }
            _ => self.runs.push(Arrival {
                at_ns,
                first: sequence,
                packets: 1,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send;
    use fatpath_train::Response;

    const PATIENCE: Patience = Patience {
        first: Duration::from_secs(10),
        next: Duration::from_secs(2),
        all: Duration::from_secs(20),
    };

    fn shortly() -> Patience {
        Patience {
            first: Duration::from_millis(50),
            next: Duration::from_millis(50),
            ..PATIENCE
        }
    }

    fn secret(byte: u8) -> Secret {
        Secret::new(&[byte; 32])
    }

    fn pair() -> (UdpSocket, Receiver) {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        (near, Receiver::new(far, secret(7)).unwrap())
    }

    /// Loopback has no bottleneck: all arrives, at the rate at which it was sent.
    #[test]
    fn a_train_arrives_whole_at_its_rate() {
        let train = Train {
            rate_bps: 40_000_000,
            packets: 200,
            packet_bytes: 1500,
        };
        let (near, mut receiver) = pair();
        let sent = send(&near, &secret(7), 3, &train).unwrap();
        let arrived = receiver.receive(3, &train, PATIENCE).unwrap().arrivals;
        assert_eq!(arrived.iter().map(|run| run.packets).sum::<u32>(), 200);
        // Of a loaded machine the rate is uneven; it is then refused rather than wrong.
        if let Ok(response) = Response::of(&train, &sent, &arrived) {
            // After a pause of the sender, what is due leaves at once: faster than asked.
            let mut late_ns = sent
                .iter()
                .map(|batch| batch.at_ns - train.offset_ns(batch.first));
            let is_on_time = late_ns.all(|late_ns| late_ns < 100_000);
            assert!(
                !is_on_time || response.input_bps < 1.01 * 40e6,
                "{response:?}"
            );
            assert!((0.7..1.4).contains(&response.stretch()), "{response:?}");
        }
    }

    #[test]
    fn batches_are_split_by_the_kernel_and_put_together_again() {
        let train = Train {
            rate_bps: 4_000_000_000,
            packets: 100,
            packet_bytes: 1500,
        };
        assert!(train.batch_packets() > 1);
        let (near, mut receiver) = pair();
        send(&near, &secret(7), 0, &train).unwrap();
        let arrived = receiver.receive(0, &train, PATIENCE).unwrap().arrivals;
        assert_eq!(arrived.iter().map(|run| run.packets).sum::<u32>(), 100);
    }

    #[test]
    fn other_datagrams_and_repeated_ones_are_left_out() {
        let train = Train {
            rate_bps: 1_000_000_000,
            packets: 2,
            packet_bytes: 1500,
        };
        let (near, mut receiver) = pair();
        let header = Header {
            train: 1,
            sequence: 0,
        };
        let strangers = [
            Header { train: 0, ..header },
            Header {
                sequence: 2,
                ..header
            },
        ];
        for header in strangers.into_iter().chain([header, header]) {
            near.send(&header.sealed(&secret(7))).unwrap();
        }
        // The second of the train by whoever does not have its secret.
        let second = Header {
            sequence: 1,
            ..header
        };
        near.send(&second.sealed(&secret(8))).unwrap();
        let before = receiver.receive(1, &train, shortly()).unwrap().arrivals;
        assert_eq!(before.iter().map(|run| run.packets).sum::<u32>(), 1);
        near.send(&header.sealed(&secret(7))).unwrap();
        near.send(b"").unwrap();
        near.send(&second.sealed(&secret(7))).unwrap();
        let arrived = receiver.receive(1, &train, PATIENCE).unwrap().arrivals;
        assert_eq!(arrived.iter().map(|run| run.packets).sum::<u32>(), 2);
        let nothing = receiver.receive(2, &train, shortly()).unwrap();
        assert_eq!(nothing, Record::default());
    }

    #[test]
    fn what_came_in_time_is_read_by_a_host_that_is_late() {
        let train = Train {
            rate_bps: 1_000_000_000,
            packets: 20,
            packet_bytes: 1500,
        };
        let (near, mut receiver) = pair();
        send(&near, &secret(7), 0, &train).unwrap();
        let late = Patience {
            first: Duration::ZERO,
            next: Duration::ZERO,
            ..PATIENCE
        };
        let arrived = receiver.receive(0, &train, late).unwrap().arrivals;
        assert_eq!(arrived.iter().map(|run| run.packets).sum::<u32>(), 20);
    }

    #[test]
    fn a_port_that_was_closed_before_ends_no_train() {
        let train = Train {
            rate_bps: 1_000_000_000,
            packets: 20,
            packet_bytes: 1500,
        };
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = near.local_addr().unwrap();
        far.connect(address).unwrap();
        drop(near);
        far.send(b"nobody is there").unwrap();
        let near = UdpSocket::bind(address).unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let mut receiver = Receiver::new(far, secret(7)).unwrap();
        send(&near, &secret(7), 0, &train).unwrap();
        let arrived = receiver.receive(0, &train, PATIENCE).unwrap().arrivals;
        assert_eq!(arrived.iter().map(|run| run.packets).sum::<u32>(), 20);
    }

    /// Whoever reads too late learns that the kernel dropped packets, and how many.
    #[test]
    fn what_the_kernel_drops_is_no_loss_of_the_path() {
        let train = Train {
            rate_bps: 4_000_000_000,
            packets: 400,
            packet_bytes: 1500,
        };
        let (near, mut receiver) = pair();
        setsockopt(&receiver.socket, sockopt::RcvBuf, &65_536).unwrap();
        send(&near, &secret(7), 0, &train).unwrap();
        let first = receiver.receive(0, &train, shortly()).unwrap();
        let arrived: u32 = first.arrivals.iter().map(|run| run.packets).sum();
        assert!((1..400).contains(&arrived), "{arrived}");
        // All that was dropped came after the last that was read.
        let next = Train {
            packets: 1,
            ..train
        };
        send(&near, &secret(7), 1, &next).unwrap();
        let second = receiver.receive(1, &next, PATIENCE).unwrap();
        let overrun = first.overrun + second.overrun;
        assert!(
            (1..=400 - arrived).contains(&overrun),
            "{overrun} {arrived}"
        );
    }
}
