// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the ends say over the control channel: messages, each with its length (4 bytes, little-endian) before it, in the
//! form of `postcard`.
//!
//! ```text
//! caller  Hello ─►  ◄─ Ready  called     (the path is tried)     Start ─►
//! sender  Entries, Problems, Holes, Ended, Checksums, Figures, Finished ─►  receiver
//! sender  ◄─ Answers, Problems, Times  receiver
//! sender  ◄─ Deleted, Problems, Finished  receiver     (its answer to Finished)
//! either  Disk: how fast it is, where much goes
//! either  Busy: it waits for a disk; Alive: it had nothing else to say; Failure: what went wrong, and the end
//! ```

mod bounds;

pub use bounds::MOST_ITEMS;
use bounds::is_bounded;
pub use fatpath_bottleneck::{DiskFigures, ReceiverTimes, SenderTimes};
use fatpath_tree::attributes::{Attribute, Which};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Of this protocol. Ends of other versions refuse each other, and say so: in every version [`Message::Hello`] and
/// [`Message::Ready`] keep their numbers and begin with the version, and [`Message::Failure`] is as it is.
pub const VERSION: u32 = 15;
/// The numbers of messages that begin with the version are no higher.
const LAST_WITH_VERSION: u32 = 1;

/// The longest message, bytes.
const MOST_BYTES: u32 = 4 << 20;
/// What is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The first: who calls, and for what.
    Hello(Hello),
    /// Its answer.
    Ready(Ready),
    /// The caller is ready too: it has asked the path.
    Start(Start),
    /// What there is to move, folders before what is in them.
    Entries(Vec<Entry>),
    /// What cannot be moved.
    Problems(Vec<Problem>),
    /// What was read of files.
    Checksums(Vec<Checksum>),
    /// How the transport stands.
    Figures(Figures),
    /// What becomes of entries.
    Answers(Vec<Answer>),
    /// Every entry has its answer; the receiver's: and folders have their modes and times.
    Finished,
    /// The session cannot go on.
    Failure(String),
    /// This end waits for its disk, and lives.
    Busy,
    /// This end had nothing to say for some time, and lives.
    Alive,
    /// A stream has ended.
    Ended {
        /// Which.
        object: u32,
        /// Its bytes.
        size: u64,
    },
    /// Stretches of files that read as zeros, and are not sent.
    Holes(Vec<Hole>),
    /// The receiver has deleted so many entries, or would; some of their paths.
    Deleted {
        /// How many.
        count: u64,
        /// The first of them, in all messages together.
        paths: Vec<Vec<u8>>,
    },
    /// What keeps the receiver.
    Times(ReceiverTimes),
    /// How fast this end's disk is.
    Disk(DiskFigures),
}

/// What the data go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// Datagrams.
    Udp {
        /// What a round trip took, microseconds.
        rtt_us: u32,
        /// UDP payload of a datagram that the path carries, the longest that was answered.
        datagram_bytes: u16,
        /// What the path let through of a short train in the direction of the data, bits of datagrams a second, if that
        /// could be told.
        train_bps: Option<u64>,
    },
    /// The kernel's TCP.
    Tcp {
        /// Connections that the called has answered.
        connections: u16,
    },
}

impl Start {
    /// Of datagrams.
    pub fn datagram_bytes(&self) -> Option<u16> {
        match self {
            Start::Udp { datagram_bytes, .. } => Some(*datagram_bytes),
            Start::Tcp { .. } => None,
        }
    }
}

/// What the data may go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// UDP, and TCP where UDP does not get through
    Auto,
    /// UDP alone
    Udp,
    /// TCP alone
    Tcp,
}

/// When what was lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Holes {
    /// As it is found lost
    Now,
    /// After all else
    Last,
}

/// Of the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// Its part of the secret.
    pub random: [u8; 32],
    /// What both ends have to agree on.
    pub agreed: Agreed,
    /// What the called does.
    pub part: Part,
}

