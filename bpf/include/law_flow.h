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
/* A byte each, laws as law_named() numbers them: */
#define LAW_NUMBER_SHIFT 8  /* the socket's law; 0 = not known yet */
#define LAW_MEMORY_SHIFT 16 /* the law that remembers; 0 = none yet */

/* What is kept of a flow in icsk_ca_priv. */
struct law_state {
	struct cc_memory memory;
	u32 before_pause_pkts; /* cwnd, before the kernel lowered it after a pause; 0 = it did not */
	u32 flags;
};
_Static_assert(sizeof(struct law_state) <= 104, "the size of icsk_ca_priv");
_Static_assert(CC_PARAMS == FP_LAW_PARAMS, "a rule holds every parameter of a law");

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

/* A law's name as the kernel and fp_rule keep it. */
struct law_name {
	u64 text[2];
};

#define IS_CASE(law)                                                                               \
	case CC_LAW_##law: {                                                                       \
		static const char text[FP_LAW_LEN] __attribute__((aligned(8))) = "fp_" #law;       \
		const u64 *word = (const u64 *)text;                                               \
		return name->text[0] == word[0] && name->text[1] == word[1];                       \
	}
static __always_inline int is_name_of(enum cc_law law, const struct law_name *name)
{
	switch (law) {
		CC_ALL_LAWS(IS_CASE)
	default:
		return 0;
	}
}

