// SPDX-License-Identifier: MIT OR Apache-2.0
//! `GET /v1/instruments/flows/{cookie}/capture?seconds=10`: captures a flow, headers only, and answers with its plots, one
//! HTML file.
//!
//! Two runs of this program do it, `fatpath capture` and `fatpath analyse`: what they hold is theirs, and what they need
//! beside the daemon's rights (CAP_NET_RAW) is asked for by the first. One capture at a time, of bounded time and length;
//! nothing stays on disk.

use crate::answer::Failure;
use crate::instruments::Instruments;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use fatpath_api::endpoint::CAPTURE_WARNING;
use fatpath_api::{CaptureQuery, Flow};
use fatpath_launch::End;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Who waits in front of a page has gone by then.
const MOST_SECONDS: u64 = 60;

/// MiB: headers of some 150,000 packets, whose plots are a few MB.
const MOST_MIB: u64 = 16;

/// A capture ends, and its plots are drawn, within this long beside what was asked for.
const GRACE: Duration = Duration::from_secs(60);

/// The folder of the capture that runs, and whether one does.
#[derive(Clone)]
pub(crate) struct Captures {
    folder: PathBuf,
    place: Arc<Semaphore>,
}

impl Captures {
    /// `run_dir` is the daemon's own. Takes away what a daemon that was killed has left.
    pub(crate) fn new(run_dir: &FilePath) -> Captures {
        let folder = run_dir.join("capture");
        let _ = fs::remove_dir_all(&folder);
        Captures {
            folder,
            place: Arc::new(Semaphore::new(1)),
        }
    }

    fn begin(&self) -> Result<Scratch, Failure> {
        let place = Arc::clone(&self.place).try_acquire_owned();
        let busy = || {
            let error = "another flow is captured at this moment".to_owned();
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, error)
        };
        let place = place.map_err(|_| busy())?;
        Scratch::make(self.folder.clone(), place).map_err(|e| anyhow::Error::from(e).into())
    }
}

/// Who was with whom is nobody else's business, and goes when the answer is there.
struct Scratch {
    folder: PathBuf,
    _place: OwnedSemaphorePermit,
}

impl Scratch {
    fn make(folder: PathBuf, place: OwnedSemaphorePermit) -> io::Result<Scratch> {
        // Of a daemon that was killed.
        let _ = fs::remove_dir_all(&folder);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let _place = place;
        Ok(Scratch { folder, _place })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// See the module.
pub(crate) async fn capture(
    State(instruments): State<Arc<Instruments>>,
    State(captures): State<Captures>,
    State(shutdown): State<CancellationToken>,
    method: Method,
    Path(cookie): Path<u64>,
    Query(asked): Query<CaptureQuery>,
) -> Result<Response, Failure> {
    // A router answers HEAD as GET: it would capture for nobody.
    if method != Method::GET {
        let error = format!("{method} is not answered here: GET captures");
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, error));
    }
    if !(1..=MOST_SECONDS).contains(&asked.seconds) {
        let error = format!("seconds={}: 1 to {MOST_SECONDS}", asked.seconds);
        return Err(Failure::new(StatusCode::BAD_REQUEST, error));
    }
    let detail = instruments.detail(cookie);
    let unknown = || Failure::new(StatusCode::NOT_FOUND, format!("no flow {cookie}"));
    let flow = detail.ok_or_else(unknown)?.view.flow;
    let scratch = captures.begin()?;
    // Who asked may go: then the capture is ended with this.
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let goes_on = move || !shutdown.is_cancelled() && !gone.is_cancelled();
    let done = tokio::task::spawn_blocking(move || plots(&flow, asked.seconds, &scratch, goes_on));
    let plots = done.await.map_err(anyhow::Error::from)??;
    let name = format!("attachment; filename=\"fatpath-flow-{cookie}.html\"");
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, name),
    ];
    let mut answer = (headers, plots.page).into_response();
    if let Some(warning) = warning_header(&plots.warnings) {
        answer.headers_mut().insert(CAPTURE_WARNING, warning);
    }
    Ok(answer)
}

