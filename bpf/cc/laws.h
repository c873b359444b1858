/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of laws, and what a host stack calls: cc_acked(), cc_ssthresh(),
 * cc_undo_cwnd() here; cc_begin(), cc_transmission_starts(), cc_ack_arrived(),
 * cc_rtt_sample(), cc_idle_restart() in start.h; cc_change_phase() in kept.h; cc_bound_burst(),
 * cc_end_burst_bound() in burst.h. Laws that set a pacing rate too, from samples of the delivery rate, have calls of
 * their own: rate_laws.h.
 *
 * A new law: its file is included and its name stands in CC_LAWS, or in CC_RATE_LAWS. See
 * docs/new-law.md.
 */
#ifndef FATPATH_CC_LAWS_H
#define FATPATH_CC_LAWS_H

#include "fixed.h"

/* In the kernel each law is one function, but for what is CC_CHECKED_ALONE, which wins over this. */
#ifdef __bpf__
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#endif

#include "burst.h"
#include "start.h"
#include "kept.h"
#include "reno.h"
#include "aimd.h"
#include "scalable.h"
#include "highspeed.h"
#include "cubic.h"

#define CC_LAWS(X) X(reno) X(aimd) X(scalable) X(highspeed) X(cubic)

#include "bbr.h"

#define CC_RATE_LAWS(X) X(bbr)
#define CC_ALL_LAWS(X) CC_LAWS(X) CC_RATE_LAWS(X)

#define CC_LAW_NUMBER(law) CC_LAW_##law,
enum cc_law { CC_ALL_LAWS(CC_LAW_NUMBER) CC_LAW_COUNT };

#define CC_LAW_ONE(law) +1
enum { CC_WINDOW_LAW_COUNT = 0 CC_LAWS(CC_LAW_ONE) };

/* A law of CC_LAWS, to which cc_acked() and the others below apply. */
static inline int cc_is_window_law(enum cc_law law)
{
	return (cc_u32)law < CC_WINDOW_LAW_COUNT;
}

/*
 * `values` are CC_PARAMS numbers, the parameters of the law in its own order and
 * units; those past its last are not read. With a constant `law` the switches fold.
 */
#define CC_LAW_ACCEPTS(law)                                                                        \
	case CC_LAW_##law: {                                                                       \
		const struct cc_##law *p = (const struct cc_##law *)values;                        \
		return cc_##law##_is_in_range(p) && cc_##law##_is_consistent(p);                   \
	}
static inline int cc_law_accepts(enum cc_law law, const cc_u32 *values)
{
	switch (law) {
		CC_ALL_LAWS(CC_LAW_ACCEPTS)
	default:
		return 0;
	}
}

#define CC_LAW_INITIAL(law)                                                                        \
	case CC_LAW_##law:                                                                         \
		cc_##law##_initial((struct cc_##law *)values);                                     \
		break;
static inline void cc_law_initial(enum cc_law law, cc_u32 *values)
{
	switch (law) {
		CC_ALL_LAWS(CC_LAW_INITIAL)
	default:
		break;
	}
}

#define CC_LAW_ACKED(law)                                                                          \
	case CC_LAW_##law:                                                                         \
		cc_##law##_acked(w, (const struct cc_##law *)values, acked_pkts);                  \
		break;
static inline void cc_law_acked(enum cc_law law, const cc_u32 *values, struct cc_window *w,
				cc_u32 acked_pkts)
{
	switch (law) {
		CC_LAWS(CC_LAW_ACKED)
	default:
		break;
	}
}

#define CC_LAW_SSTHRESH(law)                                                                       \
	case CC_LAW_##law:                                                                         \
		return cc_##law##_ssthresh(w, (const struct cc_##law *)values);
static inline cc_u32 cc_law_ssthresh(enum cc_law law, const cc_u32 *values, struct cc_window *w)
{
	switch (law) {
		CC_LAWS(CC_LAW_SSTHRESH)
	default:
		return 0;
	}
}

#define CC_LAW_UNDONE(law)                                                                         \
	case CC_LAW_##law:                                                                         \
		cc_##law##_undone(w);                                                              \
		break;
static inline void cc_law_undone(enum cc_law law, struct cc_window *w)
{
	switch (law) {
		CC_LAWS(CC_LAW_UNDONE)
	default:
		break;
	}
}

/*
 * `acked_pkts` segments left the network while the window was in full use, outside
 * of recovery. `values` must be accepted. A clamp that was lowered lowers the window, as
 * in tcp_cong_avoid_ai() of Linux.
 */
static inline void cc_acked(enum cc_law law, const cc_u32 *values, const struct cc_start *s,
			    struct cc_window *w, cc_u32 acked_pkts)
{
	if (cc_in_slow_start(w)) {
		w->memory.flags |= CC_SLOW_STARTED;
		acked_pkts = cc_slow_start(w, s, acked_pkts);
	}
	if (acked_pkts)
		cc_law_acked(law, values, w, acked_pkts);
	if (w->cwnd_pkts > w->clamp_pkts)
		w->cwnd_pkts = w->clamp_pkts;
}

/*
 * A congestion event: the slow-start threshold after it, of the window that was tried
 * (RFC 5681 (4): of FlightSize); `in_flight_pkts` are sent and not acknowledged. The
 * window itself is the host stack's to reduce. Credit earned at the larger window would
 * be worth more at the smaller one.
 */
static inline cc_u32 cc_ssthresh(enum cc_law law, const cc_u32 *values, struct cc_window *w,
				 cc_u32 in_flight_pkts)
{
	cc_u32 cwnd_pkts = w->cwnd_pkts, kept;
	struct cc_memory *m = &w->memory;

	w->cwnd_pkts = cc_tried_pkts(w, in_flight_pkts);
	m->undo_limit_pkts = m->paced_from_pkts ? w->cwnd_pkts : 0;
	kept = cc_law_ssthresh(law, values, w);
	w->cwnd_pkts = cwnd_pkts;
	m->prior_credit = m->credit;
	m->credit = 0;
	m->slow_start_credit = 0;
	m->hystart.prior_phase = m->hystart.phase;
	m->hystart.phase = CC_HYSTART_DONE;
	m->flags &= ~(CC_SLOW_STARTED | CC_RESUMES | CC_SPREAD);
	return kept > CC_MIN_SSTHRESH_PKTS ? kept : CC_MIN_SSTHRESH_PKTS;
}

/*
 * The loss was spurious: the window to go back to, but for the part of a paced start that
 * was not tried. What the law and HyStart++ forgot at the congestion event comes back too.
 */
static inline cc_u32 cc_undo_cwnd(enum cc_law law, struct cc_window *w, cc_u32 prior_cwnd_pkts)
{
	struct cc_memory *m = &w->memory;

	/* Else there was no congestion event, and it is not credit. */
	if (m->hystart.phase == CC_HYSTART_DONE && m->prior_credit > m->credit)
		m->credit = m->prior_credit;
	m->prior_credit = 0;
	m->hystart.phase = m->hystart.prior_phase;
	m->flags &= ~CC_SLOW_STARTED;
	cc_law_undone(law, w);
	if (m->undo_limit_pkts && prior_cwnd_pkts > m->undo_limit_pkts)
		prior_cwnd_pkts = m->undo_limit_pkts;
	return w->cwnd_pkts > prior_cwnd_pkts ? w->cwnd_pkts : prior_cwnd_pkts;
}

#ifdef __bpf__
#pragma clang attribute pop
#endif

#endif
