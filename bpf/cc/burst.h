/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bound on bursts, whatever the law: the Max.Burst of SCTP (RFC 4960, 6.1 (D) and 7.2.4), by which
 * the window is no more than FlightSize and the bound. There the window stays so low; here the part
 * that is held back returns with the next ACK, which the host says by cc_end_burst_bound().
 */
#ifndef FATPATH_CC_BURST_H
#define FATPATH_CC_BURST_H

#include "law.h"

/* No more than `most_pkts` are to leave until the next ACK; 0 = no bound. A paced start is no burst. */
static inline void cc_bound_burst(struct cc_window *w, cc_u32 most_pkts, cc_u32 in_flight_pkts)
{
	cc_u64 bound_pkts = (cc_u64)in_flight_pkts + most_pkts;

	if (!most_pkts || w->memory.paced_from_pkts || w->cwnd_pkts <= bound_pkts)
		return;
	w->memory.held_back_pkts += w->cwnd_pkts - (cc_u32)bound_pkts;
	w->cwnd_pkts = (cc_u32)bound_pkts;
}

/* The next ACK, or a congestion event: the window is whole. 1 = a part of it had been held back. */
static inline int cc_end_burst_bound(struct cc_window *w)
{
	cc_u32 held_back_pkts = w->memory.held_back_pkts;

	w->cwnd_pkts += held_back_pkts;
	w->memory.held_back_pkts = 0;
	return !!held_back_pkts;
}

#endif
