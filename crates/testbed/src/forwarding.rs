// SPDX-License-Identifier: MIT OR Apache-2.0
//! The supervisor while its lab is up: packets are forwarded, requests served, records written.
//!
//! It makes nothing of the lab and takes nothing down. Start with [`Forwarding::forward`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

use fatpath_emulator::{Control, ForwardError, ForwardOptions, Network, ObservationOptions, Stats};
use fatpath_experiment::results::files;
use fatpath_scenario::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};

use crate::control::{self, Links};
use crate::error::{SupervisorError, system};
use crate::lab_directory::LabDirectory;
use crate::records::Records;

/// Everything that forwarding needs in addition to the network.
pub(crate) struct Forwarding {
    directory: LabDirectory,
    control: Control,
    listener: UnixListener,
    links: Links,
    options: ForwardOptions,
    stats: Option<PathBuf>,
}

impl Forwarding {
    /// Opens the socket and the files.
    ///
    /// # Errors
    /// If one of them cannot be made.
    pub(crate) fn new(
        directory: &LabDirectory,
        plan: &Plan,
        records: Records,
    ) -> Result<Forwarding, SupervisorError> {
        let control = Control::new().map_err(system("making an eventfd"))?;
        let listener =
            control::listen(directory).map_err(system("listening in the lab's directory"))?;
        let observation = records.observation.map(|path| {
            let file = File::create(&path).map_err(system(path.display()))?;
            Ok::<_, SupervisorError>(ObservationOptions {
                file,
                per_flow: records.per_flow,
            })
        });
        Ok(Forwarding {
            directory: directory.clone(),
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
    pub(crate) fn forward(
        self,
        network: &Network,
        signals: &UnixStream,
    ) -> Result<(), SupervisorError> {
        let (ended, ends) = UnixStream::pair().map_err(system("making a socket pair"))?;
        let (options, control, mut links) = (self.options, self.control, self.links);
        thread::scope(|scope| {
            let forwarder = scope.spawn(|| {
                let _ends = ends;
                network.forward(options, &control)
            });
            let waited = {
                let _stops = StopsWhenDropped(&control);
                let until = [signals.as_fd(), ended.as_fd()];
                serve_until(&until, &self.directory, &self.listener, &mut links)
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

/// Serves requests until one of `until` is readable, or the owner is gone. The owner holds the other
/// end of standard input; a byte from there means that the lab stays when it goes.
fn serve_until(
    until: &[BorrowedFd],
    directory: &LabDirectory,
    listener: &UnixListener,
    links: &mut Links,
) -> io::Result<()> {
    let stdin = io::stdin();
    let mut owner = Some(stdin.as_fd());
    loop {
        let all = until.iter().copied().chain([listener.as_fd()]).chain(owner);
        let ready = wait(&all.collect::<Vec<_>>())?;
        let (ends, others) = ready.split_at(until.len());
        if ends.contains(&true) {
            return Ok(());
        }
        if let [_, true] = others {
            if rustix::io::read(&stdin, &mut [0; 1])? == 0 {
                return Ok(());
            }
            directory.disown()?;
            owner = None;
        }
        if others[0] {
            control::serve(listener, links);
        }
    }
}

/// Waits until some of them are readable, or a signal has come; which are.
fn wait(fds: &[BorrowedFd]) -> io::Result<Vec<bool>> {
    let waits = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN));
    let mut waits: Vec<PollFd> = waits.collect();
    match poll(&mut waits, None) {
        Err(rustix::io::Errno::INTR) => {}
        outcome => drop(outcome?),
    }
    Ok(waits
        .iter()
        .map(|wait| !wait.revents().is_empty())
        .collect())
}

/// Whoever looks for the file tells that it is missing; the lab goes down all the same.
fn tell(stats: &Stats, file: Option<PathBuf>) {
    let Some(file) = file else { return };
    let text = serde_json::to_vec(stats).expect("numbers and strings are JSON");
    if let Err(error) = files::write(&file, text) {
        eprintln!("fatpath: error: {error}");
    }
}