/// What both ends are set to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// UDP payload of a full datagram at most, as far as the path carries it.
    pub datagram_bytes: u16,
    /// The window.
    pub window_bytes: u64,
    /// How long silence may last, milliseconds.
    pub silence_ms: u32,
    /// The law, with its parameters.
    pub law: String,
    /// What else is asked of TCP, `KEY=VALUE`.
    pub tcp: Vec<String>,
    /// ECN is tried.
    pub ecn: bool,
    /// What is lost is sent again after all else.
    pub lost_last: bool,
    /// The most that the sender sends, bits a second.
    pub limit_bps: Option<u64>,
    /// First and last port, of UDP and of TCP.
    pub ports: (u16, u16),
    /// What may carry the data.
    pub carrier: Carrier,
    /// Flows of UDP, or connections of TCP; `None`: as many as fit the path.
    pub flows: Option<u16>,
}

#[cfg(test)]
impl Agreed {
    /// What tests begin from.
    pub fn of_tests() -> Agreed {
        Agreed {
            datagram_bytes: 1452,
            window_bytes: 1 << 20,
            silence_ms: 1000,
            law: "fp_bbr".to_owned(),
            tcp: vec![],
            ecn: true,
            lost_last: false,
            limit_bps: None,
            ports: (50_000, 51_000),
            carrier: Carrier::Auto,
            flows: None,
        }
    }
}

/// The called's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// It sends.
    Send(Sends),
    /// It receives.
    Receive(Receives),
}

/// What a sender sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sends {
    /// Files and folders, as they were given.
    pub paths: Vec<Vec<u8>>,
    /// Folders with what is in them.
    pub is_recursive: bool,
    /// What is left out.
    pub patterns: LeftOut,
    /// Names of one file are told of as such.
    pub hard_links: bool,
    /// Holes of files are told of, and not sent.
    pub sparse: bool,
    /// Extended attributes that are told of.
    pub attributes: Which,
}

/// What a receiver does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receives {
    /// The target folder.
    pub folder: Vec<u8>,
    /// Modes and access times are kept.
    pub preserves: bool,
    /// Nothing is written.
    pub is_dry: bool,
    /// Files of the same size and time are sent again.
    pub ignores_times: bool,
    /// Folders, links and what is below folders are taken.
    pub is_recursive: bool,
    /// What the first names of paths may be; empty: anything.
    pub names: Vec<Vec<u8>>,
    /// Holes of files are told of, and made.
    pub sparse: bool,
    /// Extended attributes that are stored.
    pub attributes: Which,
    /// What is in folders that were sent, and was not sent, is deleted once all has arrived, but for what these leave out.
    pub deletes: Option<LeftOut>,
}

/// Patterns of what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What is left out.
    pub exclude: Vec<String>,
    /// What is not, though it matches one of those.
    pub include: Vec<String>,
}

/// Of the called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// [`VERSION`].
    pub version: u32,
    /// Its part of the secret.
    pub random: [u8; 32],
    /// Where its UDP sockets are, one for each flow.
    pub udp_ports: Vec<u16>,
    /// Where it listens for TCP, if it does.
    pub tcp_port: Option<u16>,
    /// The address that the caller's ssh reached it by, as far as ssh told it.
    pub address: Option<std::net::IpAddr>,
}

/// One thing to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number: data and answers name it by that.
    pub object: u32,
    /// Below the target folder.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// When it changed last: seconds since 1970, nanoseconds.
    pub modified: (i64, u32),
    /// When it was read last.
    pub accessed: (i64, u32),
    /// Of a file or a folder, those that were asked for.
    pub attributes: Vec<Attribute>,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A file.
    File {
        /// Bytes.
        size: u64,
        /// It has several names, and others may follow.
        is_linked: bool,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// What it names, whatever that is.
        target: Vec<u8>,
    },
    /// A file of which nobody knows the size before its end.
    Stream,
    /// Another name of a file that was named before.
    HardLink {
        /// Its path.
        of: Vec<u8>,
    },
}

/// What cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Of what.
    pub path: Vec<u8>,
    /// Why.
    pub why: String,
}

/// A stretch that reads as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// Of which file.
    pub object: u32,
    /// Its first byte.
    pub from: u64,
    /// One past its last.
    pub until: u64,
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Which file.
    pub object: u32,
    /// BLAKE3 of all of it, or why it cannot be read.
    pub blake3: Result<[u8; 32], String>,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which.
    pub object: u32,
    /// What.
    pub outcome: Outcome,
}

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// These stretches of a file are to be sent: first byte, and one past the last. Another answer follows.
    Wanted(Vec<(u64, u64)>),
    /// It is there already.
    Skipped,
    /// It is there now.
    Stored,
    /// It would be moved.
    WouldStore,
    /// It is not.
    Failed(String),
}

