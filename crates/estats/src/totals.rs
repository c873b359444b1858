// SPDX-License-Identifier: MIT OR Apache-2.0
//! What only grows: counters of the kernel, and sums over the time between samples. Two of them subtracted
//! tell of the span between.

use fatpath_api::{LimitedBy, Sample, SampleKind};

/// Counters and sums of a flow up to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub now_ns: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub data_segs_out: u64,
    pub segs_retrans: u64,
    pub segs_in: u64,
    pub data_segs_in: u64,
    pub delivered_pkts: u64,
    pub delivered_ce_pkts: u64,
    pub lost_pkts: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub cong_signals: u64,
    pub pre_cong_sum_cwnd_pkts: u64,
    pub pre_cong_sum_rtt_us: u64,
    pub timeouts: u64,
    pub subsequent_timeouts: u64,
    pub sum_rtt_us: u64,
    pub count_rtt: u64,
    pub dsack_dups: u64,
    pub reord_seen: u64,
    pub seen: Seen,
}

/// Sums over the time between samples, each weighted with the time in which the flow had something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Time that the weights add up to.
    pub busy_us: u64,
    /// Both windows had room for all that was written, and the program waited to write more. The kernel's own
    /// chronometer runs only from a segment sent meanwhile, which the last one of a small buffer is not.
    pub buffer_limited_us: u64,
    /// Free to send, and the application had given nothing more.
    pub app_limited_us: u64,
    /// The congestion window was full.
    pub cwnd_limited_us: u64,
    /// The retransmission timer was waited for.
    pub stalled_us: u64,
    /// A short segment waited for the acknowledgement of the one before (Nagle's rule).
    pub nagle_us: u64,
    pub cwnd_pkts_us: u64,
    pub in_flight_pkts_us: u64,
    pub peer_window_bytes_us: u64,
    /// The same of its square.
    pub in_flight_pkts_squared_us: u128,
    /// Timeouts with too little in flight for duplicate acknowledgements.
    pub tail_timeouts: u64,
    /// Segments that came from the peer after a second timeout in a row, before anything was acknowledged.
    pub segs_in_stalled: u64,
    /// Reductions of the window that were seen one by one: how many, and the sums of the window before each, of the
    /// delivery rate at each, kilobytes a second, and of its square.
    pub reductions: u64,
    pub reduced_from_pkts: u64,
    pub reduced_at_kbytes_per_s: u64,
    pub reduced_at_kbytes_per_s_squared: u128,
    /// Congestion signals that were seen one by one, and how many of them met hardly a queue.
    pub signals: u64,
    pub signals_without_queue: u64,
    /// When the latest one was seen that met a queue, or followed one that had; no sum.
    pub queued_ns: u64,
}

/// Less is hardly a queue, µs: CoDel, whose target is 5 ms (RFC 8289, 4.2), drops from some 4 on where others keep it, and a busy
/// host's noise is below 3.
const HARDLY_A_QUEUE_US: u64 = 3_000;

/// What was lost in a queue may be found so long after the first of it, round trips, when the queue is gone: past one recovery, and past that
/// of what was sent again.
const FOUND_LATE_RTTS: u64 = 3;

/// So few segments in flight do not bring the three duplicates that fast retransmission waits for (RFC 5681).
const TAIL_PKTS: u32 = 3;

impl Totals {
    /// At the begin, before anything was sent.
    pub(crate) fn at_begin(begin_ns: u64) -> Totals {
        Totals {
            now_ns: begin_ns,
            ..Totals::default()
        }
    }

