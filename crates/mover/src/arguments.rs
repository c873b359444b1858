// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that `fatpath send` and `fatpath recv` have in common, and what the ends are told of them.

use crate::by_key::KeyFiles;
use crate::limits::size;
use crate::protocol::{Carrier, Holes, LeftOut, Receives, Sends};
use anyhow::{Result, ensure};
use clap::Args;
use fatpath_tree::attributes::Which;
use std::net::IpAddr;

/// What both commands take.
#[derive(Args)]
pub struct BothArguments {
    /// Folders with what is in them; symbolic links stay links
    #[arg(short, long)]
    pub recursive: bool,
    /// Keep modes and access times; modification times are kept in any case
    #[arg(short, long)]
    pub preserve: bool,
    /// Keep hard links: names of one file, of what is sent, stay names of one file
    #[arg(short = 'H', long)]
    pub hard_links: bool,
    /// Keep holes of files: they are not sent, and take no room there
    #[arg(short = 'S', long)]
    pub sparse: bool,
    /// Keep extended attributes: user.*, or with =all also security.* and trusted.*, which root alone can store
    #[arg(short = 'X', long, value_name = "WHICH", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "user")]
    pub xattrs: Option<Xattrs>,
    /// Keep POSIX ACLs, and with them modes as -p does
    #[arg(short = 'A', long)]
    pub acls: bool,
    /// Leave out what this pattern fits: the end of a path, or with / at the front all of it; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Do not leave out what this pattern fits, though an --exclude does
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<String>,
    /// Delete what is in the folders there and was not sent, once all has arrived; what is excluded stays
    #[arg(long, requires = "recursive")]
    pub delete: bool,
    /// Send files again that have the same size and time there
    #[arg(short = 'I', long)]
    pub ignore_times: bool,
    /// Say what would be moved; move nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Send at most at this rate, such as 2gbit
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub limit: Option<u64>,
    /// Congestion control: a law of fatpath, with parameters after commas (fp_aimd,a=8)
    #[arg(long, value_name = "LAW", default_value = "fp_bbr")]
    pub law: String,
    /// What is asked of the transport's TCP, with the keys of a [[flow]]: detection, delayed_acks, initial_window, drop, …; may be
    /// given several times. UDP alone carries the data then
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub tcp: Vec<String>,
    /// Do not ask queues to mark datagrams in the place of dropping them (ECN)
    #[arg(long)]
    pub no_ecn: bool,
    /// When data that were lost are sent again, by UDP: as they are found lost, or after all else
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Holes::Now)]
    pub holes: Holes,
    /// Data in flight at most, with what has arrived and waits for a missing piece
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = size)]
    pub window: u64,
    /// Payload of a datagram at most; what the path carries of it is found out
    #[arg(long, value_name = "BYTES", default_value_t = 8952)]
    pub datagram_bytes: u16,
    /// What carries the data: UDP, or TCP where UDP is blocked
    #[arg(long, value_name = "CARRIER", value_enum, default_value_t = Carrier::Auto)]
    pub carrier: Carrier,
    /// Flows of UDP, or connections of TCP, 1 to 32; without it one flow, and 8 connections where the path is long
    #[arg(long, value_name = "NUMBER")]
    pub flows: Option<u16>,
    /// Ports of UDP and TCP that both ends choose one of
    #[arg(long, value_name = "FIRST-LAST", default_value = "50000-51000", value_parser = ports)]
    pub ports: (u16, u16),
    /// Give up when the other end is silent for this long, such as 30s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time_ms)]
    pub timeout: u32,
    /// Where the data to HOST go, if ssh goes by another address
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<IpAddr>,
    /// Command that runs another one on a host, in the place of ssh, as rsync takes it
    #[arg(short = 'e', long, value_name = "COMMAND")]
    pub rsh: Option<String>,
    /// The fatpath on the other host
    #[arg(long, value_name = "PATH", default_value = "fatpath")]
    pub remote_fatpath: String,
    #[allow(missing_docs)] // a comment would become the text of --help
    #[command(flatten)]
    pub keys: KeyFiles,
    /// Print what became of it as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Be the end that another fatpath starts: what to do comes over standard input
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// Which extended attributes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Xattrs {
    /// user.*
    User,
    /// And security.*, trusted.*
    All,
}

/// What an option gives in bits a second.
///
/// # Errors
/// It is none, or 0.
pub fn rate(text: &str) -> Result<u64, String> {
    let rate = fatpath_units::rate_bps(text).and_then(|rate| u64::try_from(rate).ok());
    rate.filter(|rate| *rate > 0)
        .ok_or_else(|| "give a rate, such as 2gbit".to_owned())
}

fn time_ms(text: &str) -> Result<u32, String> {
    let time = fatpath_units::time_us(text).and_then(|time| u32::try_from(time / 1000).ok());
    time.filter(|time| *time > 0)
        .ok_or_else(|| "give a time, such as 30s".to_owned())
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let ports = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let ports = ports.filter(|(first, last): &(u16, u16)| *first > 0 && first <= last);
    ports.ok_or_else(|| "give two ports, such as 50000-51000".to_owned())
}

impl BothArguments {
    /// What the sender is to send.
    pub fn sends(&self, paths: Vec<Vec<u8>>) -> Sends {
        Sends {
            paths,
            is_recursive: self.recursive,
            patterns: self.left_out(),
            hard_links: self.hard_links,
            sparse: self.sparse,
            attributes: self.attributes(),
        }
    }

    /// What the receiver is to do.
    pub fn receives(&self, folder: Vec<u8>, names: Vec<Vec<u8>>) -> Receives {
        Receives {
            folder,
            preserves: self.preserve || self.acls,
            is_dry: self.dry_run,
            ignores_times: self.ignore_times,
            is_recursive: self.recursive,
            names,
            sparse: self.sparse,
            attributes: self.attributes(),
            deletes: self.delete.then(|| self.left_out()),
        }
    }

    fn left_out(&self) -> LeftOut {
        LeftOut {
            exclude: self.exclude.clone(),
            include: self.include.clone(),
        }
    }

    fn attributes(&self) -> Which {
        Which {
            user: self.xattrs.is_some(),
            privileged: self.xattrs == Some(Xattrs::All),
            acls: self.acls,
        }
    }

    /// What makes no sense of standard input or output.
    ///
    /// # Errors
    /// Something of that was given.
    pub fn refuse_with_streams(&self) -> Result<()> {
        let keeps = self.preserve || self.hard_links || self.sparse || self.attributes().is_any();
        ensure!(
            !(self.recursive || keeps || self.dry_run),
            "- is one stream without a mode, holes or attributes: leave out --recursive, --preserve, --hard-links, --sparse, \
             --xattrs, --acls and --dry-run"
        );
        ensure!(
            self.exclude.is_empty() && self.include.is_empty(),
            "- is one file, which is named: leave out --exclude and --include"
        );
        ensure!(
            self.holes == Holes::Now,
            "- is one stream, in order: leave out --holes last"
        );
        Ok(())
    }
}