/// What a capture gave.
struct Plots {
    page: Vec<u8>,
    /// What is missing in it.
    warnings: Vec<String>,
}

fn plots(
    flow: &Flow,
    seconds: u64,
    scratch: &Scratch,
    goes_on: impl Fn() -> bool,
) -> Result<Plots, Failure> {
    let (file, page) = (scratch.file("flow.pcapng"), scratch.file("flow.html"));
    let [seconds_text, size] = [seconds, MOST_MIB].map(|number| number.to_string());
    let ends = [flow.local, flow.remote].map(|end| end.to_string());
    let capture = [
        "capture",
        &ends[0],
        &ends[1],
        "--seconds",
        &seconds_text,
        "--size",
        &size,
        "--out",
        &file,
        "--no-summary",
    ];
    let mut said = run(&capture, Duration::from_secs(seconds) + GRACE, &goes_on)?;
    said += &run(
        &["analyse", &file, "--flow", "1", "--html", &page],
        GRACE,
        &goes_on,
    )?;
    Ok(Plots {
        page: fs::read(page).map_err(anyhow::Error::from)?,
        warnings: warnings(&said),
    })
}

/// Of all that a run of this program said, without its prefix.
fn warnings(said: &str) -> Vec<String> {
    let warnings = said
        .lines()
        .filter_map(|line| line.strip_prefix("fatpath: warning: "));
    warnings.map(str::to_owned).collect()
}

/// `None` where there is no warning.
fn warning_header(warnings: &[String]) -> Option<HeaderValue> {
    let text = warnings.join("; ");
    let header = HeaderValue::from_str(&text).ok();
    header.filter(|header| !header.is_empty())
}

/// Runs this program, and gives what it said on standard error.
fn run(
    arguments: &[&str],
    timeout: Duration,
    goes_on: impl Fn() -> bool,
) -> Result<String, Failure> {
    // Also where its file was replaced by an upgrade. Not /proc/self, which would be who starts it.
    let mut command = vec![format!("/proc/{}/exe", std::process::id())];
    command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    let ended = fatpath_launch::run(&command, timeout, goes_on).map_err(anyhow::Error::from)?;
    let error = match ended.end {
        End::Exited(status) if status.success() => return Ok(ended.errors),
        End::Exited(_) => ended.errors.trim().to_owned(),
        End::TimedOut => "the capture took too long, and was ended".to_owned(),
        End::Cancelled => "the capture was ended before it was done".to_owned(),
    };
    Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_capture_at_a_time_and_nothing_of_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        let captures = Captures::new(dir.path());
        let first = captures.begin().ok().unwrap();
        let file = first.file("flow.pcapng");
        fs::write(&file, "headers").unwrap();
        let refused = captures.begin().err().unwrap().into_response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(!dir.path().join("capture").exists());
        // What a daemon that was killed has left is taken away by the next one.
        fs::create_dir(dir.path().join("capture")).unwrap();
        fs::write(&file, "old").unwrap();
        drop(Captures::new(dir.path()));
        assert!(!FilePath::new(&file).exists());
    }

    #[test]
    fn the_warnings_of_a_run_are_one_header() {
        let said = "flow.pcapng: 3 packets, headers only\nfatpath: warning: 2 packets were lost\n\
                    fatpath: warning: flow 1: cut\nwrote flow.html\n";
        let header = warning_header(&warnings(said)).unwrap();
        assert_eq!(header, "2 packets were lost; flow 1: cut");
        assert_eq!(warning_header(&warnings("wrote flow.html\n")), None);
    }

    #[test]
    fn only_the_daemon_sees_the_file_and_a_link_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("flow.pcapng"), "kept").unwrap();
        let folder = dir.path().join("capture");
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        let scratch = Captures::new(dir.path()).begin().ok().unwrap();
        let held = fs::symlink_metadata(&folder).unwrap();
        assert!(held.is_dir());
        assert_eq!(held.permissions().mode() & 0o777, 0o700);
        drop(scratch);
        let kept = fs::read_to_string(elsewhere.join("flow.pcapng")).unwrap();
        assert_eq!(kept, "kept");
    }
}
