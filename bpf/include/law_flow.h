/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow as a law sees it: its window, what is remembered of it, and what its rule
 * says. Reads and writes tcp_sock; it decides nothing. Start at window_of().
 */
#ifndef FATPATH_LAW_FLOW_H
#define FATPATH_LAW_FLOW_H

#include "kernel.h"
#include "new_flow.h"
#include "../cc/laws.h"

/* law_state.flags */
#define LAW_BAD_PARAMS 1u /* counted, until they are good again */
#define LAW_HYSTART 2u	  /* the rule wants it, when it was last read */
/* 4u is LAW_GOING_POLITE of laws.bpf.c */
#define LAW_MAX_BURST 8u  /* the rule gives it, when it was last read */
#define LAW_PHASES 32u	  /* the rule differs by phase, when it was last read: see phase_flow.h */
#define LAW_HELD_BACK 16u /* until this ACK max_burst held a part of the window back */

/* What is kept of a flow in icsk_ca_priv. */
struct law_state {
	struct cc_memory memory;
	u32 before_pause_pkts; /* cwnd, before the kernel lowered it after a pause; 0 = it did not */
	u32 flags;
};
_Static_assert(sizeof(struct law_state) <= 104, "the size of icsk_ca_priv");
_Static_assert(CC_PARAMS == FP_LAW_PARAMS, "a rule holds every parameter of a law");

/* A law's name as the kernel and fp_rule keep it. */
struct law_name {
	char text[FP_LAW_LEN];
};

/*
 * tcp_sndbuf_expand() works out 2 x cwnd x a segment's memory in an int. That memory is
 * below twice the MSS and its headers, rounded up to a power of two and struct sk_buff.
 */
#define MAX_WINDOW_BYTES (1u << 29)
#define SEGMENT_OVERHEAD_BYTES 768

