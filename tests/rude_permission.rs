// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rude TCP on the real kernel: whatever he who may not be rude tries, he is polite.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on
#![allow(unsafe_code)] // other users' processes and sockets: raw system calls

mod support;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::ffi::c_int;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use support::lent::Lent;
use support::rude::*;
use support::{Daemon, alone, cgroup_root, until};

const ALLOWED: &str = "[[rule]]\nname = 'path'\ndestination = ['127.0.0.1']\nrude = 'allowed'\n";

/// What `work` comes to in a process of its own, that another user runs.
fn in_child(user: u32, work: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Answer {
    let mut command = Command::new("true");
    // SAFETY: what is done before exec are system calls.
    let spawned = unsafe { command.uid(user).pre_exec(work) }.spawn();
    match spawned {
        Ok(mut child) => child.wait().unwrap().code().unwrap(),
        Err(error) => error.raw_os_error().unwrap(),
    }
}

fn done(answer: Answer) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Of a step before the question: its failure is no refusal.
fn must<T>(step: io::Result<T>) -> io::Result<T> {
    step.map_err(|_| io::Error::from_raw_os_error(libc::EBADE))
}

/// New namespaces, in which the caller has all capabilities.
fn unshare(kinds: c_int) -> io::Result<()> {
    // SAFETY: a number.
    match unsafe { libc::unshare(kinds) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A connection over the loopback device of a new network namespace: both ends.
fn own_loopback() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    // SAFETY: all bytes 0 are a request; then its name and flags.
    let mut lo: libc::ifreq = unsafe { std::mem::zeroed() };
    (lo.ifr_name[0], lo.ifr_name[1]) = (b'l' as _, b'o' as _);
    lo.ifr_ifru.ifru_flags = libc::IFF_UP as _;
    // SAFETY: an open socket, and a request of that kind.
    let set = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SIOCSIFFLAGS, &lo) };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    let port = listener.local_addr()?.port();
    let own = TcpStream::connect(("127.0.0.1", port))?;
    Ok((own, listener.accept()?.0))
}

/// The same socket, as another process would get it (SCM_RIGHTS).
fn passed_on(socket: &impl AsFd) -> OwnedFd {
    let (here, there) = UnixStream::pair().unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&sockets)));
    sendmsg(
        &here,
        &[IoSlice::new(b"1")],
        &mut control,
        SendFlags::empty(),
    )
    .unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let into = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(&there, into, &mut control, RecvFlags::empty()).unwrap();
    let passed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    passed.unwrap()
}

/// Ends the connection; the socket may make another one.
fn disconnect(socket: &impl AsRawFd) {
    // SAFETY: all bytes 0 are an address, of AF_UNSPEC.
    let nobody: libc::sockaddr = unsafe { std::mem::zeroed() };
    let length = size_of::<libc::sockaddr>() as u32;
    // SAFETY: an open socket, and an address of that length.
    let done = unsafe { libc::connect(socket.as_raw_fd(), &nobody, length) };
    assert_eq!(done, 0);
}

#[test]
fn without_permission_there_is_none() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rno", "rude = 'allowed'");
    let (sender, _receiver) = path.lab.connection(7001);
    assert_eq!(set(&sender, ON), libc::EPERM, "the gate is closed");
    assert_eq!((set(&sender, OFF_NOW), set(&sender, OFF_NICELY)), (0, 0));
    path.ask(&["rude", "on"]);
    assert_eq!(
        set(&sender, ON),
        libc::EPERM,
        "nothing marks in its namespace"
    );
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let no_rule = TcpStream::connect(here.local_addr().unwrap()).unwrap();
    assert_eq!(set(&no_rule, ON), libc::EPERM, "no rule speaks of it");
    path.open_gate();
    assert_eq!((set(&sender, ON), get(&sender)), (0, RUDE));
    path.ask(&["rude", "off"]);
    assert_eq!((get(&sender), law(&sender)), (POLITE, "fp_reno".into()));
    assert_eq!(set(&sender, ON), libc::EPERM, "the gate is closed again");
}

