// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where what the program says of itself goes: to systemd's journal with its priority when standard error
//! leads there, else to standard error as it is. Where syslog reads the journal, it has it from there. Warnings and errors
//! go to the daemon's archive, too.

use fatpath_daemon::archive_said;
use std::fmt::{Debug, Write};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// What systemd sets to the device and inode of standard error (systemd.exec(5)).
const JOURNAL_STREAM: &str = "JOURNAL_STREAM";

/// Where lines go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Journal,
    Stderr,
}

/// Opens the log.
pub fn open() -> Log {
    if stderr_is_the_journal()
        && let Ok(journal) = tracing_journald::layer()
    {
        let journal = journal.with_syslog_identifier("fatpath".to_owned());
        let lines = tracing_subscriber::registry().with(LevelFilter::INFO);
        lines.with(journal).with(ToArchive).init();
        return Log::Journal;
    }
    // The journal dates lines itself, and a terminal needs no dates.
    let stderr = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(std::io::stderr);
    let lines = tracing_subscriber::registry().with(LevelFilter::INFO);
    lines.with(stderr).with(ToArchive).init();
    Log::Stderr
}

/// Archives warnings and errors.
struct ToArchive;

impl<S: Subscriber> Layer<S> for ToArchive {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => return,
        };
        let mut message = Message::default();
        event.record(&mut message);
        archive_said(level, &message.0);
    }
}

/// What is said, without other fields.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Nothing fails that writes to a string.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

fn stderr_is_the_journal() -> bool {
    let Ok(stream) = std::env::var(JOURNAL_STREAM) else {
        return false;
    };
    let stderr = std::io::stderr().as_fd().try_clone_to_owned();
    let stderr = stderr.and_then(|fd| std::fs::File::from(fd).metadata());
    stderr.is_ok_and(|stderr| is_it(&stream, &stderr))
}

/// A program may have given its child another standard error: only the numbers tell.
fn is_it(stream: &str, stderr: &Metadata) -> bool {
    stream == format!("{}:{}", stderr.dev(), stderr.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stream_that_systemd_named_is_the_journal() {
        let (ours, other) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let (ours, other) = (ours.metadata().unwrap(), other.metadata().unwrap());
        let stream = format!("{}:{}", ours.dev(), ours.ino());
        assert!(is_it(&stream, &ours));
        assert!(!is_it(&stream, &other));
        assert!(!is_it("", &ours));
    }
}
