// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the two ends tell each other: lines of JSON over a control connection.
//!
//! A line is bounded, and a stranger's that does not come is not waited for. Start with [`Control`].

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The most intervals of the most connections have 20 MB.
const MOST_LINE_BYTES: u64 = 32 << 20;
/// How long the other end may take to say what it has at hand.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What is said, in this order.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// The sender: what it wants.
    Asked(Asked),
    /// The receiver: where it is, a UDP port for each connection.
    Ready { random: [u8; 32], ports: Vec<u16> },
    /// The sender: it begins.
    Go,
    /// The sender: it has ended.
    Done,
    /// The receiver: what arrived of each connection by the end of each interval, in order, and at last.
    Arrived { streams: Vec<Vec<u64>> },
    /// Either: why it cannot go on.
    Failed(String),
}

/// What the sender wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// Of fatpath.
    pub(crate) version: String,
    pub(crate) random: [u8; 32],
    /// The receiver, as the sender knows it.
    pub(crate) address: IpAddr,
    pub(crate) streams: u32,
    /// `KEY=VALUE`.
    pub(crate) tcp: Vec<String>,
    /// The kernel's TCP carries the data, to this port of the receiver; `None`: the transport does.
    pub(crate) kernel_port: Option<u16>,
    pub(crate) datagram_bytes: u16,
    pub(crate) lasts_ns: Option<u64>,
    pub(crate) interval_ns: u64,
    pub(crate) rtt_ns: u64,
}

/// A control connection.
pub(crate) struct Control {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
    /// Sets how long a read waits; `None`: for ever.
    set_patience: Box<dyn Fn(Option<Duration>) -> io::Result<()> + Send>,
}

impl Control {
    pub(crate) fn of_tcp(stream: TcpStream) -> io::Result<Control> {
        stream.set_nodelay(true)?;
        let (reader, writer) = (stream.try_clone()?, stream.try_clone()?);
        Ok(Control {
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
            set_patience: Box::new(move |most| stream.set_read_timeout(most)),
        })
    }

    pub(crate) fn of_unix(stream: UnixStream) -> io::Result<Control> {
        let (reader, writer) = (stream.try_clone()?, stream.try_clone()?);
        Ok(Control {
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
            set_patience: Box::new(move |most| stream.set_read_timeout(most)),
        })
    }

    pub(crate) fn say(&mut self, message: &Message) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.writer.write_all(&line).context("the other end")
    }

    /// What the other end says next, which it is not to take long for.
    pub(crate) fn answer(&mut self) -> Result<Message> {
        (self.set_patience)(Some(ANSWER_WITHIN))?;
        self.read()
    }

    /// What the other end says when it has ended, whenever that is.
    pub(crate) fn wait(&mut self) -> Result<Message> {
        (self.set_patience)(None)?;
        self.read()
    }

    fn read(&mut self) -> Result<Message> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.reader).take(MOST_LINE_BYTES);
        let read = bounded.read_until(b'\n', &mut line);
        read.context("the other end does not answer")?;
        if line.is_empty() {
            bail!("the other end has gone");
        }
        match serde_json::from_slice(&line) {
            Ok(Message::Failed(why)) => bail!("the other end: {why}"),
            Ok(message) => Ok(message),
            Err(_) => bail!("the other end does not speak as `fatpath flow` does"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Control, Control) {
        let (here, there) = UnixStream::pair().unwrap();
        let both = (Control::of_unix(here), Control::of_unix(there));
        (both.0.unwrap(), both.1.unwrap())
    }

    #[test]
    fn what_is_said_is_read() {
        let (mut here, mut there) = pair();
        let arrived = Message::Arrived {
            streams: vec![vec![1, 2], vec![]],
        };
        here.say(&Message::Go).unwrap();
        here.say(&arrived).unwrap();
        assert_eq!(there.answer().unwrap(), Message::Go);
        assert_eq!(there.wait().unwrap(), arrived);
    }

    #[test]
    fn an_end_that_fails_or_goes_or_is_another_is_told() {
        let (mut here, mut there) = pair();
        here.say(&Message::Failed("no port".to_owned())).unwrap();
        let why = |there: &mut Control| there.answer().unwrap_err().to_string();
        assert_eq!(why(&mut there), "the other end: no port");
        here.writer.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(why(&mut there).contains("does not speak"));
        drop(here);
        assert_eq!(why(&mut there), "the other end has gone");
    }
}
