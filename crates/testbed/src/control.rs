// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of a lab that is up: what is asked of its supervisor, over a socket in the lab's directory.
//!
//! A request is a JSON line, and so is the reply; the folder of the socket is root's alone. Here are
//! the words of both, the asking ([`ask`]), and what the supervisor does with them ([`Links`]); the
//! forwarder makes the changes.

use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use fatpath_emulator::{Control, LinkChange};
use fatpath_link::ChainSpec;
use fatpath_scenario::{Link, TimedChange};
use serde::{Deserialize, Serialize};

use crate::lab_directory::LabDirectory;

/// How long the supervisor waits for a whole request, and for its reply to be taken. It does nothing else
/// meanwhile, so its end of the lab waits too.
const SERVE_LIMIT: Duration = Duration::from_secs(2);
/// How long whoever asks waits for the reply; others may be served first.
const ASK_LIMIT: Duration = Duration::from_secs(10);
/// Traces of rates are long, but not longer.
const MOST_BYTES: u64 = 64 << 20;

/// What the supervisor is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A link becomes another now; names and values are those of [`Link::changed`].
    Set {
        /// The link.
        link: String,
        /// What changes.
        settings: Vec<(String, String)>,
    },
    /// Links become others later; times count from now.
    Schedule(Vec<TimedChange>),
}

/// The links that were asked for, as they are now; or why nothing was changed.
pub type Reply = Result<Vec<Link>, String>;

/// Asks the supervisor of a lab, and waits for its reply.
///
/// # Errors
/// If it does not answer. That it refuses is no error, but a reply.
pub fn ask(directory: &LabDirectory, request: &Request) -> io::Result<Reply> {
    let stream = UnixStream::connect(socket(directory))?;
    let mut within = Within::of(&stream, ASK_LIMIT);
    write_line(&mut within, request)?;
    stream.shutdown(Shutdown::Write)?;
    Ok(serde_json::from_str(&read_line(within)?)?)
}

/// Where the supervisor listens.
fn socket(directory: &LabDirectory) -> std::path::PathBuf {
    directory.path("control").join("socket")
}

/// Listens for requests. The folder keeps everyone but root away from the socket.
///
/// # Errors
/// If the socket cannot be made.
pub(crate) fn listen(directory: &LabDirectory) -> io::Result<UnixListener> {
    DirBuilder::new()
        .mode(0o700)
        .create(directory.path("control"))?;
    UnixListener::bind(socket(directory))
}

/// Takes one request and replies. A client that has disconnected meanwhile is no error.
pub(crate) fn serve(listener: &UnixListener, links: &mut Links) {
    let served = listener.accept().and_then(|(stream, _)| {
        let line = read_line(Within::of(&stream, SERVE_LIMIT))?;
        let reply: Reply = match serde_json::from_str(&line) {
            Ok(request) => links.answer(request),
            Err(error) => Err(format!(
                "not a request that this version of fatpath understands: {error}"
            )),
        };
        write_line(&mut Within::of(&stream, SERVE_LIMIT), &reply)
    });
    if let Err(error) = served {
        eprintln!("fatpath: error: a request was not served: {error}");
    }
}

fn read_line(stream: Within) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line)?;
    Ok(line)
}

fn write_line(stream: &mut Within, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// A socket all of whose reads and writes together end in time; a timeout of its own is for each alone,
/// and a line may come byte by byte.
struct Within<'s> {
    stream: &'s UnixStream,
    limit: Duration,
    deadline: Instant,
}

impl Within<'_> {
    fn of(stream: &UnixStream, limit: Duration) -> Within<'_> {
        Within {
            stream,
            limit,
            deadline: Instant::now() + limit,
        }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(self.late()),
            false => Ok(Some(left)),
        }
    }

    fn late(&self) -> io::Error {
        let late = format!("nothing within {} s", self.limit.as_secs());
        io::Error::new(ErrorKind::TimedOut, late)
    }

    /// A socket's timeout has an error of its own.
    fn in_time(&self, done: io::Result<usize>) -> io::Result<usize> {
        done.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => self.late(),
            _ => error,
        })
    }
}

