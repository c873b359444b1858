/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A flow without congestion control ("Rude TCP": Weigle, Feng, "Enhancing TCP Performance
 * for Dedicated Clusters and Grids"). What it really has in flight is R; besides R, the
 * fair window F is kept, which a polite law would have, for when the flow ends being rude.
 *
 * While it is rude, only F / R of the segments count for F, delivered and lost: they
 * are those that the polite flow would have sent. F's mean under random loss is then the
 * law's, and its slow start too, with HyStart++. While it is going polite
 * (RUDE_OFF_NICELY) F decides for both windows: R grows by as many segments and falls by the
 * same part, so Table 1 of the paper holds for any law: R - F stays on an increase, R / F on
 * a decrease.
 *
 * It refuses to say who may be rude. Start with cc_rude_acked(); when a flow ends being
 * rude, with cc_rude_off_now() or cc_rude_off_nicely().
 */
#ifndef FATPATH_CC_RUDE_H
#define FATPATH_CC_RUDE_H

#include "laws.h"

#ifdef __bpf__
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#endif

#include "path.h"

/* Room over what is in flight, so that no retransmission waits for the window: IW10 of RFC 6928. */
#define CC_RUDE_ROOM_PKTS 10

/* The initial round-trip time of a flow that has measured none, as BBR's. */
#define CC_RUDE_NOMINAL_RTT_US 1000

/* 2^-32 segments. */
#define CC_RUDE_ONE_PKT (1ull << 32)

/** What is remembered of a flow that is rude, or going polite. All 0 before cc_rude_begin(). */
struct cc_rude {
	struct cc_window fair; /* F; its clamp, and going polite its clock, come from the host */
	struct cc_path path;
	cc_u64 recovers_until_us; /* F's last congestion event lasts a round trip */
	cc_u64 round_until_us;
	cc_u32 acked_credit; /* F's own segments, 2^-32: acknowledged and not yet counted */
	cc_u32 lost_credit;
	cc_u32 prior_cwnd_pkts; /* F before its last congestion event; 0 = there was none */
	cc_u32 prior_ssthresh_pkts;
	cc_u32 delivered_pkts; /* as the last acknowledgement left them */
	cc_u32 lost_pkts;
	cc_u32 round_pkts; /* F when this round trip began, or since if that is less */
	cc_u32 pad;
};

/** The flow when an acknowledgement has been worked in, and before anything is sent for it. */
struct cc_rude_now {
	cc_u64 now_us;		    /**< Of any monotonic clock. */
	cc_u64 rate_bytes_per_s;    /**< The latest sample of the delivery rate; 0 = none. */
	cc_u32 rate_is_app_limited; /**< 1 = the program had less to send than it could have. */
	cc_u32 delivered_pkts;	    /**< Segments delivered since the flow began, modulo 2^32. */
	cc_u32 lost_pkts;      /**< Segments lost, likewise; a retransmission lost counts again. */
	cc_u32 in_flight_pkts; /**< `pipe` of RFC 6675. */
	cc_u32 peer_window_pkts; /**< What the peer's window holds. */
	cc_u32 max_window_pkts;	 /**< What the host can bear. */
	cc_u32 srtt_us;		 /**< Smoothed round-trip time; 0 = none. */
	cc_u32 min_rtt_us;	 /**< The least round-trip time. */
	cc_u32 mss_bytes;	 /**< Bytes of data in a segment. */
	cc_u32 wire_bytes;	 /**< Of a full segment as the host's pacing counts it. */
};

/** A measured round trip. */
struct cc_rtt {
	cc_u32 rtt_us;	  /**< The round-trip time; 0 = none was measured. */
	cc_u32 acked_seq; /**< All below is acknowledged (SND.UNA); any unit, modulo 2^32. */
	cc_u32 next_seq;  /**< The next to be sent (SND.NXT), in the same unit. */
};

static inline cc_u32 cc_rude_in_flight_bytes(const struct cc_rude_now *now)
{
	cc_u64 bytes = (cc_u64)now->in_flight_pkts * now->mss_bytes;

	return bytes < ~0u ? (cc_u32)bytes : ~0u;
}

static inline cc_u32 cc_rude_srtt_us(const struct cc_rude_now *now)
{
	return now->srtt_us ? now->srtt_us : CC_RUDE_NOMINAL_RTT_US;
}

/* Rude again on the way to being polite: F is as it was, and what passed meanwhile is worked in. */
static inline void cc_rude_resume(struct cc_rude *r, const struct cc_rude_now *now)
{
	r->delivered_pkts = now->delivered_pkts;
	r->lost_pkts = now->lost_pkts;
}

/* The flow becomes rude; until now it had the window `polite`. */
static inline void cc_rude_begin(struct cc_rude *r, const struct cc_window *polite,
				 const struct cc_rude_now *now)
{
	struct cc_rude none = { .fair = *polite };

	*r = none;
	if (r->fair.cwnd_pkts < CC_MIN_SSTHRESH_PKTS)
		r->fair.cwnd_pkts = CC_MIN_SSTHRESH_PKTS;
	cc_rude_resume(r, now);
}

/* Of `pkts` out of `all_pkts`, the whole segments that were F's own. */
static inline cc_u32 cc_rude_own_pkts(cc_u32 *credit, cc_u32 fair_pkts, cc_u32 all_pkts,
				      cc_u32 pkts)
{
	cc_u64 part = CC_RUDE_ONE_PKT, own;

	if (fair_pkts < all_pkts)
		part = ((cc_u64)fair_pkts << 32) / all_pkts;
	own = pkts * part + *credit;
	*credit = (cc_u32)own;
	return (cc_u32)(own >> 32);
}

/* What the law makes of F in a congestion event, and what undoes it. */
static inline void cc_rude_reduce(enum cc_law law, const cc_u32 *values, struct cc_rude *r)
{
	r->prior_cwnd_pkts = r->fair.cwnd_pkts;
	r->prior_ssthresh_pkts = r->fair.ssthresh_pkts;
	r->fair.ssthresh_pkts = cc_ssthresh(law, values, &r->fair, r->fair.cwnd_pkts);
	r->fair.cwnd_pkts = r->fair.ssthresh_pkts;
	r->acked_credit = 0;
}

/*
 * Congestion, of which the host is told otherwise than by a loss of so many segments: ECN,
 * its own queue. F falls once a round trip at most, as in recovery (RFC 6675).
 */
static inline void cc_rude_congested(enum cc_law law, const cc_u32 *values, struct cc_rude *r,
				     const struct cc_rude_now *now)
{
	if (now->now_us < r->recovers_until_us)
		return;
	cc_rude_reduce(law, values, r);
	r->recovers_until_us = now->now_us + cc_rude_srtt_us(now);
}

static inline void cc_rude_lost(enum cc_law law, const cc_u32 *values, struct cc_rude *r,
				const struct cc_rude_now *now, cc_u32 all_pkts, cc_u32 pkts)
{
	if (now->now_us >= r->recovers_until_us &&
	    cc_rude_own_pkts(&r->lost_credit, r->fair.cwnd_pkts, all_pkts, pkts))
		cc_rude_congested(law, values, r, now);
}

/* A window that was not in use does not grow, as tcp_is_cwnd_limited() of Linux. */
static inline int cc_rude_is_in_use(const struct cc_window *w, cc_u32 all_pkts)
{
	if (cc_in_slow_start(w))
		return w->cwnd_pkts < 2 * (cc_u64)all_pkts;
	return w->cwnd_pkts <= all_pkts;
}

/*
 * Of `pkts` out of `all_pkts` that were acknowledged, F's own, when it was `fair_pkts`. A
 * round-trip time counts for HyStart++ if it is one of theirs, or F would have a round's samples
 * in a fraction of the round.
 */
static inline cc_u32 cc_rude_own_acked_pkts(const struct cc_start *start, struct cc_rude *r,
					    const struct cc_rtt *rtt, cc_u32 fair_pkts,
					    cc_u32 all_pkts, cc_u32 pkts)
{
	cc_u32 own_pkts = cc_rude_own_pkts(&r->acked_credit, fair_pkts, all_pkts, pkts);

	if (own_pkts)
		cc_rtt_sample(&r->fair, start, rtt->rtt_us, rtt->acked_seq, rtt->next_seq);
	return own_pkts;
}

/*
 * What is acknowledged now was sent a round trip ago, by F as it was then: or slow start
 * would be e-fold a round trip, not twofold.
 */
static inline void cc_rude_round(struct cc_rude *r, const struct cc_rude_now *now)
{
	if (now->now_us >= r->round_until_us) {
		r->round_until_us = now->now_us + cc_rude_srtt_us(now);
		r->round_pkts = r->fair.cwnd_pkts;
	}
	if (r->fair.cwnd_pkts < r->round_pkts)
		r->round_pkts = r->fair.cwnd_pkts;
}

static inline void cc_rude_delivered(enum cc_law law, const cc_u32 *values,
				     const struct cc_start *start, struct cc_rude *r,
				     const struct cc_rude_now *now, const struct cc_rtt *rtt,
				     cc_u32 all_pkts, cc_u32 pkts)
{
	if (now->now_us < r->recovers_until_us || !cc_rude_is_in_use(&r->fair, all_pkts))
		return;
	pkts = cc_rude_own_acked_pkts(start, r, rtt, r->round_pkts, all_pkts, pkts);
	if (pkts)
		cc_acked(law, values, start, &r->fair, pkts);
}

static inline void cc_rude_path(struct cc_rude *r, const struct cc_rude_now *now,
				cc_u32 delivered_pkts, cc_u32 lost_pkts)
{
	struct cc_path_sample sample = {
		.now_us = now->now_us,
		.rate_bytes_per_s = now->rate_bytes_per_s,
		.is_app_limited = now->rate_is_app_limited,
		.delivered_pkts = delivered_pkts,
		.lost_pkts = lost_pkts,
		.srtt_us = now->srtt_us,
		.min_rtt_us = now->min_rtt_us,
		.in_flight_bytes = cc_rude_in_flight_bytes(now),
	};

	cc_path_sampled(&r->path, &sample);
}

/*
 * Each acknowledgement of a rude flow: F becomes what the law would make of it, and the
 * path's estimate is brought up to date. `values` must be accepted.
 */
static inline void cc_rude_acked(enum cc_law law, const cc_u32 *values,
				 const struct cc_start *start, struct cc_rude *r,
				 const struct cc_rude_now *now, const struct cc_rtt *rtt)
{
	cc_u32 delivered_pkts = now->delivered_pkts - r->delivered_pkts;
	cc_u32 lost_pkts = now->lost_pkts - r->lost_pkts;
	cc_u64 before_pkts = (cc_u64)now->in_flight_pkts + delivered_pkts + lost_pkts;
	cc_u32 all_pkts = before_pkts < ~0u ? (cc_u32)before_pkts : ~0u;

	r->delivered_pkts = now->delivered_pkts;
	r->lost_pkts = now->lost_pkts;
	r->fair.now_us = now->now_us;
	r->fair.srtt_us = now->srtt_us;
	if (all_pkts) {
		cc_rude_lost(law, values, r, now, all_pkts, lost_pkts);
		cc_rude_round(r, now);
		cc_rude_delivered(law, values, start, r, now, rtt, all_pkts, delivered_pkts);
	}
	cc_rude_path(r, now, delivered_pkts, lost_pkts);
}

/*
 * A retransmission timeout: nothing arrived for longer than any window explains, so F
 * too starts again, from 2 segments instead of RFC 5681's 1. What the host has found lost
 * by it is no further event, and the threshold holds when nothing has arrived since the
 * timeout before (3.1 there).
 */
static inline void cc_rude_timed_out(enum cc_law law, const cc_u32 *values, struct cc_rude *r,
				     const struct cc_rude_now *now)
{
	if (r->fair.cwnd_pkts > CC_MIN_SSTHRESH_PKTS)
		cc_rude_reduce(law, values, r);
	r->fair.cwnd_pkts = CC_MIN_SSTHRESH_PKTS;
	r->lost_pkts = now->lost_pkts;
}

/* The host's recovery begins, or a timeout's: what F gave up before cannot be undone with it. */
static inline void cc_rude_recovery_begins(struct cc_rude *r)
{
	r->prior_cwnd_pkts = 0;
}

/* What was lost since then was not. Also while going polite; R goes back by itself. */
static inline void cc_rude_undone(enum cc_law law, struct cc_rude *r)
{
	if (!r->prior_cwnd_pkts)
		return;
	r->fair.cwnd_pkts = cc_undo_cwnd(law, &r->fair, r->prior_cwnd_pkts);
	if (r->fair.ssthresh_pkts < r->prior_ssthresh_pkts)
		r->fair.ssthresh_pkts = r->prior_ssthresh_pkts;
	r->prior_cwnd_pkts = 0;
	r->recovers_until_us = 0;
}

/* What the peer's window holds; a retransmission always fits. */
static inline cc_u32 cc_rude_cwnd_pkts(const struct cc_rude_now *now)
{
	cc_u64 cwnd_pkts = (cc_u64)now->in_flight_pkts + CC_RUDE_ROOM_PKTS;

	if (cwnd_pkts < now->peer_window_pkts)
		cwnd_pkts = now->peer_window_pkts;
	return cwnd_pkts < now->max_window_pkts ? (cc_u32)cwnd_pkts : now->max_window_pkts;
}

/* Before the first sample: the fair window a round trip, times the gain of start-up. */
static inline cc_u64 cc_rude_first_bytes_per_s(const struct cc_rude *r,
					       const struct cc_rude_now *now)
{
	cc_u64 window_bytes = (cc_u64)r->fair.cwnd_pkts * now->wire_bytes;
	cc_u64 rate = cc_scaled(window_bytes, 1000000, cc_rude_srtt_us(now));

	return cc_scaled(rate, CC_PATH_START_MILLI, 1000);
}

/*
 * Bytes a second at which all leaves, retransmissions included, as the host's pacing
 * counts them: the flow's share of the path, or, if that is 0, what the path is found to
 * carry, and two segments a round trip at least.
 */
static inline cc_u64 cc_rude_pacing_bytes_per_s(const struct cc_rude *r,
						const struct cc_rude_now *now,
						cc_u64 share_bytes_per_s)
{
	cc_u64 least = 1 + cc_scaled(2 * (cc_u64)now->wire_bytes, 1000000, cc_rude_srtt_us(now));
	cc_u64 rate;

	if (share_bytes_per_s)
		return share_bytes_per_s;
	rate = cc_path_pacing_bytes_per_s(&r->path, now->srtt_us, cc_rude_in_flight_bytes(now));
	if (!rate || !now->mss_bytes)
		rate = cc_rude_first_bytes_per_s(r, now);
	else
		rate = cc_scaled(rate, now->wire_bytes, now->mss_bytes);
	return rate > least ? rate : least;
}

/*
 * RUDE_OFF_NOW, and when permission is gone: the flow has the window r->fair from now on.
 * With more in flight than F, "as though a serious congestion event has just occurred".
 * The host must not undo a reduction of before: what it would go back to was the peer's.
 */
static inline void cc_rude_off_now(struct cc_rude *r, cc_u32 in_flight_pkts)
{
	if (in_flight_pkts > r->fair.cwnd_pkts && r->fair.ssthresh_pkts > r->fair.cwnd_pkts)
		r->fair.ssthresh_pkts = r->fair.cwnd_pkts;
}

/*
 * RUDE_OFF_NICELY: R, cwnd and ssthresh of the flow from now on. If it has converged
 * already, the flow is polite with r->fair.
 */
static inline cc_u32 cc_rude_off_nicely(struct cc_rude *r, cc_u32 in_flight_pkts)
{
	r->acked_credit = 0;
	return in_flight_pkts > r->fair.cwnd_pkts ? in_flight_pkts : r->fair.cwnd_pkts;
}

/*
 * R is close enough to F: `milli` / 1000 of F. `used_pkts` is the part of R that is in use, R
 * itself if it holds the flow back: a flow with no more than F in flight just stops.
 */
static inline int cc_rude_has_converged(cc_u32 used_pkts, cc_u32 fair_pkts, cc_u32 milli)
{
	return used_pkts <= fair_pkts ||
	       (cc_u64)(used_pkts - fair_pkts) * 1000 <= (cc_u64)fair_pkts * milli;
}

/*
 * Going polite, in the place of cc_acked(): R after it. Of the segments in use F's are
 * its own; what the law adds to F is added to R, unless R is not in use, and then F
 * grows alone. F's slow start is its own: it catches up.
 */
static inline cc_u32 cc_rude_shadow_acked(enum cc_law law, const cc_u32 *values,
					  const struct cc_start *start, struct cc_rude *r,
					  const struct cc_rtt *rtt, cc_u32 r_pkts, cc_u32 used_pkts,
					  cc_u32 acked_pkts)
{
	cc_u32 before_pkts = r->fair.cwnd_pkts, clamp_pkts = r->fair.clamp_pkts;
	int is_in_use = cc_rude_is_in_use(&r->fair, used_pkts), grows_alone;
	cc_u64 grown_pkts = r_pkts;

	if (is_in_use)
		acked_pkts =
			cc_rude_own_acked_pkts(start, r, rtt, before_pkts, used_pkts, acked_pkts);
	grows_alone = cc_in_slow_start(&r->fair) || used_pkts < r_pkts;
	if (is_in_use)
		cc_acked(law, values, start, &r->fair, acked_pkts);
	if (!grows_alone && r->fair.cwnd_pkts > before_pkts)
		grown_pkts += r->fair.cwnd_pkts - before_pkts;
	return grown_pkts < clamp_pkts ? (cc_u32)grown_pkts : clamp_pkts;
}

/*
 * Going polite, in the place of cc_ssthresh(): R's threshold. It loses the part that F
 * loses; where F is at its least, what the law takes of a window as large as R.
 */
static inline cc_u32 cc_rude_shadow_ssthresh(enum cc_law law, const cc_u32 *values,
					     struct cc_rude *r, cc_u32 r_pkts)
{
	struct cc_window real = r->fair;
	cc_u32 before_pkts = r->fair.cwnd_pkts, kept_pkts;
	cc_u64 part_pkts;

	real.cwnd_pkts = r_pkts;
	kept_pkts = cc_law_ssthresh(law, values, &real);
	cc_rude_reduce(law, values, r);
	part_pkts = before_pkts ? (cc_u64)r_pkts * r->fair.cwnd_pkts / before_pkts : 0;
	if (part_pkts < kept_pkts)
		kept_pkts = part_pkts;
	return kept_pkts > r->fair.cwnd_pkts ? kept_pkts : r->fair.cwnd_pkts;
}

#ifdef __bpf__
#pragma clang attribute pop
#endif

#endif
