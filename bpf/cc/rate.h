/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a law works on that goes by samples of the delivery rate: it sets the window and the pacing rate at
 * every acknowledgement, also in recovery. The host stack samples (draft-ietf-ccwg-bbr-06, 4.1; Linux's
 * tcp_rate.c), decides what was lost, and calls the functions of rate_laws.h.
 *
 * What was in flight and lost when a segment left, which the draft keeps with each segment, a host may not know:
 * struct cc_sent_history remembers it for some points of the last round trips.
 */
#ifndef FATPATH_CC_RATE_H
#define FATPATH_CC_RATE_H

#include "start.h"

/* cc_rate_sample.flags */
#define CC_RATE_APP_LIMITED                                                                        \
	1u /* the program had little to send when the segment left (RS.is_app_limited) */
#define CC_RATE_CWND_LIMITED 2u /* the window held the flow back (C.is_cwnd_limited) */
#define CC_RATE_RECOVERS 4u	/* in fast recovery */
#define CC_RATE_TIMED_OUT 8u	/* in recovery after a timeout */
#define CC_RATE_NO_SACK 16u	/* the peer sends no selective acknowledgements */
#define CC_RATE_HAD_LAW 32u	/* the flow has sent under another law */

/**
 * An acknowledgement. Counts are segments since the flow began, modulo 2^32.
 */
struct cc_rate_sample {
	cc_u64 now_us;	       /**< Of any monotonic clock. */
	cc_u32 delivered_pkts; /**< Delivered, with this acknowledgement (C.delivered). */
	cc_u32 lost_pkts;      /**< Found lost; a retransmission lost counts again (C.lost). */
	cc_u32 ce_pkts;	       /**< Delivered with an echo of congestion (RFC 3168). */
	cc_u32 prior_delivered_pkts; /**< Delivered when the newest of what arrived was sent (P.delivered). */
	cc_u32 interval_us;  /**< Delivering sampled_pkts took so long; 0 = there is no sample. */
	cc_u32 sampled_pkts; /**< Segments, not a count since the beginning (RS.delivered). */
	cc_u32 acked_pkts;   /**< Delivered by this acknowledgement alone (RS.newly_acked). */
	cc_u32 newly_lost_pkts; /**< Found lost by it. */
	cc_u32 rtt_us;	       /**< Of what was sent last of what arrived; 0 = none was measured. */
	cc_u32 srtt_us;	       /**< Smoothed round-trip time; 0 = none. */
	cc_u32 mss_bytes;      /**< Bytes of data in a segment. */
	cc_u32 in_flight_pkts; /**< `pipe` of RFC 6675. */
	cc_u32 prior_in_flight_pkts; /**< Before the acknowledgement. */
	cc_u32 tx_in_flight_pkts; /**< When the newest was sent, with it; 0 = the host does not know. */
	cc_u32 lost_since_sent_pkts; /**< Since it was sent; not read when tx_in_flight_pkts is 0. */
	cc_u32 flags;		     /**< CC_RATE_APP_LIMITED and others. */
};

/* How things stood when the flow had delivered so much. */
struct cc_sent_mark {
	cc_u32 delivered_pkts;
	cc_u32 lost_pkts;
	cc_u32 in_flight_pkts; /* the most, until the next mark */
};

/* About CC_SENT_PER_ROUND marks a round trip, for two round trips. */
#define CC_SENT_MARKS 16
#define CC_SENT_PER_ROUND 8
struct cc_sent_history {
	struct cc_sent_mark marks[CC_SENT_MARKS];
	cc_u32 newest;
	cc_u32 count;
};

/** One flow under such a law. All 0 before cc_rate_begin(). */
struct cc_rate_flow {
	cc_u64 pacing_bytes_per_s;	/**< Send at this rate. */
	cc_u32 cwnd_pkts;		/**< The host sets it when it lowers the window itself. */
	cc_u32 clamp_pkts;		/**< The window is no more than this. */
	struct cc_sent_history history; /**< For hosts that do not keep it with each segment. */
	cc_u64 own[32];			/**< The law's own. */
};

