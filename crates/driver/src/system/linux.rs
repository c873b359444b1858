// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux.

use super::{ConnectionFigures, option};
use crate::waits::Chronograph;
use fatpath_tcp::SenderFigures;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use rustix::net::RecvFlags;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_send_buffer_size,
    set_tcp_congestion,
};
use rustix::thread::set_current_timer_slack;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

pub(crate) use super::marked::Mark;

/// What lets the kernel give a socket the room that it asks for.
pub const BUFFER_REMEDY: &str = "sysctl net.core.rmem_max=8388608";

/// By default the kernel wakes a thread up to 50 µs late, a fifth of a batch (PR_SET_TIMERSLACK, prctl(2)). Of the thread that
/// calls.
pub(crate) fn wake_exactly() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Buffers of a new socket of `quinn-udp`, each of `bytes`, or as much of that as there is.
pub(crate) fn ask_buffers(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    // quinn-udp 0.6.3 asks for times of arrival, and with them its room for control messages ends before the ECN field.
    setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
    // Forcing needs CAP_NET_ADMIN; without it net.core.rmem_max and wmem_max hold.
    if set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        set_socket_recv_buffer_size(socket, bytes)?;
    }
    Ok(set_socket_send_buffer_size(socket, bytes)?)
}

/// See [`crate::Socket::let_fragment`].
pub(crate) fn let_fragment(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::OMIT)?,
        SocketAddr::V6(_) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)?,
    }
    Ok(())
}

/// What the kernel takes of data beyond those that may leave now.
pub(crate) fn bound_unsent(stream: &TcpStream, bytes: u32) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(bytes)
}

pub(crate) fn figures(stream: &TcpStream) -> Option<ConnectionFigures> {
    let info = getsockopt(stream, option::Info).ok()?;
    Some(ConnectionFigures {
        srtt: Duration::from_micros(info.tcpi_rtt.into()),
        timeouts: info.tcpi_retransmits,
        sent_pkts: info.tcpi_segs_out.into(),
        retransmits: info.tcpi_total_retrans.into(),
        chronograph: Chronograph {
            busy_us: info.tcpi_busy_time,
            rwnd_limited_us: info.tcpi_rwnd_limited,
            sndbuf_limited_us: info.tcpi_sndbuf_limited,
        },
        is_paced_to_limit: info.tcpi_pacing_rate >= info.tcpi_max_pacing_rate,
    })
}

/// How the sending end stands, and the bytes that it was given and has not sent.
pub(crate) fn sender_figures(stream: &TcpStream) -> Option<(SenderFigures, u64)> {
    let info = getsockopt(stream, option::Info).ok()?;
    let figures = SenderFigures {
        cwnd_pkts: info.tcpi_snd_cwnd,
        ssthresh_pkts: info.tcpi_snd_ssthresh,
        srtt_us: info.tcpi_rtt,
        min_rtt_us: info.tcpi_min_rtt,
        rto_us: info.tcpi_rto.into(),
        in_flight_pkts: info.tcpi_unacked,
        reordering_pkts: info.tcpi_reordering,
        peer_window_bytes: info.tcpi_snd_wnd.into(),
        acked_bytes: info.tcpi_bytes_acked,
        delivered_pkts: info.tcpi_delivered.into(),
        marked_pkts: info.tcpi_delivered_ce.into(),
        sent_pkts: info.tcpi_data_segs_out.into(),
        retransmits: info.tcpi_total_retrans.into(),
        duplicates_told: info.tcpi_dsack_dups.into(),
        timeouts: info.tcpi_total_rto.into(),
        ..SenderFigures::default()
    };
    Some((figures, info.tcpi_notsent_bytes.into()))
}

/// Takes what has arrived, and does not copy it (MSG_TRUNC, tcp(7)): the socket is free for the next segment at once, which
/// else waits in its backlog and is acknowledged late.
pub(crate) fn discard(stream: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(stream, room, RecvFlags::TRUNC)?.1)
}

/// No more than this leaves in a second.
pub(crate) fn pace(socket: &impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    Ok(setsockopt(socket, option::MaxPacingRate, &bytes_per_s)?)
}

/// The law of this name, where the kernel has it and the user may choose it.
pub(crate) fn set_law(socket: &impl AsFd, name: &str) -> io::Result<()> {
    Ok(set_tcp_congestion(socket, name)?)
}
