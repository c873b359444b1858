// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sample at a quiet moment, beside what the kernel itself says: TCP_INFO and `ss -ti`.

use crate::support::path::over;
use crate::support::wire::{run, transfer};
use crate::{sampling_in_turn, walked};
use fatpath_api::Sample;
use fatpath_emulator::CellSpec;
use fatpath_link::LossSpec;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct tcp_info` of linux/tcp.h, whose fields never move.
struct TcpInfo(Vec<u8>);

impl TcpInfo {
    fn of(flow: &TcpStream) -> TcpInfo {
        let mut bytes = vec![0u8; 512];
        let mut length = bytes.len() as libc::socklen_t;
        // SAFETY: an open socket, and a buffer of the length that is given.
        let answer = unsafe {
            libc::getsockopt(
                flow.as_raw_fd(),
                libc::SOL_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &mut length,
            )
        };
        assert_eq!(answer, 0);
        bytes.truncate(length as usize);
        TcpInfo(bytes)
    }

    fn u8(&self, at: usize) -> u64 {
        self.0[at].into()
    }

    fn u32(&self, at: usize) -> u64 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap()).into()
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap())
    }
}

/// Each field that both have: name, the sample's, TCP_INFO's.
fn fields(s: &Sample, info: &TcpInfo) -> Vec<(&'static str, u64, u64)> {
    let infinite = |ssthresh: Option<u32>| ssthresh.unwrap_or(0x7fff_ffff).into();
    vec![
        ("state", s.state.into(), info.u8(0)),
        ("ca_state", s.ca_state as u64, info.u8(1)),
        ("retransmits", s.retransmits.into(), info.u8(2)),
        ("backoff", s.backoff.into(), info.u8(4)),
        ("timestamps", s.timestamps_are_on.into(), info.u8(5) & 1),
        ("sack", s.sack_is_on.into(), info.u8(5) >> 1 & 1),
        ("ecn", s.ecn_is_on.into(), info.u8(5) >> 3 & 1),
        ("send_wscale", s.send_wscale.into(), info.u8(6) & 15),
        ("receive_wscale", s.receive_wscale.into(), info.u8(6) >> 4),
        (
            "app_limited",
            s.delivery_rate_is_app_limited.into(),
            info.u8(7) & 1,
        ),
        ("rto_us", s.rto_us.into(), info.u32(8)),
        ("mss", s.mss_bytes.into(), info.u32(16)),
        ("packets_out", s.packets_out.into(), info.u32(24)),
        ("sacked_out", s.sacked_out.into(), info.u32(28)),
        ("lost_out", s.lost_out.into(), info.u32(32)),
        ("retrans_out", s.retrans_out.into(), info.u32(36)),
        ("pmtu", s.pmtu_bytes.into(), info.u32(60)),
        ("srtt_us", s.srtt_us.into(), info.u32(68)),
        ("rttvar_us", s.rttvar_us.into(), info.u32(72)),
        ("ssthresh", infinite(s.ssthresh_pkts), info.u32(76)),
        ("cwnd", s.cwnd_pkts.into(), info.u32(80)),
        ("adv_mss", s.adv_mss_bytes.into(), info.u32(84)),
        ("reordering", s.reordering_pkts.into(), info.u32(88)),
        ("rcv_rtt_us", s.rcv_rtt_us.into(), info.u32(92)),
        ("segs_retrans", s.segs_retrans, info.u32(100)),
        ("pacing_rate", s.pacing_rate_bytes_per_s, info.u64(104)),
        ("bytes_acked", s.bytes_acked, info.u64(120)),
        ("bytes_received", s.bytes_received, info.u64(128)),
        ("segs_out", s.segs_out, info.u32(136)),
        ("segs_in", s.segs_in, info.u32(140)),
        ("unsent", s.unsent_bytes.into(), info.u32(144)),
        (
            "min_rtt_us",
            s.min_rtt_us.unwrap_or(u32::MAX).into(),
            info.u32(148),
        ),
        ("data_segs_in", s.data_segs_in, info.u32(152)),
        ("data_segs_out", s.data_segs_out, info.u32(156)),
        (
            "delivery_rate",
            s.delivery_rate_bytes_per_s.unwrap_or(0),
            info.u64(160),
        ),
        ("busy_us", s.busy_us, info.u64(168)),
        ("rwnd_limited_us", s.rwnd_limited_us, info.u64(176)),
        ("sndbuf_limited_us", s.sndbuf_limited_us, info.u64(184)),
        ("delivered", s.delivered_pkts, info.u32(192)),
        ("delivered_ce", s.delivered_ce_pkts, info.u32(196)),
        ("bytes_sent", s.bytes_sent, info.u64(200)),
        ("bytes_retrans", s.bytes_retrans, info.u64(208)),
        ("dsack_dups", s.dsack_dups.into(), info.u32(216)),
        ("reord_seen", s.reord_seen.into(), info.u32(220)),
        ("rcv_ooopack", s.rcv_ooopack.into(), info.u32(224)),
        ("peer_window", s.peer_window_bytes.into(), info.u32(228)),
    ]
}

/// `cwnd:10` of what `ss -tinH` prints.
fn of_ss(text: &str, name: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let word = words.find_map(|word| word.strip_prefix(&format!("{name}:")))?;
    let digits = word.split(['/', ',', '%']).next()?;
    digits.parse().ok()
}

fn same_as_ss(s: &Sample, text: &str) {
    let seen = [
        ("cwnd", u64::from(s.cwnd_pkts)),
        ("mss", s.mss_bytes.into()),
        ("pmtu", s.pmtu_bytes.into()),
        ("advmss", s.adv_mss_bytes.into()),
        ("bytes_sent", s.bytes_sent),
        ("bytes_acked", s.bytes_acked),
        ("bytes_received", s.bytes_received),
        ("segs_out", s.segs_out),
        ("segs_in", s.segs_in),
        ("data_segs_out", s.data_segs_out),
        ("data_segs_in", s.data_segs_in),
        ("delivered", s.delivered_pkts),
    ];
    let shown: Vec<_> = seen
        .into_iter()
        .filter_map(|(name, ours)| Some((name, ours, of_ss(text, name)?)))
        .collect();
    assert!(shown.len() >= 8, "{text}");
    for (name, ours, theirs) in shown {
        assert_eq!(ours, theirs, "{name} of `{text}`");
    }
}

#[test]
fn a_walk_says_what_tcp_info_and_ss_say() {
    let Some(loaded) = sampling_in_turn("interval = '60s'") else {
        return;
    };
    let some = CellSpec::Loss(LossSpec::Packets {
        flow: None,
        packets: vec![30, 60, 61],
    });
    over("info", &[some], |path| {
        let (sender, receiver) = path.connection();
        transfer(&sender, &receiver, 500_000);
        transfer(&receiver, &sender, 100_000);
        // Beyond the delayed ACK and whatever else is on the way.
        std::thread::sleep(Duration::from_millis(500));
        for (flow, host) in [(&sender, "client"), (&receiver, "server")] {
            let sample = walked(&loaded.kernel, flow);
            let info = TcpInfo::of(flow);
            for (name, ours, theirs) in fields(&sample, &info) {
                assert_eq!(ours, theirs, "{name} at the {host}");
            }
            let port = flow.local_addr().unwrap().port();
            let shown = run(path.host(host), &format!("ss -tinH sport = :{port}"));
            same_as_ss(&sample, &shown);
            assert!(sample.segs_retrans >= 3 || host == "server");
            assert!(sample.is_tracked);
        }
    });
}
