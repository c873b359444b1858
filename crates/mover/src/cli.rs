// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands `fatpath send` and `fatpath recv`, as clap sees them.

use crate::arguments::{BothArguments, rate};
use crate::control::Control;
use crate::listen::{self, Bounds, ListenArguments};
use crate::protocol::{Agreed, Carrier, Holes, Part, Receives};
use crate::remote::{Place, Reach, Shell, on_one_host};
use crate::report::{Progress, Report};
use crate::send::{Given, own_name};
use crate::session::{Session, law};
use crate::way::Way;
use crate::{receive, send};
use anyhow::{Context, Result, bail, ensure};
use clap::builder::ArgPredicate::IsPresent;
use clap::{Arg, Args};
use fatpath_cc::Kind;
use fatpath_driver::BUFFER_REMEDY;
use fatpath_flow::rude::{Ask, Rudely};
use fatpath_tree::{Tree, shown};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// What `fatpath send --help` ends with.
pub const SEND_HELP: &str = "\
Starts `fatpath recv` on HOST by ssh, and sends the files by UDP, encrypted, or
by TCP where UDP is blocked. A file appears under its name when all of it is
there, verified and on the disk. A transfer that was interrupted goes on where
it ended when the same command is given again. Files of the same size and time
are left alone. docs/mover.md.

With - in the place of the files, standard input becomes the one file that the
last argument names. Nothing of it is kept where the transfer is interrupted.

fatpath://HOST:PORT/DIR goes to `fatpath recv --listen`, without ssh; both ends
have to trust each other's key: `fatpath keys --help`.

Examples:
  fatpath send results.tar dtn2:/data
  fatpath send -r run-7 me@dtn2:/data --exclude '*.tmp' --limit 2gbit
  fatpath send -r -p -H -S -X -A home dtn2:/backup --delete --dry-run
  fatpath send big.h5 dtn2: --law fp_cubic --json
  fatpath send big.h5 dtn2:/data --rate 900mbit
  tar c run-7 | fatpath send - dtn2:/data/run-7.tar
  fatpath send -r run-7 fatpath://dtn2:4747/incoming

Exit status: 0; 1 it failed, or something of it; 2 wrong usage.";

/// What `fatpath recv --help` ends with.
pub const RECV_HELP: &str = "\
Starts `fatpath send` on HOST by ssh, and receives the files by UDP, encrypted,
or by TCP where UDP is blocked.
DIR is made where it is missing. See `fatpath send --help`.

With - in the place of DIR, one file goes to standard output, as it comes; the
exit status says whether it was whole and what was read there. The summary, and
what --json prints, go to standard error.

With --listen it waits for others that send to fatpath://HOST:PORT/, until
SIGTERM, and lets those in whose keys `fatpath keys trust caller` has added.
Nothing is written or read outside the folder of --into, and fetched by those
alone that --give-to names. With --json it prints a line for each event.

Examples:
  fatpath recv dtn2:/data/results.tar .
  fatpath recv -r dtn2:/data/run-7 dtn2:/data/run-8 /scratch
  fatpath recv dtn2:/data/run-7.tar - | tar x
  fatpath recv -r fatpath://dtn2:4747/run-7 /scratch
  fatpath recv --listen 4747 --into /data/incoming
  fatpath recv --listen 4747 --into /data/shared --give-to dtn1
  fatpath recv --listen 192.0.2.1:4747 --into /data/incoming --user dtn

Exit status: 0; 1 it failed, or something of it; 2 wrong usage.";

/// Standard input or output, in the place of a path.
const STANDARD: &str = "-";

/// What a transfer goes from or to, here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Files,
    Input,
    Output,
}

