// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow between two hosts of the lab, given a law by a rule, and what its window is; what iperf3 says of a transfer.

use super::{Daemon, Lab, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Child;
use std::thread;

pub const PORT: u16 = 7001;

/// A rule for the flows to one port, whose buffers limit nothing.
pub fn rule(port: u16, keys: &str) -> String {
    format!(
        "[[rule]]\nname = 'port-{port}'\ndestination_ports = [{port}]\n\
         send_buffer = '8MiB'\nreceive_buffer = '8MiB'\n{keys}\n"
    )
}

pub fn policy(rules: &[String]) -> String {
    let prelude =
        "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n".to_owned();
    prelude + &rules.concat()
}

/// One flow from `a` to `b`, with what was sent read at once.
pub struct Transfer<'d> {
    daemon: &'d Daemon,
    sender: TcpStream,
    receiver: TcpStream,
    reader: Option<thread::JoinHandle<()>>,
}

impl<'d> Transfer<'d> {
    pub fn open(lab: &Lab, daemon: &'d Daemon, port: u16) -> Transfer<'d> {
        Transfer::over(daemon, lab.connection(port))
    }

    /// Both ends of a connection of the lab.
    pub fn over(daemon: &'d Daemon, (sender, receiver): (TcpStream, TcpStream)) -> Transfer<'d> {
        let mut reading = receiver.try_clone().unwrap();
        let reader =
            thread::spawn(move || while matches!(reading.read(&mut [0; 65536]), Ok(1..)) {});
        Transfer {
            daemon,
            sender,
            receiver,
            reader: Some(reader),
        }
    }

    pub fn send(&self, bytes: usize) {
        (&self.sender).write_all(&vec![0; bytes]).unwrap();
    }

    /// Sends for as long as it lives.
    pub fn send_on(&self) {
        let mut sender = self.sender.try_clone().unwrap();
        thread::spawn(move || while sender.write(&[0; 65536]).is_ok() {});
    }

    /// As a program chooses it, whatever the rule says.
    pub fn take_law(&self, law: &str) {
        let sender = socket2::SockRef::from(&self.sender);
        sender.set_tcp_congestion(law.as_bytes()).unwrap();
    }

    pub fn flow(&self) -> Value {
        self.daemon.flow_of(&self.sender)
    }

    /// Once so many bytes are acknowledged, and no more are on their way.
    pub fn quiet(&self, bytes: usize) -> Value {
        until("everything to be acknowledged", || {
            let flow = self.flow();
            let acked = number(&flow, "bytes_acked") >= bytes as f64;
            (acked && number(&flow, "in_flight_pkts") == 0.0).then_some(flow)
        })
    }
}

/// Without waiting for what the send buffer holds: over these paths that takes many seconds.
impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let _ = self.receiver.shutdown(Shutdown::Both);
        let _ = self.sender.shutdown(Shutdown::Both);
        self.reader.take().map(thread::JoinHandle::join);
    }
}

pub fn number(flow: &Value, key: &str) -> f64 {
    flow[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no {key} in {flow:#}"))
}

pub fn cwnd(flow: &Value) -> f64 {
    number(flow, "cwnd_pkts")
}

/// Segments; none was found.
pub fn ssthresh(flow: &Value) -> Option<f64> {
    flow["ssthresh_pkts"].as_f64()
}

/// What the receiver of an iperf3 with `--json` had, once it has ended.
pub fn mbps_received(transfer: Child) -> f64 {
    let output = transfer.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bps = result["end"]["sum_received"]["bits_per_second"].as_f64();
    bps.unwrap_or_else(|| panic!("{result:#}")) / 1e6
}
