/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AIMD(a, b): the window grows by `a` segments a round trip and loses the
 * fraction `b` on a congestion event. AIMD(1, 0.5) is Reno (RFC 5681, 3.1).
 *
 * Source: Dunigan, Mathis, Tierney, "A TCP Tuning Daemon" (2002), 4.3: a = k is a
 * virtual MSS of k segments; (N, 1/(2N)) behaves as N parallel streams.
 * Long-run mean under a loss rate p: sqrt(a (2 - b) / (2 b p)) segments.
 *
 * Parameters are in thousandths: a from 10 to 10,000,000 (0.01 to 10,000
 * segments), b from 1 to 999.
 */
#ifndef FATPATH_CC_AIMD_H
#define FATPATH_CC_AIMD_H

#include "law.h"

#define CC_AIMD_UNIT 1000
#define CC_AIMD_A_MIN 10
#define CC_AIMD_A_MAX 10000000

struct cc_aimd {
	cc_u32 a_milli;
	cc_u32 b_milli;
};

static inline int cc_aimd_is_valid(const struct cc_aimd *p)
{
	return p->a_milli >= CC_AIMD_A_MIN && p->a_milli <= CC_AIMD_A_MAX && p->b_milli >= 1 &&
	       p->b_milli < CC_AIMD_UNIT;
}

/*
 * `acked_pkts` segments left the network and the flow was held back by cwnd.
 * Each segment earns a / cwnd of a segment; `credit` is in 1/1000 x 1/cwnd
 * segments, so nothing is lost to rounding between ACKs. 64 bits: 2^32 x 10^7 <
 * 2^56, and what remains after a step is below cwnd x 1000 < 2^42.
 */
static inline void cc_aimd_acked(struct cc_window *w, const struct cc_aimd *p, cc_u32 acked_pkts)
{
	cc_u64 whole, steps, room;

	if (cc_in_slow_start(w))
		acked_pkts = cc_slow_start(w, acked_pkts);
	whole = (cc_u64)w->cwnd_pkts * CC_AIMD_UNIT;
	if (!acked_pkts || !whole)
		return;
	w->credit += (cc_u64)acked_pkts * p->a_milli;
	steps = w->credit / whole;
	w->credit -= steps * whole;
	room = w->clamp_pkts > w->cwnd_pkts ? w->clamp_pkts - w->cwnd_pkts : 0;
	w->cwnd_pkts += (cc_u32)(steps < room ? steps : room);
}

/*
 * A congestion event: the slow-start threshold after it, (1 - b) of the window.
 * Credit earned at the larger window would be worth more at the smaller one.
 */
static inline cc_u32 cc_aimd_ssthresh(struct cc_window *w, const struct cc_aimd *p)
{
	cc_u32 kept = (cc_u64)w->cwnd_pkts * (CC_AIMD_UNIT - p->b_milli) / CC_AIMD_UNIT;

	w->credit = 0;
	return kept > CC_MIN_SSTHRESH_PKTS ? kept : CC_MIN_SSTHRESH_PKTS;
}

#endif