    /// Up to this sample; `seen` holds the sums so far.
    pub(crate) fn of(s: &Sample, seen: Seen) -> Totals {
        Totals {
            now_ns: s.now_ns,
            bytes_acked: s.bytes_acked,
            bytes_received: s.bytes_received,
            bytes_sent: s.bytes_sent,
            bytes_retrans: s.bytes_retrans,
            data_segs_out: s.data_segs_out,
            segs_retrans: s.segs_retrans,
            segs_in: s.segs_in,
            data_segs_in: s.data_segs_in,
            delivered_pkts: s.delivered_pkts,
            delivered_ce_pkts: s.delivered_ce_pkts,
            lost_pkts: s.lost_pkts,
            busy_us: s.busy_us,
            rwnd_limited_us: s.rwnd_limited_us,
            sndbuf_limited_us: s.sndbuf_limited_us,
            cong_signals: s.cong_signals.into(),
            pre_cong_sum_cwnd_pkts: s.pre_cong_sum_cwnd_pkts,
            pre_cong_sum_rtt_us: s.pre_cong_sum_rtt_us,
            timeouts: s.timeouts.into(),
            subsequent_timeouts: s.subsequent_timeouts.into(),
            sum_rtt_us: s.sum_rtt_us,
            count_rtt: s.count_rtt.into(),
            dsack_dups: s.dsack_dups.into(),
            reord_seen: s.reord_seen.into(),
            seen,
        }
    }

    /// What came to pass since an earlier moment.
    pub(crate) fn since(&self, earlier: &Totals) -> Totals {
        macro_rules! differences {
            ($($field:ident),*) => {
                Totals {
                    $($field: self.$field.saturating_sub(earlier.$field),)*
                    seen: self.seen.since(&earlier.seen),
                }
            };
        }
        differences!(
            now_ns,
            bytes_acked,
            bytes_received,
            bytes_sent,
            bytes_retrans,
            data_segs_out,
            segs_retrans,
            segs_in,
            data_segs_in,
            delivered_pkts,
            delivered_ce_pkts,
            lost_pkts,
            busy_us,
            rwnd_limited_us,
            sndbuf_limited_us,
            cong_signals,
            pre_cong_sum_cwnd_pkts,
            pre_cong_sum_rtt_us,
            timeouts,
            subsequent_timeouts,
            sum_rtt_us,
            count_rtt,
            dsack_dups,
            reord_seen
        )
    }

    /// All ends of the retransmission timer.
    pub(crate) fn timer_ends(&self) -> u64 {
        self.timeouts + self.subsequent_timeouts
    }

    /// Length of the span, when these are differences.
    pub(crate) fn seconds(&self) -> f64 {
        self.now_ns as f64 / 1e9
    }
}

impl Seen {
    /// The sums with the time between the latest totals and this sample added.
    pub(crate) fn and(mut self, before: &Totals, s: &Sample) -> Seen {
        let passed = Totals::of(s, self).since(before);
        let busy_us = passed.busy_us;
        let held_us = passed.rwnd_limited_us + passed.sndbuf_limited_us;
        let free_us = busy_us.saturating_sub(held_us);
        self.busy_us += busy_us;
        self.cwnd_pkts_us += busy_us * u64::from(s.cwnd_pkts);
        let in_flight_pkts = u64::from(s.in_flight_pkts());
        self.in_flight_pkts_us += busy_us * in_flight_pkts;
        self.in_flight_pkts_squared_us +=
            u128::from(busy_us * in_flight_pkts) * u128::from(in_flight_pkts);
        // A sample comes with each end of the timer: what came since was heard after an earlier one.
        if s.backoff >= 2 && passed.bytes_acked == 0 {
            self.segs_in_stalled += passed.segs_in;
        }
        // The first one ends slow start: its rate may be that of a burst.
        if passed.cong_signals == 1
            && before.cong_signals > 0
            && let Some(rate) = s.delivery_rate_bytes_per_s
        {
            let kbytes_per_s = rate / 1000;
            self.reductions += 1;
            self.reduced_from_pkts += passed.pre_cong_sum_cwnd_pkts;
            self.reduced_at_kbytes_per_s += kbytes_per_s;
            self.reduced_at_kbytes_per_s_squared += u128::from(kbytes_per_s).pow(2);
        }
        self.peer_window_bytes_us += busy_us * u64::from(s.peer_window_bytes);
        if passed.timer_ends() > 0 {
            // The sample comes with the timer's end, after a silence: of all the time, or of one RTO.
            let is_silent = passed.bytes_acked == 0;
            let silence_us = if is_silent {
                free_us
            } else {
                u64::from(s.rto_us)
            };
            self.stalled_us += free_us.min(silence_us);
            if s.kind == SampleKind::Timeout && s.packets_out <= TAIL_PKTS {
                self.tail_timeouts += passed.timeouts;
            }
        } else if is_buffer_limited(s) {
            self.buffer_limited_us += free_us;
        } else if waits_by_nagle(s) {
            self.nagle_us += free_us;
        } else if is_app_limited(s) {
            self.app_limited_us += free_us;
        } else if s.is_cwnd_limited {
            self.cwnd_limited_us += free_us;
        }
        self
    }

