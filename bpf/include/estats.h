/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow as the instruments see it: struct fp_sample, read from tcp_sock and from what is
 * kept of the flow. It decides nothing. Start at fill_sample().
 */
#ifndef FATPATH_ESTATS_H
#define FATPATH_ESTATS_H

#include "extremes.h"
#include "rate_state.h"
#include "young.h"

/*
 * Loads a field of each line of the cache that fill_sample() will read, with nothing between that waits. A walk
 * meets sockets that are in no cache: one after another, these lines are most of what it costs.
 */
static __always_inline void bring_near(const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = &tp->inet_conn;
	const struct sock *sk = &icsk->icsk_inet.sk;
	const struct cgroup *group = sk->sk_cgrp_data.cgroup;
	const struct rb_node *root = tp->out_of_order_queue.rb_node;
	u64 all = sk->sk_rcvbuf ^ sk->sk_pacing_rate ^ sk->sk_sndbuf;

	all ^= icsk->icsk_rto ^ icsk->icsk_retransmits;
	all ^= tp->max_window ^ tp->snd_wnd ^ tp->retrans_out ^ tp->segs_out ^ tp->ecn_flags;
	all ^= tp->snd_una ^ tp->bytes_received ^ tp->bytes_acked ^ tp->dsack_dups;
	all ^= tp->reord_seen ^ tp->bytes_retrans;
	all ^= tp->max_packets_out;
	barrier_var(group);
	barrier_var(root);
	barrier_var(all);
}

/* The same for what is kept of the flow. */
static __always_inline void bring_kept_near(const struct fp_estats *e)
{
	u64 all = e->flags ^ e->counted.begin_ns ^ e->counted.cong_signals;

	all ^= e->wide.segs_in ^ e->extremes.min_rto_ticks ^ e->retrans_ns;
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

static __always_inline void fill_kept(struct fp_sample *r, const struct tcp_sock *tp,
				      struct fp_estats *e)
{
	widen_all(&e->wide, tp);
	note_extremes(&e->extremes, tp, r->tcp.ca_state);
	__builtin_memcpy(&r->counted, &e->counted, sizeof(r->counted));
	__builtin_memcpy(&r->wide, &e->wide, sizeof(r->wide));
	__builtin_memcpy(&r->extremes, &e->extremes, sizeof(r->extremes));
	r->tcp.flags |= e->flags;
}

/* Of a flow of which nothing is kept, or of one that is young: its counters are the kernel's 32 bits. */
static __always_inline void fill_unkept(struct fp_sample *r, const struct tcp_sock *tp,
					const struct young *young)
{
	__builtin_memset(&r->counted, 0, sizeof(r->counted));
	__builtin_memset(&r->wide, 0, sizeof(r->wide));
	__builtin_memset(&r->extremes, 0, sizeof(r->extremes));
	widen_all(&r->wide, tp);
	if (young) {
		note_extremes(&r->extremes, tp, r->tcp.ca_state);
		r->counted.begin_ns = young->begin_ns;
		r->tcp.flags |= young->flags;
		return;
	}
	r->counted.begin_ns = r->tcp.now_ns;
	r->tcp.flags |= FP_ESTATS_ADOPTED;
}

/* What is kept of a flow; each may be NULL. `young` counts where there is no `e`. */
struct kept {
	struct fp_estats *e;
	const struct young *young;
	const struct fp_rude_flow *rude;
};

/* Fills all but `kind`, `cookie` and `now_ns`. `ca_state`: during tcp_set_ca_state() the flow has the old one still. */
static __always_inline void fill_sample(struct fp_sample *r, struct tcp_sock *tp,
					const struct met *met, const struct kept *kept,
					u32 ca_state)
{
	r->rule_id = met->rule_id;
	fill_tcp(&r->tcp, tp, kept->rude);
	r->tcp.ca_state = ca_state;
	if (met->flags & FP_FLOW_WITHHELD)
		r->tcp.flags |= FP_SAMPLE_WITHHELD;
	if (kept->e && kept->e->flags & FP_ESTATS_TRACKED)
		fill_kept(r, tp, kept->e);
	else
		fill_unkept(r, tp, kept->young);
	fill_bbr(&r->bbr, tp);
}

#endif
