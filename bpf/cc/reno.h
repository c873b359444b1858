/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reno, RFC 5681, 3.1: a segment a round trip, half of the window at a congestion
 * event. No parameters. Below their thresholds scalable.h and highspeed.h are Reno.
 */
#ifndef FATPATH_CC_RENO_H
#define FATPATH_CC_RENO_H

#include "law.h"

#define CC_RENO_PARAMS(P)
CC_PARAMS_OF(reno, CC_RENO_PARAMS)

CC_ALWAYS_CONSISTENT(reno)
CC_NOTHING_TO_UNDO(reno)
CC_HYSTART_BY_DEFAULT(reno, 0)

/* RFC 5681, 3.1 (2), with appropriate byte counting (RFC 3465). */
static inline void cc_reno_acked(struct cc_window *w, const struct cc_reno *p, cc_u32 acked_pkts)
{
	(void)p;
	cc_grow_in_round_trip(w, 1, 1, acked_pkts);
}

/* RFC 5681, 3.1 (4), of cwnd instead of FlightSize, as Linux. */
static inline cc_u32 cc_reno_ssthresh(const struct cc_window *w, const struct cc_reno *p)
{
	(void)p;
	return w->cwnd_pkts / 2;
}

#endif