/// How the sender's transport stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Smoothed round-trip time.
    pub rtt_us: u32,
    /// Segments sent, retransmissions among them.
    pub sent_pkts: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Datagrams that were marked (ECN).
    pub marked_pkts: u64,
    /// Flows, or connections of TCP, that were given up: nothing came back from them while it did from others.
    pub silent_flows: u16,
    /// UDP payload of a full datagram; 0 by TCP.
    pub datagram_bytes: u16,
    /// Where its time went.
    pub times: SenderTimes,
}

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The other end is gone.
    #[error("the control channel has ended")]
    Ended,
    /// The other end's version, which is not this one's.
    #[error(
        "this fatpath speaks version {VERSION} of the protocol, the one at the other end version {0}: install the same fatpath \
         at both ends"
    )]
    Version(u32),
    /// What came is none of this protocol.
    #[error("what the other end says is none of this protocol{}", .0.as_ref().map_or(String::new(), |text| format!(": {text}")))]
    Nonsense(Option<String>),
    /// The channel's.
    #[error("control channel")]
    Io(#[from] io::Error),
}

/// Writes a message.
///
/// # Errors
/// The channel's.
pub fn write(channel: &mut impl Write, message: &Message) -> io::Result<()> {
    let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    channel.write_all(&length.to_le_bytes())?;
    channel.write_all(&bytes)
}

/// Reads a message.
///
/// # Errors
/// It has ended, or what came is no message.
pub fn read(channel: &mut impl Read) -> Result<Message, ReadError> {
    let mut length = [0; 4];
    match channel.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ReadError::Ended),
        read => read?,
    }
    let length = u32::from_le_bytes(length);
    if length > MOST_BYTES {
        return Err(ReadError::Nonsense(text_of(length, channel)));
    }
    let mut bytes = Vec::new();
    channel.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(ReadError::Ended);
    }
    match version_of(&bytes) {
        Some(version) if version != VERSION => Err(ReadError::Version(version)),
        _ => decode(&bytes).ok_or(ReadError::Nonsense(None)),
    }
}

/// What follows the version may have any form in other versions.
fn version_of(bytes: &[u8]) -> Option<u32> {
    let ((number, version), _) = postcard::take_from_bytes::<(u32, u32)>(bytes).ok()?;
    (number <= LAST_WITH_VERSION).then_some(version)
}

/// One message, of all of `bytes`.
pub fn decode(bytes: &[u8]) -> Option<Message> {
    let (message, rest) = postcard::take_from_bytes::<Message>(bytes).ok()?;
    (rest.is_empty() && is_bounded(&message)).then_some(message)
}

