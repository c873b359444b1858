// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of flows: as they come, and of all TCP sockets at once.
//!
//! What a sample means is `fatpath-estats`' affair; here the kernel half's bytes become one. Start at
//! [`Kernel::samples`] and [`Kernel::walk_samples`].

use crate::KernelError;
use crate::abi::{self, fp_extremes, fp_sample, fp_tcp};
use crate::bbr::bbr_state;
use crate::events::follow_ring;
use crate::handle::Kernel;
use crate::maps::Table;
use crate::namespaces::{namespaces, within};
use crate::pins::{LINK_WALK_MOVED, LINK_WALK_SAMPLES};
use crate::pod::name_of;
use crate::tune::flow::{endpoint, tick_us};
use fatpath_api::{CaState, Extremes, Flow, LimitedBy, Sample, SampleKind};
use fatpath_clock::monotonic_ns;
use libbpf_rs::{Iter, Link};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// So many records are read at once: a little more than what the kernel hands over, 32 KiB.
const READ_RECORDS: usize = 64;

/// `TCP_INFINITE_SSTHRESH` of the kernel.
const INFINITE_SSTHRESH_PKTS: u32 = 0x7fff_ffff;

/// `enum tcp_chrono` of the kernel.
const CHRONO_BUSY: u8 = 1;
const CHRONO_RWND_LIMITED: u8 = 2;
const CHRONO_SNDBUF_LIMITED: u8 = 3;

/// SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK of the kernel.
const SEND_BUFFER_LOCK: u8 = 1;
const RECEIVE_BUFFER_LOCK: u8 = 2;

/// One walk at a time: a record is put together in memory of the processor, in which a preemptible kernel would let
/// another walk write before the first is done.
static WALKING: Mutex<()> = Mutex::new(());

/// A reader of the samples' ring buffer. Only one may read at a time: the daemon.
pub struct Samples {
    ring: Table,
}

impl Kernel {
    /// The reader.
    ///
    /// # Errors
    /// When the instruments are not loaded.
    pub fn samples(&self) -> Result<Samples, KernelError> {
        let ring = self.table("fp_samples")?;
        Ok(Samples { ring })
    }

    /// One sample of each TCP connection of all network namespaces that can be found, also of those that
    /// are idle, not read by their programs, or not sampled. Flows that began before fatpath, or before orders that
    /// name them, are sampled from then on (Linux 6.12). Before 6.17 a connection may come twice or not
    /// at all when others begin or end meanwhile.
    ///
    /// # Errors
    /// When the instruments are not loaded. A namespace that vanishes is passed over.
    pub fn walk_samples(&self, on_sample: impl FnMut(Sample) + Send) -> Result<(), KernelError> {
        self.walk_by(LINK_WALK_SAMPLES, on_sample)
    }

    /// The same of the connections alone that did something since that time (CLOCK_MONOTONIC), or that have data to send
    /// or in flight. Only one may walk so at a time: the daemon.
    ///
    /// # Errors
    /// As [`Kernel::walk_samples`].
    pub fn walk_moved(
        &self,
        since_ns: u64,
        on_sample: impl FnMut(Sample) + Send,
    ) -> Result<(), KernelError> {
        self.table("fp_moved_since")?.set(0, &(since_ns / 1000))?;
        self.walk_by(LINK_WALK_MOVED, on_sample)
    }

    fn walk_by(
        &self,
        pin: &str,
        mut on_sample: impl FnMut(Sample) + Send,
    ) -> Result<(), KernelError> {
        let link =
            Link::open(self.places.pin(pin)).map_err(KernelError::bpf(format!("open {pin}")))?;
        let _alone = WALKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed = None;
        for namespace in namespaces() {
            let walked = within(&namespace, || walk_here(&link, &mut on_sample));
            let walked = walked.and_then(Option::transpose);
            failed = failed.or(walked.err());
        }
        failed.map_or(Ok(()), Err)
    }
}

