/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow follows its process from one phase to the next: its window, threshold and law memory are exchanged for
 * those of the phase that begins (cc/kept.h), and the socket is given that phase's pacing. Part of laws.bpf.c, which
 * looks whenever a transmission begins and at each ACK. Start at follow_phase().
 */
#ifndef FATPATH_PHASE_FLOW_H
#define FATPATH_PHASE_FLOW_H

#include "law_flow.h"
#include "phase.h"
#include "settings.h"

struct phase_change {
	struct cc_start start;
	u32 in_flight_pkts;
	u32 at_once_pkts;
	u32 initial_window_pkts;
};

/*
 * What is kept of the phase that the flow is not in; freed with its socket. What a change works on is here, too: on the
 * stack it would be, with exchange()'s, more than 6.1 lets a program have.
 */
struct phase_of_flow {
	struct cc_kept kept;
	u32 law_number; /* whose memory is kept, as law_named() says it */
	u32 from_seq;	/* what is sent in the phase that the flow is in begins here */
	struct cc_window window;
	struct phase_change change;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct phase_of_flow);
} kept_phases SEC(".maps");

#define PHASE_SETTINGS ((1u << FP_PACING) | (1u << FP_PACING_RATE))

/* What is kept as wanted is what take_back() undoes when the policy changes. */
static __always_inline void want_of_phase(struct fp_flow *flow, const struct fp_rule *rule)
{
	flow->wanted.given =
		(flow->wanted.given & ~PHASE_SETTINGS) | (rule->given & PHASE_SETTINGS);
	flow->wanted.value[FP_PACING] = rule->value[FP_PACING];
	flow->wanted.value[FP_PACING_RATE] = rule->value[FP_PACING_RATE];
	flow->wanted.shares_rate = rule->shares_rate;
}

/* A law of ours ends the kernel's own pacing by itself, once no rule asks for it. */
static __always_inline void give_phase(struct fp_flow *flow, struct sock *sk,
				       const struct fp_rule *rule)
{
	struct tcp_sock *tp = tcp(sk);

	if (FP_IS_GIVEN(rule, FP_PACING_RATE))
		give_pacing(flow, tp, sk, rule);
	else
		take_back_pacing(flow, tp, sk);
	if (FP_IS_GIVEN(rule, FP_PACING))
		give_own_pacing(flow, tp, sk, rule);
	else
		flow->flags &= ~(FP_FLOW_PACED | FP_FLOW_PACING_SET);
	want_of_phase(flow, rule);
}

/* Paced by the kernel the whole window may open, else no more than a new flow would send at once. */
static __always_inline u32 at_once_pkts(struct tcp_sock *tp, const struct fp_rule *rule)
{
	if (rule->given & PHASE_SETTINGS)
		return ~0u;
	return in_flight_pkts(tp) + restart_window_pkts(rule, 0);
}

/* A global function, as grow(). */
__noinline int exchange(struct cc_window *w, struct cc_kept *kept, const struct phase_change *to)
{
	if (!w || !kept || !to)
		return 0;
	cc_change_phase(w, &to->start, kept, to->in_flight_pkts, to->at_once_pkts,
			to->initial_window_pkts);
	return 1;
}

/* Without storage the flow goes on with one window for all phases. */
static __always_inline void change_window(struct sock *sk, const struct fp_rule *rule)
{
	struct phase_of_flow *of =
		bpf_sk_storage_get(&kept_phases, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = tcp(sk);
	u32 left;

	if (!of) {
		count(FP_COUNT_NO_STORAGE);
		return;
	}
	of->change.start = start_of(rule, tp);
	of->change.in_flight_pkts = in_flight_pkts(tp);
	of->change.at_once_pkts = at_once_pkts(tp, rule);
	of->change.initial_window_pkts = restart_window_pkts(rule, 0);
	of->window = window_of(tp);
	/* The kernel lowers the window after a pause before it asks: that is the next phase's affair. */
	if (state_of(tp)->before_pause_pkts)
		of->window.cwnd_pkts = state_of(tp)->before_pause_pkts;
	state_of(tp)->before_pause_pkts = 0;
	exchange(&of->window, &of->kept, &of->change);
	set_window(tp, &of->window);
	left = law_number_at(tp, LAW_MEMORY_SHIFT);
	set_law_number_at(tp, LAW_MEMORY_SHIFT, of->law_number);
	of->law_number = left;
	of->from_seq = tp->snd_nxt;
}

/* An acknowledgement may be of what the phase before sent. */
static __always_inline int has_sent_in_phase(struct sock *sk)
{
	struct phase_of_flow *of = bpf_sk_storage_get(&kept_phases, sk, NULL, 0);

	return !of || tcp(sk)->snd_nxt != of->from_seq;
}

/* Recovery ends in the phase in which the loss was found, and what is left of the window belongs to it. */
static __always_inline int may_change(struct tcp_sock *tp)
{
	return ca_state(tp) <= TCP_CA_DISORDER && tp->data_segs_out;
}

static __always_inline void follow_phase(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	struct tcp_sock *tp = tcp(sk);
	struct fp_rule *rule;
	u32 phase, before;

	if (!flow || !flow->wanted.has_phases)
		return;
	phase = phase_now(sk, tp->tcp_clock_cache);
	before = flow->phase;
	if ((phase == before && phase == flow->phase_given) || !may_change(tp))
		return;
	flow->phase = phase;
	rule = rule_of(sk);
	if (!rule)
		return;
	if (phase != before)
		change_window(sk, rule);
	flow->phase_given = phase;
	give_phase(flow, sk, rule);
}

#endif
