// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the emulator itself is: one TCP flow over a link that does nothing.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use fatpath_link::ChainSpec;

use crate::{
    Control, End, ForwardError, ForwardOptions, HostSpec, LinkSpec, Namespace, NamespaceError,
    Network, Stats, Topology, UpError,
};

/// Why the speed could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum UnshapedError {
    /// The two hosts did not come up.
    #[error(transparent)]
    Up(#[from] UpError),
    /// The forwarder ended early.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// iperf3 could not be run.
    #[error("running iperf3 (apt-get install iperf3): {0}")]
    Run(#[from] io::Error),
    /// iperf3 ran without a result.
    #[error("iperf3 gave no result: {0}")]
    NoResult(String),
}

/// Brings a network made from [`two_hosts`] up, runs `iperf3` with one TCP flow for `seconds` and
/// returns what the receiver got, in Gb/s, with what the forwarder says.
pub fn tcp_gbps(topology: &Topology, seconds: u32) -> Result<(f64, Stats), UnshapedError> {
    let network = Network::up(topology)?;
    let measure = |_: &Control| iperf3(&network, &["-t", &seconds.to_string()]);
    let (result, stats) = network.forward_while(ForwardOptions::default(), measure)?;
    Ok((received_bps(&result?)? / 1e9, stats))
}

/// Two hosts, `client` 10.99.0.1 and `server` 10.99.0.2 (also fd00:99::1 and ::2), and a link
/// `wan` that treats both directions alike. `run_name` makes the names of the namespaces unique.
pub fn two_hosts(run_name: &str, direction: &ChainSpec) -> Topology {
    let host = |name: &str| HostSpec {
        name: name.into(),
        netns: format!("{run_name}-{name}"),
        routes: vec![],
        forwarding: false,
    };
    let end = |name: &str, number: u8| End {
        host: name.into(),
        ipv4: ipnet::Ipv4Net::new([10, 99, 0, number].into(), 24).ok(),
        ipv6: ipnet::Ipv6Net::new([0xfd00, 0x99, 0, 0, 0, 0, 0, number.into()].into(), 64).ok(),
    };
    Topology {
        wires: vec![],
        hosts: vec![host("client"), host("server")],
        links: vec![LinkSpec {
            name: "wan".into(),
            ends: [end("client", 1), end("server", 2)],
            mtu: 1500,
            exact: false,
            directions: [direction.clone(), direction.clone()],
        }],
    }
}

/// Runs `iperf3` from `client` to `server`, IPv4, with `arguments` in addition to the address. The hosts are
/// those of [`two_hosts`], and forwarded meanwhile. Returns its JSON.
pub fn iperf3(network: &Network, arguments: &[&str]) -> Result<serde_json::Value, UnshapedError> {
    let host = |name| network.host(name).expect("`two_hosts` names it");
    iperf3_between(host("client"), host("server"), "10.99.0.2", arguments)
}

/// Runs `iperf3` from one namespace to another one, which has this address. Returns its JSON.
pub fn iperf3_between(
    client: &Namespace,
    server: &Namespace,
    address: &str,
    arguments: &[&str],
) -> Result<serde_json::Value, UnshapedError> {
    let _server = Server::start(server)?;
    let mut command = client.command("iperf3");
    let run = command
        .args(["-c", address, "-J"])
        .args(arguments)
        .output()?;
    let result: serde_json::Value = serde_json::from_slice(&run.stdout)
        .map_err(|error| UnshapedError::NoResult(error.to_string()))?;
    match result["error"].as_str() {
        None => Ok(result),
        Some(error) => Err(UnshapedError::NoResult(error.into())),
    }
}

/// What the receiver of such a run got, in bits of payload per second.
pub fn received_bps(result: &serde_json::Value) -> Result<f64, UnshapedError> {
    let received = &result["end"]["sum_received"];
    received["bits_per_second"]
        .as_f64()
        .ok_or_else(|| UnshapedError::NoResult(received.to_string()))
}

/// An iperf3 server for one test, ended with this value.
struct Server {
    process: Child,
    /// Kept open, so that what the server prints later finds a reader.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it and waits until it listens.
    fn start(host: &Namespace) -> Result<Server, UnshapedError> {
        let mut command = host.command("iperf3");
        command
            .args(["-s", "-1", "--forceflush"])
            .stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let mut output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let listening = output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .any(is_listening);
        let server = Server {
            process,
            _output: output,
        };
        match listening {
            true => Ok(server),
            false => Err(UnshapedError::NoResult(
                "the server ended before it listened".into(),
            )),
        }
    }
}

fn is_listening(line: String) -> bool {
    line.contains("listening")
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