/// The network namespace of this thread.
fn walk_here(link: &Link, on_sample: &mut impl FnMut(Sample)) -> Result<(), KernelError> {
    if !has_sockets() {
        return Ok(());
    }
    let mut iterator = Iter::new(link).map_err(KernelError::bpf("start an iterator"))?;
    let mut records = vec![fp_sample::default(); READ_RECORDS];
    let mut filled = 0;
    loop {
        let now_ns = monotonic_ns();
        let read = iterator.read(&mut records.as_mut_bytes()[filled..]);
        filled += match read.map_err(KernelError::io("run an iterator"))? {
            0 => return Ok(()),
            bytes => bytes,
        };
        let whole = filled / size_of::<fp_sample>();
        for record in &mut records[..whole] {
            date(record, now_ns);
            if let Some(sample) = decode(record) {
                on_sample(sample);
            }
        }
        let rest = whole * size_of::<fp_sample>()..filled;
        filled = rest.len();
        records.as_mut_bytes().copy_within(rest, 0);
    }
}

/// A walk's records are dated here, by when they were asked for: some tens of them have one date.
fn date(record: &mut fp_sample, now_ns: u64) {
    // Of a flow of which nothing is kept.
    if record.counted.begin_ns == 0 {
        record.counted.begin_ns = now_ns;
    }
    // Of one that the walk has begun to sample, begin is after.
    record.tcp.now_ns = now_ns.max(record.counted.begin_ns);
}

/// Whether this thread's namespace has TCP sockets (`TCP: inuse N …`): for a walk in one the kernel looks
/// at those of all.
fn has_sockets() -> bool {
    let in_use = |(file, protocol): (&str, &str)| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
        let row = text.lines().find(|line| line.starts_with(protocol))?;
        row.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    let families = [("sockstat", "TCP:"), ("sockstat6", "TCP6:")];
    let counts: Vec<u64> = families.into_iter().filter_map(in_use).collect();
    counts.is_empty() || counts.iter().any(|count| *count > 0)
}

impl Samples {
    /// Waits for samples by `wait`, until it answers false: it waits until the file can be read, for so long at most.
    ///
    /// # Errors
    /// When the ring buffer cannot be read, and those of `wait`.
    pub fn follow(
        &mut self,
        wait: impl FnMut(BorrowedFd, Duration) -> io::Result<bool>,
        mut on_sample: impl FnMut(Sample),
    ) -> Result<(), KernelError> {
        follow_ring(&self.ring, wait, |bytes| {
            if let Some(sample) = fp_sample::ref_from_prefix(bytes)
                .ok()
                .and_then(|(record, _)| decode(record))
            {
                on_sample(sample);
            }
        })
    }
}