/// What a shell said instead of a message, such as a greeting of the login: its first line.
fn text_of(length: u32, channel: &mut impl Read) -> Option<String> {
    let mut bytes = length.to_le_bytes().to_vec();
    channel.take(200).read_to_end(&mut bytes).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let is_text = line.iter().all(|byte| (b' '..=b'~').contains(byte));
    is_text.then(|| format!("it begins with {:?}", String::from_utf8_lossy(line)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test ends where it cannot go on
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let kind = prop_oneof![
            any::<(u64, bool)>().prop_map(|(size, is_linked)| Kind::File { size, is_linked }),
            Just(Kind::Folder),
            any::<Vec<u8>>().prop_map(|target| Kind::Link { target }),
            any::<Vec<u8>>().prop_map(|of| Kind::HardLink { of }),
        ];
        (
            any::<u32>(),
            any::<Vec<u8>>(),
            kind,
            any::<u32>(),
            any::<(i64, u32)>(),
            prop::collection::vec(attribute(), 0..3),
        )
            .prop_map(|(object, path, kind, mode, modified, attributes)| Entry {
                object,
                path,
                kind,
                mode,
                modified,
                accessed: (0, 0),
                attributes,
            })
    }

    fn attribute() -> impl Strategy<Value = Attribute> {
        let texts = any::<(Vec<u8>, Vec<u8>)>();
        texts.prop_map(|(name, value)| Attribute { name, value })
    }

    fn figures() -> impl Strategy<Value = Message> {
        let sender = any::<[u64; 8]>().prop_map(|us| SenderTimes {
            source_us: us[0],
            disk_us: us[1],
            processor_us: us[2],
            rate_us: us[3],
            path_us: us[4],
            window_us: us[5],
            receiver_us: us[6],
            answers_us: us[7],
        });
        let figures = (any::<(u32, u64, u64, u64, u16, u16)>(), sender);
        let receiver = any::<[u64; 6]>().prop_map(|us| ReceiverTimes {
            disk_us: us[0],
            processor_us: us[1],
            output_us: us[2],
            finish_disk_us: us[3],
            finish_processor_us: us[4],
            overrun_us: us[5],
        });
        prop_oneof![
            figures.prop_map(|(counts, times)| Message::Figures(Figures {
                rtt_us: counts.0,
                sent_pkts: counts.1,
                retransmits: counts.2,
                marked_pkts: counts.3,
                silent_flows: counts.4,
                datagram_bytes: counts.5,
                times,
            })),
            receiver.prop_map(Message::Times),
            any::<[u64; 3]>().prop_map(|[bytes, from_memory_bytes, took_us]| {
                Message::Disk(DiskFigures {
                    bytes,
                    from_memory_bytes,
                    took_us,
                })
            }),
        ]
    }

    fn hole() -> impl Strategy<Value = Hole> {
        let numbers = any::<(u32, u64, u64)>();
        numbers.prop_map(|(object, from, until)| Hole {
            object,
            from,
            until,
        })
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(
            entries in prop::collection::vec(entry(), 0..20),
            holes in prop::collection::vec(hole(), 0..20),
            figures in figures(),
            cut in any::<prop::sample::Index>(),
        ) {
            let deleted = Message::Deleted { count: cut.index(9) as u64, paths: entries.iter().map(|entry| entry.path.clone()).collect() };
            let messages = [Message::Entries(entries), Message::Holes(holes), deleted, figures, Message::Finished];
            let mut bytes = Vec::new();
            messages.iter().for_each(|message| write(&mut bytes, message).unwrap());
            let mut channel = &bytes[..];
            for message in &messages {
                prop_assert_eq!(&read(&mut channel).unwrap(), message);
            }
            prop_assert!(matches!(read(&mut channel), Err(ReadError::Ended)));
            let mut channel = &bytes[..cut.index(bytes.len())];
            let ended = std::iter::from_fn(|| Some(read(&mut channel))).find_map(Result::err);
            prop_assert!(matches!(ended, Some(ReadError::Ended)));
        }

        /// Whatever comes, it is a message or an error, and takes no more memory than it is long.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut channel = &bytes[..];
            while read(&mut channel).is_ok() {}
            let _ = decode(&bytes);
        }
    }

    /// Whatever else a version changes, these bytes are read by all others.
    #[test]
    fn the_version_comes_first_and_a_failure_is_understood() {
        let bytes = |message: &Message| postcard::to_stdvec(message).unwrap();
        let ready = Message::Ready(Ready {
            version: VERSION,
            random: [0; 32],
            udp_ports: vec![],
            tcp_port: None,
            address: None,
        });
        assert_eq!(bytes(&ready)[..2], [1, VERSION as u8]);
        assert_eq!(bytes(&Message::Failure("no".to_owned())), b"\x09\x02no");
    }

    #[test]
    fn another_version_is_named_whatever_follows_it() {
        for (number, version) in [(0_u32, 3), (1, 3), (0, 300), (1, u32::MAX)] {
            let mut message = postcard::to_stdvec(&(number, version)).unwrap();
            message.extend_from_slice(b"of another form");
            let length = (message.len() as u32).to_le_bytes();
            let error = read(&mut &[&length, &message[..]].concat()[..]).unwrap_err();
            assert!(matches!(error, ReadError::Version(named) if named == version));
            let both = format!(
                "version {VERSION} of the protocol, the one at the other end version {version}:"
            );
            assert!(error.to_string().contains(&both), "{error}");
        }
    }

    #[test]
    fn what_a_shell_says_is_shown() {
        let mut channel = &b"Welcome to dtn1!\nlast login: today\n"[..];
        let error = read(&mut channel).unwrap_err().to_string();
        assert!(
            error.ends_with("it begins with \"Welcome to dtn1!\""),
            "{error}"
        );
    }
}
