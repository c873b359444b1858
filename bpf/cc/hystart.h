/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HyStart++ (RFC 9406): the first slow start ends when the round-trip time rises,
 * before the queue overflows. cc_hystart_check() and cc_hystart_meets_others()
 * say what differs from the RFC.
 */
#ifndef FATPATH_CC_HYSTART_H
#define FATPATH_CC_HYSTART_H

#include "law.h"

/* RFC 9406, 4.3. */
#define CC_HYSTART_MIN_RTT_THRESH_US 4000
#define CC_HYSTART_MAX_RTT_THRESH_US 16000
#define CC_HYSTART_MIN_RTT_DIVISOR 8
#define CC_HYSTART_N_RTT_SAMPLE 8
#define CC_HYSTART_CSS_GROWTH_DIVISOR 4
#define CC_HYSTART_CSS_ROUNDS 5

/* Linux's hystart_low_window: with fewer segments a delay that goes on to rise is others'. */
#define CC_HYSTART_LOW_WINDOW_PKTS 16

enum cc_hystart_phase {
	CC_HYSTART_SLOW_START,
	CC_HYSTART_CSS,	 /* conservative slow start: was the rise real? */
	CC_HYSTART_DONE, /* congestion was met: only the first slow start is watched (4.3) */
};

static inline cc_u64 cc_hystart_divisor(const struct cc_hystart *h, cc_u32 on)
{
	return on && h->phase == CC_HYSTART_CSS ? CC_HYSTART_CSS_GROWTH_DIVISOR : 1;
}

/* There was no congestion event yet. */
static inline void cc_hystart_ends(struct cc_window *w)
{
	w->memory.hystart.phase = CC_HYSTART_DONE;
	w->memory.prior_credit = 0;
}

/* Slow start is over. */
static inline void cc_hystart_leaves(struct cc_window *w)
{
	cc_hystart_ends(w);
	w->ssthresh_pkts = w->cwnd_pkts;
}

/* From now on what is in flight left paced. */
static inline void cc_hystart_is_spread(struct cc_window *w)
{
	w->memory.flags |= CC_SPREAD;
	if (w->memory.hystart.phase != CC_HYSTART_DONE)
		w->memory.prior_credit = 0;
}

/* After a pause the delay of before tells nothing of a rise. */
static inline void cc_hystart_restarts(struct cc_window *w)
{
	if (w->memory.hystart.phase != CC_HYSTART_DONE)
		w->memory.hystart = (struct cc_hystart){};
}

static inline void cc_hystart_round_ends(struct cc_window *w, cc_u32 next_seq)
{
	struct cc_hystart *h = &w->memory.hystart;

	h->last_min_rtt_us = h->min_rtt_us;
	h->min_rtt_us = 0;
	h->samples = 0;
	h->round_end_seq = next_seq;
	if (h->phase == CC_HYSTART_CSS && ++h->css_rounds >= CC_HYSTART_CSS_ROUNDS)
		cc_hystart_leaves(w);
}

/* RttThresh of 4.2: an eighth of the last round's minimum, 4 to 16 ms. */
static inline cc_u32 cc_hystart_threshold_us(cc_u32 last_min_rtt_us)
{
	cc_u32 threshold_us = last_min_rtt_us / CC_HYSTART_MIN_RTT_DIVISOR;

	if (threshold_us < CC_HYSTART_MIN_RTT_THRESH_US)
		return CC_HYSTART_MIN_RTT_THRESH_US;
	if (threshold_us > CC_HYSTART_MAX_RTT_THRESH_US)
		return CC_HYSTART_MAX_RTT_THRESH_US;
	return threshold_us;
}

/* Above a round's minimum, this much is a queue. */
static inline int cc_hystart_has_risen(cc_u32 min_rtt_us, cc_u32 from_us)
{
	return min_rtt_us >= (cc_u64)from_us + cc_hystart_threshold_us(from_us);
}

/*
 * Other than in the RFC, conservative slow start ends when the delay rises once more by as much.
 * The window grows by a quarter a round trip then, so that bursts are no longer taken for a queue;
 * and five such rounds, at three times the window, overflow a queue that others fill, too.
 */
static inline void cc_hystart_check(struct cc_window *w)
{
	struct cc_hystart *h = &w->memory.hystart;

	if (h->phase == CC_HYSTART_CSS) {
		if (h->min_rtt_us < h->css_min_rtt_us)
			h->phase = CC_HYSTART_SLOW_START;
		else if (w->cwnd_pkts >= CC_HYSTART_LOW_WINDOW_PKTS &&
			 cc_hystart_has_risen(h->min_rtt_us, h->css_min_rtt_us))
			cc_hystart_leaves(w);
	} else if (h->last_min_rtt_us && cc_hystart_has_risen(h->min_rtt_us, h->last_min_rtt_us)) {
		h->css_min_rtt_us = h->min_rtt_us;
		h->css_rounds = 0;
		h->phase = CC_HYSTART_CSS;
	}
}

