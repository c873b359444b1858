// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fatpath top` on a terminal: what a person sees of live flows, and what keys do.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

mod support;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use support::{Daemon, alone, until};

const ROWS: u16 = 30;
const COLUMNS: u16 = 160;

/// A program on a terminal of its own, and what the terminal shows.
struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    fn run(program: &Command) -> Terminal {
        Terminal::of_columns(program, COLUMNS)
    }

    fn of_columns(program: &Command, columns: u16) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: ROWS,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let end = || File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        // Its controlling terminal, or crossterm would ask the size of the one that the tests run on.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(program.get_program())
            .args(program.get_args())
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, columns, 0)));
        let keys = File::from(master);
        let (mut shown, parser) = (keys.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO when the program has ended.
            while let Ok(read @ 1..) = shown.read(&mut bytes) {
                parser.lock().unwrap().process(&bytes[..read]);
            }
        });
        Terminal {
            child,
            keys,
            screen,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen is as wanted.
    fn shows(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        until(&format!("the screen to show {what}"), || {
            is_so(&self.text()).then_some(())
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen:\n{}", self.text());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn flows_are_listed_filtered_and_chosen_and_the_terminal_is_left_as_it_was() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::start("[instruments]\ninterval = '20ms'\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut senders: Vec<TcpStream> = (0..3)
        .map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap())
        .collect();
    let mut receivers: Vec<TcpStream> = senders
        .iter()
        .map(|_| listener.accept().unwrap().0)
        .collect();
    for (sender, receiver) in senders.iter_mut().zip(&mut receivers) {
        sender.write_all(b"to be sampled").unwrap();
        receiver.read_exact(&mut [0; 13]).unwrap();
    }
    let ends: Vec<String> = senders
        .iter()
        .map(|sender| sender.local_addr().unwrap().to_string())
        .collect();

    let mut top = Terminal::run(&daemon.command(&["top", "--interval", "0.2"]));
    top.shows("every flow", |text| {
        ends.iter().all(|end| text.contains(end))
    });
    top.press(&format!("/{}", ends[1]));
    top.shows("both ends of the flow of the filter", |text| {
        let is_left = text.contains(&ends[1]) && !text.contains(&ends[0]);
        is_left && text.starts_with("2 of ") && text.contains(&format!("filter: {}_", ends[1]))
    });
    top.press("\r\x1b[B");
    top.shows("what was found of the chosen flow", |text| {
        let ends_told = text.contains(&format!("{} to ", ends[1]))
            || text.contains(&format!(" to {} ", ends[1]));
        ends_told && text.contains("finding")
    });
    // A flow that comes while it looks on.
    top.press("\x1b");
    let late = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let late = late.local_addr().unwrap().to_string();
    top.shows("the new flow", |text| text.contains(&late));

    let mut narrow = Terminal::of_columns(&daemon.command(&["top", "--interval", "0.2"]), 80);
    let remote = listener.local_addr().unwrap().to_string();
    narrow.shows("both addresses of a flow in 80 columns", |text| {
        let has_both = |line: &str| line.contains(&ends[0]) && line.contains(&remote);
        text.contains("? keys") && text.lines().any(has_both)
    });
    narrow.press("?");
    narrow.shows("the keys", |text| text.contains("Page Down choose a flow"));

    top.press("q");
    let status = until("top to end", || top.child.try_wait().unwrap());
    assert!(status.success(), "{status}");
    // What it wrote last may still be on its way to the thread that reads the terminal.
    until("the terminal as it was", || {
        let is_left = !top.screen.lock().unwrap().screen().alternate_screen();
        is_left.then_some(())
    });
    assert!(!top.screen.lock().unwrap().screen().hide_cursor());
}

#[test]
fn without_a_daemon_the_terminal_is_not_touched() {
    let Some(_alone) = alone() else { return };
    let daemon = Daemon::idle("");
    let mut top = Terminal::run(&daemon.command(&["top"]));
    top.shows("the remedy", |text| text.contains("fatpath daemon"));
    let status = until("top to end", || top.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    assert!(!top.screen.lock().unwrap().screen().alternate_screen());
}
