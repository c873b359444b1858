// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers of rules while the host's TCP memory is short: slow readers fill it, and other flows go on.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use support::lent::Lent;
use support::{alone, setting, until};

const POLICY: &str = "[host.sysctl]\n'net.core.wmem_max' = 'auto'\n\
                      [[rule]]\nname = 'large'\ndestination = ['127.0.9.0/24']\nsend_buffer = 8000000\n";

const TCP_MEM: &str = "/proc/sys/net/ipv4/tcp_mem";

/// More memory than now before pressure begins, in pages.
const SPARE_PAGES: u64 = 2_048;
const READERS: usize = 1_000;

/// The host's limits of TCP memory, put back when it is dropped.
struct TcpMem {
    before: String,
    pressure_pages: u64,
}

impl TcpMem {
    fn lower() -> TcpMem {
        let before = std::fs::read_to_string(TCP_MEM).unwrap();
        let most = before.split_whitespace().last().unwrap();
        let pressure_pages = used_pages() + SPARE_PAGES;
        let lower = format!("{} {pressure_pages} {most}", pressure_pages / 2);
        std::fs::write(TCP_MEM, lower).unwrap();
        TcpMem {
            before,
            pressure_pages,
        }
    }
}

impl Drop for TcpMem {
    fn drop(&mut self) {
        let restored = std::fs::write(TCP_MEM, &self.before);
        if let Err(error) = restored {
            eprintln!("{TCP_MEM} was {}: {error}", self.before);
        }
    }
}

/// What all TCP sockets hold.
fn used_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").unwrap();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// A program that never reads, and another that sends as much as the kernel takes.
fn slow_reader() -> (TcpStream, TcpStream) {
    let ends = connection("127.0.0.1");
    ends.0.set_nonblocking(true).unwrap();
    loop {
        match (&ends.0).write(&[0; 65_536]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return ends,
            Err(error) => panic!("{error}"),
        }
    }
}

fn fill(tcp_mem: &TcpMem) -> Vec<(TcpStream, TcpStream)> {
    let mut readers = Vec::new();
    while used_pages() < tcp_mem.pressure_pages + tcp_mem.pressure_pages / 4 {
        assert!(readers.len() < READERS, "{} pages", used_pages());
        readers.push(slow_reader());
    }
    readers
}

fn withheld(daemon: &Lent) -> u64 {
    let status = daemon.json(&["status"]);
    let count = &status["kernel"]["counts"]["buffers_withheld"];
    count.as_u64().unwrap()
}

fn send_buffer(flow: &Value) -> &Value {
    let settings = flow["settings"].as_array().unwrap();
    let is_it = |setting: &&Value| setting["setting"] == "send_buffer_bytes";
    settings.iter().find(is_it).unwrap()
}

/// Data goes from one end to the other.
fn transfer((sender, receiver): &(TcpStream, TcpStream), bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = sender;
            sender.write_all(&vec![7; bytes]).unwrap();
        });
        let mut receiver = receiver;
        receiver.read_exact(&mut vec![0; bytes]).unwrap();
    });
}

#[test]
fn where_tcp_memory_is_short_a_flow_keeps_the_kernels_buffer_and_goes_on() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(POLICY);
    let before = withheld(&daemon);
    let tcp_mem = TcpMem::lower();
    let readers = fill(&tcp_mem);
    let flow = connection("127.0.9.1");
    let listed = daemon.flow_of(&flow.0);
    assert_eq!(send_buffer(&listed)["outcome"], "withheld", "{listed:#}");
    assert!(withheld(&daemon) > before);
    transfer(&flow, 1_000_000);
    let peer = flow.0.peer_addr().unwrap().to_string();
    until("why to say so", || {
        transfer(&flow, 10_000);
        let said = daemon.ask(&["why", &peer]).stdout;
        let said = String::from_utf8(said).unwrap();
        said.contains("FP-TCP-MEMORY").then_some(())
    });
    drop(readers);
    until("the memory to be free", || {
        (used_pages() < tcp_mem.pressure_pages).then_some(())
    });
    let later = connection("127.0.9.1");
    let listed = daemon.flow_of(&later.0);
    let wanted = (json!(8_000_000), json!(8_000_000));
    assert_eq!(setting(&listed, "send_buffer_bytes"), wanted);
}
