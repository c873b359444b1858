/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow as the instruments see it: struct fp_sample, read from tcp_sock and from what is
 * kept of the flow. It decides nothing. Start at fill_sample().
 */
#ifndef FATPATH_ESTATS_H
#define FATPATH_ESTATS_H

#include "choose.h"
#include "rate_state.h"
#include "tcp.h"

/*
 * Loads a field of each line of the cache that fill_sample() will read, with nothing between that waits. A walk
 * meets sockets that are in no cache: one after another, these lines are most of what it costs.
 */
static __always_inline void bring_near(const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = &tp->inet_conn;
	const struct sock *sk = &icsk->icsk_inet.sk;
	const struct cgroup *group = sk->sk_cgrp_data.cgroup;
	u64 all = sk->sk_rcvbuf ^ sk->sk_pacing_rate ^ sk->sk_sndbuf;

	all ^= icsk->icsk_rto ^ icsk->icsk_retransmits;
	all ^= tp->max_window ^ tp->snd_wnd ^ tp->retrans_out ^ tp->segs_out ^ tp->ecn_flags;
	all ^= tp->snd_una ^ tp->bytes_received ^ tp->bytes_acked ^ tp->dsack_dups;
	all ^= tp->reord_seen ^ tp->bytes_retrans;
	barrier_var(group);
	barrier_var(all);
}

/* The same for what is kept of the flow. */
static __always_inline void bring_kept_near(const struct fp_estats *e)
{
	u64 all = e->flags ^ e->counted.begin_ns ^ e->counted.cong_signals;

	all ^= e->wide.segs_in ^ e->retrans_ns;
	barrier_var(all);
}

static __always_inline void widen(__u64 *wide, u32 now)
{
	*wide += now - (u32)*wide;
}

/* Often enough: 2^32 segments take longer than a round trip. */
static __always_inline void widen_all(struct fp_wide *w, const struct tcp_sock *tp)
{
	widen(&w->segs_out, tp->segs_out);
	widen(&w->data_segs_out, tp->data_segs_out);
	widen(&w->segs_retrans, tp->total_retrans);
	widen(&w->segs_in, tp->segs_in);
	widen(&w->data_segs_in, tp->data_segs_in);
	widen(&w->delivered_pkts, tp->delivered);
	widen(&w->delivered_ce_pkts, tp->delivered_ce);
	widen(&w->lost_pkts, tp->lost);
}

/* `e` is NULL for a flow of which nothing is kept: its counters are the kernel's 32 bits. */
static __always_inline void fill_kept(struct fp_sample *r, const struct tcp_sock *tp,
				      struct fp_estats *e)
{
	if (e && e->flags & FP_ESTATS_TRACKED) {
		widen_all(&e->wide, tp);
		__builtin_memcpy(&r->counted, &e->counted, sizeof(r->counted));
		__builtin_memcpy(&r->wide, &e->wide, sizeof(r->wide));
		r->tcp.flags |= e->flags;
		return;
	}
	__builtin_memset(&r->counted, 0, sizeof(r->counted));
	__builtin_memset(&r->wide, 0, sizeof(r->wide));
	widen_all(&r->wide, tp);
	r->counted.begin_ns = r->tcp.now_ns;
	r->tcp.flags |= FP_ESTATS_ADOPTED;
}

/* Fills all but `kind`, `cookie` and `now_ns`. Of what is kept of the flow each may be NULL. */
static __always_inline void fill_sample(struct fp_sample *r, struct tcp_sock *tp,
					struct fp_estats *e, const struct met *met,
					const struct fp_rude_flow *rude)
{
	r->rule_id = met->rule_id;
	fill_tcp(&r->tcp, tp, rude);
	if (met->flags & FP_FLOW_WITHHELD)
		r->tcp.flags |= FP_SAMPLE_WITHHELD;
	fill_kept(r, tp, e);
	fill_bbr(&r->bbr, tp);
}

#endif
