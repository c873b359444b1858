/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scalable TCP: each acknowledged segment adds `a` of a segment, a congestion event
 * takes the fraction `b` of the window, so the time to recover does not depend on
 * the window: log(1 - b) / log(1 + a) round trips, 13.4 with the initial values.
 *
 * Source: Kelly, "Implementation issues for high-speed TCPs" (2003), "The Scalable
 * TCP algorithm" and "Fairness": at or below the legacy window it is Reno.
 */
#ifndef FATPATH_CC_SCALABLE_H
#define FATPATH_CC_SCALABLE_H

#include "reno.h"

#define CC_SCALABLE_PARAMS(P)                                                                      \
	P(a_micro, 1, 1000000, 10000, "segments added for each acknowledged one")                  \
	P(b_milli, 1, 999, 125, "fraction of the window given up at a congestion event")           \
	P(legacy_window_pkts, 1, 1 << 20, 16, "segments: up to this window it is Reno")
CC_PARAMS_OF(scalable, CC_SCALABLE_PARAMS)

CC_ALWAYS_CONSISTENT(scalable)
CC_NOTHING_TO_UNDO(scalable)
CC_HYSTART_BY_DEFAULT(scalable, 0)

/* Credit is in 10^-6 segments; below the legacy window in Reno's unit. */
static inline void cc_scalable_acked(struct cc_window *w, const struct cc_scalable *p,
				     cc_u32 acked_pkts)
{
	if (w->cwnd_pkts <= p->legacy_window_pkts)
		cc_reno_acked(w, 0, acked_pkts);
	else
		cc_grow(w, (cc_u64)acked_pkts * p->a_micro, 1000000);
}

static inline cc_u32 cc_scalable_ssthresh(const struct cc_window *w, const struct cc_scalable *p)
{
	if (w->cwnd_pkts <= p->legacy_window_pkts)
		return cc_reno_ssthresh(w, 0);
	return cc_part_of_window(w, 1000 - p->b_milli, 1000);
}

#endif