#[test]
fn odd_values_and_sockets_are_refused() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rodd", "rude = 'allowed'");
    path.open_gate();
    let (sender, _receiver) = path.lab.connection(7002);
    for value in [3, -1, c_int::MAX] {
        assert_eq!(set(&sender, value), libc::EINVAL, "{value}");
    }
    for short in [&[][..], &[1], &[1, 0, 0]] {
        assert_eq!(
            set_bytes(&sender, TCP_RUDE, short),
            libc::EINVAL,
            "{short:?}"
        );
    }
    for length in [0, 1, 3] {
        assert_eq!(get_sized(&sender, length), -libc::EINVAL, "{length}");
    }
    assert_eq!(get(&sender), POLITE);
    for length in [5, 8, 64, 5000] {
        let mut long = vec![0xff; length];
        long[..4].copy_from_slice(&ON.to_ne_bytes());
        assert_eq!(set_bytes(&sender, TCP_RUDE, &long), 0, "{length}");
        assert_eq!((get(&sender), set(&sender, OFF_NOW)), (RUDE, 0));
    }
    let listener = path
        .lab
        .on("a", || TcpListener::bind("0.0.0.0:7003").unwrap());
    assert_eq!(set(&listener, ON), libc::ENOTCONN);
    let fresh = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    assert_eq!((set(&fresh, ON), get(&fresh)), (libc::ENOTCONN, POLITE));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(set(&udp, ON), libc::ENOPROTOOPT);
    let (unix, _other) = UnixStream::pair().unwrap();
    assert_ne!(set(&unix, ON), 0);
}

#[test]
fn an_option_that_nobody_speaks_of_is_the_kernels_own_affair() {
    let Some(_alone) = alone() else { return };
    // Its own: under a policy that allowed anybody to be rude the option was attached, and stays so.
    let daemon = Daemon::start("# nothing\n[[rule]]\nname = 'r'\ndestination = ['127.0.0.1']\n");
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(here.local_addr().unwrap()).unwrap();
    assert_eq!(set(&sender, ON), libc::ENOPROTOOPT);
    assert!(daemon.ask(&["rude", "on"]).status.success());
    assert_eq!(set(&sender, ON), libc::EPERM);
    assert!(daemon.ask(&["rude", "off"]).status.success());
    assert_eq!(set(&sender, ON), libc::ENOPROTOOPT);
}

#[test]
fn only_those_users_may_and_a_socket_has_an_owner() {
    let Some(_alone) = alone() else { return };
    let path = Path::new(
        "ruser",
        &format!("rude = 'allowed'\nrude_users = [{NOBODY}]"),
    );
    path.open_gate();
    let listener = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7004").unwrap());
    let address = format!("{}:7004", path.lab.address("b"));
    let roots = path.lab.on("a", || TcpStream::connect(&address).unwrap());
    let theirs = path.lab.on("a", || {
        as_user(NOBODY, || TcpStream::connect(&address).unwrap())
    });
    assert_eq!(set(&roots, ON), libc::EPERM, "root is not listed");
    assert_eq!(
        as_user(NOBODY, || set(&roots, ON)),
        libc::EPERM,
        "the socket is root's"
    );
    assert_eq!(
        set(&theirs, ON),
        libc::EPERM,
        "root asks for another's socket"
    );
    assert_eq!(as_user(NOBODY, || set(&theirs, ON)), 0);
    assert_eq!(path.rude_flows()[0]["rude"]["user"], NOBODY);
    path.daemon.apply("[[rule]]\nname = 'path'\ndestination = ['10.77.0.0/16']\nrude = 'allowed'\nrude_users = [1]\n");
    assert_eq!(get(&theirs), POLITE, "the policy permits them no more");
    drop(listener);
}

#[test]
fn selecting_the_law_is_not_asking() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rlaw", "rude = 'allowed'");
    let (sender, _receiver) = path.lab.connection(7005);
    let select = |socket: &TcpStream| socket2::SockRef::from(socket).set_tcp_congestion(b"fp_rude");
    select(&sender).unwrap();
    assert_eq!((law(&sender), get(&sender)), ("fp_reno".into(), POLITE));
    path.open_gate();
    select(&sender).unwrap();
    assert_eq!((law(&sender), get(&sender)), ("fp_reno".into(), POLITE));
    let before = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    before.set_tcp_congestion(b"fp_rude").unwrap();
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    before.connect(&there.local_addr().unwrap().into()).unwrap();
    let before = TcpStream::from(before);
    assert_eq!((law(&before), get(&before)), ("fp_reno".into(), POLITE));
    assert!(
        as_user(NOBODY, || select(&sender)).is_err(),
        "the law is restricted"
    );
}

