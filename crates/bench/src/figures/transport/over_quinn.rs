// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport beside QUIC as quinn has it, in turn: memory to memory over loopback, one stream, datagrams of the same size,
//! windows and socket buffers that are no limit, a thread for each end.

use super::{HERE, moved, spec};
use crate::alone::Alone;
use crate::figure::{Better, Figure, Summary};
use crate::run::Run;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

const RUNS: u8 = 3;
const BYTES: u64 = 3_000_000_000;
static CHUNK: [u8; 1 << 20] = [0; 1 << 20];
/// As the transport's own window, and what its driver asks the kernel for.
const WINDOW_BYTES: u32 = 64 << 20;
const BUFFER_BYTES: usize = 8 << 20;
const NAME: &str = "fatpath";

pub const FIGURE: Figure = Figure {
    name: "transport.over_quinn",
    what: "memory to memory over loopback, encrypted, one flow, datagrams of 1452 bytes: its rate over that of quinn, one stream",
    unit: "ratio",
    better: Better::Higher,
    goal: Some(2.0),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let _alone = Alone::wait(run)?;
    let quic = Quic::new()?;
    let one = |n| {
        run.check()?;
        let (ours, quinn) = (gbps(|| moved(n, BYTES))?, gbps(|| quic.moved())?);
        let ratio = ours / quinn;
        run.say(format!(
            "  run {n} of {RUNS}: {ratio:.2}, {ours:.2} over {quinn:.2} Gb/s"
        ));
        Ok(ratio)
    };
    (1..=RUNS).map(one).collect()
}

fn gbps(moved: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    moved()?;
    Ok(BYTES as f64 * 8e-9 / begun.elapsed().as_secs_f64())
}

/// What both ends of a connection of quinn are set to.
struct Quic {
    server: ServerConfig,
    client: ClientConfig,
}

impl Quic {
    fn new() -> Result<Quic> {
        let folder = tempfile::tempdir()?;
        let [key, certificate] = ["key", "certificate"].map(|name| folder.path().join(name));
        make_certificate(&key, &certificate)?;
        let certificate = CertificateDer::from_pem_file(certificate)?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let key = PrivateKeyDer::from_pem_file(key)?;
        let mut server = ServerConfig::with_single_cert(vec![certificate], key)?;
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
        let transport = Arc::new(transport(spec()?.datagram_bytes));
        server.transport_config(transport.clone());
        client.transport_config(transport);
        Ok(Quic { server, client })
    }

    fn moved(&self) -> Result<()> {
        let (here, there) = (socket()?, socket()?);
        let (address, server) = (there.local_addr()?, self.server.clone());
        let receiving = thread::spawn(move || runtime()?.block_on(receive(there, server)));
        runtime()?.block_on(send(here, address, self.client.clone()))?;
        let arrived = receiving.join().ok().context("the receiver's thread")??;
        ensure!(arrived == BYTES, "{arrived} bytes of {BYTES} arrived");
        Ok(())
    }
}

fn transport(datagram_bytes: u16) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(datagram_bytes)
        .mtu_discovery_config(None)
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into());
    transport
}

/// Of a host that is named in it; it is no authority, which rustls would not take for a server.
fn make_certificate(key: &Path, certificate: &Path) -> Result<()> {
    let alternative = format!("subjectAltName=DNS:{NAME}");
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2"]);
    command.args(["-subj", "/CN=fatpath", "-addext", &alternative]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(key).arg("-out").arg(certificate);
    let output = command
        .output()
        .context("openssl: apt-get install openssl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "openssl req: {said}");
    Ok(())
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind((HERE, 0))?;
    set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)?;
    set_socket_send_buffer_size(&socket, BUFFER_BYTES)?;
    Ok(socket)
}

fn endpoint(socket: UdpSocket, server: Option<ServerConfig>) -> Result<Endpoint> {
    let config = EndpointConfig::default();
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(config, server, socket, runtime)?)
}

/// Until the receiver says that it has all.
async fn send(socket: UdpSocket, to: SocketAddr, config: ClientConfig) -> Result<()> {
    let endpoint = endpoint(socket, None)?;
    let connection = endpoint.connect_with(config, to, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    let mut left_bytes = BYTES;
    while left_bytes > 0 {
        let bytes = left_bytes.min(CHUNK.len() as u64);
        let chunk = Bytes::from_static(&CHUNK[..bytes as usize]);
        stream.write_chunk(chunk).await?;
        left_bytes -= bytes;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

/// In whatever order it comes, as the transport gives it. Bytes.
async fn receive(socket: UdpSocket, config: ServerConfig) -> Result<u64> {
    let endpoint = endpoint(socket, Some(config))?;
    let incoming = endpoint.accept().await.context("the endpoint ended")?;
    let connection = incoming.await?;
    let mut stream = connection.accept_uni().await?;
    let mut arrived = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, false).await? {
        arrived += chunk.bytes.len() as u64;
    }
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(arrived)
}