/// `None` for a record of no kind that this build knows.
#[inline(always)] // made where it is used, not moved there
pub(crate) fn decode(r: &fp_sample) -> Option<Sample> {
    let kind = kind_of(r.kind)?;
    let tcp = &r.tcp;
    let is = |flag: u32| tcp.flags & flag != 0;
    let counts_acks = is(abi::FP_ESTATS_COUNTS_ACKS);
    let (counted, wide) = (&r.counted, &r.wide);
    let is_tracked = is(abi::FP_ESTATS_TRACKED);
    Some(Sample {
        kind,
        flow: flow_of(r),
        now_ns: tcp.now_ns,
        begin_ns: counted.begin_ns,
        is_tracked,
        state: tcp.state,
        ca_state: ca_state_of(tcp.ca_state),
        law: name_of(&tcp.law),

        segs_out: wide.segs_out,
        data_segs_out: wide.data_segs_out,
        bytes_sent: tcp.bytes_sent,
        segs_retrans: wide.segs_retrans,
        bytes_retrans: tcp.bytes_retrans,
        segs_in: wide.segs_in,
        data_segs_in: wide.data_segs_in,
        bytes_received: tcp.bytes_received,
        bytes_acked: tcp.bytes_acked,
        delivered_pkts: wide.delivered_pkts,
        delivered_ce_pkts: wide.delivered_ce_pkts,
        lost_pkts: wide.lost_pkts,
        snd_una: tcp.snd_una,
        snd_nxt: tcp.snd_nxt,
        rcv_nxt: tcp.rcv_nxt,
        busy_us: ticks_us(tcp.busy_ticks),
        rwnd_limited_us: ticks_us(tcp.receiver_limited_ticks),
        sndbuf_limited_us: ticks_us(tcp.send_buffer_limited_ticks),
        limited_by: limited_by_of(tcp.limited_by),
        lim_trans_rwin: counted.lim_trans_rwin,
        lim_trans_cwnd: counted.lim_trans_cwnd,
        lim_trans_snd: counted.lim_trans_snd,
        cong_signals: counted.cong_signals,
        timeouts: counted.timeouts,
        subsequent_timeouts: counted.subsequent_timeouts,
        slow_start_acks: counts_acks.then_some(counted.slow_start_acks),
        cong_avoid_acks: counts_acks.then_some(counted.cong_avoid_acks),
        pre_cong_sum_cwnd_pkts: counted.pre_cong_sum_cwnd_pkts,
        post_cong_sum_ssthresh_pkts: counted.post_cong_sum_ssthresh_pkts,
        pre_cong_sum_rtt_us: counted.pre_cong_sum_rtt_us,

        rtt_us: (counted.rtt_us > 0).then_some(counted.rtt_us),
        srtt_us: tcp.srtt_us,
        rttvar_us: tcp.rttvar_us,
        min_rtt_us: (tcp.min_rtt_us != u32::MAX).then_some(tcp.min_rtt_us),
        max_rtt_us: counted.max_rtt_us,
        sum_rtt_us: counted.sum_rtt_us,
        count_rtt: counted.count_rtt,
        rto_us: timeout_us(tcp.rto_ticks),
        rcv_rtt_us: tcp.rcv_rtt_us,
        mss_bytes: tcp.mss_bytes,
        adv_mss_bytes: tcp.adv_mss_bytes,
        pmtu_bytes: tcp.pmtu_bytes,
        dsack_dups: tcp.dsack_dups,
        reord_seen: tcp.reord_seen,
        reordering_pkts: tcp.reordering_pkts,
        rcv_ooopack: tcp.rcv_ooopack,
        ecn_is_on: is(abi::FP_SAMPLE_ECN),
        sack_is_on: is(abi::FP_SAMPLE_SACK),
        timestamps_are_on: is(abi::FP_SAMPLE_TIMESTAMPS),

        cwnd_pkts: tcp.cwnd_pkts,
        ssthresh_pkts: (tcp.ssthresh_pkts < INFINITE_SSTHRESH_PKTS).then_some(tcp.ssthresh_pkts),
        packets_out: tcp.packets_out,
        sacked_out: tcp.sacked_out,
        lost_out: tcp.lost_out,
        retrans_out: tcp.retrans_out,
        peer_window_bytes: tcp.peer_window_bytes,
        max_peer_window_bytes: tcp.max_peer_window_bytes,
        receive_window_bytes: tcp.receive_window_bytes,
        send_wscale: tcp.send_wscale,
        receive_wscale: tcp.receive_wscale,
        retransmits: tcp.retransmits,
        backoff: tcp.backoff,
        delivery_rate_bytes_per_s: delivery_rate(tcp),
        delivery_rate_is_app_limited: is(abi::FP_SAMPLE_APP_LIMITED),
        is_app_limited: is(abi::FP_SAMPLE_NOW_APP_LIMITED),
        is_cwnd_limited: is(abi::FP_SAMPLE_CWND_LIMITED),
        waits_for_send_buffer: is(abi::FP_SAMPLE_NO_SPACE),

        unsent_bytes: tcp.unsent_bytes,
        unread_bytes: tcp.unread_bytes,
        reasm_queue_bytes: tcp.reasm_queue_bytes,

        send_buffer_bytes: tcp.send_buffer_bytes,
        receive_buffer_bytes: tcp.receive_buffer_bytes,
        send_buffer_is_locked: tcp.locked_buffers & SEND_BUFFER_LOCK != 0,
        receive_buffer_is_locked: tcp.locked_buffers & RECEIVE_BUFFER_LOCK != 0,
        cwnd_clamp_pkts: tcp.cwnd_clamp_pkts,
        window_clamp_bytes: tcp.window_clamp_bytes,
        pacing_rate_bytes_per_s: tcp.pacing_rate_bytes_per_s,
        is_rude: is(abi::FP_SAMPLE_RUDE),
        buffer_is_withheld: is(abi::FP_SAMPLE_WITHHELD),
        bbr: bbr_state(&r.bbr, tcp.mss_bytes),
        extremes: is_tracked.then(|| extremes_of(&r.extremes)),
    })
}

