/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a path delivers, found out by sending: for a flow without congestion control
 * that was not given its share. It paces just above what was delivered, so that losses
 * come from the path and not from the flow's own queue.
 *
 * Start-up and its gain are BBR's (draft-ietf-ccwg-bbr, 5.3.1). Then cycles: a round trip
 * above the estimate, in case the path has more; two below it, in which what is still
 * lost is the path's own loss; then at what arrives at the estimated rate in spite of that
 * loss. While a queue shows, less than the estimate.
 *
 * It refuses to know of windows. Start with cc_path_sampled().
 */
#ifndef FATPATH_CC_PATH_H
#define FATPATH_CC_PATH_H

#include "start.h"

/* Pacing, in thousandths of the estimate. 2 / ln 2 doubles the rate in a round trip. */
#define CC_PATH_START_MILLI 2885
#define CC_PATH_UP_MILLI 1100
#define CC_PATH_DOWN_MILLI 950
#define CC_PATH_DRAIN_MILLI 750

/* In start-up no more than twice what the path holds is in flight: the queue gets one such. */
#define CC_PATH_START_HOLDS 2

/* Rounds of a cycle: one up, two down, the rest at the estimate. */
#define CC_PATH_DOWN_ROUND 1
#define CC_PATH_CRUISE_ROUND 3
#define CC_PATH_CYCLE_ROUNDS 9

/* A queue that stays so long in spite of less is another flow's. */
#define CC_PATH_DRAIN_ROUNDS 4

/* Start-up ends after so many rounds without a quarter more; after one if a queue shows. */
#define CC_PATH_FULL_ROUNDS 3

/* A round is a round trip, and long enough for some hundred segments of 1 Gb/s. */
#define CC_PATH_MIN_ROUND_US 10000

/* The least round-trip time is of the last one to two of these. BBR: 10 s. */
#define CC_PATH_BASE_RTT_US 10000000

/* A queue shows when the round-trip time exceeds its least by a quarter and this. */
#define CC_PATH_QUEUE_US 2000

/*
 * Loss in 2^-16. An eighth at most is made up for by sending more: what flows like this
 * one lose together in a short queue looks like the path's, and they would go on in it.
 * A round at 1.1 then still finds out that a path with a fifth of loss has more.
 */
#define CC_PATH_LOSS_BITS 16
#define CC_PATH_MAX_LOSS (1u << (CC_PATH_LOSS_BITS - 3))
#define CC_PATH_NO_LOSS_YET (~0u)

/* Of this cycle [0] and of the one before [1]. All 0 at first. */
struct cc_path {
	cc_u64 rate_bytes_per_s[2]; /* the highest delivery rate */
	cc_u64 full_bytes_per_s;    /* start-up: the rate that the next rounds have to exceed */
	cc_u64 cycle_bytes_per_s;   /* the estimate when the cycle began */
	cc_u64 round_until_us;	    /* 0 = nothing was sampled */
	cc_u64 base_until_us;
	cc_u32 base_rtt_us[2];	/* the least srtt of these 10 s, and of those before */
	cc_u32 loss[2];		/* the least loss of a round */
	cc_u32 round_delivered; /* segments, in this round */
	cc_u32 round_lost;
	cc_u8 round;	     /* of the cycle */
	cc_u8 full_rounds;   /* start-up: rounds without growth */
	cc_u8 drain_rounds;  /* of this cycle, in which a queue showed */
	cc_u8 is_started_up; /* start-up is over */
};

/* An acknowledgement. */
struct cc_path_sample {
	cc_u64 now_us;
	cc_u64 rate_bytes_per_s; /* delivery rate; 0 = not measured */
	cc_u32 is_app_limited;	 /* the program had less to send than it could have */
	cc_u32 delivered_pkts;	 /* by this acknowledgement */
	cc_u32 lost_pkts;
	cc_u32 srtt_us;
	cc_u32 min_rtt_us;
	cc_u32 in_flight_bytes; /* all ones: as many and more */
};