impl Read for Within<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        let read = self.stream.read(buffer);
        self.in_time(read)
    }
}

impl Write for Within<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        let written = self.stream.write(bytes);
        self.in_time(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The links of a lab as they are, as its supervisor knows them.
pub(crate) struct Links {
    links: Vec<Link>,
    /// Changes that the forwarder has been told of, each with its time.
    scheduled: Vec<(Instant, TimedChange)>,
    control: Control,
}

impl Links {
    pub(crate) fn new(links: Vec<Link>, control: Control) -> Links {
        Links {
            links,
            scheduled: vec![],
            control,
        }
    }

    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Set { link, settings } => self.set(&link, &settings),
            Request::Schedule(changes) => self.schedule(changes),
        }
    }

    /// A link, or all replicas of one: all of them at one moment, or none if one cannot be.
    fn set(&mut self, name: &str, settings: &[(String, String)]) -> Reply {
        self.catch_up(Instant::now());
        let changed: Result<Vec<Link>, String> = self
            .meant(name)?
            .iter()
            .map(|link| link.changed(settings))
            .collect();
        let changed = changed?;
        self.order(changed.iter().map(|link| LinkChange {
            link: link.name.clone(),
            directions: link.directions.clone(),
            after: Duration::ZERO,
        }))?;
        for link in &changed {
            self.note(&link.name, link.directions.clone());
        }
        Ok(changed)
    }

    /// All of the changes, or none if one of them cannot be.
    fn schedule(&mut self, changes: Vec<TimedChange>) -> Reply {
        let now = Instant::now();
        let due = |change: TimedChange| {
            self.meant(&change.link)?;
            let due = now.checked_add(change.at);
            Ok((
                due.ok_or("the time of a change is too far in the future")?,
                change,
            ))
        };
        let scheduled: Result<Vec<_>, String> = changes.into_iter().map(due).collect();
        let scheduled = scheduled?;
        self.order(scheduled.iter().map(|(_, change)| LinkChange {
            link: change.link.clone(),
            directions: change.directions.clone(),
            after: change.at,
        }))?;
        self.scheduled.extend(scheduled);
        self.scheduled.sort_by_key(|(due, _)| *due);
        Ok(self.links.clone())
    }

    fn order(&self, changes: impl Iterator<Item = LinkChange>) -> Result<(), String> {
        let ordered = self.control.change_all(changes.collect());
        ordered.map_err(|error| error.to_string())
    }

    /// Notes the changes that the forwarder has made by itself until `now`.
    fn catch_up(&mut self, now: Instant) {
        let due = self.scheduled.partition_point(|(due, _)| *due <= now);
        let changes: Vec<_> = self.scheduled.drain(..due).collect();
        for (_, change) in changes {
            self.note(&change.link, change.directions);
        }
    }

    fn note(&mut self, name: &str, directions: [ChainSpec; 2]) {
        let link = self.links.iter_mut().find(|link| link.name == name);
        if let Some(link) = link {
            link.directions = directions;
        }
    }

    /// The link of that name, or `NAME-1`, `NAME-2`, …
    fn meant(&self, name: &str) -> Result<Vec<&Link>, String> {
        let is_replica = |link: &&Link| {
            let number = link
                .name
                .strip_prefix(name)
                .and_then(|end| end.strip_prefix('-'));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let exact = self.links.iter().filter(|link| link.name == name);
        let exact: Vec<&Link> = exact.collect();
        let replicas: Vec<&Link> = self.links.iter().filter(is_replica).collect();
        match (exact.is_empty(), replicas.is_empty()) {
            (false, _) => Ok(exact),
            (true, false) => Ok(replicas),
            (true, true) => {
                let known: Vec<&str> = self.links.iter().map(|link| &*link.name).collect();
                let known = known.join(", ");
                Err(format!("no such link: {name}; the links are: {known}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_link::CellSpec;

    fn links() -> Links {
        named(&["wan"])
    }

    fn named(names: &[&str]) -> Links {
        let link = |name: &&str| Link {
            name: (*name).into(),
            between: ["a".into(), "b".into()],
            mtu_bytes: 1500,
            exact: false,
            emulated: true,
            directions: [ChainSpec::default(), ChainSpec::default()],
        };
        let links = names.iter().map(link).collect();
        Links::new(links, Control::new().unwrap())
    }

    fn change(at: Duration, link: &str, loss: f64) -> TimedChange {
        TimedChange {
            at,
            link: link.into(),
            directions: [0, 1].map(|_| ChainSpec::of([CellSpec::loss(loss)])),
        }
    }

    #[test]
    fn what_was_scheduled_is_known_when_it_is_due() {
        let mut links = links();
        let later = Duration::from_secs(3600);
        let changes = vec![
            change(later, "wan", 0.2),
            change(Duration::ZERO, "wan", 0.1),
        ];
        assert!(links.answer(Request::Schedule(changes)).is_ok());
        let loss_at = |links: &mut Links, now| {
            links.catch_up(now);
            links.meant("wan").unwrap()[0].directions[1].clone()
        };
        let now = Instant::now();
        assert_eq!(
            loss_at(&mut links, now),
            ChainSpec::of([CellSpec::loss(0.1)])
        );
        assert_eq!(
            loss_at(&mut links, now + later),
            ChainSpec::of([CellSpec::loss(0.2)])
        );
    }

    #[test]
    fn a_client_that_sends_byte_by_byte_does_not_hold_the_supervisor() {
        let path = std::env::temp_dir().join(format!("fatpath-control-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        let sends = std::thread::spawn(move || {
            let mut send = |_| {
                std::thread::sleep(Duration::from_millis(50));
                client.write_all(b" ")
            };
            (0..200).try_for_each(&mut send)
        });
        serve(&listener, &mut links());
        let sent = sends.join().unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(sent.is_err(), "it was heard to its end");
    }

    #[test]
    fn the_name_of_replicas_means_all_of_them() {
        let mut links = named(&["a-1", "a-2", "a-b", "ab-1", "c"]);
        let mut names = |name: &str| {
            let settings = vec![("delay".to_owned(), "5ms".to_owned())];
            let link = name.to_owned();
            let set = links.answer(Request::Set { link, settings })?;
            Ok::<_, String>(set.into_iter().map(|link| link.name).collect::<Vec<_>>())
        };
        assert_eq!(names("a").unwrap(), ["a-1", "a-2"]);
        assert_eq!(names("a-2").unwrap(), ["a-2"]);
        assert!(names("d").is_err());
        let set = &links.meant("a-1").unwrap()[0].directions[0];
        assert_eq!(set.cells, [CellSpec::delay(5_000_000)]);
    }

    #[test]
    fn an_unknown_link_is_refused_with_those_there_are() {
        let mut links = links();
        let changes = vec![
            change(Duration::ZERO, "wan", 0.1),
            change(Duration::ZERO, "lan", 0.1),
        ];
        let refused = links.answer(Request::Schedule(changes)).unwrap_err();
        assert_eq!(refused, "no such link: lan; the links are: wan");
        assert!(links.scheduled.is_empty());
        let never = vec![change(Duration::MAX, "wan", 0.1)];
        assert!(links.answer(Request::Schedule(never)).is_err());
        let second_out_of_range = [0.1, 1.5].map(|loss| change(Duration::ZERO, "wan", loss));
        let refused = links.answer(Request::Schedule(second_out_of_range.into()));
        assert!(refused.is_err() && links.scheduled.is_empty());
    }
}