fn ticks_us(ticks: u32) -> u64 {
    u64::from(ticks) * tick_us()
}

fn timeout_us(ticks: u32) -> u32 {
    u32::try_from(ticks_us(ticks)).unwrap_or(u32::MAX)
}

#[inline]
fn extremes_of(r: &fp_extremes) -> Extremes {
    let seen = |pkts: u32| (pkts > 0).then_some(pkts);
    Extremes {
        max_pipe_bytes: r.max_pipe_bytes,
        max_retx_queue_pkts: r.max_retx_queue_pkts,
        max_reasm_queue_bytes: r.max_reasm_queue_bytes,
        max_app_wqueue_bytes: r.max_app_wqueue_bytes,
        max_app_rqueue_bytes: r.max_app_rqueue_bytes,
        max_rwin_sent_bytes: r.max_rwin_sent_bytes,
        max_rto_us: timeout_us(r.max_rto_ticks),
        min_rto_us: timeout_us(r.min_rto_ticks),
        max_mss_bytes: r.max_mss_bytes,
        min_mss_bytes: r.min_mss_bytes,
        max_ss_cwnd_pkts: seen(r.max_ss_cwnd_pkts),
        max_ca_cwnd_pkts: seen(r.max_ca_cwnd_pkts),
        max_ssthresh_pkts: seen(r.max_ssthresh_pkts),
        min_ssthresh_pkts: seen(r.min_ssthresh_pkts),
    }
}

fn flow_of(r: &fp_sample) -> Flow {
    let tcp = &r.tcp;
    Flow {
        cookie: tcp.cookie,
        local: endpoint(tcp.local_address, tcp.local_port),
        remote: endpoint(tcp.remote_address, tcp.remote_port),
        netns: tcp.netns,
        cgroup_id: tcp.cgroup_id,
        rule_id: (r.rule_id != abi::FP_NO_RULE).then_some(r.rule_id),
        is_passive: tcp.flags & abi::FP_ESTATS_PASSIVE != 0,
        is_adopted: tcp.flags & abi::FP_ESTATS_ADOPTED != 0,
    }
}

fn kind_of(kind: u32) -> Option<SampleKind> {
    match kind {
        abi::FP_SAMPLE_BEGIN => Some(SampleKind::Begin),
        abi::FP_SAMPLE_INTERVAL => Some(SampleKind::Interval),
        abi::FP_SAMPLE_STATE => Some(SampleKind::State),
        abi::FP_SAMPLE_CONGESTION => Some(SampleKind::Congestion),
        abi::FP_SAMPLE_TIMEOUT => Some(SampleKind::Timeout),
        abi::FP_SAMPLE_RETRANSMISSION => Some(SampleKind::Retransmission),
        abi::FP_SAMPLE_END => Some(SampleKind::End),
        abi::FP_SAMPLE_WALK => Some(SampleKind::Walk),
        _ => None,
    }
}

/// `enum tcp_ca_state` of the kernel.
fn ca_state_of(state: u8) -> CaState {
    match state {
        0 => CaState::Open,
        1 => CaState::Disorder,
        2 => CaState::Cwr,
        3 => CaState::Recovery,
        _ => CaState::Loss,
    }
}

fn limited_by_of(chrono: u8) -> LimitedBy {
    match chrono {
        CHRONO_BUSY => LimitedBy::Network,
        CHRONO_RWND_LIMITED => LimitedBy::Receiver,
        CHRONO_SNDBUF_LIMITED => LimitedBy::SendBuffer,
        _ => LimitedBy::Idle,
    }
}

/// As tcp_compute_delivery_rate() of the kernel.
fn delivery_rate(tcp: &fp_tcp) -> Option<u64> {
    let bytes = u64::from(tcp.rate_delivered_pkts) * u64::from(tcp.mss_bytes);
    let is_measured = tcp.rate_delivered_pkts > 0 && tcp.rate_interval_us > 0;
    is_measured.then(|| bytes * 1_000_000 / u64::from(tcp.rate_interval_us))
}
