/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows that are sampled and of which nothing was to be counted yet. Many end so: socket storage for each would be
 * most of what a short connection costs. A flow gets its storage at the first event that counts. Start at
 * become_young() and grow_up().
 */
#ifndef FATPATH_YOUNG_H
#define FATPATH_YOUNG_H

#include "choose.h"

/* What struct fp_estats of such a flow would hold, and whose it is. */
struct young {
	u64 cookie; /* of the socket; 0: nobody's */
	u64 begin_ns;
	u32 generation;
	u32 flags;
};

#define YOUNG_FLOWS 16384

/*
 * Each flow has one place, by its cookie. Each processor gives cookies in sequence, out of batches of 4096: neighbours in
 * time are neighbours here.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, YOUNG_FLOWS);
	__type(key, u32);
	__type(value, struct young);
} young_flows SEC(".maps");

static __always_inline struct young *young_at(u64 cookie)
{
	u32 place = cookie % YOUNG_FLOWS;

	return bpf_map_lookup_elem(&young_flows, &place);
}

static __always_inline void begin(struct fp_estats *e, const struct young *young)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->sampled_ns = young->begin_ns;
	e->due_ns = young->begin_ns;
	e->counted.begin_ns = young->begin_ns;
	e->generation = young->generation;
	e->flags = young->flags;
}

/* 0: its place is another flow's, which is young still. */
static __always_inline int become_young(const struct young *young)
{
	struct young *place = young_at(young->cookie);

	if (!place || __sync_val_compare_and_swap(&place->cookie, 0, young->cookie))
		return 0;
	place->begin_ns = young->begin_ns;
	place->generation = young->generation;
	place->flags = young->flags;
	return 1;
}

/* 1 and what was kept of the flow, which is young no longer; 0: it was not. */
static __always_inline int grow_up(u64 cookie, struct young *young)
{
	struct young *place = young_at(cookie);

	if (!place || place->cookie != cookie)
		return 0;
	*young = *place;
	/* Whoever finds the place free finds that it was read. */
	__sync_val_compare_and_swap(&place->cookie, cookie, 0);
	return 1;
}

/* Storage for what is kept of a flow that is counted already; without it the flow is counted no more. */
static __always_inline struct fp_estats *store(void *sk, struct tcp_sock *tp, struct young *young)
{
	struct fp_estats *e = bpf_sk_storage_get(&fp_estats, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!e) {
		release(&young->flags, tp);
		count(FP_COUNT_UNSAMPLED_NO_STORAGE);
		return NULL;
	}
	/* A passive opening with data in its SYN (TCP Fast Open) is walked by before it is established. */
	release(&e->flags, tp);
	begin(e, young);
	return e;
}

#endif
