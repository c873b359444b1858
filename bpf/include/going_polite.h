/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RUDE_OFF_NICELY: the flow has the law of its fair window F and the kernel's recovery, but
 * still the artificial window R, from which it goes down to F: every increase and decrease
 * is F's, applied to both (Table 1 of the paper). Its segments stay marked until the two
 * are close. Whoever loses permission meanwhile has F at once, or at the next ACK.
 *
 * Start at going_polite_acked().
 */
#ifndef FATPATH_GOING_POLITE_H
#define FATPATH_GOING_POLITE_H

#include "rude_flow.h"

static __always_inline int is_going_polite(struct sock *sk)
{
	struct fp_rude_flow *rude = rude_of(sk);

	return rude && rude->mode == FP_GOING_POLITE;
}

/*
 * The window from here on: F, or less where the kernel has lowered R below it. A flow
 * that is rude again goes on with the same F.
 */
static __always_inline void end_going_polite(struct sock *sk)
{
	struct fp_rude_flow *rude = rude_of(sk);
	struct rude_state *s = rude_state_of(sk);
	struct tcp_sock *tp = tcp(sk);
	u32 cwnd_pkts = tp->snd_cwnd;

	if (!rude || !s || !s->keeps_fair || rude->mode == FP_RUDE)
		return;
	become_polite(tp, s, rude);
	if (tp->snd_cwnd > cwnd_pkts)
		tp->snd_cwnd = cwnd_pkts;
}

static __always_inline int may_go_on(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct fp_rude_flow *rude = rude_of(sk);

	return rude && rude->mode == FP_GOING_POLITE && may_stay_rude(sk, flow, rude);
}

static __always_inline u32 converged_milli(const struct fp_rule *rule)
{
	u32 milli = rule->value[FP_RUDE_CONVERGED];

	return milli ? milli : FP_RUDE_CONVERGED_MILLI;
}

/* The part of R that is in use: all of it if it holds the flow back. */
static __always_inline u32 used_pkts(struct tcp_sock *tp)
{
	if (is_cwnd_limited(tp) || tp->max_packets_out > tp->snd_cwnd)
		return tp->snd_cwnd;
	return tp->max_packets_out;
}

/* R and F grow, F as its law has it. 1 = they are close. */
static __always_inline int grow_both(struct tcp_sock *tp, struct cc_rude *rude,
				     const struct fp_rule *rule, u32 acked_pkts)
{
	u32 r_pkts = tp->snd_cwnd, used = used_pkts(tp), grown_pkts;
	struct rude_ack ack = { .r_pkts = r_pkts, .used_pkts = used };

	fill_ack(&ack, tp, rule);
	ack.law.acked_pkts = acked_pkts;
	rude->fair.clamp_pkts = clamp_pkts(tp);
	rude->fair.srtt_us = tp->srtt_us >> 3;
	rude->fair.now_us = tp->tcp_mstamp;
	grown_pkts = shadow_acked(rude, &ack);
	tp->snd_cwnd = grown_pkts;
	if (grown_pkts > r_pkts)
		used += grown_pkts - r_pkts;
	return cc_rude_has_converged(used, rude->fair.cwnd_pkts, converged_milli(rule));
}

/* In the place of cc_acked(). 0 = the flow is polite from here on. */
static __always_inline int going_polite_acked(struct sock *sk, u32 acked_pkts)
{
	struct rude_state *s = rude_state_of(sk);
	struct fp_rude_flow *rude = rude_of(sk);
	struct fp_rule *rule = rule_of(sk);

	if (!s || !rude || !rule || !may_go_on(sk) ||
	    grow_both(tcp(sk), &s->rude, rule, acked_pkts)) {
		end_going_polite(sk);
		return 0;
	}
	rude->fair_cwnd_pkts = s->rude.fair.cwnd_pkts;
	return 1;
}

/* In the place of cc_ssthresh(). */
static __always_inline u32 going_polite_ssthresh(struct sock *sk)
{
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule = rule_of(sk);
	struct tcp_sock *tp = tcp(sk);
	struct law_in_use use = {};

	if (!s || !rule)
		return tp->snd_cwnd > 2 * CC_MIN_SSTHRESH_PKTS ? tp->snd_cwnd / 2
							       : CC_MIN_SSTHRESH_PKTS;
	use_fair_law(rule, &use);
	return shadow_ssthresh(&s->rude, &use, tp->snd_cwnd);
}

static __always_inline void going_polite_undone(struct sock *sk)
{
	struct rude_state *s = rude_state_of(sk);
	struct fp_rule *rule = rule_of(sk);
	struct law_in_use use = {};

	if (!s || !rule)
		return;
	use_fair_law(rule, &use);
	cc_rude_undone(use.law, &s->rude);
}

#endif
