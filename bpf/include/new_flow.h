/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tuned flows that have carried no data yet. Many end so, or soon: socket storage for each, two allocations and the
 * memory's accounting, would be most of what a short connection costs. Their struct fp_flow is in a table, until a law
 * sends their first data, a round trip is measured, or somebody looks at all flows. Start at claim() and keep().
 */
#ifndef FATPATH_NEW_FLOW_H
#define FATPATH_NEW_FLOW_H

#include "maps.h"

/*
 * In fp_new_flow.owner: the connection has ended, and the place is free for others. Cookies given by an interrupt while
 * its processor gives another (-1, -2 and so on) have this bit, too: no place is theirs.
 */
#define FP_NEW_ENDED (1ull << 63)

static __always_inline u64 cookie_of(const struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter;
}

/*
 * Each flow has one place, by its cookie. Each processor gives cookies in sequence, out of batches of 4096: neighbours in
 * time are neighbours here.
 */
static __always_inline struct fp_new_flow *place_of(u64 cookie)
{
	u32 place = cookie % FP_NEW_FLOWS;

	return bpf_map_lookup_elem(&fp_new_flows, &place);
}

static __always_inline struct fp_flow *new_flow_of(u64 cookie)
{
	struct fp_new_flow *place = place_of(cookie);

	return place && cookie && place->owner == cookie ? &place->flow : NULL;
}

/*
 * fp_flow.rule_id of a new flow, or of one that was new when it ended, and its flags in the upper half; of another
 * FP_NO_RULE. A global function: the verifier goes on in one way, whatever is found.
 */
__noinline u64 rule_and_flags_of(u64 cookie)
{
	struct fp_new_flow *place = place_of(cookie);

	if (!place || !cookie || (place->owner & ~FP_NEW_ENDED) != cookie)
		return FP_NO_RULE;
	return (u64)place->flow.flags << 32 | place->flow.rule_id;
}

static __always_inline int is_free(const struct fp_new_flow *place, u64 owner)
{
	if (!owner || owner & FP_NEW_ENDED)
		return 1;
	return !(place->flow.flags & FP_FLOW_ESTABLISHED) &&
	       (s64)(bpf_ktime_get_ns() - place->flow.seen_ns - FP_SYN_IS_LOST_NS) > 0;
}

/* A place for a flow that begins; NULL: none is free for it, and it has storage at once. */
static __always_inline struct fp_flow *claim(u64 cookie)
{
	struct fp_new_flow *place = place_of(cookie);
	u64 owner;

	if (!place || cookie & FP_NEW_ENDED)
		return NULL;
	owner = place->owner;
	if (owner != cookie && !is_free(place, owner))
		return NULL;
	/* Before the place is taken, and set to nothing else until the SYN is answered: nobody finds it free meanwhile. */
	place->flow.seen_ns = bpf_ktime_get_ns();
	if (owner == cookie)
		return &place->flow;
	if (__sync_val_compare_and_swap(&place->owner, owner, cookie) != owner)
		return NULL;
	/* The socket's connection before this one left what fatpath gave it. */
	if (owner == (cookie | FP_NEW_ENDED))
		return &place->flow;
	__builtin_memset(&place->flow.rule_id, 0,
			 sizeof(place->flow) - offsetof(struct fp_flow, rule_id));
	place->flow.rule_id = FP_NO_RULE;
	return &place->flow;
}

/* The connection has ended. Its socket may be used for another: until somebody else needs the place, it is its own. */
static __always_inline void end_new(u64 cookie)
{
	struct fp_new_flow *place = place_of(cookie);

	if (place && place->owner == cookie)
		__sync_val_compare_and_swap(&place->owner, cookie, cookie | FP_NEW_ENDED);
}

/* Gives a new flow, or one that was new when it ended, its storage; NULL: it is none, or there is no memory. */
static __always_inline struct fp_flow *keep(void *sk, u64 cookie)
{
	struct fp_new_flow *place = place_of(cookie);
	struct fp_flow *flow;
	u64 owner;

	if (!place || !cookie)
		return NULL;
	owner = place->owner;
	if ((owner & ~FP_NEW_ENDED) != cookie ||
	    __sync_val_compare_and_swap(&place->owner, owner, cookie) != owner)
		return NULL;
	flow = bpf_sk_storage_get(&fp_flows, sk, &place->flow, BPF_SK_STORAGE_GET_F_CREATE);
	if (flow)
		__sync_val_compare_and_swap(&place->owner, cookie, 0);
	return flow;
}

#endif