static inline cc_u64 cc_path_rate_bytes_per_s(const struct cc_path *p)
{
	return p->rate_bytes_per_s[0] > p->rate_bytes_per_s[1] ? p->rate_bytes_per_s[0]
							       : p->rate_bytes_per_s[1];
}

static inline cc_u32 cc_path_base_rtt_us(const struct cc_path *p)
{
	if (!p->base_rtt_us[1] || p->base_rtt_us[0] < p->base_rtt_us[1])
		return p->base_rtt_us[0];
	return p->base_rtt_us[1];
}

/* The path's own loss, in 2^-16. */
static inline cc_u32 cc_path_loss(const struct cc_path *p)
{
	cc_u32 loss = p->loss[0] < p->loss[1] ? p->loss[0] : p->loss[1];

	if (loss == CC_PATH_NO_LOSS_YET)
		return 0;
	return loss < CC_PATH_MAX_LOSS ? loss : CC_PATH_MAX_LOSS;
}

/* What is in flight at the estimated rate when there is no queue. */
static inline cc_u64 cc_path_holds_bytes(const struct cc_path *p)
{
	return cc_scaled(cc_path_rate_bytes_per_s(p), cc_path_base_rtt_us(p), 1000000);
}

/* More in flight than the path holds, and it takes longer: a queue, perhaps this flow's. */
static inline int cc_path_is_queueing(const struct cc_path *p, cc_u32 srtt_us,
				      cc_u32 in_flight_bytes)
{
	cc_u64 base_us = cc_path_base_rtt_us(p);

	return base_us && srtt_us > base_us + base_us / 4 + CC_PATH_QUEUE_US &&
	       in_flight_bytes > cc_path_holds_bytes(p);
}

static inline void cc_path_cycle_begins(struct cc_path *p)
{
	p->rate_bytes_per_s[1] = p->rate_bytes_per_s[0];
	p->rate_bytes_per_s[0] = 0;
	p->cycle_bytes_per_s = p->rate_bytes_per_s[1];
	p->loss[1] = p->loss[0];
	p->loss[0] = CC_PATH_NO_LOSS_YET;
	p->round = 0;
	p->drain_rounds = 0;
}

/* A round of start-up is over. */
static inline void cc_path_starts_up(struct cc_path *p, int is_queueing)
{
	cc_u64 rate = cc_path_rate_bytes_per_s(p);

	if (rate >= p->full_bytes_per_s + p->full_bytes_per_s / 4) {
		p->full_bytes_per_s = rate;
		p->full_rounds = 0;
	} else if (++p->full_rounds >= CC_PATH_FULL_ROUNDS || is_queueing) {
		p->is_started_up = 1;
		p->round = CC_PATH_DOWN_ROUND;
		p->drain_rounds = 0;
		p->cycle_bytes_per_s = rate;
	}
}

/* The round above the estimate has shown in the one after it: the path has more. */
static inline int cc_path_has_more(const struct cc_path *p, int is_queueing)
{
	return !is_queueing &&
	       p->rate_bytes_per_s[0] > p->cycle_bytes_per_s + p->cycle_bytes_per_s / 20;
}

static inline void cc_path_round_ends(struct cc_path *p, const struct cc_path_sample *s)
{
	int is_queueing = cc_path_is_queueing(p, s->srtt_us, s->in_flight_bytes);
	cc_u64 all = (cc_u64)p->round_delivered + p->round_lost;
	cc_u32 loss = all ? (cc_u32)(((cc_u64)p->round_lost << CC_PATH_LOSS_BITS) / all) : 0;

	if (all && loss < p->loss[0])
		p->loss[0] = loss;
	p->round_delivered = 0;
	p->round_lost = 0;
	if (!p->is_started_up) {
		cc_path_starts_up(p, is_queueing);
		return;
	}
	if (is_queueing && p->drain_rounds < CC_PATH_DRAIN_ROUNDS) {
		p->drain_rounds++;
		return;
	}
	if (++p->round == CC_PATH_DOWN_ROUND + 1 && cc_path_has_more(p, is_queueing))
		cc_path_cycle_begins(p);
	if (p->round >= CC_PATH_CYCLE_ROUNDS)
		cc_path_cycle_begins(p);
}