#[test]
fn only_root_opens_the_gate() {
    let Some(_alone) = alone() else { return };
    let daemon = Lent::with(ALLOWED);
    // The group fatpath may ask; this machine may not have it.
    let socket = daemon.path("run/fatpath.sock");
    for (path, mode) in [(daemon.dir.path(), 0o755), (&socket, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let post = |path: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let request = format!("POST {path} HTTP/1.1\r\nhost: fatpath\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    let is_open = || daemon.json(&["rude", "status"])["gate"]["is_open"] == true;
    let on = "/v1/rude/on?mark=0x200&netns=";
    let refused = as_user(NOBODY, || post(on));
    assert!(refused.contains("only root"), "{refused}");
    assert!(!is_open());
    assert!(post(on).contains("200 OK"));
    let refused = as_user(NOBODY, || post("/v1/rude/off"));
    assert!(refused.contains("only root"), "{refused}");
    assert!(is_open());
}

/// A connected socket is a file: whoever gets it has what it is, and no more.
#[test]
fn a_socket_that_is_handed_on_stays_what_it_is() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rpass", "rude = 'allowed'\nrude_users = [0]");
    path.open_gate();
    let (sender, _receiver) = path.lab.connection(7017);
    let passed = passed_on(&sender);
    let ask = |value| as_user(NOBODY, || set(&passed, value));
    assert_eq!(ask(ON), libc::EPERM, "passed");
    let fd = sender.as_raw_fd();
    let inherited = in_child(NOBODY, move || done(set(&fd, ON)));
    assert_eq!(inherited, libc::EPERM);
    assert_eq!((get(&sender), set(&sender, ON)), (POLITE, 0));
    assert_eq!(get(&passed), RUDE);
    assert_eq!(ask(OFF_NOW), 0, "anybody may be polite");
    assert_eq!((ask(ON), get(&sender)), (libc::EPERM, POLITE));
}

#[test]
fn an_accepted_socket_inherits_nothing() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("racc", "rude = 'allowed'");
    path.open_gate();
    let listener = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7018").unwrap());
    assert_eq!(set(&listener, ON), libc::ENOTCONN);
    let address = format!("{}:7018", path.lab.address("b"));
    let _sender = path.lab.on("a", || TcpStream::connect(&address).unwrap());
    let accepted = listener.accept().unwrap().0;
    assert_eq!(get(&accepted), POLITE);
    assert_eq!((set(&accepted, ON), get(&accepted)), (0, RUDE));
}

/// What counts is where the socket was made, wherever who asks may be now.
#[test]
fn a_socket_belongs_to_its_cgroup_and_network_namespace() {
    let Some(_alone) = alone() else { return };
    let name = format!("fatpath-rude-test-{}", std::process::id());
    let group = cgroup_root().join(&name);
    std::fs::create_dir_all(&group).unwrap();
    let enter = |group: &std::path::Path| {
        std::fs::write(group.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    };
    let path = Path::new("rcg", &format!("cgroup = '/{name}'\nrude = 'allowed'"));
    path.ask(&["rude", "on", "--netns", &path.lab.namespace("a")]);
    let (outside, _receiver) = path.lab.connection(7019);
    enter(&group);
    let (inside, other_end) = path.lab.connection(7020);
    let asked = [set(&outside, ON), set(&inside, ON), set(&other_end, ON)];
    enter(&cgroup_root());
    assert_eq!(
        asked,
        [libc::EPERM, 0, libc::EPERM],
        "outside, inside, unmarked"
    );
    assert_eq!(path.lab.on("b", || set(&inside, OFF_NOW)), 0);
    assert_eq!(path.lab.on("b", || set(&inside, ON)), 0);
    drop((path, outside, inside));
    std::fs::remove_dir(group).unwrap();
}

/// One connection after another: permission is of the path, not of the socket.
#[test]
fn a_socket_that_is_used_again_is_polite_on_another_path() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("ragn", "rude = 'allowed'");
    path.open_gate();
    let (sender, _receiver) = path.lab.connection(7021);
    assert_eq!((set(&sender, ON), get(&sender)), (0, RUDE));
    let elsewhere = path
        .lab
        .on("a", || TcpListener::bind("127.0.0.1:7021").unwrap());
    disconnect(&sender);
    socket2::SockRef::from(&sender)
        .connect(&elsewhere.local_addr().unwrap().into())
        .unwrap();
    assert_eq!((get(&sender), set(&sender, ON)), (POLITE, libc::EPERM));
    assert_ne!(law(&sender), "fp_rude");
}

/// Root of a user namespace is nobody outside, but may choose any law in his own network namespace.
#[test]
fn root_of_a_user_namespace_is_not_root() {
    let Some(_alone) = alone() else { return };
    let settings = "rude = 'allowed'\nrude_users = [0]\n[[rule]]\nname = 'lo'\n\
                    destination = ['127.0.0.1']\nrude = 'allowed'";
    let path = Path::new("runs", settings);
    path.open_gate();
    let listener = path
        .lab
        .on("b", || TcpListener::bind("0.0.0.0:7022").unwrap());
    let address = format!("{}:7022", path.lab.address("b"));
    let theirs = path.lab.on("a", || {
        as_user(NOBODY, || TcpStream::connect(&address).unwrap())
    });
    let fd = theirs.as_raw_fd();
    let asked = in_child(NOBODY, move || {
        must(unshare(libc::CLONE_NEWUSER))?;
        done(set(&fd, ON))
    });
    assert_eq!(asked, libc::EPERM);
    let asked = in_child(NOBODY, || {
        must(unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET))?;
        let (own, _other) = must(own_loopback())?;
        must(socket2::SockRef::from(&own).set_tcp_congestion(b"fp_rude"))?;
        match (law(&own).as_str(), get(&own)) {
            ("fp_reno", POLITE) => done(set(&own, ON)),
            _ => Err(io::Error::from_raw_os_error(libc::EBADE)),
        }
    });
    assert_eq!(asked, libc::EPERM, "nothing marks there");
    drop(listener);
}

