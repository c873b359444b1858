/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many flows of a group send, and what each has of a rate that they share. Each that sends or is acknowledged
 * stands once in a window of time, and what two windows back counted is gone. So nothing is taken off when a flow ends,
 * and none is left when its end was not seen. Several processors may call it for one group at once. Start at
 * cc_senders_note().
 */
#ifndef FATPATH_CC_SENDERS_H
#define FATPATH_CC_SENDERS_H

#include "law.h"

/* On top of the longest round trip, within which each flow that sends is acknowledged: half of the least RTO. */
#define CC_SENDERS_WINDOW_NS 100000000ull
/* What a peer that delays acknowledgements can make of a round trip. */
#define CC_SENDERS_MOST_RTT_US 1000000
/* 100 kbit/s: a full segment takes no longer than the least RTO. */
#define CC_LEAST_SHARE_BYTES_PER_S 12500

/** The flows of a group that send. All 0 before the first. */
struct cc_senders {
	cc_u64 began_ns;	 /* the present window of time */
	cc_u64 window_and_flows; /* its number in the upper half, flows that stand in it in the lower */
	cc_u32 flows_before;	 /* those of the window before; so the next but one */
	cc_u32 longest_rtt_us;
	cc_u32 longest_rtt_before_us;
	cc_u32 pad;
};

static inline cc_u64 cc_senders_window_ns(const struct cc_senders *s)
{
	cc_u32 now_us = s->longest_rtt_us, before_us = s->longest_rtt_before_us;

	return CC_SENDERS_WINDOW_NS + (now_us > before_us ? now_us : before_us) * 1000ull;
}

/* The first that comes after a window's end begins the next. An event's time may be a little before the latest. */
static inline void cc_senders_go_on(struct cc_senders *s, cc_u64 now_ns)
{
	cc_u64 began_ns = s->began_ns, lasts_ns = cc_senders_window_ns(s), next, was;
	int is_next;

	if ((long long)(now_ns - began_ns) < (long long)lasts_ns ||
	    __sync_val_compare_and_swap(&s->began_ns, began_ns, now_ns) != began_ns)
		return;
	is_next = now_ns - began_ns < 2 * lasts_ns;
	next = ((s->window_and_flows >> 32) + 1) << 32;
	was = __sync_lock_test_and_set(&s->window_and_flows, next);
	s->flows_before = is_next ? (cc_u32)was : 0;
	s->longest_rtt_before_us = is_next ? s->longest_rtt_us : 0;
	s->longest_rtt_us = 0;
}

/*
 * A flow sends, or what it sent is acknowledged. `*counted_in` is the flow's own, 0 at first. Answers how many send, this
 * one too.
 */
static inline cc_u32 cc_senders_note(struct cc_senders *s, cc_u32 *counted_in, cc_u64 now_ns,
				     cc_u32 rtt_us)
{
	cc_u32 flows, before;

	cc_senders_go_on(s, now_ns);
	if (rtt_us > CC_SENDERS_MOST_RTT_US)
		rtt_us = CC_SENDERS_MOST_RTT_US;
	if (rtt_us > s->longest_rtt_us)
		s->longest_rtt_us = rtt_us;
	if (*counted_in != (cc_u32)(s->window_and_flows >> 32))
		*counted_in = __sync_fetch_and_add(&s->window_and_flows, 1) >> 32;
	flows = s->window_and_flows;
	before = s->flows_before;
	flows = flows > before ? flows : before;
	return flows ? flows : 1;
}

/* What each of so many flows has of a rate that they share. 0: it has not sent yet, and is taken to be alone. */
static inline cc_u64 cc_share_of_rate(cc_u64 bytes_per_s, cc_u32 flows)
{
	cc_u64 share;

	if (flows < 2)
		return bytes_per_s;
	share = bytes_per_s / flows;
	if (share >= CC_LEAST_SHARE_BYTES_PER_S)
		return share;
	return bytes_per_s < CC_LEAST_SHARE_BYTES_PER_S ? bytes_per_s : CC_LEAST_SHARE_BYTES_PER_S;
}

#endif
