/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUBIC, RFC 9438: after a congestion event at the window W_max the window follows
 * W_cubic(t) = C (t - K)^3 + W_max, in which K is the time to come back to W_max; where
 * Reno would have a larger window, it has Reno's (4.3).
 *
 * Kept is the moment of inflection, t_epoch + K, instead of both: with W_max it says the whole
 * curve. Other than in the RFC, W_est grows at Reno's own rate from W_max on and not from
 * cwnd_prior (4.3; they differ after fast convergence), and where W_est is the larger the window
 * still takes the curve's step too, if that is more. Start with cc_cubic_acked().
 */
#ifndef FATPATH_CC_CUBIC_H
#define FATPATH_CC_CUBIC_H

#include "fixed.h"

#define CC_CUBIC_PARAMS(P)                                                                         \
	P(c_milli, 1, 10000, 400, "segments/s^3: growth far from the window of the last event")    \
	P(beta_milli, 100, 990, 700, "fraction of the window kept at a congestion event")
CC_PARAMS_OF(cubic, CC_CUBIC_PARAMS)
CC_ALWAYS_CONSISTENT(cubic)
/* 4.10 wants it, and Linux has its like. */
CC_HYSTART_BY_DEFAULT(cubic, 1)

/* Times are modulo 2^32 ms: those that are compared lie less than 24 days apart. */
struct cc_cubic_state {
	cc_u64 reno_window;   /* W_est, in 2^-32 segments */
	cc_u32 w_max_pkts;    /* 0 = none yet */
	cc_u32 inflection_ms; /* when W_cubic is W_max */
	cc_u32 acked_ms;      /* the last acknowledgement; 0 = congestion avoidance has not begun */
	cc_u32 undo_w_max_pkts; /* before the last congestion event */
	cc_u32 undo_inflection_ms;
	cc_u32 undo_reno_pkts; /* 0 = congestion avoidance had not begun */
} __attribute__((may_alias));
_Static_assert(sizeof(struct cc_cubic_state) <= sizeof(((struct cc_memory *)0)->own), "fits");

/* No ACK acknowledges more, for a window is below 2^30 bytes; so all below fits into 64 bits. */
#define CC_CUBIC_MAX_ACKED_PKTS (1u << 20)

/* W_cubic is in 2^-10 segments. From 17 minutes away from the inflection on it stays. */
#define CC_CUBIC_BITS 10
#define CC_CUBIC_MAX_AWAY_MS (1u << 20)

static inline struct cc_cubic_state *cc_cubic_state(struct cc_window *w)
{
	return (struct cc_cubic_state *)w->memory.own;
}

static inline cc_u32 cc_cubic_now_ms(const struct cc_window *w)
{
	cc_u32 now_ms = (cc_u32)(w->now_us / 1000);

	return now_ms ? now_ms : 1;
}

/* 4.2, (2): the cube root of (W_max - cwnd_epoch) / C, where 10^12 is of ms^3 and thousandths of C. */
static inline cc_u32 cc_cubic_k_ms(const struct cc_cubic *p, cc_u32 below_pkts)
{
	cc_u64 log = (cc_u64)cc_log2(below_pkts) + CC_LOG_TERA - cc_log2(p->c_milli);

	return (cc_u32)(cc_exp2((cc_u32)(log / 3)) >> CC_POWER_BITS);
}

/*
 * A slow start leaves nothing to come back to: K is 0 and W_max the window (4.8, and 4.10 for one
 * that HyStart++ ended).
 */
static inline void cc_cubic_begin(struct cc_window *w, struct cc_cubic_state *s,
				  const struct cc_cubic *p, cc_u32 now_ms)
{
	int is_slow_started = !!(w->memory.flags & CC_SLOW_STARTED);

	w->memory.flags &= ~CC_SLOW_STARTED;
	s->inflection_ms = now_ms;
	s->reno_window = (cc_u64)w->cwnd_pkts << 32;
	if (is_slow_started || w->cwnd_pkts >= s->w_max_pkts)
		s->w_max_pkts = w->cwnd_pkts;
	else
		s->inflection_ms += cc_cubic_k_ms(p, s->w_max_pkts - w->cwnd_pkts);
}

/*
 * 4.2: t leaves out what the flow did not use its window, and then no acknowledgement comes
 * here for longer than a round trip.
 */
static inline void cc_cubic_leave_out_pause(struct cc_cubic_state *s, cc_u32 now_ms, cc_u32 rtt_ms)
{
	cc_u32 gap_ms = now_ms - s->acked_ms;

	if (gap_ms > rtt_ms)
		s->inflection_ms += gap_ms - rtt_ms;
}