/// The kernel itself, as root, makes the further subflows of a connection.
#[test]
fn a_subflow_of_mptcp_is_its_programs() {
    let Some(_alone) = alone() else { return };
    let path = Path::new("rmptcp", "rude = 'always'\nrude_users = [0]");
    path.open_gate();
    let mptcp = Some(socket2::Protocol::from(libc::IPPROTO_MPTCP));
    let stream = socket2::Type::STREAM;
    let socket = || socket2::Socket::new(socket2::Domain::IPV4, stream, mptcp);
    let Ok(listener) = path.lab.on("b", || as_user(NOBODY, socket)) else {
        println!("skipped: the kernel has no MPTCP");
        return;
    };
    let dev = ["dev", "wan"];
    let further = "10.77.0.9";
    let ip = |host, words: &[&str]| path.lab.output(host, &[&["ip"], words].concat());
    ip("a", &[&["address", "add", further][..], &dev].concat());
    ip("a", &["mptcp", "limits", "set", "subflow", "1"]);
    ip("b", &["mptcp", "limits", "set", "subflow", "1"]);
    let endpoint = ["mptcp", "endpoint", "add", further, "subflow"];
    ip("a", &[&endpoint[..], &dev].concat());
    let address: std::net::SocketAddr = format!("{}:7023", path.lab.address("b")).parse().unwrap();
    listener.bind(&address.into()).unwrap();
    listener.listen(1).unwrap();
    let connect = || {
        let sender = socket()?;
        sender.connect(&address.into()).map(|()| sender)
    };
    let sender = path.lab.on("a", || as_user(NOBODY, connect)).unwrap();
    let _receiver = as_user(NOBODY, || listener.accept()).unwrap();
    let flow = until("a further subflow", || {
        (&sender).write_all(b"data").unwrap();
        let flows = path.daemon.flows().into_iter();
        let mut further = flows.filter(|flow| flow["local"].as_str().unwrap().contains(further));
        further.next()
    });
    let rude = path.rude_flows();
    assert!(rude.is_empty(), "{flow}\n{rude:?}");
}
