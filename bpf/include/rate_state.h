/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is kept of a flow under a law of cc/rate_laws.h, and what of it people see: rate_laws.bpf.c writes it, the list
 * of flows and the samples read it.
 */
#ifndef FATPATH_RATE_STATE_H
#define FATPATH_RATE_STATE_H

#include "abi.h"
#include "kernel.h"
#include "../cc/bbr_model.h"
#include "../cc/pace.h"

/* The flow as its law knows it, and how late the kernel sends what the law asks for. */
struct rate_socket {
	struct cc_rate_flow flow;
	struct cc_pace pace;
};

/* icsk_ca_priv does not hold it. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rate_socket);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rate_flows SEC(".maps");

static __always_inline struct cc_rate_flow *rate_flow_of(struct sock *sk)
{
	struct rate_socket *socket = bpf_sk_storage_get(&fp_rate_flows, sk, NULL, 0);

	return socket ? &socket->flow : NULL;
}

/* `f` is rate_flow_of()'s: the first member of what the socket has. */
static __always_inline struct cc_pace *pace_of(struct cc_rate_flow *f)
{
	return &((struct rate_socket *)f)->pace;
}

static __always_inline int is_bbr(const struct tcp_sock *tp)
{
	static const char name[8] = "fp_bbr";

	return *(const u64 *)tp->inet_conn.icsk_ca_ops->name == *(const u64 *)name;
}

/* Of a flow under another law all is 0. */
static __always_inline void fill_bbr(struct fp_bbr *r, struct tcp_sock *tp)
{
	struct cc_rate_flow *f = is_bbr(tp) ? rate_flow_of((struct sock *)tp) : NULL;
	struct cc_bbr_state *b;

	__builtin_memset(r, 0, sizeof(*r));
	if (!f)
		return;
	b = cc_bbr_of(f);
	r->phase = b->phase + 1;
	r->bw = b->bw;
	r->max_bw = cc_bbr_max_bw(b);
	r->bw_shortterm = b->bw_shortterm;
	r->min_rtt_us = b->min_rtt_us;
	r->inflight_longterm_pkts = b->inflight_longterm_pkts;
	r->inflight_shortterm_pkts = b->inflight_shortterm_pkts;
}

#endif