/* Beside others a flow goes on with so much of what the path holds: docs/gap.md has what CUBIC takes there. */
#define CC_SHARE_BESIDE_OTHERS 4

/*
 * Whether a queue is others': the window is not so large that it may fill the path itself, and not so small that nobody would
 * feel it. What is acknowledged left with half of the window in flight.
 */
static inline int cc_hystart_can_tell_others(const struct cc_window *w,
					     const struct cc_known_path *known)
{
	cc_u32 low_pkts = known->bdp_pkts / CC_SHARE_BESIDE_OTHERS / 2;

	return known->bdp_pkts && w->cwnd_pkts >= CC_HYSTART_LOW_WINDOW_PKTS &&
	       w->cwnd_pkts >= low_pkts && w->cwnd_pkts <= known->bdp_pkts - known->bdp_pkts / 4;
}

/*
 * A window that leaves at once makes a queue of its own, which the first segments of a round do not meet. All of the round before
 * met one, too: acknowledgements that come late together make no whole round late.
 */
static inline int cc_hystart_rounds_meet_queue(const struct cc_window *w, cc_u32 base_rtt_us)
{
	const struct cc_hystart *h = &w->memory.hystart;

	return h->samples == CC_HYSTART_N_RTT_SAMPLE && h->last_min_rtt_us &&
	       cc_hystart_has_risen(h->last_min_rtt_us, base_rtt_us) &&
	       cc_hystart_has_risen(h->min_rtt_us, base_rtt_us);
}

/* Paced, all that arrives for an eighth of the base RTT tells as much: others' queue grows within a round of some samples. */
static inline int cc_hystart_spread_meets_queue(struct cc_window *w, cc_u32 rtt_us,
						cc_u32 base_rtt_us)
{
	cc_u64 *since_us = &w->memory.prior_credit;

	if (!cc_hystart_has_risen(rtt_us, base_rtt_us))
		*since_us = 0;
	else if (!*since_us)
		*since_us = w->now_us;
	return *since_us && w->now_us - *since_us >= base_rtt_us / 8 &&
	       w->memory.hystart.samples == CC_HYSTART_N_RTT_SAMPLE;
}

static inline int cc_hystart_meets_others(struct cc_window *w, const struct cc_known_path *known,
					  cc_u32 rtt_us)
{
	if (!cc_hystart_can_tell_others(w, known))
		return 0;
	if (w->memory.flags & CC_SPREAD)
		return cc_hystart_spread_meets_queue(w, rtt_us, known->base_rtt_us);
	return cc_hystart_rounds_meet_queue(w, known->base_rtt_us);
}

/* HyStart watches no window below its low one. */
static inline void cc_hystart_makes_way(struct cc_window *w, const struct cc_known_path *known)
{
	cc_u32 share_pkts = known->bdp_pkts / CC_SHARE_BESIDE_OTHERS;

	if (share_pkts < CC_HYSTART_LOW_WINDOW_PKTS)
		share_pkts = CC_HYSTART_LOW_WINDOW_PKTS;
	cc_hystart_ends(w);
	if (w->ssthresh_pkts > share_pkts)
		w->ssthresh_pkts = share_pkts;
	if (w->cwnd_pkts > w->ssthresh_pkts)
		w->cwnd_pkts = w->ssthresh_pkts;
}

/*
 * An acknowledgement with a round-trip time in slow start. All below `acked_seq` is
 * acknowledged, `next_seq` is the next to be sent (SND.UNA, SND.NXT, in any unit):
 * a round ends when what was sent at its beginning is acknowledged.
 */
static inline void cc_hystart_sample(struct cc_window *w, const struct cc_known_path *known,
				     cc_u32 rtt_us, cc_u32 acked_seq, cc_u32 next_seq)
{
	struct cc_hystart *h = &w->memory.hystart;

	if (h->phase == CC_HYSTART_DONE || !rtt_us)
		return;
	if (!h->min_rtt_us || (int)(acked_seq - h->round_end_seq) >= 0)
		cc_hystart_round_ends(w, next_seq);
	if (!h->min_rtt_us || rtt_us < h->min_rtt_us)
		h->min_rtt_us = rtt_us;
	if (h->samples < CC_HYSTART_N_RTT_SAMPLE)
		h->samples++;
	if (cc_hystart_meets_others(w, known, rtt_us))
		cc_hystart_makes_way(w, known);
	else if (h->samples == CC_HYSTART_N_RTT_SAMPLE)
		cc_hystart_check(w);
}

#endif
