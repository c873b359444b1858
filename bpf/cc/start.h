/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all laws share while the window is below the slow-start threshold, at the
 * beginning of a flow and after a pause: slow start (RFC 5681), limited slow start
 * (RFC 3742), and pacing at start-up (Matsuda et al., "TCP Adaptation for MPI on
 * Long-and-Fat Networks", 2005, 3.2). Start with cc_slow_start().
 */
#ifndef FATPATH_CC_START_H
#define FATPATH_CC_START_H

#include "fixed.h"
#include "hystart.h"

/* What becomes of the window in a pause longer than the RTO. */
enum cc_idle {
	CC_IDLE_RESTART, /* it decays to the initial window (RFC 2861), and slow start follows */
	CC_IDLE_KEEP,	 /* it stays */
	CC_IDLE_PACE,	 /* a paced start, here and whenever nothing is in flight below ssthresh */
	CC_IDLES,
};

/* How a flow starts. All 0 = as Linux does. */
struct cc_start {
	cc_u64 initial_rate_bps;      /* bits a second of the first paced start; 0 = slow start */
	cc_u32 max_ssthresh_pkts;     /* limited slow start beyond it; 0 = never */
	cc_u32 initial_ssthresh_pkts; /* 0 = none */
	cc_u32 idle;		      /* enum cc_idle */
	cc_u32 hystart;		      /* 1 = slow start ends when the delay rises (hystart.h) */
	struct cc_known_path known;
};

/* A paced start that goes on while the peer's window opens lasts no longer than so many round trips. */
#define CC_RESUME_ROUND_TRIPS 5

static inline int cc_in_slow_start(const struct cc_window *w)
{
	return w->cwnd_pkts < w->ssthresh_pkts;
}

static inline int cc_has_ssthresh(const struct cc_window *w)
{
	return w->ssthresh_pkts < CC_INFINITE_SSTHRESH;
}

/* The connection is established and nothing was sent. */
static inline void cc_begin(struct cc_window *w, const struct cc_start *s)
{
	if (s->initial_ssthresh_pkts)
		w->ssthresh_pkts = s->initial_ssthresh_pkts;
}

/*
 * The segments that have to be acknowledged for the window to grow by one. RFC 3742:
 * K = int(cwnd / (0.5 max_ssthresh)) past max_ssthresh; RFC 9406, 4.2: 4 in CSS.
 */
static inline cc_u64 cc_slow_start_divisor(const struct cc_window *w, const struct cc_start *s)
{
	cc_u64 k = 1;

	if (s->max_ssthresh_pkts && w->cwnd_pkts > s->max_ssthresh_pkts)
		k = 2 * (cc_u64)w->cwnd_pkts / s->max_ssthresh_pkts;
	return k * cc_hystart_divisor(&w->memory.hystart, s->hystart);
}

/*
 * Up to `until_pkts`, by 1 / k of `acked_pkts`; what is below a segment is kept.
 * Returns the acknowledged segments that were not used: none when k > 1.
 */
static inline cc_u32 cc_slow_start_until(struct cc_window *w, cc_u64 k, cc_u64 until_pkts,
					 cc_u32 acked_pkts)
{
	cc_u64 room = until_pkts > w->cwnd_pkts ? until_pkts - w->cwnd_pkts : 0;
	cc_u64 fraction =
		(((cc_u64)acked_pkts << 32) / k) + (k > 1 ? w->memory.slow_start_credit : 0);
	cc_u64 steps = fraction >> 32;
	cc_u32 left = k == 1 && acked_pkts > room ? acked_pkts - (cc_u32)room : 0;

	if (k > 1)
		w->memory.slow_start_credit = (cc_u32)fraction;
	w->cwnd_pkts += (cc_u32)(steps < room ? steps : room);
	return left;
}

/*
 * By segments acknowledged (RFC 3465 with L unbounded, as Linux does). Returns the
 * acknowledged segments that slow start did not use.
 */
CC_CHECKED_ALONE cc_u32 cc_slow_start(struct cc_window *w, const struct cc_start *s,
				      cc_u32 acked_pkts)
{
	cc_u32 top;
	cc_u64 limit;

	if (!w || !s)
		return 0;
	top = w->clamp_pkts < w->ssthresh_pkts ? w->clamp_pkts : w->ssthresh_pkts;
	limit = (cc_u64)s->max_ssthresh_pkts + 1;
	if (s->max_ssthresh_pkts && w->cwnd_pkts < limit && limit < top) {
		acked_pkts = cc_slow_start_until(w, cc_slow_start_divisor(w, s), limit, acked_pkts);
		if (!acked_pkts)
			return 0;
	}
	return cc_slow_start_until(w, cc_slow_start_divisor(w, s), top, acked_pkts);
}

/* value x factor / divisor, or all ones where that does not fit. */
static inline cc_u64 cc_scaled(cc_u64 value, cc_u32 factor, cc_u32 divisor)
{
	cc_u64 whole = value / divisor, rest = value % divisor;

	if (factor && whole > ~0ull / factor / 2)
		return ~0ull;
	return whole * factor + rest * factor / divisor;
}

/* The first threshold: what fills the path at the initial rate, and no less than after a loss. */
static inline cc_u32 cc_initial_target_pkts(cc_u64 rate_bps, cc_u32 srtt_us, cc_u32 mss_bytes)
{
	cc_u64 target = cc_scaled(rate_bps / 8, srtt_us, 1000000) / mss_bytes;

	if (target < CC_MIN_SSTHRESH_PKTS)
		return CC_MIN_SSTHRESH_PKTS;
	return target < CC_INFINITE_SSTHRESH ? (cc_u32)target : CC_INFINITE_SSTHRESH - 1;
}

/* The window that a paced start after a pause would go to; 0 = none is wanted. */
static inline cc_u32 cc_pace_target(const struct cc_window *w, const struct cc_start *s)
{
	if (s->idle != CC_IDLE_PACE)
		return 0;
	return cc_has_ssthresh(w) ? w->ssthresh_pkts : w->memory.resume_pkts;
}

/*
 * The window of a first paced start, which is the threshold, too, where none is known that is higher: then slow start
 * goes on to that one after the paced start. So a flow can start at half of the rate that the path had (RFC 9959:
 * no more than half of what is known is to be used before it is validated) and still find the other half fast.
 */
static inline cc_u32 cc_first_target(struct cc_window *w, const struct cc_start *s, cc_u32 srtt_us,
				     cc_u32 mss_bytes)
{
	cc_u32 target = cc_initial_target_pkts(s->initial_rate_bps, srtt_us, mss_bytes);

	w->ssthresh_pkts = target;
	if (s->initial_ssthresh_pkts > target) {
		w->ssthresh_pkts = s->initial_ssthresh_pkts;
		w->memory.flags |= CC_RESUMES;
		w->memory.resume_pkts = (cc_u32)w->now_us;
	}
	return target;
}

/*
 * Nothing is in flight and a segment is about to leave. Where a paced start is due
 * (3.2: "no in-flight packets and cwnd < ssthresh") the window opens to ssthresh, or to what
 * the initial rate needs, and the result is the rate at which to send, that window x MSS / RTT,
 * bytes a second; else 0.
 * Not to be called in recovery: after a timeout one segment goes first and alone
 * (RFC 5681, 3.1).
 */
static inline cc_u64 cc_transmission_starts(struct cc_window *w, const struct cc_start *s,
					    cc_u32 srtt_us, cc_u32 mss_bytes)
{
	int is_first = !(w->memory.flags & CC_BEGAN);
	cc_u32 target;

	w->memory.flags &= ~CC_SPREAD;
	if (!srtt_us || !mss_bytes)
		return 0;
	w->memory.flags |= CC_BEGAN;
	if (is_first && s->initial_rate_bps)
		target = cc_first_target(w, s, srtt_us, mss_bytes);
	else
		target = cc_pace_target(w, s);
	if (target > w->clamp_pkts)
		target = w->clamp_pkts;
	if (target <= w->cwnd_pkts)
		return 0;
	w->memory.paced_from_pkts = w->cwnd_pkts;
	w->cwnd_pkts = target;
	return cc_scaled((cc_u64)target * mss_bytes, 1000000, srtt_us);
}

/*
 * The part of the window that was tried: all, but in a paced start what was sent, and no
 * less than before it. `in_flight_pkts` are sent and not acknowledged (FlightSize).
 */
static inline cc_u32 cc_tried_pkts(const struct cc_window *w, cc_u32 in_flight_pkts)
{
	cc_u32 before = w->memory.paced_from_pkts;
	cc_u32 tried = in_flight_pkts > before ? in_flight_pkts : before;

	return before && tried < w->cwnd_pkts ? tried : w->cwnd_pkts;
}

/*
 * Where more is known of the path than the window of the paced start, the peer's first window may be all that bounds the
 * first flight: the start goes on until most of the window was in flight, or for some round trips (RFC 9959's Unvalidated
 * Phase). What was in flight meanwhile was tried.
 */
static inline int cc_resumes(struct cc_window *w, cc_u32 in_flight_pkts)
{
	cc_u32 since_us = (cc_u32)w->now_us - w->memory.resume_pkts;
	/* Segments that wait to leave together keep a window from being used to the last one. */
	cc_u32 used_pkts = w->cwnd_pkts - w->cwnd_pkts / 4;

	if (!(w->memory.flags & CC_RESUMES) || in_flight_pkts >= used_pkts ||
	    since_us / CC_RESUME_ROUND_TRIPS > w->srtt_us)
		return 0;
	w->memory.paced_from_pkts = cc_tried_pkts(w, in_flight_pkts);
	return 1;
}

/*
 * An acknowledgement arrived; `in_flight_pkts` were in flight before it. 1 = a paced
 * start ends now ("stopped immediately upon receiving an acknowledgement"). The
 * window is then what was tried: ssthresh, and congestion avoidance follows, if the
 * program had the data; less, and slow start, if not.
 */
static inline int cc_ack_arrived(struct cc_window *w, cc_u32 in_flight_pkts)
{
	if (!w->memory.paced_from_pkts || cc_resumes(w, in_flight_pkts))
		return 0;
	if (w->memory.flags & CC_RESUMES)
		w->memory.resume_pkts = 0;
	w->memory.flags &= ~CC_RESUMES;
	cc_hystart_is_spread(w);
	w->cwnd_pkts = cc_tried_pkts(w, in_flight_pkts);
	w->memory.paced_from_pkts = 0;
	return 1;
}

/* A round-trip time was measured: see cc_hystart_sample(). */
static inline void cc_rtt_sample(struct cc_window *w, const struct cc_start *s, cc_u32 rtt_us,
				 cc_u32 acked_seq, cc_u32 next_seq)
{
	if (s->hystart && cc_in_slow_start(w))
		cc_hystart_sample(w, &s->known, rtt_us, acked_seq, next_seq);
}

/*
 * A segment is about to leave after a pause of `idle_us`, longer than the RTO:
 * tcp_cwnd_restart() of Linux (RFC 2861). ssthresh remembers 3/4 of the window, the
 * window is halved for every RTO that the pause is longer than, down to the initial window.
 */
static inline void cc_idle_restart(struct cc_window *w, const struct cc_start *s, cc_u64 idle_us,
				   cc_u32 rto_us, cc_u32 initial_window_pkts)
{
	cc_u32 known = (w->cwnd_pkts >> 1) + (w->cwnd_pkts >> 2);
	cc_u32 floor = initial_window_pkts < w->cwnd_pkts ? initial_window_pkts : w->cwnd_pkts;
	cc_u64 halvings = rto_us && idle_us ? (idle_us - 1) / rto_us : 0;

	if (s->idle == CC_IDLE_KEEP || !halvings)
		return;
	w->memory.flags &= ~CC_RESUMES;
	w->memory.resume_pkts = w->cwnd_pkts;
	cc_hystart_restarts(w);
	if (known > w->ssthresh_pkts)
		w->ssthresh_pkts = known;
	w->cwnd_pkts = halvings < 32 ? w->cwnd_pkts >> halvings : 0;
	if (w->cwnd_pkts < floor)
		w->cwnd_pkts = floor;
	w->memory.credit = 0;
	w->memory.slow_start_credit = 0;
}

#endif
