/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own pacing, as the laws set it and leave it. Where sch_fq paces already, or a
 * program by SO_MAX_PACING_RATE, they go on.
 */
#ifndef FATPATH_PACING_H
#define FATPATH_PACING_H

#include "kernel.h"
#include "maps.h"

/* No faster than SO_MAX_PACING_RATE. */
static __always_inline void pace(struct sock *sk, u64 rate_bytes_per_s)
{
	u64 most = sk->sk_max_pacing_rate;

	sk->sk_pacing_rate = rate_bytes_per_s < most ? rate_bytes_per_s : most;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

static __always_inline int is_paced_by_rule(struct sock *sk)
{
	struct fp_flow *flow = bpf_sk_storage_get(&fp_flows, sk, NULL, 0);

	return flow && flow->flags & FP_FLOW_PACED;
}

/* Paced, and neither because a program asked for it nor its rule. */
static __always_inline int is_paced_by_law(struct sock *sk)
{
	return sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul &&
	       !is_paced_by_rule(sk);
}

/*
 * The time of the next segment may lie ahead. Without pacing it would leave at once and
 * still bear that time (__tcp_transmit_skb()): too short a round trip would be measured.
 * It waits for an event with no such time; at every ACK until then the kernel sets the
 * rate to more than what a window needs (tcp_update_pacing_rate()).
 */
static __always_inline void unpace(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (is_paced_by_law(sk) && tp->tcp_wstamp_ns <= tp->tcp_clock_cache)
		sk->sk_pacing_status = SK_PACING_NONE;
}

#endif
