// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of the API, for the command line.

use anyhow::{Context, Result, anyhow, bail};
use fatpath_api::endpoint::{ApplyPolicy, Method, SAMPLES};
use fatpath_api::{Applied, ApplyQuery, Endpoint, FlowsQuery, NoQuery, SampleLine};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::Path;

/// Asks an endpoint that takes no query; `None` when no daemon answers.
///
/// # Errors
/// When the daemon refuses, or the socket may not be opened.
pub fn get<E: Endpoint<Query = NoQuery>>(socket: &Path) -> Result<Option<E::Answer>> {
    ask::<E>(socket, &NoQuery {})
}

/// Asks an endpoint; `None` when no daemon answers.
///
/// # Errors
/// When the daemon refuses, or the socket may not be opened.
pub fn ask<E: Endpoint>(socket: &Path, query: &E::Query) -> Result<Option<E::Answer>> {
    request::<E>(socket, query, Vec::new())
}

/// Makes the policy in `text` live, whose problems are named after `file`; `None` when no daemon answers.
///
/// # Errors
/// The file's problems, or what the daemon could not do.
pub fn apply(socket: &Path, file: &str, text: Vec<u8>) -> Result<Option<Applied>> {
    let query = ApplyQuery {
        file: file.to_owned(),
    };
    request::<ApplyPolicy>(socket, &query, text)
}

/// Gives `take` the lines of `GET /v1/instruments/samples` as they come, until the daemon ends or `stop`
/// is done. `None` when no daemon answers.
///
/// # Errors
/// When the daemon refuses, or what it says cannot be read.
pub async fn follow_samples(
    socket: &Path,
    flows: &FlowsQuery,
    stop: impl Future<Output = ()>,
    take: impl FnMut(SampleLine),
) -> Result<Option<Followed>> {
    let Some(response) = send(socket, Method::Get, &address(SAMPLES, flows)?, Vec::new()).await?
    else {
        return Ok(None);
    };
    let status = response.status();
    if !status.is_success() {
        let bytes = response.into_body().collect().await?.to_bytes();
        return Err(refusal(status, &bytes));
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

fn request<E: Endpoint>(
    socket: &Path,
    query: &E::Query,
    body: Vec<u8>,
) -> Result<Option<E::Answer>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let address = address(E::PATH, query)?;
        let Some(response) = send(socket, E::METHOD, &address, body).await? else {
            return Ok(None);
        };
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        read_answer(status, &bytes).map(Some)
    })
}

fn address(path: &str, query: &impl Serialize) -> Result<String> {
    let query = serde_urlencoded::to_string(query)?;
    Ok(match query.as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    })
}

/// `None` when no daemon answers.
async fn send(
    socket: &Path,
    method: Method,
    address: &str,
    body: Vec<u8>,
) -> Result<Option<Response<Incoming>>> {
    let stream = match tokio::net::UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            bail!(
                "{}: only root and members of the group fatpath may use the daemon's API",
                socket.display()
            )
        }
        Err(e) => return Err(e).context(socket.display().to_string()),
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(match method {
            Method::Get => hyper::Method::GET,
            Method::Post => hyper::Method::POST,
        })
        .uri(address)
        .header("host", "fatpath")
        .body(Full::new(Bytes::from(body)))?;
    Ok(Some(sender.send_request(request).await?))
}

fn read_answer<T: DeserializeOwned>(status: StatusCode, bytes: &[u8]) -> Result<T> {
    match status.is_success() {
        true => serde_json::from_slice(bytes).context("the daemon's answer"),
        false => Err(refusal(status, bytes)),
    }
}

fn refusal(status: StatusCode, bytes: &[u8]) -> anyhow::Error {
    match serde_json::from_slice::<fatpath_api::Error>(bytes) {
        Ok(refused) => anyhow!(refused.error),
        Err(_) => anyhow!("the daemon answered {status}"),
    }
}