static inline int cc_is_before(cc_u32 a, cc_u32 b)
{
	return (int)(a - b) < 0;
}

static inline cc_u32 cc_least(cc_u32 a, cc_u32 b)
{
	return a < b ? a : b;
}

static inline cc_u32 cc_most(cc_u32 a, cc_u32 b)
{
	return a > b ? a : b;
}

static inline void cc_sent_begin(struct cc_sent_history *h, cc_u32 delivered_pkts, cc_u32 lost_pkts)
{
	h->marks[0].delivered_pkts = delivered_pkts;
	h->marks[0].lost_pkts = lost_pkts;
	h->marks[0].in_flight_pkts = 0;
	h->newest = 0;
	h->count = 1;
}

/* What is sent from here on is sent with so much delivered; before, as much was in flight as is known now. */
static inline void cc_sent_note(struct cc_sent_history *h, const struct cc_rate_sample *s)
{
	struct cc_sent_mark *mark = &h->marks[h->newest % CC_SENT_MARKS];
	cc_u32 step = s->prior_in_flight_pkts / CC_SENT_PER_ROUND;

	mark->in_flight_pkts = cc_most(mark->in_flight_pkts, s->prior_in_flight_pkts);
	if (s->delivered_pkts - mark->delivered_pkts <= step)
		return;
	h->newest = (h->newest + 1) % CC_SENT_MARKS;
	h->count = cc_least(h->count + 1, CC_SENT_MARKS);
	mark = &h->marks[h->newest];
	mark->delivered_pkts = s->delivered_pkts;
	mark->lost_pkts = s->lost_pkts;
	mark->in_flight_pkts = s->in_flight_pkts;
}

/* How many marks before the newest the last one stands that is no later than `delivered_pkts`; or the oldest. */
static inline cc_u32 cc_sent_age(const struct cc_sent_history *h, cc_u32 delivered_pkts)
{
	cc_u32 age;

	for (age = 0; age < CC_SENT_MARKS - 1 && age + 1 < h->count; age++)
		if (!cc_is_before(delivered_pkts,
				  h->marks[(h->newest - age) % CC_SENT_MARKS].delivered_pkts))
			break;
	return age;
}

/* Found lost when so much was delivered: in proportion, between two marks. */
static inline cc_u32 cc_sent_lost(const struct cc_sent_history *h, cc_u32 age,
				  const struct cc_rate_sample *s)
{
	const struct cc_sent_mark *at = &h->marks[(h->newest - age) % CC_SENT_MARKS];
	const struct cc_sent_mark *next = &h->marks[(h->newest - age + 1) % CC_SENT_MARKS];
	cc_u32 next_lost = age ? next->lost_pkts : s->lost_pkts;
	cc_u32 next_delivered = age ? next->delivered_pkts : s->delivered_pkts;
	cc_u32 between = next_delivered - at->delivered_pkts;
	cc_u32 since = s->prior_delivered_pkts - at->delivered_pkts;

	if (next_lost == at->lost_pkts || !between || since > between)
		return at->lost_pkts;
	return at->lost_pkts + (cc_u32)((cc_u64)(next_lost - at->lost_pkts) * since / between);
}

/* What the host did not say of when the newest segment was sent. */
static inline void cc_sent_recall(const struct cc_sent_history *h, struct cc_rate_sample *s)
{
	cc_u32 age = cc_sent_age(h, s->prior_delivered_pkts);

	if (s->tx_in_flight_pkts)
		return;
	s->tx_in_flight_pkts = h->marks[(h->newest - age) % CC_SENT_MARKS].in_flight_pkts;
	s->lost_since_sent_pkts = s->lost_pkts - cc_sent_lost(h, age, s);
}

#endif
