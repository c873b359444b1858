/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow that meets the policy becomes rude or polite, as its rule, its program and the
 * permission of rude.h say. Start at decide_rudeness(), then make_rude_or_polite().
 */
#ifndef FATPATH_RUDE_MEET_H
#define FATPATH_RUDE_MEET_H

#include "match.h"
#include "rude.h"

/* Once its segments were found without marks, a connection is polite until its end. */
static __always_inline int wants_rude(struct tcp_sock *tp, const struct fp_rude_flow *rude,
				      const struct fp_rule *rule, enum fp_stage stage)
{
	if (rude && rude->flags & FP_RUDE_UNMARKED)
		return 0;
	if (rule->value[FP_RUDENESS] == FP_RUDE_ALWAYS || (rude && rude->mode == FP_RUDE))
		return 1;
	return stage == FP_ESTABLISHED && rule->value[FP_RUDENESS] == FP_RUDE_ALLOWED &&
	       is_run_rude(tp);
}

static __always_inline int is_to_be_rude(const struct fp_flow *flow, struct tcp_sock *tp,
					 struct fp_rude_flow *rude, const struct fp_rule *rule,
					 enum fp_stage stage)
{
	struct sock *owned = &tp->inet_conn.icsk_inet.sk;

	if (rule->value[FP_RUDENESS] == FP_RUDE_NEVER || !wants_rude(tp, rude, rule, stage))
		return 0;
	if (rude && rude->mode == FP_RUDE)
		return may_stay_rude(owned, flow, rude);
	return may_be_rude(owned, flow->rule_id, rule, owner_of(owned));
}

/* Before the flow is given its law. `rude` is what is kept of it, or NULL: its caller looks that up once. */
static __always_inline void decide_rudeness(struct fp_flow *flow, struct tcp_sock *tp,
					    struct fp_rude_flow *rude, const struct fp_rule *rule,
					    enum fp_stage stage)
{
	flow->flags &= ~FP_FLOW_RUDE;
	/* A socket may be used for one connection after another. */
	if (rude && stage == FP_ESTABLISHED)
		rude->flags &= ~FP_RUDE_UNMARKED;
	/* Rudeness changed its law since the last meeting. */
	if (rude)
		read_law(tp, flow->law_set);
	if (stage != FP_BEFORE_SYN && is_to_be_rude(flow, tp, rude, rule, stage))
		flow->flags |= FP_FLOW_RUDE;
}

static __always_inline void make_rude(struct tcp_sock *tp, void *target, void *sk,
				      struct fp_rude_flow *rude, const struct fp_rule *rule)
{
	if (!rude)
		rude = bpf_sk_storage_get(&fp_rudes, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!rude) {
		count(FP_COUNT_NO_STORAGE);
		return;
	}
	if (rude->mode == FP_RUDE && has_rude_law(tp))
		return;
	become_rude(target, rule, rude, owner_of(&tp->inet_conn.icsk_inet.sk));
}

/* A flow in the transition to congestion control continues it, unless it may not any more. */
static __always_inline void make_polite(const struct fp_flow *flow, struct tcp_sock *tp,
					void *target, struct fp_rude_flow *rude,
					const struct fp_rule *rule)
{
	struct sock *owned = &tp->inet_conn.icsk_inet.sk;

	if (rude && rude->mode == FP_GOING_POLITE && !may_stay_rude(owned, flow, rude))
		stop_going_polite(target, rule, rude);
	if (rude && rude->mode == FP_RUDE)
		rude->mode = FP_POLITE;
	if (has_rude_law(tp))
		set_fair_law(target, rule, rude);
}

static __always_inline void make_rude_or_polite(const struct fp_flow *flow, struct tcp_sock *tp,
						void *target, void *sk, struct fp_rude_flow *rude,
						const struct fp_rule *rule)
{
	if (flow->flags & FP_FLOW_RUDE)
		make_rude(tp, target, sk, rude, rule);
	else
		make_polite(flow, tp, target, rude, rule);
}

/* The flow has the law that its being rude, or going polite, needs. */
static __always_inline int is_not_polite(void *sk)
{
	struct fp_rude_flow *rude = rude_of(sk);

	return rude && rude->mode != FP_POLITE;
}

#endif