/// `fatpath send`.
#[derive(Args)]
#[command(mut_arg("law", law_with_rate))]
pub struct SendArguments {
    /// Files, and folders with -r, or - alone: standard input; the last one is where they go: [USER@]HOST:DIR, with -
    /// [USER@]HOST:FILE; or fatpath://HOST:PORT/DIR, where a listener runs
    #[arg(value_name = "FILE", required_unless_present = "stdio", num_args = 1.., conflicts_with = "stdio")]
    pub places: Vec<OsString>,
    /// Send at this rate without congestion control, while the daemon of this host permits it: the gate has to be open
    /// (fatpath rude on --mark dscp=N), and a rule has to allow it. UDP alone carries the data then
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "limit")]
    pub rate: Option<u64>,
    /// Write what happens to the flows of UDP into this directory, as `fatpath trace` does; `fatpath trace plot` draws it
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    #[allow(missing_docs)] // a comment would become the text of --help
    #[command(flatten)]
    pub both: BothArguments,
}

fn law_with_rate(law: Arg) -> Arg {
    let help = law.get_help().map(ToString::to_string);
    law.default_value_if("rate", IsPresent, "fp_reno").help(format!(
        "{}. With --rate the law of the fair window, for when the permission ends: fp_reno, unless another one is given",
        help.unwrap_or_default()
    ))
}

/// `fatpath recv`.
#[derive(Args)]
pub struct RecvArguments {
    /// [USER@]HOST:FILE, of one host; the last one is the folder here that they go to, or - for standard output
    #[arg(value_name = "PLACE", required_unless_present_any = ["stdio", "listen"], num_args = 1.., conflicts_with = "stdio")]
    pub places: Vec<OsString>,
    #[allow(missing_docs)] // a comment would become the text of --help
    #[command(flatten)]
    pub listening: ListenArguments,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub both: BothArguments,
}

/// `fatpath send`; `ask` is for `--rate`.
///
/// # Errors
/// The transfer cannot go on.
pub fn run_send(arguments: &SendArguments, ask: Ask) -> Result<ExitCode> {
    let both = &arguments.both;
    if both.stdio {
        return be_called();
    }
    let (target, files) = arguments
        .places
        .split_last()
        .filter(|(_, files)| !files.is_empty())
        .context("give files and HOST:DIR")?;
    let target = target.to_str().and_then(Place::parse);
    let target = target
        .context("the last argument says where files go: give HOST:DIR or fatpath://HOST:PORT/DIR, or use cp on one host")?;
    if files.iter().any(|file| file == STANDARD) {
        ensure!(
            files.len() == 1,
            "- is standard input, and goes alone: give one command for each, or ./- for a file of that name"
        );
        return send_input(arguments, &target, ask);
    }
    // One that leads nowhere is told of later.
    let names = files
        .iter()
        .filter_map(|file| own_name(Path::new(file)).ok());
    refuse_twins(names)?;
    let sends = both.sends(files.iter().map(|file| file.as_bytes().to_vec()).collect());
    let receives = both.receives(target.path.clone().into_bytes(), vec![]);
    let session = arguments.call(&target, receives, ask)?;
    let given = Given::Paths(&sends, Arc::new(Tree::Everywhere));
    both.finish(Ends::Files, |report, progress| {
        send::run(session, &given, report, progress)
    })
}