    /// Congestion signals between these samples. `is_paced`: a rule bounds its rate; `least_rtt_us`: of all flows between its addresses.
    pub(crate) fn note_signals(
        &mut self,
        [before, s]: [&Sample; 2],
        is_paced: bool,
        least_rtt_us: Option<u32>,
    ) {
        let signals = s.cong_signals.saturating_sub(before.cong_signals);
        let sum_us = s
            .pre_cong_sum_rtt_us
            .saturating_sub(before.pre_cong_sum_rtt_us);
        let Some(rtt_us) = sum_us.checked_div(signals.into()) else {
            return;
        };
        let own_us = s.min_rtt_us.unwrap_or(s.srtt_us);
        let base_us = least_rtt_us.map_or(own_us, |least| least.min(own_us));
        let met_queue = rtt_us >= u64::from(base_us) + HARDLY_A_QUEUE_US;
        let late_ns = FOUND_LATE_RTTS * u64::from(s.srtt_us) * 1000;
        let is_late = self.queued_ns > 0 && s.now_ns.saturating_sub(self.queued_ns) < late_ns;
        if met_queue || is_late {
            self.queued_ns = s.now_ns;
        }
        let is_slow_start = before
            .ssthresh_pkts
            .is_none_or(|most| before.cwnd_pkts < most);
        // A burst of slow start makes a queue of its own, whether or not it overflows.
        let is_burst = is_slow_start && !is_paced;
        if signals == 1 && !is_late && !is_burst {
            self.signals += 1;
            self.signals_without_queue += u64::from(!met_queue);
        }
    }

    fn since(&self, earlier: &Seen) -> Seen {
        macro_rules! differences {
            ($($field:ident),*) => {
                Seen {
                    $($field: self.$field.saturating_sub(earlier.$field),)*
                    queued_ns: self.queued_ns,
                }
            };
        }
        differences!(
            busy_us,
            buffer_limited_us,
            app_limited_us,
            cwnd_limited_us,
            stalled_us,
            nagle_us,
            cwnd_pkts_us,
            in_flight_pkts_us,
            in_flight_pkts_squared_us,
            peer_window_bytes_us,
            tail_timeouts,
            segs_in_stalled,
            reductions,
            reduced_from_pkts,
            reduced_at_kbytes_per_s,
            reduced_at_kbytes_per_s_squared,
            signals,
            signals_without_queue
        )
    }
}

fn is_buffer_limited(s: &Sample) -> bool {
    let mss_bytes = u64::from(s.mss_bytes);
    let written_bytes = u64::from(s.in_flight_pkts()) * mss_bytes + u64::from(s.unsent_bytes);
    let window_bytes = (u64::from(s.cwnd_pkts) * mss_bytes).min(s.peer_window_bytes.into());
    s.waits_for_send_buffer && written_bytes < window_bytes
}

/// A short segment is there, nothing but an unacknowledged one keeps it (RFC 896).
fn waits_by_nagle(s: &Sample) -> bool {
    let is_free = s.limited_by != LimitedBy::Receiver && s.in_flight_pkts() < s.cwnd_pkts;
    is_free && s.unsent_bytes > 0 && s.unsent_bytes < s.mss_bytes && s.packets_out > 0
}

/// The window was open and everything given was sent; a full send buffer looks the same and is none.
fn is_app_limited(s: &Sample) -> bool {
    let is_free = !matches!(s.limited_by, LimitedBy::Receiver | LimitedBy::SendBuffer);
    is_free && s.is_app_limited && s.unsent_bytes == 0 && !s.is_cwnd_limited
}
