/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every law works on: freestanding integer C, no kernel types, no helpers,
 * no floats, so that the same file runs in the kernel, in the simulator and in
 * the transport. Windows are in segments ("pkts"), as in Linux.
 */
#ifndef FATPATH_CC_LAW_H
#define FATPATH_CC_LAW_H

typedef unsigned int cc_u32;
typedef unsigned long long cc_u64;

/* The least window after a loss that is not a timeout, RFC 5681 (4): 2 segments. */
#define CC_MIN_SSTHRESH_PKTS 2

/* The window of one flow. The host stack owns it; a law reads it and grows it. */
struct cc_window {
	cc_u32 cwnd_pkts;
	cc_u32 ssthresh_pkts;
	cc_u32 clamp_pkts; /* cwnd never grows past it */
	cc_u64 credit;	   /* growth earned but not yet a whole segment, in the law's own unit */
};

static inline int cc_in_slow_start(const struct cc_window *w)
{
	return w->cwnd_pkts < w->ssthresh_pkts;
}

/*
 * RFC 5681, 3.1, by segments acknowledged (as RFC 3465 with L unbounded, which is
 * what Linux does). Returns the acknowledged segments that slow start did not use.
 */
static inline cc_u32 cc_slow_start(struct cc_window *w, cc_u32 acked_pkts)
{
	cc_u32 room = w->ssthresh_pkts - w->cwnd_pkts;
	cc_u32 used = acked_pkts < room ? acked_pkts : room;

	w->cwnd_pkts += used;
	if (w->cwnd_pkts > w->clamp_pkts)
		w->cwnd_pkts = w->clamp_pkts;
	return acked_pkts - used;
}

#endif