/// Standard input, to one file.
fn send_input(arguments: &SendArguments, target: &Place, ask: Ask) -> Result<ExitCode> {
    let both = &arguments.both;
    both.refuse_with_streams()?;
    let path = Path::new(&target.path);
    let name = path.file_name().filter(|_| !target.path.ends_with('/'));
    let name = name.with_context(|| {
        format!("standard input has no name: name the file that it becomes, as {target}NAME")
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let receives = both.receives(folder.as_os_str().as_bytes().to_vec(), vec![]);
    let session = arguments.call(target, receives, ask)?;
    let given = Given::Input(name.as_bytes().to_vec());
    both.finish(Ends::Input, |report, progress| {
        send::run(session, &given, report, progress)
    })
}

impl SendArguments {
    fn call(&self, target: &Place, receives: Receives, ask: Ask) -> Result<Session> {
        let part = Part::Receive(receives);
        let both = &self.both;
        let rudely = self.rate.map(|rate_bps| Rudely { rate_bps, ask });
        let mut session = both.call_by(&target.without_path(), part, both.flows, rudely)?;
        if let Some(folder) = &self.log {
            session.log_to(folder);
        }
        Ok(session)
    }
}

/// `fatpath recv`.
///
/// # Errors
/// The transfer cannot go on.
pub fn run_recv(arguments: &RecvArguments) -> Result<ExitCode> {
    let (both, listening) = (&arguments.both, &arguments.listening);
    if let Some(at) = listening.listen {
        return listen::run(at, listening, &both.keys, both.ports, both.json);
    }
    match &listening.below {
        Some(folder) => {
            let bounds = Bounds {
                folder: folder.clone(),
                address: both.address,
                ports: both.ports,
                window_bytes: both.window,
                gives: listening.below_gives,
            };
            return listen::called::run(&bounds);
        }
        None if both.stdio => return be_called(),
        None => {}
    }
    let (folder, places) = arguments
        .places
        .split_last()
        .filter(|(_, places)| !places.is_empty())
        .context("give HOST:FILE and a folder")?;
    if folder == STANDARD {
        return both.finish(Ends::Output, |report, progress| {
            receive_to_output(both, places, report, progress)
        });
    }
    let (places, names) = named(places)?;
    let session = both.call(&places[0], Part::Send(both.sends(paths(&places))))?;
    let receives = both.receives(folder.clone().into_vec(), names);
    both.finish(Ends::Files, |report, progress| {
        receive::run(session, receives, report, progress)
    })
}

/// One file, to standard output, which has nothing else: not even with --json what is wrong.
fn receive_to_output(
    both: &BothArguments,
    places: &[OsString],
    report: &mut Report,
    progress: &mut Progress,
) -> Result<()> {
    both.refuse_with_streams()?;
    ensure!(
        places.len() == 1,
        "- is standard output, and takes one file: give one command for each, or ./- for a folder of that name"
    );
    ensure!(
        !stdout().is_terminal(),
        "standard output is a terminal: send it to a file or a program, as in | tar x"
    );
    ensure!(
        both.flows.is_none_or(|flows| flows == 1),
        "what goes to standard output comes by one flow, in order: leave out --flows"
    );
    let (places, names) = named(places)?;
    let sends = Part::Send(both.sends(paths(&places)));
    let session = both.call_by(&places[0], sends, Some(1), None)?;
    *report = Report::new(false).telling(!both.quiet); // the time of logging in is not the transfer's
    receive::run_to_output(session, &names[0], raw_stdout()?, report, progress)
}

/// Places on one host, and what the other end may call them.
fn named(places: &[OsString]) -> Result<(Vec<Place>, Vec<Vec<u8>>)> {
    let texts = places.iter().map(|place| place.to_str().map(str::to_owned));
    let texts: Option<Vec<_>> = texts.collect();
    let places = on_one_host(&texts.context("names on another host have to be UTF-8")?)?;
    let names = places.iter().map(last_name).collect::<Result<Vec<_>>>()?;
    refuse_twins(names.iter().cloned())?;
    Ok((places, names))
}

fn paths(places: &[Place]) -> Vec<Vec<u8>> {
    let paths = places.iter().map(|place| place.path.clone().into_bytes());
    paths.collect()
}

/// Without the buffer of lines.
fn raw_stdout() -> Result<File> {
    Ok(File::from(stdout().as_fd().try_clone_to_owned()?))
}

/// Two that would become one are refused before anything goes.
fn refuse_twins(names: impl Iterator<Item = Vec<u8>>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        ensure!(
            seen.insert(name.clone()),
            "two of what was given are called {}, and would be one in the folder: give one command for each",
            shown(&name)
        );
    }
    Ok(())
}

/// What the other end may call it.
fn last_name(place: &Place) -> Result<Vec<u8>> {
    let name = Path::new(&place.path).file_name();
    let name =
        name.with_context(|| format!("{place} has no name of its own: name a file or folder"))?;
    Ok(name.as_bytes().to_vec())
}

impl BothArguments {
    fn call(&self, place: &Place, part: Part) -> Result<Session> {
        self.call_by(place, part, self.flows, None)
    }

    /// By so many flows, where that is said; without congestion control, where this host permits it.
    fn call_by(
        &self,
        place: &Place,
        part: Part,
        flows: Option<u16>,
        rudely: Option<Rudely>,
    ) -> Result<Session> {
        if rudely.is_some() {
            self.refuse_with_rate()?;
        }
        let carrier = match (self.carrier, self.tcp.is_empty() && rudely.is_none()) {
            (Carrier::Tcp, false) => {
                bail!(
                    "--tcp is asked of the transport over UDP, not of the kernel's TCP: leave out --carrier tcp"
                )
            }
            (Carrier::Auto, false) => Carrier::Udp,
            (carrier, _) => carrier,
        };
        let shell = Shell {
            rsh: self.rsh.clone(),
            fatpath: self.remote_fatpath.clone(),
        };
        let keys = self.keys.clone();
        let reach = Reach { shell, keys };
        let agreed = Agreed {
            datagram_bytes: self.datagram_bytes,
            window_bytes: self.window,
            silence_ms: self.timeout,
            law: self.law.clone(),
            tcp: self.tcp.clone(),
            ecn: !self.no_ecn,
            lost_last: self.holes == Holes::Last,
            limit_bps: self.limit,
            ports: self.ports,
            carrier,
            flows,
        };
        let session = Session::call(&reach, place, self.address, agreed, part, rudely)?;
        let is_blocked = (carrier, session.way().carrier()) == (Carrier::Auto, Carrier::Tcp);
        if is_blocked && !self.quiet {
            eprintln!(
                "fatpath: UDP does not get through; the data go by TCP, as the kernels of both hosts have it"
            );
        }
        if !self.quiet {
            warn_of_short_buffer(session.way());
        }
        Ok(session)
    }

    /// What does not go with `--rate`.
    fn refuse_with_rate(&self) -> Result<()> {
        ensure!(
            self.carrier != Carrier::Tcp,
            "--rate is of flows over UDP, not of the kernel's TCP: leave out --carrier tcp"
        );
        ensure!(
            law(&self.law)?.spec().kind == Kind::Window,
            "--law: give one that goes by a window, such as fp_reno: with --rate it is that of the fair window"
        );
        Ok(())
    }

    fn finish(
        &self,
        ends: Ends,
        work: impl FnOnce(&mut Report, &mut Progress) -> Result<()>,
    ) -> Result<ExitCode> {
        let mut report = Report::new(self.dry_run).telling(!self.quiet);
        let is_shown = !self.quiet && stderr().is_terminal();
        let mut progress = Progress::new(is_shown, ends != Ends::Input);
        let done = work(&mut report, &mut progress);
        progress.end();
        report.end();
        if let Some(warning) = report.warning().filter(|_| !self.quiet) {
            eprintln!("fatpath: warning: {warning}");
        }
        match (done, self.json) {
            (done, true) => {
                report.note_error(done.err());
                let text = serde_json::to_string_pretty(&report)?;
                match ends {
                    Ends::Output => eprintln!("{text}"), // standard output has the file
                    _ => println!("{text}"),
                }
            }
            (Ok(()), false) => eprintln!("{}", report.summary()),
            (Err(error), false) => {
                if report.failed > 0 {
                    eprintln!("{}", report.summary());
                }
                return Err(error);
            }
        }
        Ok(match report.is_success() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// A thread that is late loses what does not fit.
fn warn_of_short_buffer(way: &Way) {
    if let Some(bound) = way.bound().filter(|bound| bound.is_short) {
        eprintln!(
            "fatpath: warning: the kernel gives UDP sockets {} bytes to receive into; above 1 Gb/s some datagrams may be lost. \
             As root: {BUFFER_REMEDY}",
            bound.buffer_bytes.1
        );
    }
}

/// The end that another fatpath started.
fn be_called() -> Result<ExitCode> {
    let (session, part) = Session::be_called(Control::of_stdio()?, None, |_| Ok(()))?;
    warn_of_short_buffer(session.way());
    let mut report = Report::new(false);
    let mut progress = Progress::new(false, true);
    match part {
        Part::Send(sends) => {
            let given = Given::Paths(&sends, Arc::new(Tree::Everywhere));
            send::run(session, &given, &mut report, &mut progress)?;
        }
        Part::Receive(receives) => receive::run(session, receives, &mut report, &mut progress)?,
    }
    // What failed of single entries is what the caller says.
    Ok(ExitCode::SUCCESS)
}
