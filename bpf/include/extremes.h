/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maxima and minima of RFC 4898 that the kernel does not keep. A flow is looked at once a round trip, at each of its
 * events, and whenever it is sampled. Start at note_extremes().
 */
#ifndef FATPATH_EXTREMES_H
#define FATPATH_EXTREMES_H

#include "tcp.h"

/* TCP_INFINITE_SSTHRESH: a law that goes by rates (bbr) never sets another. */
#define INFINITE_SSTHRESH 0x7fffffff

static __always_inline void note_most(u32 *most, u32 now)
{
	if (now > *most)
		*most = now;
}

/* Of what is never 0. */
static __always_inline void note_least(u32 *least, u32 now)
{
	if (now - 1 < *least - 1)
		*least = now;
}

static __always_inline void note_cwnd(struct fp_extremes *x, u32 cwnd_pkts, u32 ssthresh_pkts)
{
	if (cwnd_pkts < ssthresh_pkts)
		note_most(&x->max_ss_cwnd_pkts, cwnd_pkts);
	else
		note_most(&x->max_ca_cwnd_pkts, cwnd_pkts);
}

/* RFC 4898: the greatest is without the initial one, which is the first that is seen. */
static __always_inline void note_ssthresh(struct fp_extremes *x, u32 now_pkts)
{
	u32 before_pkts = x->ssthresh_pkts;

	x->ssthresh_pkts = now_pkts;
	if (now_pkts >= INFINITE_SSTHRESH)
		return;
	note_least(&x->min_ssthresh_pkts, now_pkts);
	if (before_pkts && before_pkts != now_pkts)
		note_most(&x->max_ssthresh_pkts, now_pkts);
}

/*
 * An acknowledgement that ends a round trip has taken from packets_out already what it acknowledges, in a short path all of
 * it. max_packets_out is from when something was last sent; what of it was not in flight was beyond the window.
 */
static __always_inline void note_in_flight(struct fp_extremes *x, const struct tcp_sock *tp)
{
	u32 out_pkts = tp->max_packets_out;
	u32 gone_pkts = tp->sacked_out + tp->lost_out;
	u32 now_pkts = tp->packets_out + tp->retrans_out;
	u64 pipe_bytes;

	note_most(&x->max_retx_queue_pkts, out_pkts);
	note_most(&x->max_retx_queue_pkts, tp->packets_out);
	now_pkts = now_pkts > gone_pkts ? now_pkts - gone_pkts : 0;
	if (out_pkts > tp->snd_cwnd)
		out_pkts = tp->snd_cwnd;
	pipe_bytes = (u64)(now_pkts > out_pkts ? now_pkts : out_pkts) * tp->mss_cache;
	if (pipe_bytes > x->max_pipe_bytes)
		x->max_pipe_bytes = pipe_bytes;
}

static __always_inline void note_queues(struct fp_extremes *x, const struct tcp_sock *tp)
{
	note_most(&x->max_reasm_queue_bytes, reasm_queue_bytes(tp));
	note_most(&x->max_app_wqueue_bytes, tp->write_seq - tp->snd_nxt);
	note_most(&x->max_app_rqueue_bytes, tp->rcv_nxt - tp->copied_seq);
	note_most(&x->max_rwin_sent_bytes, tp->rcv_wnd);
}

/*
 * Of the window just before it was reduced in this state, while the threshold is the new one already: `x` has the old one.
 * Linux begins in slow start.
 */
static __always_inline void note_reduction(struct fp_extremes *x, const struct tcp_sock *tp,
					   u32 ca_state)
{
	u32 ssthresh_pkts = x->ssthresh_pkts ? x->ssthresh_pkts : INFINITE_SSTHRESH;

	if (ca_state <= TCP_CA_DISORDER)
		note_cwnd(x, tp->prior_cwnd, ssthresh_pkts);
	x->ssthresh_pkts = ssthresh_pkts;
	note_ssthresh(x, tp->snd_ssthresh);
}

/* In recovery the window is of neither kind; when the state that ends it is set, it still is that of recovery. */
static __always_inline void note_extremes(struct fp_extremes *x, const struct tcp_sock *tp,
					  u32 ca_state)
{
	note_in_flight(x, tp);
	note_queues(x, tp);
	note_most(&x->max_rto_ticks, tp->inet_conn.icsk_rto);
	note_least(&x->min_rto_ticks, tp->inet_conn.icsk_rto);
	note_most(&x->max_mss_bytes, tp->mss_cache);
	note_least(&x->min_mss_bytes, tp->mss_cache);
	if (ca_state > TCP_CA_DISORDER || ca_state_of(tp) > TCP_CA_DISORDER)
		return;
	note_cwnd(x, tp->snd_cwnd, tp->snd_ssthresh);
	note_ssthresh(x, tp->snd_ssthresh);
}

#endif
