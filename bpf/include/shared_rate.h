/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rate that the flows of a rule share ("500mbit/n"): each flow that sends, or is acknowledged, counts those that do
 * (cc/senders.h), and is given its part when their number changes. In a phase those count whose process is in it. Part of
 * laws.bpf.c. Start at follow_shared_rate().
 */
#ifndef FATPATH_SHARED_RATE_H
#define FATPATH_SHARED_RATE_H

#include "law_flow.h"
#include "phase_flow.h"
#include "settings.h"
#include "../cc/senders.h"

/* By rule and phase. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FP_MAX_RULE_IDS *FP_PHASES);
	__type(key, u32);
	__type(value, struct cc_senders);
} senders SEC(".maps");

/*
 * `sends`: a transmission begins. Otherwise the flow is acknowledged, which counts in the phase in which it sent. 1 = it has
 * another part of the rate.
 */
static __always_inline int follow_shared_rate(struct sock *sk, int sends)
{
	struct tcp_sock *tp = tcp(sk);
	struct cc_senders *those;
	struct fp_flow *flow;
	u32 phase, place, flows;

	/* Most flows end here: the rate of a rule is set. */
	if (sk->sk_max_pacing_rate == ~0ul)
		return 0;
	flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);
	if (!flow || !flow->wanted.shares_rate || !(sends || has_sent_in_phase(sk)))
		return 0;
	phase = flow->phase_given & (FP_PHASES - 1);
	place = flow->rule_id * FP_PHASES + phase;
	those = bpf_map_lookup_elem(&senders, &place);
	if (!those)
		return 0;
	flows = cc_senders_note(those, &flow->sent_in[phase], tp->tcp_clock_cache,
				tp->srtt_us >> 3);
	if (flows == flow->shared_by)
		return 0;
	flow->shared_by = flows;
	give_pacing(flow, tp, sk, &flow->wanted);
	return 1;
}

#endif