/* TCP_INIT_CWND of the kernel (RFC 6928). */
#define INITIAL_WINDOW_PKTS 10

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct law_state *state_of(struct tcp_sock *tp)
{
	return (struct law_state *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline void flag(struct tcp_sock *tp, u32 flag, int is_on)
{
	u32 flags = state_of(tp)->flags;

	if (!(flags & flag) != !is_on)
		state_of(tp)->flags = flags ^ flag;
}

static __always_inline struct fp_rule *rule_of(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	u32 rule_id = flow ? flow->rule_id : rule_and_flags_of(cookie_of(tcp(sk)));

	if (flow && flow->phase == FP_PHASE_COLLECTIVE)
		return bpf_map_lookup_elem(&fp_phase_rules, &rule_id);
	return bpf_map_lookup_elem(&fp_rules, &rule_id);
}

/* A program may have chosen another law than its rule. */
static __always_inline int gives(const struct fp_rule *rule, const struct law_name *name)
{
	u64 has[2], wants[2];

	__builtin_memcpy(has, rule->law, sizeof(has));
	__builtin_memcpy(wants, name, sizeof(wants));
	return FP_IS_GIVEN(rule, FP_LAW) && has[0] == wants[0] && has[1] == wants[1];
}

static __always_inline u32 initial_ssthresh_pkts(const struct fp_rule *rule, u32 mss_bytes)
{
	u64 pkts;

	if (!rule->initial_ssthresh_bytes || !mss_bytes)
		return rule->value[FP_INITIAL_SSTHRESH];
	pkts = rule->initial_ssthresh_bytes / mss_bytes;
	if (pkts < CC_MIN_SSTHRESH_PKTS)
		return CC_MIN_SSTHRESH_PKTS;
	return pkts < CC_INFINITE_SSTHRESH ? pkts : CC_INFINITE_SSTHRESH;
}

/* Where the host's own way after a pause holds, it has been gone already. */
static __always_inline enum cc_idle idle_of(u32 after_idle)
{
	switch (after_idle) {
	case FP_IDLE_KEEP:
		return CC_IDLE_KEEP;
	case FP_IDLE_PACE:
		return CC_IDLE_PACE;
	default:
		return CC_IDLE_RESTART;
	}
}

static __always_inline struct cc_start start_of(const struct fp_rule *rule, struct tcp_sock *tp)
{
	struct cc_start start = {};

	if (!rule)
		return start;
	start.initial_rate_bps = rule->value[FP_INITIAL_RATE];
	start.max_ssthresh_pkts = rule->value[FP_MAX_SSTHRESH];
	start.initial_ssthresh_pkts = initial_ssthresh_pkts(rule, tp->mss_cache);
	start.hystart = rule->value[FP_HYSTART];
	start.idle = idle_of(rule->value[FP_AFTER_IDLE]);
	return start;
}

/*
 * RFC 5681, 4.1: RW = min(IW, cwnd). The kernel, if it restarted the window, knows the
 * IW of the route, but not that of the rule.
 */
static __always_inline u32 restart_window_pkts(const struct fp_rule *rule, u32 kernels_pkts)
{
	if (FP_IS_GIVEN(rule, FP_INITIAL_WINDOW))
		return rule->value[FP_INITIAL_WINDOW];
	return kernels_pkts ? kernels_pkts : INITIAL_WINDOW_PKTS;
}

/* tcp_is_cwnd_limited(): a window that is not used does not grow (RFC 7661). */
static __always_inline int is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline u32 max_window_pkts(struct tcp_sock *tp)
{
	u32 mss_bytes = tp->rx_opt.mss_clamp;

	if (mss_bytes < tp->mss_cache)
		mss_bytes = tp->mss_cache;
	return MAX_WINDOW_BYTES / (mss_bytes + SEGMENT_OVERHEAD_BYTES);
}

static __always_inline u32 ca_state(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

/* What max_burst held back is lost to a congestion event that the law was not told of. */
static __always_inline u32 whole_cwnd_pkts(struct tcp_sock *tp)
{
	if (ca_state(tp) > TCP_CA_DISORDER)
		return tp->snd_cwnd;
	return tp->snd_cwnd + state_of(tp)->memory.held_back_pkts;
}

/* tcp_packets_in_flight() */
static __always_inline u32 in_flight_pkts(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

static __always_inline u32 clamp_pkts(struct tcp_sock *tp)
{
	u32 most = max_window_pkts(tp);

	return tp->snd_cwnd_clamp < most ? tp->snd_cwnd_clamp : most;
}

/* Whole, whatever max_burst holds back of it. */
static __always_inline struct cc_window window_of(struct tcp_sock *tp)
{
	struct cc_window w = {
		.cwnd_pkts = whole_cwnd_pkts(tp),
		.ssthresh_pkts = tp->snd_ssthresh,
		.clamp_pkts = clamp_pkts(tp),
		.srtt_us = tp->srtt_us >> 3,
		.now_us = tp->tcp_mstamp,
		.memory = state_of(tp)->memory,
	};
	w.memory.held_back_pkts = 0;
	return w;
}

/* An acknowledgement, as the functions below get it. */
struct law_ack {
	struct cc_start start;
	cc_u32 values[CC_PARAMS];
	u32 law; /* enum cc_law */
	u32 acked_pkts;
};

/* cc_acked() as a global function: the verifier walks it once, not once for each way that leads to it. */
__noinline int grow(struct cc_window *w, const struct law_ack *ack)
{
	if (!w || !ack)
		return 0;
	cc_acked(ack->law, ack->values, &ack->start, w, ack->acked_pkts);
	return 1;
}

static __always_inline void set_window(struct tcp_sock *tp, const struct cc_window *w)
{
	tp->snd_cwnd = w->cwnd_pkts;
	tp->snd_ssthresh = w->ssthresh_pkts;
	state_of(tp)->memory = w->memory;
}

/*
 * 1 = `values` are the flow's parameters, its rule's or the law's initial ones; 0 = its
 * rule's are out of range. They are copied before they are checked, for the map may
 * change at any moment.
 */
static __always_inline int parameters(struct tcp_sock *tp, const struct fp_rule *rule,
				      enum cc_law law, const struct law_name *name,
				      cc_u32 values[CC_PARAMS])
{
	int is_good;

	if (!rule || !gives(rule, name)) {
		flag(tp, LAW_BAD_PARAMS, 0);
		cc_law_initial(law, values);
		return 1;
	}
	__builtin_memcpy(values, rule->law_params, sizeof(rule->law_params));
	is_good = cc_law_accepts(law, values);
	if (!is_good && !(state_of(tp)->flags & LAW_BAD_PARAMS))
		count(FP_COUNT_BAD_PARAMS);
	flag(tp, LAW_BAD_PARAMS, !is_good);
	return is_good;
}

#endif
