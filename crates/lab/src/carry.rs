// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keeper while its lab is up: packets are carried, requests served, records written.
//!
//! It makes nothing of the lab and takes nothing down. Start with [`Carrier::carry`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

use fatpath_emulator::{Control, ForwardError, ForwardOptions, Network, ObservationOptions, Stats};
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use crate::control::{self, Links};
use crate::keeper::{KeepError, system};
use crate::plan::Plan;
use crate::results::files;
use crate::room::Room;

/// What is written of a lab while it is up; paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// What passes each link in each millisecond.
    pub observation: Option<PathBuf>,
    /// Each flow by itself too.
    pub per_flow: bool,
    /// What the emulator has counted, when it ends.
    pub stats: Option<PathBuf>,
}

/// Everything that carrying needs beside the network.
pub(crate) struct Carrier {
    control: Control,
    listener: UnixListener,
    links: Links,
    options: ForwardOptions,
    stats: Option<PathBuf>,
}

impl Carrier {
    /// Opens the socket and the files.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub(crate) fn new(room: &Room, plan: &Plan, records: Records) -> Result<Carrier, KeepError> {
        let control = Control::new().map_err(system("making an eventfd"))?;
        let listener = control::listen(room).map_err(system("listening in the lab's room"))?;
        let observation = records.observation.map(|path| {
            let file = File::create(&path).map_err(system(path.display()))?;
            Ok::<_, KeepError>(ObservationOptions {
                file,
                per_flow: records.per_flow,
            })
        });
        Ok(Carrier {
            links: Links::new(plan.links.clone(), control.clone()),
            control,
            listener,
            options: ForwardOptions {
                observation: observation.transpose()?,
            },
            stats: records.stats,
        })
    }

    /// Carries packets until a signal, the end of the owner, or the end of the forwarder itself.
    pub(crate) fn carry(
        self,
        network: &Network,
        signals: &UnixStream,
        owned: bool,
    ) -> Result<(), KeepError> {
        let (ended, ends) = UnixStream::pair().map_err(system("making a socket pair"))?;
        let (options, control, mut links) = (self.options, self.control, self.links);
        thread::scope(|scope| {
            let forwarder = scope.spawn(|| {
                let _ends = ends;
                network.forward(options, &control)
            });
            let stdin = io::stdin();
            let mut until = vec![signals.as_fd(), ended.as_fd()];
            if owned {
                // Nothing is ever written there: it becomes readable when the owner is gone.
                until.push(stdin.as_fd());
            }
            let waited = {
                let _stops = StopsWhenDropped(&control);
                serve_until(&until, &self.listener, &mut links)
            };
            let forwarded = forwarder.join();
            waited.map_err(system("waiting"))?;
            match forwarded {
                Ok(Ok(stats)) => {
                    tell(&stats, self.stats);
                    Ok(())
                }
                Ok(Err(error)) => {
                    if let ForwardError::Ended { stats, .. } = &error {
                        tell(stats, self.stats);
                    }
                    Err(system("forwarding packets")(io::Error::other(error)))
                }
                Err(panic) => {
                    let bug = format!("a bug: {}", words_of(&*panic));
                    Err(system("forwarding packets")(io::Error::other(bug)))
                }
            }
        })
    }
}

/// The scope waits for the forwarder, also while this thread panics: without it the lab would stay for
/// good.
struct StopsWhenDropped<'c>(&'c Control);

impl Drop for StopsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked")
}

/// Serves requests until one of `until` is readable.
fn serve_until(until: &[BorrowedFd], listener: &UnixListener, links: &mut Links) -> io::Result<()> {
    loop {
        let all = until.iter().copied().chain([listener.as_fd()]);
        let mut waits: Vec<PollFd> = all
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut waits, None) {
            Err(rustix::io::Errno::INTR) => continue,
            outcome => outcome?,
        };
        let (listens, ends) = waits.split_last().expect("the listener is among them");
        if ends.iter().any(|end| !end.revents().is_empty()) {
            return Ok(());
        }
        if !listens.revents().is_empty() {
            control::serve(listener, links);
        }
    }
}

/// Whoever looks for the file tells that it is missing; the lab goes down all the same.
fn tell(stats: &Stats, file: Option<PathBuf>) {
    let Some(file) = file else { return };
    let text = serde_json::to_vec(stats).expect("numbers and strings are JSON");
    if let Err(error) = files::write(&file, text) {
        eprintln!("{error}");
    }
}