#define NUMBER_IF_NAMED(law)                                                                       \
	if (is_name_of(CC_LAW_##law, name))                                                        \
		return CC_LAW_##law + 1;
/* The number of the law, plus 1; 0: none of ours. A global function, as grow(). */
__noinline u32 law_named(const struct law_name *name)
{
	if (!name)
		return 0;
	CC_ALL_LAWS(NUMBER_IF_NAMED)
	return 0;
}

/*
 * By probe reads, which a flow needs once: for each pointer that a struct_ops program loads through another, verifiers
 * from 6.18 on go through the names of all the kernel's types (docs/kernel.md).
 */
static __always_inline u32 number_of_law(struct tcp_sock *tp)
{
	struct law_name name = {};

	BPF_CORE_READ_INTO(&name, tp, inet_conn.icsk_ca_ops, name);
	return law_named(&name);
}

static __always_inline u32 law_number_at(struct tcp_sock *tp, u32 shift)
{
	return state_of(tp)->flags >> shift & 0xff;
}

static __always_inline void set_law_number_at(struct tcp_sock *tp, u32 shift, u32 number)
{
	state_of(tp)->flags = (state_of(tp)->flags & ~(0xffu << shift)) | number << shift;
}

/* Found out once, and kept. Where the read fails, Reno, and asked again at the next call. */
static __always_inline enum cc_law law_of(struct tcp_sock *tp)
{
	u32 number = law_number_at(tp, LAW_NUMBER_SHIFT);

	if (!number) {
		number = number_of_law(tp);
		set_law_number_at(tp, LAW_NUMBER_SHIFT, number);
	}
	return number ? number - 1 : CC_LAW_reno;
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

/* The kernel then starts with a window of 1 (RFC 5681, 3.1; RFC 6298, 5.7). */
static __always_inline int is_syn_lost(struct tcp_sock *tp)
{
	return !tp->data_segs_out && tp->snd_cwnd == 1;
}

/* Since its handshake, which tells nothing of the path any more: others may have come, or gone. */
static __always_inline int has_waited(const struct fp_flow *flow, struct tcp_sock *tp)
{
	return bpf_ktime_get_ns() - flow->seen_ns > START_ROUND_TRIPS * 125ull * tp->srtt_us;
}

/* What was learned of a path is for flows that were checked (paths.h), a rule of the policy file for all. */
static __always_inline int is_start_unchecked(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	if (!flow || flow->rule_id < FP_MAX_RULE_IDS)
		return 0;
	return !(flow->flags & FP_FLOW_AT_RATE) || has_waited(flow, tcp(sk));
}

/* What was learned of the flow's path before it began. */
static __always_inline struct cc_known_path known_path(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct cc_known_path known = {};
	struct tcp_sock *tp = tcp(sk);
	u64 pkts;

	if (!flow || !is_learned(flow->rule_id) || !tp->mss_cache)
		return known;
	pkts = flow->bdp_bytes / tp->mss_cache;
	known.bdp_pkts = pkts < CC_INFINITE_SSTHRESH ? pkts : CC_INFINITE_SSTHRESH;
	known.base_rtt_us = flow->base_rtt_us;
	return known;
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

/* A law with its parameters. */
struct law_in_use {
	cc_u32 values[CC_PARAMS];
	u32 law;      /* enum cc_law */
	u32 is_given; /* by the rule; else they are the law's initial ones */
};

/* An acknowledgement. */
struct law_ack {
	struct cc_start start;
	struct law_in_use use;
	u32 acked_pkts;
	u32 pad; /* 6.1 lets no function have an argument of which a byte was never written */
};

/* 0 = the rule's parameters are out of range. With a constant `law` its switches fold. */
static __always_inline int settle_by(enum cc_law law, struct law_in_use *use)
{
	if (use->is_given)
		return cc_law_accepts(law, use->values);
	cc_law_initial(law, use->values);
	return 1;
}

__noinline int settle(struct law_in_use *use)
{
	return use ? settle_by(use->law, use) : 0;
}

/* A global function: the verifier walks through it once, and not once for each way that leads to it. */
__noinline int grow(struct cc_window *w, const struct law_ack *ack)
{
	if (!w || !ack)
		return 0;
	cc_acked(ack->use.law, ack->use.values, &ack->start, w, ack->acked_pkts);
	return 1;
}

__noinline u32 reduce(struct cc_window *w, const struct law_in_use *use, u32 in_flight_pkts)
{
	if (!w || !use)
		return CC_MIN_SSTHRESH_PKTS;
	return cc_ssthresh(use->law, use->values, w, in_flight_pkts);
}

static __always_inline void set_window(struct tcp_sock *tp, const struct cc_window *w)
{
	tp->snd_cwnd = w->cwnd_pkts;
	tp->snd_ssthresh = w->ssthresh_pkts;
	state_of(tp)->memory = w->memory;
}

static __always_inline int gives_law(const struct fp_rule *rule)
{
	return rule && FP_IS_GIVEN(rule, FP_LAW);
}

/* The number of the law that the rule gives, plus 1; 0: none of ours. */
static __always_inline u32 number_given(const struct fp_rule *rule)
{
	struct law_name name;

	if (!gives_law(rule))
		return 0;
	__builtin_memcpy(&name, rule->law, sizeof(name));
	return law_named(&name);
}

/* They are copied before they are checked, for the map may change at any moment. */
static __always_inline void copy_values(struct law_in_use *use, const struct fp_rule *rule,
					int is_given)
{
	use->is_given = rule && is_given;
	if (use->is_given)
		__builtin_memcpy(use->values, rule->law_params, sizeof(rule->law_params));
}

/* Counted once, until they are good again. */
static __always_inline void note_values(struct tcp_sock *tp, int is_good)
{
	if (!is_good && !(state_of(tp)->flags & LAW_BAD_PARAMS))
		count(FP_COUNT_BAD_PARAMS);
	flag(tp, LAW_BAD_PARAMS, !is_good);
}

/* Its process is in a phase, and outside of it its rule gives the law of that number. */
static __always_inline int has_in_other_phase(struct sock *sk, u32 number)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	u32 rule_id;

	if (!flow || flow->phase != FP_PHASE_COLLECTIVE)
		return 0;
	rule_id = flow->rule_id;
	return number_given(bpf_map_lookup_elem(&fp_rules, &rule_id)) == number;
}

/*
 * The socket's law. Where a phase has another one than its rule, that one, by the same programs: the socket keeps the
 * name of the rule's law, and nothing that either remembers is lost to a change of TCP_CONGESTION.
 */
static __always_inline enum cc_law law_now(struct sock *sk, u32 given)
{
	enum cc_law own = law_of(tcp(sk));

	if (!given || given == own + 1 || !cc_is_window_law(given - 1) ||
	    !has_in_other_phase(sk, own + 1))
		return own;
	return given - 1;
}

/* What another law remembers means nothing to this one: the policy gave the phase another law meanwhile. */
static __always_inline void remember_as(struct tcp_sock *tp, enum cc_law law)
{
	u32 before = law_number_at(tp, LAW_MEMORY_SHIFT);

	if (before == law + 1)
		return;
	if (before)
		cc_forget_law(&state_of(tp)->memory);
	set_law_number_at(tp, LAW_MEMORY_SHIFT, law + 1);
}

static __always_inline enum cc_law take_law(struct sock *sk, u32 given)
{
	enum cc_law law = law_now(sk, given);

	remember_as(tcp(sk), law);
	return law;
}

/*
 * The flow's law, with its rule's parameters; 0 = they are out of range. A program may have chosen another law than its
 * rule, whose parameters are not for it. What it remembers is its own from here on.
 */
static __always_inline int use_law(struct sock *sk, const struct fp_rule *rule,
				   struct law_in_use *use)
{
	u32 given = number_given(rule);
	int is_good;

	use->law = take_law(sk, given);
	copy_values(use, rule, given == use->law + 1);
	is_good = settle(use);
	note_values(tcp(sk), is_good);
	return is_good;
}

#endif
