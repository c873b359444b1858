/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AIMD(a, b): the window grows by `a` segments a round trip and loses the
 * fraction `b` on a congestion event. AIMD(1, 0.5) is Reno (RFC 5681, 3.1).
 *
 * Source: Dunigan, Mathis, Tierney, "A TCP Tuning Daemon" (2002), 4.3: a = k is a
 * virtual MSS of k segments; (N, 1/(2N)) behaves as N parallel streams.
 * Long-run mean under a loss rate p: sqrt(a (2 - b) / (2 b p)) segments.
 */
#ifndef FATPATH_CC_AIMD_H
#define FATPATH_CC_AIMD_H

#include "law.h"

#define CC_AIMD_PARAMS(P)                                                                          \
	P(a_milli, 10, 10000000, 1000, "segments added in a round trip")                           \
	P(b_milli, 1, 999, 500, "fraction of the window given up at a congestion event")
CC_PARAMS_OF(aimd, CC_AIMD_PARAMS)

CC_ALWAYS_CONSISTENT(aimd)
CC_NOTHING_TO_UNDO(aimd)
CC_HYSTART_BY_DEFAULT(aimd, 0)

static inline void cc_aimd_acked(struct cc_window *w, const struct cc_aimd *p, cc_u32 acked_pkts)
{
	cc_grow_in_round_trip(w, p->a_milli, 1000, acked_pkts);
}

static inline cc_u32 cc_aimd_ssthresh(const struct cc_window *w, const struct cc_aimd *p)
{
	return cc_part_of_window(w, 1000 - p->b_milli, 1000);
}

#endif
