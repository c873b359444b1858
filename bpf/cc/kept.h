/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a flow keeps of one phase of its program while the program is in another: a window that was found among
 * sixteen senders says nothing of what one sender finds alone (Matsuda et al., "TCP Adaptation for MPI on
 * Long-and-Fat Networks", 2005, 2.1 and 3.1). There the threshold alone is kept; here the window and what the law
 * remembers, too. Start with cc_change_phase().
 */
#ifndef FATPATH_CC_KEPT_H
#define FATPATH_CC_KEPT_H

#include "law.h"
#include "start.h"

/** What a flow keeps of a phase. All 0: it has not been in it yet. */
struct cc_kept {
	cc_u32 cwnd_pkts;
	cc_u32 ssthresh_pkts;
	struct cc_memory memory;
};

/* What a law remembers goes; what the start-up does, stays. */
static inline void cc_forget_law(struct cc_memory *memory)
{
	memory->credit = 0;
	memory->prior_credit = 0;
	__builtin_memset(memory->own, 0, sizeof(memory->own));
}

/* The window as it goes into storage: of a paced start no more than was tried. */
static inline void cc_keep(const struct cc_window *w, cc_u32 in_flight_pkts, struct cc_kept *kept)
{
	kept->cwnd_pkts = cc_tried_pkts(w, in_flight_pkts);
	kept->ssthresh_pkts = w->ssthresh_pkts;
	kept->memory = w->memory;
	kept->memory.paced_from_pkts = 0;
	kept->memory.held_back_pkts = 0;
}

/* The first time in a phase: as a new flow, which has sent. */
static inline void cc_begin_phase(struct cc_window *w, const struct cc_start *s,
				  cc_u32 initial_window_pkts)
{
	struct cc_memory none = { .flags = CC_BEGAN };

	w->memory = none;
	w->ssthresh_pkts =
		s->initial_ssthresh_pkts ? s->initial_ssthresh_pkts : CC_INFINITE_SSTHRESH;
	if (w->cwnd_pkts > initial_window_pkts)
		w->cwnd_pkts = initial_window_pkts;
	w->memory.undo_limit_pkts = w->cwnd_pkts;
}

/*
 * What the phase left comes back. Of its window no more than `at_once_pkts` opens now: the rest by slow start,
 * or by the paced start that is due when nothing is in flight. A spurious loss is not undone across phases: the window
 * before it was another's.
 */
static inline void cc_resume(struct cc_window *w, const struct cc_kept *kept, cc_u32 at_once_pkts)
{
	cc_u32 cwnd_pkts = kept->cwnd_pkts < w->clamp_pkts ? kept->cwnd_pkts : w->clamp_pkts;

	w->memory = kept->memory;
	w->ssthresh_pkts = kept->ssthresh_pkts;
	w->cwnd_pkts = cwnd_pkts;
	if (cwnd_pkts > at_once_pkts) {
		w->cwnd_pkts = at_once_pkts;
		if (w->ssthresh_pkts < cwnd_pkts)
			w->ssthresh_pkts = cwnd_pkts;
	}
	w->memory.undo_limit_pkts = w->cwnd_pkts;
}

/*
 * The program goes from one phase to the other, outside of recovery. `kept` is what the flow had when it left the
 * other, and afterwards what it has now. `at_once_pkts` is 1 or more.
 */
static inline void cc_change_phase(struct cc_window *w, const struct cc_start *s,
				   struct cc_kept *kept, cc_u32 in_flight_pkts, cc_u32 at_once_pkts,
				   cc_u32 initial_window_pkts)
{
	struct cc_kept leaving;

	cc_keep(w, in_flight_pkts, &leaving);
	if (kept->cwnd_pkts)
		cc_resume(w, kept, at_once_pkts);
	else
		cc_begin_phase(w, s, initial_window_pkts);
	*kept = leaving;
}

#endif
