/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tuned flow: what the kernel says of it, what fatpath asked for, and what the socket has. */
#ifndef FATPATH_RECORD_H
#define FATPATH_RECORD_H

#include "rate_state.h"
#include "tcp.h"

/* Bits a second of the kernel's bytes; no bound stays none. */
static __always_inline u64 bits(u64 bytes)
{
	return bytes > ~0ull / 8 ? ~0ull : bytes * 8;
}

#define HAS_OPTION(level, option, has, own) HAS_OWN(has)
#define HAS_TIMER(level, option, has, own) HAS_OWN(has)
#define HAS_OWN(has) r->socket_has[setting] = has;
#define HAS_LAWS
#define HAS_RUDE
#define HAS_ROUTE
#define HAS_RULE
#define READ_BACK(NAME, key, unit, least, most, stage, way, forms, becomes)                        \
	{                                                                                          \
		enum { setting = FP_##NAME };                                                      \
		HAS_##way                                                                          \
	}

static __always_inline void fill_settings(struct fp_flow_record *r, struct tcp_sock *tp,
					  const struct fp_flow *flow)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->icsk_inet.sk;

	FP_SETTING_TABLE(READ_BACK)
}

static __always_inline void fill_rude(struct fp_flow_record *r, const struct fp_rude_flow *rude)
{
	r->rude_mode = rude ? rude->mode : FP_POLITE;
	r->rude_fair_cwnd_pkts = rude ? rude->fair_cwnd_pkts : 0;
	r->rude_marked_pkts = rude ? rude->marked_pkts : 0;
	r->rude_user = rude ? rude->user : 0;
}

/* Fills all but `kind` and `cookie`. */
static __always_inline void fill_record(struct fp_flow_record *r, struct tcp_sock *tp,
					const struct fp_flow *flow, const struct fp_asked *asked,
					const struct fp_rude_flow *rude)
{
	r->tcp.now_ns = bpf_ktime_get_ns();
	fill_tcp(&r->tcp, tp, rude);
	r->segments_sent = tp->segs_out;
	r->segments_received = tp->segs_in;
	r->segments_retransmitted = tp->total_retrans;
	fill_settings(r, tp, flow);
	__builtin_memcpy(&r->flow, flow, sizeof(*flow));
	if (asked)
		__builtin_memcpy(&r->asked, asked, sizeof(*asked));
	else
		__builtin_memset(&r->asked, 0, sizeof(r->asked));
	fill_rude(r, rude);
	fill_bbr(&r->bbr, tp);
}

#endif
