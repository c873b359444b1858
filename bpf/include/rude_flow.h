/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is kept of a flow while it is rude (rude.bpf.c) or going polite (laws.bpf.c), and
 * how it becomes polite. Start at become_polite().
 */
#ifndef FATPATH_RUDE_FLOW_H
#define FATPATH_RUDE_FLOW_H

#include "law_flow.h"
#include "rude.h"
#include "../cc/rude.h"

struct rude_state {
	struct cc_rude rude;
	u64 looked_us;		    /* when it was last looked whether its segments are marked */
	u32 sent_pkts;		    /* data segments, then */
	u32 marked_pkts;	    /* then */
	u16 keeps_fair;		    /* F lives: the flow is rude or going polite */
	u16 begins_app_limited;	    /* nothing was in flight, and the program gave little */
	u32 app_limited_until_pkts; /* up to this count of `delivered` rate samples are the program's */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rude_state);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} fp_rude_states SEC(".maps");

static __always_inline struct rude_state *rude_state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&fp_rude_states, sk, NULL, 0);
}

/* RACK's latest is the acknowledgement's own, as long as nothing was retransmitted. */
static __always_inline struct cc_rtt rtt_of(const struct tcp_sock *tp)
{
	struct cc_rtt rtt = {
		.rtt_us = tp->rack.rtt_us,
		.acked_seq = tp->snd_una,
		.next_seq = tp->snd_nxt,
	};
	return rtt;
}

/* The law of the fair window and its parameters; Reno where the rule's are out of range, or its law sets a rate. */
static __always_inline void use_fair_law(const struct fp_rule *rule, struct law_in_use *use)
{
	u32 law = rule->rude_fair_law;

	use->law = cc_is_window_law(law) ? law : CC_LAW_reno;
	copy_values(use, rule, 1);
	if (!settle(use))
		use->law = CC_LAW_reno;
}

/* An acknowledgement of a flow with a fair window. */
struct rude_ack {
	struct law_ack law; /* acked_pkts: while going polite */
	struct cc_rtt rtt;
	struct cc_rude_now now; /* while rude */
	u32 r_pkts;		/* the artificial window and the part in use, while going polite */
	u32 used_pkts;
};

static __always_inline void fill_ack(struct rude_ack *ack, struct tcp_sock *tp,
				     const struct fp_rule *rule)
{
	ack->law.start = start_of(rule, tp);
	use_fair_law(rule, &ack->law.use);
	ack->rtt = rtt_of(tp);
}

/* cc_rude_acked() and cc_rude_shadow_acked() as global functions, as grow() of law_flow.h. */
__noinline int rude_acked(struct cc_rude *rude, const struct rude_ack *ack)
{
	if (!rude || !ack)
		return 0;
	cc_rude_acked(ack->law.use.law, ack->law.use.values, &ack->law.start, rude, &ack->now,
		      &ack->rtt);
	return 1;
}

__noinline u32 shadow_acked(struct cc_rude *rude, const struct rude_ack *ack)
{
	if (!rude || !ack)
		return 0;
	return cc_rude_shadow_acked(ack->law.use.law, ack->law.use.values, &ack->law.start, rude,
				    &ack->rtt, ack->r_pkts, ack->used_pkts, ack->law.acked_pkts);
}

/* cc_rude_shadow_ssthresh(), likewise. */
__noinline u32 shadow_ssthresh(struct cc_rude *rude, const struct law_in_use *use, u32 r_pkts)
{
	if (!rude || !use)
		return CC_MIN_SSTHRESH_PKTS;
	return cc_rude_shadow_ssthresh(use->law, use->values, rude, r_pkts);
}

static __always_inline void forget(struct rude_state *s, struct fp_rude_flow *flow)
{
	s->keeps_fair = 0;
	flow->mode = FP_POLITE;
	flow->fair_cwnd_pkts = 0;
}

/* The kernel reduces the window, and will make it snd_ssthresh at the end (tcp_end_cwnd_reduction()). */
static __always_inline int is_in_reduction(struct tcp_sock *tp)
{
	u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);

	return state == TCP_CA_CWR || state == TCP_CA_RECOVERY;
}

/* RUDE_OFF_NOW, and every way of losing permission: what is in flight drains to F. */
static __always_inline void become_polite(struct tcp_sock *tp, struct rude_state *s,
					  struct fp_rude_flow *flow)
{
	const struct cc_window *fair = &s->rude.fair;

	cc_rude_off_now(&s->rude, in_flight_pkts(tp));
	tp->snd_cwnd = fair->cwnd_pkts;
	tp->snd_ssthresh = is_in_reduction(tp) ? fair->cwnd_pkts : fair->ssthresh_pkts;
	forget(s, flow);
}

#endif
