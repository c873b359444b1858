// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of the API, for the command line.

pub use crate::instruments::samples::SampleLine;
use crate::{Applied, UnloadReport};
use anyhow::{Context, Result, bail};
use fatpath_kernel::{Gated, RudeMark};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;

/// `GET /v1/...` as JSON; `None` when no daemon answers.
///
/// # Errors
/// When the daemon refuses, or the socket may not be opened.
pub fn get(socket: &Path, path: &str) -> Result<Option<Value>> {
    request(socket, Method::GET, path, Vec::new())
}

/// Gives `take` the lines of `GET /v1/instruments/samples...` as they come, until the daemon ends or `stop`
/// is done. `None` when no daemon answers.
///
/// # Errors
/// When the daemon refuses, or what it says cannot be read.
pub async fn follow_samples(
    socket: &Path,
    path: &str,
    stop: impl Future<Output = ()>,
    take: impl FnMut(SampleLine),
) -> Result<Option<Followed>> {
    let Some(response) = send(socket, Method::GET, path, Vec::new()).await? else {
        return Ok(None);
    };
    let status = response.status();
    if !status.is_success() {
        let bytes = response.into_body().collect().await?.to_bytes();
        return read_answer::<Value>(status, &bytes).map(|_| None);
    }
    tokio::select! {
        read = read_lines(response.into_body(), take) => read.map(|()| Some(Followed::DaemonEnded)),
        () = stop => Ok(Some(Followed::Stopped)),
    }
}

/// Why there are no more samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The daemon is gone.
    DaemonEnded,
    /// The caller wanted no more.
    Stopped,
}

async fn read_lines(mut body: Incoming, mut take: impl FnMut(SampleLine)) -> Result<()> {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        // A daemon that was killed ends in the middle of a line.
        let Ok(frame) = frame else { return Ok(()) };
        rest.extend(frame.into_data().unwrap_or_default());
        let whole = rest.iter().rposition(|byte| *byte == b'\n');
        let lines: Vec<u8> = rest.drain(..whole.map_or(0, |end| end + 1)).collect();
        for line in serde_json::Deserializer::from_slice(&lines).into_iter() {
            take(line.context("the daemon's answer")?);
        }
    }
    Ok(())
}

/// Makes the policy in `text` live; `None` when no daemon answers.
///
/// # Errors
/// The file's problems, or what the daemon could not do.
pub fn apply(socket: &Path, file: &str, text: Vec<u8>) -> Result<Option<Applied>> {
    let query = quoted(file);
    request(
        socket,
        Method::POST,
        &format!("/v1/policy/apply?file={query}"),
        text,
    )
}

/// Opens the gate of Rude TCP; `None` when no daemon answers.
///
/// # Errors
/// What the daemon could not do.
pub fn open_rude_gate(socket: &Path, mark: RudeMark, netns: &[String]) -> Result<Option<Gated>> {
    let (mark, netns) = (quoted(&mark.to_string()), quoted(&netns.join(",")));
    let path = format!("/v1/rude/on?mark={mark}&netns={netns}");
    request(socket, Method::POST, &path, Vec::new())
}

/// Shuts it; `None` when no daemon answers.
///
/// # Errors
/// What the daemon could not do.
pub fn shut_rude_gate(socket: &Path) -> Result<Option<Gated>> {
    request(socket, Method::POST, "/v1/rude/off", Vec::new())
}

/// Has the daemon unload everything and end; `None` when no daemon answers.
///
/// # Errors
/// What the daemon could not do.
pub fn unload(socket: &Path) -> Result<Option<UnloadReport>> {
    request(socket, Method::POST, "/v1/unload", Vec::new())
}

/// A text within a query.
pub fn quoted(text: &str) -> String {
    text.bytes().map(percent_encoded).collect()
}

fn percent_encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    }
}

fn request<T: DeserializeOwned>(
    socket: &Path,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Option<T>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let Some(response) = send(socket, method, path, body).await? else {
            return Ok(None);
        };
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        read_answer(status, &bytes).map(Some)
    })
}

/// `None` when no daemon answers.
async fn send(
    socket: &Path,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Option<Response<Incoming>>> {
    let stream = match tokio::net::UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            bail!(
                "{}: only root and the group fatpath may ask the daemon",
                socket.display()
            )
        }
        Err(e) => return Err(e).context(socket.display().to_string()),
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "fatpath")
        .body(Full::new(Bytes::from(body)))?;
    Ok(Some(sender.send_request(request).await?))
}

fn read_answer<T: DeserializeOwned>(status: StatusCode, bytes: &[u8]) -> Result<T> {
    if status.is_success() {
        return serde_json::from_slice(bytes).context("the daemon's answer");
    }
    let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    match answer["error"].as_str() {
        Some(error) => bail!("{error}"),
        None => bail!("the daemon answered {status}"),
    }
}