static inline void cc_path_took(struct cc_path *p, const struct cc_path_sample *s)
{
	if (s->now_us >= p->base_until_us) {
		p->base_rtt_us[1] = p->base_rtt_us[0];
		p->base_rtt_us[0] = s->srtt_us;
		p->base_until_us = s->now_us + CC_PATH_BASE_RTT_US;
	}
	if (s->srtt_us < p->base_rtt_us[0])
		p->base_rtt_us[0] = s->srtt_us;
}

static inline void cc_path_begins(struct cc_path *p, const struct cc_path_sample *s)
{
	p->base_rtt_us[0] =
		s->min_rtt_us && s->min_rtt_us < s->srtt_us ? s->min_rtt_us : s->srtt_us;
	p->base_until_us = s->now_us + CC_PATH_BASE_RTT_US;
	p->loss[0] = CC_PATH_NO_LOSS_YET;
	p->loss[1] = CC_PATH_NO_LOSS_YET;
}

static inline cc_u64 cc_path_round_us(cc_u32 srtt_us)
{
	return srtt_us > CC_PATH_MIN_ROUND_US ? srtt_us : CC_PATH_MIN_ROUND_US;
}

/*
 * Of samples with little to send only those count that exceed what is known: of a path that
 * was never tried they tell nothing.
 */
static inline int cc_path_is_news(const struct cc_path *p, const struct cc_path_sample *s)
{
	cc_u64 rate = cc_path_rate_bytes_per_s(p);

	if (s->is_app_limited)
		return rate && s->rate_bytes_per_s > rate;
	return s->rate_bytes_per_s > p->rate_bytes_per_s[0];
}

/*
 * Each acknowledgement. Rounds in which the program had little to send do not count, or
 * the estimate would fall to what the program has.
 */
static inline void cc_path_sampled(struct cc_path *p, const struct cc_path_sample *s)
{
	int is_new = !p->round_until_us;

	if (!s->srtt_us)
		return;
	if (is_new)
		cc_path_begins(p, s);
	cc_path_took(p, s);
	if (cc_path_is_news(p, s))
		p->rate_bytes_per_s[0] = s->rate_bytes_per_s;
	p->round_delivered += s->delivered_pkts;
	p->round_lost += s->lost_pkts;
	if (s->now_us < p->round_until_us)
		return;
	p->round_until_us = s->now_us + cc_path_round_us(s->srtt_us);
	if (!is_new && !s->is_app_limited)
		cc_path_round_ends(p, s);
}

static inline cc_u32 cc_path_gain_milli(const struct cc_path *p, cc_u32 srtt_us,
					cc_u32 in_flight_bytes)
{
	if (!p->is_started_up)
		return in_flight_bytes / CC_PATH_START_HOLDS > cc_path_holds_bytes(p)
			       ? 1000
			       : CC_PATH_START_MILLI;
	if (p->drain_rounds < CC_PATH_DRAIN_ROUNDS &&
	    cc_path_is_queueing(p, srtt_us, in_flight_bytes))
		return CC_PATH_DRAIN_MILLI;
	if (p->round < CC_PATH_DOWN_ROUND)
		return CC_PATH_UP_MILLI;
	return p->round < CC_PATH_CRUISE_ROUND ? CC_PATH_DOWN_MILLI : 1000;
}

/*
 * Bytes a second at which to send now; 0 = nothing is known yet. Only from the estimate
 * upward more is sent for what the path loses: below it, loss must show.
 */
static inline cc_u64 cc_path_pacing_bytes_per_s(const struct cc_path *p, cc_u32 srtt_us,
						cc_u32 in_flight_bytes)
{
	cc_u32 gain_milli = cc_path_gain_milli(p, srtt_us, in_flight_bytes);
	cc_u64 rate = cc_scaled(cc_path_rate_bytes_per_s(p), gain_milli, 1000);
	cc_u32 one = 1u << CC_PATH_LOSS_BITS;

	if (!p->is_started_up || gain_milli < 1000)
		return rate;
	return cc_scaled(rate, one, one - cc_path_loss(p));
}

#endif