/* 4.3, (4). If the host lowered the window since the last ACK, Reno's is lowered with it. */
static inline void cc_cubic_reno_acked(struct cc_cubic_state *s, const struct cc_cubic *p,
				       cc_u32 cwnd_pkts, cc_u32 acked_pkts)
{
	cc_u64 alpha_milli = 3000 * (1000 - p->beta_milli) / (1000 + p->beta_milli);

	if (s->reno_window >> 32 > cwnd_pkts)
		s->reno_window = (cc_u64)cwnd_pkts << 32;
	if (s->reno_window >> 32 >= s->w_max_pkts)
		alpha_milli = 1000;
	s->reno_window += (acked_pkts * alpha_milli << 32) / ((cc_u64)cwnd_pkts * 1000);
}

/* 4.2, (1), `ms` after the inflection or, below 0, before it. */
static inline cc_u64 cc_cubic_at(const struct cc_cubic_state *s, const struct cc_cubic *p, int ms)
{
	cc_u64 away_ms = ms < 0 ? 0u - (cc_u32)ms : (cc_u32)ms;
	cc_u64 top = (cc_u64)s->w_max_pkts << CC_CUBIC_BITS, away;

	if (away_ms > CC_CUBIC_MAX_AWAY_MS)
		away_ms = CC_CUBIC_MAX_AWAY_MS;
	away = away_ms * away_ms * away_ms / 1000000 * p->c_milli;
	away = (away << CC_CUBIC_BITS) / 1000000;
	if (ms >= 0)
		return top + away;
	return top > away ? top - away : 0;
}

/* 4.4 and 4.5: the part of the way to `target` that was acknowledged; by half in a round trip at most. */
static inline void cc_cubic_follow(struct cc_window *w, cc_u64 target, cc_u32 acked_pkts)
{
	cc_u64 cwnd = (cc_u64)w->cwnd_pkts << CC_CUBIC_BITS, way = 0;

	if (target > cwnd)
		way = target - cwnd < cwnd / 2 ? target - cwnd : cwnd / 2;
	cc_grow(w, acked_pkts * way, cwnd);
}

static inline void cc_cubic_be_at_least(struct cc_window *w, cc_u32 reno_pkts)
{
	if (reno_pkts > w->clamp_pkts)
		reno_pkts = w->clamp_pkts;
	if (reno_pkts > w->cwnd_pkts)
		w->cwnd_pkts = reno_pkts;
}

static inline void cc_cubic_acked(struct cc_window *w, const struct cc_cubic *p, cc_u32 acked_pkts)
{
	struct cc_cubic_state *s = cc_cubic_state(w);
	cc_u32 now_ms = cc_cubic_now_ms(w), rtt_ms = w->srtt_us / 1000;

	if (!w->cwnd_pkts)
		return;
	if (acked_pkts > CC_CUBIC_MAX_ACKED_PKTS)
		acked_pkts = CC_CUBIC_MAX_ACKED_PKTS;
	if (!s->acked_ms || w->memory.flags & CC_SLOW_STARTED)
		cc_cubic_begin(w, s, p, now_ms);
	else
		cc_cubic_leave_out_pause(s, now_ms, rtt_ms);
	s->acked_ms = now_ms;
	cc_cubic_reno_acked(s, p, w->cwnd_pkts, acked_pkts);
	cc_cubic_follow(w, cc_cubic_at(s, p, (int)(now_ms + rtt_ms - s->inflection_ms)),
			acked_pkts);
	cc_cubic_be_at_least(w, (cc_u32)(s->reno_window >> 32));
}

/* 4.6; fast convergence, 4.7: who did not come back to W_max leaves room for others. */
static inline cc_u32 cc_cubic_ssthresh(struct cc_window *w, const struct cc_cubic *p)
{
	struct cc_cubic_state *s = cc_cubic_state(w);

	s->undo_w_max_pkts = s->w_max_pkts;
	s->undo_inflection_ms = s->inflection_ms;
	s->undo_reno_pkts = s->acked_ms ? (cc_u32)(s->reno_window >> 32) : 0;
	s->acked_ms = 0;
	if (w->cwnd_pkts < s->w_max_pkts)
		s->w_max_pkts = cc_part_of_window(w, 1000 + p->beta_milli, 2000);
	else
		s->w_max_pkts = w->cwnd_pkts;
	return cc_part_of_window(w, p->beta_milli, 1000);
}

/* 4.9 */
static inline void cc_cubic_undone(struct cc_window *w)
{
	struct cc_cubic_state *s = cc_cubic_state(w);

	s->w_max_pkts = s->undo_w_max_pkts;
	s->inflection_ms = s->undo_inflection_ms;
	s->reno_window = (cc_u64)s->undo_reno_pkts << 32;
	s->acked_ms = s->undo_reno_pkts ? cc_cubic_now_ms(w) : 0;
}

#endif
